//! What a job keeps of its work when it dies.

use std::time::Duration;

use pollux_agent::Agent;
use pollux_model::Timestamp;

/// What a checkpoint holds.
#[derive(Clone)]
pub(super) struct Saved {
    pub(super) agent: Agent,
    pub(super) progress: f64,
    pub(super) epoch: usize,
    pub(super) useful_gpu_secs: f64,
}

/// The latest checkpoint of a job, and what was lost for want of a later one.
///
/// Saving in between takes no time of the job's, as where it is done in the background; what it takes to save on leaving
/// is part of the restart.
pub(super) struct Saves {
    every: Duration,
    due: Timestamp,
    saved: Saved,
    /// GPU-seconds of training since.
    pub(super) unsaved_gpu_secs: f64,
    /// GPU-seconds of training that were lost.
    pub(super) redone_gpu_secs: f64,
    /// Progress that was lost.
    pub(super) redone: f64,
}

impl Saves {
    pub(super) fn new(every: Duration, saved: Saved) -> Self {
        // Time moves on between two checkpoints, however close they are.
        let every = every.max(Duration::from_secs(1));
        let due = Timestamp::ZERO + every;
        Self { every, due, saved, unsaved_gpu_secs: 0.0, redone_gpu_secs: 0.0, redone: 0.0 }
    }

    /// When it is to save next.
    pub(super) fn due(&self) -> Timestamp {
        self.due
    }

    /// How far it had come when it saved.
    pub(super) fn progress(&self) -> f64 {
        self.saved.progress
    }

    /// Training begins.
    pub(super) fn begin(&mut self, now: Timestamp) {
        self.due = now + self.every;
    }

    pub(super) fn save(&mut self, now: Timestamp, state: Saved) {
        self.due = now + self.every;
        self.saved = state;
        self.unsaved_gpu_secs = 0.0;
    }

    /// What was done since the latest checkpoint, up to this progress, is lost. Says what there is to go back to.
    pub(super) fn lose(&mut self, progress: f64) -> Saved {
        self.redone += progress - self.saved.progress;
        self.redone_gpu_secs += std::mem::take(&mut self.unsaved_gpu_secs);
        self.saved.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pollux_model::{GpuType, Placement};

    use super::super::job::{SimJob, Slowed};
    use super::*;
    use crate::profile::builtin;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    /// An imagenet job on 2 GPUs that saves every 10 minutes, from second 30 on.
    fn begun() -> SimJob {
        let profile = builtin().into_iter().find(|profile| profile.name() == "imagenet").unwrap();
        let limits = *profile.limits();
        let job = SimJob::new(profile, 1.0, limits, BTreeMap::new(), None);
        let mut job = job.saving(Duration::from_mins(10));
        begin(&mut job, 30);
        job
    }

    fn begin(job: &mut SimJob, secs: u64) {
        let placement = Placement::packed(2, 4).unwrap();
        job.begin(at(secs), &GpuType::new("t4"), placement, Slowed::default()).unwrap();
    }

    /// Trains until then, looked after as it wishes. Says what progress it reported last.
    fn train(job: &mut SimJob, secs: u64) -> Option<f64> {
        let mut reported = None;
        while let Some(next) = job.next_wake().filter(|next| *next <= at(secs)) {
            let said = job.wake(next);
            assert!(!said.finished);
            reported = said.report.map(|report| report.progress).or(reported);
        }
        reported
    }

    /// Seconds of both GPUs that were lost.
    fn lost_secs(job: &SimJob) -> f64 {
        job.saves().unwrap().redone_gpu_secs / 2.0
    }

    fn check_whole(job: &SimJob) {
        let left = job.done - job.saves().unwrap().redone - job.progress();
        assert!(left.abs() < 1e-9 * job.done, "{left} of {}", job.done);
    }

    #[test] // It saves at 630 and 1230 s and dies at 1300 s: 70 s are lost.
    fn a_crash_costs_what_was_not_saved() {
        let mut job = begun();
        train(&mut job, 1_230);
        let (progress, useful) = (job.progress(), job.useful_gpu_secs);
        train(&mut job, 1_300);
        assert!(job.progress() > progress);
        job.crash(at(1_300));
        assert!((job.progress() - progress).abs() < 1e-12 && (job.useful_gpu_secs - useful).abs() < 1e-9);
        assert!((lost_secs(&job) - 70.0).abs() < 1e-6, "{}", lost_secs(&job));
        check_whole(&job);
        // It begins again, and dies before it saves: 599 s more.
        begin(&mut job, 2_000);
        train(&mut job, 2_599);
        job.crash(at(2_599));
        assert!((lost_secs(&job) - 669.0).abs() < 1e-6, "{}", lost_secs(&job));
        check_whole(&job);
    }

    #[test]
    fn who_is_asked_to_leave_saves() {
        let mut job = begun();
        train(&mut job, 300);
        job.stop(at(300));
        let progress = job.progress();
        // Dies on its way to its first step.
        job.crash(at(320));
        assert!((job.progress() - progress).abs() < 1e-12 && lost_secs(&job) < 1e-12);
        check_whole(&job);
    }

    #[test] // It saves at 630 s, reports at 690 s and dies at 700 s; the report after its restart is of less.
    fn the_agent_goes_back_too() {
        let mut job = begun();
        let before = train(&mut job, 699).unwrap();
        job.crash(at(700));
        begin(&mut job, 1_000);
        let after = train(&mut job, 1_031).unwrap();
        assert!(0.0 < after && after < before, "{before}, then {after}");
        job.stop(at(1_040));
        check_whole(&job);
    }

    #[test] // Half the speed: half as much gets done, and a straggler costs the same whatever the exchange.
    fn a_slow_node_halves_the_speed() {
        let secs = |by_node: f64| {
            let mut job = begun();
            job.set_slowed(at(30), Slowed { by_node, ..Slowed::default() });
            // Before the agent tries another batch.
            job.stop(Timestamp::from_micros(30_500_000));
            job.progress()
        };
        assert!((secs(0.0) / secs(0.5) - 2.0).abs() < 1e-9);
    }
}
