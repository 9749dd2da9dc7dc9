//! Batches: how many samples an optimizer step takes, and how they are dealt to replicas.

use crate::allocation::Placement;

/// Samples of one optimizer step, over all replicas and accumulation steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GlobalBatch(pub u64);

/// The samples of one optimizer step and the micro-batches they are computed in.
///
/// Each of the `K` replicas computes `accum_steps + 1` micro-batches of at most `atomic_batch` samples;
/// the last one synchronises. Where `K (accum_steps + 1)` does not divide the global batch, shares differ
/// by one sample and the global batch is kept exactly: 128 samples on 3 GPUs are 43 + 43 + 42, never 129.
/// The gradient stays the mean over all samples because each replica's part is weighted by
/// [`BatchPlan::gradient_weight`]. The step lasts as long as its largest micro-batch.
///
/// ```
/// use pollux_model::{BatchPlan, GlobalBatch, Placement};
///
/// let placement = Placement::new(1, 3).unwrap();
/// let plan = BatchPlan::split(GlobalBatch(128), placement, 0).unwrap();
/// assert_eq!(plan.atomic_batch(), 43);
/// let shares: Vec<u64> = (0..3).map(|rank| plan.replica_share(placement, rank)).collect();
/// assert_eq!(shares, [43, 43, 42]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchPlan {
    global: GlobalBatch,
    atomic_batch: u32,
    accum_steps: u32,
}

impl BatchPlan {
    /// The even plan: every micro-batch of every replica has `atomic_batch` samples.
    ///
    /// Nothing for an `atomic_batch` of zero.
    pub fn even(placement: Placement, atomic_batch: u32, accum_steps: u32) -> Option<Self> {
        let micro_batches = u64::from(placement.n_replicas()) * (u64::from(accum_steps) + 1);
        let global = GlobalBatch(micro_batches.saturating_mul(u64::from(atomic_batch)));
        (atomic_batch > 0).then_some(Self { global, atomic_batch, accum_steps })
    }

    /// Exactly `global` samples, dealt as evenly as whole samples allow.
    ///
    /// Nothing if a micro-batch would be left without a sample.
    pub fn split(global: GlobalBatch, placement: Placement, accum_steps: u32) -> Option<Self> {
        let n_replicas = u64::from(placement.n_replicas());
        let micro_batches = n_replicas * (u64::from(accum_steps) + 1);
        let largest = global.0.div_ceil(n_replicas).div_ceil(u64::from(accum_steps) + 1);
        let atomic_batch = u32::try_from(largest).ok()?;
        (global.0 >= micro_batches).then_some(Self { global, atomic_batch, accum_steps })
    }

    /// Samples of one optimizer step.
    pub fn global(self) -> GlobalBatch {
        self.global
    }

    /// The largest micro-batch of any replica: what must fit in memory, and what sets the pace.
    pub fn atomic_batch(self) -> u32 {
        self.atomic_batch
    }

    /// Micro-batches a replica computes before the one that synchronises.
    pub fn accum_steps(self) -> u32 {
        self.accum_steps
    }

    /// The smallest micro-batch of any replica.
    pub fn smallest_micro_batch(self, placement: Placement) -> u64 {
        self.global.0 / u64::from(placement.n_replicas()) / (u64::from(self.accum_steps) + 1)
    }

    /// Samples of one step that fall to the replica of this `rank`.
    pub fn replica_share(self, placement: Placement, rank: u32) -> u64 {
        deal(self.global.0, u64::from(placement.n_replicas()), u64::from(rank))
    }

    /// Samples of the micro-batch number `step` (from 0 to `accum_steps`) of the replica of this `rank`.
    pub fn micro_batch(self, placement: Placement, rank: u32, step: u32) -> u64 {
        let share = self.replica_share(placement, rank);
        deal(share, u64::from(self.accum_steps) + 1, u64::from(step))
    }

