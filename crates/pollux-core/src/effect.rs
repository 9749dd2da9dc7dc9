//! Everything the scheduler can ask of the world.

use pollux_model::{Allocation, JobId, Timestamp};
use pollux_policy::{Seed, Snapshot};

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
    /// Say [`Input::Tick`](crate::Input::Tick) at this time, or later. An earlier wish stays valid.
    WakeAt(Timestamp),
}
