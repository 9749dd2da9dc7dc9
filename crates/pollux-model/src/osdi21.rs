//! The goodput function as the authors' OSDI'21 artifact codes it, for comparison with published results.
//!
//! The product does not use it. It differs from ours in its floors (`1e-8` where we have exact zeros), in
//! sampling 50 batch sizes instead of solving, in rounding micro-batches up (so that a batch may exceed the
//! maximum), and in accumulating at least once on one GPU above the initial batch. Semantics after petuum/adaptdl,
//! branch `osdi21-artifact`; the code is ours.

use crate::allocation::Placement;
use crate::compute::Compute;
use crate::math::{exp, ln, pow};
use crate::perf::PerfParams;

/// Batch sizes the artifact tries for each placement.
pub const N_CANDIDATES: u32 = 50;

const FLOOR: f64 = 1e-8;

/// Noise beyond this is as good as infinite. The formula of efficiency would divide infinity by infinity there.
const MOST_NOISE: f64 = 1e300;

/// The seven parameters in the artifact's order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Compute, constant.
    pub alpha_c: f64,
    /// Compute, per sample.
    pub beta_c: f64,
    /// Exchange across nodes, constant.
    pub alpha_n: f64,
    /// Exchange across nodes, per replica beyond two.
    pub beta_n: f64,
    /// Exchange within a node, constant.
    pub alpha_r: f64,
    /// Exchange within a node, per replica beyond two.
    pub beta_r: f64,
    /// Overlap.
    pub gamma: f64,
}

/// Batch sizes the artifact may choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Initial batch size.
    pub init: u64,
    /// Largest batch size (before rounding up).
    pub max: u64,
    /// Smallest micro-batch.
    pub min_atomic: u64,
    /// Largest micro-batch.
    pub max_atomic: u64,
}

/// The artifact's choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Samples per second, weighted by efficiency; 0 where no candidate is valid.
    pub goodput: f64,
    /// Micro-batch.
    pub atomic_batch: u64,
    /// Accumulation steps.
    pub accum_steps: u64,
}

impl Params {
    /// The same model in the artifact's form; none where that cannot express it: compute that is not linear, or an
    /// optimizer step. Costs are at least `1e-8`, as the artifact's are.
    ///
    /// ```
    /// use pollux_model::osdi21::Params;
    /// use pollux_model::{Affine, Compute, PerfParams};
    ///
    /// let grad = Compute::Linear { alpha: 0.1, beta: 0.01 };
    /// let sync = Affine { alpha: 0.2, beta: 0.0 };
    /// let ours = PerfParams { grad, sync_local: sync, sync_node: sync, gamma: 2.0, optimizer_step: 0.0 };
    /// let theirs = Params::from_perf(&ours).unwrap();
    /// assert_eq!((theirs.alpha_c, theirs.alpha_n, theirs.beta_n), (0.1, 0.2, 1e-8));
    /// assert_eq!(Params::from_perf(&PerfParams { optimizer_step: 0.1, ..ours }), None);
    /// ```
    pub fn from_perf(perf: &PerfParams) -> Option<Self> {
        let Compute::Linear { alpha, beta } = perf.grad else { return None };
        (perf.optimizer_step == 0.0).then(|| Self {
            alpha_c: alpha.max(FLOOR),
            beta_c: beta.max(FLOOR),
            alpha_n: perf.sync_node.alpha.max(FLOOR),
            beta_n: perf.sync_node.beta.max(FLOOR),
            alpha_r: perf.sync_local.alpha.max(FLOOR),
            beta_r: perf.sync_local.beta.max(FLOOR),
            gamma: perf.gamma,
        })
    }

    /// Seconds of one iteration.
    pub fn step_secs(&self, placement: Placement, atomic_batch: f64, accum_steps: f64) -> f64 {
        self.secs(self.network_power(placement), atomic_batch, accum_steps)
    }

    /// The same where the exchange is known, to the power of gamma.
    fn secs(&self, network_power: f64, atomic_batch: f64, accum_steps: f64) -> f64 {
        let compute = self.alpha_c + self.beta_c * atomic_batch;
        accum_steps * compute + pow(pow(compute, self.gamma) + network_power, 1.0 / self.gamma)
    }

