//! What training takes: epochs of work, and how noisy gradients are in each.

use super::error::{FieldProblem, Within, within};

/// Gradient noise without limit, as a number a file can hold, in samples.
///
/// Where no signal was measured in the gradient its noise scale is infinite. With this one, no batch below a million
/// samples loses a thousandth of its efficiency.
pub const MOST_NOISE: f64 = 1e9;

/// Epochs by the progress at their end, and the noise scale in each by batch.
///
/// Progress is counted in steps at the initial batch; [`Training::gain`] says how many of those a step at another
/// batch is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// Ascending, one for each epoch, at least one.
    epoch_ends: Vec<f64>,
    /// Ascending, at least one.
    batches: Vec<u64>,
    /// By epoch, then by batch.
    noise_scales: Vec<Vec<f64>>,
}

impl Training {
    pub(super) fn new(
        epoch_ends: Vec<f64>,
        batches: Vec<u64>,
        noise_scales: Vec<Vec<f64>>,
    ) -> Result<Self, Within> {
        ascending("epoch_ends", &epoch_ends, 0.0)?;
        ascending("noise_scales.batches", &batches, 0)?;
        if noise_scales.len() != epoch_ends.len() {
            let (found, expected) = (noise_scales.len(), epoch_ends.len());
            let problem = FieldProblem::Length { found, expected, like: "work.epoch_ends".into() };
            return Err(within("noise_scales.epochs", problem));
        }
        for (epoch, row) in noise_scales.iter().enumerate() {
            let key = format!("noise_scales.epochs[{epoch}]");
            if row.len() != batches.len() {
                let like = "work.noise_scales.batches".into();
                let problem = FieldProblem::Length { found: row.len(), expected: batches.len(), like };
                return Err(within(key, problem));
            }
            if let Some(index) = row.iter().position(|noise| !(0.0..=MOST_NOISE).contains(noise)) {
                return Err(within(format!("{key}[{index}]"), FieldProblem::Noise { value: row[index] }));
            }
        }
        Ok(Self { epoch_ends, batches, noise_scales })
    }

    /// How many epochs it takes.
    pub fn n_epochs(&self) -> usize {
        self.epoch_ends.len()
    }

    /// Progress at completion.
    pub fn work(&self) -> f64 {
        self.epoch_ends.last().copied().unwrap_or(0.0)
    }

    /// The epoch that is under way at this progress, from 0. At an end the next one begins; after the last there is none.
    pub fn epoch_at(&self, progress: f64) -> usize {
        self.epoch_ends.partition_point(|&end| end <= progress).min(self.n_epochs() - 1)
    }

    /// Progress at the end of an epoch, counted from 0; that of the last for any later one.
    pub fn epoch_end(&self, epoch: usize) -> f64 {
        self.epoch_ends[epoch.min(self.n_epochs() - 1)]
    }

    /// The noise scale in an epoch, in samples: on the line between the two nearest listed batches, the first or last
    /// listed one outside of them. Epochs after the last are as the last.
    pub fn noise_scale(&self, epoch: usize, batch: u64) -> f64 {
        let row = &self.noise_scales[epoch.min(self.n_epochs() - 1)];
        let above = self.batches.partition_point(|&listed| listed < batch);
        match (above.checked_sub(1), self.batches.get(above)) {
            (None, _) => row[0],
            (Some(last), None) => row[last],
            (Some(below), Some(&high)) => {
                let low = self.batches[below];
                let fraction = (batch - low) as f64 / (high - low) as f64;
                row[below] + (row[above] - row[below]) * fraction
            }
        }
    }

    /// Steps at the batch `initial` that one step at `batch` is worth: `M / M₀ · (φ + M₀) / (φ + M)`.
    ///
    /// It is 1 at `initial`; without noise more samples are worth nothing, with noise without limit each counts.
    pub fn gain(&self, epoch: usize, batch: u64, initial: u64) -> f64 {
        let noise = self.noise_scale(epoch, batch);
        let (batch, initial) = (batch as f64, initial as f64);
        batch / initial * (noise + initial) / (noise + batch)
    }

    /// The batches of [`Training::noise_row`].
    pub fn batches(&self) -> &[u64] {
        &self.batches
    }

    /// The listed noise scales of an epoch, by batch; those of the last for any later one.
    pub fn noise_row(&self, epoch: usize) -> &[f64] {
        &self.noise_scales[epoch.min(self.n_epochs() - 1)]
    }
}

/// At least one value, the first above `zero`, each above the one before it.
fn ascending<T>(key: &str, values: &[T], zero: T) -> Result<(), Within>
where
    T: Copy + PartialOrd + ToString,
{
    if values.is_empty() {
        return Err(within(key, FieldProblem::Empty));
    }
    let mut previous = zero;
    for (index, &value) in values.iter().enumerate() {
        // Written so that what compares with nothing fails too.
        if value.partial_cmp(&previous) != Some(std::cmp::Ordering::Greater) {
            let (value, previous) = (value.to_string(), previous.to_string());
            return Err(within(format!("{key}[{index}]"), FieldProblem::NotAscending { value, previous }));
        }
        previous = value;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two epochs of 10 steps. Noise of 100 to 300 samples at batches of 100 to 200, then none and without limit.
    fn training() -> Training {
        let noise = vec![vec![100.0, 300.0], vec![0.0, MOST_NOISE]];
        Training::new(vec![10.0, 20.0], vec![100, 200], noise).unwrap()
    }

    fn check_epoch(progress: f64, epoch: usize) {
        assert_eq!(training().epoch_at(progress), epoch, "at {progress}");
    }

    #[test]
    fn an_epoch_ends_where_the_next_begins() {
        check_epoch(0.0, 0);
        check_epoch(9.9, 0);
        check_epoch(10.0, 1);
        check_epoch(20.0, 1);
        check_epoch(99.0, 1);
        let training = training();
        assert_eq!((training.epoch_end(0), training.epoch_end(7), training.work()), (10.0, 20.0, 20.0));
    }

    fn check_noise(epoch: usize, batch: u64, expected: f64) {
        let noise = training().noise_scale(epoch, batch);
        assert!((noise - expected).abs() < 1e-9, "{noise} at {batch}");
    }

    #[test]
    fn noise_is_a_line_between_batches_and_flat_outside() {
        check_noise(0, 50, 100.0);
        check_noise(0, 100, 100.0);
        check_noise(0, 150, 200.0);
        check_noise(0, 200, 300.0);
        check_noise(0, 900, 300.0);
        check_noise(9, 1, 0.0); // as in the last epoch
    }

    #[test]
    fn a_step_is_worth_more_with_noise() {
        let gain = |epoch, batch| training().gain(epoch, batch, 100);
        assert_eq!((gain(0, 100), gain(1, 100)), (1.0, 1.0));
        assert!((gain(0, 200) - 1.6).abs() < 1e-9); // 2 * (300 + 100) / (300 + 200)
        assert!((gain(1, 200) - 2.0).abs() < 1e-6);
        let silent = Training::new(vec![1.0], vec![100], vec![vec![0.0]]).unwrap();
        assert!((silent.gain(0, 800, 100) - 1.0).abs() < 1e-9);
    }
}
