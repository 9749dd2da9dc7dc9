//! How far below its own bound a plan is, and what it costs, from 64 GPUs to 100,000.
//!
//! `cargo xtask bench gaps [--quick]`
//!
//! Instances are drawn by `tests/common/instances.rs`. Times are CPU time of whole calls as the scheduler makes
//! them, on snapshots whose tables are empty: filling them is part of the figure. Every value is checked against
//! the one evaluator before it is printed.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and the environment")]
#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../../pollux-model/benches/measure/mod.rs"]
mod measure;

use common::instances::{Instance, with_fresh_tables};
use common::reference;
use common::rounds::{allocations, judge};
use measure::{Spread, cpu_secs, is_quick, verdict};
use pollux_model::Allocation;
use pollux_policy::{AnyPolicy, Certificate, Plan, Pollux, Settings, Snapshot, Terms};

/// What the project promises of a row: gaps in percent of the bound, CPU seconds for one plan.
#[derive(Clone, Copy, Default)]
struct Promise {
    mean: Option<f64>,
    worst: Option<f64>,
    secs: Option<f64>,
}

/// Instances of one size.
struct Row {
    nodes: u32,
    gpus_per_node: u32,
    jobs: u32,
    is_warm: bool,
    instances: u64,
    promise: Promise,
}

/// The first of the seeds that are reported; no setting was chosen by looking at these.
const FIRST_SEED: u64 = 5_001;

/// One more job among this many: at most this part of a cold plan's time, and at most so many seconds.
const REPLAN_PART: f64 = 0.1;
const REPLAN_SECS: f64 = 0.05;

fn main() {
    let policy = Pollux { settings: Settings::PAPER };
    println!(
        "Gaps to the certified bound, in % of it; CPU ms of a plan, tables included; promises in brackets."
    );
    println!(
        "cluster   jobs   start  runs  mean gap        worst gap       CPU ms, mean  median (least to most)"
    );
    let mut kept = true;
    for row in rows(is_quick()) {
        kept &= measure_row(&policy, &row);
    }
    kept &= replan(&policy, is_quick());
    kept &= reference_rows();
    println!("All promises: {}", verdict(kept));
}

fn rows(is_quick: bool) -> Vec<Row> {
    let few = Promise { mean: Some(0.35), worst: Some(1.2), secs: None };
    let many = Promise { mean: Some(0.12), worst: Some(0.4), secs: None };
    let medium = Promise { mean: Some(0.45), worst: Some(0.6), secs: None };
    let large = Promise { mean: Some(0.1), worst: Some(0.1), secs: Some(0.7) };
    let huge = Promise { secs: Some(10.0), ..Promise::default() };
    let sizes = [
        (16, 4, 8, 20, few),
        (16, 4, 14, 20, few),
        (16, 4, 20, 20, many),
        (16, 4, 30, 20, many),
        (16, 4, 40, 20, many),
        (64, 8, 100, 8, medium),
        (1_280, 8, 5_000, 2, large),
        (12_500, 8, 20_000, 1, huge),
    ];
    let mut rows = Vec::new();
    for (nodes, gpus_per_node, jobs, instances, promise) in sizes {
        let is_huge = nodes > 10_000;
        if is_quick && is_huge {
            continue;
        }
        let instances = if is_quick { instances.min(if nodes > 100 { 1 } else { 3 }) } else { instances };
        rows.push(Row { nodes, gpus_per_node, jobs, is_warm: false, instances, promise });
        if !is_huge {
            rows.push(Row { nodes, gpus_per_node, jobs, is_warm: true, instances, promise });
        }
    }
    rows
}

/// Plans and prints one row; whether its promise is kept.
fn measure_row(policy: &Pollux, row: &Row) -> bool {
    let Row { nodes, gpus_per_node, jobs, promise, .. } = *row;
    let (mut gaps, mut secs, mut starved) = (Vec::new(), Vec::new(), 0);
    for seed in FIRST_SEED..FIRST_SEED + row.instances {
        let instance = Instance::new(nodes, gpus_per_node, jobs, seed);
        let snapshot = if row.is_warm { instance.warm(policy) } else { instance.cold() };
        let (plan, cpu) = timed(policy, &snapshot, seed);
        secs.push(cpu);
        if let Some(certificate) = checked(&snapshot, &plan, policy.settings) {
            gaps.push(100.0 * certificate.gap());
            starved += certificate.starved.total() - certificate.starved_bound.total();
        }
    }
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let worst = gaps.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let cpu = secs.iter().sum::<f64>() / secs.len() as f64;
    let within = |limit: Option<f64>, figure: f64| limit.is_none_or(|limit| figure <= limit);
    let has_all = gaps.len() == secs.len() && starved == 0;
    let slowest = secs.iter().copied().fold(0.0, f64::max);
    let kept = has_all
        && within(promise.mean, mean)
        && within(promise.worst, worst)
        && within(promise.secs, slowest);
    let bracket = |limit: Option<f64>| limit.map_or(String::new(), |limit| format!("[{limit}]"));
    let gap = |gap: f64| if has_all { format!("{gap:.3}") } else { "none".to_owned() };
    println!(
        "{:<8} {jobs:>6}  {:<5} {:>5}  {:<15} {:<15} {:<13} {:<30.2} {}{}",
        format!("{nodes}x{gpus_per_node}"),
        if row.is_warm { "warm" } else { "cold" },
        row.instances,
        format!("{} {}", gap(mean), bracket(promise.mean)),
        format!("{} {}", gap(worst), bracket(promise.worst)),
        format!("{:.2} {}", 1e3 * cpu, bracket(promise.secs.map(|secs| 1e3 * secs))),
        Spread::of(secs.iter().map(|secs| 1e3 * secs)),
        verdict(kept),
        if has_all { "" } else { " (no certificate, or more starved than its bound)" },
    );
    kept
}

