//! Agreement with the artifact itself: its step times, its workloads, and jobs whose outcome it recorded.
//!
//! Needs the data folder and the table of simplices; says so loudly where one is absent.
#![allow(clippy::print_stderr, reason = "what was not compared is said")]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{data, packed, reference};
use pollux_sim::osdi21::{Application, FixedBatch, Job, Limits};
use pollux_sim::workload::{Checks, Submission, read_workload};
use serde_json::Value;

#[test] // Recorded values are rounded to 16 digits or decimals; ours differ from them by no more than that.
fn step_times_are_the_artifacts() {
    let Some(reference) = reference() else { return };
    let text = std::fs::read_to_string(reference.data.join("reference/throughput_cases.json")).unwrap();
    let cases: Value = serde_json::from_str(&text).unwrap();
    let (mut n_measured, mut n_interpolated, mut n_refused) = (0, 0, 0);
    let mut worst = 0.0_f64;
    for case in cases["cases"].as_array().unwrap() {
        let application =
            reference.application(Limits::named(case["application"].as_str().unwrap()).unwrap());
        let placement: Vec<u32> = serde_json::from_value(case["placement"].clone()).unwrap();
        let local_batch = serde_json::from_value(case["local_bsz"].clone()).unwrap();
        let time = application.step_time(&placement, local_batch);
        if case.get("error").is_some() {
            assert!(time.is_err(), "the artifact refuses {case}");
            n_refused += 1;
            continue;
        }
        let time = time.unwrap_or_else(|error| panic!("{case}: {error}"));
        for (ours, theirs) in [(time.step_secs, &case["step_time"]), (time.sync_secs, &case["sync_time"])] {
            let theirs = theirs.as_f64().unwrap();
            worst = worst.max((ours - theirs).abs());
            assert!((ours - theirs).abs() <= 1e-15 * theirs.max(1.0), "{case}: {ours}");
        }
        *(if case["measured"] == true { &mut n_measured } else { &mut n_interpolated }) += 1;
    }
    eprintln!("{n_measured} measured, {n_interpolated} interpolated, {n_refused} refused; worst {worst:e}");
    assert_eq!((n_measured + n_interpolated, n_refused), (583, 8));
}

#[test]
fn all_workloads_can_be_read() {
    let Some(data) = data() else { return };
    for (folder, n_jobs) in [("-0.5", 80), ("", 160), ("-1.5", 240), ("-2.0", 320), ("-realistic", 160)] {
        for number in [1, 2, 4] {
            let file = data.join(format!("pollux-osdi21/workloads{folder}/workload-{number}.csv"));
            let workload = read_workload(&file, Checks::known(&Limits::known()))
                .unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(workload.jobs.len(), n_jobs, "{}", file.display());
        }
    }
}

/// GPU-seconds the artifact recorded for each job it never restarted.
fn recorded_gpu_secs(file: &Path) -> Vec<(String, u64)> {
    let text = std::fs::read_to_string(file).unwrap();
    let rows = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    rows.filter(|row| row[5] == "0").map(|row| (row[0].to_owned(), row[6].parse().unwrap())).collect()
}

/// Runs a job on these GPUs from beginning to end, a minute at a time.
fn gpu_secs(application: &Arc<Application>, placement: &[u32], batch: u32) -> u64 {
    let mut rule = FixedBatch { target: batch };
    let mut job = Job::new(application.clone());
    job.reallocate(placement, &mut rule);
    while job.completed_at_secs().is_none() {
        job.advance(60, 0.0, &mut rule).unwrap();
    }
    job.gpu_secs()
}

#[test] // One GPU is one GPU wherever it is; the first job of a workload has the cluster to itself when it starts.
fn undisturbed_jobs_take_as_long_as_in_the_artifact() {
    let Some(reference) = reference() else { return };
    let mut n_jobs = 0;
    for folder in ["workloads", "workloads-realistic"] {
        for number in [1, 2, 3, 4, 6] {
            let data = &reference.data;
            let file = data.join(format!("pollux-osdi21/{folder}/workload-{number}.csv"));
            let jobs = read_workload(&file, Checks::known(&Limits::known())).unwrap().jobs;
            let recorded =
                recorded_gpu_secs(&data.join(format!("reference/runs/tiresias-{folder}-{number}.csv")));
            let is_first = |job: &Submission| job.name == jobs[0].name;
            for job in jobs.iter().filter(|job| job.gpus == 1 || is_first(job)) {
                let Some((_, expected)) = recorded.iter().find(|(name, _)| *name == job.name) else {
                    continue;
                };
                let application = reference.application(Limits::named(&job.application).unwrap());
                let gpu_secs = gpu_secs(application, &packed(job.gpus), job.batch.try_into().unwrap());
                assert_eq!(gpu_secs, *expected, "{folder} {number} {}", job.name);
                n_jobs += 1;
            }
        }
    }
    eprintln!("{n_jobs} jobs compared");
    assert!(n_jobs > 100, "{n_jobs}");
}
