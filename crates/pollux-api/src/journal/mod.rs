//! What happened to a scheduler, what came of it, and all it remembers, as JSON, version 1.
//!
//! A journal is a list of rows ([`JournalRow`]): whoever begins with a state and hands the inputs of the rows after it to
//! [`Scheduler::handle`](pollux_core::Scheduler::handle) has the scheduler again, to the last bit. What was written and
//! read back is the same; infinities and what is no number are words (`"inf"`, `"nan"`). Plans are whole, so that
//! nothing is solved again; of effects that hold a snapshot or a question only its number is kept.
//!
//! Readers take nothing on trust: no text makes them panic, and errors name the field. Agents' reports may have fields
//! that are not known; nothing else may.

mod effect;
mod input;
mod plan;
mod state;
mod stored;

pub use effect::JournalEffect;
use pollux_core::{Config, Effect, Input, State};
use pollux_model::Timestamp;
use pollux_policy::Plan;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stored::Stored;

pub use crate::wire::Problem;
use crate::wire::{FieldError, message, one_line, place, within};

/// The version this crate writes, and the only one it reads.
pub const VERSION: u64 = 1;

/// Something that happened, and what came of it.
#[derive(Clone, Debug)]
pub struct JournalRow {
    /// Its number; rows follow each other without a gap.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub input: Input,
    /// What the service says of it: who did it, and what only the service needs.
    pub note: Value,
    /// What was asked for because of it.
    pub effects: Vec<JournalEffect>,
}

/// Text that is nothing a journal holds.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum JournalError {
    /// Written by a later build.
    #[error(
        "journal format {found} is newer than this build understands ({VERSION}): use the build that wrote it, or a later one"
    )]
    Newer {
        /// The version given.
        found: u64,
    },
    /// A field that is wrong.
    #[error("journal: {}{problem}", place(path))]
    Field {
        /// The path to it; empty or `.` for the whole.
        path: String,
        /// What is wrong.
        problem: Problem,
    },
}

impl From<FieldError> for JournalError {
    fn from(FieldError { path, problem }: FieldError) -> Self {
        Self::Field { path: one_line(&path), problem }
    }
}

/// An input as JSON, on one line.
///
/// ```
/// use pollux_api::journal;
/// use pollux_core::Input;
/// use pollux_model::JobId;
///
/// let json = journal::input_to_json(&Input::JobCancelled(JobId(7)));
/// assert_eq!(json, r#"{"job_cancelled":{"job":7}}"#);
/// assert!(matches!(journal::input_from_json(&json), Ok(Input::JobCancelled(JobId(7)))));
/// ```
pub fn input_to_json(input: &Input) -> String {
    to_json(&input.write())
}

/// Reads what [`input_to_json`] wrote.
pub fn input_from_json(json: &str) -> Result<Input, JournalError> {
    Ok(Input::read(from_json(json)?)?)
}

/// Effects as JSON, on one line.
pub fn effects_to_json(effects: &[Effect]) -> String {
    to_json(&effects.iter().map(JournalEffect::from).collect::<Vec<_>>().write())
}

/// Reads what [`effects_to_json`] wrote.
pub fn effects_from_json(json: &str) -> Result<Vec<JournalEffect>, JournalError> {
    Ok(Vec::read(from_json(json)?)?)
}

/// A whole plan as JSON, on one line: unlike [`plan_file`](crate::plan_file) it can be read again.
pub fn plan_to_json(plan: &Plan) -> String {
    to_json(&plan.write())
}

/// Reads what [`plan_to_json`] wrote.
pub fn plan_from_json(json: &str) -> Result<Plan, JournalError> {
    Ok(Plan::read(from_json(json)?)?)
}

/// A scheduler's settings as JSON, on one line.
pub fn config_to_json(config: &Config) -> String {
    to_json(&Versioned { version: VERSION, value: config.write() })
}

/// Reads what [`config_to_json`] wrote.
pub fn config_from_json(json: &str) -> Result<Config, JournalError> {
    versioned::<Config>(json)
}

/// All that a scheduler remembers as JSON, on one line.
///
/// ```
/// use pollux_api::journal;
/// use pollux_core::{Config, Input, JobSpec, Scheduler};
/// use pollux_model::{JobId, Timestamp};
///
/// let mut scheduler = Scheduler::new(Config::default());
/// scheduler.handle(Timestamp::ZERO, Input::JobSubmitted(JobId(1), JobSpec::default()))?;
/// let json = journal::state_to_json(&scheduler.state());
/// let again = Scheduler::restore(Config::default(), journal::state_from_json(&json)?)?;
/// assert_eq!(format!("{again:?}"), format!("{scheduler:?}"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn state_to_json(state: &State) -> String {
    to_json(&Versioned { version: VERSION, value: state.write() })
}

/// Reads what [`state_to_json`] wrote. Whether a scheduler can be in it,
/// [`Scheduler::restore`](pollux_core::Scheduler::restore) says.
pub fn state_from_json(json: &str) -> Result<State, JournalError> {
    versioned::<State>(json)
}

impl JournalRow {
    /// The row as JSON, on one line: for files of rows.
    pub fn to_json(&self) -> String {
        let Self { seq, at, input, note, effects } = self;
        let (input, note, effects) = (input.write(), note.clone(), effects.write());
        let value = RowForm { seq: *seq, at: at.write(), input, note, effects };
        to_json(&Versioned { version: VERSION, value })
    }

    /// Reads what [`JournalRow::to_json`] wrote.
    pub fn from_json(json: &str) -> Result<Self, JournalError> {
        let RowForm { seq, at, input, note, effects } = value_of(json)?;
        let input = within("input", Input::read(input))?;
        Ok(Self {
            seq,
            at: Timestamp::from_micros(at),
            input,
            note,
            effects: within("effects", Vec::read(effects))?,
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowForm {
    seq: u64,
    at: u64,
    input: <Input as Stored>::Form,
    #[serde(default)]
    note: Value,
    effects: Vec<<JournalEffect as Stored>::Form>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Versioned<T> {
    version: u64,
    value: T,
}

/// The version alone, whatever else there is.
#[derive(Deserialize)]
struct Version {
    version: u64,
}

fn versioned<T: Stored>(json: &str) -> Result<T, JournalError> {
    Ok(T::read(value_of(json)?)?)
}

fn value_of<T: DeserializeOwned>(json: &str) -> Result<T, JournalError> {
    let Version { version } = from_json(json)?;
    if version > VERSION {
        return Err(JournalError::Newer { found: version });
    }
    if version < VERSION {
        let problem = Problem::Format(format!("`{version}` was never a version"));
        return Err(FieldError { path: "version".to_owned(), problem }.into());
    }
    let Versioned { value, .. } = from_json(json)?;
    Ok(value)
}

fn to_json(form: &impl Serialize) -> String {
    // Numbers, names, and maps by name: there is nothing in them that JSON cannot hold.
    serde_json::to_string(form).unwrap_or_default()
}

fn from_json<T: DeserializeOwned>(json: &str) -> Result<T, FieldError> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let form = serde_path_to_error::deserialize(&mut reader).map_err(FieldError::from)?;
    reader.end().map_err(|error| FieldError::from(Problem::Format(message(&error))))?;
    Ok(form)
}
