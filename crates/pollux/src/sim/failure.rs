//! Why a simulation could not be had.

use std::path::PathBuf;

use pollux_sim::campaign::{CampaignError, RunFailed, WorldError};
use pollux_sim::cloud::CloudError;
use pollux_sim::osdi21::file::Problem;
use pollux_sim::osdi21::{self, FileError, LoadError, TableError};
use pollux_sim::profile::ProfileError;
use pollux_sim::reproduce::LabError;
use pollux_sim::simulation;
use pollux_sim::sweep::{SweepError, SweepFailed};
use pollux_sim::traces::TraceSpecError;
use pollux_sim::whatif::WhatifError;
use pollux_sim::workload::{GenerateError, RecipeError};

use crate::failure::exit;

/// Why a simulation could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SimFailure {
    #[error("{flags}: {why}")]
    Senseless { flags: &'static str, why: &'static str },
    #[error("there is no folder `{}`", .path.display())]
    NoFolder { path: PathBuf },
    #[error("`--compat osdi21` needs the authors' traces, and no folder is given")]
    NoTraces,
    #[error("{}: no `.csv` file in this folder", .folder.display())]
    NoWorkloads { folder: PathBuf },
    #[error("no profile knows GPUs of type {}", .0.join(" or "))]
    NoGpuType(Vec<String>, Vec<String>),
    #[error("{}: no report of `pollux sim run`", .path.display())]
    NoReport { path: PathBuf },
    #[error("{}: there is no figure `{name}`", .path.display())]
    NoFigure { name: String, path: PathBuf, known: Vec<String> },
    #[error("there is no job `{job}` in workload `{workload}`")]
    NoSuchJob { job: String, workload: String, near: Vec<String>, n_jobs: usize },
    #[error("{what} `{first}` and `{second}` would share the folder `{name}`")]
    SharedFolder { what: &'static str, first: String, second: String, name: String },
    #[error("`{change}` is no change")]
    NoSuchChange { change: String },
    #[error("`weight={name}:..`: there is no group or application `{name}`")]
    NobodyToWeigh { name: String, groups: Vec<String>, applications: Vec<String> },
    #[error(transparent)]
    Whatif(#[from] WhatifError),
    #[error("there is no experiment `{name}`")]
    NoSuchExperiment { name: String },
    #[error(transparent)]
    Lab(#[from] LabError),
    #[error(transparent)]
    Cloud(#[from] CloudError),
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    #[error(transparent)]
    TraceSpec(#[from] TraceSpecError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Generate(#[from] GenerateError),
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    #[error(transparent)]
    Run(#[from] RunFailed),
    #[error(transparent)]
    Sweep(#[from] SweepError),
    #[error(transparent)]
    SweepRun(#[from] SweepFailed),
}

impl From<LoadError> for SimFailure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::File(error) => Self::File(error),
            LoadError::Table(error) => Self::Table(error),
        }
    }
}

impl SimFailure {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Senseless { .. }
            | Self::NoTraces
            | Self::NoSuchJob { .. }
            | Self::NoFigure { .. }
            | Self::NoSuchExperiment { .. }
            | Self::NoSuchChange { .. }
            | Self::NobodyToWeigh { .. }
            | Self::SharedFolder { .. }
            | Self::Recipe(_)
            | Self::TraceSpec(_)
            | Self::Campaign(CampaignError::Twice { .. }) => exit::USAGE,
            Self::NoFolder { .. }
            | Self::Cloud(CloudError::Unreadable { .. })
            | Self::Table(TableError::Absent { .. })
            | Self::Profile(ProfileError::Unreadable { .. }) => exit::NOT_FOUND,
            Self::File(error) | Self::Profile(ProfileError::Measurements(error))
                if matches!(error.problem, Problem::Unreadable(_)) =>
            {
                exit::NOT_FOUND
            }
            Self::Run(RunFailed { source, .. }) if is_a_mistake(source) => exit::FAILURE,
            Self::SweepRun(failed) if is_mistaken_sweep(failed) => exit::FAILURE,
            _ => exit::INVALID,
        }
    }

    /// What to do about it, where that is not plain from the message.
    pub(crate) fn hint(&self) -> Option<String> {
        let text = match self {
            Self::NoSuchChange { .. } => return Some(super::whatif::hint()),
            Self::NobodyToWeigh { groups, applications, .. } => {
                let groups = if groups.is_empty() { "none".to_owned() } else { quoted(groups) };
                return Some(format!(
                    "groups of the workload: {groups}; applications: {}",
                    quoted(applications)
                ));
            }
            Self::NoSuchExperiment { .. } => "`pollux sim reproduce --list` names them",
            Self::NoTraces => {
                "give the folder `traces` with `--traces`, or set POLLUX_DATA to the folder that has \
                 `pollux-osdi21/traces`"
            }
            Self::NoGpuType(_, known) => {
                return Some(format!("they know {}; `--cluster` says which there are", known.join(", ")));
            }
            Self::NoReport { .. } => "`pollux sim run --out` makes one",
            Self::NoFigure { known, .. } => return Some(format!("there are {}", quoted(known))),
            Self::NoSuchJob { near, n_jobs, .. } => {
                let others = if *n_jobs > near.len() { " and others; `--out` lists all of them" } else { "" };
                return Some(format!("there are {}{others}", quoted(near)));
            }
            Self::File(FileError { problem: Problem::TooManyGpus { .. }, .. })
            | Self::Campaign(CampaignError::TooLarge { .. }) => {
                "let it ask for less, or make the cluster larger with `--cluster`; Pollux alone heeds no requests"
            }
            Self::SharedFolder { .. } => "leave one out, or make two calls with two folders",
            Self::Profile(ProfileError::NoProfiles { .. }) => {
                "`pollux sim profile` makes a profile from measured CSV files; the authors' traces need \
                 `--compat osdi21`"
            }
            Self::Table(_) => "`--table` or POLLUX_OSDI21_TABLE names a table that lies elsewhere",
            Self::Campaign(CampaignError::Twice { .. }) => "leave one out",
            Self::Run(RunFailed { source, .. }) if never_run(source) => {
                "they ask for more GPUs than there are of a type they were measured on; `--cluster` makes it larger"
            }
            Self::Run(RunFailed { source, .. }) if is_a_mistake(source) => {
                "please report this with the command and its files"
            }
            Self::Sweep(SweepError::Impossible { .. }) => {
                "`--gpus` and `--batch` say what each trial asks for, `--cluster` what there is"
            }
            Self::SweepRun(failed) if is_mistaken_sweep(failed) => "please report this with the command",
            _ => return None,
        };
        Some(text.to_owned())
    }
}

fn is_a_mistake(error: &WorldError) -> bool {
    matches!(
        error,
        WorldError::Osdi21(osdi21::SimulationError::Broken(_))
            | WorldError::Profiles(simulation::SimulationError::Broken(_))
    )
}

fn is_mistaken_sweep(failed: &SweepFailed) -> bool {
    matches!(*failed.source, SweepError::Simulation(simulation::SimulationError::Broken(_)))
}

fn never_run(error: &WorldError) -> bool {
    matches!(
        error,
        WorldError::Osdi21(osdi21::SimulationError::NeverRun(_))
            | WorldError::Profiles(simulation::SimulationError::NeverRun(_))
    )
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
