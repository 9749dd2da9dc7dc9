//! Jobs and those who submit them: growth, kills, tokens, wrong inputs.

use std::fs;
use std::process::Command;

use crate::scheduler::{Scheduler, digits, text};

#[test]
fn a_plain_command_runs_and_its_output_is_kept() {
    let scheduler = Scheduler::up("1x2:t4");
    let submitted = scheduler.ok(&[
        "submit",
        "--name",
        "hello",
        "--gpus",
        "2",
        "-o",
        "name",
        "--",
        "sh",
        "-c",
        "echo rank $RANK of $WORLD_SIZE on $POLLUX_GPU_TYPE",
    ]);
    assert_eq!(submitted, "hello\n");
    assert_eq!(scheduler.ok(&["wait", "hello", "--timeout", "60"]), "hello: finished\n");
    assert_eq!(scheduler.ok(&["logs", "hello"]), "rank 0 of 2 on t4\n");
    assert_eq!(scheduler.ok(&["logs", "-f", "hello", "--rank", "1"]), "rank 1 of 2 on t4\n");
    let job = scheduler.json(&["describe", "hello"]);
    assert_eq!(
        (&job["state"], &job["is_emulated"], &job["attempts"][0]["attempt"]),
        (&"finished".into(), &true.into(), &1.into())
    );
    assert!(scheduler.ok(&["history", "-o", "name"]).contains("hello"));
    assert!(scheduler.ok(&["events"]).contains("hello finished"));
}

#[test]
fn exit_codes_decide_what_becomes_of_a_job() {
    let scheduler = Scheduler::up("1x2:t4");
    scheduler.ok(&["submit", "--name", "bad", "--", "sh", "-c", "exit 7"]);
    scheduler.check_refused(&["wait", "bad", "--timeout", "60"], 1, "not all jobs finished: bad");
    assert_eq!(scheduler.json(&["describe", "bad"])["reason"], "rank 0 exited with 7");
}

#[test] // The first job reports, so it may grow, move and come back; its batch and learning rate follow.
fn a_job_that_reports_grows_and_comes_back() {
    let scheduler = Scheduler::up("2x2:t4");
    let file = scheduler.file("digits.yaml", &digits(500, "1..4"));
    scheduler.ok(&["submit", &file]);
    assert_eq!(scheduler.ok(&["wait", "digits", "--timeout", "240"]), "digits: finished\n");
    let job = scheduler.json(&["describe", "digits"]);
    let most = job["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| {
            attempt["nodes"].as_object().unwrap().values().map(|gpus| gpus.as_u64().unwrap()).sum::<u64>()
        })
        .max();
    assert!(most > Some(1), "{job}");
    assert!(job["restarts"].as_u64() > Some(0), "{job}");
    assert!(job["lr_factor"].as_f64() >= Some(1.0), "{job}");
    assert!(scheduler.ok(&["logs", "digits"]).contains("done: accuracy"));
    let explained = scheduler.ok(&["explain", "job", "digits"]);
    assert!(explained.contains("times the speed of one GPU"), "{explained}");
    assert!(scheduler.ok(&["explain", "round", "1"]).contains("round 1 at"));
}

