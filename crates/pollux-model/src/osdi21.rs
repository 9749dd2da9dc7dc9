//! The goodput function as the authors' OSDI'21 artifact codes it, for comparison with published results.
//!
//! The product does not use it. It differs from ours in its floors (`1e-8` where we have exact zeros), in
//! sampling 50 batch sizes instead of solving, in rounding micro-batches up (so that a batch may exceed the
//! maximum), and in accumulating at least once on one GPU above the initial batch. Semantics after petuum/adaptdl,
//! branch `osdi21-artifact`; the code is ours.

use crate::allocation::Placement;
use crate::math::{exp, ln, pow};

const FLOOR: f64 = 1e-8;

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
    /// Seconds of one iteration.
    pub fn step_secs(&self, placement: Placement, atomic_batch: f64, accum_steps: f64) -> f64 {
        let compute = self.alpha_c + self.beta_c * atomic_batch;
        let network = self.network_secs(placement);
        let last = pow(pow(compute, self.gamma) + pow(network, self.gamma), 1.0 / self.gamma);
        accum_steps * compute + last
    }

    fn network_secs(&self, placement: Placement) -> f64 {
        let beyond = (f64::from(placement.n_replicas()) - 2.0).max(FLOOR);
        if placement.n_nodes() > 1 {
            self.alpha_n + self.beta_n * beyond
        } else if placement.n_replicas() > 1 {
            self.alpha_r + self.beta_r * beyond
        } else {
            FLOOR
        }
    }

    /// Samples per second.
    pub fn throughput(&self, placement: Placement, atomic_batch: f64, accum_steps: f64) -> f64 {
        let batch = f64::from(placement.n_replicas()) * atomic_batch * (accum_steps + 1.0);
        batch / self.step_secs(placement, atomic_batch, accum_steps)
    }

    /// The best of `n_candidates` geometrically spaced batch sizes (50 in the artifact).
    pub fn optimize(
        &self,
        placement: Placement,
        limits: Limits,
        noise_scale: f64,
        n_candidates: u32,
    ) -> Choice {
        let n_replicas = f64::from(placement.n_replicas());
        let (init, max_atomic) = (limits.init as f64, limits.max_atomic as f64);
        let low = ln(init.max(limits.min_atomic as f64 * n_replicas));
        let high = ln(limits.max as f64);
        let mut best = Choice { goodput: 0.0, atomic_batch: 0, accum_steps: 0 };
        for index in 0..n_candidates {
            let fraction = f64::from(index) / f64::from(n_candidates.max(2) - 1);
            let local = exp(low + (high - low) * fraction) / n_replicas;
            let mut accum_steps = ((local / max_atomic - FLOOR).ceil() - 1.0).max(0.0);
            if placement.n_replicas() == 1 && local > init + FLOOR {
                accum_steps = accum_steps.max(1.0);
            }
            let atomic = (local / (accum_steps + 1.0) - FLOOR).ceil();
            if !(limits.min_atomic as f64..=max_atomic).contains(&atomic) {
                continue;
            }
            let batch = n_replicas * atomic * (accum_steps + 1.0);
            let efficiency = (noise_scale + init) / (noise_scale + batch);
            let goodput = self.throughput(placement, atomic, accum_steps) * efficiency;
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
