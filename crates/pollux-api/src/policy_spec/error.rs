//! What can be wrong with the text of a policy.

use crate::near::nearest;
use crate::quote::Quoted;

/// Text that names no policy, or settings it does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicySpecError {
    /// No policy of this name.
    #[error("there is no policy {}", Quoted(.name))]
    NoSuchPolicy {
        /// What stands there.
        name: String,
        /// The name nearest to it, if any is near.
        near: Option<&'static str>,
    },
    /// A part that the policy does not know.
    #[error("policy `{policy}` has no setting {}", Quoted(.part))]
    UnknownPart {
        /// The policy.
        policy: &'static str,
        /// What stands there.
        part: String,
        /// The presets and keys it knows.
        known: Vec<&'static str>,
        /// The one nearest to it, if any is near.
        near: Option<&'static str>,
    },
    /// A preset after something it would undo.
    #[error("policy `{policy}`: `{preset}` stands after other settings, which it would undo")]
    LatePreset {
        /// The policy.
        policy: &'static str,
        /// The preset.
        preset: &'static str,
    },
    /// A key that stands twice.
    #[error("policy `{policy}`: `{key}` stands twice")]
    Twice {
        /// The policy.
        policy: &'static str,
        /// The key.
        key: &'static str,
    },
    /// A value that its key cannot have.
    #[error("policy `{policy}`: `{key}`: {} is not {expected}", Quoted(.value))]
    Value {
        /// The policy.
        policy: &'static str,
        /// The key.
        key: &'static str,
        /// What stands there.
        value: String,
        /// What should.
        expected: &'static str,
    },
}

impl PolicySpecError {
    pub(super) fn unknown_part(policy: &'static str, part: &str, known: &[&'static str]) -> Self {
        let word = part.split_once('=').map_or(part, |(key, _)| key);
        let near = nearest(word, known.iter().copied());
        Self::UnknownPart { policy, part: part.to_owned(), known: known.to_vec(), near }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoSuchPolicy { near: Some(near), .. } => {
                Some(format!("did you mean `{near}`? `pollux policy list` shows all of them"))
            }
            Self::NoSuchPolicy { .. } => Some("`pollux policy list` shows all of them".to_owned()),
            Self::UnknownPart { policy, known, .. } if known.is_empty() => {
                Some(format!("it has none; write `{policy}` alone"))
            }
            Self::UnknownPart { known, near, .. } => {
                let known: Vec<String> = known.iter().map(|known| format!("`{known}`")).collect();
                let known = known.join(", ");
                Some(match near {
                    Some(near) => format!("did you mean `{near}`? there are {known}"),
                    None => format!("there are {known}"),
                })
            }
            Self::LatePreset { preset, .. } => Some(format!("begin with `{preset}`")),
            Self::Twice { .. } => Some("leave one out".to_owned()),
            Self::Value { .. } => None,
        }
    }
}
