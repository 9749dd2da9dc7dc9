//! How accurate a trial is after each epoch. Simulated: a formula and a seed, no measurement.

use super::space::{Point, SPACE};
use crate::random;

/// Learning curves of all trials of a search.
///
/// With `x` the hyper-parameters on scales from 0 to 1, `o` the best of them and `E` the epochs of a whole training, a trial
/// ends at `a(x) = 0.955 - sum_d c_d (x_d - o_d)^2`, a bowl, and is after `e` epochs at
///
/// ```text
/// a(x, e) = a(x) - (a(x) - 0.1) ((1 + e)^-1 - (1 + E)^-1) / (1 - (1 + E)^-1) + u + v_e
/// ```
///
/// which is the chance level 0.1 at `e = 0` and `a(x)` at `e = E`. `u` is one normal draw for each trial (deviation
/// 0.001), `v_e` one for each of its epochs (0.001). Results are kept within 0 and 1. The best hyper-parameters lie within
/// the inner half of each scale, at a place that the seed chooses.
///
/// Epochs are epochs of statistical progress: the batch that an agent chooses changes how many samples one takes, not
/// how accurate the trial is after it. That is the claim of AdaScale; here it is assumed, so no policy can find another
/// accuracy but by trying other hyper-parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    seed: u64,
    optimum: Point,
    n_epochs: usize,
}

/// Accuracy at the bottom of the bowl, about that of the best trials of the paper's search.
const BEST: f64 = 0.955;
/// Accuracy of guesses among ten classes.
const CHANCE: f64 = 0.1;
/// How much accuracy a whole scale costs, by dimension: the learning rate matters most.
const COSTS: [f64; SPACE.len()] = [0.5, 0.15, 0.1, 0.1];
/// Deviation between trials with the same hyper-parameters.
const TRIAL_NOISE: f64 = 0.001;
/// Deviation between epochs of a trial.
const EPOCH_NOISE: f64 = 0.001;

impl Curves {
    /// The curves of trainings of so many epochs.
    pub fn new(seed: u64, n_epochs: usize) -> Self {
        let mut random = random::stream(seed, "sweep optimum");
        Self { seed, optimum: SPACE.iter().map(|_| random.uniform(0.25, 0.75)).collect(), n_epochs }
    }

    /// The best hyper-parameters.
    pub fn optimum(&self) -> &Point {
        &self.optimum
    }

    /// Accuracy at the end, without noise.
    pub fn at_end(&self, point: &Point) -> f64 {
        let costs = COSTS.iter().zip(point).zip(&self.optimum);
        (BEST - costs.map(|((cost, x), best)| cost * (x - best) * (x - best)).sum::<f64>()).max(CHANCE)
    }

    /// Accuracy after so many epochs, without noise.
    pub fn expected(&self, point: &Point, epochs: usize) -> f64 {
        let left = |epochs: usize| 1.0 / (1.0 + epochs as f64);
        let last = left(self.n_epochs);
        let at_end = self.at_end(point);
        at_end - (at_end - CHANCE) * (left(epochs.min(self.n_epochs)) - last) / (1.0 - last).max(last)
    }

    /// Accuracy of a trial as it is measured after so many epochs.
    pub fn measured(&self, trial: usize, point: &Point, epochs: usize) -> f64 {
        let of_trial = random::numbered(self.seed, "sweep trial", trial as u64).normal();
        let place = (trial as u64) << 32 | epochs as u64;
        let of_epoch = random::numbered(self.seed, "sweep epoch", place).normal();
        (self.expected(point, epochs) + TRIAL_NOISE * of_trial + EPOCH_NOISE * of_epoch).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
    }

    #[test] // One tenth of the scale of the learning rate costs 0.5 / 100.
    fn a_bowl_has_its_bottom_at_the_optimum() {
        let curves = Curves::new(1, 3);
        let mut point = curves.optimum().clone();
        check(curves.at_end(&point), 0.955);
        point[0] += 0.1;
        check(curves.at_end(&point), 0.95);
    }

    #[test] // After 1 of 3 epochs (1/2 - 1/4) / (1 - 1/4) = 1/3 of the way from 0.1 to 0.955 is left: 0.285.
    fn accuracy_follows_a_power_law() {
        let curves = Curves::new(1, 3);
        let point = curves.optimum();
        check(curves.expected(point, 0), 0.1);
        check(curves.expected(point, 1), 0.955 - 0.285);
        check(curves.expected(point, 3), 0.955);
        check(curves.expected(point, 4), 0.955);
    }

    #[test]
    fn noise_is_the_trials_own_and_small() {
        let curves = Curves::new(1, 100);
        let at = |trial, epochs| curves.measured(trial, curves.optimum(), epochs);
        assert_eq!(at(3, 50).to_bits(), at(3, 50).to_bits());
        assert_ne!(at(3, 100).to_bits(), at(4, 100).to_bits());
        let off: Vec<f64> = (0..1_000).map(|trial| at(trial, 100) - 0.955).collect();
        let spread = crate::Spread::of(off);
        assert!(spread.mean.abs() < 0.0002 && (0.0012..0.0016).contains(&spread.sd), "{spread:?}");
    }

    proptest! {
        #[test]
        fn training_longer_is_better(
            point in prop::collection::vec(0.0..=1.0_f64, 4), seed: u64, epochs in 0..100_usize,
        ) {
            let curves = Curves::new(seed, 100);
            prop_assert!(curves.expected(&point, epochs) <= curves.expected(&point, epochs + 1));
            prop_assert!((0.0..=1.0).contains(&curves.measured(7, &point, epochs)));
        }
    }
}
