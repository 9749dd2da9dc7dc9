//! Gradient noise, and what a larger batch is worth because of it.

use crate::batch::GlobalBatch;
use crate::quantity::Efficiency;

/// Gradient noise scale `φ = tr(Σ) / |g|²`, in samples, from nothing to infinity.
///
/// `Σ` is the per-example gradient covariance and `g` the true gradient, both in the space the optimizer
/// steps in: plain for SGD, preconditioned (`PΣPᵀ`, `Pg`) for the Adam family. The formulas are the same.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct NoiseScale(f64);

impl NoiseScale {
    /// From a number of samples: not negative, not NaN. Infinity means that the gradient is all noise.
    pub fn from_samples(samples: f64) -> Option<Self> {
        (samples >= 0.0).then_some(Self(samples))
    }

    /// In samples.
    pub fn samples(self) -> f64 {
        self.0
    }

    /// Statistical efficiency of training at `batch` instead of `initial`.
    ///
    /// `(φ + M₀) / (φ + M)`, from the Pollux paper. At `batch == initial` this is exactly one. A
    /// noisier gradient (large `φ`) tolerates a larger batch.
    ///
    /// ```
    /// use pollux_model::{GlobalBatch, NoiseScale};
    ///
    /// let noise = NoiseScale::from_samples(1_000.0).unwrap();
    /// let efficiency = noise.efficiency(GlobalBatch(100), GlobalBatch(1_200));
    /// assert_eq!(efficiency.ratio(), 0.5);
    /// ```
    pub fn efficiency(self, initial: GlobalBatch, batch: GlobalBatch) -> Efficiency {
        Efficiency::new(self.efficiency_at(initial.0 as f64, batch.0 as f64))
    }

    pub(crate) fn efficiency_at(self, initial: f64, batch: f64) -> f64 {
        if self.0 == f64::INFINITY { 1.0 } else { (self.0 + initial) / (self.0 + batch) }
    }

    /// Steps at the initial batch size that one step at `batch` is worth: `r (φ + M₀) / (φ + M)` with
    /// `r = M / M₀`, so `1 <= gain <= r` for any batch at least the initial one.
    ///
    /// ```
    /// use pollux_model::{GlobalBatch, NoiseScale};
    ///
    /// let noise = NoiseScale::from_samples(1_000.0).unwrap();
    /// assert_eq!(noise.gain(GlobalBatch(100), GlobalBatch(1_200)), 6.0);
    /// ```
    pub fn gain(self, initial: GlobalBatch, batch: GlobalBatch) -> f64 {
        batch.0 as f64 / initial.0 as f64 * self.efficiency_at(initial.0 as f64, batch.0 as f64)
    }
}

/// The two moments behind a noise scale, as the paper writes them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientMoments {
    /// `|g|²`, the squared norm of the true gradient.
    pub sqr: f64,
    /// `tr(Σ) / M₀`, the variance of the gradient at the initial batch size.
    pub var: f64,
}

impl GradientMoments {
    /// `φ = M₀ var / sqr`; infinite where no signal is left, nothing where a moment is negative or not a
    /// number, or both are zero.
    pub fn noise_scale(self, initial: GlobalBatch) -> Option<NoiseScale> {
        let valid = self.sqr >= 0.0 && self.var >= 0.0 && self.sqr + self.var > 0.0 && self.sqr.is_finite();
        valid.then(|| NoiseScale::from_samples(initial.0 as f64 * (self.var / self.sqr)))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(sqr: f64, var: f64) -> Option<f64> {
        GradientMoments { sqr, var }.noise_scale(GlobalBatch(128)).map(NoiseScale::samples)
    }

    #[test]
    fn moments_make_a_noise_scale() {
        assert_eq!(moments(2.0, 4.0), Some(256.0));
        assert_eq!(moments(0.0, 4.0), Some(f64::INFINITY));
        assert_eq!(moments(3.0, 0.0), Some(0.0));
        assert_eq!(moments(0.0, 0.0), None);
        assert_eq!(moments(f64::NAN, 1.0), None);
        assert_eq!(moments(1.0, -1.0), None);
    }

    #[test]
    fn all_noise_loses_nothing_to_a_larger_batch() {
        let noise = NoiseScale::from_samples(f64::INFINITY).unwrap();
        assert_eq!(noise.efficiency(GlobalBatch(128), GlobalBatch(4_096)), Efficiency::new(1.0));
        assert!((noise.gain(GlobalBatch(128), GlobalBatch(4_096)) - 32.0).abs() < 1e-12);
    }
}
