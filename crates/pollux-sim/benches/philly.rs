//! What a simulation of the whole Philly trace costs: CPU seconds of one core and peak memory.
//!
//! `cargo xtask bench philly [--quick]`; the short form takes the first 5,000 jobs.
//!
//! 82,247 jobs over 109 days, on 128 nodes of 8 GPUs; a process for each policy, so that peak memory is its own. Needs the
//! trace (`pollux-osdi21/traces/philly.csv` of the data folder), and says so loudly where it is absent.
#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]
#![allow(clippy::print_stderr, reason = "what was not measured is said")]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../../pollux-model/benches/measure/mod.rs"]
#[allow(dead_code, reason = "a whole trace is run once")]
mod measure;

use std::process::{Command, exit};

use measure::{cpu_secs, is_quick, verdict};
use pollux_api::parse_policy;
use pollux_sim::campaign::World;
use pollux_sim::traces::{TraceSpec, read_trace};
use pollux_sim::{Kept, Metrics, simulation};

/// Goes before the name of a policy when the benchmark starts itself.
const CASE: &str = "--case";
const CLUSTER: &str = "128x8:t4";
const QUICK_JOBS: usize = 5_000;

/// Policies, and CPU seconds that the project promises to stay below for the whole trace.
const POLICIES: [(&str, f64); 2] = [("tiresias", 300.0), ("pollux", 900.0)];
/// The same of memory, in millions of bytes.
const MOST_MEGABYTES: f64 = 2_000.0;

/// What one process tells of its run.
#[derive(serde::Serialize, serde::Deserialize)]
struct Cost {
    cpu_secs: f64,
    /// Peak memory in millions of bytes; none where the system does not say.
    megabytes: Option<f64>,
    n_jobs: usize,
    rounds: f64,
    avg_jct_secs: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(place) = arguments.iter().position(|argument| argument == CASE) {
        match arguments.get(place + 1).and_then(|policy| run(policy)) {
            Some(cost) => println!("{}", serde_json::to_string(&cost).expect("figures are JSON")),
            None => exit(1),
        }
        return;
    }
    let Some(spec) = spec() else { return };
    println!(
        "{} on {CLUSTER}: CPU of one core, a process each; promises for the whole trace in brackets.",
        spec.label()
    );
    let mut kept = true;
    for (policy, most_secs) in POLICIES {
        let Cost { cpu_secs, megabytes, n_jobs, rounds, avg_jct_secs } = in_own_process(policy);
        kept &= cpu_secs < most_secs && megabytes.is_none_or(|megabytes| megabytes < MOST_MEGABYTES);
        let memory = megabytes.map_or("not said by this system".to_owned(), |peak| format!("{peak:.0}"));
        println!("{policy}: {n_jobs} jobs, {rounds:.0} rounds, average JCT {:.2} h", avg_jct_secs / 3_600.0);
        println!("  CPU s       {cpu_secs:.1} [{most_secs:.0}]");
        println!("  peak MB     {memory} [{MOST_MEGABYTES:.0}]");
        println!("  ms a round  {:.3}", 1e3 * cpu_secs / rounds);
    }
    println!("All promises: {}", verdict(kept));
}

/// The trace, or its first jobs; none if it is not there.
fn spec() -> Option<TraceSpec> {
    let file = common::data()?.join("pollux-osdi21/traces/philly.csv");
    if !file.is_file() {
        eprintln!("NOT MEASURED: {} does not exist", file.display());
        return None;
    }
    Some(TraceSpec { jobs: is_quick().then_some(QUICK_JOBS), ..TraceSpec::whole(file) })
}

fn in_own_process(policy: &str) -> Cost {
    let program = std::env::current_exe().expect("a running program has a file");
    let quick = is_quick().then_some("--quick");
    let output = Command::new(program).args([CASE, policy]).args(quick).output().expect("it starts again");
    if !output.status.success() {
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        eprintln!("error: the run of `{policy}` failed ({})", output.status);
        exit(1);
    }
    serde_json::from_slice(&output.stdout).expect("a run prints its cost")
}

fn run(policy: &str) -> Option<Cost> {
    let trace = read_trace(&spec()?).map_err(|error| eprintln!("error: {error}")).ok()?;
    let cluster = CLUSTER.parse().expect("the cluster is one");
    let options = simulation::Options { cluster, log: Kept::NOTHING, ..Default::default() };
    let world = World::Profiles { profiles: common::profiles(), options };
    let jobs = world.map_trace(&trace, 1).expect("the built-in profiles have all classes");
    let policy = parse_policy(policy).expect("there is such a policy");
    let run = world.simulate(&jobs, policy.as_ref(), 1).map_err(|error| eprintln!("error: {error}")).ok()?;
    let metrics = Metrics::of(&run);
    Some(Cost {
        cpu_secs: cpu_secs(),
        megabytes: peak_megabytes(),
        n_jobs: run.jobs.len(),
        rounds: metrics.rounds,
        avg_jct_secs: metrics.avg_jct_secs,
    })
}

/// The most memory this process ever held, in millions of bytes.
fn peak_megabytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1_024.0 / 1e6)
}
