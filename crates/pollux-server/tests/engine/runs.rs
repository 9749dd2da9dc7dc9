//! Runs with real processes: started, stopped, watched.

use std::fs;
use std::process::Command;

use crate::site::{Site, WAIT, end, next, run, supervisor, until};
use pollux_server::engine::slots::SlotsError;
use pollux_server::engine::{End, EngineError, EngineEvent, How, Limits, LogLimits, Share, Stop, Told};

fn failed(rank: u32, end: End) -> How {
    How::Failed { rank, end, out_of_memory: false }
}

/// One worker with this script ends so, and its GPU is free again.
async fn check_end(script: &str, expected: &How) {
    let site = Site::new();
    let (engine, mut events) = site.engine();
    engine.start(site.request(run(1), 1, script)).await.expect("a start");
    assert_eq!(&end(&mut events, run(1)).await, expected, "{script}");
    assert_eq!(engine.held(), []);
}

#[tokio::test]
async fn ends_are_told_apart() {
    check_end("exit 0", &How::Finished).await;
    check_end("exit 7", &failed(0, End::Code(7))).await;
    check_end("kill -9 $$", &failed(0, End::Signal(9))).await;
    check_end("exit 143", &How::Left).await;
    check_end("kill -15 $$", &How::Left).await;
}

#[tokio::test]
async fn a_command_that_cannot_run_says_so() {
    let site = Site::new();
    let (engine, mut events) = site.engine();
    let mut request = site.request(run(1), 1, "");
    request.told.command = vec!["no-such-program".to_owned()];
    engine.start(request).await.expect("a start");
    assert_eq!(end(&mut events, run(1)).await, failed(0, End::Code(127)));
    let log = fs::read_to_string(site.run_folder(run(1)).file(0, "log")).expect("a log");
    assert!(log.contains("cannot run `no-such-program`"), "{log}");

    let mut request = site.request(run(2), 1, "exit 0");
    request.told.workdir = site.work("nowhere");
    engine.start(request).await.expect("a start");
    let how = end(&mut events, run(2)).await;
    assert!(matches!(how, How::Failed { rank: 0, end: End::NotStarted(_), .. }), "{how:?}");
}

#[tokio::test]
async fn without_a_supervisor_a_run_fails_and_says_why() {
    let site = Site::new();
    let mut config = site.config();
    config.supervisor = vec!["no-such-program".into()];
    let (engine, mut events) = pollux_server::engine::LocalEngine::new(config);
    engine.start(site.request(run(1), 2, "exit 0")).await.expect("a folder");
    let how = end(&mut events, run(1)).await;
    assert!(matches!(how, How::Failed { rank: 0, end: End::NotStarted(_), .. }), "{how:?}");
    assert_eq!(engine.held(), []);
}

#[tokio::test]
async fn workers_are_told_who_they_are() {
    let site = Site::new();
    let (engine, mut events) = site.engine();
    let mut request = site.request(run(3), 1, "env > env.$RANK; pwd >> env.$RANK");
    request.shares.push(Share { node: "node-1".to_owned(), gpus: 2 });
    request.told.env.insert("LR".to_owned(), "0.1".to_owned());
    let spec = engine.start(request).await.expect("a start");
    assert_eq!(end(&mut events, run(3)).await, How::Finished);
    let told = fs::read_to_string(site.work("env.2")).expect("a file");
    let expected = [
        "LR=0.1".to_owned(),
        "WORLD_SIZE=3".to_owned(),
        "LOCAL_RANK=1".to_owned(),
        "POLLUX_NODE=node-1".to_owned(),
        "CUDA_VISIBLE_DEVICES=0,1".to_owned(),
        format!("MASTER_PORT={}", spec.master_port),
        format!("POLLUX_RUN={}/3.1.2", site.state()),
        site.work("").canonicalize().expect("a folder").display().to_string(),
    ];
    for line in expected {
        assert!(told.lines().any(|other| other == line), "{line} in\n{told}");
    }
    assert_ne!(spec.master_port, spec.control_port);
}

#[tokio::test]
async fn who_ignores_the_request_to_leave_is_killed_after_the_grace() {
    let site = Site::new();
    let (engine, mut events) = site.engine();
    let script = "trap '' TERM; echo $$ > pid; while :; do sleep 0.02; done";
    let mut request = site.request(run(1), 1, script);
    request.told.grace_ms = 200;
    engine.start(request).await.expect("a start");
    let worker = site.process("pid").await;
    assert_eq!(engine.stop(run(1).job, run(1).generation).await.expect("a stop"), Stop::Asked);
    assert_eq!(end(&mut events, run(1)).await, How::Left);
    assert!(!worker.is_alive());
    let exit = site.exit(run(1), 0);
    assert_eq!((exit.end, exit.asked, exit.killed_after_grace), (End::Signal(9), true, true));
    assert_eq!(engine.stop(run(1).job, run(1).generation).await.expect("a stop"), Stop::Gone);
}

