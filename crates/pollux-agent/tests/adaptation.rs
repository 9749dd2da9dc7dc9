//! The agent drives a simulated job: exploration, growth, hysteresis, resizes, limits.
#![expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers, in tests")]

mod common;

use common::Dice;
use pollux_agent::{
    Agent, AgentConfig, BatchReason, GradientNorm, GradientSample, LearningRateRule, StepObservation,
    StepTiming,
};
use pollux_model::{
    Affine, AgentReport, BatchLimits, BatchPlan, Compute, GoodputModel, GpuType, NoiseScale, PerfParams,
    Placement, Timestamp,
};

/// A job whose step times and gradient noise follow the model exactly, but for 3 % of noise on times.
struct Job {
    agent: Agent,
    truth: PerfParams,
    noise_scale: f64,
    gpu_type: GpuType,
    placement: Placement,
    plan: BatchPlan,
    seconds: f64,
    dice: Dice,
    /// Every change of batch.
    changes: Vec<(BatchPlan, BatchReason)>,
}

impl Job {
    fn new(limits: BatchLimits, truth: PerfParams, noise_scale: f64) -> Self {
        let mut agent =
            Agent::new(AgentConfig { rule: LearningRateRule::AdaScale, ..AgentConfig::new(limits) });
        let gpu_type = GpuType::new("t4");
        let decision = agent.decide(&gpu_type, Placement::ALONE).unwrap();
        assert_eq!(decision.reason, BatchReason::Initial);
        Self {
            agent,
            truth,
            noise_scale,
            gpu_type,
            placement: Placement::ALONE,
            plan: decision.plan,
            seconds: 0.0,
            dice: Dice(5),
            changes: Vec::new(),
        }
    }

    fn resize(&mut self, placement: Placement) {
        self.placement = placement;
        self.decide();
    }

    fn decide(&mut self) {
        let decision = self.agent.decide(&self.gpu_type, self.placement).unwrap();
        assert_eq!(
            decision.changed,
            decision.plan != self.plan || self.changes.is_empty() && decision.changed
        );
        if decision.plan != self.plan {
            self.changes.push((decision.plan, decision.reason));
        }
        self.plan = decision.plan;
    }

    fn step(&mut self) {
        let jitter = libm::exp(0.03 * self.dice.normal());
        let micro_batch = self.plan.atomic_batch();
        let compute = self.truth.grad.secs(f64::from(micro_batch)) * jitter;
        let optim = self.truth.last_micro_step_secs(self.placement, micro_batch) * jitter;
        self.seconds += self.truth.step_secs(self.placement, self.plan);
        // Gradients without scatter: two halves of the batch.
        let batch = self.plan.global().0 as f64;
        let norm = |batch: f64| GradientNorm { batch, sqr_norm: 1.0 + self.noise_scale / batch };
        self.agent.observe(&StepObservation {
            gpu_type: self.gpu_type.clone(),
            placement: self.placement,
            plan: self.plan,
            timing: Some(StepTiming {
                accum_secs: (self.plan.accum_steps() > 0).then_some(compute),
                optim_secs: optim,
                sync_secs: (optim - compute - self.truth.optimizer_step).max(0.0),
                optimizer_secs: self.truth.optimizer_step,
            }),
            gradient: Some(GradientSample::Pair { small: norm(batch / 2.0), big: norm(batch) }),
        });
    }

    /// Trains for some steps as a loop would: decisions at epochs and when asked for. The last report.
    fn train(&mut self, steps: u32) -> Option<AgentReport> {
        let mut last = None;
        for step in 0..steps {
            self.step();
            let now = Timestamp::from_micros((self.seconds * 1e6) as u64);
            last = self.agent.poll(now).or(last);
            if step % 200 == 199 || self.agent.wants_decision() {
                self.decide();
            }
        }
        last
    }

    /// Goodput with the present batch over the best there is.
    fn share_of_best(&self) -> f64 {
        let noise = NoiseScale::from_samples(self.noise_scale).unwrap();
        let limits = self.agent.limits_on(&self.gpu_type);
        let model = GoodputModel::new(self.truth.clone(), noise, limits).unwrap();
        model.goodput(self.placement, self.plan).useful_samples_per_sec()
            / model.best_goodput(self.placement).useful_samples_per_sec()
    }
}

/// Launch-bound up to about 200 samples, as small models are on new GPUs.
fn launch_bound() -> PerfParams {
    PerfParams {
        grad: Compute::Roofline { alpha: 0.02, beta: 0.0001, delta: 4.0 },
        sync_local: Affine { alpha: 0.004, beta: 0.0005 },
        sync_node: Affine { alpha: 0.03, beta: 0.001 },
        gamma: 1.5,
        optimizer_step: 0.001,
    }
}

#[test]
fn one_gpu_explores_and_finds_the_batch_that_pays() {
    let mut job = Job::new(BatchLimits::new(32, 1_024, 16, 1_024).unwrap(), launch_bound(), 600.0);
    let report = job.train(3_000).unwrap();
    let explored = job.changes.iter().filter(|(_, reason)| *reason == BatchReason::Explore).count();
    assert_eq!(explored, 2, "two experiments: {:?}", job.changes);
    let back = job.changes.iter().filter(|(_, reason)| *reason == BatchReason::Explored).count();
    assert_eq!(back, 1, "one after the other, and back: {:?}", job.changes);
    assert!(job.share_of_best() > 0.95, "{} of the best: {:?}", job.share_of_best(), job.changes);
    assert!(job.plan.global().0 >= 128, "{:?}", job.plan);
    let mut before = 32;
    for (plan, _) in &job.changes {
        assert!(plan.global().0 <= 2 * before, "{before} to {}", plan.global().0);
        before = plan.global().0;
    }
    assert!(report.model_error.unwrap().abs() < 0.05, "{:?}", report.model_error);
    let noise = report.noise.unwrap();
    assert!((noise.acted.samples() / 600.0 - 1.0).abs() < 0.01 && !noise.suspicious);
}

