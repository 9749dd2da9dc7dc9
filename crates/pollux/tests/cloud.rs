//! Rented clusters through the command: costs, sizes, and either rule.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn pollux(args: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_pollux")).current_dir(root).args(args).output().unwrap()
}

fn args<'a>(cluster: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let workload = "generate:jobs=3,hours=1,mix=cifar10:1";
    let mut args = vec!["sim", "run", "--policy", "pollux", "--workload", workload, "--cluster", cluster];
    args.extend(more);
    args
}

/// The first run of the results.
fn run_of(cluster: &str, more: &[&str]) -> serde_json::Value {
    let output = pollux(&args(cluster, &[&["-o", "json"], more].concat()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    json["runs"][0].clone()
}

#[test] // 16 nodes at 0.91 an hour until the last job is done.
fn owned_nodes_cost_what_they_cost() {
    let run = run_of("examples/clusters/on-premises.json", &[]);
    let hours = 16.0 * run["makespan_s"].as_f64().unwrap() / 3_600.0;
    assert!((run["node_hours"].as_f64().unwrap() - hours).abs() < 1e-6);
    assert!((run["cost"].as_f64().unwrap() - 0.91 * hours).abs() < 1e-6);
}

#[test]
fn either_rule_scales_and_they_differ() {
    let cluster = "examples/clusters/t4-on-demand.json";
    let cost = |scaler| run_of(cluster, &["--scaler", scaler])["cost"].as_f64().unwrap();
    let (goodput, throughput, none) = (cost("goodput"), cost("throughput"), cost("none"));
    assert!(goodput > 0.0 && throughput > 0.0 && none > 0.0);
    assert!(goodput.to_bits() != throughput.to_bits(), "{goodput} {throughput}");
    // The file says goodput.
    assert_eq!(run_of(cluster, &[])["cost"].as_f64().unwrap().to_bits(), goodput.to_bits());
}

#[test]
fn costs_are_shown_and_sizes_kept() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rented");
    let _ = fs::remove_dir_all(&folder);
    let output = pollux(&args("examples/clusters/t4-spot.json", &["--out", folder.to_str().unwrap()]));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("COST") && text.contains("NODE-HOURS") && text.contains("up to "), "{text}");
    let sizes = "pollux/generate_jobs=3_hours=1_mix=cifar10_1-seed1/cluster.csv";
    let sizes = fs::read_to_string(folder.join(sizes)).unwrap();
    assert!(sizes.starts_with("time_s,pool,nodes\n0,on-demand,1\n"), "{sizes}");
    assert!(sizes.contains(",spot,"), "{sizes}");
    let report = fs::read_to_string(folder.join("report.html")).unwrap();
    for part in ["rented, up to ", "What rented nodes cost", "Nodes rented", "while they are rented"] {
        assert!(report.contains(part), "{part}");
    }
    assert!(!report.contains("What went wrong"));
}

#[test] // Starts that fail concern jobs, not nodes.
fn faults_of_jobs_go_with_rented_nodes() {
    let run = run_of("examples/clusters/t4-on-demand.json", &["--faults", "restart-failure=0.5"]);
    assert!(run["failures"].as_f64().unwrap() > 0.0 && run["cost"].as_f64().unwrap() > 0.0, "{run}");
}

fn check_refused(args: &[&str], code: i32, expected: &str) {
    let output = pollux(args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(expected), "{said}");
}

#[test]
fn what_makes_no_sense_is_said() {
    check_refused(&args("2x4:t4", &["--scaler", "goodput"]), 2, "only rented nodes");
    for fault in ["mtbf=200h", "reclaim=0.1", "straggler=0.1,restart-failure=0.1"] {
        let refused = "`--faults` and a file as `--cluster`: rented nodes come and go as their file says";
        check_refused(&args("examples/clusters/t4-spot.json", &["--faults", fault]), 2, refused);
    }
    check_refused(&args("nowhere.json", &[]), 3, "nowhere.json");
    check_refused(&args("examples/snapshot.json", &[]), 4, "examples/snapshot.json: `");
}
