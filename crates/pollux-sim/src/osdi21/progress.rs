//! What an iteration achieves, and when an epoch ends.
//!
//! Progress is counted in iterations at the initial batch size; a larger batch is worth more than one of them, by how
//! much the gradient's noise tells.

/// Squared norm and variance of the gradient, as one training run at one batch size saw them in one epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientStats {
    /// Squared norm.
    pub sqr: f64,
    /// Variance, at the initial batch size.
    pub var: f64,
}

impl GradientStats {
    /// Progress of one iteration at `batch`: `(var + sqr) / (var / scale + sqr)` with `scale = batch / init`.
    ///
    /// It is 1 at the initial batch and grows towards `scale` with the noise.
    ///
    /// ```
    /// use pollux_sim::osdi21::GradientStats;
    ///
    /// let stats = GradientStats { sqr: 1.0, var: 4.0 };
    /// assert_eq!(stats.gain(100, 100), 1.0);
    /// assert_eq!(stats.gain(400, 100), 2.5);
    /// ```
    pub fn gain(&self, batch: u32, init_batch: u32) -> f64 {
        let scale = f64::from(batch) / f64::from(init_batch);
        (self.var + self.sqr) / (self.var / scale + self.sqr)
    }
}

/// One training run at one batch size, epoch by epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// Its batch size.
    pub batch: u32,
    /// Its epochs.
    pub epochs: Vec<Epoch>,
}

/// One epoch of a training run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epoch {
    /// Progress when it ended.
    pub progress: f64,
    /// Iterations when it ended.
    pub iterations: f64,
    /// The gradient during it.
    pub gradient: GradientStats,
}

/// Something the training runs do not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgressError {
    /// A batch size below or above all that were trained with.
    #[error("a batch of {batch} is outside of what was trained with, {low} to {high}")]
    BatchNotTrained {
        /// The batch asked for.
        batch: u32,
        /// The smallest one.
        low: u32,
        /// The largest one.
        high: u32,
    },
    /// More epochs than were trained.
    #[error("epoch {epoch}, counted from 0, was not trained by every run")]
    EpochNotTrained {
        /// The epoch.
        epoch: u32,
    },
}

/// The gradient during an epoch, counted from 0: a line between the two nearest batch sizes of `runs`, which ascend.
pub fn gradient_stats(runs: &[Validation], batch: u32, epoch: u32) -> Result<GradientStats, ProgressError> {
    let sqr = interpolate(runs, batch, epoch, |epoch| epoch.gradient.sqr)?;
    let var = interpolate(runs, batch, epoch, |epoch| epoch.gradient.var)?;
    Ok(GradientStats { sqr, var })
}

/// Iterations at `batch` until the end of an epoch, counted from 0.
pub fn iterations(runs: &[Validation], batch: u32, epoch: u32) -> Result<f64, ProgressError> {
    interpolate(runs, batch, epoch, |epoch| epoch.iterations)
}

/// Progress after so many epochs: the least of any run's.
pub fn progress_after(runs: &[Validation], n_epochs: u32) -> Result<f64, ProgressError> {
    let Some(last) = n_epochs.checked_sub(1) else { return Ok(0.0) };
    let mut least = f64::INFINITY;
    for run in runs {
        least = least.min(row(run, last)?.progress);
    }
    Ok(least)
}

fn interpolate(
    runs: &[Validation],
    batch: u32,
    epoch: u32,
    value: impl Fn(&Epoch) -> f64,
) -> Result<f64, ProgressError> {
    let low = runs.iter().rev().find(|run| run.batch <= batch);
    let high = runs.iter().find(|run| run.batch >= batch);
    let (Some(low), Some(high)) = (low, high) else {
        let limit = |run: Option<&Validation>| run.map_or(0, |run| run.batch);
        return Err(ProgressError::BatchNotTrained {
            batch,
            low: limit(runs.first()),
            high: limit(runs.last()),
        });
    };
    let (below, above) = (value(row(low, epoch)?), value(row(high, epoch)?));
    if low.batch == high.batch {
        return Ok(below);
    }
    // Not `below + fraction * ...`: the artifact's order of operations.
    let (to_low, to_high) = (f64::from(batch - low.batch), f64::from(high.batch - batch));
    Ok((to_low * above + to_high * below) / f64::from(high.batch - low.batch))
}

