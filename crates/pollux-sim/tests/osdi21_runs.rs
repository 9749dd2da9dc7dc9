//! Whole runs beside those of the artifact: every job's completion, to the second.
//!
//! Needs the data folder and the table of simplices; says so loudly where one is absent.
#![allow(clippy::print_stderr, reason = "what was not compared is said")]

mod common;

use common::reference;
use pollux_policy::{AnyPolicy, Optimus, Pollux, SizeAware, Tiresias};
use pollux_sim::osdi21::{Limits, Options, simulate};
use pollux_sim::workload::{Checks, read_workload};

const WORKLOADS: [u32; 5] = [1, 2, 3, 4, 6];

/// Completion, restarts and GPU-seconds of every job as recorded, against a run of ours.
fn check(policy: &dyn AnyPolicy, recorded_as: &str, folder: &str, options: &Options) {
    let Some(reference) = reference() else { return };
    let applications = reference.by_name();
    let mut n_jobs = 0;
    for number in WORKLOADS {
        let file = reference.data.join(format!("pollux-osdi21/{folder}/workload-{number}.csv"));
        let workload = read_workload(&file, Checks::known(&Limits::known())).unwrap();
        let run =
            simulate(&workload, &applications, policy, options).unwrap_or_else(|error| panic!("{error}"));
        let recorded = reference.data.join(format!("reference/runs/{recorded_as}-{folder}-{number}.csv"));
        let recorded = std::fs::read_to_string(recorded).unwrap();
        for (line, job) in recorded.lines().skip(1).zip(&run.jobs) {
            let completed = job.completed.unwrap().as_secs_f64();
            let ours = format!(
                "{},{},{},{completed},{},{},{}",
                job.name,
                job.application,
                job.submitted.as_secs_f64(),
                job.jct_secs().unwrap(),
                job.restarts,
                job.gpu_secs
            );
            assert_eq!(ours, line, "workload {number}");
            n_jobs += 1;
        }
    }
    eprintln!("{recorded_as} on {folder}: {n_jobs} jobs to the second");
    assert_eq!(n_jobs, 800);
}

#[test]
fn tiresias_is_the_artifacts_to_the_second() {
    check(&Tiresias::default(), "tiresias", "workloads", &Options::default());
    check(&Tiresias::default(), "tiresias", "workloads-realistic", &Options::default());
}

#[test]
fn optimus_is_the_artifacts_to_the_second_with_its_bug_and_without() {
    check(&Optimus, "optimus", "workloads", &Options::default());
    check(&Optimus, "optimus", "workloads-realistic", &Options::default());
    check(&Optimus, "optfix-optimus", "workloads", &Options { repaired: true, ..Options::default() });
}

/// Average completion time over the five workloads, over what was published for Pollux: 2553.46 s.
fn against_published(policy: &dyn AnyPolicy, history: bool) -> Option<f64> {
    let reference = reference()?;
    let applications = reference.by_name();
    let averages = WORKLOADS.map(|number| {
        let file = reference.data.join(format!("pollux-osdi21/workloads/workload-{number}.csv"));
        let workload = read_workload(&file, Checks::known(&Limits::known())).unwrap();
        let options = Options { seed: 1, history, ..Options::default() };
        let run = simulate(&workload, &applications, policy, &options).unwrap();
        run.jobs.iter().map(|job| job.jct_secs().unwrap()).sum::<f64>() / run.jobs.len() as f64
    });
    let ratio = averages.iter().sum::<f64>() / 5.0 / 2_553.46;
    eprintln!("{}: {ratio:.4} of the published average", policy.about().name);
    Some(ratio)
}

#[test] // Seeds differ by 0.3 %; `cargo xtask bench published` has five of them, and all promises.
fn pollux_is_near_to_what_was_published_and_sizes_help() {
    let Some(paper) = against_published(&Pollux::default(), false) else { return };
    assert!((0.97..1.03).contains(&paper), "{paper}");
    let by_size = against_published(&SizeAware::default(), true).unwrap();
    assert!(by_size < 0.86, "{by_size}");
}
