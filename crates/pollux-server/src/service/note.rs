//! What the service adds to an input of the scheduler, in the journal.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

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
    /// GPUs of a node that nothing is started on: why, by index.
    Devices {
        /// Who says so.
        actor: String,
        /// All of them.
        #[serde(deserialize_with = "by_number")]
        out: BTreeMap<u32, String>,
    },
    /// Queues: names by number.
    Queues {
        /// Who set them.
        actor: String,
        /// Their names.
        #[serde(deserialize_with = "by_number")]
        names: BTreeMap<u32, String>,
    },
}

/// JSON has text for keys, and a tagged enum no longer knows that numbers were meant.
fn by_number<'de, D: Deserializer<'de>>(reader: D) -> Result<BTreeMap<u32, String>, D::Error> {
    let by_text = BTreeMap::<String, String>::deserialize(reader)?;
    let number = |key: &str| key.parse().map_err(|_| D::Error::custom(format!("`{key}` is no number")));
    by_text.into_iter().map(|(key, value)| Ok((number(&key)?, value))).collect()
}

impl Note {
    /// Who did it: a user, or the scheduler itself.
    pub fn actor(&self) -> &str {
        match self {
            Self::By { actor }
            | Self::Submitted { actor, .. }
            | Self::Devices { actor, .. }
            | Self::Queues { actor, .. } => actor,
            Self::Nothing | Self::Began { .. } | Self::Ended { .. } | Self::Node { .. } => "scheduler",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_comes_back(note: &Note) {
        let text = serde_json::to_string(note).expect("JSON");
        assert_eq!(serde_json::from_str::<Note>(&text).expect("a note"), *note, "{text}");
    }

    #[test]
    fn every_note_comes_back_from_the_journal() {
        let by = |actor: &str| actor.to_owned();
        check_comes_back(&Note::Nothing);
        check_comes_back(&Note::Began { config: "{}".to_owned(), policy: "fifo".to_owned() });
        check_comes_back(&Note::By { actor: by("ada") });
        let (name, file) = ("a".to_owned(), serde_json::json!({"name": "a", "array": 3}));
        check_comes_back(&Note::Submitted { actor: by("ada"), name, file, key: Some("k".to_owned()) });
        check_comes_back(&Note::Ended { how: "it left".to_owned() });
        check_comes_back(&Note::Node { name: "node-0".to_owned() });
        let numbered = BTreeMap::from([(0, "zero".to_owned()), (12, "twelve".to_owned())]);
        check_comes_back(&Note::Devices { actor: by("driver"), out: numbered.clone() });
        check_comes_back(&Note::Queues { actor: by("ada"), names: numbered });
    }
}
