//! What can be wrong with a saved agent state.

use super::VERSION;
use crate::quote::Quoted;
use crate::wire::{FieldError, Problem, message, one_line, place};

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
    #[error("agent state: {}{problem}", place(path))]
    Field {
        /// The path to it: `noise.running.weight`, `profile[3].micro_batch`; `.` for the whole.
        path: String,
        /// What is wrong.
        problem: Problem,
    },
}

impl AgentStateError {
    pub(super) fn syntax(error: &serde_json::Error) -> Self {
        Self::Syntax { line: error.line().max(1), column: error.column().max(1), message: message(error) }
    }
}

impl From<FieldError> for AgentStateError {
    fn from(FieldError { path, problem }: FieldError) -> Self {
        Self::Field { path: one_line(&path), problem }
    }
}
