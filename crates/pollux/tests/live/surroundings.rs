//! What surrounds jobs: TLS, systemd, logs and their removal, GPUs that are out, orders, flags.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::scheduler::{Scheduler, digits, text};

#[test] // The certificate vouches for itself, as on a network of one's own.
fn other_machines_come_in_over_tls() {
    let scheduler = Scheduler::up("1x1:t4");
    scheduler.ok(&["down"]);
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = scheduler.file("cert.pem", &made.cert.pem());
    let key = scheduler.file("key.pem", &made.signing_key.serialize_pem());
    scheduler.start_with(&["--tls-listen", "127.0.0.1:0", "--tls-cert", &certificate, "--tls-key", &key]);
    let url = scheduler.running()["tls"].as_str().unwrap().replace("127.0.0.1", "localhost");
    let status = scheduler.ok(&["status", "--server", &url, "--ca-file", &certificate]);
    assert!(status.contains("0 of 1 GPUs held"), "{status}");
    // Nobody else is believed, and the door speaks nothing but TLS.
    scheduler.check_refused(&["status", "--server", &url], 5, "certificate");
    let plain = url.replace("https", "http");
    scheduler.check_refused(&["status", "--server", &plain], 5, "cannot reach");
    // The inner door is there as before.
    scheduler.ok(&["status"]);
}

#[test]
fn doors_that_would_show_tokens_stay_shut() {
    let scheduler = Scheduler::up("1x1:t4");
    scheduler.ok(&["down"]);
    let up = ["up", "--emulate", "1x1:t4", "--listen"];
    let with = |more: &[&'static str]| [&up[..], more].concat();
    scheduler.check_refused(&with(&["0.0.0.0:0"]), 1, "--tls-listen");
    scheduler.check_refused(&with(&["127.0.0.1:0", "--tls-listen", "127.0.0.1:0"]), 2, "--tls-cert");
    let nowhere =
        ["127.0.0.1:0", "--tls-listen", "127.0.0.1:0", "--tls-cert", "no.pem", "--tls-key", "no.pem"];
    scheduler.check_refused(&with(&nowhere), 1, "no.pem");
    scheduler.file("empty.pem", "");
    let empty =
        ["127.0.0.1:0", "--tls-listen", "127.0.0.1:0", "--tls-cert", "empty.pem", "--tls-key", "empty.pem"];
    scheduler.check_refused(&with(&empty), 1, "no certificate");
    scheduler.start();
}

#[test]
fn systemd_and_its_journal_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_pollux"))
        .args(["up", "--emulate", "1x1:t4", "--listen", "127.0.0.1:0", "--log-format", "json", "--state"])
        .arg(folder.path().join("state"))
        .env("NOTIFY_SOCKET", &path)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let heard = || {
        let mut bytes = [0; 64];
        let n = socket.recv(&mut bytes).unwrap();
        text(&bytes[..n])
    };
    assert_eq!(heard(), "READY=1");
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert_eq!(heard(), "STOPPING=1");
    let output = child.wait().map(|status| (status, child.stderr.take())).unwrap();
    assert!(output.0.success());
    let said = std::io::read_to_string(output.1.unwrap()).unwrap();
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines[0]["text"].as_str().unwrap().contains("pollux listens at"), "{said}");
}

