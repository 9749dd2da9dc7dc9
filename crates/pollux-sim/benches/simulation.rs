//! What a simulation costs: CPU seconds of one core and peak memory.
//!
//! `cargo xtask bench simulation [--quick]`
//!
//! Each run is a process of its own, so that its peak memory is its own too: the benchmark starts itself with the
//! name of a case. Times are CPU time of the whole process, from nothing to the figures of the run; reading traces and
//! generating jobs are part of them, and said apart. The case in the artifact's world needs the authors' data and the
//! table of `cargo xtask osdi21-table`, and is left out loudly where one is absent.
#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]
#![allow(clippy::print_stderr, reason = "what was not measured is said")]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../../pollux-model/benches/measure/mod.rs"]
mod measure;

use std::process::{Command, exit};

use measure::{Spread, cpu_secs, is_quick, verdict};
use pollux_api::parse_policy;
use pollux_sim::campaign::World;
use pollux_sim::osdi21::{self, Limits};
use pollux_sim::profile::builtin;
use pollux_sim::workload::{Checks, Workload, read_workload};
use pollux_sim::{ClusterShape, Metrics, simulation};

/// Goes before the name of a case when the benchmark starts itself.
const CASE: &str = "--case";

/// A run that is measured.
struct Case {
    name: &'static str,
    about: &'static str,
    cluster: &'static str,
    /// A recipe in our own world; in the artifact's, a file in the data folder.
    jobs: Jobs,
    repeats: usize,
    /// CPU seconds and megabytes that the project promises to stay below.
    most_secs: Option<f64>,
    most_megabytes: Option<f64>,
    /// What the authors' simulator took for the same jobs: CPU seconds and megabytes.
    theirs: Option<(f64, f64)>,
}

