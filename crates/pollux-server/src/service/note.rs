//! What the service adds to an input of the scheduler, in the journal.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Who did it, and what the scheduler need not know of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Note {
    /// Nothing to add.
    #[default]
    Nothing,
    /// The service began, with these settings.
    Began {
        /// The scheduler's, as JSON.
        config: String,
        /// Who plans.
        policy: String,
    },
    /// A user's doing.
    By {
        /// Who.
        actor: String,
    },
    /// A job that was submitted.
    Submitted {
        /// Who submitted it.
        actor: String,
        /// Its name.
        name: String,
        /// The job file as JSON.
        file: serde_json::Value,
        /// The caller's name for the submission, so that none is made twice.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// How a start ended.
    Ended {
        /// In words.
        how: String,
    },
    /// A node.
    Node {
        /// Its name.
        name: String,
    },
    /// Queues: names by number.
    Queues {
        /// Who set them.
        actor: String,
        /// Their names.
        names: BTreeMap<u32, String>,
    },
}

impl Note {
    /// Who did it: a user, or the scheduler itself.
    pub fn actor(&self) -> &str {
        match self {
            Self::By { actor } | Self::Submitted { actor, .. } | Self::Queues { actor, .. } => actor,
            Self::Nothing | Self::Began { .. } | Self::Ended { .. } | Self::Node { .. } => "scheduler",
        }
    }
}
