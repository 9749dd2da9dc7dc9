//! What happens, and the vocabulary of those who say so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pollux_core::{
    Config, CycleId, Generation, Input, JobEdit, JobSpec, NodeSpec, Pool, PoolId, ScaleRule, Scaler, SizeId,
    Sizes,
};
use pollux_model::{AgentReport, GpuType, JobId, NodeId, Timestamp};
use pollux_policy::{Cadence, Group, GroupId, NodeState, Plan, Priority, Request, Seed};
use serde::{Deserialize, Serialize};

use super::stored::{Stored, stored_enum, stored_struct};
use crate::wire::{Read, within};

stored_enum! {
    Input => InputForm {
        JobSubmitted { job = 0: JobId, spec = 1: JobSpec },
        JobEdited { job = 0: JobId, edit = 1: JobEdit },
        JobCancelled { job = 0: JobId },
        JobReported { job = 0: JobId, report = 1: AgentReport },
        JobTraining { job = 0: JobId, generation = 1: Generation },
        JobStopped { job = 0: JobId, generation = 1: Generation },
        JobFinished { job = 0: JobId, generation = 1: Generation },
        JobFailed { job = 0: JobId, generation = 1: Generation },
        JobGivenUp { job = 0: JobId, generation = 1: Generation },
        NodeJoined { node = 0: NodeId, spec = 1: NodeSpec },
        NodeStateSet { node = 0: NodeId, state = 1: NodeState },
        NodeUsedByOthers { node = 0: NodeId, gpus = 1: u32 },
        NodeLost { node = 0: NodeId },
        PoolsSet { pools = 0: Vec<Pool> },
        PoolNodeJoined { node = 0: NodeId, pool = 1: PoolId },
        GrowFailed { pool = 0: PoolId, nodes = 1: u32 },
        NodeReclaimed { node = 0: NodeId, deadline = 1: Timestamp },
        SizeReady { id = 0: SizeId, sizes = 1: Sizes },
        GroupsSet { groups = 0: Vec<Group> },
        PlanReady { cycle = 0: CycleId, plan = 1: Plan },
        Tick,
        ShellRestarted,
    }
    NodeState => NodeStateForm { Ready, Cordoned, Draining }
    Priority => PriorityForm { Low, Normal, High }
    ScaleRule => ScaleRuleForm {
        Goodput { low = low: f64, high = high: f64 },
        Cost { job_hour = job_hour: f64 },
        Throughput { worth = worth: f64 },
    }
}

stored_struct! {
    JobSpec => JobSpecForm {
        application: Option<Arc<str>>,
        group: Option<GroupId>,
        priority: Priority,
        weight: f64,
        min_gpus: u32,
        max_gpus: Option<u32>,
        types: BTreeSet<GpuType>,
        request: Option<Request>,
        adapts: bool,
        preemptible: bool,
        work: Option<f64>,
        retries: u32,
        min_runtime: Duration,
        max_resizes_per_hour: Option<u32>,
    }
    Request => RequestForm { gpus: u32 }
    NodeSpec => NodeSpecForm { gpu_type: GpuType, gpus: u32 }
    Pool => PoolForm {
        id: PoolId,
        node: NodeSpec,
        price: f64,
        ready_after: Duration,
        min_hold: Duration,
        least: u32,
        most: u32,
        spot: bool,
    }
    Group => GroupForm {
        id: GroupId,
        parent: Option<GroupId>,
        entitled: BTreeMap<GpuType, u32>,
        caps: BTreeMap<GpuType, u32>,
    }
    Config => ConfigForm {
        cadence: Cadence,
        seed: Seed,
        restart_cost: Duration,
        history: bool,
        back_off: Duration,
        longest_back_off: Duration,
        remember_ended: usize,
        scaler: Option<Scaler>,
    }
    Cadence => CadenceForm { every: Duration, on_events: Option<Duration> }
    Scaler => ScalerForm { rule: ScaleRule, patience: Duration }
}

/// What is not changed is left out.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobEditForm {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    priority: Option<PriorityForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weight: Option<<f64 as Stored>::Form>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min_gpus: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_gpus: Option<Most>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    suspended: Option<bool>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Most {
    Gpus(u32),
    Unlimited,
}

impl Stored for JobEdit {
    type Form = JobEditForm;

    fn write(&self) -> JobEditForm {
        let Self { priority, weight, min_gpus, max_gpus, suspended } = self;
        JobEditForm {
            priority: priority.write(),
            weight: weight.write(),
            min_gpus: *min_gpus,
            max_gpus: max_gpus.map(|most| most.map_or(Most::Unlimited, Most::Gpus)),
            suspended: *suspended,
        }
    }

    fn read(form: JobEditForm) -> Read<Self> {
        let most = |most| match most {
            Most::Gpus(most) => Some(most),
            Most::Unlimited => None,
        };
        Ok(Self {
            priority: within("priority", Stored::read(form.priority))?,
            weight: within("weight", Stored::read(form.weight))?,
            min_gpus: form.min_gpus,
            max_gpus: form.max_gpus.map(most),
            suspended: form.suspended,
        })
    }
}
