//! How the time of a plan grows with the cluster: ours beside the authors' genetic algorithm, in one run.
//!
//! `cargo xtask bench scaling [--quick]`
//!
//! One job for every two GPUs, nodes of eight, nobody holds anything, tables empty. CPU time of whole calls. A policy
//! drops out where its next plan would take more than a minute. Writes a table to standard output, and a plot of it
//! to `target/bench/scaling.svg` and `.png`.
#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]

#[path = "../../pollux-policy/tests/common/mod.rs"]
mod common;
#[path = "../../pollux-model/benches/measure/mod.rs"]
mod measure;

use std::path::Path;
use std::time::Instant;

use common::instances::Instance;
use common::rounds::allocations;
use measure::{Spread, cpu_secs, is_quick};
use pollux_policy::{AnyPolicy, Judgement, Settings, Snapshot, Stake, Stopped, Terms, Valuation, policies};
use pollux_report::{Axis, Figure, Panel, Series, Style};

/// By their names in `policies()`; one that is not there is left out, and said so.
const POLICIES: [&str; 3] = ["pollux", "pollux-ga-osdi21", "pollux-ga-paper"];

const GPUS_PER_NODE: u32 = 8;

/// Who takes longer than this plans one instance of the next size, not several.
const SLOW_SECS: f64 = 2.0;

/// One policy on one size of cluster.
struct Point {
    gpus: u32,
    secs: Spread,
    /// Jobs with nothing, on average.
    starved: f64,
    /// Mean speed-up of the others by the paper's objective, on average.
    value: f64,
    /// Whether the deadline cut a plan.
    is_cut: bool,
}

/// One policy on all sizes it came to.
struct Line {
    name: &'static str,
    points: Vec<Point>,
    /// The size at which it dropped out, and what one plan there would have taken.
    dropped: Option<(u32, f64)>,
}

fn main() {
    let (most_gpus, instances, limit_secs) = if is_quick() { (1_280, 1, 5.0) } else { (10_240, 3, 60.0) };
    let sizes = [64, 128, 320, 640, 1_280, 2_560, 5_120, 10_240];
    let sizes: Vec<u32> = sizes.into_iter().filter(|&gpus| gpus <= most_gpus).collect();
    println!(
        "CPU time of a plan; one job for every two GPUs; {instances} instances a size, no table filled."
    );
    println!(
        "policy             GPUs    jobs  ms, median (least to most)      jobs without  mean speed-up of others"
    );
    let known = policies();
    let mut lines = Vec::new();
    for name in POLICIES {
        match known.iter().find(|policy| policy.about().name == name) {
            Some(policy) => lines.push(follow(&**policy, &sizes, instances, limit_secs)),
            None => println!("{name}: there is no such policy"),
        }
    }
    for line in &lines {
        if let (Some(first), Some(last)) = (line.points.first(), line.points.last()) {
            let growth = last.secs.median / first.secs.median;
            let times = f64::from(last.gpus) / f64::from(first.gpus);
            println!(
                "{}: {growth:.0} times the time for {times:.0} times the GPUs, from {} to {}: as their power {:.2}",
                line.name,
                first.gpus,
                last.gpus,
                growth.ln() / times.ln()
            );
        }
        if let Some((gpus, secs)) = line.dropped {
            println!("{}: stopped before {gpus} GPUs, where a plan would take about {secs:.0} s", line.name);
        }
    }
    draw(&lines);
}

/// Plans ever larger clusters, as long as one plan stays within the limit.
fn follow(policy: &dyn AnyPolicy, sizes: &[u32], instances: u64, limit_secs: f64) -> Line {
    let mut line = Line { name: policy.about().name, points: Vec::new(), dropped: None };
    for &gpus in sizes {
        if let Some(expected) = expected_secs(&line.points, gpus)
            && expected > limit_secs
        {
            line.dropped = Some((gpus, expected));
            break;
        }
        let is_slow = line.points.last().is_some_and(|last| last.secs.median > SLOW_SECS);
        let point = measure_point(policy, gpus, if is_slow { 1 } else { instances }, limit_secs);
        println!(
            "{:<17} {gpus:>5}  {:>6}  {:<30.1}  {:<12.1}  {:.3}{}",
            line.name,
            gpus / 2,
            Spread {
                median: 1e3 * point.secs.median,
                least: 1e3 * point.secs.least,
                most: 1e3 * point.secs.most
            },
            point.starved,
            point.value,
            if point.is_cut { "  (cut by the deadline)" } else { "" },
        );
        let is_cut = point.is_cut;
        line.points.push(point);
        if is_cut {
            break;
        }
    }
    line
}

