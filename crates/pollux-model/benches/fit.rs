//! Fits of the paper's linear form: ours against SciPy's L-BFGS-B with autograd gradients, in one run.
//!
//! `cargo xtask bench fit [--quick]`, which prepares the Python it needs.
//!
//! The cases are those of the reference data, or like ones made here where there is none. SciPy is charged CPU
//! time of its process, ours elapsed time: what else the machine does counts against us alone. Ours runs
//! half of its repeats before SciPy and half after.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and the environment")]
#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]

#[path = "../tests/common/mod.rs"]
mod common;
mod measure;

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, exit};
use std::time::Instant;

use common::Dice;
use measure::{Spread, is_quick, verdict};
use pollux_model::fit::{ComputeChoice, FitRequest, Observation, fit};
use pollux_model::{Affine, Compute, PerfParams, Placement};
use serde_json::{Value, json};

/// SciPy's mean time per fit over ours.
const TARGET: f64 = 1_000.0;

/// How far above SciPy's objective one of ours may be and count as as good.
const AS_GOOD: f64 = 1e-4;

/// No objective is further above SciPy's than this, relative to it.
const MOST_EXCESS: f64 = 0.01;

/// At least this part of the cases is as good.
const MOST_CASES: f64 = 0.95;

/// Names the interpreter, which has what `requirements.txt` lists.
const PYTHON: &str = "POLLUX_BENCH_PYTHON";

/// SciPy's side of the comparison.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/python/scipy_fit.py");

/// Observations, and the objective on record for them.
struct Case {
    observations: Vec<Observation>,
    recorded: Option<f64>,
}

/// What SciPy found, and how long each repeat took it.
struct Theirs {
    objective: f64,
    secs: Vec<f64>,
}

fn main() {
    let Some(python) = std::env::var_os(PYTHON) else {
        fail(&format!(
            "{PYTHON} does not name a Python with SciPy\n\nhint: `cargo xtask bench fit` installs one and sets it"
        ))
    };
    // Ours takes microseconds: many calls make one repeat.
    let (repeats, calls) = if is_quick() { (2, 50) } else { (10, 500) };
    let cases = if let Some(cases) = reference_cases() {
        println!("Fits of {} reference cases.", cases.len());
        cases
    } else {
        println!("Fits of synthetic cases: there is no reference data (see POLLUX_DATA).");
        synthetic_cases()
    };
    let time_ours = |choice: ComputeChoice, repeats: u32| -> Vec<Vec<f64>> {
        (0..repeats).map(|_| cases.iter().map(|case| time(case, choice, calls)).collect()).collect()
    };
    // Warms up.
    time_ours(ComputeChoice::Linear, 1);
    let half = repeats / 2;
    let mut ours = time_ours(ComputeChoice::Linear, half);
    let mut auto = time_ours(ComputeChoice::Auto, half);
    let (versions, theirs) = scipy(Path::new(&python), &cases, repeats);
    ours.extend(time_ours(ComputeChoice::Linear, repeats - half));
    auto.extend(time_ours(ComputeChoice::Auto, repeats - half));
    println!("{versions}; {repeats} repeats; times are medians (least to most) over repeats.");

    let kept = report_cases(&cases, &ours, &theirs);
    report_times(&ours, &auto, &theirs);
    if !kept {
        fail("the objectives are worse than promised");
    }
}

/// Seconds of one fit, from the mean of `calls`.
fn time(case: &Case, compute: ComputeChoice, calls: u32) -> f64 {
    let request = FitRequest { observations: &case.observations, compute, ..FitRequest::default() };
    let start = Instant::now();
    for _ in 0..calls {
        black_box(fit(black_box(&request))).expect("there are observations");
    }
    start.elapsed().as_secs_f64() / f64::from(calls)
}

