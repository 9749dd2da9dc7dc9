//! The fairness knob: a power mean of speed-ups, as a sum that a search can add up.

use libm::{exp, log as ln, pow, sqrt};

/// Speed-ups below this are all alike, and a job without GPUs is valued at it: keeps `S^p` finite.
const LEAST: f64 = 1e-3;

/// The most negative exponent that keeps sums of `LEAST^p` finite.
pub(crate) const LEAST_FAIRNESS: f64 = -100.0;

/// `u(S) = S^p / p`, or `ln S` at `p = 0`: the sum over jobs orders plans as their power mean does, for every
/// `p` up to 1, whatever its sign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Utility {
    exponent: f64,
    floor: f64,
    scale: f64,
}

impl Default for Utility {
    /// The harmonic mean.
    fn default() -> Self {
        Self::new(-1.0, 0.0, 1.0)
    }
}

impl Utility {
    /// With exponent `p`, brought into `-100..=1`; a speed-up `S` counts as `S * scale + floor`.
    pub fn new(exponent: f64, floor: f64, scale: f64) -> Self {
        let exponent = if exponent.is_nan() { -1.0 } else { exponent.clamp(LEAST_FAIRNESS, 1.0) };
        Self { exponent, floor, scale }
    }

    /// The exponent `p`.
    pub fn exponent(&self) -> f64 {
        self.exponent
    }

    /// The utility of one speed-up.
    #[expect(clippy::float_cmp, reason = "the usual exponents, exactly, have a faster form than the rest")]
    pub fn of(&self, speedup: f64) -> f64 {
        let speedup = (speedup * self.scale + self.floor).max(LEAST);
        let p = self.exponent;
        if p == -1.0 {
            -1.0 / speedup
        } else if p == 1.0 {
            speedup
        } else if p == 0.5 {
            2.0 * sqrt(speedup)
        } else if p == 0.0 {
            ln(speedup)
        } else {
            pow(speedup, p) / p
        }
    }

    /// The power mean that belongs to a mean utility.
    #[expect(clippy::float_cmp, reason = "the default exponent, exactly, has a faster form than the rest")]
    pub fn mean(&self, mean_utility: f64) -> f64 {
        let p = self.exponent;
        if p == 0.0 {
            return exp(mean_utility);
        }
        let power = mean_utility * p;
        if power > 0.0 && p == -1.0 {
            1.0 / power
        } else if power > 0.0 {
            pow(power, 1.0 / p)
        } else if p < 0.0 {
            // The utility is bounded by zero from above; who reaches it is infinitely fast.
            f64::INFINITY
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(p: f64, speedups: [f64; 2], mean: f64) {
        let utility = Utility::new(p, 0.0, 1.0);
        let sum: f64 = speedups.iter().map(|&s| utility.of(s)).sum();
        let got = utility.mean(sum / 2.0);
        assert!((got - mean).abs() < 1e-9 * mean, "p = {p}: {got}, not {mean}");
    }

    #[test]
    fn the_power_means_one_knows() {
        check(1.0, [1.0, 4.0], 2.5);
        check(0.5, [1.0, 4.0], 2.25);
        check(0.0, [1.0, 4.0], 2.0);
        check(-1.0, [1.0, 4.0], 1.6);
        check(-100.0, [1.0, 4.0], pow(2.0, 0.01));
    }

    #[test]
    fn more_speed_is_never_worth_less() {
        for p in [1.0, 0.5, 0.3, 0.0, -0.5, -1.0, -10.0, -100.0] {
            let utility = Utility::new(p, 0.0, 1.0);
            let values: Vec<f64> = [0.0, 1e-6, 1e-3, 0.1, 1.0, 50.0].iter().map(|&s| utility.of(s)).collect();
            assert!(values.windows(2).all(|w| w[0] <= w[1]), "p = {p}: {values:?}");
            assert!(values.iter().all(|u| u.is_finite()), "p = {p}: {values:?}");
        }
    }
}