/// What a plan will take at the next size if it goes on growing as it last did, but at least in proportion.
fn expected_secs(points: &[Point], gpus: u32) -> Option<f64> {
    let [.., before, last] = points else { return None };
    let ratio = |to: u32, from: u32| f64::from(to) / f64::from(from);
    let power = (last.secs.median / before.secs.median).ln() / ratio(last.gpus, before.gpus).ln();
    Some(last.secs.median * ratio(gpus, last.gpus).powf(power.max(1.0)))
}

fn measure_point(policy: &dyn AnyPolicy, gpus: u32, instances: u64, limit_secs: f64) -> Point {
    let (mut secs, mut judged, mut is_cut) = (Vec::new(), Vec::new(), false);
    for seed in 1..=instances {
        let snapshot = Instance::new(gpus / GPUS_PER_NODE, GPUS_PER_NODE, gpus / 2, seed).cold();
        // A net only: on a busy machine a plan may take several times its CPU time.
        let start = Instant::now();
        let is_late = || start.elapsed().as_secs_f64() > 4.0 * limit_secs;
        let before = cpu_secs();
        let terms = Terms { deadline: Some(&is_late), ..Terms::seeded(seed) };
        let plan = policy.plan(&snapshot, &terms);
        secs.push(cpu_secs() - before);
        is_cut |= plan.work.stopped == Stopped::Deadline;
        judged.push(judge(&snapshot, &allocations(&plan)));
    }
    let mean = |of: fn(&Judgement) -> f64| judged.iter().map(of).sum::<f64>() / judged.len() as f64;
    Point {
        gpus,
        secs: Spread::of(secs),
        starved: mean(|judgement| f64::from(judgement.starved.total())),
        value: mean(|judgement| judgement.value),
        is_cut,
    }
}

/// By the paper's objective, whatever the policy's own.
fn judge(snapshot: &Snapshot, allocations: &[pollux_model::Allocation]) -> Judgement {
    let stakes = vec![Stake { weight: 1.0, remaining_secs: None }; snapshot.jobs().len()];
    Valuation::new(snapshot, &Settings::PAPER, &stakes).judge(snapshot, allocations)
}

fn draw(lines: &[Line]) {
    let mut panel = Panel::new("", Axis::log10("GPUs"), Axis::log10("CPU seconds of one plan"));
    for line in lines {
        let points = line.points.iter().map(|point| (f64::from(point.gpus), point.secs.median));
        panel = panel.with_series(Series::new(line.name, points).with_style(Style::LineWithPoints));
    }
    if let Some(first) = lines.first().and_then(|line| line.points.first()) {
        let at = |gpus: u32| (f64::from(gpus), first.secs.median * f64::from(gpus) / f64::from(first.gpus));
        let most = lines.iter().flat_map(|line| &line.points).map(|point| point.gpus).max();
        let ends = [at(first.gpus), at(most.unwrap_or(first.gpus))];
        panel = panel.with_series(Series::new("in proportion", ends).reference());
    }
    let mut figure = Figure::new("Time to plan a round")
        .with_subtitle("One job for every two GPUs, nodes of eight, a cold start; median over instances")
        .with_panel(panel);
    let dropped: Vec<String> = lines
        .iter()
        .filter_map(|line| {
            let (gpus, secs) = line.dropped?;
            Some(format!("{} stopped before {gpus} GPUs (about {secs:.0} s)", line.name))
        })
        .collect();
    if !dropped.is_empty() {
        figure = figure.with_note(dropped.join("; "));
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it lies in the target folder");
    let folder = target.join("bench");
    std::fs::create_dir_all(&folder).expect("the target folder can be written to");
    let png = figure.to_png(2.0).expect("a scale of two is fine");
    for (name, bytes) in [("scaling.svg", figure.to_svg().into_bytes()), ("scaling.png", png)] {
        std::fs::write(folder.join(name), bytes).expect("the target folder can be written to");
        println!("wrote {}", folder.join(name).display());
    }
}
