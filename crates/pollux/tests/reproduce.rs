//! The evaluation through the command.
#![allow(clippy::print_stderr, reason = "what was not made is said")]

use std::fs;
use std::path::{Path, PathBuf};
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

/// The authors' traces and the table made of them, where both are there.
fn artifact() -> Option<(PathBuf, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let data = std::env::var_os("POLLUX_DATA").map_or_else(|| root.join("../shared/data"), PathBuf::from);
    let table = std::env::var_os("POLLUX_OSDI21_TABLE");
    let table = table.map_or_else(|| root.join("target/osdi21-table.json"), PathBuf::from);
    let traces = data.join("pollux-osdi21/traces");
    for (what, remedy) in [(&traces, "set POLLUX_DATA"), (&table, "run `cargo xtask osdi21-table`")] {
        if !what.exists() {
            eprintln!("NOT COMPARED WITH THE ARTIFACT: {} does not exist; {remedy}", what.display());
            return None;
        }
    }
    Some((traces, table))
}

fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        fs::copy(from, to).unwrap();
        return;
    }
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

#[test] // Short workloads in the place of the authors': the figures are others, the table is the same.
fn interference_in_the_artifacts_world_has_both_searches() {
    let Some((traces, table)) = artifact() else { return };
    let folder = folder("reproduce-artifact");
    copy(&traces, &folder.join("traces"));
    fs::create_dir_all(folder.join("workloads")).unwrap();
    let jobs = ["a", "b", "c", "d"].map(|name| format!("{name},0,cifar10,1,128\n")).concat();
    let jobs = format!("name,time,application,num_replicas,batch_size\n{jobs}");
    for number in [1, 2, 4] {
        fs::write(folder.join(format!("workloads/workload-{number}.csv")), &jobs).unwrap();
    }
    let (folder, table) = (folder.to_str().unwrap(), table.to_str().unwrap());
    let output =
        pollux(&["interference", "--seeds", "1", "--artifact", folder, "--table", table, "-o", "json"]);
    assert!(output.status.success(), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = json["experiments"][0]["tables"][1]["rows"].as_array().unwrap();
    let cells = |row: &Value, at: usize| row[at].as_str().unwrap().to_owned();
    let named: Vec<(String, String)> = rows.iter().map(|row| (cells(row, 0), cells(row, 1))).collect();
    let both = ["`pollux-ga-osdi21:interference=allow`", "`pollux:osdi21+interference=allow`"];
    let expected =
        ["0 %", "25 %", "50 %"].map(|part| both.map(|policy| (part.to_owned(), policy.to_owned())));
    assert_eq!(named, expected.concat());
    // Four jobs have 16 nodes to themselves. Ours stay apart; the genetic algorithm puts them where chance has it.
    let beside = |row: &Value| cells(row, 5).trim_end_matches(" %").parse::<f64>().unwrap();
    assert!(beside(&rows[4]) > 50.0 && beside(&rows[5]) < 5.0, "{rows:?}");
}
