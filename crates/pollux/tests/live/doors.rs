//! Wrong input at every door of the live scheduler: told what to do, nothing lost, nothing panics.

use crate::scheduler::{Scheduler, text};

/// Nothing that the scheduler wrote in the background tells of a panic.
fn check_calm(scheduler: &Scheduler) {
    let log = std::fs::read(scheduler.folder().join("pollux.log")).unwrap_or_default();
    assert!(!text(&log).contains("panicked"), "{}", text(&log));
}

#[test]
fn job_files_with_something_wrong_are_refused_with_the_place() {
    let scheduler = Scheduler::up("1x2:t4");
    let files = [
        ("empty.yaml", "", "empty.yaml"),
        ("list.yaml", "- a\n- b\n", "list.yaml:1:1"),
        ("no-command.yaml", "name: x\n", "`command` is missing"),
        ("twice.yaml", "name: x\nname: y\ncommand: a\n", "twice.yaml:2:1"),
        ("open.yaml", "name: x\ncommand: [a\n", "open.yaml"),
        ("name.yaml", "name: My Job\ncommand: a\n", "my-job"),
        ("gpus.yaml", "name: x\ncommand: a\nresources: {gpus: 4..2}\n", "gpus.yaml:3"),
        ("none.yaml", "name: x\ncommand: a\nresources: {gpus: 0}\n", "none.yaml:3"),
        ("version.yaml", "version: 9\nname: x\ncommand: a\n", "version.yaml:1"),
        ("ours.yaml", "name: x\ncommand: a\nenv: {RANK: 1}\n", "the scheduler sets this variable itself"),
        ("grace.toml", "name = 'x'\ncommand = 'a'\n[checkpoint]\ngrace = 'soon'\n", "grace.toml:4"),
        ("half.json", "{\"name\": \"x\", \"command\": ", "half.json:1"),
        ("deep.json", &"[".repeat(100_000), "deep.json"),
        ("nul.yaml", "name: x\ncommand: [\"a\\0\"]\n", "nul.yaml:2"),
    ];
    for (name, contents, says) in files {
        let file = scheduler.file(name, contents);
        scheduler.check_refused(&["submit", &file], 4, says);
    }
    std::fs::write(scheduler.folder().join("bytes.yaml"), [0xff, 0xfe, 0x00, 0xd8]).unwrap();
    scheduler.check_refused(&["submit", "bytes.yaml"], 4, "bytes.yaml");
    scheduler.check_refused(&["submit", "nowhere.yaml"], 3, "nowhere.yaml");
    scheduler.check_refused(&["submit", "."], 1, "directory");
    assert_eq!(scheduler.ok(&["list", "--all", "-o", "name"]), "");
    check_calm(&scheduler);
}