/// One more job in a cluster that has been planned before: tables filled, prices carried, everybody in place.
fn replan(policy: &Pollux, is_quick: bool) -> bool {
    let instance = Instance::new(1_280, 8, 5_000, FIRST_SEED);
    let mut snapshot = instance.cold();
    let (mut plan, cold) = timed(policy, &snapshot, 0);
    let (mut secs, mut parts, mut gaps, mut moved) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for seed in 0..=if is_quick { 3 } else { 10 } {
        let next = instance.one_more(&snapshot, &plan);
        let (next_plan, cpu) = timed(policy, &next, seed);
        // The first round after a cold start may move what later ones do not; it does not count.
        if seed > 0 {
            secs.push(cpu);
            parts.push(cpu / cold);
            gaps.extend(checked(&next, &next_plan, policy.settings).map(|found| 100.0 * found.gap()));
            let changes = next.jobs().iter().zip(&next_plan.jobs);
            moved.push(changes.filter(|(job, answer)| job.holds != answer.allocation).count() as f64);
        }
        (snapshot, plan) = (next, next_plan);
    }
    let (secs, parts) = (Spread::of(secs), Spread::of(parts));
    let kept = parts.median <= REPLAN_PART && secs.median <= REPLAN_SECS;
    let in_ms = Spread { median: 1e3 * secs.median, least: 1e3 * secs.least, most: 1e3 * secs.most };
    println!(
        "One more job of 5,000 on 1280x8: {in_ms:.1} ms [{}], {parts:.3} [{REPLAN_PART}] of the cold plan's {:.0} \
         ms; jobs changed {:.0}: {}",
        1e3 * REPLAN_SECS,
        1e3 * cold,
        Spread::of(moved),
        verdict(kept)
    );
    if !gaps.is_empty() {
        println!("  gaps there: {:.3} %", Spread::of(gaps));
    }
    kept
}

/// The rounds that the authors' implementation planned, where the data is there.
fn reference_rows() -> bool {
    let Some(instances) = reference::instances() else { return true };
    println!(
        "Reference instances, fitness as the artifact codes it: ours, the reference's best, our gap, CPU ms."
    );
    let mut kept = true;
    for instance in instances {
        let policy = Pollux { settings: instance.settings() };
        let mut secs = Vec::new();
        let mut last = None;
        for seed in 1..=5 {
            let snapshot = with_fresh_tables(&instance.snapshot, instance.gpus_per_node);
            let (plan, cpu) = timed(&policy, &snapshot, seed);
            secs.push(1e3 * cpu);
            last = Some(plan);
        }
        let plan = last.expect("five plans");
        let ours = instance.fitness(&allocations(&plan));
        let judged = |allocations: &[Allocation]| instance.fitness(allocations);
        let theirs = instance.answers.iter().map(|answer| judged(&answer.allocations)).fold(0.0, f64::max);
        let their_secs =
            instance.answers.iter().filter_map(|answer| answer.cpu_secs).fold(f64::INFINITY, f64::min);
        let gap = plan.certificate.map_or("none".to_owned(), |found| format!("{:.3} %", 100.0 * found.gap()));
        kept &= ours >= theirs * (1.0 - 1e-9);
        println!(
            "{:<14} {ours:.6}  {theirs:.6}  {gap:<8}  {:.1}; the reference on record {:.0}: {}",
            instance.name,
            Spread::of(secs),
            1e3 * their_secs,
            verdict(ours >= theirs * (1.0 - 1e-9))
        );
    }
    kept
}

/// A plan, and its CPU seconds.
fn timed(policy: &dyn AnyPolicy, snapshot: &Snapshot, seed: u64) -> (Plan, f64) {
    let before = cpu_secs();
    let plan = policy.plan(snapshot, &Terms::seeded(seed));
    (plan, cpu_secs() - before)
}

/// The plan's certificate, after the evaluator came to the same value for an allocation that fits.
fn checked(snapshot: &Snapshot, plan: &Plan, settings: Settings) -> Option<Certificate> {
    let allocations = allocations(plan);
    let mut jobs = snapshot.jobs().to_vec();
    for (job, allocation) in jobs.iter_mut().zip(&allocations) {
        job.holds = allocation.clone();
    }
    Snapshot::new(snapshot.cluster().clone(), jobs).expect("a plan overfills no node");
    let certificate = plan.certificate?;
    let judgement = judge(snapshot, &settings, &allocations);
    let (claimed, judged) = (certificate.value, judgement.value);
    assert!((claimed / judged - 1.0).abs() < 1e-9, "a plan claims {claimed}, it is worth {judged}");
    assert!(certificate.bound >= claimed * (1.0 - 1e-12), "{} is no bound on {claimed}", certificate.bound);
    Some(certificate)
}
