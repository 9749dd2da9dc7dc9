//! Errors, as RFC 9457 has them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is wrong with a call, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, thiserror::Error)]
#[error("{detail}")]
pub struct Problem {
    /// `about:blank`: the code says which problem it is.
    #[serde(rename = "type", default = "blank")]
    pub kind: String,
    /// The status in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong, in a sentence.
    pub detail: String,
    /// A word for programs; it never changes its meaning.
    pub code: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

fn blank() -> String {
    "about:blank".to_owned()
}

impl Problem {
    /// A problem with this status, code and sentence.
    pub fn new(status: u16, title: &str, code: &str, detail: impl Into<String>) -> Self {
        let (title, code, detail) = (title.to_owned(), code.to_owned(), detail.into());
        Self { kind: blank(), title, status, detail, code, hint: None }
    }

    /// With advice.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}
