//! What can be wrong with a profile, and where.

use std::path::{Path, PathBuf};

use pollux_model::InvalidLimits;

use crate::osdi21::FileError;

/// A profile that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProfileError {
    /// A file or folder that cannot be opened or read.
    #[error("{}: cannot be read: {reason}", .file.display())]
    Unreadable {
        /// The file or folder.
        file: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// Text that is not JSON.
    #[error("{}:{line}:{column}: not JSON: {reason}", .file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What the parser says.
        reason: String,
    },
    /// JSON of some other kind.
    #[error(
        "{}: no application profile; one begins with {{\"kind\": \"{}\", \"version\": {}",
        .file.display(), super::KIND, super::VERSION
    )]
    Kind {
        /// The file.
        file: PathBuf,
    },
    /// A profile of a version this build does not know.
    #[error("{}: version {found} of application profiles; this build reads {}", .file.display(), super::VERSION)]
    Version {
        /// The file.
        file: PathBuf,
        /// Its version.
        found: String,
    },
    /// A field that is not what it must be.
    #[error("{}: {}{problem}", .file.display(), place(.path))]
    Field {
        /// The file; for a profile in the making, the folder of its measurements.
        file: PathBuf,
        /// Where in it: `step_times.t4.shapes[3].step_secs[0]`; empty for the whole.
        path: String,
        /// What is wrong there.
        problem: FieldProblem,
    },
    /// A folder without any profile.
    #[error("{}: no `.json` file in this folder", .folder.display())]
    NoProfiles {
        /// The folder.
        folder: PathBuf,
    },
    /// Two profiles of one name.
    #[error("{}: an application named `{name}` stands in {} already; rename one", .file.display(), .first.display())]
    NameTwice {
        /// The later file.
        file: PathBuf,
        /// The earlier one.
        first: PathBuf,
        /// The name of both.
        name: String,
    },
    /// A file of measurements that cannot be used.
    #[error(transparent)]
    Measurements(#[from] FileError),
    /// A folder that tells nothing of the gradients.
    #[error("{}: no training run; name each `validation-BATCH.csv`, as in `validation-128.csv`", .folder.display())]
    NoTraining {
        /// The folder.
        folder: PathBuf,
    },
}

/// What is wrong with a field of a profile.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FieldProblem {
    /// Of another type, missing, or not known.
    #[error("{0}")]
    Format(String),
    /// A list of nothing.
    #[error("the list is empty; at least one value is needed")]
    Empty,
    /// A list that must be as long as another one.
    #[error("{found} values, but `{like}` has {expected}; they belong together")]
    Length {
        /// Its length.
        found: usize,
        /// The other's.
        expected: usize,
        /// The other.
        like: String,
    },
    /// A value that is not above the one before it, or the first and not above zero.
    #[error("{value} comes after {previous}, but values must ascend")]
    NotAscending {
        /// The value.
        value: String,
        /// The one before it.
        previous: String,
    },
    /// A step that takes no time, or no number of seconds.
    #[error("a step of {value} s; a step takes a microsecond or more")]
    StepSecs {
        /// The time given.
        value: f64,
    },
    /// Exchange that is no part of its step.
    #[error("an exchange of {sync_secs} s; it is a part of the step of {step_secs} s, from 0 to all of it")]
    SyncSecs {
        /// The time of the exchange.
        sync_secs: f64,
        /// The time of the step.
        step_secs: f64,
    },
    /// A noise scale that is none.
    #[error("a noise scale of {value} samples; it must be from 0 to {:e}", super::MOST_NOISE)]
    Noise {
        /// The value given.
        value: f64,
    },
    /// A time that is below zero or has no end.
    #[error("{value} s; it must be a number from 0 up")]
    Secs {
        /// The value given.
        value: f64,
    },
    /// Nothing known of a single GPU.
    #[error("the first shape must be 1 replica on 1 node")]
    NoSingleGpu,
    /// A shape that cannot be.
    #[error("{n_replicas} replicas on {n_nodes} nodes; each node needs one, and there must be a node")]
    Shape {
        /// Nodes.
        n_nodes: u32,
        /// Replicas.
        n_replicas: u32,
    },
    /// Batch limits that allow nothing.
    #[error("{0}")]
    Limits(#[from] InvalidLimits),
    /// No type of GPU at all.
    #[error("no GPU type; at least one is needed")]
    NoGpuType,
    /// A name that would be hard to type or to show.
    #[error("{value:?} is no name; use letters, digits, `-`, `_` and `.`")]
    Name {
        /// The name given.
        value: String,
    },
}

fn place(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("`{path}`: ") }
}

/// A problem and the path to it, on its way out of the fields it lies in.
#[derive(Debug)]
pub(super) struct Within {
    path: String,
    problem: FieldProblem,
}

impl From<FieldProblem> for Within {
    fn from(problem: FieldProblem) -> Self {
        Self { path: String::new(), problem }
    }
}

/// A problem in the field `key` (or the item `[index]`), seen from outside of it.
pub(super) fn within(key: impl Into<String>, inner: impl Into<Within>) -> Within {
    let Within { path, problem } = inner.into();
    let joint = if path.is_empty() || path.starts_with('[') { "" } else { "." };
    Within { path: format!("{}{joint}{path}", key.into()), problem }
}

impl Within {
    pub(super) fn of(self, file: &Path) -> ProfileError {
        ProfileError::Field { file: file.to_owned(), path: self.path, problem: self.problem }
    }
}
