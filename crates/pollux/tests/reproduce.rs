//! The evaluation through the command.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn pollux(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pollux"));
    command.args(["sim", "reproduce"]).args(args).output().unwrap()
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

#[test]
fn experiments_are_listed_and_named_by_mistake() {
    let list = String::from_utf8(pollux(&["--list"]).stdout).unwrap();
    for name in
        ["tuned", "realistic", "knob", "load", "autoscaling", "search", "mixed", "hardware", "defaults"]
    {
        assert!(list.lines().any(|line| line.starts_with(name)), "{name}: {list}");
    }
    let output = pollux(&["knop"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(message.contains("there is no experiment `knop`") && message.contains("--list"), "{message}");
}

#[test] // A small part of it: every table of the text stands in the report, with its figures as files.
fn a_report_is_written_with_its_data() {
    let folder = folder("reproduce");
    let out = folder.to_str().unwrap();
    let chosen = ["knob", "autoscaling", "efficiency-model", "--seeds", "1..2", "--out", out];
    let output = pollux(&chosen);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("hold in direction and rough size"), "{text}");
    let report = fs::read_to_string(folder.join("report.html")).unwrap();
    for part in ["The fairness knob", "Auto-scaling of one ImageNet job", "Published comparisons"] {
        assert!(text.contains(part) && report.contains(part), "{part}");
    }
    assert!(folder.join("data/autoscaling.csv").exists());
    let json: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("findings.json")).unwrap()).unwrap();
    let names: Vec<&str> =
        json["experiments"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["knob", "autoscaling", "efficiency-model"]);
    // The same bytes on another number of threads.
    let again = pollux(&[&chosen[..5], &["-o", "json", "--threads", "1"]].concat());
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again, json);
}

#[test] // The bar that sizes by goodput are to clear: 15 % cheaper for at most 10 % more time.
fn sizes_by_cost_are_cheaper_and_hardly_slower() {
    let output = pollux(&["autoscaling", "--seeds", "1", "-o", "json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let comparison = &json["experiments"][0]["comparisons"][0];
    assert_eq!(comparison["holds"], true, "{comparison}");
}
