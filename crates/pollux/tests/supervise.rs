//! `pollux supervise` as the scheduler calls it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use pollux_core::Generation;
use pollux_model::JobId;
use pollux_server::engine::folder::{ExitRecord, RunFolder};
use pollux_server::engine::{End, Rank, RunId, RunSpec, Told};

/// The folder of a run of one process with this script.
fn folder(site: &Path, script: &str) -> RunFolder {
    let rank = Rank {
        node: "node-0".to_owned(),
        gpu_type: "t4".to_owned(),
        node_rank: 0,
        local_rank: 0,
        slots: vec![3],
    };
    let spec = RunSpec {
        version: 1,
        state: site.file_name().expect("a name").to_string_lossy().into_owned(),
        run: RunId::new(JobId(7), Generation(2)),
        name: "digits".to_owned(),
        ranks: vec![rank],
        master_port: 29_500,
        control_port: 29_501,
        told: Told {
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            workdir: site.to_owned(),
            grace_ms: 60_000,
            ..Told::default()
        },
    };
    RunFolder::create(&site.join("runs"), &spec).expect("a folder")
}

/// Waits until something is there; the limit is reached only when it never comes.
fn wait<T>(look: impl Fn() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_mins(2), "it never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn exit(folder: &RunFolder) -> Option<ExitRecord> {
    folder.exit(0).expect("a record")
}

#[test]
fn a_rank_is_started_once_and_its_end_is_recorded() {
    let site = tempfile::tempdir().expect("a folder");
    let folder = folder(site.path(), "echo on GPU $CUDA_VISIBLE_DEVICES of $POLLUX_NODE; exit 7");
    let supervise = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pollux"));
        command.arg("supervise").arg(folder.path()).arg("0").output().expect("an answer")
    };
    assert!(supervise().status.success());
    assert_eq!(exit(&folder).expect("an end").end, End::Code(7));
    assert!(!supervise().status.success());
    assert_eq!(fs::read_to_string(folder.file(0, "log")).expect("a log"), "on GPU 3 of node-0\n");
}

#[test] // The shell that starts it kills itself at once, as `kill -9` would the scheduler.
fn a_rank_outlives_who_started_it() {
    let site = tempfile::tempdir().expect("a folder");
    let folder = folder(site.path(), "while [ ! -e go ]; do sleep 0.02; done; echo saved; exit 0");
    let script = "\"$0\" supervise \"$1\" 0 > /dev/null & kill -9 $$";
    let killed = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_pollux")])
        .arg(folder.path())
        .status()
        .expect("a shell");
    assert!(!killed.success());
    wait(|| folder.pid(0).expect("a record")?.worker);
    fs::write(site.path().join("go"), "").expect("a file");
    assert_eq!(wait(|| exit(&folder)).end, End::Code(0));
    assert_eq!(fs::read_to_string(folder.file(0, "log")).expect("a log"), "saved\n");
}

#[test]
fn people_are_told_how_it_is_called() {
    let output = Command::new(env!("CARGO_BIN_EXE_pollux")).arg("supervise").output().expect("an answer");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("usage: pollux supervise RUN_FOLDER RANK"));
}
