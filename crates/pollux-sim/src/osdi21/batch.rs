//! Which batch a job runs.

use super::application::Limits;
use super::job::Observation;

/// A batch as each GPU sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalBatch {
    /// Samples of one GPU and one pass.
    pub atomic: u32,
    /// Passes before the last one, which exchanges gradients.
    pub accum_steps: u32,
}

impl LocalBatch {
    /// Samples of all replicas and passes together.
    pub fn total(&self, n_replicas: u32) -> u32 {
        n_replicas.saturating_mul(self.atomic).saturating_mul(self.accum_steps.saturating_add(1))
    }

    /// How a fixed target is dealt to replicas: rounded up on each, in as few passes as memory allows, but in two at
    /// least on one GPU above the initial batch.
    ///
    /// ```
    /// use pollux_sim::osdi21::{Limits, LocalBatch};
    ///
    /// let cifar10 = Limits::named("cifar10").unwrap(); // up to 1024 samples for each GPU
    /// assert_eq!(LocalBatch::of_target(2_048, 6, cifar10), LocalBatch { atomic: 342, accum_steps: 0 });
    /// assert_eq!(LocalBatch::of_target(256, 1, cifar10), LocalBatch { atomic: 128, accum_steps: 1 });
    /// ```
    pub fn of_target(target: u32, n_replicas: u32, limits: &Limits) -> Self {
        let local = target.div_ceil(n_replicas.max(1));
        let mut accum_steps = local.div_ceil(limits.max_local).saturating_sub(1);
        if n_replicas == 1 && target > limits.init_batch {
            accum_steps = accum_steps.max(1);
        }
        Self { atomic: local.div_ceil(accum_steps + 1), accum_steps }
    }

    /// The same with so few samples that all replicas together stay within the application's largest batch.
    #[must_use]
    pub fn capped(self, n_replicas: u32, limits: &Limits) -> Self {
        let n_passes = n_replicas.max(1).saturating_mul(self.accum_steps.saturating_add(1));
        Self { atomic: self.atomic.min(limits.max_batch / n_passes), ..self }
    }
}

/// The batch of an adaptive job that has not measured anything yet: the initial one, or the least that feeds all.
pub fn first_target(n_replicas: u32, limits: &Limits) -> u32 {
    limits.init_batch.max(limits.min_local.saturating_mul(n_replicas))
}

/// Chooses a job's batch, from what it has seen of it.
pub trait BatchRule {
    /// Called for every part of an interval in which the job trained, before the next choice.
    fn observe(&mut self, observation: &Observation);

    /// The batch for GPUs of so many nodes, asked for at every reallocation, epoch and interval. The job caps it to
    /// the application's largest batch.
    fn choose(&mut self, n_nodes: u32, n_replicas: u32, limits: &Limits) -> LocalBatch;
}

/// The same target always: the baselines, and ncf under any policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedBatch {
    /// Samples.
    pub target: u32,
}

impl BatchRule for FixedBatch {
    fn observe(&mut self, _: &Observation) {}

    fn choose(&mut self, _: u32, n_replicas: u32, limits: &Limits) -> LocalBatch {
        LocalBatch::of_target(self.target, n_replicas, limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Initial batch 100, at most 1000, 10 to 50 on each GPU.
    const LIMITS: Limits =
        Limits { name: "toy", init_batch: 100, max_batch: 1_000, min_local: 10, max_local: 50, n_epochs: 1 };

    fn check(target: u32, n_replicas: u32, atomic: u32, accum_steps: u32) {
        let batch = LocalBatch::of_target(target, n_replicas, &LIMITS);
        assert_eq!(batch, LocalBatch { atomic, accum_steps }, "{target} on {n_replicas}");
    }

    #[test]
    fn a_target_is_dealt_and_rounded_up() {
        check(100, 4, 25, 0);
        check(100, 3, 34, 0);
        check(200, 4, 50, 0);
        check(201, 4, 26, 1); // 51 on each are one more than fit, so two passes of 26
        check(1_000, 4, 50, 4);
    }

    #[test]
    fn one_gpu_accumulates_above_the_initial_batch() {
        let limits = Limits { max_local: 500, ..LIMITS };
        let one = |target| LocalBatch::of_target(target, 1, &limits);
        assert_eq!(one(100), LocalBatch { atomic: 100, accum_steps: 0 });
        assert_eq!(one(101), LocalBatch { atomic: 51, accum_steps: 1 });
        assert_eq!(LocalBatch::of_target(400, 2, &limits), LocalBatch { atomic: 200, accum_steps: 0 });
    }

    #[test]
    fn the_cap_is_the_largest_batch_rounded_down() {
        let cap = |atomic, accum_steps, n_replicas| {
            LocalBatch { atomic, accum_steps }.capped(n_replicas, &LIMITS).atomic
        };
        assert_eq!(cap(50, 0, 7), 50);
        assert_eq!(cap(50, 2, 7), 47); // 21 passes share 1000
        assert_eq!(cap(334, 0, 3), 333);
    }

    #[test]
    fn before_the_first_measurement_all_replicas_are_fed() {
        assert_eq!([1, 10, 11, 64].map(|n| first_target(n, &LIMITS)), [100, 100, 110, 640]);
    }

    #[test]
    fn a_total_counts_replicas_and_passes() {
        assert_eq!(LocalBatch { atomic: 10, accum_steps: 2 }.total(4), 120);
    }
}
