//! Why a command failed, and its exit code.

use std::io;
use std::path::PathBuf;

use pollux_api::PolicySpecError;
use pollux_api::fit_file::FitFileError;
use pollux_api::observations::ObservationsError;
use pollux_api::snapshot::SnapshotFileError;
use pollux_model::fit::FitError;
use pollux_model::{GpuType, InvalidLimits, InvalidParams};
use pollux_report::RenderError;

use crate::live::LiveFailure;
use crate::sim::failure::SimFailure;

/// Exit codes: all of them, here and in `docs/reference/cli.md`.
pub(crate) mod exit {
    /// Done.
    pub(crate) const OK: u8 = 0;
    /// Any failure that has no code of its own.
    pub(crate) const FAILURE: u8 = 1;
    /// Arguments that make no command, or name a policy that does not exist.
    pub(crate) const USAGE: u8 = 2;
    /// A file or folder that is not there.
    pub(crate) const NOT_FOUND: u8 = 3;
    /// Input that is there, but wrong: a bad CSV or JSON file, limits that contradict each other.
    pub(crate) const INVALID: u8 = 4;
    /// A scheduler that does not answer, or does not let one in.
    pub(crate) const UNREACHABLE: u8 = 5;
    /// What was waited for did not come in time.
    pub(crate) const TIMED_OUT: u8 = 124;
    /// Ctrl-C.
    pub(crate) const INTERRUPTED: u8 = 130;
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("there is no file `{}`", .path.display())]
    NoFile { path: PathBuf },
    #[error("cannot write `{}`: there is no such folder", .path.display())]
    NoFolder { path: PathBuf },
    #[error("cannot read `{}`: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write `{}`: {source}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot write to standard output: {source}")]
    Stdout { source: io::Error },
    #[error("cannot read standard input: {source}")]
    Stdin { source: io::Error },
    #[error("cannot draw the plot: {0}")]
    Plot(#[from] RenderError),
    #[error(transparent)]
    Observations(#[from] ObservationsError),
    #[error("{}: {source}", .path.display())]
    Fit { path: PathBuf, source: FitError },
    #[error("{}: observations on {}, of which there is no model to test", .path.display(), named(gpu_type))]
    NothingToTest { path: PathBuf, gpu_type: GpuType, fitted: Vec<GpuType> },
    #[error(transparent)]
    FitFile(#[from] FitFileError),
    #[error("{}: no model of {}", .path.display(), named(gpu_type))]
    NoSuchType { path: PathBuf, gpu_type: GpuType, known: Vec<GpuType> },
    #[error("{}: models of {} GPU types, and none is chosen", .path.display(), .known.len())]
    SeveralTypes { path: PathBuf, known: Vec<GpuType> },
    #[error(transparent)]
    Limits(#[from] InvalidLimits),
    #[error("{}: {source}", .path.display())]
    Params { path: PathBuf, source: InvalidParams },
    #[error(transparent)]
    Snapshot(#[from] SnapshotFileError),
    #[error(transparent)]
    Policy(#[from] PolicySpecError),
    #[error(transparent)]
    Sim(#[from] Box<SimFailure>),
    #[error(transparent)]
    Live(#[from] Box<LiveFailure>),
    #[error("the policy `{name}` has no fairness to choose")]
    NoFairness { name: &'static str },
}

impl From<SimFailure> for Failure {
    fn from(failure: SimFailure) -> Self {
        Self::Sim(Box::new(failure))
    }
}

impl From<LiveFailure> for Failure {
    fn from(failure: LiveFailure) -> Self {
        match failure {
            LiveFailure::Other(failure) => *failure,
            failure => Self::Live(Box::new(failure)),
        }
    }
}

impl Failure {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::NoFile { .. } | Self::NoFolder { .. } => exit::NOT_FOUND,
            Self::Read { .. }
            | Self::Write { .. }
            | Self::Stdout { .. }
            | Self::Stdin { .. }
            | Self::Plot(_) => exit::FAILURE,
            Self::Sim(failure) => failure.exit_code(),
            Self::Live(failure) => failure.exit_code(),
            Self::Policy(_) | Self::NoFairness { .. } => exit::USAGE,
            Self::Observations(_)
            | Self::Fit { .. }
            | Self::NothingToTest { .. }
            | Self::FitFile(_)
            | Self::NoSuchType { .. }
            | Self::SeveralTypes { .. }
            | Self::Limits(_)
            | Self::Params { .. }
            | Self::Snapshot(_) => exit::INVALID,
        }
    }

    /// What to do about it, where that is not plain from the message.
    fn hint(&self) -> Option<String> {
        match self {
            Self::Observations(error) => error.hint(),
            Self::FitFile(error) => error.hint(),
            Self::Snapshot(error) => error.hint(),
            Self::Policy(error) => error.hint(),
            Self::Sim(failure) => failure.hint(),
            Self::Live(failure) => failure.hint(),
            Self::NoFairness { .. } => Some("leave out `--fairness`, or plan with `pollux`".to_owned()),
            Self::NothingToTest { fitted, .. } => {
                Some(format!("the fit is of {}; the column `gpu_type` tells GPUs apart", list(fitted)))
            }
            Self::NoSuchType { known, .. } if known.len() == 1 => {
                Some(format!("it holds one model, of {}; leave out `--gpu-type`", list(known)))
            }
            Self::NoSuchType { known, .. } => Some(format!("it holds models of {}", list(known))),
            Self::SeveralTypes { known, .. } => Some(format!("choose with `--gpu-type`: {}", list(known))),
            _ => None,
        }
    }

    /// The whole message, hint included.
    pub(crate) fn report(&self) -> String {
        match self.hint() {
            Some(hint) => format!("error: {self}\n\nhint: {hint}\n"),
            None => format!("error: {self}\n"),
        }
    }
}

/// The one type of a file that does not tell its GPUs apart has no name.
fn named(gpu_type: &GpuType) -> String {
    if *gpu_type == GpuType::default() { "unnamed GPUs".to_owned() } else { format!("`{gpu_type}`") }
}

fn list(types: &[GpuType]) -> String {
    types.iter().map(named).collect::<Vec<_>>().join(", ")
}
