//! The step-time model: how long one optimizer step takes on given GPUs.

use crate::allocation::{Placement, Regime};
use crate::batch::BatchPlan;
use crate::compute::{Compute, EXPONENT_RANGE};
use crate::math::Norm;
use crate::quantity::Throughput;

/// A cost that grows with the number of replicas: `α + β (K - 2)` seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Affine {
    /// Seconds with two replicas.
    pub alpha: f64,
    /// Seconds per replica beyond two.
    pub beta: f64,
}

impl Affine {
    /// Seconds with this many replicas.
    pub fn secs(self, n_replicas: u32) -> f64 {
        self.alpha + self.beta * f64::from(n_replicas.saturating_sub(2))
    }

    fn is_valid(self) -> bool {
        self.alpha >= 0.0 && self.beta >= 0.0 && (self.alpha + self.beta).is_finite()
    }
}

/// Fitted step-time model of one job on one GPU type.
///
/// ```text
/// T_grad(m)    = compute of one micro-batch
/// T_sync(N, K) = 0 (K = 1), local (N = 1), node (N >= 2)
/// T_iter       = s T_grad + (T_grad^γ + T_sync^γ)^(1/γ) + T_opt
/// ```
///
/// From the Pollux paper, section 3.2, except for `T_opt` (there 0) and forms of `T_grad` beyond the linear.
/// The number of nodes matters only as one or several: solvers rely on it.
#[derive(Clone, Debug, PartialEq)]
pub struct PerfParams {
    /// Forward and backward pass of one micro-batch.
    pub grad: Compute,
    /// Gradient exchange between replicas of one node.
    pub sync_local: Affine,
    /// Gradient exchange across nodes.
    pub sync_node: Affine,
    /// Overlap of compute and exchange: 1 is none, 10 is close to perfect.
    pub gamma: f64,
    /// The optimizer's own step, in seconds.
    pub optimizer_step: f64,
}

impl PerfParams {
    /// Seconds of gradient exchange on this placement.
    pub fn sync_secs(&self, placement: Placement) -> f64 {
        match placement.regime() {
            Regime::Alone => 0.0,
            Regime::OneNode => self.sync_local.secs(placement.n_replicas()),
            Regime::Distributed => self.sync_node.secs(placement.n_replicas()),
        }
    }

    /// Seconds of one optimizer step.
    pub fn step_secs(&self, placement: Placement, plan: BatchPlan) -> f64 {
        let timing = Timing::new(self, placement);
        timing.secs(f64::from(plan.atomic_batch()), f64::from(plan.accum_steps()))
    }

    /// Seconds of the last micro-batch of a step: its compute, the exchange, the optimizer. This is what
    /// is observed as `optim_time`.
    pub fn last_micro_step_secs(&self, placement: Placement, micro_batch: u32) -> f64 {
        Timing::new(self, placement).secs(f64::from(micro_batch), 0.0)
    }

    /// Samples per second.
    pub fn throughput(&self, placement: Placement, plan: BatchPlan) -> Throughput {
        Throughput::new(plan.global().0 as f64 / self.step_secs(placement, plan))
    }

    /// All times multiplied by `factor`: the same work on GPUs that are so much slower.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let affine = |Affine { alpha, beta }| Affine { alpha: alpha * factor, beta: beta * factor };
        Self {
            grad: self.grad.scaled(factor),
            sync_local: affine(self.sync_local),
            sync_node: affine(self.sync_node),
            gamma: self.gamma,
            optimizer_step: self.optimizer_step * factor,
        }
    }

    /// Which part is not a time or an exponent, if any.
    pub fn validate(&self) -> Result<(), InvalidParams> {
        let (low, high) = EXPONENT_RANGE;
        let part = if !self.grad.is_valid() {
            "grad"
        } else if !self.sync_local.is_valid() {
            "sync_local"
        } else if !self.sync_node.is_valid() {
            "sync_node"
        } else if !(low..=high).contains(&self.gamma) {
            "gamma"
        } else if !(self.optimizer_step >= 0.0 && self.optimizer_step.is_finite()) {
            "optimizer_step"
        } else {
            return Ok(());
        };
        Err(InvalidParams { part })
    }
}