#[test]
fn a_scheduler_that_is_killed_loses_nothing_and_repeats_nothing() {
    let scheduler = Scheduler::up("1x4:t4");
    let file = scheduler.file("digits.yaml", &digits(300, "1..2"));
    scheduler.ok(&["submit", &file]);
    let count = scheduler.folder().join("count");
    let script = format!("echo x >> {}; sleep 3", count.display());
    for _ in 0..3 {
        scheduler.ok(&["submit", "--name", "plain", "--", "sh", "-c", &script]);
        scheduler.kill();
        scheduler.check_refused(&["list"], 5, "cannot reach the scheduler");
        scheduler.start();
    }
    let names = scheduler.ok(&["list", "--all", "-o", "name"]);
    assert_eq!(names, "digits\nplain\nplain-2\nplain-3\n");
    let ended = scheduler.ok(&["wait", "digits", "plain", "plain-2", "plain-3", "--timeout", "240"]);
    assert_eq!(ended, "digits: finished\nplain: finished\nplain-2: finished\nplain-3: finished\n");
    assert_eq!(fs::read_to_string(&count).unwrap(), "x\nx\nx\n", "every command was run once");
    scheduler.check_refused(&["replay"], 1, "is in use by process");
    scheduler.ok(&["down"]);
    let replayed = scheduler.json(&["replay"]);
    assert_eq!((&replayed["n_differences"], &replayed["unplanned"]), (&0.into(), &0.into()), "{replayed}");
    assert!(replayed["plans"].as_u64() > Some(3), "{replayed}");
    scheduler.start();
}

#[test]
fn users_pause_resume_set_and_cancel() {
    let scheduler = Scheduler::up("1x2:t4");
    scheduler.ok(&["submit", "--name", "rigid", "--", "sleep", "600"]);
    let file = scheduler.file("digits.yaml", &digits(100_000, "1"));
    scheduler.ok(&["submit", &file]);
    scheduler.until("digits", |job| job["state"] == "running" && job["progress"].as_f64() > Some(0.0));
    scheduler.check_refused(&["pause", "rigid"], 4, "never reported, so a pause would destroy it");
    scheduler.ok(&["pause", "digits"]);
    scheduler.until("digits", |job| job["state"] == "paused");
    scheduler.ok(&["resume", "digits"]);
    scheduler.until("digits", |job| job["state"] == "running");
    scheduler.check_refused(&["set", "digits"], 2, "nothing to change");
    let set = scheduler.json(&["set", "digits", "--priority", "high", "--max", "1"]);
    assert_eq!((&set[0]["priority"], &set[0]["max_gpus"]), (&"high".into(), &1.into()));
    scheduler.ok(&["cancel", "digits", "rigid"]);
    scheduler.until("digits", |job| job["state"] == "cancelled");
    scheduler.until("rigid", |job| job["state"] == "cancelled");
}

fn with_token<'a>(args: &[&'a str], file: &'a str) -> Vec<&'a str> {
    [args, &["--token-file", file]].concat()
}

