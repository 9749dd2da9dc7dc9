//! Noise-scale estimators against exact per-sample gradients, on a small real problem.
#![expect(clippy::print_stdout, reason = "figures for those who ask, with --nocapture")]
#![expect(clippy::cast_possible_truncation, reason = "small numbers, in tests")]

mod common;

use common::Dice;
use common::digits::{Digits, Exact, Gradient, WEIGHTS, dot, mean_of, sqr_norm};
use pollux_agent::{Agent, AgentConfig, GradientNorm, GradientSample, GradientSpace, StepObservation};
use pollux_model::{BatchLimits, BatchPlan, Estimator, GlobalBatch, GpuType, Placement};

const BATCH: usize = 32;
const STEPS: usize = 12_000;
/// The truth is computed every so many steps: it costs a pass over all data.
const TRUTH_EVERY: usize = 16;

/// How a job sees its gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
enum View {
    /// Each replica's gradient (the sum over its accumulation steps) and their mean.
    Replicas { count: usize, accum_steps: usize },
    /// One replica: the gradient after the first micro-batch and after the last.
    Accumulation { accum_steps: usize },
    /// One replica: the halves of its batch.
    Halves,
    /// One replica whose batch cannot be divided: this step's gradient and the last.
    Consecutive,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Optimizer {
    Sgd,
    Adam,
}

/// Long-run means of what the agent estimates over those of the truth.
#[derive(Debug)]
struct Bias {
    sqr: f64,
    trace: f64,
    noise_scale: f64,
}

/// One optimizer step's measurement, and the gradient to step with.
fn measure(
    view: View,
    parts: &[Gradient],
    previous: Option<&Gradient>,
    scale: &[f64],
) -> (Option<GradientSample>, Gradient) {
    let whole = mean_of(parts);
    let norm = |batch: usize, gradient: &Gradient| GradientNorm {
        batch: batch as f64,
        sqr_norm: sqr_norm(gradient, scale),
    };
    let big = norm(BATCH, &whole);
    let part = BATCH / parts.len();
    let sample = match view {
        View::Replicas { count, .. } => {
            let per_replica: Vec<Gradient> = parts.chunks(parts.len() / count).map(mean_of).collect();
            let sqr_norm = per_replica.iter().map(|g| sqr_norm(g, scale)).sum::<f64>() / count as f64;
            Some(GradientSample::Pair {
                small: GradientNorm { batch: (BATCH / count) as f64, sqr_norm },
                big,
            })
        }
        View::Accumulation { .. } => Some(GradientSample::Pair { small: norm(part, &parts[0]), big }),
        View::Halves => {
            let sqr_norm = parts.iter().map(|g| sqr_norm(g, scale)).sum::<f64>() / 2.0;
            Some(GradientSample::Pair { small: GradientNorm { batch: part as f64, sqr_norm }, big })
        }
        View::Consecutive => previous.map(|previous| GradientSample::Consecutive {
            batch: BATCH as f64,
            sqr_norm: big.sqr_norm,
            previous_sqr_norm: sqr_norm(previous, scale),
            dot: dot(&whole, previous, scale),
        }),
    };
    (sample, whole)
}

fn run(digits: &Digits, view: View, optimizer: Optimizer, rate: f64, seed: u64) -> (Bias, Agent) {
    let mut dice = Dice(seed);
    let limits = BatchLimits::new(BATCH as u64, BATCH as u64, 1, BATCH as u32).unwrap();
    let space =
        if optimizer == Optimizer::Adam { GradientSpace::Preconditioned } else { GradientSpace::Plain };
    let mut agent = Agent::new(AgentConfig { space, ..AgentConfig::new(limits) });
    let (replicas, accum_steps, n_parts) = match view {
        View::Replicas { count, accum_steps } => (count, accum_steps, count * (accum_steps + 1)),
        View::Accumulation { accum_steps } => (1, accum_steps, accum_steps + 1),
        View::Halves => (1, 0, 2),
        View::Consecutive => (1, 0, 1),
    };
    let placement = Placement::new(1, replicas as u32).unwrap();
    let plan = BatchPlan::split(GlobalBatch(BATCH as u64), placement, accum_steps as u32).unwrap();

    let mut weights = vec![0.0; WEIGHTS];
    let mut second_moment = vec![0.0; WEIGHTS];
    let mut scale = vec![1.0; WEIGHTS];
    let mut previous: Option<Gradient> = None;
    let (mut truth, mut estimate) = (Exact::default(), Exact::default());
    let (mut smooth, mut weight) = (Exact::default(), 0.0);
    for step in 0..STEPS {
        let parts: Vec<Gradient> = (0..n_parts)
            .map(|_| digits.gradient(&weights, &digits.draw(&mut dice, BATCH / n_parts)))
            .collect();
        let (sample, gradient) = measure(view, &parts, previous.as_ref(), &scale);
        agent.observe(&StepObservation {
            gpu_type: GpuType::default(),
            placement,
            plan,
            timing: None,
            gradient: sample,
        });
        // The truth changes too: smooth it as the agent does, so that what differs is bias and not delay. The
        // first part of training falls through orders of magnitude: judge the long run after it.
        if step % TRUTH_EVERY == 0 {
            let exact = digits.exact(&weights, &scale);
            let decay = libm::pow(0.999, TRUTH_EVERY as f64);
            smooth.sqr = decay * smooth.sqr + (1.0 - decay) * exact.sqr;
            smooth.trace = decay * smooth.trace + (1.0 - decay) * exact.trace;
            weight = decay * weight + (1.0 - decay);
            if step >= STEPS / 6 {
                let running = &agent.state().noise.running;
                estimate.sqr += running.sqr / running.weight;
                estimate.trace += running.trace / running.weight;
                truth.sqr += smooth.sqr / weight;
                truth.trace += smooth.trace / weight;
            }
        }
        for (moment, value) in second_moment.iter_mut().zip(&gradient) {
            *moment += 0.001 * (value * value - *moment);
        }
        let step_size = match optimizer {
            Optimizer::Sgd => rate,
            Optimizer::Adam => 0.02 * rate,
        };
        for ((weight, value), scale) in weights.iter_mut().zip(&gradient).zip(&scale) {
            *weight -= step_size * value * scale;
        }
        if optimizer == Optimizer::Adam {
            let correction = 1.0 - libm::pow(0.999, (step + 1) as f64);
            for (scale, moment) in scale.iter_mut().zip(&second_moment) {
                *scale = 1.0 / ((moment / correction).sqrt() + 1e-3);
            }
        }
        previous = Some(gradient);
    }
    let (sqr, trace) = (estimate.sqr / truth.sqr, estimate.trace / truth.trace);
    (Bias { sqr: sqr - 1.0, trace: trace - 1.0, noise_scale: trace / sqr - 1.0 }, agent)
}

fn check_unbiased(view: View, optimizer: Optimizer, seed: u64) {
    let digits = Digits::load();
    // Slow training keeps the signal large enough to be averaged out of the noise in this many steps.
    let (bias, agent) = run(&digits, view, optimizer, 0.002, seed);
    println!(
        "{view:?} with {optimizer:?}: |g|² {:+.1} %, tr Σ {:+.1} %, noise scale {:+.1} %",
        100.0 * bias.sqr,
        100.0 * bias.trace,
        100.0 * bias.noise_scale
    );
    assert_eq!(agent.state().noise.estimator, Estimator::Pairs);
    assert_eq!(agent.state().noise.n_implausible, 0, "real gradients are plausible");
    for off in [bias.sqr, bias.trace, bias.noise_scale] {
        assert!(off.abs() < 0.1, "{view:?}: {bias:?}");
    }
}

#[test]
fn halves_of_one_batch_are_unbiased() {
    check_unbiased(View::Halves, Optimizer::Sgd, 2);
}

#[test]
fn two_replicas_are_unbiased() {
    check_unbiased(View::Replicas { count: 2, accum_steps: 0 }, Optimizer::Sgd, 3);
}

#[test]
fn four_replicas_are_unbiased() {
    check_unbiased(View::Replicas { count: 4, accum_steps: 0 }, Optimizer::Sgd, 4);
}

#[test]
fn one_replica_that_accumulates_is_unbiased() {
    check_unbiased(View::Accumulation { accum_steps: 3 }, Optimizer::Sgd, 5);
}

#[test]
fn two_replicas_that_accumulate_are_unbiased() {
    check_unbiased(View::Replicas { count: 2, accum_steps: 1 }, Optimizer::Sgd, 6);
}

#[test]
fn four_replicas_that_accumulate_are_unbiased() {
    check_unbiased(View::Replicas { count: 4, accum_steps: 1 }, Optimizer::Sgd, 7);
}

#[test]
fn preconditioned_gradients_are_unbiased_too() {
    check_unbiased(View::Halves, Optimizer::Adam, 8);
    check_unbiased(View::Replicas { count: 4, accum_steps: 0 }, Optimizer::Adam, 9);
}

#[test]
fn differences_are_biased_and_say_so() {
    let digits = Digits::load();
    let (bias, agent) = run(&digits, View::Consecutive, Optimizer::Sgd, 0.05, 7);
    println!(
        "differences: |g|² {:+.1} %, tr Σ {:+.1} %, noise scale {:+.1} %",
        100.0 * bias.sqr,
        100.0 * bias.trace,
        100.0 * bias.noise_scale
    );
    assert_eq!(agent.state().noise.estimator, Estimator::Differences);
    assert!(agent.state().noise.estimator.is_biased());
    // Documented in docs/concepts/noise-scale.md; a change of the estimator must change that page.
    assert!(bias.noise_scale.abs() > 0.1, "{bias:?}");
}
