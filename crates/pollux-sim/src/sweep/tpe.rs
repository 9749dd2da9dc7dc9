//! The tree-structured Parzen estimator of Bergstra et al. (Algorithms for Hyper-Parameter Optimization, NIPS 2011).
//!
//! What was tried is split into the good and the rest. Of each a density is made, a sum of bells; the next trial is where
//! the density of the good is highest against that of the rest, among some draws from the former. Each hyper-parameter is
//! chosen by itself, as none depends on another here. Numbers are the defaults of hyperopt, the authors' program, but for
//! the split: a plain quantile, as in the paper, where hyperopt takes a quarter of the square root.

use std::f64::consts::{FRAC_1_SQRT_2, TAU};

use pollux_model::Random;

use super::space::Point;

/// Trials that are drawn at random to begin with.
pub const N_STARTUP: usize = 20;
/// The part of the trials that counts as good.
pub const GOOD_SHARE: f64 = 0.25;
/// The most trials that count as good.
pub const MOST_GOOD: usize = 25;
/// Draws among which the best is taken.
pub const N_CANDIDATES: usize = 24;

/// A density on the scale from 0 to 1: the mean of bells around points, each cut off at the ends.
///
/// One more bell, in the middle and as wide as the scale, stands for what was assumed before. A bell is as wide as the way
/// to the farther of its two neighbours, but no wider than the scale and no narrower than `1 / min(100, n + 2)` of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parzen {
    /// Middle and deviation of each bell.
    bells: Vec<(f64, f64)>,
}

/// The bell of what was assumed before.
const PRIOR: (f64, f64) = (0.5, 1.0);

impl Parzen {
    /// A density of these points, each from 0 to 1.
    pub fn new(points: &[f64]) -> Self {
        let narrowest = 1.0 / (points.len() as f64 + 2.0).min(100.0);
        let mut middles: Vec<(f64, bool)> = points.iter().map(|&point| (point, false)).collect();
        middles.push((PRIOR.0, true));
        middles.sort_by(|a, b| a.0.total_cmp(&b.0));
        let way = |from: usize, to: Option<usize>| {
            to.and_then(|to| middles.get(to)).map_or(0.0, |to: &(f64, bool)| (to.0 - middles[from].0).abs())
        };
        let bell = |(index, &(middle, is_prior)): (usize, &(f64, bool))| {
            let width = way(index, index.checked_sub(1)).max(way(index, Some(index + 1)));
            if is_prior { PRIOR } else { (middle, width.clamp(narrowest, 1.0)) }
        };
        Self { bells: middles.iter().enumerate().map(bell).collect() }
    }

    /// The density at a point from 0 to 1.
    pub fn density(&self, at: f64) -> f64 {
        let sum: f64 = self.bells.iter().map(|&(middle, width)| bell(at, middle, width)).sum();
        sum / self.bells.len() as f64
    }

    /// A point drawn with this density.
    pub fn draw(&self, random: &mut Random) -> f64 {
        let (middle, width) = self.bells[random.below(self.bells.len())];
        // At least a third of all draws from a bell fall on the scale.
        let mut draws = (0..100).map(|_| middle + width * random.normal());
        draws.find(|point| (0.0..=1.0).contains(point)).unwrap_or(middle)
    }
}

/// The density of a normal distribution that is cut off at 0 and 1.
fn bell(at: f64, middle: f64, width: f64) -> f64 {
    let below = |end: f64| 0.5 * libm::erfc((middle - end) / width * FRAC_1_SQRT_2);
    let off = (at - middle) / width;
    libm::exp(-0.5 * off * off) / (width * libm::sqrt(TAU) * (below(1.0) - below(0.0)))
}

/// How many of `n` trials count as good: a quarter, rounded up, and no more than 25.
pub fn n_good(n: usize) -> usize {
    n.div_ceil(4).min(MOST_GOOD)
}

