//! Everything the scheduler can ask of the world.

use pollux_model::{Allocation, JobId, NodeId, Timestamp};
use pollux_policy::{Seed, Snapshot};

use crate::scaler::{PoolId, SizeId, SizeQuestion};

/// Which start of a job: counts from 1. What is said of an older one comes too late to matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u32);

/// Which round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CycleId(pub u64);

/// Something the world is asked to do. The shell performs it and reports back.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Make a plan; answered by [`Input::PlanReady`](crate::Input::PlanReady).
    Solve {
        /// The round.
        cycle: CycleId,
        /// What the policy is shown. A simulator may add what only it can know.
        snapshot: Box<Snapshot>,
        /// The round's seed.
        seed: Seed,
    },
    /// Save the job's state and end its processes; answered by
    /// [`Input::JobStopped`](crate::Input::JobStopped) when all of them are gone.
    Stop {
        /// The job.
        job: JobId,
        /// The start that is to end.
        generation: Generation,
    },
    /// Start the job on all of these GPUs at once; answered by [`Input::JobTraining`](crate::Input::JobTraining)
    /// when it makes progress.
    Start {
        /// The job.
        job: JobId,
        /// Which start this is.
        generation: Generation,
        /// The GPUs.
        allocation: Allocation,
    },
    /// Choose how many nodes to have: [`SizeQuestion::answer`] does; answered by
    /// [`Input::SizeReady`](crate::Input::SizeReady).
    Size {
        /// The question's number.
        id: SizeId,
        /// The question.
        question: Box<SizeQuestion>,
    },
    /// Get nodes of a pool; answered by [`Input::PoolNodeJoined`](crate::Input::PoolNodeJoined) for each, or
    /// [`Input::GrowFailed`](crate::Input::GrowFailed).
    Grow {
        /// The pool.
        pool: PoolId,
        /// How many.
        nodes: u32,
    },
    /// Give a node back, which nobody holds; answered by [`Input::NodeLost`](crate::Input::NodeLost) when it is gone.
    Release {
        /// The node.
        node: NodeId,
    },
    /// Say [`Input::Tick`](crate::Input::Tick) at this time, or later. An earlier wish stays valid.
    WakeAt(Timestamp),
}