#[test]
fn old_logs_are_removed_and_the_log_of_events_is_kept() {
    let scheduler = Scheduler::up("1x1:t4");
    scheduler.ok(&["submit", "--name", "first", "--wait", "--", "echo", "hello"]);
    assert_eq!(scheduler.ok(&["logs", "first"]), "hello\n");
    scheduler.ok(&["down"]);
    let log = fs::read_to_string(scheduler.folder().join("pollux.log")).unwrap();
    assert!(log.contains("first starts on 1 GPUs (node-0=1), attempt 1"), "{log}");
    scheduler.start_with(&["--keep-logs-days", "0"]);
    for _ in 0..100 {
        if !scheduler.run(&["logs", "first"]).status.success() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    scheduler.check_refused(&["logs", "first"], 3, "removed");
    scheduler.ok(&["describe", "first"]);
}

#[test] // A GPU that is out is out for plans and for the engine, also after a restart.
fn nothing_starts_on_a_gpu_that_is_out() {
    let scheduler = Scheduler::up("1x2:t4");
    scheduler.check_refused(&["node", "cordon", "node-0", "--gpu", "7"], 4, "its GPUs are 0, 1");
    scheduler.ok(&["node", "cordon", "node-0", "--gpu", "0"]);
    let described = scheduler.ok(&["node", "describe", "node-0"]);
    assert!(described.contains("cordoned by admin"), "{described}");
    scheduler.kill();
    scheduler.start();
    scheduler.ok(&["submit", "--name", "one", "--wait", "--", "sh", "-c", "echo GPU $CUDA_VISIBLE_DEVICES"]);
    assert_eq!(scheduler.ok(&["logs", "one"]), "GPU 1\n");
    scheduler.ok(&["submit", "--name", "both", "--gpus", "2", "--", "true"]);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(scheduler.json(&["describe", "both"])["state"], "pending");
    scheduler.ok(&["node", "open", "node-0", "--gpu", "0"]);
    assert_eq!(scheduler.ok(&["wait", "both", "--timeout", "60"]), "both: finished\n");
    let events = scheduler.ok(&["events"]);
    assert!(events.contains("nothing is started on GPU 0 (cordoned by admin) of node-0"), "{events}");
}

#[test]
fn a_job_saves_its_state_when_asked() {
    let scheduler = Scheduler::up("1x1:t4");
    scheduler.check_refused(&["checkpoint", "nobody"], 3, "nobody");
    let file = scheduler.file("digits.yaml", &digits(100_000, "1"));
    // So rarely by itself that what is found was asked for.
    let file_text =
        fs::read_to_string(&file).unwrap().replace("'100000'", "'100000', --checkpoint-every, '9999'");
    fs::write(&file, file_text).unwrap();
    scheduler.ok(&["submit", &file]);
    scheduler.until("digits", |job| job["progress"].as_f64().is_some_and(|progress| progress > 0.0));
    let saved = scheduler.folder().join("jobs/1/checkpoint");
    assert_eq!(fs::read_dir(&saved).unwrap().count(), 0);
    scheduler.ok(&["checkpoint", "digits"]);
    scheduler.until("digits", |_| fs::read_dir(&saved).unwrap().count() > 0);
    assert_eq!(scheduler.json(&["describe", "digits"])["state"], "running");
}

#[test]
fn flags_say_what_a_job_file_would() {
    let scheduler = Scheduler::up("2x2:t4,1x1:a100");
    let flags = [
        "--type",
        "a100",
        "--workdir",
        "/",
        "--env",
        "GREETING=hello",
        "--cpus",
        "1",
        "--memory",
        "1Gi",
        "--max-failures",
        "2",
        "--application",
        "greeting",
        "--grace",
        "5s",
        "--priority",
        "high",
    ];
    let command = ["--", "sh", "-c", "echo $GREETING from $PWD on $POLLUX_GPU_TYPE"];
    scheduler.ok(&[&["submit", "--name", "one", "--wait"], &flags[..], &command].concat());
    assert_eq!(scheduler.ok(&["logs", "one"]), "hello from / on a100\n");
    let shown = scheduler.json(&["describe", "one"]);
    assert_eq!(shown["priority"], "high");
    assert_eq!(shown["file"]["training"]["application"], "greeting");
    scheduler.check_refused(&["submit", "--memory", "much", "--", "true"], 4, "--memory");
    scheduler.check_refused(&["submit", "--env", "loud", "--", "true"], 4, "--env");

    // An array is so many jobs, each of which knows which it is.
    let names =
        scheduler.ok(&["submit", "--name", "many", "--array", "3", "-o", "name", "--", "sh", "-c", "env"]);
    let names: Vec<&str> = names.lines().collect();
    assert_eq!(names.len(), 3, "{names:?}");
    scheduler.ok(&["wait"]);
    let indices: Vec<String> = names
        .iter()
        .map(|name| {
            let env = scheduler.ok(&["logs", name]);
            env.lines().find(|line| line.starts_with("POLLUX_ARRAY_INDEX=")).unwrap_or("none").to_owned()
        })
        .collect();
    assert_eq!(indices, ["POLLUX_ARRAY_INDEX=0", "POLLUX_ARRAY_INDEX=1", "POLLUX_ARRAY_INDEX=2"]);
}

#[test]
fn a_dry_run_plans_and_changes_nothing() {
    let scheduler = Scheduler::up("1x4:t4");
    let planned = scheduler.ok(&["submit", "--name", "big", "--gpus", "3", "--dry-run=plan", "--", "true"]);
    assert_eq!(
        planned.lines().nth(1).map(|line| line.split_whitespace().collect()),
        Some(vec!["big", "-", "3", "1.00"])
    );
    let huge = ["submit", "--name", "huge", "--gpus", "9", "--dry-run=plan", "--", "true"];
    scheduler.check_refused(&huge, 4, "the job needs at least 9 GPUs, the cluster has 4");
    assert_eq!(scheduler.ok(&["list", "--all", "-o", "name"]), "");
}

#[test]
fn a_minimum_run_time_is_kept_and_explained() {
    let scheduler = Scheduler::up("1x2:t4");
    let file = scheduler.file("digits.yaml", &digits(100_000, "1..2"));
    scheduler.ok(&["submit", &file, "--min-runtime", "1h"]);
    scheduler.until("digits", |job| job["state"] == "running" && job["progress"].as_f64().is_some());
    let why = scheduler.ok(&["explain", "job", "digits"]);
    assert!(why.contains("its minimum run time is not over"), "{why}");
}

#[test]
fn shells_and_manuals_know_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let pollux = || Command::new(env!("CARGO_BIN_EXE_pollux"));
    for shell in ["bash", "zsh", "fish"] {
        let output = pollux().args(["completion", shell]).output().unwrap();
        assert!(output.status.success() && text(&output.stdout).contains("submit"), "{shell}");
    }
    assert!(pollux().arg("man").arg(folder.path()).status().unwrap().success());
    let page = fs::read_to_string(folder.path().join("pollux-submit.1")).unwrap();
    assert!(page.contains("dry\\-run"), "{page}");
    assert!(folder.path().join("pollux-sim-run.1").exists());
}
