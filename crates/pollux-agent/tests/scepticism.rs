//! Noisy estimates must not ruin training: bounded rates of change, implausible estimates not acted on.
#![expect(clippy::print_stdout, reason = "figures for those who ask, with --nocapture")]

mod common;

use common::Dice;
use pollux_agent::{Agent, AgentConfig, GradientNorm, GradientSample, LearningRateRule, StepObservation};
use pollux_model::{BatchLimits, BatchPlan, GlobalBatch, GpuType, NoiseScale, Placement};

const INITIAL: u64 = 128;
const REPLICAS: u32 = 4;

/// What gradients of the given signal and noise scale look like to four replicas, in `dimensions` effective
/// directions: the fewer, the noisier the norms.
fn sample(dice: &mut Dice, batch: u64, signal: f64, noise_scale: f64, dimensions: f64) -> GradientSample {
    let trace = signal * noise_scale;
    let (small, big) = (batch as f64 / f64::from(REPLICAS), batch as f64);
    // Squared norms of noise scatter by a factor √(2/d); the cross term with the signal by its own size.
    let mut norm = |batch: f64, n: f64| {
        let noise = trace / batch;
        let scatter =
            noise * (2.0 / (dimensions * n)).sqrt() + 2.0 * (signal * noise / (dimensions * n)).sqrt();
        (signal + noise + scatter * dice.normal()).max(1e-12)
    };
    GradientSample::Pair {
        small: GradientNorm { batch: small, sqr_norm: norm(small, f64::from(REPLICAS)) },
        big: GradientNorm { batch: big, sqr_norm: norm(big, 1.0) },
    }
}

struct Job {
    agent: Agent,
    dice: Dice,
    placement: Placement,
}

impl Job {
    fn new(rule: LearningRateRule) -> Self {
        let limits = BatchLimits::new(INITIAL, 64 * INITIAL, 8, 4_096).unwrap();
        let agent = Agent::new(AgentConfig { rule, ..AgentConfig::new(limits) });
        Self { agent, dice: Dice(11), placement: Placement::new(1, REPLICAS).unwrap() }
    }

    fn plan(&self, batch: u64) -> BatchPlan {
        BatchPlan::split(GlobalBatch(batch), self.placement, 0).unwrap()
    }

    /// One step; the estimate is made from `signal` and `noise_scale`, whatever the truth.
    fn step(&mut self, batch: u64, signal: f64, noise_scale: f64) {
        let gradient = sample(&mut self.dice, batch, signal, noise_scale, 20.0);
        self.agent.observe(&StepObservation {
            gpu_type: GpuType::default(),
            placement: self.placement,
            plan: self.plan(batch),
            timing: None,
            gradient: Some(gradient),
        });
    }
}

fn true_gain(noise_scale: f64, batch: u64) -> f64 {
    NoiseScale::from_samples(noise_scale).unwrap().gain(GlobalBatch(INITIAL), GlobalBatch(batch))
}

/// Trains at doubling batches up to `scale` times the initial one; for `burst` steps from `start` on, signal
/// and noise scale read off by the given factors. The learning-rate factor must stay within 2x of the truth.
fn check_burst(scale: u64, start: u32, burst: u32, signal_off: f64, noise_off: f64) {
    let truth = 479.0;
    let mut job = Job::new(LearningRateRule::AdaScale);
    let mut worst = 1.0_f64;
    for step in 0..6_000 {
        let batch = INITIAL * (1 << (step / 150).min(scale.ilog2()));
        let in_burst = (start..start + burst).contains(&step);
        let (signal, noise_scale) = if in_burst { (signal_off, truth * noise_off) } else { (1.0, truth) };
        job.step(batch, signal, noise_scale);
        if step >= 100 {
            let ratio = job.agent.learning_rate_factor() / true_gain(truth, batch);
            worst = worst.max(ratio).max(1.0 / ratio);
        }
    }
    println!(
        "{scale}x, {burst} steps from {start}, signal x{signal_off}, noise scale x{noise_off}: worst {worst:.2}"
    );
    assert!(worst < 2.0, "off by {worst}: {scale}x, {burst} from {start}, x{signal_off}, x{noise_off}");
}

#[test]
fn an_estimate_off_by_forty_for_hundreds_of_steps_moves_the_learning_rate_by_less_than_two() {
    for scale in [4, 16, 64] {
        for start in [200, 1_000, 3_000] {
            for burst in [50, 300, 500] {
                // The noise scale falls to a fortieth because the signal reads too strong, or the noise too
                // weak; or rises forty-fold the other way about.
                check_burst(scale, start, burst, 40.0, 1.0 / 40.0);
                check_burst(scale, start, burst, 1.0, 1.0 / 40.0);
                check_burst(scale, start, burst, 1.0 / 40.0, 40.0);
                check_burst(scale, start, burst, 1.0, 40.0);
            }
        }
    }
}

