//! What was asked of the world, as far as it is kept.

use pollux_core::{CycleId, Effect, Generation, PoolId, SizeId};
use pollux_model::{Allocation, JobId, NodeId, Timestamp};
use pollux_policy::Seed;

use super::stored::{Stored, stored_enum};
use crate::wire::{Read, within};

/// An [`Effect`] without what a scheduler in the same state shows again: the snapshot a plan was made of, and the
/// question about sizes.
#[derive(Clone, Debug, PartialEq)]
pub enum JournalEffect {
    /// A plan was asked for.
    Solve {
        /// The round.
        cycle: CycleId,
        /// The round's seed.
        seed: Seed,
    },
    /// A start was asked to end.
    Stop {
        /// The job.
        job: JobId,
        /// The start.
        generation: Generation,
    },
    /// A job was started.
    Start {
        /// The job.
        job: JobId,
        /// Which start.
        generation: Generation,
        /// The GPUs.
        allocation: Allocation,
    },
    /// Sizes were asked for.
    Size {
        /// The question's number.
        id: SizeId,
    },
    /// Nodes were ordered.
    Grow {
        /// The pool.
        pool: PoolId,
        /// How many.
        nodes: u32,
    },
    /// A node was given back.
    Release {
        /// The node.
        node: NodeId,
    },
    /// A tick was asked for.
    WakeAt {
        /// When.
        at: Timestamp,
    },
}

impl From<&Effect> for JournalEffect {
    fn from(effect: &Effect) -> Self {
        match effect {
            &Effect::Solve { cycle, seed, .. } => Self::Solve { cycle, seed },
            &Effect::Stop { job, generation } => Self::Stop { job, generation },
            Effect::Start { job, generation, allocation } => {
                Self::Start { job: *job, generation: *generation, allocation: allocation.clone() }
            }
            &Effect::Size { id, .. } => Self::Size { id },
            &Effect::Grow { pool, nodes } => Self::Grow { pool, nodes },
            &Effect::Release { node } => Self::Release { node },
            &Effect::WakeAt(at) => Self::WakeAt { at },
        }
    }
}

stored_enum! {
    JournalEffect => EffectForm {
        Solve { cycle = cycle: CycleId, seed = seed: Seed },
        Stop { job = job: JobId, generation = generation: Generation },
        Start { job = job: JobId, generation = generation: Generation, allocation = allocation: Allocation },
        Size { id = id: SizeId },
        Grow { pool = pool: PoolId, nodes = nodes: u32 },
        Release { node = node: NodeId },
        WakeAt { at = at: Timestamp },
    }
}
