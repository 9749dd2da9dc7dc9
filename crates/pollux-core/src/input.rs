//! Everything that can happen to the scheduler.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pollux_model::{AgentReport, GpuType, JobId, NodeId, Timestamp};
use pollux_policy::{Group, GroupId, NodeState, Plan, Priority, Request, SnapshotError};

use crate::effect::{CycleId, Generation};
use crate::scaler::{Pool, PoolId, SizeId, Sizes};

/// Something that happened. A closed set: read it to know what wakes the scheduler.
#[derive(Clone, Debug)]
pub enum Input {
    /// A user wants a job run.
    JobSubmitted(JobId, JobSpec),
    /// A user wants it otherwise.
    JobEdited(JobId, JobEdit),
    /// A user wants it no more.
    JobCancelled(JobId),
    /// Its agent reported: it can come back from a restart.
    JobReported(JobId, AgentReport),
    /// It makes progress after a start.
    JobTraining(JobId, Generation),
    /// All its processes have left, as they were asked to.
    JobStopped(JobId, Generation),
    /// It is done, and all its processes have left.
    JobFinished(JobId, Generation),
    /// It died, and all its processes are gone.
    JobFailed(JobId, Generation),
    /// It died of something that no further try would mend, and all its processes are gone.
    JobGivenUp(JobId, Generation),
    /// A machine with GPUs is there.
    NodeJoined(NodeId, NodeSpec),
    /// Whether jobs may come to it and must go.
    NodeStateSet(NodeId, NodeState),
    /// How many of its GPUs others use, who are none of our jobs.
    NodeUsedByOthers(NodeId, u32),
    /// A machine is gone with all that ran there.
    NodeLost(NodeId),
    /// The pools that nodes can be had from, all of them.
    PoolsSet(Vec<Pool>),
    /// A machine of a pool is there, asked for or not.
    PoolNodeJoined(NodeId, PoolId),
    /// So many of the machines that were asked for do not come.
    GrowFailed(PoolId, u32),
    /// A machine will be taken back at this time.
    NodeReclaimed(NodeId, Timestamp),
    /// The answer to [`Effect::Size`](crate::Effect::Size).
    SizeReady(SizeId, Sizes),
    /// The groups of jobs, all of them.
    GroupsSet(Vec<Group>),
    /// The answer to [`Effect::Solve`](crate::Effect::Solve).
    PlanReady(CycleId, Plan),
    /// Time has passed.
    Tick,
    /// The shell began anew: plans and sizes that were on their way, and wishes to be woken, are lost with the old one. What
    /// became of starts and stops it finds out itself.
    ShellRestarted,
}

/// What a user says of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// What it trains; jobs of one application learn from each other.
    pub application: Option<Arc<str>>,
    /// The group it counts for.
    pub group: Option<GroupId>,
    /// Who starves last.
    pub priority: Priority,
    /// How much its speed-up counts.
    pub weight: f64,
    /// Fewest GPUs it can run on; at least one.
    pub min_gpus: u32,
    /// Most GPUs it may hold.
    pub max_gpus: Option<u32>,
    /// GPU types it may use; all if empty.
    pub types: BTreeSet<GpuType>,
    /// GPUs it asks for: what it gets as long as it never reports, and always from policies that do not choose.
    pub request: Option<Request>,
    /// Whether its script is known to report, so that it may begin small and grow. Any other job is rigid until it
    /// reports.
    pub adapts: bool,
    /// Whether it may be stopped for others once it runs.
    pub preemptible: bool,
    /// How long it is left alone after each start.
    pub min_runtime: Duration,
    /// Times that plans may move or stop it within an hour; no limit if none.
    pub max_resizes_per_hour: Option<u32>,
    /// Work it declares: useful samples until it is done.
    pub work: Option<f64>,
    /// Failures without progress in between after which it is given up. A job that never reported is not tried again.
    pub retries: u32,
}