#[test]
fn a_lasting_change_is_followed() {
    let mut job = Job::new(LearningRateRule::AdaScale);
    for _ in 0..2_000 {
        job.step(16 * INITIAL, 1.0, 479.0);
    }
    for _ in 0..8_000 {
        job.step(16 * INITIAL, 0.1, 4_790.0);
    }
    let acted = job.agent.noise_scale().unwrap().samples();
    assert!((acted / 4_790.0 - 1.0).abs() < 0.3, "{acted}");
}

#[test]
fn implausible_estimates_are_flagged() {
    let mut job = Job::new(LearningRateRule::AdaScale);
    for _ in 0..500 {
        job.step(INITIAL, 1.0, 479.0);
    }
    assert_eq!(job.agent.state().noise.n_implausible, 0);
    let before = job.agent.noise_scale();
    for _ in 0..160 {
        job.step(INITIAL, 1.0, 40.0 * 479.0);
    }
    assert!(job.agent.state().noise.n_implausible >= 128);
    assert_eq!(job.agent.noise_scale(), before, "not acted on");
}

#[test]
fn a_larger_batch_is_warmed_up_to_and_a_smaller_one_obeyed_at_once() {
    let mut job = Job::new(LearningRateRule::Linear);
    for _ in 0..100 {
        job.step(INITIAL, 1.0, 479.0);
    }
    assert!((job.agent.learning_rate_factor() - 1.0).abs() < 1e-12);
    for _ in 0..50 {
        job.step(4 * INITIAL, 1.0, 479.0);
    }
    let halfway = job.agent.learning_rate_factor();
    assert!(halfway > 1.2 && halfway < 1.5, "{halfway} after half a warm-up");
    for _ in 0..200 {
        job.step(4 * INITIAL, 1.0, 479.0);
    }
    assert!((job.agent.learning_rate_factor() - 4.0).abs() < 1e-9);
}

#[test]
fn numbers_that_are_none_leave_no_trace() {
    let mut job = Job::new(LearningRateRule::AdaScale);
    for _ in 0..200 {
        job.step(INITIAL, 1.0, 479.0);
    }
    let before = job.agent.noise_scale();
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e300] {
        let bad = GradientNorm { batch: 32.0, sqr_norm: value };
        let good = GradientNorm { batch: 128.0, sqr_norm: 1.0 };
        for gradient in [
            GradientSample::Pair { small: bad, big: good },
            GradientSample::Pair { small: good, big: bad },
            GradientSample::Consecutive { batch: value, sqr_norm: value, previous_sqr_norm: 1.0, dot: value },
        ] {
            job.agent.observe(&StepObservation {
                gpu_type: GpuType::default(),
                placement: job.placement,
                plan: job.plan(INITIAL),
                timing: None,
                gradient: Some(gradient),
            });
        }
    }
    for _ in 0..200 {
        job.step(INITIAL, 1.0, 479.0);
    }
    let after = job.agent.noise_scale().unwrap().samples();
    assert!((after / before.unwrap().samples() - 1.0).abs() < 0.4, "{before:?} and {after}");
    assert!(job.agent.learning_rate_factor().is_finite());
}

#[test]
fn differences_give_way_to_pairs_and_do_not_come_back() {
    let mut job = Job::new(LearningRateRule::AdaScale);
    let consecutive =
        GradientSample::Consecutive { batch: 128.0, sqr_norm: 5.0, previous_sqr_norm: 5.0, dot: 0.2 };
    let observe = |job: &mut Job, gradient: GradientSample| {
        job.agent.observe(&StepObservation {
            gpu_type: GpuType::default(),
            placement: job.placement,
            plan: job.plan(INITIAL),
            timing: None,
            gradient: Some(gradient),
        });
    };
    for _ in 0..100 {
        observe(&mut job, consecutive);
    }
    assert!(job.agent.state().noise.estimator.is_biased());
    let biased = job.agent.noise_scale().unwrap();
    for _ in 0..3_000 {
        job.step(INITIAL, 1.0, 479.0);
        observe(&mut job, consecutive);
    }
    assert!(!job.agent.state().noise.estimator.is_biased());
    let unbiased = job.agent.noise_scale().unwrap();
    assert!(biased.samples() > 2_000.0, "{biased:?}");
    assert!((unbiased.samples() / 479.0 - 1.0).abs() < 0.3, "{unbiased:?}");
}

#[test]
fn each_rule_reaches_its_own_factor() {
    let gain = true_gain(479.0, 4 * INITIAL);
    let rules = [
        (LearningRateRule::AdaScale, gain),
        (LearningRateRule::AdamScale, gain.sqrt()),
        (LearningRateRule::SquareRoot, 2.0),
        (LearningRateRule::Linear, 4.0),
        (LearningRateRule::Legw { base_warmup_epochs: 1.0, epoch_samples: 1_000.0 }, 2.0),
        (LearningRateRule::None, 1.0),
    ];
    for (rule, expected) in rules {
        let name = rule.name();
        let mut job = Job::new(rule);
        for _ in 0..1_500 {
            job.step(4 * INITIAL, 1.0, 479.0);
        }
        let factor = job.agent.learning_rate_factor();
        assert!((factor / expected - 1.0).abs() < 0.15, "{name}: {factor} instead of {expected}");
    }
}
