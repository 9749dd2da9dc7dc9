//! What can be wrong with a field, and the way to it.

use pollux_model::{InvalidLimits, InvalidParams, InvalidTable};

use crate::quote::Quoted;

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// It is not as the format has it; the parser says how.
    #[error("{0}")]
    Format(String),
    /// The form of the fit needs it.
    #[error("missing")]
    Missing,
    /// The form of the fit has none.
    #[error("unknown field")]
    Unknown,
    /// Less than nothing.
    #[error("`{0:?}` is not a number, zero or more")]
    Negative(f64),
    /// A parameter that no model has.
    #[error("{} is not the name of a parameter", Quoted(.0))]
    Parameter(String),
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
    /// Limits that allow no batch.
    #[error("{0}")]
    Limits(InvalidLimits),
    /// Smallest and largest batch that leave no batch, or allow other batches than the user's limits.
    #[error("batches from {low} to {high} are not within those from {initial} to {max}")]
    BatchRange {
        /// Smallest batch given.
        low: u64,
        /// Largest batch given.
        high: u64,
        /// The initial batch.
        initial: u64,
        /// The largest batch of the limits.
        max: u64,
    },
    /// Micro-batches that no number of replicas makes of the samples of a step.
    #[error(
        "{global} samples in {accum_steps} accumulation steps and one more never make micro-batches of {atomic_batch}"
    )]
    NoSuchPlan {
        /// Samples of a step.
        global: u64,
        /// The largest micro-batch given.
        atomic_batch: u32,
        /// Accumulation steps.
        accum_steps: u32,
    },
    /// A number outside of what it can be.
    #[error("`{found:?}` is not {expected}")]
    OutOfRange {
        /// What stands there.
        found: f64,
        /// What it should be.
        expected: &'static str,
    },
}

/// A problem and the path to it, on its way out of the fields it lies in.
#[derive(Debug)]
pub(crate) struct FieldError {
    pub(crate) path: String,
    pub(crate) problem: Problem,
}

impl From<Problem> for FieldError {
    fn from(problem: Problem) -> Self {
        Self { path: String::new(), problem }
    }
}

impl From<serde_path_to_error::Error<serde_json::Error>> for FieldError {
    fn from(error: serde_path_to_error::Error<serde_json::Error>) -> Self {
        Self { path: error.path().to_string(), problem: Problem::Format(message(error.inner())) }
    }
}

/// What was read from the field `key` (or the item `[index]`), seen from outside of it.
pub(crate) fn within<T>(key: &str, read: Result<T, impl Into<FieldError>>) -> Result<T, FieldError> {
    read.map_err(|error| {
        let FieldError { path, problem } = error.into();
        let joint = if path.is_empty() || path.starts_with('[') { "" } else { "." };
        FieldError { path: format!("{key}{joint}{path}"), problem }
    })
}

/// What the parser says, less the line and column it ends with.
pub(crate) fn message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    one_line(message.rsplit_once(" at line ").map_or(&message, |(message, _)| message))
}

/// Text with names from the file, as it may stand in a message: on one line, not too long.
pub(crate) fn one_line(text: &str) -> String {
    const LONGEST: usize = 300;
    let shown = |letter: char| {
        if letter.is_control() { letter.escape_default().to_string() } else { letter.to_string() }
    };
    let cut = text.chars().nth(LONGEST).map(|_| "…".to_owned());
    text.chars().take(LONGEST).map(shown).chain(cut).collect()
}

/// The path as a message begins with it: nothing for the whole.
pub(crate) fn place(path: &str) -> String {
    if path.is_empty() || path == "." { String::new() } else { format!("`{path}`: ") }
}
