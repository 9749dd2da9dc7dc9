//! What a training step tells the agent.

use pollux_model::{BatchPlan, Estimator, GpuType, Placement};

/// One optimizer step, as the job measured it.
#[derive(Clone, Debug, PartialEq)]
pub struct StepObservation {
    /// The GPUs it ran on.
    pub gpu_type: GpuType,
    /// Their shape.
    pub placement: Placement,
    /// Its batch.
    pub plan: BatchPlan,
    /// Times; nothing for a step not worth learning from (the first after a start or a pause).
    pub timing: Option<StepTiming>,
    /// Gradient measurement; nothing on steps without one (measuring every k-th is enough).
    pub gradient: Option<GradientSample>,
}

/// Seconds of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepTiming {
    /// Mean over the passes that do not synchronise; nothing where nothing accumulates.
    pub accum_secs: Option<f64>,
    /// The pass that synchronises, with the optimizer's step.
    pub optim_secs: f64,
    /// The part of it spent in the exchange and not covered by compute; zero for one replica.
    pub sync_secs: f64,
    /// The part of it that is the optimizer's step, where known; else zero.
    pub optimizer_secs: f64,
}

impl StepTiming {
    /// Seconds of a pass without exchange: measured, or what the other parts leave over.
    pub(crate) fn compute_secs(&self) -> f64 {
        self.accum_secs.unwrap_or(self.optim_secs - self.sync_secs - self.optimizer_secs)
    }

    pub(crate) fn is_valid(&self) -> bool {
        let positive = |secs: f64| secs > 0.0 && secs.is_finite();
        positive(self.optim_secs)
            && positive(self.compute_secs())
            && self.sync_secs >= 0.0
            && self.optimizer_secs >= 0.0
    }
}

/// The space gradients were measured in. Moments of different spaces are not comparable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GradientSpace {
    /// As the loss gives them: SGD.
    #[default]
    Plain,
    /// Divided by the optimizer's preconditioner: the Adam family, `1 / (√v̂ + ε)`.
    Preconditioned,
}

/// Squared norm of a gradient and the samples it is the mean over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientNorm {
    /// Samples; for several gradients of unequal batches, the harmonic mean of these.
    pub batch: f64,
    /// Squared norm; for several gradients, the mean of theirs.
    pub sqr_norm: f64,
}

/// What one step's gradients reveal about signal and noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GradientSample {
    /// Gradients of parts of a batch, and their mean over the whole: from replicas, accumulation steps, or
    /// the two halves of one batch.
    Pair {
        /// The parts: mean squared norm.
        small: GradientNorm,
        /// The whole.
        big: GradientNorm,
    },
    /// The gradients of this step and the one before, where a batch cannot be divided.
    Consecutive {
        /// Samples of each.
        batch: f64,
        /// Squared norm of this step's.
        sqr_norm: f64,
        /// Squared norm of the one before.
        previous_sqr_norm: f64,
        /// Their inner product.
        dot: f64,
    },
}

/// No gradient is that large; sums and squares of what is smaller stay finite.
const LARGEST: f64 = 1e100;

/// Unsmoothed estimates of `|g|²` and `tr(Σ)`; either may be negative by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RawMoments {
    pub(crate) sqr: f64,
    pub(crate) trace: f64,
}

impl GradientSample {
    /// Which kind of estimate this allows.
    pub fn estimator(&self) -> Estimator {
        match self {
            Self::Pair { .. } => Estimator::Pairs,
            Self::Consecutive { .. } => Estimator::Differences,
        }
    }

    /// Estimates of one step; nothing where numbers are absurd, norms negative or batches not
    /// different.
    ///
    /// Pairs: `E|g_B|² = |g|² + tr(Σ)/B` for a mean over `B` samples, solved for two values of `B`.
    /// Consecutive: `g_t · g_{t-1}` and `B |g_t - g_{t-1}|² / 2`, right if the model had not moved.
    pub(crate) fn moments(&self) -> Option<RawMoments> {
        let moments = match *self {
            Self::Pair { small, big } => {
                let batches_differ = small.batch > 0.0 && big.batch > small.batch * (1.0 + 1e-9);
                if !(batches_differ && small.sqr_norm >= 0.0 && big.sqr_norm >= 0.0) {
                    return None;
                }
                RawMoments {
                    sqr: (big.batch * big.sqr_norm - small.batch * small.sqr_norm)
                        / (big.batch - small.batch),
                    trace: (small.sqr_norm - big.sqr_norm) / (1.0 / small.batch - 1.0 / big.batch),
                }
            }
            Self::Consecutive { batch, sqr_norm, previous_sqr_norm, dot } => {
                if !(batch > 0.0 && sqr_norm >= 0.0 && previous_sqr_norm >= 0.0) {
                    return None;
                }
                RawMoments { sqr: dot, trace: 0.5 * batch * (sqr_norm + previous_sqr_norm - 2.0 * dot) }
            }
        };
        (moments.sqr.abs() < LARGEST && moments.trace.abs() < LARGEST).then_some(moments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // |g|² = 4 and tr Σ = 32: a mean over 8 samples has 4 + 4, one over 32 has 4 + 1.
    fn two_batch_sizes_tell_signal_from_noise() {
        let small = GradientNorm { batch: 8.0, sqr_norm: 8.0 };
        let big = GradientNorm { batch: 32.0, sqr_norm: 5.0 };
        let moments = GradientSample::Pair { small, big }.moments().unwrap();
        assert!((moments.sqr - 4.0).abs() < 1e-12);
        assert!((moments.trace - 32.0).abs() < 1e-12);
    }

    #[test]
    fn nonsense_yields_no_estimate() {
        let small = GradientNorm { batch: 8.0, sqr_norm: 8.0 };
        assert_eq!(GradientSample::Pair { small, big: small }.moments(), None);
        let big = GradientNorm { batch: 16.0, sqr_norm: f64::INFINITY };
        assert_eq!(GradientSample::Pair { small, big }.moments(), None);
        let none = GradientNorm { batch: 0.0, sqr_norm: 1.0 };
        assert_eq!(GradientSample::Pair { small: none, big: small }.moments(), None);
    }
}
