//! Bodies, addresses and questions that say what is wrong with them.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// A JSON body. A bad one is a problem that names the place.
pub(super) struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        if !is_json(request.headers()) {
            let text = "send the body as JSON, with `Content-Type: application/json`";
            return Err(ApiError::Invalid(text.to_owned()));
        }
        let bytes = Bytes::from_request(request, state).await.map_err(|error| match error.status() {
            StatusCode::PAYLOAD_TOO_LARGE => ApiError::TooLarge,
            _ => ApiError::Invalid(error.body_text()),
        })?;
        // A list would be taken for the fields in their order.
        if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
            return Err(ApiError::Invalid(
                "the body is no JSON object: write {\"field\": value, ..}".to_owned(),
            ));
        }
        let read = Json::<T>::from_bytes(&bytes);
        read.map(|Json(body)| Self(body)).map_err(|rejection| ApiError::Invalid(rejection.body_text()))
    }
}

/// Whether a body says that it is JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.starts_with("application/") && kind.ends_with("+json")
}

/// The parts of a path. A part that makes no sense is a problem like any other.
pub(super) struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let found = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        found
            .map(|axum::extract::Path(value)| Self(value))
            .map_err(|error| ApiError::Invalid(error.body_text()))
    }
}

/// What stands after the `?`. What makes no sense there is a problem like any other.
pub(super) struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let found = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        found
            .map(|axum::extract::Query(value)| Self(value))
            .map_err(|error| ApiError::Invalid(error.body_text()))
    }
}
