//! One start of a job: what is asked for, and what was decided about it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use pollux_core::Generation;
use pollux_model::JobId;
use serde::{Deserialize, Serialize};

/// Which start of which job; written `JOB.GENERATION`, such as `7.2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct RunId {
    /// The job.
    pub job: JobId,
    /// Its start.
    pub generation: Generation,
}

impl RunId {
    /// The run of this job and generation.
    pub const fn new(job: JobId, generation: Generation) -> Self {
        Self { job, generation }
    }

    /// What `POLLUX_RUN` is in the processes of a rank: `STATE/JOB.GENERATION.RANK`.
    pub fn tag(self, state: &str, rank: u32) -> String {
        format!("{state}/{self}.{rank}")
    }

    /// The run that such a tag names, if it is one of this state folder.
    pub fn of_tag(state: &str, tag: &str) -> Option<Self> {
        let (of, rest) = tag.rsplit_once('/')?;
        let (run, rank) = rest.rsplit_once('.')?;
        (of == state && rank.parse::<u32>().is_ok()).then(|| run.parse().ok()).flatten()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.job.0, self.generation.0)
    }
}

/// A text that is not `JOB.GENERATION`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a run; write JOB.GENERATION, such as 7.2")]
pub struct NotARun(String);

impl FromStr for RunId {
    type Err = NotARun;

    fn from_str(text: &str) -> Result<Self, NotARun> {
        let parsed = text.split_once('.').and_then(|(job, generation)| {
            Some(Self::new(JobId(job.parse().ok()?), Generation(generation.parse().ok()?)))
        });
        // `+7.02` also parses; only the one spelling names a folder.
        parsed.filter(|run| run.to_string() == text).ok_or_else(|| NotARun(text.to_owned()))
    }
}

impl From<RunId> for String {
    fn from(run: RunId) -> Self {
        run.to_string()
    }
}

impl TryFrom<String> for RunId {
    type Error = NotARun;

    fn try_from(text: String) -> Result<Self, NotARun> {
        text.parse()
    }
}

/// GPUs of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The node's name.
    pub node: String,
    /// How many of its GPUs.
    pub gpus: u32,
}

/// A start as the scheduler asks for it: which GPUs of a node are used is the engine's choice.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRequest {
    /// The run.
    pub run: RunId,
    /// The job's name.
    pub name: String,
    /// GPUs by node; node ranks follow this order.
    pub shares: Vec<Share>,
    /// GPUs of each process; every share must be a multiple of it.
    pub gpus_per_rank: u32,
    /// Everything else.
    pub told: Told,
}

/// What a run is told and held to, wherever it is placed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Told {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Where it starts.
    pub workdir: PathBuf,
    /// The user's own variables; ours win.
    pub env: BTreeMap<String, String>,
    /// Which GPUs each process sees.
    pub devices: Devices,
    /// The scheduler's address.
    pub server: Option<String>,
    /// The same for programs that speak AdaptDL.
    pub adaptdl_url: Option<String>,
    /// The file with the job's token.
    pub token_file: Option<PathBuf>,
    /// The job's own folder, kept over attempts.
    pub checkpoint_path: Option<PathBuf>,
    /// JSON: the job's batch sizes.
    pub batch: Option<String>,
    /// Whether the cluster is made up.
    pub emulated: bool,
    /// The profile whose step times an emulated job keeps to.
    pub emulated_profile: Option<String>,
    /// Milliseconds between SIGTERM and SIGKILL.
    pub grace_ms: u64,
    /// How much of its output is kept.
    pub log: LogLimits,
    /// Limits of each process.
    pub limits: Limits,
}

/// Which GPUs a process sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Devices {
    /// All GPUs the run has on its node, in order of local ranks: `LOCAL_RANK` picks, as under torchrun.
    #[default]
    Node,
    /// Its own alone; `LOCAL_RANK` is 0, so that the default device is the right one.
    Own,
}

/// How much output of a process is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogLimits {
    /// Bytes of one file.
    pub bytes: u64,
    /// Files, the current one among them.
    pub files: u32,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self { bytes: 16 << 20, files: 4 }
    }
}

/// What one process of a run, with its children, may use; kept by control groups where they can be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Main memory.
    pub memory_bytes: Option<u64>,
    /// CPUs.
    pub cpus: Option<f64>,
}

impl Limits {
    /// Whether anything is limited.
    pub fn is_some(&self) -> bool {
        self.memory_bytes.is_some() || self.cpus.is_some()
    }
}

/// A run as it was decided: what `run.json` holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// Version of the file; 1.
    pub version: u32,
    /// Which scheduler's state folder it belongs to.
    pub state: String,
    /// The run.
    pub run: RunId,
    /// The job's name.
    pub name: String,
    /// Its processes, by rank.
    pub ranks: Vec<Rank>,
    /// Where rank 0 listens for the others.
    pub master_port: u16,
    /// A second port, for programs that speak AdaptDL.
    pub control_port: u16,
    /// What is the same wherever it is placed.
    pub told: Told,
}

/// The version of `run.json` that is written and read.
pub(super) const VERSION: u32 = 1;

/// One process of a run and its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rank {
    /// The node's name.
    pub node: String,
    /// The type of its GPUs.
    pub gpu_type: String,
    /// The node's number among those of the run.
    pub node_rank: u32,
    /// The process's number on its node.
    pub local_rank: u32,
    /// The indices of its GPUs.
    pub slots: Vec<u32>,
}

impl RunSpec {
    /// The ranks, numbered.
    pub fn numbered(&self) -> impl Iterator<Item = (u32, &Rank)> {
        (0..).zip(&self.ranks)
    }

    /// Every GPU the run holds: node and index.
    pub fn slots(&self) -> impl Iterator<Item = (&str, u32)> {
        self.ranks.iter().flat_map(|rank| rank.slots.iter().map(|slot| (rank.node.as_str(), *slot)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_tag(tag: &str, expected: Option<(u64, u32)>) {
        let run = RunId::of_tag("home", tag);
        assert_eq!(
            run,
            expected.map(|(job, generation)| RunId::new(JobId(job), Generation(generation))),
            "{tag}"
        );
    }

    #[test]
    fn tags_name_runs_of_one_state_folder() {
        assert_eq!(RunId::new(JobId(7), Generation(2)).tag("home", 3), "home/7.2.3");
        check_tag("home/7.2.3", Some((7, 2)));
        check_tag("away/7.2.3", None);
        check_tag("home/7.2", None);
        check_tag("home/7.2.x", None);
        check_tag("home/7.2.3.4", None);
        check_tag("", None);
    }

    #[test]
    fn one_spelling_names_a_run() {
        assert_eq!("7.2".parse(), Ok(RunId::new(JobId(7), Generation(2))));
        for text in ["7", "7.", ".2", "+7.2", "7.02", "a.b", "7.2.1", "7.99999999999"] {
            assert!(text.parse::<RunId>().is_err(), "{text}");
        }
    }
}
