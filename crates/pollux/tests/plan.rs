//! Snapshots through a pipe, and plans that repeat.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn pollux(args: &[&str], stdin: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pollux"));
    command.args(args).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that fails before it reads closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    child.wait_with_output().unwrap()
}

const EXAMPLE: &[u8] = include_bytes!("../../../examples/snapshot.json");

#[test]
fn a_pipe_serves_as_a_file() {
    for format in ["text", "json"] {
        let piped = pollux(&["plan", "-", "-o", format], EXAMPLE);
        let file = pollux(&["plan", "examples/snapshot.json", "-o", format], b"");
        assert!(piped.status.success(), "{piped:?}");
        assert_eq!(piped.stdout, file.stdout);
        assert!(piped.stderr.starts_with(b"note: planned in "), "{piped:?}");
    }
}

#[test]
fn a_bad_pipe_is_called_standard_input() {
    let output = pollux(&["plan", "-"], b"{\"nodes\": [],");
    assert_eq!(output.status.code(), Some(4));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: standard input:1:13: not JSON: EOF"), "{said}");
}

#[test]
fn the_same_snapshot_and_seed_give_the_same_bytes() {
    let plan = |seed| pollux(&["plan", "-", "--seed", seed, "-o", "json"], EXAMPLE).stdout;
    assert!(!plan("3").is_empty());
    assert_eq!(plan("3"), plan("3"));
}

/// Two young jobs share both nodes: to move one would cost most of what it has. Returns who keeps its GPUs.
fn who_stays(policy: &str) -> Vec<bool> {
    let job = |name: &str| {
        format!(
            r#"{{"name": "{name}", "max_gpus": 4, "most_gpus": 4, "age_s": 10, "restart_cost_s": 30,
                "holds": {{"rack-0": 2, "rack-1": 2}},
                "models": {{"t4": {{"form": "linear", "noise_scale": 2400,
                    "params": {{"alpha_grad": 0.01, "beta_grad": 0.001, "alpha_local": 0.01, "beta_local": 0,
                        "alpha_node": 0.01, "beta_node": 0, "gamma": 1, "optimizer_step": 0}},
                    "batch": {{"initial": 128, "max": 2048, "micro_min": 16, "micro_max": 256}}}}}}}}"#
        )
    };
    let nodes = r#"[{"name": "rack", "count": 2, "gpu_type": "t4", "gpus": 4}]"#;
    let snapshot = format!(r#"{{"nodes": {nodes}, "jobs": [{}, {}]}}"#, job("one"), job("other"));
    let output = pollux(&["plan", "-", "--policy", policy, "-o", "json"], snapshot.as_bytes());
    assert!(output.status.success(), "{policy}: {output:?}");
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    plan["jobs"].as_array().unwrap().iter().map(|job| job["decision"] == "keep").collect()
}

#[test]
fn the_genetic_algorithm_keeps_neighbours_apart_unless_told_otherwise() {
    for name in ["pollux-ga-osdi21", "pollux-ga-paper"] {
        assert_ne!(who_stays(name), [true, true], "{name}");
        assert_eq!(who_stays(&format!("{name}:interference=allow")), [true, true], "{name}");
    }
}
