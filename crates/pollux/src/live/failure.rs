//! Why a command around a live scheduler failed.

use std::path::PathBuf;

use pollux_api::client::ClientError;
use pollux_api::job_file::JobFileError;

use crate::failure::exit;

/// Why it failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LiveFailure {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    File(#[from] JobFileError),
    #[error("{text}")]
    Usage { text: String, hint: Option<String> },
    #[error("{text}")]
    Failed { text: String, hint: Option<String> },
    #[error("no scheduler runs with the state folder {}", .state.display())]
    NotRunning { state: PathBuf },
    #[error("{0}")]
    Jobs(String),
    #[error("gave up waiting")]
    TimedOut,
    #[error("interrupted; nothing was left running")]
    Interrupted,
    #[error(transparent)]
    Other(#[from] Box<crate::failure::Failure>),
}

impl LiveFailure {
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::Usage { text: text.into(), hint: None }
    }

    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self::Failed { text: text.into(), hint: None }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Client(ClientError::Refused(problem)) => match problem.status {
                404 => exit::NOT_FOUND,
                401 | 403 => exit::UNREACHABLE,
                409 | 412 | 422 => exit::INVALID,
                _ => exit::FAILURE,
            },
            Self::Client(ClientError::Unreachable { .. }) | Self::NotRunning { .. } => exit::UNREACHABLE,
            Self::Client(ClientError::Strange { .. }) | Self::Failed { .. } | Self::Jobs(_) => exit::FAILURE,
            Self::File(_) => exit::INVALID,
            Self::Usage { .. } => exit::USAGE,
            Self::TimedOut => exit::TIMED_OUT,
            Self::Interrupted => exit::INTERRUPTED,
            Self::Other(failure) => failure.exit_code(),
        }
    }

    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Client(ClientError::Refused(problem)) => problem.hint.clone(),
            Self::Client(ClientError::Unreachable { .. }) | Self::NotRunning { .. } => Some(
                "start one with `pollux up`, or name it with `--server`; `pollux doctor` looks around"
                    .to_owned(),
            ),
            Self::Usage { hint, .. } | Self::Failed { hint, .. } => hint.clone(),
            _ => None,
        }
    }
}