#[tokio::test] // A grace of an hour: the test ends only if nobody waits for it.
async fn stopping_twice_is_stopping_once() {
    let site = Site::new();
    let (engine, mut events) = site.engine();
    let script =
        format!("trap '{WAIT} echo > saved; exit 143' TERM; echo > up; while :; do sleep 0.02; done");
    engine.start(site.request(run(1), 1, &script)).await.expect("a start");
    site.file("up").await;
    for _ in 0..3 {
        assert_eq!(engine.stop(run(1).job, run(1).generation).await.expect("a stop"), Stop::Asked);
    }
    until(|| site.run_folder(run(1)).is_asked(0)).await;
    engine.stop(run(1).job, run(1).generation).await.expect("a stop");
    // Not even another engine shortens the grace.
    drop((engine, events));
    let (engine, next_events) = site.engine();
    events = next_events;
    engine.adopt(&[(run(1).job, run(1).generation)]).await.expect("runs");
    engine.stop(run(1).job, run(1).generation).await.expect("a stop");
    site.let_go();
    assert_eq!(end(&mut events, run(1)).await, How::Left);
    assert!(site.work("saved").exists());
    assert!(!site.exit(run(1), 0).killed_after_grace);
}

#[tokio::test] // The shell dies of SIGTERM at once; what it started is still saving, and may.
async fn the_grace_is_also_for_children() {
    let site = Site::new();
    let (engine, mut events) = site.engine();
    let child = format!("trap \"{WAIT} echo > saved; exit 0\" TERM; echo > up; while :; do sleep 0.02; done");
    engine.start(site.request(run(1), 1, &format!("sh -c '{child}' & wait"))).await.expect("a start");
    site.file("up").await;
    engine.stop(run(1).job, run(1).generation).await.expect("a stop");
    until(|| site.run_folder(run(1)).is_asked(0)).await;
    site.let_go();
    assert_eq!(end(&mut events, run(1)).await, How::Left);
    assert!(site.work("saved").exists());
}

#[tokio::test]
async fn what_a_worker_leaves_behind_is_ended() {
    let site = Site::new();
    let (engine, mut events) = site.engine();
    let script = "sleep 1000 & echo $! > child; setsid sleep 1000 & echo $! > far; echo > up; ";
    engine.start(site.request(run(1), 1, &format!("{script} {WAIT} exit 0"))).await.expect("a start");
    site.file("up").await;
    let (child, far) = (site.process("child").await, site.process("far").await);
    site.let_go();
    assert_eq!(end(&mut events, run(1)).await, How::Finished);
    assert!(!child.is_alive() && !far.is_alive());
}

#[tokio::test]
async fn one_rank_that_fails_ends_the_others() {
    let site = Site::new();
    let (engine, mut events) = site.engine();
    let script = "if [ $RANK = 1 ]; then exit 5; fi; while :; do sleep 0.02; done";
    engine.start(site.request(run(1), 2, script)).await.expect("a start");
    assert_eq!(end(&mut events, run(1)).await, failed(1, End::Code(5)));
    assert!(site.exit(run(1), 0).asked && !site.exit(run(1), 1).asked);
}

#[tokio::test]
async fn ranks_may_finish_one_after_the_other() {
    let site = Site::new();
    let (engine, mut events) = site.engine();
    let script = format!("if [ $RANK = 1 ]; then exit 0; fi; {WAIT} exit 0");
    engine.start(site.request(run(1), 2, &script)).await.expect("a start");
    until(|| site.run_folder(run(1)).exit(1).is_ok_and(|exit| exit.is_some())).await;
    assert_eq!(engine.held().len(), 2);
    site.let_go();
    assert_eq!(end(&mut events, run(1)).await, How::Finished);
}

#[tokio::test]
async fn logs_are_bounded() {
    let site = Site::new();
    let (engine, mut events) = site.engine();
    let script = "i=0; while [ $i -lt 999 ]; do echo line $i; i=$((i+1)); done; echo oops >&2";
    let mut request = site.request(run(1), 1, script);
    request.told.log = LogLimits { bytes: 1_000, files: 3 };
    engine.start(request).await.expect("a start");
    assert_eq!(end(&mut events, run(1)).await, How::Finished);
    let path = |kind| site.run_folder(run(1)).file(0, kind);
    let logs = ["log.2", "log.1", "log"].map(|kind| fs::read_to_string(path(kind)).expect("a log"));
    assert!(logs.iter().all(|log| log.len() <= 1_000 && log.starts_with("line ")), "{logs:?}");
    assert!(logs.concat().ends_with("line 997\nline 998\noops\n"));
    assert!(!path("log.3").exists());
}

