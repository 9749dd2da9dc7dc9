//! The best batch: our exact solution against sampling 50 batch sizes, in one run.
//!
//! `cargo xtask bench best_batch [--quick]`
//!
//! Two samplers are timed, and the faster one is what we compare with: the artifact's own
//! (`osdi21::Params::optimize`), and the same candidates judged by our step times. All three are called in
//! turn, batch of calls by batch of calls, so that whatever else the machine does falls on all alike.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]

#[path = "../tests/common/mod.rs"]
mod common;
mod measure;

use std::hint::black_box;
use std::time::Instant;

use common::Dice;
use measure::{Spread, is_quick, verdict};
use pollux_model::{
    Affine, BatchLimits, BatchPlan, Compute, GlobalBatch, GoodputModel, GradientMoments, NoiseScale,
    PerfParams, Placement, osdi21,
};
use serde_json::Value;

/// Batch sizes the artifact samples.
const SAMPLES: u32 = 50;

/// At least this many times faster than the faster sampler.
const TARGET: f64 = 5.0;

/// One job on one placement, for all three.
struct Case {
    model: GoodputModel,
    theirs: osdi21::Params,
    their_limits: osdi21::Limits,
    placement: Placement,
}

/// An application much like those of the paper: orders of magnitude, from which each case strays by up to
/// a factor of two.
struct Application {
    grad: Affine,
    sync_local: Affine,
    sync_node: Affine,
    initial: u64,
    max: u64,
    micro: (u32, u32),
    noise: (f64, f64),
}

const fn affine(alpha: f64, beta: f64) -> Affine {
    Affine { alpha, beta }
}

const APPLICATIONS: [Application; 6] = [
    // Image classification, small images.
    Application {
        grad: affine(0.03, 5e-4),
        sync_local: affine(0.03, 2e-3),
        sync_node: affine(0.02, 5e-3),
        initial: 128,
        max: 4_096,
        micro: (32, 1_024),
        noise: (3e4, 2e5),
    },
    // Image classification, large images.
    Application {
        grad: affine(0.1, 2e-3),
        sync_local: affine(0.1, 1e-2),
        sync_node: affine(0.1, 1e-2),
        initial: 200,
        max: 12_800,
        micro: (20, 200),
        noise: (4e3, 2e5),
    },
    // Speech recognition.
    Application {
        grad: affine(0.3, 0.02),
        sync_local: affine(0.1, 5e-3),
        sync_node: affine(0.1, 2e-2),
        initial: 20,
        max: 640,
        micro: (10, 80),
        noise: (8e2, 3e5),
    },
    // Question answering.
    Application {
        grad: affine(0.15, 0.03),
        sync_local: affine(0.1, 1e-2),
        sync_node: affine(0.5, 2e-2),
        initial: 12,
        max: 384,
        micro: (4, 12),
        noise: (4e2, 1e4),
    },
    // Object detection.
    Application {
        grad: affine(0.2, 0.02),
        sync_local: affine(0.1, 2e-2),
        sync_node: affine(0.4, 2e-2),
        initial: 8,
        max: 512,
        micro: (4, 8),
        noise: (0.5, 3e3),
    },
    // Recommendation.
    Application {
        grad: affine(0.01, 3e-7),
        sync_local: affine(6e-3, 5e-4),
        sync_node: affine(6e-3, 1e-3),
        initial: 256,
        max: 32_768,
        micro: (32, 32_768),
        noise: (1e4, 6e7),
    },
];

