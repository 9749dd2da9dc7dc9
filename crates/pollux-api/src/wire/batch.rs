//! Batches, their limits, and how their noise was measured.

use pollux_model::{BatchLimits, BatchPlan, GlobalBatch, Placement};
use serde::{Deserialize, Serialize};

use super::{AtLeastOne, Problem, Read, Unknown, nothing_unknown};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) global: u64,
    pub(crate) atomic_batch: AtLeastOne,
    pub(crate) accum_steps: u32,
    #[serde(flatten, skip_serializing)]
    unknown: Unknown,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "pollux_model::Estimator", rename_all = "snake_case")]
pub(crate) enum Estimator {
    Pairs,
    Differences,
}

impl Plan {
    /// Refuses what a later version may have added.
    pub(crate) fn check_known(&self) -> Read<()> {
        nothing_unknown(&self.unknown)
    }

    /// The plan on any number of replicas: it does not say how many, but which would do follows from it.
    pub(crate) fn read(self) -> Result<BatchPlan, Problem> {
        let Self { global, atomic_batch: AtLeastOne(atomic_batch), accum_steps, .. } = self;
        let passes = u64::from(accum_steps) + 1;
        let n_replicas = global.div_ceil(u64::from(atomic_batch)).div_ceil(passes);
        let placement = u32::try_from(n_replicas).ok().and_then(|replicas| Placement::new(1, replicas));
        let plan = placement.and_then(|at| BatchPlan::split(GlobalBatch(global), at, accum_steps));
        let problem = Problem::NoSuchPlan { global, atomic_batch, accum_steps };
        plan.filter(|plan| plan.atomic_batch() == atomic_batch).ok_or(problem)
    }
}

impl From<BatchPlan> for Plan {
    fn from(plan: BatchPlan) -> Self {
        Self {
            global: plan.global().0,
            atomic_batch: AtLeastOne(plan.atomic_batch()),
            accum_steps: plan.accum_steps(),
            unknown: Unknown::default(),
        }
    }
}

/// What a batch may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Limits {
    initial: u64,
    /// The smallest batch; the initial one where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min: Option<u64>,
    max: u64,
    micro_min: u32,
    micro_max: u32,
    /// Any number where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_accum_steps: Option<u32>,
    #[serde(default)]
    accumulate_alone: bool,
}

impl From<&BatchLimits> for Limits {
    fn from(limits: &BatchLimits) -> Self {
        let (initial, max_accum_steps) = (limits.initial(), limits.max_accum_steps());
        Self {
            initial: initial.0,
            min: (limits.min() != initial).then_some(limits.min().0),
            max: limits.max().0,
            micro_min: limits.micro_min(),
            micro_max: limits.micro_max(),
            max_accum_steps: (max_accum_steps != u32::MAX).then_some(max_accum_steps),
            accumulate_alone: limits.accumulates_alone(),
        }
    }
}

impl Limits {
    pub(crate) fn read(self) -> Result<BatchLimits, Problem> {
        let Self { initial, max, micro_min, micro_max, .. } = self;
        let limits = BatchLimits::new(initial, max, micro_min, micro_max).map_err(Problem::Limits)?;
        let limits = limits.with_max_accum_steps(self.max_accum_steps.unwrap_or(u32::MAX));
        let limits = if self.accumulate_alone { limits.accumulating_alone() } else { limits };
        let low = self.min.unwrap_or(initial);
        let narrowed = limits.within(GlobalBatch(low), GlobalBatch(max)).filter(|_| low >= initial);
        narrowed.ok_or(Problem::BatchRange { low, high: max, initial, max })
    }
}
