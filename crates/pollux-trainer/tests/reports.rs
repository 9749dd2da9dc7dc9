//! Rank 0 speaks to the scheduler, and training never waits for it.

mod common;

use std::net::TcpListener;

use common::server::{Request, serve};
use common::{Job, folder, number};

const SOON: &str = r#"{"version": 1, "orders": [], "report_every_s": 0.02}"#;

fn job(name: &str, server: &str) -> Job {
    let token = folder(name).join("token");
    std::fs::write(&token, "secret\n").unwrap();
    Job::new("--report-every 0.02")
        .with("POLLUX_SERVER", server)
        .with("POLLUX_TOKEN_FILE", token.display())
        .with("POLLUX_ATTEMPT", 7)
        .with("POLLUX_JOB_ID", 3)
}

#[test]
fn reports_arrive_with_the_token_and_the_attempt() {
    let (server, requests) = serve(|_, _| (200, SOON.to_owned()));
    let said = job("reports", &server).steps(400).run(2);
    let requests: Vec<Request> = requests.try_iter().collect();
    for request in &requests {
        assert_eq!(request.line, "POST /v1/agent/reports HTTP/1.1");
        assert_eq!(request.authorization, "Bearer secret");
        assert_eq!((request.body["version"].as_u64(), request.body["attempt"].as_u64()), (Some(1), Some(7)));
    }
    let first_report = requests.iter().position(|request| !request.body["report"].is_null()).unwrap();
    assert_eq!(requests[first_report].body["training"], true, "reports come after a step");
    let last = &requests.last().unwrap().body;
    assert!(last["report"]["progress"].as_f64().unwrap() >= 400.0, "the last one tells of the end: {last}");
    assert!(number(&said, "done: accuracy") > 0.8);
}

#[test]
fn an_order_to_stop_is_heeded() {
    let (server, _requests) = serve(|_, request| {
        let stop =
            r#"{"version": 1, "orders": [{"dance": {}}, {"stop": {"grace_s": 9}}], "report_every_s": 1}"#;
        (200, if request.body["training"] == true { stop } else { SOON }.to_owned())
    });
    let checkpoints = folder("stop-saved");
    let job = job("stop", &server).with("POLLUX_CHECKPOINT_PATH", checkpoints.display());
    let ends = job.steps(1_000_000_000).start(2).end();
    assert!(ends.iter().all(|end| end.code == Some(143)), "{ends:?}");
    assert_eq!(std::fs::read_dir(checkpoints).unwrap().count(), 1);
}

#[test]
fn an_order_to_save_is_heeded() {
    let (server, _requests) = serve(|count, request| {
        let saved = r#"{"orders": [{"checkpoint": {}}], "report_every_s": 0.02}"#;
        let stop = r#"{"orders": [{"stop": {}}]}"#;
        let training = request.body["training"] == true;
        (
            200,
            if count > 20 {
                stop
            } else if training {
                saved
            } else {
                SOON
            }
            .to_owned(),
        )
    });
    let checkpoints = folder("orders-saved");
    let job = job("orders", &server).with("POLLUX_CHECKPOINT_PATH", checkpoints.display());
    let ends = job.steps(1_000_000_000).start(1).end();
    assert_eq!(ends[0].code, Some(143), "{ends:?}");
    assert_eq!(std::fs::read_dir(checkpoints).unwrap().count(), 2, "the one before is kept");
}

#[test] // It trains on until it is told to stop, which it only hears if it asks again.
fn a_server_that_fails_is_asked_again() {
    let (server, requests) = serve(|count, _| match count {
        0 => (503, SOON.to_owned()),
        _ => (200, r#"{"orders": [{"stop": {}}], "report_every_s": 0.02}"#.to_owned()),
    });
    let ends = job("again", &server).steps(1_000_000_000).start(1).end();
    assert_eq!(ends[0].code, Some(143), "{ends:?}");
    let requests: Vec<Request> = requests.try_iter().collect();
    assert!(requests.len() >= 2, "{requests:?}");
    assert!(!requests.last().unwrap().body["report"].is_null());
}

#[test]
fn training_needs_no_server() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let said = job("nobody", &format!("http://{nobody}")).steps(100).run(1);
    assert!(said.contains("after 100 steps") || number(&said, "done: accuracy") > 0.5, "{said}");
    // One that takes calls and never answers.
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", deaf.local_addr().unwrap());
    job("deaf", &address).steps(100).run(1);
}
