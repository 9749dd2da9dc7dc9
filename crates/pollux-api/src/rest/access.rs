//! Tokens and roles.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What the holder of a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Look.
    Viewer,
    /// Look, submit, and change one's own jobs.
    Submitter,
    /// Everything.
    Admin,
    /// Speak for one job.
    Job,
}

impl Role {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Submitter => "submitter",
            Self::Admin => "admin",
            Self::Job => "job",
        }
    }

    /// The role of this word.
    pub fn of(word: &str) -> Option<Self> {
        [Self::Viewer, Self::Submitter, Self::Admin, Self::Job].into_iter().find(|role| role.word() == word)
    }
}

/// A token to be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Whose it is.
    #[schema(pattern = "^[A-Za-z0-9._@-]{1,63}$")]
    pub owner: String,
    /// What it allows: `viewer`, `submitter` or `admin`.
    pub role: Role,
    /// Seconds until it expires, at most 100 years; never if absent.
    #[serde(default)]
    #[schema(maximum = 3_153_600_000_u64)]
    pub expires_s: Option<u64>,
}

/// A token that was made. It is shown once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TokenMade {
    /// The secret itself.
    pub token: String,
    /// What is known of it.
    #[serde(flatten)]
    pub shown: TokenShown,
}

/// What is known of a token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TokenShown {
    /// Names it without giving it away: the first characters of its hash.
    pub id: String,
    /// Whose it is.
    pub owner: String,
    /// What it allows.
    pub role: Role,
    /// When it was made.
    pub made: String,
    /// When it expires.
    pub expires: Option<String>,
}
