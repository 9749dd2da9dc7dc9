//! Simulations through the command: what is kept, and that threads change none of it.
#![allow(clippy::print_stderr, reason = "what was not compared is said")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder of this test that is not there yet.
fn absent(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn pollux(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pollux"));
    command.current_dir(root()).args(args).output().unwrap()
}

/// All files below a folder by their path in it, without lines that tell the time spent.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_string_lossy().replace('\\', "/");
                found.insert(name, without_times(&fs::read(&path).unwrap()));
            }
        }
    }
    found
}

/// Text without the time spent, which is a line of its own or an object of five.
fn without_times(bytes: &[u8]) -> String {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let mut lines = text.lines();
    let mut kept = String::new();
    while let Some(line) = lines.next() {
        match line.trim_start().strip_prefix("\"wall_s\": ") {
            Some("{") => while lines.next().is_some_and(|line| line.trim() != "}") {},
            Some(_) => {}
            None => kept.extend([line, "\n"]),
        }
    }
    kept
}

const CAMPAIGN: [&str; 9] = [
    "sim",
    "run",
    "--policy",
    "pollux:tuned,tiresias",
    "--workload",
    "generate:jobs=6,hours=1,mix=ncf:1+cifar10:1",
    "--seeds",
    "1..2",
    "--noise=0.1",
];

#[test]
fn threads_change_no_byte() {
    let kept = |threads: &str| {
        let folder = absent(&format!("threads-{threads}"));
        let out = folder.display().to_string();
        let more = ["-o", "json", "--threads", threads, "--out", out.as_str()];
        let output = pollux(&[&CAMPAIGN[..], &more[..]].concat());
        assert!(output.status.success(), "{output:?}");
        (without_times(&output.stdout), files(&folder))
    };
    let (json, files) = kept("1");
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let workload = "generate_jobs=6_hours=1_mix=ncf_1+cifar10_1";
    let mut expected = ["results.json", "report.html"].map(str::to_owned).to_vec();
    let figures =
        ["summary", "jct-cdf", "usage", "gantt-pollux-tuned", "gantt-tiresias", "job", "fairness-cdf"];
    expected.extend(figures.map(|figure| format!("data/{figure}.csv")));
    for policy in ["pollux_tuned", "tiresias"] {
        for seed in ["seed1", "seed2"] {
            expected.push(format!("{policy}/{workload}-{seed}/jobs.csv"));
            expected.push(format!("{policy}/{workload}-{seed}/timeline.csv"));
        }
    }
    expected.sort();
    assert_eq!(names, expected);
    assert_eq!(files["results.json"], json);
    let jobs = &files[&format!("tiresias/{workload}-seed1/jobs.csv")];
    assert!(
        jobs.starts_with("name,application,submitted_s,completed_s,jct_s,restarts,gpu_seconds,rho,failures,redone_gpu_seconds\n"),
        "{jobs}"
    );
    assert_eq!(jobs.lines().count(), 7);
    assert_eq!(kept("3"), (json, files));
}