    fn network_power(&self, placement: Placement) -> f64 {
        let beyond = (f64::from(placement.n_replicas()) - 2.0).max(FLOOR);
        let network = if placement.n_nodes() > 1 {
            self.alpha_n + self.beta_n * beyond
        } else if placement.n_replicas() > 1 {
            self.alpha_r + self.beta_r * beyond
        } else {
            FLOOR
        };
        pow(network, self.gamma)
    }

    /// Samples per second.
    pub fn throughput(&self, placement: Placement, atomic_batch: f64, accum_steps: f64) -> f64 {
        let batch = f64::from(placement.n_replicas()) * atomic_batch * (accum_steps + 1.0);
        batch / self.step_secs(placement, atomic_batch, accum_steps)
    }

    /// The best of `n_candidates` geometrically spaced batch sizes ([`N_CANDIDATES`] in the artifact). Infinite noise
    /// makes every batch as efficient as the initial one.
    pub fn optimize(
        &self,
        placement: Placement,
        limits: Limits,
        noise_scale: f64,
        n_candidates: u32,
    ) -> Choice {
        let n_replicas = f64::from(placement.n_replicas());
        let (init, max_atomic) = (limits.init as f64, limits.max_atomic as f64);
        let noise_scale = noise_scale.min(MOST_NOISE);
        let network_power = self.network_power(placement);
        let low = ln(init.max(limits.min_atomic as f64 * n_replicas));
        let high = ln(limits.max as f64);
        let mut best = Choice { goodput: 0.0, atomic_batch: 0, accum_steps: 0 };
        let mut previous = (0.0, 0.0);
        for index in 0..n_candidates {
            let fraction = f64::from(index) / f64::from(n_candidates.max(2) - 1);
            let local = exp(low + (high - low) * fraction) / n_replicas;
            let mut accum_steps = ((local / max_atomic - FLOOR).ceil() - 1.0).max(0.0);
            if placement.n_replicas() == 1 && local > init + FLOOR {
                accum_steps = accum_steps.max(1.0);
            }
            let atomic = (local / (accum_steps + 1.0) - FLOOR).ceil();
            // Among many replicas neighbours on the ladder often round to the same batch.
            let is_repeated = previous == (atomic, accum_steps);
            previous = (atomic, accum_steps);
            if is_repeated || !(limits.min_atomic as f64..=max_atomic).contains(&atomic) {
                continue;
            }
            let batch = n_replicas * atomic * (accum_steps + 1.0);
            let efficiency = (noise_scale + init) / (noise_scale + batch);
            let goodput = batch / self.secs(network_power, atomic, accum_steps) * efficiency;
            if goodput > best.goodput {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "whole and in range"
                )]
                let whole = (atomic as u64, accum_steps as u64);
                best = Choice { goodput, atomic_batch: whole.0, accum_steps: whole.1 };
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // A step of m samples takes 1 + m/10 s and nothing is lost: the largest batch is best.
    fn infinite_noise_loses_nothing() {
        let params = Params {
            alpha_c: 1.0,
            beta_c: 0.1,
            alpha_n: FLOOR,
            beta_n: FLOOR,
            alpha_r: FLOOR,
            beta_r: FLOOR,
            gamma: 1.0,
        };
        let limits = Limits { init: 10, max: 40, min_atomic: 1, max_atomic: 40 };
        let placement = Placement::new(1, 2).unwrap();
        let choice = params.optimize(placement, limits, f64::INFINITY, N_CANDIDATES);
        assert_eq!((choice.atomic_batch, choice.accum_steps), (20, 0));
        assert!((choice.goodput - 40.0 / 3.0).abs() < 1e-6, "{choice:?}");
        // 21 samples for each are one too many, and two passes of 11 too small.
        let limits = Limits { init: 42, max: 42, min_atomic: 15, max_atomic: 20 };
        let none = params.optimize(placement, limits, 1.0, N_CANDIDATES);
        assert_eq!(none, Choice { goodput: 0.0, atomic_batch: 0, accum_steps: 0 });
    }
}
