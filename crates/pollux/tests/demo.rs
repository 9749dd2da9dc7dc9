//! `pollux demo`, in its short form: two schedulers, real jobs, and nothing left running.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// The worker, which Cargo puts beside the command; made here if only this test is.
fn trainer() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_pollux")).with_file_name("pollux-trainer");
    if !path.exists() {
        let built =
            Command::new(env!("CARGO")).args(["build", "--locked", "--package", "pollux-trainer"]).status();
        assert!(built.unwrap().success());
    }
    path
}

fn demo(out: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pollux"));
    command.args(["demo", "--quick", "--out"]).arg(out).arg("--trainer").arg(trainer());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Command lines of processes that have to do with a folder.
fn left_running(folder: &Path) -> Vec<String> {
    let folder = fs::canonicalize(folder).unwrap().display().to_string();
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(&folder)).collect()
}

/// The part of the output under a heading.
fn section<'a>(output: &'a str, heading: &str) -> &'a str {
    let part = output.split("\n== ").find(|part| part.starts_with(heading));
    part.unwrap_or_else(|| panic!("no section {heading} in:\n{output}"))
}

#[test]
fn jobs_finish_under_both_and_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let output = demo(folder.path()).wait_with_output().unwrap();
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}{complained}");
    assert!(said.starts_with("3 jobs arrive within 2 s on 4 EMULATED GPUs"), "{said}");
    let names = ["vision", "speech", "ranking"];
    for heading in ["Pollux", "FIFO"] {
        let lines = section(&said, heading).lines();
        let done: Vec<&str> = lines.filter(|line| line.ends_with("done")).collect();
        assert!(names.iter().all(|name| done.iter().any(|line| line.contains(name))), "{said}");
    }
    // Who runs under Pollux is resized; under FIFO nobody is.
    let resized = |part: &str| {
        part.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let is_resize = |words: &[&str]| {
                words[0] != "0" && words[1] == "->" && words[2] != "0" && words[3].starts_with("GPU")
            };
            words.windows(4).any(is_resize)
        })
    };
    assert!(resized(section(&said, "Pollux")), "{said}");
    assert!(!resized(section(&said, "FIFO")), "{said}");
    let compared = section(&said, "Side by side");
    assert!(names.iter().all(|name| compared.lines().any(|line| line.starts_with(name))), "{compared}");
    assert!(compared.contains("mean completion time: "), "{compared}");
    assert!(compared.contains("times the speed of one GPU"), "{compared}");
    assert!(compared.contains("Pacing: of "), "{compared}");
    assert!(compared.contains("Simulated from the same job files, pollux: "), "{compared}");
    assert_eq!(left_running(folder.path()), Vec::<String>::new());
    for policy in ["pollux", "fifo"] {
        let journal = folder.path().join(policy).join("pollux.db");
        check_replay(&journal);
        check_simulated(&journal);
    }
}

fn json(args: &[&str], journal: &Path) -> Value {
    let output =
        Command::new(env!("CARGO_BIN_EXE_pollux")).args(args).arg(journal).args(["-o", "json"]).output();
    let output = output.unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{args:?}: {}", text(&output.stderr)))
}

/// What was journalled can be gone through again, by the service's shell and by the simulator's: both make the same plans and
/// ask for the same things.
fn check_replay(journal: &Path) {
    let service = json(&["replay"], journal);
    let simulator = json(&["replay", "--simulator"], journal);
    assert_eq!((&service["n_differences"], &service["unplanned"]), (&0.into(), &0.into()), "{service}");
    assert!(service["plans"].as_u64() > Some(3), "{service}");
    assert_eq!(service, simulator);
}

/// The simulator takes the journal's jobs, and simulates all of them to their ends. How near it comes is measured by the long form.
fn check_simulated(journal: &Path) {
    let compared = json(&["sim", "journal", "--report-every", "1"], journal);
    let jobs = compared["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 3, "{compared}");
    let is_timed =
        |job: &Value| job["live_s"].as_f64() > Some(0.0) && job["simulated_s"].as_f64() > Some(0.0);
    assert!(jobs.iter().all(is_timed), "{compared}");
    let workload = format!("journal:{}", journal.display());
    let args = [
        "sim",
        "run",
        "--policy",
        "fifo",
        "--cluster",
        "1x4:t4",
        "--restart",
        "application",
        "--workload",
        &workload,
    ];
    let output = Command::new(env!("CARGO_BIN_EXE_pollux")).args(args).output().unwrap();
    assert!(text(&output.stdout).contains("3 jobs of workload journal"), "{output:?}");
}

#[test]
fn who_interrupts_it_leaves_nothing_running() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = demo(folder.path());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let begun = lines.find(|line| line.contains("vision") && line.contains("1 GPU"));
    assert!(begun.is_some(), "a job began");
    assert!(!left_running(folder.path()).is_empty());
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    lines.for_each(drop);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("nothing was left running"), "{}", text(&output.stderr));
    assert_eq!(left_running(folder.path()), Vec::<String>::new());
}

#[test]
fn what_is_missing_is_told() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("pollux")).unwrap();
    let output = demo(folder.path()).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("already has a demo"), "{}", text(&output.stderr));
    let mut command = Command::new(env!("CARGO_BIN_EXE_pollux"));
    let output = command.args(["demo", "--trainer", "/nowhere/pollux-trainer"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("need `pollux-trainer`"), "{}", text(&output.stderr));
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