#[test]
fn what_is_generated_can_be_read_again() {
    let workload = pollux(&["sim", "workload", "generate:jobs=5,hours=1,mix=ncf:1", "--seed", "3"]);
    assert!(workload.status.success(), "{workload:?}");
    let folder = absent("generated");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("drawn.csv"), &workload.stdout).unwrap();
    let figures = |workload: &str| {
        let args = ["sim", "run", "--policy", "fifo", "--seeds", "3", "-o", "json", "--workload", workload];
        let output = pollux(&args);
        assert!(output.status.success(), "{output:?}");
        let text = without_times(&output.stdout);
        text.lines().filter(|line| !line.contains("\"workload\"")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(figures(&folder.display().to_string()), figures("generate:jobs=5,hours=1,mix=ncf:1"));
}

#[test]
fn an_error_in_the_arguments_writes_nothing() {
    let folder = absent("nothing");
    let out = folder.display().to_string();
    let output = pollux(&["sim", "run", "--policy", "fifo", "--workload", "gone.csv", "--out", out.as_str()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(output.stdout.is_empty() && !folder.exists());
}

#[test] // bert was measured on T4 alone, ncf is made out to have been on H100 too: jobs of ncf run, bert is refused.
fn a_job_of_which_no_gpu_was_measured_is_named() {
    let folder = absent("half-measured");
    fs::create_dir_all(&folder).unwrap();
    let profiles = root().join("crates/pollux-sim/profiles");
    fs::copy(profiles.join("bert.json"), folder.join("bert.json")).unwrap();
    let ncf = fs::read_to_string(profiles.join("ncf.json")).unwrap();
    assert!(ncf.contains("\"t4\""));
    fs::write(folder.join("ncf.json"), ncf.replace("\"t4\"", "\"h100\"")).unwrap();
    let run = |rows: &str| {
        let workload = folder.join("jobs.csv");
        fs::write(&workload, format!("name,time,application,num_replicas,batch_size\n{rows}")).unwrap();
        let [traces, workload] = [&folder, &workload].map(|path| path.display().to_string());
        let run = ["sim", "run", "--policy", "pollux,fifo", "--cluster", "4x4:h100"];
        pollux(&[&run[..], &["--traces", &traces, "--workload", &workload][..]].concat())
    };
    let output = run("ncf-0,10,ncf,1,32768\n");
    assert!(output.status.success(), "{output:?}");
    let output = run("ncf-0,10,ncf,1,32768\nbert-1,20,bert,2,24\n");
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    let expected = "error: policy `pollux`, workload `jobs`, seed 1: bert-1: the profile of `bert` has no step times on h100";
    assert!(error.starts_with(expected), "{error}");
}

/// Where the authors' data lies: `POLLUX_DATA`, or `../shared/data` beside the repository.
fn osdi21() -> Option<PathBuf> {
    let data = std::env::var_os("POLLUX_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let folder = data.join("pollux-osdi21");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("NOT COMPARED WITH THE ARTIFACT: {} does not exist; set POLLUX_DATA", folder.display());
    None
}

/// The table of simplices: `POLLUX_OSDI21_TABLE`, or where `cargo xtask osdi21-table` leaves it.
fn table() -> Option<PathBuf> {
    let named = std::env::var_os("POLLUX_OSDI21_TABLE").map(PathBuf::from);
    let table = named.unwrap_or_else(|| root().join("target/osdi21-table.json"));
    if table.is_file() {
        return Some(table);
    }
    eprintln!(
        "NOT COMPARED WITH THE ARTIFACT: {} does not exist; run `cargo xtask osdi21-table`",
        table.display()
    );
    None
}

#[test] // The artifact's own run of this workload has a mean of 2473.65 s.
fn the_artifact_is_repeated_through_the_command() {
    let (Some(data), Some(table)) = (osdi21(), table()) else { return };
    let [workload, traces] =
        ["workloads/workload-1.csv", "traces"].map(|part| data.join(part).display().to_string());
    let table = table.display().to_string();
    let args = ["sim", "run", "--policy", "tiresias", "--workload", workload.as_str(), "--compat", "osdi21"];
    let output = pollux(&[&args[..], &["--traces", &traces, "--table", &table, "-o", "json"][..]].concat());
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let recorded = data.join("../reference/runs/tiresias-workloads-1.csv");
    let recorded = fs::read_to_string(recorded).unwrap();
    let jcts: Vec<f64> =
        recorded.lines().skip(1).map(|line| line.split(',').nth(4).unwrap().parse().unwrap()).collect();
    let mean = jcts.iter().sum::<f64>() / jcts.len() as f64;
    let ours = json["runs"][0]["avg_jct_s"].as_f64().unwrap();
    assert!((ours - mean).abs() < 1e-6, "{ours} s, recorded {mean} s");
}

#[test] // Plans are made while a job is on its way; none of them may hide why it was sent.
fn a_story_says_why_and_not_that_it_was_on_its_way() {
    let few = ["--policy", "pollux", "--workload", "generate:jobs=20,hours=1", "--cluster", "4x4:t4"];
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pollux"));
    let output = command.args(["sim", "run"]).args(few).args(["--show", "cifar10-3"]).output().unwrap();
    let story = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && story.contains("Why it got what it got"), "{story}");
    assert!(!story.contains("is restarting"), "{story}");
}
