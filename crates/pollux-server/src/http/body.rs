//! Bodies that say what is wrong with them.

use axum::extract::{FromRequest, Request};
use axum::{Json, extract::rejection::JsonRejection};
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// A JSON body. A bad one is a problem that names the place.
pub(super) struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        match Json::<T>::from_request(request, state).await {
            Ok(Json(body)) => Ok(Self(body)),
            Err(JsonRejection::MissingJsonContentType(_)) => Err(ApiError::Invalid(
                "send the body as JSON, with `Content-Type: application/json`".to_owned(),
            )),
            Err(rejection) => Err(ApiError::Invalid(rejection.body_text())),
        }
    }
}
