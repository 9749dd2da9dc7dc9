//! No text and no document with something wrong in it makes a reader of the HTTP API panic: it is read, or refused in one line.

mod mutate;

use mutate::mutate;
use pollux_api::adaptdl::Hints;
use pollux_api::agent_report::AgentReportBody;
use pollux_api::job_file::JobFile;
use pollux_api::rest::{AgentReports, JobEdits, NewToken, NodeEdit, QueueShown, Submission, WhatIf};
use pollux_model::{AgentReport, GpuType};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::RngSeed;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A good body for each reader.
fn good() -> [Value; 8] {
    let file = json!({"name": "a", "command": ["b"], "resources": {"gpus": {"min": 1, "max": 4}}, "env": {"X": "1"},
        "training": {"batch": {"mode": "adaptive", "initial": 32, "max": 256, "per_gpu": [8, 64]}},
        "checkpoint": {"grace": "20s"}, "array": {"S": ["1", "2"]}});
    let fit = json!({"params": {"grad": {"linear": {"alpha": 0.1, "beta": 0.01}}, "gamma": 1.5}});
    [
        json!({"file": file, "dry_run": true}),
        json!({"priority": "high", "weight": 2.0, "min_gpus": 1, "max_gpus": 4}),
        json!({"state": "cordoned"}),
        json!({"name": "a", "parent": "b", "entitled": {"t4": 2}, "caps": {"t4": 4}, "held": 0, "jobs": 1}),
        json!({"submit": [file], "add_nodes": "2x4:t4", "remove_nodes": ["a"], "cancel": ["b"], "weights": {"c": 2.0}}),
        json!({"owner": "ada", "role": "viewer", "expires_s": 60}),
        json!({"version": 1, "attempt": 1, "training": true, "report": {"progress": 1.5, "samples": 7,
            "limits": {"initial": 32, "max": 256, "micro_min": 8, "micro_max": 64}, "plan": {"atomic_batch": 8, "accum_steps": 1},
            "noise": {"acted": 100.0, "sqr": 1.0, "var": 2.0, "estimator": "pairs"}, "fits": {"t4": fit}}}),
        json!({"initBatchSize": 32, "localBszBounds": [8, 64], "maxBatchSize": 256, "maxProfiledReplicas": 2,
            "gradientAccumulation": true, "gradParams": {"norm": 0.5, "var": 2.0}, "perfParams": {"alpha_c": 0.1, "beta_c": 0.01,
            "alpha_n": 0.1, "beta_n": 0.01, "alpha_r": 0.1, "beta_r": 0.01, "gamma": 1.5}}),
    ]
}

/// What is read can be written and is read again; what is not is refused in words.
fn read_again<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(body: &Value) -> Option<T> {
    match serde_path_to_error::deserialize::<_, T>(body) {
        Ok(value) => {
            let written = serde_json::to_value(&value).unwrap();
            assert_eq!(serde_json::from_value::<T>(written).unwrap(), value);
            Some(value)
        }
        Err(error) => {
            assert!(error.to_string().len() > 10, "{error}");
            None
        }
    }
}

/// Every reader takes any body.
fn check_survives(body: &Value) {
    if let Some(Submission { file, .. }) = read_again(body) {
        check_file(&file);
    }
    if let Some(WhatIf { submit, .. }) = read_again(body) {
        submit.iter().for_each(check_file);
    }
    read_again::<JobEdits>(body);
    read_again::<NodeEdit>(body);
    read_again::<QueueShown>(body);
    read_again::<NewToken>(body);
    if let Some(AgentReports { report: Some(report), .. }) = read_again(body)
        && let Some(report) = read_again::<AgentReportBody>(&report)
    {
        match AgentReport::try_from(report) {
            Ok(report) => assert!(report.progress >= 0.0 && report.limits.initial().0 > 0),
            Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
        }
    }
    match Hints::from_json(body) {
        Ok(hints) => {
            if let Some(report) = hints.to_report(&GpuType::new("t4")) {
                // What goes into the journal comes out of it.
                let text = pollux_api::agent_report::to_json(&report);
                assert_eq!(pollux_api::agent_report::from_json(&text), Ok(report), "{text}");
            }
        }
        Err(error) => assert!(error.to_string().starts_with("hints: "), "{error}"),
    }
    check_file(body);
}

fn check_file(file: &Value) {
    match JobFile::from_json(file) {
        Ok(job) => assert_eq!(JobFile::from_json(&job.to_json()), Ok(job)),
        Err(error) => assert!(error.to_string().len() > 10, "{error}"),
    }
}

fn value() -> impl Strategy<Value = Option<Value>> {
    let words = ["", "inf", "nan", "high", "admin", "job", "9999x9999:t4", "4..2", "\u{0}", "ä", "-1"]
        .map(Value::from);
    let numbers = [0_u64, 1, 2, 7, u64::from(u32::MAX), 1 << 53, u64::MAX].map(Value::from);
    prop::option::of(prop_oneof![
        select(words.to_vec()),
        select(numbers.to_vec()),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
        Just(Value::Null),
        Just(json!([])),
        Just(json!({})),
        Just(json!([1, [2, {"a": null}]])),
    ])
}

#[test]
fn good_bodies_are_good() {
    let [submission, edits, node, queue, what_if, token, reports, hints] = good();
    assert!(read_again::<Submission>(&submission).is_some_and(|body| JobFile::from_json(&body.file).is_ok()));
    assert!(read_again::<JobEdits>(&edits).is_some() && read_again::<NodeEdit>(&node).is_some());
    assert!(read_again::<QueueShown>(&queue).is_some() && read_again::<WhatIf>(&what_if).is_some());
    assert!(read_again::<NewToken>(&token).is_some() && read_again::<AgentReports>(&reports).is_some());
    let report = Hints::from_json(&hints).unwrap().to_report(&GpuType::new("t4")).unwrap();
    assert!(report.noise.is_some() && report.fits.len() == 1);
    good().iter().for_each(check_survives);
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(7),
        ..ProptestConfig::with_cases(2_000)
    })]

    #[test]
    fn changed_bodies_are_read_or_refused(
        which in 0_usize..8,
        changes in vec((vec(any::<Index>(), 1..6), value()), 1..4),
    ) {
        let mut body = good()[which].clone();
        for (turns, to) in changes {
            mutate(&mut body, &turns, to);
        }
        check_survives(&body);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}|[{}\\[\\]\",:0-9.eE\\-truefalsn \\\\]{0,80}") {
        if let Ok(body) = serde_json::from_str(&text) {
            check_survives(&body);
        }
    }
}