#[test]
fn nobody_gets_more_than_a_role_allows() {
    let scheduler = Scheduler::up("1x2:t4");
    scheduler.ok(&["submit", "--name", "admins", "--", "sleep", "600"]);
    let token = |owner: &str, role: &str| {
        let secret = scheduler.ok(&["token", "create", owner, "--role", role]);
        scheduler.file(&format!("{owner}.token"), &secret)
    };
    let (viewer, user) = (token("vera", "viewer"), token("ada", "submitter"));
    let as_viewer = |args: &[&'static str]| with_token(args, &viewer);
    let as_user = |args: &[&'static str]| with_token(args, &user);
    scheduler.ok(&as_viewer(&["list"]));
    let submit = ["submit", "--name", "x", "--token-file"];
    scheduler.check_refused(&[&submit[..], &[&viewer, "--", "true"]].concat(), 5, "may look, not submit");
    scheduler.check_refused(&as_viewer(&["node", "drain", "node-0"]), 5, "needs an administrator's token");
    scheduler.check_refused(
        &as_user(&["cancel", "admins"]),
        5,
        "only admin and administrators may change it",
    );
    scheduler.check_refused(&as_user(&["token", "list"]), 5, "needs an administrator's token");
    scheduler.ok(&[&submit[..], &[&user, "--", "true"]].concat());
    let wrong = scheduler.file("wrong.token", "plx_nothing");
    scheduler.check_refused(&["list", "--token-file", &wrong], 5, "no valid token");
    let tokens = scheduler.json(&["token", "list"]);
    let ada = tokens.as_array().unwrap().iter().find(|token| token["owner"] == "ada").unwrap();
    scheduler.ok(&["token", "revoke", ada["id"].as_str().unwrap()]);
    scheduler.check_refused(&as_user(&["list"]), 5, "no valid token");
    assert!(
        !fs::read(scheduler.folder().join("pollux.db")).unwrap().windows(8).any(|bytes| bytes == b"plx_noth")
    );
}

#[test]
fn what_if_and_queues_and_nodes() {
    let scheduler = Scheduler::up("2x2:t4");
    scheduler.ok(&["queue", "set", "vision", "--entitled", "t4=2"]);
    scheduler.ok(&["submit", "--name", "one", "--queue", "vision", "--", "sleep", "600"]);
    scheduler.check_refused(
        &["submit", "--queue", "visoin", "--", "true"],
        4,
        "there is no queue `visoin`; there are vision",
    );
    scheduler.check_refused(
        &["submit", "--gpus", "9", "--", "true"],
        4,
        "the job needs at least 9 GPUs, the cluster has 4",
    );
    scheduler.until("one", |job| job["state"] == "running");
    let answer = scheduler.json(&["whatif", "--add-nodes", "1x4:t4", "--cancel", "one"]);
    assert_eq!((&answer["jobs"][0]["name"], &answer["jobs"][0]["gpus_now"]), (&"one".into(), &1.into()));
    assert_eq!(scheduler.json(&["node", "cordon", "node-1"])[0]["state"], "cordoned");
    scheduler.check_refused(&["node", "cordon", "node-9"], 3, "there is no node `node-9`");
    // Also after a restart.
    scheduler.kill();
    scheduler.start();
    assert_eq!(scheduler.json(&["queue", "list"])[0]["held"], 1);
    scheduler.check_refused(&["queue", "remove", "vision"], 4, "group");
}

#[test]
fn wrong_inputs_are_told() {
    let scheduler = Scheduler::up("1x2:t4");
    let second =
        scheduler.command().args(["up", "--emulate", "1x1:t4", "--listen", "127.0.0.1:0"]).output().unwrap();
    assert!(text(&second.stderr).contains("is in use by process"), "{}", text(&second.stderr));
    let file = scheduler.file("bad.yaml", "name: x\ncomand: [true]\n");
    scheduler.check_refused(&["submit", &file], 4, "did you mean `command`");
    scheduler.check_refused(&["describe", "nobody"], 3, "there is no job `nobody`");
    scheduler.check_refused(&["explain", "round", "77"], 3, "there is no round `77`");
    scheduler.check_refused(&["list", "--status", "runing"], 4, "there is no state `runing`");
    scheduler.check_refused(&["submit", "/nowhere.yaml"], 3, "there is no file");
    let port = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let output = scheduler
        .command()
        .env("POLLUX_STATE", port.path())
        .args(["up", "--emulate", "1x1:t4", "--listen", &listen])
        .output()
        .unwrap();
    assert!(text(&output.stderr).contains(&format!("cannot listen at {listen}")), "{}", text(&output.stderr));
    let shape = scheduler
        .command()
        .env("POLLUX_STATE", port.path())
        .args(["up", "--emulate", "4by4"])
        .output()
        .unwrap();
    assert!(text(&shape.stderr).contains("is no shape of a cluster"), "{}", text(&shape.stderr));
}

#[test] // Each run and each agent takes a few; many systems begin with 1024.
fn the_scheduler_asks_for_enough_open_files() {
    let scheduler = Scheduler::down("1x2:t4");
    let script = "ulimit -S -n 256; exec \"$0\" up --emulate 1x2:t4 --listen 127.0.0.1:0 --detach";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_pollux")])
        .env("POLLUX_STATE", scheduler.folder())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let limits = fs::read_to_string(format!("/proc/{}/limits", scheduler.pid())).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let soft: u64 = line.split_whitespace().next().unwrap().parse().unwrap();
    assert!(soft > 256, "{line}");
}
