//! What can be wrong with a snapshot's file.

use std::fmt;

use pollux_model::InvalidLimits;
use pollux_policy::SnapshotError;

use super::{MOST_NODES, VERSION};
use crate::fit_file;
use crate::quote::Quoted;

/// A snapshot that cannot be read: from where, about whom, and why.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{file}{}: {}{problem}", .problem.place(), Of(owner.as_ref()))]
pub struct SnapshotFileError {
    /// The label the reader was given, usually the file's name.
    pub file: String,
    /// Whom it is about, if it is about one.
    pub owner: Option<Owner>,
    /// What is wrong.
    pub problem: Box<Problem>,
}

/// Whose entry it is that a problem is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// `node`, `group` or `job`.
    pub what: &'static str,
    /// Its name.
    pub name: String,
}

struct Of<'a>(Option<&'a Owner>);

impl fmt::Display for Of<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Owner { what, name }) = self.0 else { return Ok(()) };
        write!(f, "{what} {}: ", Quoted(name))
    }
}

/// What is wrong with a snapshot. Keys are given with the path to them: `jobs[3].min_gpus`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// A value that is not what its key holds, a key that is missing, or text that is no JSON.
    #[error(transparent)]
    Field(#[from] fit_file::Problem),
    /// A key that stands twice in one object.
    #[error("{message}")]
    Repeated {
        /// The line, from 1.
        line: usize,
        /// The character in the line, from 1.
        column: usize,
        /// Which key.
        message: String,
    },
    /// A format of another time.
    #[error(
        "`version`: {} is not a version of snapshots this program reads; it reads {VERSION}",
        Quoted(found)
    )]
    Version {
        /// What stands there.
        found: String,
    },
    /// A key that means nothing where it stands.
    #[error("`{key}` is not a key of {of}")]
    UnknownKey {
        /// The key.
        key: String,
        /// What has no such key.
        of: &'static str,
        /// The nearest key it has, if any is near.
        near: Option<&'static str>,
        /// All keys it has.
        known: &'static [&'static str],
    },
    /// A reference to a node or group that is not there.
    #[error("`{key}`: there is no {what} {}", Quoted(name))]
    UnknownName {
        /// The key.
        key: String,
        /// `node` or `group`.
        what: &'static str,
        /// The name that nothing has.
        name: String,
        /// The nearest name that something has, if any is near.
        near: Option<String>,
        /// The first few names, and how many there are.
        known: (Vec<String>, usize),
    },
    /// One name for two nodes, groups or jobs.
    #[error("`{key}`: there is another {what} {}", Quoted(name))]
    SameName {
        /// The key of the second.
        key: String,
        /// `node`, `group` or `job`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// More nodes than anyone has.
    #[error("`{key}`: more than {MOST_NODES} nodes")]
    TooManyNodes {
        /// The key.
        key: String,
    },
    /// Limits that allow no batch.
    #[error("`{key}`: {cause}")]
    Limits {
        /// The key.
        key: String,
        /// Why not.
        cause: InvalidLimits,
    },
    /// Bounds of a batch in the wrong order.
    #[error("`{key}`: the batch size {low} is above {high}, which is {high_is}")]
    BatchOrder {
        /// The key.
        key: String,
        /// What should be the smaller one.
        low: u64,
        /// What should be the larger one.
        high: u64,
        /// What the larger one is.
        high_is: &'static str,
    },
    /// Two keys of which only one can hold.
    #[error("`{key}` and `{other}` exclude each other")]
    Exclusive {
        /// One.
        key: String,
        /// The other, without its path.
        other: &'static str,
    },
    /// Fewest above most.
    #[error("`{key}`: at least {min} GPUs, but at most {max}")]
    MinAboveMax {
        /// The key of the fewest.
        key: String,
        /// Fewest.
        min: u32,
        /// Most.
        max: u32,
    },
    /// More GPUs in use than a node has.
    #[error("it has {gpus} GPUs, but {}", holders(*.others, *.held, .by))]
    Overfull {
        /// GPUs it has.
        gpus: u32,
        /// GPUs others use.
        others: u32,
        /// GPUs held by jobs.
        held: u64,
        /// Which jobs hold how many; the first few.
        by: Vec<(String, u32)>,
    },
    /// GPUs of several types held by one job.
    #[error("`{key}`: GPUs of two types, {} and {}; a job runs on one type", Quoted(&.types.0), Quoted(&.types.1))]
    MixedTypes {
        /// The key.
        key: String,
        /// The types.
        types: (String, String),
    },
    /// A job on its way to nothing.
    #[error("`{key}`: it is restarting, but holds nothing")]
    RestartingNowhere {
        /// The key.
        key: String,
    },
    /// A group among its own ancestors.
    #[error("`{key}`: it is part of itself")]
    CyclicGroups {
        /// The key.
        key: String,
    },
    /// Whatever else makes no snapshot.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

fn holders(others: u32, held: u64, by: &[(String, u32)]) -> String {
    let mut names: Vec<String> = by.iter().map(|(job, gpus)| format!("{} {gpus}", Quoted(job))).collect();
    if by.iter().map(|(_, gpus)| u64::from(*gpus)).sum::<u64>() < held {
        names.push("…".to_owned());
    }
    let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    format!("jobs hold {held}{names} and others use {others}")
}

impl Problem {
    /// The line and column, for those problems that have one, as they follow a file's name.
    fn place(&self) -> String {
        match self {
            Self::Field(problem) => problem.place(),
            Self::Repeated { line, column, .. } => format!(":{line}:{column}"),
            _ => String::new(),
        }
    }
}

impl SnapshotFileError {
    /// What to do about it, where that is not plain from the message.
    pub fn hint(&self) -> Option<String> {
        match &*self.problem {
            Problem::Field(fit_file::Problem::UnknownParameter { near: Some(near), .. })
            | Problem::UnknownKey { near: Some(near), .. } => Some(format!("did you mean `{near}`?")),
            Problem::UnknownName { near: Some(near), .. } => Some(format!("did you mean {}?", Quoted(near))),
            Problem::UnknownKey { known, .. } => {
                let known: Vec<_> = known.iter().map(|key| format!("`{key}`")).collect();
                Some(format!("known keys are {}", known.join(", ")))
            }
            Problem::UnknownName { known: (_, 0), what, .. } => Some(format!("the snapshot has no {what}s")),
            Problem::UnknownName { known: (names, total), what, .. } => {
                let more = if names.len() < *total {
                    format!(" and {} more", total - names.len())
                } else {
                    String::new()
                };
                let names: Vec<_> = names.iter().map(|name| Quoted(name).to_string()).collect();
                Some(format!("known {what}s are {}{more}", names.join(", ")))
            }
            Problem::Field(fit_file::Problem::Syntax { .. } | fit_file::Problem::NotAnObject) => Some(
                "`examples/snapshot.json` and `docs/reference/formats.md` show what a snapshot looks like"
                    .to_owned(),
            ),
            Problem::Version { .. } => Some("a newer `pollux` may read it".to_owned()),
            Problem::SameName { what: "node", .. } => {
                Some("with `count`, nodes are named `name-0`, `name-1` and so on".to_owned())
            }
            Problem::Overfull { .. } => {
                Some("correct `holds` of a job, or `used_by_others` or `gpus` of the node".to_owned())
            }
            Problem::RestartingNowhere { .. } => Some("`holds` says where it is going".to_owned()),
            Problem::Exclusive { .. } => Some("leave one of them out".to_owned()),
            _ => None,
        }
    }
}

/// A problem on its way to become an error.
pub(super) struct Trouble {
    owner: Option<Owner>,
    problem: Box<Problem>,
}

impl Trouble {
    pub(super) fn of_file(self, file: &str) -> SnapshotFileError {
        SnapshotFileError { file: file.to_owned(), owner: self.owner, problem: self.problem }
    }
}

impl<P: Into<Problem>> From<P> for Trouble {
    fn from(problem: P) -> Self {
        Self { owner: None, problem: Box::new(problem.into()) }
    }
}

/// Says whom a problem is about.
pub(super) trait OwnedBy<T> {
    fn of(self, what: &'static str, name: &str) -> Result<T, Trouble>;
}

impl<T, P: Into<Problem>> OwnedBy<T> for Result<T, P> {
    fn of(self, what: &'static str, name: &str) -> Result<T, Trouble> {
        self.map_err(|problem| Trouble {
            owner: Some(Owner { what, name: name.to_owned() }),
            problem: Box::new(problem.into()),
        })
    }
}
