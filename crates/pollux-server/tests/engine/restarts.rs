//! The scheduler dies and comes back: nothing is lost, nothing is done twice.

use std::fs;
use std::process::{Child, Command};
use std::slice;

use crate::site::{Site, WAIT, end, run, supervisor, until};
use pollux_core::Generation;
use pollux_model::JobId;
use pollux_server::engine::folder::RunFolder;
use pollux_server::engine::{End, EngineError, Found, How, Process, RunId};

/// A run as the scheduler names it.
fn pair(run: RunId) -> (JobId, Generation) {
    (run.job, run.generation)
}

#[tokio::test]
async fn a_live_run_is_found_again() {
    let site = Site::new();
    let (engine, events) = site.engine();
    let script = format!("echo $$ > pid; {WAIT} exit 3");
    engine.start(site.request(run(1), 2, &script)).await.expect("a start");
    let worker = site.process("pid").await;
    drop((engine, events));
    assert!(worker.is_alive());

    let (engine, mut events) = site.engine();
    assert!(matches!(engine.start(site.request(run(2), 1, "exit 0")).await, Err(EngineError::NotAdopted)));
    let found = engine.adopt(&[pair(run(1)), pair(run(2))]).await.expect("runs");
    assert_eq!(found, [Found::Live, Found::Never]);
    assert_eq!(engine.held().len(), 2);
    site.let_go();
    let how = end(&mut events, run(1)).await;
    assert!(matches!(how, How::Failed { end: End::Code(3), .. }), "{how:?}");
    assert_eq!(engine.held(), []);
}

#[tokio::test]
async fn an_end_that_nobody_watched_is_known() {
    let site = Site::new();
    let (engine, events) = site.engine();
    engine.start(site.request(run(1), 1, &format!("echo > up; {WAIT} exit 0"))).await.expect("a start");
    site.file("up").await;
    drop((engine, events));
    site.let_go();
    until(|| site.run_folder(run(1)).exit(0).is_ok_and(|exit| exit.is_some())).await;
    let (engine, _events) = site.engine();
    assert_eq!(engine.adopt(&[pair(run(1))]).await.expect("runs"), [Found::Ended(How::Finished)]);
    assert_eq!(engine.held(), []);
}

#[tokio::test]
async fn a_worker_dies_with_its_supervisor() {
    let site = Site::new();
    let (engine, mut events) = site.engine();
    let script = "sleep 1000 & echo $! > child; echo $$ > pid; wait";
    engine.start(site.request(run(1), 1, script)).await.expect("a start");
    let (worker, child) = (site.process("pid").await, site.process("child").await);
    kill_supervisor(&site);
    let how = end(&mut events, run(1)).await;
    assert_eq!(how, How::Failed { rank: 0, end: End::Lost, out_of_memory: false });
    assert!(!worker.is_alive() && !child.is_alive());
    assert_eq!(engine.held(), []);
}

#[tokio::test]
async fn a_supervisor_that_was_killed_while_nobody_watched_is_noticed() {
    let site = Site::new();
    let (engine, events) = site.engine();
    engine.start(site.request(run(1), 1, "echo $$ > pid; sleep 1000")).await.expect("a start");
    let worker = site.process("pid").await;
    drop((engine, events));
    kill_supervisor(&site);
    let (engine, _events) = site.engine();
    let lost = How::Failed { rank: 0, end: End::Lost, out_of_memory: false };
    // The kernel may still be at it; what is found in the end is the same.
    until(|| !worker.is_alive()).await;
    assert_eq!(engine.adopt(&[pair(run(1))]).await.expect("runs"), [Found::Ended(lost.clone())]);
    // And it stays so.
    let (engine, _events) = site.engine();
    assert_eq!(engine.adopt(&[pair(run(1))]).await.expect("runs"), [Found::Ended(lost)]);
}

fn kill_supervisor(site: &Site) {
    let record = site.run_folder(run(1)).pid(0).expect("a record").expect("a supervisor");
    let pid = record.supervisor.expect("a supervisor").pid.to_string();
    assert!(Command::new("kill").args(["-9", &pid]).status().expect("kill").success());
}

#[tokio::test]
async fn nothing_is_started_twice() {
    let site = Site::new();
    let (engine, mut events) = site.engine();
    let request = || site.request(run(1), 1, &format!("echo started >> starts; {WAIT} exit 0"));
    let first = engine.start(request()).await.expect("a start");
    site.file("starts").await;
    assert_eq!(engine.start(request()).await.expect("the same run"), first);
    drop(engine);
    let (engine, next_events) = site.engine();
    events.close();
    let mut events = next_events;
    engine.adopt(&[pair(run(1))]).await.expect("runs");
    assert_eq!(engine.start(request()).await.expect("the same run"), first);
    // A second supervisor, as if the first had been slow to say that it is there.
    let mut second = Command::new(supervisor());
    second.arg("supervise").arg(site.run_folder(run(1)).path()).arg("0");
    let output = second.output().expect("an answer");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing was done"));
    site.let_go();
    assert_eq!(end(&mut events, run(1)).await, How::Finished);
    // Over, and asked for once more: it is told again how it ended.
    engine.start(request()).await.expect("the same run");
    assert_eq!(end(&mut events, run(1)).await, How::Finished);
    assert_eq!(fs::read_to_string(site.work("starts")).expect("a file"), "started\n");
}

