//! A plan at 64 GPUs and 40 jobs: ours against the released policy of the authors, in one run.
//!
//! `cargo xtask bench adaptdl [--quick]`, which prepares the Python it needs.
//!
//! Both plan the same rounds and are charged CPU time of one thread, from job descriptions to allocations. They do
//! not seek the same thing, and the output says so: times compare what a scheduler waits for, not two ways to one
//! goal. Ours runs half of its repeats before theirs and half after.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and the environment")]
#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../../pollux-model/benches/measure/mod.rs"]
mod measure;

use std::ffi::OsStr;
use std::io::Write as _;
use std::process::{Command, Stdio, exit};

use common::instances::{Instance, with_fresh_tables};
use common::rounds::{allocations, judge};
use measure::{Spread, cpu_secs, is_quick};
use pollux_model::{Allocation, Compute, NodeId};
use pollux_policy::{AnyPolicy as _, Job, Pollux, Settings, Snapshot, Terms};
use serde_json::{Value, json};

const NODES: u32 = 16;
const GPUS_PER_NODE: u32 = 4;
const JOBS: u32 = 40;

/// Names the interpreter, which has what `adaptdl-requirements.txt` lists.
const PYTHON: &str = "POLLUX_BENCH_PYTHON";

/// Their side of the comparison.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/python/adaptdl_policy.py");

/// What either answers to one round, and how long each repeat took.
struct Answer {
    allocations: Vec<Allocation>,
    secs: Vec<f64>,
}

fn main() {
    let Some(python) = std::env::var_os(PYTHON) else {
        fail(&format!(
            "{PYTHON} does not name a Python with adaptdl-sched\n\nhint: `cargo xtask bench adaptdl` installs one and \
             sets it"
        ))
    };
    // Theirs takes seconds, ours milliseconds.
    let (rounds, their_repeats, our_repeats) = if is_quick() { (1, 1, 10) } else { (5, 2, 20) };
    println!("One plan for {JOBS} jobs on {NODES}x{GPUS_PER_NODE} GPUs, the same {rounds} rounds for both:");
    println!(
        "  ours    harmonic mean of goodput over that of a fair share, times the paper's restart factor"
    );
    println!(
        "  theirs  adaptdl-sched 0.2.11 as released: sum of goodputs over that of one GPU, 0.9 for who is moved,"
    );
    println!(
        "          and as few of up to twice the nodes as it can (it scales the cluster too); 100 generations"
    );
    let colds: Vec<Snapshot> =
        (1..=rounds).map(|seed| Instance::new(NODES, GPUS_PER_NODE, JOBS, seed).cold()).collect();
    let arrived: Vec<Snapshot> = colds.iter().map(in_place).collect();
    compare("nobody holds anything", &colds, &python, their_repeats, our_repeats);
    compare(
        "everybody holds one GPU, as theirs gives to who arrives",
        &arrived,
        &python,
        their_repeats,
        our_repeats,
    );
}

/// The round with one GPU for each job, node after node: what the released scheduler does on arrival.
fn in_place(snapshot: &Snapshot) -> Snapshot {
    let mut jobs = snapshot.jobs().to_vec();
    for (index, job) in (0_u32..).zip(&mut jobs) {
        job.holds = Allocation::whole([(NodeId(index / GPUS_PER_NODE), 1)]);
        job.attained = job.age.as_secs_f64();
    }
    Snapshot::new(snapshot.cluster().clone(), jobs).expect("there are fewer jobs than GPUs")
}

fn compare(what: &str, rounds: &[Snapshot], python: &OsStr, their_repeats: u32, our_repeats: u32) {
    // Warms up.
    ours(rounds, 1);
    let mut ours_before = ours(rounds, our_repeats / 2);
    let (versions, theirs) = theirs(rounds, python, their_repeats);
    for (before, after) in ours_before.iter_mut().zip(ours(rounds, our_repeats - our_repeats / 2)) {
        before.secs.extend(after.secs);
    }
    let ours = ours_before;
    let spread = |answers: &[Answer], unit: f64| {
        Spread::of(answers.iter().flat_map(|answer| &answer.secs).map(|secs| unit * secs))
    };
    let median = |answer: &Answer| Spread::of(answer.secs.iter().copied()).median;
    let ratios = ours.iter().zip(&theirs).map(|(ours, theirs)| median(theirs) / median(ours));
    let ratio = Spread::of(ratios);
    println!("Start: {what} ({versions})");
    println!("  ours    {:.2} ms   {}", spread(&ours, 1e3), quality(rounds, &ours));
    println!("  theirs  {:.2} s    {}", spread(&theirs, 1.0), quality(rounds, &theirs));
    println!("  ratio   {ratio:.0} by rounds");
}

