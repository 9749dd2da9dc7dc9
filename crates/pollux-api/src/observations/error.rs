//! What can be wrong with a file of observations.

use std::fmt;

use pollux_model::fit::InvalidObservation;

use super::Column;
use crate::quote::Quoted;

/// Observations that cannot be read: where, and why.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct ObservationsError {
    /// The label the reader was given, usually the file's name.
    pub file: String,
    /// The line in the file, from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// Bytes that are no text.
    #[error("not UTF-8 text")]
    NotUtf8,
    /// Nothing but blank lines and comments.
    #[error("no header and no rows")]
    Empty,
    /// Data where the names of the columns should be.
    #[error("the first line must name the columns, not hold numbers")]
    NoHeader,
    /// Fields are not separated by commas.
    #[error("the header has no commas; fields are separated by `,`, not {separator:?}")]
    Separator {
        /// What seems to separate them.
        separator: char,
    },
    /// A column that means nothing here.
    #[error("unknown column {}", Quoted(column))]
    UnknownColumn {
        /// Its name.
        column: String,
        /// The known name nearest to it, if any is near.
        near: Option<Column>,
    },
    /// A name that stands twice in the header.
    #[error("column `{column}` stands twice in the header")]
    DuplicateColumn {
        /// Its name.
        column: Column,
    },
    /// A column that must be there and is not.
    #[error("column `{column}` is missing from the header")]
    MissingColumn {
        /// Its name.
        column: Column,
    },
    /// A header with no rows below it.
    #[error("no rows after the header")]
    NoRows,
    /// A row that is longer or shorter than the header.
    #[error("{found} fields, but the header has {expected}")]
    FieldCount {
        /// Columns of the header.
        expected: usize,
        /// Fields of the row.
        found: usize,
    },
    /// A field with nothing in it.
    #[error("column `{column}`: the field is empty")]
    EmptyField {
        /// The field's column.
        column: Column,
    },
    /// A field that is not what its column holds.
    #[error("column `{column}`: {} is not {expected}", Quoted(value))]
    Value {
        /// The field's column.
        column: Column,
        /// What stands there.
        value: String,
        /// What should.
        expected: Expected,
    },
    /// A node without a replica.
    #[error("column `nodes`: {nodes} nodes are more than {replicas} replicas; each node holds at least one")]
    MoreNodesThanReplicas {
        /// Nodes of the row.
        nodes: u32,
        /// Replicas of the row.
        replicas: u32,
    },
    /// Numbers that the model refuses although each by itself is fine.
    #[error(transparent)]
    Observation(#[from] InvalidObservation),
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A whole number from 1.
    Count,
    /// A positive, finite number of seconds.
    Seconds,
    /// A positive, finite number.
    Weight,
    /// A name without control characters.
    Name,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Count => "a whole number, 1 or more",
            Self::Seconds => "a positive number of seconds",
            Self::Weight => "a positive number",
            Self::Name => "a name",
        })
    }
}

impl ObservationsError {
    /// What to do about it, where that is not plain from the message.
    pub fn hint(&self) -> Option<String> {
        match &self.problem {
            Problem::UnknownColumn { near: Some(near), .. } => Some(format!("did you mean `{near}`?")),
            Problem::UnknownColumn { near: None, .. } => {
                Some(format!("known columns are {}", list(&Column::ALL)))
            }
            Problem::NoHeader | Problem::Empty | Problem::MissingColumn { .. } => {
                Some(format!("a header names at least {}", list(Column::REQUIRED)))
            }
            _ => None,
        }
    }
}

fn list(columns: &[Column]) -> String {
    columns.iter().map(|column| format!("`{column}`")).collect::<Vec<_>>().join(", ")
}