#[tokio::test]
async fn gpus_are_held_by_one_run_at_a_time() {
    let site = Site::new();
    let (engine, mut events) = site.engine();
    let script = format!("{WAIT} exit 0");
    engine.start(site.request(run(1), 1, &script)).await.expect("a start");
    let second = engine.start(site.request(run(2), 1, &script)).await.expect("a start");
    assert_eq!(second.slots().collect::<Vec<_>>(), [("node-0", 1)]);
    let refused = engine.start(site.request(run(3), 1, &script)).await;
    assert!(matches!(refused, Err(EngineError::Slots(SlotsError::TooFew { free: 0, .. }))), "{refused:?}");
    assert!(!site.run_folder(run(3)).exists());
    site.let_go();
    let mut ended = 0;
    while ended < 2 {
        ended += u32::from(matches!(next(&mut events).await, EngineEvent::Ended { how: How::Finished, .. }));
    }
    engine.start(site.request(run(3), 2, "exit 0")).await.expect("a start");
    assert_eq!(end(&mut events, run(3)).await, How::Finished);
}

#[tokio::test]
async fn requests_that_make_no_sense_are_refused() {
    let site = Site::new();
    let (engine, _events) = site.engine();
    let whole = site.request(run(1), 2, "exit 0");
    let mut uneven = whole.clone();
    uneven.gpus_per_rank = 3;
    let mut empty = whole.clone();
    empty.shares.clear();
    let no_command = pollux_server::engine::RunRequest { told: Told::default(), ..whole };
    for request in [uneven, empty, no_command] {
        let refused = engine.start(request).await;
        assert!(matches!(refused, Err(EngineError::Request { .. })), "{refused:?}");
    }
    assert_eq!(engine.held(), []);
}

#[tokio::test] // Where control groups cannot be written the run goes on without limits, and says so.
async fn limits_hold_or_the_run_says_why_not() {
    let site = Site::new();
    let (engine, mut events) = site.engine();
    let mut request = site.request(run(1), 1, &format!("{WAIT} exit 0"));
    request.told.limits = Limits { memory_bytes: Some(1 << 30), cpus: Some(1.0) };
    engine.start(request).await.expect("a start");
    let EngineEvent::Up { without_limits, .. } = next(&mut events).await else { panic!("it waits") };
    site.let_go();
    assert_eq!(end(&mut events, run(1)).await, How::Finished);
    let exit = site.exit(run(1), 0);
    assert_eq!(exit.without_limits, without_limits);
    assert_ne!(exit.oom_kills.is_some(), without_limits.is_some(), "{exit:?}");
}

#[tokio::test]
async fn a_second_sigterm_ends_the_grace() {
    let site = Site::new();
    let (engine, mut events) = site.engine();
    let script = "trap '' TERM; echo $$ > pid; while :; do sleep 0.02; done";
    engine.start(site.request(run(1), 1, script)).await.expect("a start");
    site.process("pid").await;
    let record = site.run_folder(run(1)).pid(0).expect("a record").expect("a supervisor");
    let supervisor = record.supervisor.expect("a supervisor");
    let term = || Command::new("kill").arg(supervisor.pid.to_string()).output().expect("kill");
    assert!(term().status.success());
    until(|| site.run_folder(run(1)).is_asked(0)).await;
    // The supervisor may still be taking the first one in; repeat until it has understood.
    until(|| {
        term();
        !supervisor.is_alive()
    })
    .await;
    assert_eq!(end(&mut events, run(1)).await, How::Left);
    assert!(site.exit(run(1), 0).killed_after_grace);
}

#[test]
fn wrong_arguments_are_explained() {
    for args in [&["supervise"][..], &["supervise", "x"], &["supervise", "--exec", "1"]] {
        let output = Command::new(supervisor()).args(args).output().expect("an answer");
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("usage: pollux supervise"));
    }
    // The caller is not process 1: it must not become the command.
    let output = Command::new(supervisor()).args(["supervise", "--exec", "1", "--", "echo", "ran"]).output();
    let output = output.expect("an answer");
    assert!(!output.status.success() && output.stdout.is_empty());
}
