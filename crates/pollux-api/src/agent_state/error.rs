//! What can be wrong with a saved agent state.

use pollux_model::{InvalidParams, InvalidTable};

use super::VERSION;
use crate::quote::Quoted;

/// A saved state that cannot be read, and why.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AgentStateError {
    /// Text that is no JSON.
    #[error("the agent state is not JSON: {message} (line {line}, column {column})")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The character in the line, from 1.
        column: usize,
        /// What the parser says.
        message: String,
    },
    /// JSON, but no object.
    #[error("the agent state is not a JSON object")]
    NotAnObject,
    /// An object that does not say what it is.
    #[error("the agent state does not give its `version`")]
    NoVersion,
    /// A format of a later time.
    #[error("agent state version {found} is newer than this build understands ({VERSION})")]
    Newer {
        /// The version given.
        found: u64,
    },
    /// What no version was ever called.
    #[error("agent state version {} is not one this build understands ({VERSION})", Quoted(found))]
    Version {
        /// What stands there.
        found: String,
    },
    /// A field that is wrong.
    #[error("agent state: `{path}`: {problem}")]
    Field {
        /// The path to it: `noise.running.weight`, `profile[3].micro_batch`.
        path: String,
        /// What is wrong.
        problem: Problem,
    },
}

impl AgentStateError {
    pub(super) fn syntax(error: &serde_json::Error) -> Self {
        let message = error.to_string();
        // The place has fields of its own.
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
        Self::Syntax { line: error.line().max(1), column: error.column().max(1), message: message.to_owned() }
    }
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// It must be there and is not.
    #[error("missing")]
    Missing,
    /// It means nothing in this version.
    #[error("unknown field")]
    Unknown,
    /// Its value is not what it holds.
    #[error("{} is not {expected}", Quoted(found))]
    Value {
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
    },
    /// A node without a replica.
    #[error("{nodes} nodes are more than {replicas} replicas; each node holds at least one")]
    MoreNodesThanReplicas {
        /// Nodes given.
        nodes: u32,
        /// Replicas given.
        replicas: u32,
    },
    /// One configuration timed under two entries.
    #[error("the same configuration stands there before")]
    Repeated,
    /// A batch in use, but on no GPUs.
    #[error("a batch means nothing without a `placement`")]
    NoPlacement,
    /// A batch that cannot be dealt to its replicas, or not into such micro-batches.
    #[error(
        "{global} samples on {replicas} replicas in {accum_steps} accumulation steps and one more do not make \
         micro-batches of {atomic_batch}"
    )]
    Plan {
        /// Samples of a step.
        global: u64,
        /// The largest micro-batch given.
        atomic_batch: u32,
        /// Accumulation steps.
        accum_steps: u32,
        /// Replicas of the placement.
        replicas: u32,
    },
    /// A range that ends before it begins.
    #[error("the range from {low} to {high} is empty")]
    EmptyRange {
        /// Its smallest number.
        low: u32,
        /// Its largest number.
        high: u32,
    },
    /// Averages of something, with nothing averaged.
    #[error("zero, although `n_blocks` is {n_blocks}")]
    NoWeight {
        /// Blocks said to be averaged.
        n_blocks: u32,
    },
    /// Points that make no table.
    #[error("{0}")]
    Table(InvalidTable),
    /// Parameters that describe no step time.
    #[error("{0}")]
    Params(InvalidParams),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// A problem and the path to it, on its way out of the fields it lies in.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("`{path}`: {problem}")]
pub(super) struct FieldError {
    pub(super) path: String,
    pub(super) problem: Problem,
}

impl FieldError {
    pub(super) fn at(key: &str, problem: Problem) -> Self {
        Self { path: shown(key), problem }
    }

    /// The same, seen from outside of the field `key`.
    pub(super) fn within(self, key: &str) -> Self {
        self.below(shown(key))
    }

    /// The same, seen from outside of the list it is an item of.
    pub(super) fn within_item(self, index: usize) -> Self {
        self.below(format!("[{index}]"))
    }

    fn below(self, outer: String) -> Self {
        let joint = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        Self { path: outer + joint + &self.path, ..self }
    }
}

impl From<FieldError> for AgentStateError {
    fn from(FieldError { path, problem }: FieldError) -> Self {
        Self::Field { path, problem }
    }
}

/// A key as it may stand in a message: on one line, not too long.
fn shown(key: &str) -> String {
    const LONGEST: usize = 60;
    let mut shown = String::new();
    for letter in key.chars().take(LONGEST) {
        if letter.is_control() {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    if key.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}