#[tokio::test]
async fn a_start_that_was_cut_short_goes_on() {
    let site = Site::new();
    let (engine, mut events) = site.engine();
    // What a start writes first, without what it does next.
    let spec = engine.start(site.request(run(1), 2, "echo $RANK >> ranks")).await.expect("a start");
    assert_eq!(end(&mut events, run(1)).await, How::Finished);
    fs::remove_dir_all(site.run_folder(run(1)).path()).expect("a folder");
    RunFolder::create(&site.runs(), &spec).expect("a folder");
    drop(engine);

    let (engine, mut events) = site.engine();
    assert_eq!(engine.adopt(&[pair(run(1))]).await.expect("runs"), [Found::Live]);
    assert_eq!(end(&mut events, run(1)).await, How::Finished);
    assert_eq!(fs::read_to_string(site.work("ranks")).expect("a file").lines().count(), 4);
}

#[tokio::test]
async fn a_start_that_was_cut_short_and_stopped_does_not_go_on() {
    let site = Site::new();
    let (engine, mut events) = site.engine();
    let spec = engine.start(site.request(run(1), 1, "echo >> ran")).await.expect("a start");
    assert_eq!(end(&mut events, run(1)).await, How::Finished);
    fs::remove_dir_all(site.run_folder(run(1)).path()).expect("a folder");
    RunFolder::create(&site.runs(), &spec).expect("a folder").mark_stop().expect("a mark");

    let (engine, _events) = site.engine();
    assert_eq!(engine.adopt(&[pair(run(1))]).await.expect("runs"), [Found::Ended(How::Left)]);
    assert_eq!(fs::read_to_string(site.work("ran")).expect("a file").lines().count(), 1);
    // A supervisor that was on its way all the time finds that it must not.
    let mut late = Command::new(supervisor());
    let late = late.arg("supervise").arg(site.run_folder(run(1)).path()).arg("0").output();
    assert!(!late.expect("an answer").status.success());
}

#[tokio::test]
async fn foreign_files_are_no_reason_to_fall() {
    let site = Site::new();
    let (engine, mut events) = site.engine();
    engine.start(site.request(run(1), 1, "exit 0")).await.expect("a start");
    assert_eq!(end(&mut events, run(1)).await, How::Finished);
    let folder = site.run_folder(run(1));
    let lost = Found::Ended(How::Failed { rank: 0, end: End::Lost, out_of_memory: false });
    for (file, text) in [("0.exit", "{\"version\""), ("0.pid", "\u{0}"), ("run.json", "[]")] {
        fs::write(folder.path().join(file), text).expect("a file");
        let (engine, _events) = site.engine();
        assert_eq!(engine.adopt(&[pair(run(1))]).await.expect("runs"), slice::from_ref(&lost), "{file}");
    }
    fs::write(site.runs().join("README"), "not a run").expect("a file");
    assert_eq!(RunFolder::list(&site.runs()), [run(1)]);
}

/// A process that says it belongs to a run.
fn stray(tag: &str) -> (Child, Process) {
    let child = Command::new("sleep").arg("1000").env("POLLUX_RUN", tag).spawn().expect("sleep");
    let process = Process::of(i32::try_from(child.id()).expect("a number")).expect("a process");
    (child, process)
}

#[tokio::test]
async fn orphans_of_this_state_folder_are_ended_and_no_others() {
    let site = Site::new();
    let (engine, _events) = site.engine();
    let (mut ours, orphan) = stray(&format!("{}/99.1.0", site.state()));
    let (mut expected, kept) = stray(&format!("{}/98.1.0", site.state()));
    let (mut theirs, foreign) = stray("another/99.1.0");
    // Until it has become `sleep`, a child still has our environment.
    let marked = |process: &Process| {
        let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        environment.windows(11).any(|window| window == b"POLLUX_RUN=")
    };
    until(|| [&orphan, &kept, &foreign].into_iter().all(marked)).await;
    assert_eq!(engine.kill_orphans(&[pair(run(98))]).await, 1);
    assert!(!orphan.is_alive() && kept.is_alive() && foreign.is_alive());
    engine.adopt(&[]).await.expect("runs");
    assert!(!kept.is_alive() && foreign.is_alive());
    theirs.kill().expect("a process");
    for child in [&mut ours, &mut expected, &mut theirs] {
        let _ = child.wait();
    }
}

#[tokio::test] // The processes of a run that the scheduler gave up are ended, though their supervisor lives.
async fn a_live_run_that_nobody_expects_is_ended() {
    let site = Site::new();
    let (engine, events) = site.engine();
    engine.start(site.request(run(1), 1, "echo $$ > pid; sleep 1000")).await.expect("a start");
    let worker = site.process("pid").await;
    drop((engine, events));
    let (engine, mut events) = site.engine();
    engine.adopt(&[]).await.expect("runs");
    assert!(!worker.is_alive());
    engine.start(site.request(run(2), 2, "exit 0")).await.expect("a start");
    assert_eq!(end(&mut events, run(2)).await, How::Finished);
}
