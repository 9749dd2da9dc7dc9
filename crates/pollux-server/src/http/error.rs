//! One kind of error for all routes: a problem with a status, a code, a sentence and advice.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use pollux_api::rest::Problem;
use pollux_core::Refused;

use crate::service::{SubmitError, Unavailable};
use crate::store::StoreError;

/// What a route answers when it cannot do what was asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ApiError {
    /// No token, or none that is known.
    #[error("the call has no valid token")]
    Unauthenticated,
    /// The token does not allow this.
    #[error("{0}")]
    Forbidden(String),
    /// No such thing.
    #[error("there is no {what} `{name}`{hint}")]
    NotFound {
        /// What kind of thing.
        what: &'static str,
        /// What it was called.
        name: String,
        /// What was meant, perhaps.
        hint: String,
    },
    /// What was sent makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The body is beyond what is read.
    #[error("the body has more than 1 MiB; send less at once")]
    TooLarge,
    /// The route is there, but not for this method.
    #[error("{0}; /openapi.json lists all routes")]
    Method(String),
    /// It makes sense, but not as things are.
    #[error("{0}")]
    Conflict(String),
    /// It was edited by somebody else meanwhile.
    #[error("the job was edited since; read it again, then edit what it is now")]
    Stale,
    /// An agent of another age.
    #[error("the agent speaks version {agent} of the API, the service version {service}")]
    Version {
        /// The agent's.
        agent: u32,
        /// Ours.
        service: u32,
    },
    /// The service cannot write.
    #[error("{0}")]
    Unavailable(String),
    /// Waited in vain.
    #[error("nothing came within the time given")]
    TimedOut,
}

impl ApiError {
    fn parts(&self) -> (StatusCode, &'static str, Option<&'static str>) {
        match self {
            Self::Unauthenticated => (
                StatusCode::UNAUTHORIZED,
                "unauthenticated",
                Some("send `Authorization: Bearer TOKEN`; `pollux token create` makes one"),
            ),
            Self::Forbidden(_) => (StatusCode::FORBIDDEN, "forbidden", None),
            Self::NotFound { .. } => (StatusCode::NOT_FOUND, "not_found", None),
            Self::Invalid(_) => (StatusCode::UNPROCESSABLE_ENTITY, "invalid", None),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too_large", None),
            Self::Method(_) => (StatusCode::METHOD_NOT_ALLOWED, "method", None),
            Self::Conflict(_) => (StatusCode::CONFLICT, "conflict", None),
            Self::Stale => (StatusCode::PRECONDITION_FAILED, "stale", None),
            Self::Version { .. } => (
                StatusCode::UPGRADE_REQUIRED,
                "version",
                Some("install agent and service of the same major version"),
            ),
            Self::Unavailable(_) => (
                StatusCode::INSUFFICIENT_STORAGE,
                "read_only",
                Some("make room on the disk of the state folder; the service goes on by itself"),
            ),
            Self::TimedOut => (StatusCode::REQUEST_TIMEOUT, "timed_out", None),
        }
    }

    /// As it is sent.
    pub fn problem(&self) -> Problem {
        let (status, code, hint) = self.parts();
        let title = status.canonical_reason().unwrap_or("error");
        let problem = Problem::new(status.as_u16(), title, code, self.to_string());
        match hint {
            Some(hint) => problem.with_hint(hint),
            None => problem,
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, ..) = self.parts();
        let mut response = (status, Json(self.problem())).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        if self == Self::Unauthenticated {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Unavailable> for ApiError {
    fn from(unavailable: Unavailable) -> Self {
        Self::Unavailable(unavailable.to_string())
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        match &refused {
            Refused::UnknownJob(id) => {
                Self::NotFound { what: "job", name: id.0.to_string(), hint: String::new() }
            }
            Refused::NotPositive(_) | Refused::MinAboveMax { .. } => Self::Invalid(refused.to_string()),
            Refused::CannotComeBack(_) => Self::Conflict(
                "the job has never reported, so a pause would destroy it; cancel it if that is meant"
                    .to_owned(),
            ),
            Refused::Ended(_) => Self::Conflict("the job has ended".to_owned()),
            _ => Self::Conflict(refused.to_string()),
        }
    }
}

impl From<SubmitError> for ApiError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::File(_) | SubmitError::UnknownQueue { .. } | SubmitError::TooLarge { .. } => {
                Self::Invalid(error.to_string())
            }
            SubmitError::Refused(refused) => refused.into(),
        }
    }
}
