//! A job on its way through time.

use std::sync::Arc;

use super::batch::{BatchRule, LocalBatch};
use super::progress::{ProgressError, whole_secs};
use super::throughput::ThroughputError;
use super::traces::Application;

/// How long a job trains nothing after each change of its GPUs.
pub const RESTART_SECS: u64 = 30;

/// What a job sees of itself while it trains: exact, whatever interference slows it down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Nodes it runs on.
    pub n_nodes: u32,
    /// GPUs it holds.
    pub n_replicas: u32,
    /// Samples of one GPU and one pass.
    pub atomic_batch: u32,
    /// Seconds of a step with gradient exchange.
    pub step_secs: f64,
    /// The part of it that is exchange.
    pub sync_secs: f64,
    /// Squared norm of the gradient.
    pub grad_sqr: f64,
    /// Variance of the gradient.
    pub grad_var: f64,
}

/// A job that cannot go on as it was told to.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum JobError {
    /// No step time for its GPUs and batch.
    #[error(transparent)]
    Throughput(#[from] ThroughputError),
    /// No gradient for its batch.
    #[error(transparent)]
    Progress(#[from] ProgressError),
}

/// One simulated job of the artifact.
///
/// Time is whole seconds. A job advances through every interval, submitted or not; without GPUs only its clock moves.
#[derive(Clone, Debug)]
pub struct Job {
    application: Arc<Application>,
    placement: Vec<u32>,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct State {
    now_secs: u64,
    restart_secs: u64,
    batch: LocalBatch,
    progress: f64,
    n_epochs: u32,
    gpu_secs: u64,
    useful_gpu_secs: f64,
    restarted_secs: u64,
    efficiency: f64,
    n_restarts: Option<u32>,
    completed_at_secs: Option<u64>,
}

impl Job {
    /// A job at time 0, without GPUs.
    pub fn new(application: Arc<Application>) -> Self {
        Self { application, placement: Vec::new(), state: State::default() }
    }

    /// What it trains.
    pub fn application(&self) -> &Application {
        &self.application
    }

    /// GPUs it holds, by node; empty before it starts and while it is suspended.
    pub fn placement(&self) -> &[u32] {
        &self.placement
    }

    /// The batch it runs.
    pub fn batch(&self) -> LocalBatch {
        self.state.batch
    }

    /// Its clock.
    pub fn now_secs(&self) -> u64 {
        self.state.now_secs
    }

    /// Seconds of restarting that are left.
    pub fn restart_secs_left(&self) -> u64 {
        self.state.restart_secs
    }

    /// Progress, in iterations at the initial batch size.
    pub fn progress(&self) -> f64 {
        self.state.progress
    }

    /// Epochs it has finished.
    pub fn n_epochs(&self) -> u32 {
        self.state.n_epochs
    }

    /// Attained service: GPU-seconds held, restarts included.
    pub fn gpu_secs(&self) -> u64 {
        self.state.gpu_secs
    }

    /// The same, times its statistical efficiency; restarts count nothing.
    pub fn useful_gpu_secs(&self) -> f64 {
        self.state.useful_gpu_secs
    }

    /// Seconds spent in restarts, the first start included.
    pub fn restarted_secs(&self) -> u64 {
        self.state.restarted_secs
    }

    /// Statistical efficiency of its latest iterations; 0 before the first.
    pub fn efficiency(&self) -> f64 {
        self.state.efficiency
    }

    /// Restarts after the first start; none before that.
    pub fn n_restarts(&self) -> Option<u32> {
        self.state.n_restarts
    }

    /// When it finished its last epoch.
    pub fn completed_at_secs(&self) -> Option<u64> {
        self.state.completed_at_secs
    }

    /// Gives the job other GPUs, counted by node, or takes all away.
    ///
    /// To be called for any change, a move between nodes too. It starts the countdown of a restart, the first start
    /// included; being suspended costs nothing.
    pub fn reallocate(&mut self, placement: &[u32], rule: &mut impl BatchRule) {
        self.placement = placement.iter().copied().filter(|&gpus| gpus > 0).collect();
        if self.placement.is_empty() {
            self.state.batch.atomic = 0;
            return;
        }
        self.state.batch = self.choose(rule);
        self.state.restart_secs = RESTART_SECS;
        self.state.n_restarts = Some(self.state.n_restarts.map_or(0, |restarts| restarts + 1));
    }

    /// Lets so many seconds pass. `interference` is the part of its speed that others cost it.
    ///
    /// An error leaves the job as it was; what the rule has observed by then it keeps.
    pub fn advance(
        &mut self,
        secs: u64,
        interference: f64,
        rule: &mut impl BatchRule,
    ) -> Result<(), JobError> {
        let mut state = self.state;
        let end_secs = state.now_secs + secs;
        if !self.placement.is_empty() {
            let delay = state.restart_secs.min(secs);
            state.restart_secs -= delay;
            state.restarted_secs += delay;
            state.hold(delay, self.n_replicas());
            while state.now_secs < end_secs && state.completed_at_secs.is_none() {
                self.train(&mut state, end_secs, interference, rule)?;
                state.batch = self.choose(rule);
            }
        }
        // What is left after completion, or all of it without GPUs.
        state.now_secs = end_secs;
        self.state = state;
        Ok(())
    }

    /// Trains until the end of the interval or of an epoch, whichever comes first.
    fn train(
        &self,
        state: &mut State,
        end_secs: u64,
        interference: f64,
        rule: &mut impl BatchRule,
    ) -> Result<(), JobError> {
        let application = &*self.application;
        let (n_replicas, atomic_batch) = (self.n_replicas(), state.batch.atomic);
        let total = state.batch.total(n_replicas);
        let time = application.step_time(&self.placement, atomic_batch)?;
        let gradient = application.gradient_stats(total, state.n_epochs)?;
        let boundary = application.progress_after(state.n_epochs + 1)?;
        rule.observe(&Observation {
            n_nodes: self.n_nodes(),
            n_replicas,
            atomic_batch,
            step_secs: time.step_secs,
            sync_secs: time.sync_secs,
            grad_sqr: gradient.sqr,
            grad_var: gradient.var,
        });

        let gain = gradient.gain(total, application.limits().init_batch);
        state.efficiency = gain * f64::from(application.limits().init_batch) / f64::from(total);
        let rate = gain / time.iteration_secs(state.batch.accum_steps) * (1.0 - interference);
        let left_secs = end_secs - state.now_secs;
        let reached = state.progress + rate * left_secs as f64;
        if reached < boundary {
            state.progress = reached;
            state.train(left_secs, n_replicas);
            return Ok(());
        }
        // The minimum guards against a rounding error of the division alone.
        let until_secs = whole_secs((boundary - state.progress) / rate).min(left_secs);
        state.progress = boundary;
        state.n_epochs += 1;
        state.train(until_secs, n_replicas);
        if state.n_epochs >= application.limits().n_epochs {
            state.completed_at_secs = Some(state.now_secs);
        }
        Ok(())
    }

    fn choose(&self, rule: &mut impl BatchRule) -> LocalBatch {
        let (limits, n_replicas) = (self.application.limits(), self.n_replicas());
        rule.choose(self.n_nodes(), n_replicas, limits).capped(n_replicas, limits)
    }

    fn n_nodes(&self) -> u32 {
        u32::try_from(self.placement.len()).unwrap_or(u32::MAX)
    }

    fn n_replicas(&self) -> u32 {
        self.placement.iter().fold(0, |sum: u32, &gpus| sum.saturating_add(gpus))
    }
}

impl State {
    /// Time passes while the job makes use of its GPUs.
    fn train(&mut self, secs: u64, n_replicas: u32) {
        self.hold(secs, n_replicas);
        self.useful_gpu_secs += secs as f64 * f64::from(n_replicas) * self.efficiency;
    }

    /// Time passes while the job holds its GPUs.
    fn hold(&mut self, secs: u64, n_replicas: u32) {
        self.now_secs += secs;
        self.gpu_secs += secs * u64::from(n_replicas);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::osdi21::application::Limits;
    use crate::osdi21::batch::FixedBatch;
    use crate::osdi21::progress::{Epoch, GradientStats, Validation};
    use crate::osdi21::throughput::StepTime;

    /// Runs on two GPUs of one node only: a step of 50 samples takes 1 s (half of it exchange), one of 100 takes
    /// 1.5 s. Noise is all there is, so that a batch of 200 is worth two of the initial 100. Epochs of 20.4 and 40.
    fn toy() -> Arc<Application> {
        let limits = Limits {
            name: "toy",
            init_batch: 100,
            max_batch: 200,
            min_local: 50,
            max_local: 100,
            n_epochs: 2,
        };
        let run = |batch| Validation {
            batch,
            epochs: [20.4, 60.4]
                .map(|progress| Epoch {
                    progress,
                    iterations: progress,
                    gradient: GradientStats { sqr: 0.0, var: 1.0 },
                })
                .to_vec(),
        };
        let time = |step_secs| StepTime { step_secs, sync_secs: 0.5 };
        let measured = [(50, time(1.0)), (100, time(1.5))];
        Arc::new(Application::on_one_placement(limits, &[2], &measured, vec![run(100), run(200)]))
    }

    fn initial() -> FixedBatch {
        FixedBatch { target: 100 }
    }

    fn started() -> Job {
        let mut job = Job::new(toy());
        job.advance(60, 0.0, &mut initial()).unwrap();
        job.reallocate(&[0, 2], &mut initial());
        job
    }

    #[test]
    fn without_gpus_only_the_clock_moves() {
        let mut job = Job::new(toy());
        job.advance(60, 0.0, &mut initial()).unwrap();
        assert_eq!((job.now_secs(), job.progress(), job.gpu_secs(), job.n_restarts()), (60, 0.0, 0, None));
    }

    #[test] // 30 s of restart, then an iteration each second: the first epoch's 20.4 take 20 s, the other 40 s.
    fn epochs_take_whole_seconds_and_progress_snaps_to_them() {
        let mut job = started();
        assert_eq!((job.restart_secs_left(), job.batch().atomic), (30, 50));
        job.advance(40, 0.0, &mut initial()).unwrap();
        assert_eq!((job.progress(), job.n_epochs(), job.gpu_secs()), (10.0, 0, 80));
        job.advance(20, 0.0, &mut initial()).unwrap();
        assert_eq!((job.n_epochs(), job.progress()), (1, 30.4)); // 10.4 took 10 s
        job.advance(60, 0.0, &mut initial()).unwrap();
        assert_eq!((job.n_epochs(), job.progress(), job.completed_at_secs()), (2, 60.4, Some(150)));
        assert_eq!((job.now_secs(), job.gpu_secs()), (180, 180)); // what is held after completion is not counted
        job.advance(60, 0.0, &mut initial()).unwrap();
        assert_eq!((job.now_secs(), job.gpu_secs()), (240, 180));
        // All but 30 s of restart on 2 GPUs, at the initial batch.
        assert_eq!((job.restarted_secs(), job.useful_gpu_secs(), job.efficiency()), (30, 120.0, 1.0));
    }

    #[test]
    fn interference_slows_progress_alone() {
        let mut job = started();
        job.advance(50, 0.25, &mut initial()).unwrap();
        assert_eq!((job.progress(), job.gpu_secs()), (15.0, 100));
    }

    #[test]
    fn a_change_during_a_restart_starts_it_again() {
        let mut job = started();
        job.advance(20, 0.0, &mut initial()).unwrap();
        assert_eq!((job.restart_secs_left(), job.n_restarts()), (10, Some(0)));
        job.reallocate(&[2, 0], &mut initial());
        assert_eq!((job.restart_secs_left(), job.n_restarts()), (30, Some(1)));
    }

    #[test]
    fn suspension_keeps_progress_and_counts_nothing() {
        let mut job = started();
        job.advance(35, 0.0, &mut initial()).unwrap();
        job.reallocate(&[], &mut initial());
        job.advance(60, 0.0, &mut initial()).unwrap();
        assert_eq!((job.progress(), job.gpu_secs(), job.n_restarts()), (5.0, 70, Some(0)));
        assert_eq!((job.placement(), job.batch().atomic, job.now_secs()), (&[][..], 0, 155));
    }

    /// Doubles the batch once it has seen anything.
    struct Doubling {
        seen: Vec<(u32, f64)>,
    }

    impl BatchRule for Doubling {
        fn observe(&mut self, observation: &Observation) {
            self.seen.push((observation.atomic_batch, observation.step_secs));
        }

        fn choose(&mut self, _: u32, n_replicas: u32, limits: &Limits) -> LocalBatch {
            let target = if self.seen.is_empty() { 100 } else { 500 };
            LocalBatch::of_target(target, n_replicas, &Limits { max_local: 1_000, ..*limits })
        }
    }

    #[test] // The larger batch is capped at 200, of which an iteration in 1.5 s is worth two.
    fn the_batch_is_chosen_anew_after_every_epoch_and_interval() {
        let mut rule = Doubling { seen: Vec::new() };
        let mut job = Job::new(toy());
        job.reallocate(&[2], &mut rule);
        job.advance(30, 0.0, &mut rule).unwrap();
        assert_eq!((job.batch().atomic, rule.seen.len()), (50, 0)); // restarting, nothing was seen
        job.advance(3, 0.0, &mut rule).unwrap();
        assert_eq!((job.batch().atomic, job.progress()), (100, 3.0));
        job.advance(60, 0.0, &mut rule).unwrap();
        // 17.4 at 4/3 a second take 13.05 s, rounded to 13; 40 more take 30 s.
        assert_eq!(rule.seen, [(50, 1.0), (100, 1.5), (100, 1.5)]);
        assert_eq!(job.completed_at_secs(), Some(30 + 3 + 13 + 30));
    }

    #[test]
    fn an_error_leaves_the_job_as_it_was() {
        let mut job = started();
        let mut too_small = FixedBatch { target: 98 };
        job.reallocate(&[2], &mut too_small);
        let before = job.clone();
        let error = job.advance(60, 0.0, &mut too_small).unwrap_err();
        assert_eq!(error.to_string(), "[2] was measured with 50 to 100 samples for each GPU, not with 49");
        assert_eq!((job.state, job.placement()), (before.state, before.placement()));
        job.reallocate(&[1], &mut initial());
        let error = job.advance(60, 0.0, &mut initial()).unwrap_err();
        assert!(
            matches!(error, JobError::Throughput(ThroughputError::Outside { n_replicas: 1, .. })),
            "{error}"
        );
    }
}