/// How the answers fare by our objective, and how many they leave with nothing.
fn quality(rounds: &[Snapshot], answers: &[Answer]) -> String {
    let judged: Vec<_> = rounds
        .iter()
        .zip(answers)
        .map(|(snapshot, answer)| judge(snapshot, &Settings::PAPER, &answer.allocations))
        .collect();
    let starved = Spread::of(judged.iter().map(|judgement| f64::from(judgement.starved.total())));
    let value = Spread::of(judged.iter().map(|judgement| judgement.value));
    let gpus =
        answers.iter().map(|answer| answer.allocations.iter().map(Allocation::gpus).fold(0.0, |a, b| a + b));
    format!(
        "GPUs used {:.0}, jobs without {starved:.0}, our mean speed-up of the others {value:.3}",
        Spread::of(gpus)
    )
}

fn ours(rounds: &[Snapshot], repeats: u32) -> Vec<Answer> {
    let policy = Pollux { settings: Settings::PAPER };
    let answers = rounds.iter().map(|snapshot| {
        let (mut secs, mut answer) = (Vec::new(), Vec::new());
        for repeat in 0..repeats {
            let fresh = with_fresh_tables(snapshot, GPUS_PER_NODE);
            let before = cpu_secs();
            let plan = policy.plan(&fresh, &Terms::seeded(u64::from(repeat)));
            secs.push(cpu_secs() - before);
            answer = allocations(&plan);
        }
        Answer { allocations: answer, secs }
    });
    answers.collect()
}

/// Versions in words, and their answers.
fn theirs(rounds: &[Snapshot], python: &OsStr, repeats: u32) -> (String, Vec<Answer>) {
    let input = json!(rounds.iter().map(round_as_json).collect::<Vec<_>>()).to_string();
    let mut command = Command::new(python);
    // One thread: CPU time is then the time a plan takes.
    for threads in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"] {
        command.env(threads, "1");
    }
    command.arg(SCRIPT).arg(repeats.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let output = command.spawn().and_then(|mut child| {
        child.stdin.take().expect("its input is a pipe").write_all(input.as_bytes())?;
        child.wait_with_output()
    });
    let report: Value = match output {
        Ok(output) if output.status.success() => {
            serde_json::from_slice(&output.stdout).expect("the script prints JSON")
        }
        Ok(output) => fail(&format!("{SCRIPT} failed ({})", output.status)),
        Err(error) => fail(&format!("cannot run {}: {error}", python.display())),
    };
    let version = |name: &str| report["versions"][name].as_str().unwrap_or("?").to_owned();
    let compiled =
        if report["versions"]["compiled"] == true { "compiled" } else { "not compiled, as installed" };
    let versions = format!(
        "Python {}, NumPy {}, pymoo {} {compiled}",
        version("python"),
        version("numpy"),
        version("pymoo")
    );
    let answers = report["rounds"].as_array().expect("an answer per round").iter().map(|round| Answer {
        allocations: round["allocations"].as_array().expect("a list").iter().map(allocation).collect(),
        secs: round["secs"].as_array().expect("times").iter().filter_map(Value::as_f64).collect(),
    });
    (versions, answers.collect())
}

fn allocation(nodes: &Value) -> Allocation {
    let nodes = nodes.as_array().expect("a list of nodes").iter();
    let id = |node: &Value| node.as_u64().and_then(|node| u32::try_from(node).ok()).expect("a node");
    Allocation::whole(nodes.map(|node| (NodeId(id(node)), 1)))
}

fn round_as_json(snapshot: &Snapshot) -> Value {
    let jobs: Vec<Value> = snapshot.jobs().iter().map(job_as_json).collect();
    json!({ "num_nodes": NODES, "gpus_per_node": GPUS_PER_NODE, "jobs": jobs })
}

fn job_as_json(job: &Job) -> Value {
    let (_, curve) = job.knows.learned.curves.iter().next().expect("every drawn job has a model");
    let (params, limits) = (curve.model().params(), curve.model().limits());
    let Compute::Linear { alpha, beta } = params.grad else { unreachable!("drawn jobs have no other form") };
    let (local, node) = (params.sync_local, params.sync_node);
    // Any moments of this ratio: only it matters.
    let noise = curve.model().noise().samples() / limits.initial().0 as f64;
    let (sqr, var) = if noise.is_finite() { (1.0, noise) } else { (0.0, 1.0) };
    let holds = job.holds.iter().flat_map(|(node, share)| vec![node.0; share.n_replicas() as usize]);
    json!({
        "perf_params": [alpha, beta, node.alpha, node.beta, local.alpha, local.beta, params.gamma],
        "grad_params": { "sqr": sqr, "var": var },
        "init_batch_size": limits.initial().0,
        "max_batch_size": limits.max().0,
        "atomic_bsz_range": [limits.micro_min(), limits.micro_max()],
        "max_replicas": job.max_gpus,
        "age_secs": job.age.as_secs(),
        "holds": holds.collect::<Vec<_>>(),
    })
}

#[expect(clippy::print_stderr, reason = "errors go to standard error")]
fn fail(message: &str) -> ! {
    eprintln!("error: {message}");
    exit(1)
}
