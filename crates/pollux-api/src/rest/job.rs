//! Jobs as they are shown, submitted and edited.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It holds nothing and waits for a plan.
    Pending,
    /// It holds GPUs and is on its way to its first step.
    Starting,
    /// It trains.
    Running,
    /// It saves its state and leaves its GPUs.
    Stopping,
    /// Its user paused it.
    Paused,
    /// All its work is done.
    Finished,
    /// It died too often.
    Failed,
    /// Its user wanted it no more.
    Cancelled,
}

impl JobState {
    /// All of them, in the order of a job's life.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Starting,
        Self::Running,
        Self::Stopping,
        Self::Paused,
        Self::Finished,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Its word in JSON and in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Paused => "paused",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing more happens to it.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Cancelled)
    }
}

/// A job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobShown {
    /// Its number.
    pub id: u64,
    /// Its name, no other job has it.
    pub name: String,
    /// Who submitted it.
    pub owner: String,
    /// The queue it counts for.
    pub queue: Option<String>,
    /// Where it is in its life.
    pub state: JobState,
    /// Who starves last: `low`, `normal` or `high`.
    pub priority: String,
    /// GPUs it holds.
    pub gpus: u32,
    /// Fewest GPUs it can run on.
    pub min_gpus: u32,
    /// Most it may hold; no limit if absent.
    pub max_gpus: Option<u32>,
    /// Their type.
    pub gpu_type: Option<String>,
    /// How many of them on which node.
    pub nodes: BTreeMap<String, u32>,
    /// Whether it stays where it is because it has never reported.
    pub is_rigid: bool,
    /// Whether its GPUs are emulated.
    pub is_emulated: bool,
    /// Global batch size.
    pub batch: Option<u64>,
    /// Samples on each GPU in one pass.
    pub micro_batch: Option<u32>,
    /// Passes that are accumulated before each step, beyond the last.
    pub accumulation: Option<u32>,
    /// What the learning rate is multiplied by.
    pub lr_factor: Option<f64>,
    /// Samples per second, by the model of its agent.
    pub throughput: Option<f64>,
    /// Progress per sample, against the initial batch: 0 to 1.
    pub efficiency: Option<f64>,
    /// Useful samples per second: throughput times efficiency.
    pub goodput: Option<f64>,
    /// Gradient noise scale, in samples.
    pub noise_scale: Option<f64>,
    /// Work done, in steps at the initial batch.
    pub progress: Option<f64>,
    /// The same as a share of the work it declared.
    pub progress_ratio: Option<f64>,
    /// Restarts so far.
    pub restarts: u32,
    /// Failures since it last made progress.
    pub failures: u32,
    /// When it was submitted (RFC 3339, UTC).
    pub submitted: String,
    /// When it first held GPUs.
    pub started: Option<String>,
    /// When it ended.
    pub ended: Option<String>,
    /// When its agent reported last.
    pub reported: Option<String>,
    /// What it is doing and why, in a sentence.
    pub reason: String,
    /// Changes when the job is edited; for `If-Match`.
    pub etag: String,
    /// Every start, the latest last; in a description, not in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// The job file, every default filled in; in a description, not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub file: Option<serde_json::Value>,
}

/// One start of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// How many GPUs on which node.
    pub nodes: BTreeMap<String, u32>,
    /// When it began.
    pub started: String,
    /// When it made its first step.
    pub training: Option<String>,
    /// When it was asked to leave.
    pub asked: Option<String>,
    /// When its last process was gone.
    pub ended: Option<String>,
    /// How it ended, in words.
    pub how: Option<String>,
}

/// Some jobs, and where to go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobList {
    /// The jobs.
    pub jobs: Vec<JobShown>,
    /// Give this as `after` to get more; absent at the end.
    pub next: Option<u64>,
    /// Whether the cluster is emulated.
    pub is_emulated: bool,
}

/// A job to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Submission {
    /// The job file as JSON.
    #[schema(value_type = Object)]
    pub file: serde_json::Value,
    /// Say what would happen, and do nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// Jobs that were submitted: one, or as many as an array has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Submitted {
    /// The jobs.
    pub jobs: Vec<JobShown>,
    /// With a dry run: who would hold what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<super::WhatIfAnswer>,
}

/// What is to change about a job; what is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobEdits {
    /// `low`, `normal` or `high`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(low|normal|high)$")]
    pub priority: Option<String>,
    /// How much its speed-up counts, above 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0.0)]
    pub weight: Option<f64>,
    /// Fewest GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_gpus: Option<u32>,
    /// Most GPUs; 0 lifts the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_gpus: Option<u32>,
}
