//! What the agent costs a job: a step on the training path, a report off it.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "../../pollux-model/benches/measure/mod.rs"]
mod measure;

use std::hint::black_box;
use std::time::Instant;

use measure::{Spread, is_quick};
use pollux_agent::{Agent, AgentConfig, GradientNorm, GradientSample, StepObservation, StepTiming};
use pollux_model::{Affine, BatchLimits, BatchPlan, Compute, GpuType, PerfParams, Placement, Timestamp};

fn truth() -> PerfParams {
    PerfParams {
        grad: Compute::Roofline { alpha: 0.02, beta: 0.0001, delta: 4.0 },
        sync_local: Affine { alpha: 0.004, beta: 0.0005 },
        sync_node: Affine { alpha: 0.03, beta: 0.001 },
        gamma: 1.5,
        optimizer_step: 0.001,
    }
}

/// A step as job number `index` of many configurations would report it.
fn step(truth: &PerfParams, index: u32, n_configurations: u32) -> StepObservation {
    let configuration = index % n_configurations;
    let placement = Placement::packed(1 + configuration % 16, 4).expect("at least one replica");
    let micro_batch = 16 + 8 * (configuration / 16);
    let plan = BatchPlan::even(placement, micro_batch, 0).expect("at least one sample");
    let optim_secs = truth.last_micro_step_secs(placement, micro_batch) * (1.0 + 0.01 * f64::from(index % 7));
    let compute_secs = truth.grad.secs(f64::from(micro_batch));
    let batch = plan.global().0 as f64;
    let norm = |batch: f64| GradientNorm { batch, sqr_norm: 1.0 + 600.0 / batch };
    StepObservation {
        gpu_type: GpuType::new("t4"),
        placement,
        plan,
        timing: Some(StepTiming {
            accum_secs: Some(compute_secs),
            optim_secs,
            sync_secs: 0.0,
            optimizer_secs: 0.0,
        }),
        gradient: Some(GradientSample::Pair { small: norm(batch / 2.0), big: norm(batch) }),
    }
}

/// An agent that has timed `n_configurations`, of all kinds of placement and micro-batch.
fn experienced(truth: &PerfParams, n_configurations: u32) -> Agent {
    let limits = BatchLimits::new(32, 4_096, 4, 1_024).expect("limits that allow a batch");
    let mut agent = Agent::new(AgentConfig::new(limits));
    for index in 0..n_configurations {
        learn(&mut agent, truth, index);
    }
    agent
}

/// One more configuration: no two are equal below 144.
fn learn(agent: &mut Agent, truth: &PerfParams, index: u32) {
    let placement = Placement::packed(1 + (index * 7) % 16, 4).expect("at least one replica");
    let micro_batch = 16 << (index % 9) >> (index % 2);
    let plan = BatchPlan::even(placement, micro_batch, 0).expect("at least one sample");
    let jitter = 1.0 + 0.01 * f64::from(index * 5 % 7);
    let step = StepObservation {
        placement,
        plan,
        timing: Some(StepTiming {
            accum_secs: Some(jitter * truth.grad.secs(f64::from(micro_batch))),
            optim_secs: jitter * truth.last_micro_step_secs(placement, micro_batch),
            sync_secs: 0.0,
            optimizer_secs: 0.0,
        }),
        ..step(truth, index, 1)
    };
    for _ in 0..100 {
        agent.observe(&step);
    }
}

/// Mean microseconds of a first fit, and of one when a configuration has been added.
fn time_refits(truth: &PerfParams, n_configurations: u32, repeats: u32) -> [Spread; 2] {
    let fresh = experienced(truth, n_configurations);
    let mut fitted = experienced(truth, n_configurations - 1);
    fitted.refit();
    learn(&mut fitted, truth, n_configurations - 1);
    [fresh, fitted].map(|agent| {
        Spread::of((0..repeats).map(|_| {
            let mut agent = agent.clone();
            let start = Instant::now();
            agent.refit();
            let micros = start.elapsed().as_secs_f64() * 1e6;
            black_box(agent);
            micros
        }))
    })
}

/// Microseconds of so many equal steps, to an agent that has seen other gradients before.
fn time_run(truth: &PerfParams, n_steps: u64, repeats: u32) -> Spread {
    let agent = experienced(truth, 5);
    let norm = |batch: f64| GradientNorm { batch, sqr_norm: 1.0 + 900.0 / batch };
    let gradient = Some(GradientSample::Pair { small: norm(32.0), big: norm(64.0) });
    let run = StepObservation { gradient, ..step(truth, 3, 16) };
    Spread::of((0..10 * repeats).map(|_| {
        let mut agent = agent.clone();
        let start = Instant::now();
        agent.observe_run(&run, n_steps);
        let micros = start.elapsed().as_secs_f64() * 1e6;
        black_box(agent);
        micros
    }))
}

fn main() {
    let (repeats, n_steps) = if is_quick() { (3, 5_000) } else { (15, 50_000) };
    let truth = truth();
    println!("The agent; median (least to most) over {repeats} repeats.");
    for n_configurations in [5, 20, 50, 100] {
        let [first, next] = time_refits(&truth, n_configurations, 10 * repeats);
        println!("{n_configurations:>4} configurations: first fit {first:.0} us, with one more {next:.0} us");
    }
    for n_steps in [100, 10_000, 1_000_000] {
        let micros = time_run(&truth, n_steps, repeats);
        println!("{n_steps:>7} equal steps at once: {micros:.1} us");
    }
    for n_configurations in [1, 10, 100, 400] {
        let steps: Vec<StepObservation> =
            (0..n_configurations).map(|index| step(&truth, index, n_configurations)).collect();
        let limits = BatchLimits::new(32, 4_096, 4, 1_024).expect("limits that allow a batch");
        let (mut observe, mut report, mut decide) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..repeats {
            let mut agent = Agent::new(AgentConfig::new(limits));
            let start = Instant::now();
            for step in steps.iter().cycle().take(n_steps) {
                agent.observe(black_box(step));
            }
            observe.push(start.elapsed().as_secs_f64() * 1e9 / n_steps as f64);
            let start = Instant::now();
            black_box(agent.poll(Timestamp::from_secs(60)));
            report.push(start.elapsed().as_secs_f64() * 1e6);
            let start = Instant::now();
            black_box(agent.decide(&GpuType::new("t4"), Placement::ALONE));
            black_box(agent.decide(&GpuType::new("t4"), Placement::packed(8, 4).expect("eight replicas")));
            decide.push(start.elapsed().as_secs_f64() * 1e6 / 2.0);
        }
        println!(
            "{n_configurations:>4} configurations: step {:.0} ns, first report with its fit {:.0} us, decision {:.1} us",
            Spread::of(observe),
            Spread::of(report),
            Spread::of(decide)
        );
    }
}