/// Jobs of the six applications, on 1 to 64 GPUs of nodes with 4.
fn seeded_cases() -> Vec<Case> {
    let mut dice = Dice(11);
    let mut cases = Vec::new();
    for application in APPLICATIONS.iter().cycle().take(600) {
        let mut near = |of: Affine| Affine {
            alpha: of.alpha * dice.log_uniform(0.5, 2.0),
            beta: of.beta * dice.log_uniform(0.5, 2.0),
        };
        let Affine { alpha, beta } = near(application.grad);
        let (sync_local, sync_node) = (near(application.sync_local), near(application.sync_node));
        let params = PerfParams {
            grad: Compute::Linear { alpha, beta },
            sync_local,
            sync_node,
            gamma: if dice.chance(0.1) { 1.0 } else { dice.log_uniform(1.01, 2.5) },
            optimizer_step: 0.0,
        };
        let noise = dice.log_uniform(application.noise.0, application.noise.1);
        let n_replicas = u32::try_from(dice.whole(1, 64)).expect("at most 64");
        let placement = Placement::packed(n_replicas, 4).expect("at least one replica");
        let (micro_min, micro_max) = application.micro;
        let limits = BatchLimits::new(application.initial, application.max, micro_min, micro_max);
        cases.extend(Case::new(params, noise, limits.expect("limits of the table"), placement));
    }
    cases
}

/// The cases of the reference data, where there are any.
fn reference_cases() -> Option<Vec<Case>> {
    let file = common::reference_json("goodput_cases.json")?;
    let cases = file["cases"].as_array().expect("an array of cases").iter().filter_map(reference_case);
    Some(cases.collect())
}

fn reference_case(value: &Value) -> Option<Case> {
    let count = |key: &str| value[key].as_u64().unwrap_or_else(|| panic!("`{key}` is missing"));
    let small = |key: &str| u32::try_from(count(key)).unwrap_or_else(|_| panic!("`{key}` is too large"));
    let number = |value: &Value| value.as_f64().expect("a number");
    let p: Vec<f64> = value["perf_params"].as_array().expect("parameters").iter().map(number).collect();
    let params = PerfParams {
        grad: Compute::Linear { alpha: p[0], beta: p[1] },
        sync_node: affine(p[2], p[3]),
        sync_local: affine(p[4], p[5]),
        gamma: p[6],
        optimizer_step: 0.0,
    };
    let moments = GradientMoments { sqr: number(&value["grad_sqr"]), var: number(&value["grad_var"]) };
    let initial = count("init_batch_size");
    let noise = moments.noise_scale(GlobalBatch(initial)).expect("moments of a gradient").samples();
    let limits =
        BatchLimits::new(initial, count("max_batch_size"), small("min_atomic_bsz"), small("max_atomic_bsz"));
    let placement = Placement::new(small("num_nodes"), small("num_replicas")).expect("a placement");
    Case::new(params, noise, limits.expect("limits of the reference"), placement)
}

impl Case {
    /// Nothing where no batch keeps the limits: there is nothing to compare.
    fn new(params: PerfParams, noise: f64, limits: BatchLimits, placement: Placement) -> Option<Self> {
        let Compute::Linear { alpha, beta } = params.grad else { unreachable!("the artifact's form") };
        let theirs = osdi21::Params {
            alpha_c: alpha,
            beta_c: beta,
            alpha_n: params.sync_node.alpha,
            beta_n: params.sync_node.beta,
            alpha_r: params.sync_local.alpha,
            beta_r: params.sync_local.beta,
            gamma: params.gamma,
        };
        let their_limits = osdi21::Limits {
            init: limits.initial().0,
            max: limits.max().0,
            min_atomic: limits.micro_min().into(),
            max_atomic: limits.micro_max().into(),
        };
        let noise = NoiseScale::from_samples(noise).expect("not negative");
        let model = GoodputModel::new(params, noise, limits).expect("valid parameters");
        model.best_batch(placement)?;
        Some(Self { model, theirs, their_limits, placement })
    }

    fn ours(&self) -> f64 {
        self.model.best_goodput(self.placement).useful_samples_per_sec()
    }

    fn artifact(&self) -> osdi21::Choice {
        self.theirs.optimize(self.placement, self.their_limits, self.model.noise().samples(), SAMPLES)
    }

