//! The worker's line to the scheduler, over real sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use pollux_agent::{Agent, AgentConfig, StepObservation, StepTiming};
use pollux_api::agent_report;
use pollux_api::client::{AgentLink, LinkOptions, Order};
use pollux_model::{AgentReport, BatchLimits, GpuType, Placement, Timestamp};
use serde_json::Value;

/// An agent's report after so many steps.
fn report(n_steps: u64) -> AgentReport {
    let mut agent = Agent::new(AgentConfig::new(BatchLimits::fixed(32, 1, 64).unwrap()));
    let gpu_type = GpuType::new("t4");
    let plan = agent.decide(&gpu_type, Placement::ALONE).unwrap().plan;
    let timing = StepTiming { accum_secs: None, optim_secs: 0.1, sync_secs: 0.0, optimizer_secs: 0.0 };
    let step =
        StepObservation { gpu_type, placement: Placement::ALONE, plan, timing: Some(timing), gradient: None };
    agent.observe_run(&step, n_steps);
    agent.poll(Timestamp::from_secs(60)).unwrap()
}

/// A server that shows each body, and answers it when it is told what.
struct Server {
    address: String,
    bodies: Receiver<Value>,
    answers: Sender<(u16, &'static str)>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (show, bodies) = channel();
        let (answers, answer) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                answer_all(&stream, &show, &answer);
            }
        });
        Self { address, bodies, answers }
    }

    fn link(&self) -> AgentLink {
        AgentLink::new(LinkOptions { server: self.address.clone(), token_file: None, attempt: 4 })
    }

    fn answer(&self, status: u16, body: &'static str) {
        self.answers.send((status, body)).unwrap();
    }
}

fn answer_all(mut stream: &TcpStream, show: &Sender<Value>, answer: &Receiver<(u16, &'static str)>) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
            let lower = line.to_ascii_lowercase();
            length =
                lower.strip_prefix("content-length:").map_or(length, |rest| rest.trim().parse().unwrap());
            line.clear();
        }
        let mut body = vec![0; length];
        if length == 0 || reader.read_exact(&mut body).is_err() {
            return;
        }
        let _ = show.send(serde_json::from_slice(&body).unwrap());
        let Ok((status, body)) = answer.recv() else { return };
        let head = format!("HTTP/1.1 {status} Said\r\nContent-Length: {}\r\n\r\n", body.len());
        let _ = stream.write_all(format!("{head}{body}").as_bytes());
    }
}

#[test]
fn the_newest_report_is_sent_and_older_ones_are_dropped() {
    let server = Server::start();
    let link = server.link();
    let hello = server.bodies.recv().unwrap();
    assert_eq!(hello, serde_json::json!({"version": 1, "attempt": 4, "training": false, "report": null}));
    // While the server thinks, three reports are given: the last one counts.
    link.training();
    for n_steps in [1, 2, 3] {
        link.report(&report(n_steps));
    }
    server.answer(200, r#"{"version": 1, "orders": [{"checkpoint": {}}], "report_every_s": 0.01, "new": 1}"#);
    let body = server.bodies.recv().unwrap();
    assert_eq!(body["training"], true);
    let read = agent_report::from_json(&body["report"].to_string()).unwrap();
    assert_eq!(read, report(3), "lossless");
    server.answer(200, "");
    // Nothing new: the server hears of the job all the same.
    assert!(server.bodies.recv().unwrap()["report"].is_null());
    assert_eq!(link.take_orders(), [Order::Checkpoint]);
    assert_eq!(link.report_every().as_secs_f64().to_string(), "0.01");
    assert_eq!(link.take_orders(), []);
    server.answer(200, "{}");
}

#[test]
fn what_did_not_arrive_is_tried_once_more_at_the_end() {
    let server = Server::start();
    let link = server.link();
    server.bodies.recv().unwrap();
    link.report(&report(1));
    server.answer(500, "out of order\nand more");
    server.answer(200, "{}");
    while link.trouble().is_none() {
        thread::yield_now();
    }
    assert_eq!(link.trouble().unwrap(), "the server answered 500: out of order");
    drop(link);
    assert_eq!(server.bodies.recv().unwrap()["report"]["progress"], 1.0);
}

#[test]
fn a_refusal_is_told_with_its_reason() {
    let server = Server::start();
    let link = server.link();
    server.answer(409, "attempt 5 is the current one");
    while link.trouble().is_none() {
        thread::yield_now();
    }
    let trouble = link.trouble().unwrap();
    assert_eq!(trouble, "the server refused the report with 409: attempt 5 is the current one");
}

#[test]
fn nobody_waits_for_a_server_that_does_not_answer() {
    let server = Server::start();
    let link = server.link();
    server.bodies.recv().unwrap();
    link.report(&report(1));
    // It would wait for as long as the server does.
    drop(link);
}