/// A line per case; then how the objectives compare, and whether that is as promised.
fn report_cases(cases: &[Case], ours: &[Vec<f64>], theirs: &[Theirs]) -> bool {
    println!("case  obs  ours/us                 SciPy/ms                 ratio  objective  SciPy's");
    let (mut as_good, mut better, mut on_record, mut recorded) = (0, 0, 0, 0);
    let mut worst = f64::NEG_INFINITY;
    for (index, (case, theirs)) in cases.iter().zip(theirs).enumerate() {
        let request = FitRequest {
            observations: &case.observations,
            compute: ComputeChoice::Linear,
            ..FitRequest::default()
        };
        let objective = fit(&request).expect("there are observations").objective;
        let our_secs = Spread::of(ours.iter().map(|repeat| 1e6 * repeat[index]));
        let their_secs = Spread::of(theirs.secs.iter().map(|secs| 1e3 * secs));
        println!(
            "{index:4}  {:3}  {our_secs:<22.1}  {their_secs:<22.1}  {:6.0}  {objective:.6}   {:.6}",
            case.observations.len(),
            1e3 * their_secs.median / our_secs.median,
            theirs.objective,
        );
        as_good += usize::from(objective <= theirs.objective + AS_GOOD);
        better += usize::from(objective < theirs.objective - AS_GOOD);
        worst = worst.max(objective / theirs.objective - 1.0);
        if let Some(objective) = case.recorded {
            recorded += 1;
            on_record += usize::from((theirs.objective - objective).abs() <= AS_GOOD);
        }
    }
    let kept = as_good as f64 >= MOST_CASES * cases.len() as f64 && worst <= MOST_EXCESS;
    println!(
        "Objectives: {as_good} of {} as good as SciPy's, {better} better by more than {AS_GOOD}; the worst {:.2} % \
         above; {}.",
        cases.len(),
        100.0 * worst,
        verdict(kept)
    );
    if recorded > 0 {
        println!(
            "SciPy itself comes within {AS_GOOD} of its objective on record in {on_record} of {recorded} cases."
        );
    }
    kept
}