    /// What a replica multiplies its mean gradient by, so that the plain mean over replicas is the mean
    /// over samples: one for even plans, a little above or below otherwise.
    pub fn gradient_weight(self, placement: Placement, rank: u32) -> f64 {
        let even_share = self.global.0 as f64 / f64::from(placement.n_replicas());
        self.replica_share(placement, rank) as f64 / even_share
    }
}

/// The part of `total` that falls to `index` of `parts`: the first ones take what is over.
fn deal(total: u64, parts: u64, index: u64) -> u64 {
    total / parts + u64::from(index < total % parts)
}

/// What a batch may be: the user's batch sizes, the GPU's memory, and how much to accumulate.
///
/// | mode | limits |
/// | --- | --- |
/// | fixed | `max == initial`: the user's batch, exactly, on any number of GPUs |
/// | bounded | `max` set by the user |
/// | adaptive | `max` left to the cautious default, [`BatchLimits::DEFAULT_GROWTH`] times the initial batch |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    initial: GlobalBatch,
    min: GlobalBatch,
    max: GlobalBatch,
    micro_min: u32,
    micro_max: u32,
    max_accum_steps: u32,
    accumulate_alone: bool,
}

impl BatchLimits {
    /// How far a batch may grow when the user sets no maximum. Beyond some batch the quality of the model
    /// falls whatever the learning-rate rule says (ResNet-18 on Fashion-MNIST: nothing lost at 4 times,
    /// 0.8 points of accuracy at 16 times the initial batch), so the default is cautious.
    pub const DEFAULT_GROWTH: u64 = 8;

    /// Batches from `initial` to `max`, micro-batches from `micro_min` to `micro_max`, any accumulation.
    pub fn new(initial: u64, max: u64, micro_min: u32, micro_max: u32) -> Result<Self, InvalidLimits> {
        if initial == 0 {
            return Err(InvalidLimits::ZeroBatch);
        }
        if max < initial {
            return Err(InvalidLimits::MaxBelowInitial { initial, max });
        }
        if micro_min == 0 || micro_max < micro_min {
            return Err(InvalidLimits::EmptyMicroRange { min: micro_min, max: micro_max });
        }
        Ok(Self {
            initial: GlobalBatch(initial),
            min: GlobalBatch(initial),
            max: GlobalBatch(max),
            micro_min,
            micro_max,
            max_accum_steps: u32::MAX,
            accumulate_alone: false,
        })
    }

    /// Exactly the batch `initial`, whatever the GPUs.
    pub fn fixed(initial: u64, micro_min: u32, micro_max: u32) -> Result<Self, InvalidLimits> {
        Self::new(initial, initial, micro_min, micro_max)
    }

    /// At most `steps` accumulation steps before the one that synchronises; 0 turns accumulation off.
    #[must_use]
    pub fn with_max_accum_steps(self, steps: u32) -> Self {
        Self { max_accum_steps: steps, ..self }
    }

    /// On one GPU, accumulate at least once above the initial batch: for jobs whose micro-batch cannot be
    /// split in two, where only accumulation yields the two gradient samples an unbiased noise scale needs.
    #[must_use]
    pub fn accumulating_alone(self) -> Self {
        Self { accumulate_alone: true, ..self }
    }

    /// The same limits with another largest micro-batch, as when another GPU type has other memory.
    pub fn with_micro_max(self, micro_max: u32) -> Result<Self, InvalidLimits> {
        Self::new(self.initial.0, self.max.0, self.micro_min, micro_max)?;
        Ok(Self { micro_max, ..self })
    }

    /// The same limits with batches from `low` to `high` only; nothing where they have none in common. What
    /// efficiency is relative to stays the initial batch.
    pub fn within(self, low: GlobalBatch, high: GlobalBatch) -> Option<Self> {
        let (min, max) = (self.min.max(low), self.max.min(high));
        (min <= max).then_some(Self { min, max, ..self })
    }

    /// The batch size the user chose, for which the learning rate was tuned.
    pub fn initial(&self) -> GlobalBatch {
        self.initial
    }

