//! What others are told of a job: the scheduler, workers, and the members of an array.

use std::time::Duration;

use pollux_core::{Config, Input, JobSpec, Scheduler};
use pollux_model::{GpuType, JobId, Timestamp};
use pollux_policy::{Priority, Request};
use serde_json::json;

use crate::{job, with};

#[test]
fn the_scheduler_is_told_what_it_needs() {
    let text = with(
        "queue: vision\npriority: low\nresources: {gpus: {min: 2, max: 8, types: [a100]}}\n\
         training: {application: resnet, work: 1000}\nrestart: {max_failures: 7}\n\
         elastic: {preemptible: false, min_runtime: 5m, max_resizes_per_hour: 6}\n",
    );
    let expected = JobSpec {
        application: Some("resnet".into()),
        group: None,
        priority: Priority::Low,
        weight: 1.0,
        min_gpus: 2,
        max_gpus: Some(8),
        types: [GpuType::new("a100")].into(),
        request: None,
        adapts: true,
        preemptible: false,
        min_runtime: Duration::from_mins(5),
        max_resizes_per_hour: Some(6),
        work: Some(1_000.0),
        retries: 7,
    };
    assert_eq!(job(&text).to_spec(), expected);
}

#[test]
fn a_plain_command_is_a_rigid_job_of_one_gpu() {
    assert_eq!(job(&with("")).to_spec(), JobSpec::default());
}

#[test]
fn a_number_of_gpus_is_a_request() {
    let spec = job(&with("resources: {gpus: 4}\n")).to_spec();
    assert_eq!((spec.min_gpus, spec.max_gpus, spec.request), (4, Some(4), Some(Request { gpus: 4 })));
    let adapting = job(&with("adapts: true\nresources: {gpus: 1..4}\n")).to_spec();
    assert_eq!((adapting.request, adapting.adapts), (None, true));
    let asking = job(&with("adapts: true\nresources: {gpus: {max: 4, request: 2}}\n")).to_spec();
    assert_eq!((asking.min_gpus, asking.max_gpus, asking.request), (1, Some(4), Some(Request { gpus: 2 })));
}

#[test]
fn the_scheduler_takes_what_it_is_told() {
    for more in
        ["", "resources: {gpus: 65536}\n", "training: {work: 1e-9}\n", "elastic: {min_runtime: 365d}\n"]
    {
        let mut scheduler = Scheduler::new(Config::default());
        let submitted = Input::JobSubmitted(JobId(1), job(&with(more)).to_spec());
        scheduler.handle(Timestamp::ZERO, submitted).unwrap();
    }
}

#[track_caller]
fn check_batch(training: &str, expected: &serde_json::Value) {
    let told = job(&with(&format!("training: {training}\n"))).batch_json().unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&told).unwrap(), *expected);
}

#[test]
fn workers_are_told_of_their_batch() {
    assert_eq!(job(&with("")).batch_json(), None);
    check_batch("{}", &json!({"mode": "adaptive", "accumulation": true}));
    check_batch(
        "{batch: {mode: bounded, initial: 8, max: 64, per_gpu: [1, 16]}, lr: {rule: sqrt}, accumulation: false}",
        &json!({
            "mode": "bounded", "initial": 8, "max": 64, "per_gpu": [1, 16], "accumulation": false, "rule": "sqrt"
        }),
    );
    check_batch(
        "{batch: {mode: fixed, initial: 8}}",
        &json!({"mode": "fixed", "initial": 8, "accumulation": true}),
    );
}

#[test]
fn an_array_is_as_many_jobs() {
    let members = job(&with("env: {A: b}\narray: 3\n")).expand();
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["resnet-0", "resnet-1", "resnet-2"]);
    for (index, member) in members.iter().enumerate() {
        assert_eq!(member.env["POLLUX_ARRAY_INDEX"], index.to_string());
        assert_eq!((member.env["A"].as_str(), &member.array), ("b", &None));
        assert_eq!(pollux_api::job_file::JobFile::from_json(&member.to_json()).as_ref(), Ok(member));
    }
    let rates = job(&with("array: {RATE: [1e-3, 0.10, high]}\n")).expand();
    let rates: Vec<&str> = rates.iter().map(|member| member.env["RATE"].as_str()).collect();
    assert_eq!(rates, ["1e-3", "0.10", "high"]);
    assert_eq!(job(&with("")).expand(), [job(&with(""))]);
}