/// Where to try next, after trials with these points and accuracies.
pub fn suggest(tried: &[(Point, f64)], random: &mut Random) -> Point {
    let mut order: Vec<usize> = (0..tried.len()).collect();
    // Of equals the earlier is the better.
    order.sort_by(|&a, &b| tried[b].1.total_cmp(&tried[a].1));
    let (good, rest) = order.split_at(n_good(tried.len()));
    let n_dimensions = tried.first().map_or(0, |(point, _)| point.len());
    let along = |chosen: &[usize], dimension: usize| -> Parzen {
        Parzen::new(&chosen.iter().map(|&index| tried[index].0[dimension]).collect::<Vec<f64>>())
    };
    let best = |dimension: usize| {
        let (good, rest) = (along(good, dimension), along(rest, dimension));
        let candidates = (0..N_CANDIDATES).map(|_| good.draw(random));
        let ratio = |point: f64| good.density(point) / rest.density(point);
        let rated = candidates.map(|point| (ratio(point), point)).collect::<Vec<_>>();
        let best = rated.into_iter().reduce(|best, next| if next.0 > best.0 { next } else { best });
        best.map_or(PRIOR.0, |(_, point)| point)
    };
    (0..n_dimensions).map(best).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(points: &[f64], expected: &[(f64, f64)]) {
        assert_eq!(Parzen::new(points).bells, expected, "{points:?}");
    }

    #[test] // Neighbours of 0.25 are the prior at 0.5; of the second 0.75 the first, and the end at 1 is none.
    fn bells_are_as_wide_as_the_way_to_the_farther_neighbour() {
        check(&[], &[PRIOR]);
        check(&[0.0], &[(0.0, 0.5), PRIOR]);
        check(&[0.75, 0.25], &[(0.25, 0.25), PRIOR, (0.75, 0.25)]);
        check(&[0.25, 0.75, 1.0], &[(0.25, 0.25), PRIOR, (0.75, 0.25), (1.0, 0.25)]);
    }

    #[test] // Two points and the prior: no narrower than a quarter of the scale.
    fn bells_are_never_very_narrow() {
        check(&[0.5, 0.5], &[(0.5, 0.25), (0.5, 0.25), PRIOR]);
    }

    #[test] // A bell of width 1 in the middle holds 38.29 % of a whole one; its top is 0.3989 high.
    fn a_bell_is_cut_off_at_the_ends() {
        assert!((bell(0.5, 0.5, 1.0) - 0.398_942 / 0.382_925).abs() < 1e-5);
        let n = 1_000;
        let density = Parzen::new(&[0.1, 0.4, 0.95]);
        let whole: f64 = (0..n).map(|index| density.density((f64::from(index) + 0.5) / f64::from(n))).sum();
        assert!((whole / f64::from(n) - 1.0).abs() < 1e-4, "{whole}");
    }

    #[test]
    fn a_quarter_is_good() {
        assert_eq!([1, 4, 5, 20, 100, 101, 1_000].map(n_good), [1, 1, 2, 5, 25, 25, 25]);
    }

    #[test] // Accuracy is highest at 0.2; both ends were tried, and the middle.
    fn the_next_trial_is_where_good_ones_were() {
        let tried: Vec<(Point, f64)> =
            (0..=20).map(f64::from).map(|x| (vec![x / 20.0], -(x / 20.0 - 0.2).abs())).collect();
        for seed in 0..20 {
            let point = suggest(&tried, &mut Random::seeded(seed));
            assert!((point[0] - 0.2).abs() < 0.2, "seed {seed}: {point:?}");
        }
    }

    proptest! {
        #[test]
        fn draws_stay_on_the_scale(points in prop::collection::vec(0.0..=1.0_f64, 0..30), seed: u64) {
            let density = Parzen::new(&points);
            let drawn = density.draw(&mut Random::seeded(seed));
            prop_assert!((0.0..=1.0).contains(&drawn));
            prop_assert!(density.density(drawn) > 0.0);
        }
    }
}