#[test]
fn a_settled_batch_stays() {
    let mut job = Job::new(BatchLimits::new(32, 1_024, 16, 1_024).unwrap(), launch_bound(), 600.0);
    job.train(3_000);
    let settled = job.changes.len();
    job.train(20_000);
    assert_eq!(
        job.changes.len(),
        settled,
        "noise of a few per cent is no reason to change: {:?}",
        job.changes
    );
}

#[test]
fn more_noise_later_means_a_larger_batch_later() {
    let mut job = Job::new(BatchLimits::new(32, 8_192, 4, 1_024).unwrap(), launch_bound(), 60.0);
    job.resize(Placement::new(2, 8).unwrap());
    job.train(3_000);
    let early = job.plan.global();
    job.noise_scale = 6_000.0;
    job.train(12_000);
    assert!(job.plan.global().0 > 2 * early.0, "{early:?} and {:?}", job.plan);
    assert!(job.share_of_best() > 0.95);
}

#[test]
fn a_fixed_batch_is_never_touched() {
    let mut job = Job::new(BatchLimits::fixed(128, 8, 1_024).unwrap(), launch_bound(), 5_000.0);
    job.train(1_000);
    for n_replicas in [3, 7, 1, 16] {
        job.resize(Placement::packed(n_replicas, 4).unwrap());
        job.train(500);
    }
    assert!(job.changes.iter().all(|(plan, _)| plan.global().0 == 128), "{:?}", job.changes);
    assert!((job.agent.learning_rate_factor() - 1.0).abs() < 1e-9);
    assert!((job.agent.progress() - 3_000.0).abs() < 1e-6, "one step is worth one step");
}

#[test]
fn a_resize_carries_the_batch_over_and_goes_on_from_there() {
    let mut job = Job::new(BatchLimits::new(64, 4_096, 16, 256).unwrap(), launch_bound(), 2_000.0);
    job.train(3_000);
    let alone = job.plan.global();
    job.resize(Placement::new(2, 8).unwrap());
    assert!(job.plan.global().0 <= 2 * alone.0, "{alone:?} to {:?}", job.plan);
    assert!(job.agent.limits_on(&job.gpu_type).allows(job.placement, job.plan));
    job.train(3_000);
    assert!(job.share_of_best() > 0.95, "{}", job.share_of_best());

    let (spread, factor) = (job.plan.global(), job.agent.learning_rate_factor());
    job.resize(Placement::ALONE);
    job.train(3_000);
    assert!(job.plan.global() < spread);
    assert!(job.agent.learning_rate_factor() < factor);
    assert!(job.share_of_best() > 0.95, "{}", job.share_of_best());
}

#[test]
fn a_smaller_batch_bears_only_a_smaller_learning_rate_and_at_once() {
    let mut job = Job::new(BatchLimits::new(64, 4_096, 16, 64).unwrap(), launch_bound(), 2_000.0);
    job.resize(Placement::new(4, 16).unwrap());
    job.train(3_000);
    let (batch, before) = (job.plan.global(), job.agent.learning_rate_factor());
    // One GPU gains nothing from a batch that needs many passes: it is halved first of all.
    job.resize(Placement::ALONE);
    assert!(job.plan.global() < batch && job.plan.global().0 * 2 >= batch.0, "{batch:?} to {:?}", job.plan);
    assert!(job.agent.learning_rate_factor() <= job.agent.gain(job.plan) + 1e-9);
    assert!(job.agent.learning_rate_factor() < before);
}

#[test]
fn what_does_not_fit_in_memory_is_not_tried_again() {
    let mut job = Job::new(BatchLimits::new(32, 1_024, 16, 1_024).unwrap(), launch_bound(), 600.0);
    job.train(2_000);
    let gpu_type = job.gpu_type.clone();
    job.agent.limit_micro_batch(&gpu_type, 48);
    job.decide();
    job.train(2_000);
    let after = job.changes.last().unwrap().0;
    assert!(after.atomic_batch() <= 48, "{after:?}");
    assert!(
        job.agent.limits_on(&GpuType::new("a100")).micro_max() == 1_024,
        "another type has its own memory"
    );
}

#[test]
fn impossible_gpus_are_refused_and_change_nothing() {
    let mut job = Job::new(BatchLimits::new(32, 64, 16, 64).unwrap(), launch_bound(), 600.0);
    let mut exploring = 0;
    for _ in 0..10 {
        job.train(13);
        let before = job.agent.state().clone();
        exploring += usize::from(before.exploring.is_some());
        assert_eq!(job.agent.decide(&job.gpu_type, Placement::packed(5, 4).unwrap()), None);
        assert_eq!(*job.agent.state(), before);
    }
    assert!(exploring > 0, "experiments are not given up either");
}

#[test]
fn reports_come_at_their_interval_and_only_once_there_is_something_to_say() {
    let mut job = Job::new(BatchLimits::new(32, 64, 16, 64).unwrap(), launch_bound(), 600.0);
    assert_eq!(job.agent.poll(Timestamp::from_secs(100)), None, "no step yet");
    job.step();
    assert!(job.agent.poll(Timestamp::from_secs(100)).is_some());
    assert!(job.agent.poll(Timestamp::from_secs(129)).is_none());
    let report = job.agent.poll(Timestamp::from_secs(130)).unwrap();
    assert_eq!(report.most_replicas, 1);
    assert_eq!(report.noise, None, "one gradient is no noise scale");
}
