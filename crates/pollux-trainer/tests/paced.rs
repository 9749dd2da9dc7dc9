//! Emulated GPUs: steps take what the profile says, and adapting the batch pays.
#![expect(clippy::print_stdout, reason = "figures for those who ask, with --nocapture")]

mod common;

use common::{Job, Row, curve, folder, number};

struct Outcome {
    accuracy: f64,
    steps: usize,
    /// As the profile says.
    paced_secs: f64,
    largest_batch: u64,
}

/// A GPU that needs 2 ms for any micro-batch up to 512: launch-bound, like small models are.
fn run(name: &str, max_batch: u64, n_replicas: u32) -> (Outcome, Vec<Row>) {
    let folder = folder(name);
    let (profile, file) = (folder.join("profile.json"), folder.join("curve.csv"));
    std::fs::write(&profile, common::profile(0.002, 0.0)).unwrap();
    let arguments = format!("--max-batch {max_batch} --report-every 0.1 --curve {}", file.display());
    let job = Job::new(&arguments)
        .with("POLLUX_EMULATED", 1)
        .with("POLLUX_EMULATED_PROFILE", profile.display())
        .with("POLLUX_GPU_TYPE", "t4");
    let said = job.steps(1_200).run(n_replicas);
    let rows = curve(&file);
    let outcome = Outcome {
        accuracy: number(&said, "done: accuracy"),
        steps: rows.len(),
        paced_secs: rows.iter().map(|row| row.paced_secs).sum(),
        largest_batch: rows.iter().map(|row| row.batch).max().unwrap(),
    };
    println!(
        "batch up to {max_batch}: accuracy {:.4}, {} steps, {:.2} s as the profile says, {:.2} s measured, batch up to {}",
        outcome.accuracy,
        outcome.steps,
        outcome.paced_secs,
        rows.iter().map(|row| row.secs).sum::<f64>(),
        outcome.largest_batch,
    );
    (outcome, rows)
}

#[test]
fn adapting_is_faster_and_learns_as_well() {
    let (fixed, rows) = run("fixed", 32, 1);
    assert_eq!((fixed.steps, fixed.largest_batch), (1_200, 32));
    assert!(rows.iter().all(|row| row.secs >= row.paced_secs), "no step is shorter than the profile says");
    let (adaptive, _) = run("adaptive", 256, 1);
    assert!(adaptive.largest_batch > 32);
    assert!(adaptive.paced_secs < 0.9 * fixed.paced_secs, "{} s", adaptive.paced_secs);
    assert!(adaptive.accuracy > fixed.accuracy - 0.03, "{} and {}", adaptive.accuracy, fixed.accuracy);
}

#[test] // Three replicas exchange in half a millisecond, so a pass takes 2.5 ms.
fn replicas_are_paced_too() {
    let (_, rows) = run("replicas", 32, 3);
    assert!(rows.iter().all(|row| row.secs >= row.paced_secs));
    assert!(rows.iter().filter(|row| row.passes == 1).all(|row| (row.paced_secs - 0.0025).abs() < 1e-9));
}

#[test]
fn a_start_takes_what_the_profile_says() {
    let profile = folder("start").join("profile.json");
    std::fs::write(&profile, common::profile(0.002, 0.3)).unwrap();
    let began = std::time::Instant::now();
    let job = Job::default().with("POLLUX_EMULATED", 1).with("POLLUX_EMULATED_PROFILE", profile.display());
    job.clone().with("POLLUX_GPU_TYPE", "t4").steps(1).run(1);
    assert!(began.elapsed().as_secs_f64() >= 0.3);
    let ends = job.with("POLLUX_GPU_TYPE", "h100").start(1).end();
    assert_eq!(ends[0].code, Some(1));
    assert!(ends[0].stderr.contains("does not know the GPU type `h100`; it knows t4"), "{ends:?}");
}

#[test] // What is not there cannot be handed on: the agent learns from wall-clock steps and real gradients alone.
fn nobody_but_the_pace_reads_profiles() {
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = std::fs::read_dir(sources).unwrap().map(|entry| entry.unwrap().path());
    let readers: Vec<_> = files
        .filter(|file| std::fs::read_to_string(file).is_ok_and(|text| text.contains("pollux_sim")))
        .map(|file| file.file_name().unwrap().to_owned())
        .collect();
    assert_eq!(readers, ["pace.rs"]);
}
