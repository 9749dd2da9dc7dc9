//! Nodes, queues, rounds, events, and the service itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A machine with GPUs, or an emulated one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeShown {
    /// Its name.
    pub name: String,
    /// The type of its GPUs.
    pub gpu_type: String,
    /// How many it has.
    pub gpus: u32,
    /// How many of them have a holder.
    pub held: u32,
    /// How many cannot be used.
    pub unhealthy: u32,
    /// `ready`, `cordoned` (nobody new comes) or `draining` (jobs that can be moved go).
    pub state: String,
    /// GPUs by job.
    pub jobs: BTreeMap<String, u32>,
    /// Whether it is emulated.
    pub is_emulated: bool,
    /// What its devices say, by index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceShown>,
}

/// What a GPU says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeviceShown {
    /// Its index on the machine.
    pub index: u32,
    /// Its maker's name.
    pub name: String,
    /// Share of time in which it computed, 0 to 1.
    pub utilisation: Option<f64>,
    /// Memory in use, in bytes.
    pub memory_used: Option<u64>,
    /// Memory it has, in bytes.
    pub memory_total: Option<u64>,
    /// Power in watts.
    pub power_watts: Option<f64>,
    /// Why it is not used, if it is not.
    pub unhealthy: Option<String>,
}

/// What is to become of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeEdit {
    /// `ready`, `cordoned` or `draining`.
    #[schema(pattern = "^(ready|cordoned|draining)$")]
    pub state: String,
    /// One GPU of it alone, by its index; it can be `ready` or `cordoned`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<u32>,
}

/// A queue: what its jobs are entitled to and hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueShown {
    /// Its name.
    pub name: String,
    /// The queue it is part of.
    #[serde(default)]
    pub parent: Option<String>,
    /// GPUs of each type that its jobs come first for.
    #[serde(default)]
    pub entitled: BTreeMap<String, u32>,
    /// GPUs of each type that its jobs may hold at most.
    #[serde(default)]
    pub caps: BTreeMap<String, u32>,
    /// GPUs its jobs hold; said by the service.
    #[serde(default)]
    pub held: u32,
    /// Its jobs that have not ended; said by the service.
    #[serde(default)]
    pub jobs: u32,
}

/// A round: a plan that was asked for, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RoundShown {
    /// Its number.
    pub round: u64,
    /// When it began.
    pub at: String,
    /// Its seed.
    pub seed: u64,
    /// The mean speed-up of the plan.
    pub value: Option<f64>,
    /// What no plan exceeds.
    pub bound: Option<f64>,
    /// How far the plan may be from the best, 0 to 1.
    pub gap: Option<f64>,
    /// Jobs that were planned for.
    pub jobs: u32,
    /// Jobs that were to start, move, grow, shrink or give way, each in a sentence.
    pub changes: Vec<String>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventShown {
    /// Its number; events that came later have greater ones.
    pub seq: u64,
    /// When.
    pub at: String,
    /// Who did it: a user, a job, or `scheduler`.
    pub actor: String,
    /// The job it is about.
    pub job: Option<String>,
    /// What kind of event.
    pub kind: String,
    /// What happened, in a sentence.
    pub text: String,
}

/// The service itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServiceShown {
    /// Version of the program.
    pub version: String,
    /// Version of the API.
    pub api: u32,
    /// The policy and its settings.
    pub policy: String,
    /// Whether the cluster is emulated.
    pub is_emulated: bool,
    /// The cluster's shape, such as `4x4:t4`.
    pub cluster: String,
    /// GPUs there are.
    pub gpus: u32,
    /// GPUs that have a holder.
    pub held: u32,
    /// Jobs by state.
    pub jobs: BTreeMap<String, u32>,
    /// Rounds so far.
    pub rounds: u64,
    /// When this process began.
    pub up_since: String,
    /// What is wrong at present, and what to do.
    pub warnings: Vec<String>,
}
