//! An application as one job trains it.

use std::collections::BTreeMap;

use pollux_model::BatchLimits;

use super::application::{Memory, Profile};
use super::step_times::StepTimes;
use super::training::Training;

/// What a job's file says beyond its application's profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OfJob {
    /// Its batches.
    pub limits: BatchLimits,
    /// Its work, in steps at the initial batch; as the profile says if none.
    pub work: Option<f64>,
    /// The most GPUs it may hold: shapes with more are left out.
    pub max_gpus: Option<u32>,
    /// Seconds that each start and stop takes beyond what the profile says.
    pub overhead_secs: f64,
}

impl Profile {
    /// The same application under a job's name, with what the job's file says. Work beyond the profile's is like its last epoch.
    #[must_use]
    pub fn of_job(&self, name: &str, job: OfJob) -> Self {
        let most = job.max_gpus.unwrap_or(u32::MAX);
        let cut = |times: &StepTimes| {
            let few = times.shapes().filter(|shape| shape.placement().n_replicas() <= most).cloned();
            StepTimes::new(few.collect()).unwrap_or_else(|_| times.clone())
        };
        let step_times: BTreeMap<_, _> =
            self.gpu_types().filter_map(|kind| Some((kind.clone(), cut(self.step_times(kind)?)))).collect();
        let own = self.gpu_types().filter_map(|kind| Some((kind.clone(), self.own_micro_max(kind)?)));
        let memory = Memory { limits: job.limits, micro_max: own.collect() };
        let training = job.work.map_or_else(|| self.training().clone(), |work| until(self.training(), work));
        let restart_secs = self.restart_secs() + job.overhead_secs.max(0.0);
        let made =
            Self::new(name.to_owned(), self.source().to_owned(), memory, restart_secs, step_times, training);
        // Names of jobs and all that was checked before are fine.
        made.unwrap_or_else(|_| self.clone())
    }
}

/// Training up to this progress.
fn until(training: &Training, work: f64) -> Training {
    let n_epochs = training.epoch_at(work) + 1;
    let mut ends: Vec<f64> = (0..n_epochs).map(|epoch| training.epoch_end(epoch)).collect();
    let mut rows: Vec<Vec<f64>> = (0..n_epochs).map(|epoch| training.noise_row(epoch).to_vec()).collect();
    // An end that falls on that of an epoch does not begin another.
    if n_epochs > 1 && ends[n_epochs - 2] >= work {
        ends.pop();
        rows.pop();
    }
    if let Some(last) = ends.last_mut() {
        *last = work;
    }
    Training::new(ends, training.batches().to_vec(), rows).unwrap_or_else(|_| training.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(work: f64, ends: &[f64], last_noise: f64) {
        let noise = vec![vec![1.0], vec![2.0], vec![3.0]];
        let training = Training::new(vec![10.0, 20.0, 30.0], vec![8], noise).unwrap();
        let cut = until(&training, work);
        let seen: Vec<f64> = (0..cut.n_epochs()).map(|epoch| cut.epoch_end(epoch)).collect();
        assert_eq!((seen.as_slice(), cut.noise_row(99)[0]), (ends, last_noise), "{work}");
    }

    #[test]
    fn work_ends_where_the_job_says() {
        check(5.0, &[5.0], 1.0);
        check(20.0, &[10.0, 20.0], 2.0);
        check(25.0, &[10.0, 20.0, 25.0], 3.0);
        check(30.0, &[10.0, 20.0, 30.0], 3.0);
        check(45.0, &[10.0, 20.0, 45.0], 3.0);
    }
}