impl Default for JobSpec {
    fn default() -> Self {
        Self {
            application: None,
            group: None,
            priority: Priority::Normal,
            weight: 1.0,
            min_gpus: 1,
            max_gpus: None,
            types: BTreeSet::new(),
            request: None,
            adapts: false,
            preemptible: true,
            min_runtime: Duration::ZERO,
            max_resizes_per_hour: None,
            work: None,
            retries: 3,
        }
    }
}

impl JobSpec {
    pub(crate) fn check(&self) -> Result<(), Refused> {
        if !(self.weight > 0.0 && self.weight.is_finite()) {
            return Err(Refused::NotPositive("weight"));
        }
        if self.min_gpus == 0 {
            return Err(Refused::NotPositive("min_gpus"));
        }
        if self.request.is_some_and(|request| request.gpus == 0) {
            return Err(Refused::NotPositive("request"));
        }
        if self.work.is_some_and(|work| !(work > 0.0 && work.is_finite())) {
            return Err(Refused::NotPositive("work"));
        }
        match self.max_gpus {
            Some(max) if max < self.min_gpus => Err(Refused::MinAboveMax { min: self.min_gpus, max }),
            _ => Ok(()),
        }
    }
}

/// What a user changes about a job; what is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobEdit {
    /// Who starves last.
    pub priority: Option<Priority>,
    /// How much its speed-up counts.
    pub weight: Option<f64>,
    /// Fewest GPUs.
    pub min_gpus: Option<u32>,
    /// Most GPUs; the inner `None` lifts the limit.
    pub max_gpus: Option<Option<u32>>,
    /// Whether it is to hold nothing until further notice.
    pub suspended: Option<bool>,
}

/// What a new machine is like.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSpec {
    /// The type of its GPUs.
    pub gpu_type: GpuType,
    /// How many it has.
    pub gpus: u32,
}

/// An input that makes no sense as things are. It changed nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refused {
    /// No such job.
    #[error("there is no job {0:?}")]
    UnknownJob(JobId),
    /// A job of that name was there before.
    #[error("job {0:?} is there already")]
    KnownJob(JobId),
    /// It is done, failed or cancelled.
    #[error("job {0:?} has ended")]
    Ended(JobId),
    /// No such node.
    #[error("there is no node {0:?}")]
    UnknownNode(NodeId),
    /// A node of that name is there.
    #[error("node {0:?} is there already")]
    KnownNode(NodeId),
    /// A plan nobody waits for.
    #[error("no plan is awaited for round {0:?}")]
    UnknownCycle(CycleId),
    /// No such pool.
    #[error("there is no pool {0:?}")]
    UnknownPool(PoolId),
    /// A pool of that name is listed before, or still has nodes and is not listed.
    #[error("pool {0:?} is listed twice, or left out while it has nodes")]
    PoolInUse(PoolId),
    /// A price that is none.
    #[error("the price of pool {0:?} must be a number from 0 on")]
    BadPrice(PoolId),
    /// Fewest nodes above most.
    #[error("pool {pool:?} is to have at least {least} nodes but at most {most}")]
    LeastAboveMost {
        /// The pool.
        pool: PoolId,
        /// Fewest.
        least: u32,
        /// Most.
        most: u32,
    },
    /// Sizes nobody waits for.
    #[error("no answer is awaited to question {0:?}")]
    UnknownQuestion(SizeId),
    /// A number that must be positive is not.
    #[error("`{0}` must be a positive number")]
    NotPositive(&'static str),
    /// Fewest above most.
    #[error("the job needs at least {min} GPUs but may hold at most {max}")]
    MinAboveMax {
        /// Fewest.
        min: u32,
        /// Most.
        max: u32,
    },
    /// A job that never reported cannot come back from a pause.
    #[error("job {0:?} never reported, so a pause would destroy it; cancel it if that is meant")]
    CannotComeBack(JobId),
    /// Groups or nodes that contradict each other.
    #[error(transparent)]
    Cluster(#[from] SnapshotError),
}
