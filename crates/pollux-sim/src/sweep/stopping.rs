//! When a trial is given up.

/// Successive halving without waiting (ASHA: Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020).
///
/// A trial is judged after `E / 4`, `E / 16` and `E / 64` of its `E` epochs, rounded down, where that is one or more: it goes
/// on if it is among the best quarter, rounded up, of those judged there so far, itself included. So no trial waits for
/// others, and the first always goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct Rungs {
    /// Epochs, and the accuracies that were judged there.
    rungs: Vec<(usize, Vec<f64>)>,
}

/// One in so many goes on.
pub const ETA: usize = 4;
/// Most rungs.
const MOST_RUNGS: usize = 3;

impl Rungs {
    /// The rungs of trainings of so many epochs.
    pub fn new(n_epochs: usize) -> Self {
        let epochs = std::iter::successors(Some(n_epochs / ETA), |epochs| Some(epochs / ETA));
        let rungs = epochs.take(MOST_RUNGS).take_while(|epochs| *epochs > 0);
        Self { rungs: rungs.map(|epochs| (epochs, Vec::new())).collect() }
    }

    /// Whether a trial goes on with this accuracy after so many epochs.
    pub fn goes_on(&mut self, epochs: usize, accuracy: f64) -> bool {
        let Some((_, judged)) = self.rungs.iter_mut().find(|(rung, _)| *rung == epochs) else { return true };
        judged.push(accuracy);
        let n_better = judged.iter().filter(|other| **other > accuracy).count();
        n_better < judged.len().div_ceil(ETA)
    }
}

/// Trials that must be done before the median says anything.
pub const MEDIAN_NEEDS: usize = 5;

/// Whether a trial is worse than the median of those before it (Golovin et al., Google Vizier, KDD 2017).
///
/// After `e` epochs: its best accuracy so far is below the median, over the trials that are done, of their mean accuracy
/// in the first `e` epochs. With fewer than five of them nobody is. `own` and `done` hold an accuracy for each epoch.
pub fn is_below_median<'a>(own: &[f64], done: impl Iterator<Item = &'a [f64]>) -> bool {
    let mean = |curve: &[f64]| {
        let part = &curve[..own.len().min(curve.len())];
        part.iter().sum::<f64>() / part.len().max(1) as f64
    };
    let mut means: Vec<f64> = done.map(mean).collect();
    means.sort_by(f64::total_cmp);
    let best = own.iter().copied().fold(0.0, f64::max);
    means.len() >= MEDIAN_NEEDS && best < means[means.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rungs: &mut Rungs, epochs: usize, accuracy: f64, goes_on: bool) {
        assert_eq!(rungs.goes_on(epochs, accuracy), goes_on, "{accuracy} after {epochs} epochs");
    }

    #[test]
    fn rungs_are_powers_of_four_below_the_end() {
        let rungs = |n_epochs| Rungs::new(n_epochs).rungs.iter().map(|(rung, _)| *rung).collect::<Vec<_>>();
        assert_eq!(rungs(100), [25, 6, 1]);
        assert_eq!(rungs(1_000), [250, 62, 15]);
        assert_eq!(rungs(10), [2]);
        assert!(rungs(3).is_empty());
    }

    #[test] // Of four the best goes on, of five the best two.
    fn a_quarter_goes_on() {
        let mut rungs = Rungs::new(16);
        check(&mut rungs, 4, 0.3, true);
        check(&mut rungs, 4, 0.2, false);
        check(&mut rungs, 4, 0.4, true);
        check(&mut rungs, 4, 0.35, false);
        check(&mut rungs, 4, 0.36, true);
        check(&mut rungs, 5, 0.0, true);
        check(&mut rungs, 1, 0.1, true);
    }

    #[test] // Means of the first two epochs: 0.15, 0.25, .. 0.55; the median is 0.35.
    fn who_never_was_at_the_median_is_below_it() {
        let done: Vec<Vec<f64>> =
            (1..=5).map(|n| f64::from(n) / 10.0).map(|a| vec![a, a + 0.1, 0.9]).collect();
        let below = |own: &[f64], n: usize| is_below_median(own, done[..n].iter().map(Vec::as_slice));
        assert!(below(&[0.3, 0.34], 5));
        assert!(!below(&[0.36, 0.3], 5));
        assert!(!below(&[0.1, 0.1], 4));
    }
}