enum Jobs {
    Generated(&'static str),
    Artifact(&'static str),
}

const CASES: [Case; 3] = [
    Case {
        name: "own",
        about: "160 jobs, our own world",
        cluster: "16x4:t4",
        jobs: Jobs::Generated("generate"),
        repeats: 7,
        most_secs: Some(1.0),
        most_megabytes: Some(30.0),
        theirs: None,
    },
    // Theirs: one run of the unmodified artifact on another machine, 1,397 CPU seconds and 153 MiB.
    Case {
        name: "artifact",
        about: "160 jobs, the artifact's world",
        cluster: "16x4:t4",
        jobs: Jobs::Artifact("pollux-osdi21/workloads/workload-6.csv"),
        repeats: 7,
        most_secs: Some(1.0),
        most_megabytes: Some(30.0),
        theirs: Some((1_397.0, 153.0 * 1.048_576)),
    },
    Case {
        name: "large",
        about: "3,200 jobs, our own world",
        cluster: "320x4:t4",
        jobs: Jobs::Generated("generate:jobs=3200"),
        repeats: 3,
        most_secs: Some(20.0),
        most_megabytes: None,
        theirs: None,
    },
];

/// What one process tells of its run.
#[derive(serde::Serialize, serde::Deserialize)]
struct Cost {
    /// CPU seconds of the whole process.
    cpu_secs: f64,
    /// CPU seconds of it before the first job arrives.
    setup_secs: f64,
    /// Peak memory in megabytes; none where the system does not say.
    megabytes: Option<f64>,
    rounds: f64,
    mean_gap: Option<f64>,
    avg_jct_secs: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(place) = arguments.iter().position(|argument| argument == CASE) {
        let case = CASES.iter().find(|case| arguments.get(place + 1).is_some_and(|name| name == case.name));
        let seed = arguments.get(place + 2).and_then(|seed| seed.parse().ok()).unwrap_or(1);
        match case.and_then(|case| run(case, seed)) {
            Some(cost) => println!("{}", serde_json::to_string(&cost).expect("figures are JSON")),
            None => exit(1),
        }
        return;
    }
    println!("One simulation with `pollux:tuned`: CPU of one core, a process each, seeds from 1 on.");
    println!("Median (least to most); promises in brackets; MB are millions of bytes.");
    let mut kept = true;
    for case in &CASES {
        kept &= measure_case(case);
    }
    println!("All promises: {}", verdict(kept));
}

/// Measures and prints one case; whether its promises are kept. What cannot be measured breaks none.
fn measure_case(case: &Case) -> bool {
    if matches!(case.jobs, Jobs::Artifact(_)) && common::reference().is_none() {
        eprintln!("NOT MEASURED: {} on {}; what is absent is said above", case.about, case.cluster);
        return true;
    }
    let repeats = if is_quick() { 1 } else { case.repeats };
    let costs: Vec<Cost> = (1..=repeats).map(|seed| in_own_process(case, seed)).collect();
    let of = |value: fn(&Cost) -> f64| Spread::of(costs.iter().map(value));
    let secs = of(|cost| cost.cpu_secs);
    let memory: Option<Vec<f64>> = costs.iter().map(|cost| cost.megabytes).collect();
    let memory = memory.map(Spread::of);
    let below = |most: Option<f64>, figure: f64| most.is_none_or(|most| figure < most);
    let kept = below(case.most_secs, secs.median)
        && memory.is_none_or(|memory| below(case.most_megabytes, memory.median));
    let bracket = |most: Option<f64>| most.map_or(String::new(), |most| format!(" [{most}]"));
    let memory_text = memory.map_or("not said by this system".to_owned(), |memory| format!("{memory:.1}"));
    println!("{} on {}, {repeats} runs: {}", case.about, case.cluster, verdict(kept));
    println!("  CPU s         {secs:.3}{}", bracket(case.most_secs));
    println!("    of it setup {:.3}", of(|cost| cost.setup_secs));
    println!("  peak MB       {memory_text}{}", bracket(case.most_megabytes));
    println!("  rounds        {:.0}", of(|cost| cost.rounds));
    println!("  ms a round    {:.3}", of(|cost| 1e3 * (cost.cpu_secs - cost.setup_secs) / cost.rounds));
    println!("  mean gap, %   {:.3}", of(|cost| 100.0 * cost.mean_gap.unwrap_or(f64::NAN)));
    println!("  average JCT   {:.0} s", of(|cost| cost.avg_jct_secs));
    if let Some((their_secs, their_megabytes)) = case.theirs {
        let memory = memory.map_or(String::new(), |memory| {
            format!(", {:.0} times our memory", their_megabytes / memory.median)
        });
        println!(
            "  the authors' simulator on record: {their_secs:.0} CPU s and {their_megabytes:.0} MB: {:.0} times our \
             time{memory}",
            their_secs / secs.median
        );
    }
    kept
}

/// Runs a case in a process of its own.
fn in_own_process(case: &Case, seed: usize) -> Cost {
    let program = std::env::current_exe().expect("a running program has a file");
    let output = Command::new(program)
        .args([CASE, case.name, &seed.to_string()])
        .output()
        .expect("it starts a second time");
    if !output.status.success() {
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        eprintln!("error: the case `{}` failed ({})", case.name, output.status);
        exit(1);
    }
    serde_json::from_slice(&output.stdout).expect("a case prints its cost")
}

/// Runs a case here; none if what it needs is absent.
fn run(case: &Case, seed: u64) -> Option<Cost> {
    let cluster: ClusterShape = case.cluster.parse().expect("the cluster of a case is one");
    let (world, jobs) = world(cluster, &case.jobs, seed)?;
    let policy = parse_policy("pollux:tuned").expect("there is such a policy");
    let setup_secs = cpu_secs();
    let run = match world.simulate(&jobs, policy.as_ref(), seed) {
        Ok(run) => run,
        Err(error) => {
            eprintln!("error: {error}");
            return None;
        }
    };
    let metrics = Metrics::of(&run);
    Some(Cost {
        cpu_secs: cpu_secs(),
        setup_secs,
        megabytes: peak_megabytes(),
        rounds: metrics.rounds,
        mean_gap: metrics.mean_gap,
        avg_jct_secs: metrics.avg_jct_secs,
    })
}

fn world(cluster: ClusterShape, jobs: &Jobs, seed: u64) -> Option<(World, Workload)> {
    match jobs {
        Jobs::Generated(recipe) => {
            let profiles =
                builtin().into_iter().map(|profile| (profile.name().to_owned(), profile)).collect();
            let world =
                World::Profiles { profiles, options: simulation::Options { cluster, ..Default::default() } };
            let recipe = recipe.parse().expect("the recipe of a case is one");
            let jobs = world.generate(&recipe, seed).expect("the built-in profiles have all it names");
            Some((world, jobs))
        }
        Jobs::Artifact(file) => {
            let reference = common::reference()?;
            let jobs = read_workload(&reference.data.join(file), Checks::known(&Limits::known()));
            let jobs = jobs.map_err(|error| eprintln!("error: {error}")).ok()?;
            let options = osdi21::Options { cluster, ..Default::default() };
            Some((World::Osdi21 { applications: reference.by_name(), options }, jobs))
        }
    }
}

/// The most memory this process ever held, in millions of bytes.
fn peak_megabytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1_024.0 / 1e6)
}
