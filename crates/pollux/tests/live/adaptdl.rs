//! AdaptDL's client, as PyPI has it, under a real scheduler: hints, peers, a resize, the end.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::scheduler::Scheduler;

/// Names the Python that has the client and a PyTorch; `cargo xtask test-all` prepares one.
const PYTHON: &str = "POLLUX_ADAPTDL_PYTHON";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The Python, if there is one.
fn python() -> Option<PathBuf> {
    let named = std::env::var_os(PYTHON).map(PathBuf::from);
    if let Some(named) = &named {
        assert!(named.exists(), "{PYTHON} is {}, which is not there", named.display());
    }
    named.or_else(|| Some(root().join("target/venv-adaptdl/bin/python")).filter(|python| python.exists()))
}

#[test]
fn the_released_client_reports_is_resized_and_finishes() {
    let Some(python) = python() else {
        let what = format!("NOT CHECKED: AdaptDL's client; `cargo xtask test-all` does, or set {PYTHON}");
        // Where nobody listens there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "{what}");
        return;
    };
    let scheduler = Scheduler::up("1x2:t4");
    // The shipped job, with this Python and from here.
    let job = std::fs::read_to_string(root().join("examples/adaptdl/job.yaml")).unwrap();
    let job = job.replace("python3", &python.display().to_string());
    let job = job.replace(
        "examples/adaptdl/train.py",
        &root().join("examples/adaptdl/train.py").display().to_string(),
    );
    scheduler.ok(&["submit", &scheduler.file("job.yaml", &job)]);

    // Until it has said something, nobody would dare to move it.
    let quiet = scheduler.until("adaptdl", |job| job["state"] == "running");
    assert_eq!((&quiet["is_rigid"], &quiet["gpus"], &quiet["batch"]), (&true.into(), &1.into(), &().into()));

    // Its hints make it a job like any other, and the GPU beside it is free: it is asked to leave, and comes back on both.
    let grown = scheduler.until("adaptdl", |job| job["gpus"] == 2 && job["state"] == "running");
    assert_eq!(grown["is_rigid"], false);
    assert_eq!(grown["attempts"][0]["how"], "it left as asked");
    assert!(grown["noise_scale"].as_f64() > Some(0.0), "{grown}");
    assert!(grown["batch"].as_u64() >= Some(32) && grown["batch"].as_u64() <= Some(256), "{grown}");
    assert!(grown["goodput"].as_f64() > Some(0.0), "{grown}");
    let saved = scheduler.folder().join("jobs/1/checkpoint/checkpoint-0");
    assert!(saved.join("adaptdl-dataparallel").exists(), "{}", saved.display());
    let exit = std::fs::read_to_string(scheduler.folder().join("runs/1.1/0.exit")).unwrap();
    let exit: serde_json::Value = serde_json::from_str(&exit).unwrap();
    assert_eq!(exit["end"]["code"], 143, "{exit}");

    assert_eq!(scheduler.ok(&["wait", "adaptdl", "--timeout", "240"]), "adaptdl: finished\n");
    let log = |rank: &str, attempt: &str| {
        let last = scheduler.ok(&["logs", "adaptdl", "--rank", rank, "--attempt", attempt]);
        last.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (alone, first, second) = (log("0", "1"), log("0", "2"), log("1", "2"));
    assert!(alone.contains(&"replica 0 of 1, restart 0".to_owned()), "{alone:?}");
    assert!(first.contains(&"replica 0 of 2, restart 1".to_owned()), "{first:?}");
    assert!(second.contains(&"replica 1 of 2, restart 1".to_owned()), "{second:?}");
    // The second start goes on with the epoch in which the first left.
    let epochs = |log: &[String]| {
        let told = log.iter().filter_map(|line| line.strip_prefix("epoch ")?.split(':').next()?.parse().ok());
        told.collect::<Vec<u32>>()
    };
    let (before, after) = (epochs(&alone), epochs(&first));
    assert_eq!(before.first(), Some(&0), "{alone:?}");
    assert_eq!(after.first().copied(), before.last().map(|last| last + 1), "{alone:?} {first:?}");
    assert_eq!((after.last(), first.last().map(String::as_str)), (Some(&59), Some("done")), "{first:?}");
    // Peers came from the scheduler: the client asks for them in each start.
    assert!(second.iter().any(|line| line.contains("tcp://127.0.0.1:")), "{second:?}");
}