#[test]
fn flags_that_make_no_sense_are_refused_with_what_would() {
    let scheduler = Scheduler::down("1x2:t4");
    let emulated = |args: &[&'static str]| [&["up", "--emulate", "1x1:t4"], args].concat();
    scheduler.check_refused(&emulated(&["--round", "0"]), 2, "--round takes seconds from 0.05 to 86400");
    scheduler.check_refused(&emulated(&["--round", "nan"]), 2, "--round takes seconds from 0.05 to 86400");
    scheduler.check_refused(
        &emulated(&["--report-every", "inf"]),
        2,
        "--report-every takes seconds from 0.05",
    );
    scheduler.check_refused(&emulated(&["--seed", "x"]), 2, "--seed");
    scheduler.check_refused(&emulated(&["--listen", "nonsense"]), 1, "cannot listen at nonsense");
    scheduler.check_refused(&emulated(&["--listen", "127.0.0.1:99999"]), 1, "choose another with `--listen");
    scheduler.check_refused(&emulated(&["--policy", "polux"]), 1, "pollux");
    scheduler.check_refused(&emulated(&["--state", "/proc/nowhere"]), 1, "/proc/nowhere");
    for shape in ["0x1:t4", "4x4", "4096x4096:t4", "1x1:a b"] {
        scheduler.check_refused(
            &["up", "--emulate", shape],
            1,
            "is no shape of a cluster; write NODESxGPUS:TYPE",
        );
    }
    // What is wrong with a detached one is said as well.
    let detached = emulated(&["--detach", "--round", "0", "--listen", "127.0.0.1:0"]);
    scheduler.check_refused(&detached, 1, "--round takes seconds from 0.05 to 86400");
    scheduler.check_refused(&["list"], 5, "no scheduler runs with the state folder");
    scheduler.start();
    scheduler.check_refused(&["list", "--server", "nonsense"], 5, "cannot reach the scheduler at nonsense");
    scheduler.check_refused(&["token", "create", "a b"], 4, "an owner is called by 1 to 63 letters");
    scheduler.check_refused(&["token", "create", "ada", "--expires-days=-1"], 2, "more than 0 and less than");
    scheduler.check_refused(&["queue", "set", "q", "--cap", "t4=-1"], 2, "is not TYPE=GPUS, such as t4=8");
    scheduler.check_refused(&["queue", "set", "q", "--parent", "p"], 4, "is part of `p`, which is not there");
    scheduler.check_refused(&["submit", "--gpus", "4..2", "--", "true"], 4, "gpus");
    scheduler.check_refused(&["submit", "--priority", "urgent", "--", "true"], 4, "`urgent` is not `low`");
    scheduler.check_refused(&["whatif", "--weight", "x"], 2, "is not JOB=WEIGHT");
    scheduler.check_refused(&["whatif", "--add-nodes", "9999x9999:t4"], 4, "is no shape of a cluster");
    scheduler.check_refused(&["list", "--token-file", "/nowhere"], 1, "/nowhere");
    check_calm(&scheduler);
}

#[test]
fn bodies_and_questions_with_something_wrong_are_problems() {
    let scheduler = Scheduler::up("1x2:t4");
    let admin = scheduler.admin();
    scheduler.ok(&["submit", "--name", "one", "--", "sleep", "600"]);
    scheduler.until("one", |job| job["state"] == "running");
    let token = "for i in 1 2 3; do :; done; cat $POLLUX_TOKEN_FILE; sleep 600";
    scheduler.ok(&["submit", "--name", "two", "--", "sh", "-c", token]);
    scheduler.until("two", |job| job["state"] == "running");
    let own = loop {
        let printed = scheduler.ok(&["logs", "two"]);
        if printed.ends_with('\n') {
            break printed.trim().to_owned();
        }
    };
    let before = scheduler.everything();
    let long = format!("{{\"name\": \"{}\"}}", "x".repeat(2 << 20));
    let deep = "[".repeat(100_000);
    let wrong: [&[u8]; 10] = [
        b"",
        b"{",
        b"[]",
        b"7",
        b"\"x\"",
        b"{\"no such field\": 1}",
        b"\xff\xfe",
        b"{\"a\": 1e999}",
        long.as_bytes(),
        deep.as_bytes(),
    ];
    let document = scheduler.call("GET", "/openapi.json", Some(&admin), None).json();
    let mut n_doors = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let token = if path.contains("/agent/") { &own } else { &admin };
        let place = path.replace("{job}", "one").replace("{node}", "node-0").replace("{queue}", "q");
        let place = place.replace("{token}", &own).replace("{namespace}", "pollux").replace("{name}", "two");
        for (method, operation) in methods.as_object().unwrap() {
            if operation["requestBody"].is_null() {
                continue;
            }
            n_doors += 1;
            let method = method.to_uppercase();
            for body in wrong {
                // Some of these are as good as an empty change.
                let is_fine = body == b"{\"a\": 1e999}" || body == b"{\"no such field\": 1}";
                let answer = scheduler.call(&method, &place, Some(token), Some(body));
                let said = answer.json();
                let is_told = matches!(answer.status, 413 | 422)
                    && answer.kind == "application/problem+json"
                    && said["detail"].as_str().is_some_and(|detail| detail.len() > 10);
                assert!(
                    is_told || is_fine && answer.status == 200,
                    "{method} {path} {:?}: {} {}",
                    text(&body[..body.len().min(40)]),
                    answer.status,
                    answer.body
                );
            }
            let answer = scheduler.send(&method, &place, Some(token), "text/plain", Some(b"{}"));
            assert!(
                answer.body.contains("Content-Type: application/json"),
                "{method} {path}: {}",
                answer.body
            );
        }
    }
    assert!(n_doors >= 8, "{n_doors}");
    let asked = [
        ("/v1/rounds/first", 422, "first"),
        ("/v1/rounds/18446744073709551616", 422, "18446744073709551616"),
        ("/v1/jobs/%ff", 422, "UTF-8"),
        ("/v1/jobs?limit=-1", 422, "limit"),
        ("/v1/jobs?after=x", 422, "after"),
        ("/v1/jobs/one/logs?follow=perhaps", 422, "follow"),
        ("/v1/jobs/one/logs?rank=7", 404, "has no rank 7"),
        ("/v1/jobs/onne", 404, "did you mean `one`?"),
        ("/v1/events?job=nobody", 404, "there is no job `nobody`"),
        ("/v1/nowhere", 404, "/openapi.json lists all routes"),
    ];
    for (path, status, says) in asked {
        let answer = scheduler.call("GET", path, Some(&admin), None);
        assert_eq!((answer.status, answer.kind.as_str()), (status, "application/problem+json"), "{path}");
        assert!(answer.json()["detail"].as_str().unwrap().contains(says), "{path}: {}", answer.body);
    }
    // Nothing is after the end of all numbers, and a group beyond them is never there.
    let after = scheduler.call("GET", "/v1/events?after=18446744073709551615", Some(&admin), None);
    assert_eq!((after.status, after.body.as_str()), (200, "[]"));
    let beyond = format!("/adaptdl/{own}/discover/pollux/two/4294967295?timeout=0");
    assert_eq!(scheduler.call("GET", &beyond, None, None).status, 408);
    let answer = scheduler.call("DELETE", "/v1/jobs", Some(&admin), None);
    assert_eq!((answer.status, answer.kind.as_str()), (405, "application/problem+json"), "{}", answer.body);
    let forever = br#"{"owner": "ada", "role": "viewer", "expires_s": 18446744073709551615}"#;
    let answer = scheduler.call("POST", "/v1/tokens", Some(&admin), Some(forever));
    assert!(answer.body.contains("at most 100 years"), "{}", answer.body);
    assert_eq!(scheduler.everything(), before);
    check_calm(&scheduler);
}

#[test]
fn a_folder_and_a_port_have_one_scheduler() {
    let scheduler = Scheduler::up("1x2:t4");
    let second = ["up", "--emulate", "1x1:t4", "--listen", "127.0.0.1:0"];
    scheduler.check_refused(&second, 1, "is in use by process");
    scheduler.check_refused(
        &second,
        1,
        "hint: `pollux down` stops it; another scheduler needs another folder",
    );
    scheduler.check_refused(&[&second[..], &["--detach"]].concat(), 1, "is in use by process");
    let other = tempfile::tempdir().unwrap();
    let other = other.path().display().to_string();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let held = std::net::TcpListener::bind(taken).unwrap();
    let listen = taken.to_string();
    let up = ["up", "--emulate", "1x1:t4", "--state", &other, "--listen", &listen];
    scheduler.check_refused(&up, 1, &format!("cannot listen at {listen}"));
    scheduler.check_refused(&up, 1, "hint: choose another with `--listen 127.0.0.1:PORT`");
    drop(held);
    // The first one has not noticed.
    scheduler.ok(&["submit", "--name", "one", "--", "true"]);
    assert_eq!(scheduler.ok(&["wait", "one", "--timeout", "60"]), "one: finished\n");
    check_calm(&scheduler);
}
