//! What can be wrong with a file of fitted models.

use pollux_model::{InvalidParams, InvalidTable};

use super::VERSION;
use crate::quote::Quoted;

/// Models that cannot be read: from where, and why.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{file}{}: {problem}", .problem.place())]
pub struct FitFileError {
    /// The label the reader was given, usually the file's name.
    pub file: String,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a file. Keys are given with the path to them: `params.gamma`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// Text that is no JSON.
    #[error("not JSON: {message}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The character in the line, from 1.
        column: usize,
        /// What the parser says.
        message: String,
    },
    /// JSON, but no object.
    #[error("not a JSON object")]
    NotAnObject,
    /// A format of another time.
    #[error("`version`: {} is not a version this program reads; it reads {VERSION}", Quoted(found))]
    Version {
        /// What stands there.
        found: String,
    },
    /// A key that must be there and is not.
    #[error("`{key}` is missing")]
    Missing {
        /// The key.
        key: String,
    },
    /// A key that means nothing where it stands.
    #[error("`{key}` is not a parameter of the {form} form")]
    UnknownParameter {
        /// The key.
        key: String,
        /// The form that has no such parameter.
        form: &'static str,
        /// The name of the nearest parameter it has, if any is near.
        near: Option<&'static str>,
    },
    /// A value that is not what its key holds.
    #[error("`{key}`: {} is not {expected}", Quoted(found))]
    Value {
        /// The key.
        key: String,
        /// What stands there.
        found: String,
        /// What should.
        expected: &'static str,
    },
    /// No model under `gpu_types`.
    #[error("`gpu_types` holds no model")]
    NoModels,
    /// Points that make no table.
    #[error("`{key}`: {cause}")]
    Table {
        /// The key.
        key: String,
        /// Why not.
        cause: InvalidTable,
    },
    /// Compute that takes no time.
    #[error("`{key}`: `alpha_grad` and `beta_grad` are both zero, so that compute would take no time")]
    NoCompute {
        /// The key of the parameters.
        key: String,
    },
    /// Numbers that describe no step time although each by itself is fine.
    #[error("`{key}`: {cause}")]
    Params {
        /// The key.
        key: String,
        /// Why not.
        cause: InvalidParams,
    },
}

impl Problem {
    /// The line and column, for those problems that have one, as they follow a file's name.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Syntax { line, column, .. } => format!(":{line}:{column}"),
            _ => String::new(),
        }
    }
}

impl FitFileError {
    /// What to do about it, where that is not plain from the message.
    pub fn hint(&self) -> Option<String> {
        match &self.problem {
            Problem::Syntax { .. } | Problem::NotAnObject => {
                Some("`pollux model fit OBSERVATIONS.csv -o json` writes such a file".to_owned())
            }
            Problem::UnknownParameter { near: Some(near), .. } => Some(format!("did you mean `{near}`?")),
            Problem::Version { .. } => {
                Some("a newer `pollux` may read it, or fit the model again".to_owned())
            }
            _ => None,
        }
    }
}