    /// The smallest batch allowed: the initial one, unless narrowed.
    pub fn min(&self) -> GlobalBatch {
        self.min
    }

    /// The largest batch allowed.
    pub fn max(&self) -> GlobalBatch {
        self.max
    }

    /// The smallest micro-batch allowed.
    pub fn micro_min(&self) -> u32 {
        self.micro_min
    }

    /// The largest micro-batch allowed (usually: that fits in memory).
    pub fn micro_max(&self) -> u32 {
        self.micro_max
    }

    /// Most accumulation steps allowed.
    pub fn max_accum_steps(&self) -> u32 {
        self.max_accum_steps
    }

    /// Whether one GPU accumulates at least once above the initial batch.
    pub fn accumulates_alone(&self) -> bool {
        self.accumulate_alone
    }

    /// Whether the batch may not change at all.
    pub fn is_fixed(&self) -> bool {
        self.min == self.max
    }

    /// Whether `plan` keeps these limits on `placement`.
    pub fn allows(&self, placement: Placement, plan: BatchPlan) -> bool {
        let must_accumulate =
            self.accumulate_alone && placement.n_replicas() == 1 && plan.global > self.initial;
        self.min <= plan.global
            && plan.global <= self.max
            && plan.atomic_batch <= self.micro_max
            && plan.smallest_micro_batch(placement) >= u64::from(self.micro_min)
            && plan.accum_steps <= self.max_accum_steps
            && (plan.accum_steps > 0 || !must_accumulate)
    }

    /// Most GPUs on which any batch keeps these limits.
    pub fn max_replicas(&self) -> u32 {
        u32::try_from(self.max.0 / u64::from(self.micro_min)).unwrap_or(u32::MAX)
    }
}

/// Limits that allow no batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLimits {
    /// A batch of no samples.
    #[error("the initial batch size must be at least 1")]
    ZeroBatch,
    /// The batch may not even be what the user chose.
    #[error("the maximum batch size {max} is below the initial batch size {initial}")]
    MaxBelowInitial {
        /// The user's batch size.
        initial: u64,
        /// The maximum given.
        max: u64,
    },
    /// No micro-batch is allowed.
    #[error("the micro-batch range {min}..{max} is empty or starts at 0")]
    EmptyMicroRange {
        /// Smallest micro-batch given.
        min: u32,
        /// Largest micro-batch given.
        max: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_split(global: u64, n_replicas: u32, accum_steps: u32) {
        let placement = Placement::new(1, n_replicas).unwrap();
        let Some(plan) = BatchPlan::split(GlobalBatch(global), placement, accum_steps) else {
            assert!(global < u64::from(n_replicas) * u64::from(accum_steps + 1));
            return;
        };
        let (mut sum, mut weights) = (0, 0.0);
        for rank in 0..n_replicas {
            weights += plan.gradient_weight(placement, rank);
            for step in 0..=accum_steps {
                let micro = plan.micro_batch(placement, rank, step);
                assert!(
                    (plan.smallest_micro_batch(placement)..=u64::from(plan.atomic_batch())).contains(&micro)
                );
                sum += micro;
            }
        }
        assert_eq!(sum, global, "every sample is dealt once");
        assert!((weights - f64::from(n_replicas)).abs() < 1e-9);
    }

    #[test]
    fn every_sample_is_dealt_to_one_micro_batch() {
        for global in [1, 2, 7, 128, 129, 1_000] {
            for n_replicas in 1..9 {
                for accum_steps in 0..5 {
                    check_split(global, n_replicas, accum_steps);
                }
            }
        }
    }

    #[test]
    fn bad_limits_say_what_is_wrong() {
        assert_eq!(
            BatchLimits::new(128, 64, 1, 8).unwrap_err().to_string(),
            "the maximum batch size 64 is below the initial batch size 128"
        );
        assert!(BatchLimits::new(0, 64, 1, 8).is_err());
        assert!(BatchLimits::new(1, 64, 0, 8).is_err());
        assert!(BatchLimits::new(1, 64, 9, 8).is_err());
    }
}