    /// Fifty batch sizes, evenly spaced by their ratio, with the fewest accumulation steps each, judged by our
    /// own goodput; those over a limit do not count.
    fn sampled(&self) -> f64 {
        let limits = self.model.limits();
        let n_replicas = f64::from(self.placement.n_replicas());
        let low = (limits.initial().0 as f64).max(n_replicas * f64::from(limits.micro_min()));
        let low = libm::log(low);
        let high = libm::log(limits.max().0 as f64);
        let mut best = 0.0_f64;
        for index in 0..SAMPLES {
            let fraction = f64::from(index) / f64::from(SAMPLES - 1);
            let local = libm::exp(low + (high - low) * fraction) / n_replicas;
            let passes = (local / f64::from(limits.micro_max()) - 1e-8).ceil().max(1.0);
            let micro_batch = (local / passes - 1e-8).ceil();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
            let plan = BatchPlan::even(self.placement, micro_batch as u32, passes as u32 - 1);
            if let Some(plan) = plan
                && limits.allows(self.placement, plan)
            {
                best = best.max(self.model.goodput(self.placement, plan).useful_samples_per_sec());
            }
        }
        best
    }
}

/// Nanoseconds per call of `of`, over `rounds` rounds of all cases.
fn time(cases: &[Case], rounds: u32, of: impl Fn(&Case) -> f64) -> f64 {
    let start = Instant::now();
    for _ in 0..rounds {
        for case in cases {
            black_box(of(black_box(case)));
        }
    }
    start.elapsed().as_secs_f64() * 1e9 / (f64::from(rounds) * cases.len() as f64)
}

/// Runs and reports one set of cases.
fn compare(name: &str, cases: &[Case], repeats: u32, rounds: u32) {
    let (mut ours, mut artifact, mut sampled) = (Vec::new(), Vec::new(), Vec::new());
    for repeat in 0..=repeats {
        let times = [
            time(cases, rounds, Case::ours),
            time(cases, rounds, |case| case.artifact().goodput),
            time(cases, rounds, Case::sampled),
        ];
        // The first round only warms up.
        if repeat > 0 {
            ours.push(times[0]);
            artifact.push(times[1]);
            sampled.push(times[2]);
        }
    }
    let medians = [&ours, &artifact, &sampled].map(|times| Spread::of(times.iter().copied()).median);
    let baseline = if medians[1] <= medians[2] { &artifact } else { &sampled };
    let ratio = Spread::of(baseline.iter().zip(&ours).map(|(theirs, ours)| theirs / ours));

    let (mut over, mut shortfall, mut artifact_shortfall) = (0, 0.0_f64, 0.0_f64);
    for case in cases {
        let best = case.ours();
        shortfall = shortfall.max(1.0 - case.sampled() / best);
        let choice = case.artifact();
        let batch = u64::from(case.placement.n_replicas()) * choice.atomic_batch * (choice.accum_steps + 1);
        if batch > case.their_limits.max {
            over += 1;
        } else {
            artifact_shortfall = artifact_shortfall.max(1.0 - choice.goodput / best);
        }
    }
    println!("{name}: {} cases, {repeats} repeats of {rounds} rounds, ns per call", cases.len());
    println!("  ours, exact                    {}", Spread::of(ours.iter().copied()));
    println!("  {SAMPLES} samples, artifact           {}", Spread::of(artifact.iter().copied()));
    println!("  {SAMPLES} samples, our step times     {}", Spread::of(sampled.iter().copied()));
    let kept = verdict(ratio.median >= TARGET);
    println!("  times faster than the faster   {ratio:.2}   target {TARGET}: {kept}");
    println!(
        "  goodput lost by sampling, at most: {:.2} % by our step times, {:.2} % by the artifact, which goes over \
         a limit in {over} cases besides",
        100.0 * shortfall,
        100.0 * artifact_shortfall
    );
}

fn main() {
    let (repeats, rounds) = if is_quick() { (5, 20) } else { (21, 200) };
    println!("Best batch; median (least to most) over repeats.");
    compare("Seeded cases", &seeded_cases(), repeats, rounds);
    if let Some(cases) = reference_cases() {
        compare("Reference cases", &cases, repeats, rounds);
    }
}