/// Means over all cases, and how many times faster ours is.
fn report_times(ours: &[Vec<f64>], auto: &[Vec<f64>], theirs: &[Theirs]) {
    let means = |times: &[Vec<f64>]| -> Vec<f64> { times.iter().map(|repeat| mean(repeat)).collect() };
    let (ours, auto) = (means(ours), means(auto));
    let theirs: Vec<f64> = (0..ours.len())
        .map(|repeat| mean(&theirs.iter().map(|theirs| theirs.secs[repeat]).collect::<Vec<_>>()))
        .collect();
    let in_units = |values: &[f64], unit: f64| Spread::of(values.iter().map(|value| value * unit));
    let ratio = mean(&theirs) / mean(&ours);
    let spread = Spread::of(theirs.iter().zip(&ours).map(|(theirs, ours)| theirs / ours));
    println!("Mean time per fit, all cases:");
    println!("  ours, linear    {} us", in_units(&ours, 1e6));
    println!("  ours, auto      {} us", in_units(&auto, 1e6));
    println!("  SciPy, linear   {} ms", in_units(&theirs, 1e3));
    println!(
        "  ratio of means  {ratio:.0}; by repeats {spread:.0}   target {TARGET}: {}",
        verdict(ratio >= TARGET)
    );
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The cases of the reference data, where there are any.
fn reference_cases() -> Option<Vec<Case>> {
    let file = common::reference_json("fit_cases.json")?;
    let cases = file["cases"].as_array().expect("an array of cases").iter().map(|case| {
        let column = |name: &str| case["observations"][name].as_array().expect("a column");
        let whole = |name: &str, row: usize| {
            u32::try_from(column(name)[row].as_u64().expect("a count")).expect("a small count")
        };
        let secs = |name: &str, row: usize| column(name)[row].as_f64().expect("a time");
        let observations = (0..column("num_nodes").len()).map(|row| {
            let placement = Placement::new(whole("num_nodes", row), whole("num_replicas", row));
            Observation::new(
                placement.expect("a placement"),
                whole("atomic_bsz", row),
                secs("accum_step_time", row),
                secs("optim_step_time", row),
            )
            .expect("a measurement")
        });
        Case { observations: observations.collect(), recorded: case["minimizer_objective"].as_f64() }
    });
    Some(cases.collect())
}

/// Jobs that have seen 1 to 16 configurations each, measured with 5 % of noise.
fn synthetic_cases() -> Vec<Case> {
    let mut dice = Dice(5);
    let profiles = (0..25_u64).map(|index| {
        let alpha = dice.log_uniform(0.01, 0.4);
        let truth = PerfParams {
            grad: Compute::Linear { alpha, beta: alpha * dice.log_uniform(0.01, 0.2) },
            sync_local: Affine { alpha: alpha * dice.log_uniform(0.2, 2.0), beta: 0.05 * alpha },
            sync_node: Affine { alpha: alpha * dice.log_uniform(0.5, 4.0), beta: 0.1 * alpha },
            gamma: dice.log_uniform(1.0, 2.5),
            optimizer_step: 0.0,
        };
        let observations = (0..=index * 16 / 25).map(|step| {
            // Jobs start small and grow.
            let n_replicas = u32::try_from(dice.whole(1, (1 << (step / 2).min(5)).max(1))).expect("small");
            let placement = Placement::packed(n_replicas, 4).expect("at least one replica");
            let micro_batch = u32::try_from(dice.whole(4, 64)).expect("small");
            let mut noisy = |secs: f64| secs * libm::exp(0.05 * dice.normal());
            let accum_secs = noisy(truth.grad.secs(f64::from(micro_batch)));
            let optim_secs = noisy(truth.last_micro_step_secs(placement, micro_batch));
            Observation::new(placement, micro_batch, accum_secs, optim_secs).expect("a measurement")
        });
        Case { observations: observations.collect(), recorded: None }
    });
    profiles.collect()
}

/// Versions in words, and SciPy's result for each case.
fn scipy(python: &Path, cases: &[Case], repeats: u32) -> (String, Vec<Theirs>) {
    let file = std::env::temp_dir().join(format!("pollux-bench-fit-{}.json", std::process::id()));
    let cases: Vec<Value> = cases.iter().map(|case| as_json(&case.observations)).collect();
    std::fs::write(&file, json!(cases).to_string()).expect("the temporary folder can be written to");
    let mut command = Command::new(python);
    // One thread: CPU time is then the time a fit takes.
    for threads in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"] {
        command.env(threads, "1");
    }
    let output = command.arg(SCRIPT).arg(&file).arg(repeats.to_string()).output();
    // Best effort: a file left behind in the temporary folder does no harm.
    let _ = std::fs::remove_file(&file);
    let output = match output {
        Ok(output) if output.status.success() => output.stdout,
        Ok(output) => fail(&format!("{SCRIPT} failed:\n{}", String::from_utf8_lossy(&output.stderr))),
        Err(error) => fail(&format!("cannot run {}: {error}", python.display())),
    };
    let report: Value = serde_json::from_slice(&output).expect("the script prints JSON");
    let version = |name: &str| report["versions"][name].as_str().unwrap_or("?").to_owned();
    let theirs = report["cases"].as_array().expect("a result per case").iter().map(|case| Theirs {
        objective: case["objective"].as_f64().unwrap_or(f64::INFINITY),
        secs: case["secs"].as_array().expect("times").iter().filter_map(Value::as_f64).collect(),
    });
    let versions =
        format!("Python {}, NumPy {}, SciPy {}", version("python"), version("numpy"), version("scipy"));
    (versions, theirs.collect())
}

fn as_json(observations: &[Observation]) -> Value {
    let counts = |of: fn(&Observation) -> u32| observations.iter().map(of).collect::<Vec<_>>();
    let times = |of: fn(&Observation) -> f64| observations.iter().map(of).collect::<Vec<_>>();
    json!({
        "num_nodes": counts(|o| o.placement().n_nodes()),
        "num_replicas": counts(|o| o.placement().n_replicas()),
        "atomic_bsz": counts(Observation::micro_batch),
        "accum_step_time": times(Observation::accum_secs),
        "optim_step_time": times(Observation::optim_secs),
    })
}

#[expect(clippy::print_stderr, reason = "errors go to standard error")]
fn fail(message: &str) -> ! {
    eprintln!("error: {message}");
    exit(1)
}