/// Parameters that describe no step time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{part}` must be finite and not negative, compute not all zero, exponents from 1 to 10")]
pub struct InvalidParams {
    /// The part that is wrong.
    pub part: &'static str,
}

/// Step times on one placement, as a function of micro-batch and accumulation alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing<'a> {
    grad: &'a Compute,
    sync: f64,
    gamma: f64,
    optimizer_step: f64,
}

impl<'a> Timing<'a> {
    pub(crate) fn new(params: &'a PerfParams, placement: Placement) -> Self {
        Self {
            grad: &params.grad,
            sync: params.sync_secs(placement),
            gamma: params.gamma,
            optimizer_step: params.optimizer_step,
        }
    }

    /// Seconds of a step with micro-batches of `micro_batch` after `accum_steps` that do not synchronise.
    pub(crate) fn secs(&self, micro_batch: f64, accum_steps: f64) -> f64 {
        let grad = self.grad.secs(micro_batch);
        accumulated(accum_steps, grad) + Norm::of(grad, self.sync, self.gamma).value + self.optimizer_step
    }

    /// The same, with its derivative by the micro-batch.
    pub(crate) fn secs_and_slope(&self, micro_batch: f64, accum_steps: f64) -> (f64, f64) {
        let (grad, slope) = self.grad.secs_and_slope(micro_batch);
        let last = Norm::of(grad, self.sync, self.gamma);
        let secs = accumulated(accum_steps, grad) + last.value + self.optimizer_step;
        (secs, slope * (accum_steps + last.share * last.value / grad))
    }

    /// Seconds of one pass without exchange.
    pub(crate) fn grad_secs(&self, micro_batch: f64) -> f64 {
        self.grad.secs(micro_batch)
    }
}

/// Seconds of passes that do not synchronise. No pass takes no time, even one too slow for a number.
fn accumulated(accum_steps: f64, grad: f64) -> f64 {
    if accum_steps > 0.0 { accum_steps * grad } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params() -> PerfParams {
        PerfParams {
            grad: Compute::Linear { alpha: 0.1, beta: 0.002 },
            sync_local: Affine { alpha: 0.08, beta: 0.01 },
            sync_node: Affine { alpha: 0.4, beta: 0.02 },
            gamma: 2.0,
            optimizer_step: 0.0,
        }
    }

    fn check_step_time(n_nodes: u32, n_replicas: u32, accum_steps: u32, expected_secs: f64) {
        let placement = Placement::new(n_nodes, n_replicas).unwrap();
        let plan = BatchPlan::even(placement, 100, accum_steps).unwrap();
        let secs = params().step_secs(placement, plan);
        assert!((secs - expected_secs).abs() < 1e-6, "{secs} instead of {expected_secs}");
    }

    #[test] // 100 samples take 0.3 s, two nodes exchange in 0.4 s, gamma is 2: a 3-4-5 triangle.
    fn crossing_nodes_costs_more_than_staying() {
        check_step_time(1, 1, 0, 0.3);
        check_step_time(1, 2, 0, 0.310_483);
        check_step_time(2, 2, 0, 0.5);
        check_step_time(2, 2, 2, 1.1);
    }

    #[test]
    fn the_optimizer_adds_its_step_once() {
        let placement = Placement::new(1, 4).unwrap();
        let plan = BatchPlan::even(placement, 100, 3).unwrap();
        let slower = PerfParams { optimizer_step: 0.25, ..params() };
        let difference = slower.step_secs(placement, plan) - params().step_secs(placement, plan);
        assert!((difference - 0.25).abs() < 1e-12);
    }

    #[test]
    fn bad_parameters_are_named() {
        let bad = PerfParams { gamma: 0.5, ..params() };
        assert_eq!(bad.validate(), Err(InvalidParams { part: "gamma" }));
        let bad = PerfParams { sync_node: Affine { alpha: f64::NAN, beta: 0.0 }, ..params() };
        assert_eq!(bad.validate(), Err(InvalidParams { part: "sync_node" }));
        let bad = PerfParams { grad: Compute::Linear { alpha: 0.0, beta: 0.0 }, ..params() };
        assert_eq!(bad.validate(), Err(InvalidParams { part: "grad" }));
    }
}