fn row(run: &Validation, epoch: u32) -> Result<&Epoch, ProgressError> {
    run.epochs.get(epoch as usize).ok_or(ProgressError::EpochNotTrained { epoch })
}

/// Whole seconds, halves to the even neighbour as Python rounds. Never below zero.
///
/// ```
/// use pollux_sim::osdi21::progress::whole_secs;
///
/// assert_eq!([0.5, 1.5, 2.5, 2.51].map(whole_secs), [0, 2, 2, 3]);
/// ```
pub fn whole_secs(secs: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded; `as` saturates")]
    let whole = secs.round_ties_even() as u64;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(batch: u32, epochs: &[(f64, f64, f64)]) -> Validation {
        let epoch = |&(progress, sqr, var): &(f64, f64, f64)| Epoch {
            progress,
            iterations: progress * 100.0 / f64::from(batch),
            gradient: GradientStats { sqr, var },
        };
        Validation { batch, epochs: epochs.iter().map(epoch).collect() }
    }

    fn runs() -> Vec<Validation> {
        vec![
            run(100, &[(10.0, 1.0, 8.0), (20.0, 2.0, 8.0)]),
            run(200, &[(9.0, 3.0, 16.0), (21.0, 2.0, 8.0)]),
            run(400, &[(11.0, 3.0, 0.0), (22.0, 6.0, 4.0), (33.0, 1.0, 1.0)]),
        ]
    }

    fn check(batch: u32, epoch: u32, sqr: f64, var: f64) {
        assert_eq!(gradient_stats(&runs(), batch, epoch), Ok(GradientStats { sqr, var }));
    }

    #[test]
    fn gradients_are_a_line_between_batch_sizes() {
        check(100, 0, 1.0, 8.0);
        check(125, 0, 1.5, 10.0);
        check(200, 0, 3.0, 16.0);
        check(350, 1, 5.0, 5.0);
        check(400, 1, 6.0, 4.0);
        assert_eq!(iterations(&runs(), 150, 0), Ok(7.25)); // between 10 and 4.5
    }

    #[test]
    fn outside_the_runs_there_is_nothing() {
        let outside = |batch| ProgressError::BatchNotTrained { batch, low: 100, high: 400 };
        assert_eq!(gradient_stats(&runs(), 99, 0), Err(outside(99)));
        assert_eq!(gradient_stats(&runs(), 401, 0), Err(outside(401)));
        assert_eq!(gradient_stats(&runs(), 150, 2), Err(ProgressError::EpochNotTrained { epoch: 2 }));
    }

    #[test]
    fn an_epoch_ends_at_the_least_progress_of_any_run() {
        let after = |n_epochs| progress_after(&runs(), n_epochs);
        assert_eq!([after(0), after(1), after(2)], [Ok(0.0), Ok(9.0), Ok(20.0)]);
        assert_eq!(after(3), Err(ProgressError::EpochNotTrained { epoch: 2 }));
    }

    #[test]
    fn a_larger_batch_loses_nothing_without_signal_and_wins_nothing_without_noise() {
        let gain = |sqr, var| GradientStats { sqr, var }.gain(400, 100);
        assert_eq!((gain(0.0, 3.0), gain(3.0, 0.0)), (4.0, 1.0));
    }

    #[test]
    fn rounding_never_leaves_the_range() {
        assert_eq!([-0.5, -3.0, f64::NAN, 59.5].map(whole_secs), [0, 0, 0, 60]);
    }
}
