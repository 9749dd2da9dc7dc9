//! A real (small) model trained with the agent in charge of batch and learning rate.
#![expect(clippy::print_stdout, reason = "figures for those who ask, with --nocapture")]
#![expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers, in tests")]

mod common;

use common::Dice;
use common::digits::{Digits, Gradient, WEIGHTS, mean_of, sqr_norm};
use pollux_agent::{Agent, AgentConfig, GradientNorm, GradientSample, StepObservation, StepTiming};
use pollux_model::{Affine, BatchLimits, Compute, GpuType, PerfParams, Placement, Timestamp};

const INITIAL: u64 = 32;
const LEARNING_RATE: f64 = 0.05;

/// Step times as on a GPU that is launch-bound up to about 200 samples.
fn gpu() -> PerfParams {
    PerfParams {
        grad: Compute::Roofline { alpha: 0.004, beta: 2e-5, delta: 4.0 },
        sync_local: Affine::default(),
        sync_node: Affine::default(),
        gamma: 1.0,
        optimizer_step: 0.0,
    }
}

struct Outcome {
    loss: f64,
    /// As the GPU above would need.
    seconds: f64,
    steps: u32,
    largest_batch: u64,
    largest_factor: f64,
}

/// Trains until the agent has counted `progress` steps at the initial batch. `off` multiplies the noise
/// that reaches the estimator in every other stretch of 300 steps: the kind of estimate that ruined a run.
fn train(digits: &Digits, max_batch: u64, progress: f64, off: f64, seed: u64) -> Outcome {
    let limits = BatchLimits::new(INITIAL, max_batch, 8, 1_024).unwrap();
    let mut agent = Agent::new(AgentConfig::new(limits));
    let (gpu, gpu_type) = (gpu(), GpuType::new("t4"));
    let mut dice = Dice(seed);
    let mut weights = vec![0.0; WEIGHTS];
    let plain = vec![1.0; WEIGHTS];
    let mut plan = agent.decide(&gpu_type, Placement::ALONE).unwrap().plan;
    let mut outcome = Outcome { loss: 0.0, seconds: 0.0, steps: 0, largest_batch: 0, largest_factor: 0.0 };
    while agent.progress() < progress {
        let samples = plan.global().0 as usize;
        let halves: Vec<Gradient> = [samples / 2, samples - samples / 2]
            .map(|half| digits.gradient(&weights, &digits.draw(&mut dice, half)))
            .to_vec();
        let gradient = mean_of(&halves);
        let rate = LEARNING_RATE * agent.learning_rate_factor();
        for (weight, value) in weights.iter_mut().zip(&gradient) {
            *weight -= rate * value;
        }
        let noise = if outcome.steps / 300 % 2 == 1 { off } else { 1.0 };
        let parts = halves.iter().map(|half| sqr_norm(half, &plain)).sum::<f64>() / 2.0;
        let big = sqr_norm(&gradient, &plain);
        let secs = gpu.last_micro_step_secs(Placement::ALONE, plan.atomic_batch());
        agent.observe(&StepObservation {
            gpu_type: gpu_type.clone(),
            placement: Placement::ALONE,
            plan,
            timing: Some(StepTiming {
                accum_secs: None,
                optim_secs: secs,
                sync_secs: 0.0,
                optimizer_secs: 0.0,
            }),
            gradient: Some(GradientSample::Pair {
                small: GradientNorm {
                    batch: samples as f64 / 2.0,
                    sqr_norm: big + noise * (parts - big).max(0.0),
                },
                big: GradientNorm { batch: samples as f64, sqr_norm: big },
            }),
        });
        outcome.seconds += gpu.step_secs(Placement::ALONE, plan);
        outcome.steps += 1;
        outcome.largest_batch = outcome.largest_batch.max(plan.global().0);
        outcome.largest_factor = outcome.largest_factor.max(agent.learning_rate_factor());
        agent.poll(Timestamp::from_micros((outcome.seconds * 1e6) as u64));
        if outcome.steps.is_multiple_of(50) || agent.wants_decision() {
            plan = agent.decide(&gpu_type, Placement::ALONE).unwrap().plan;
        }
    }
    outcome.loss = digits.loss(&weights);
    outcome
}

#[test]
fn adapting_is_faster_and_learns_as_well() {
    let digits = Digits::load();
    let progress = 8_000.0;
    let fixed = train(&digits, INITIAL, progress, 1.0, 3);
    let adaptive = train(&digits, 16 * INITIAL, progress, 1.0, 3);
    for (name, run) in [("fixed", &fixed), ("adaptive", &adaptive)] {
        println!(
            "{name}: loss {:.4}, {} steps, {:.1} s, batch up to {}, learning rate up to x{:.1}",
            run.loss, run.steps, run.seconds, run.largest_batch, run.largest_factor
        );
    }
    assert!(fixed.largest_batch <= INITIAL && (fixed.largest_factor - 1.0).abs() < 1e-9);
    assert!(adaptive.largest_batch > 4 * INITIAL);
    assert!(adaptive.seconds < 0.6 * fixed.seconds, "{} against {} s", adaptive.seconds, fixed.seconds);
    assert!(adaptive.loss < 1.05 * fixed.loss, "{} against {}", adaptive.loss, fixed.loss);
}

#[test]
fn an_estimator_gone_wild_does_not_ruin_training() {
    let digits = Digits::load();
    let progress = 8_000.0;
    let sane = train(&digits, 16 * INITIAL, progress, 1.0, 5);
    for off in [40.0, 1.0 / 40.0] {
        let wild = train(&digits, 16 * INITIAL, progress, off, 5);
        println!(
            "noise x{off}: loss {:.4} against {:.4}, learning rate up to x{:.1} against x{:.1}, {:.1} against {:.1} s",
            wild.loss, sane.loss, wild.largest_factor, sane.largest_factor, wild.seconds, sane.seconds
        );
        assert!(wild.loss < 1.1 * sane.loss, "{} against {}", wild.loss, sane.loss);
    }
}
