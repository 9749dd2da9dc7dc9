//! A worker's line to the scheduler: reports out, orders in, and training never waits for either.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pollux_model::{AgentReport, Random};
use serde::Serialize;
use serde_json::Value;

use super::post::{Failure, Poster, Reply};
use crate::agent_report::AgentReportBody;

/// The version of the agent's protocol that this client speaks.
const VERSION: u64 = 1;
/// Between reports, until the server says otherwise.
const FIRST_EVERY: Duration = Duration::from_secs(5);
/// The first pause after a failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause, and the only one after a refusal: asking again soon would change nothing.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// For one request.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// For what is left to say when training ends.
const LAST_LIMIT: Duration = Duration::from_secs(1);

/// Where a worker reports to, and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkOptions {
    /// The server, such as `http://127.0.0.1:7117`.
    pub server: String,
    /// A file with the job's token; read for each request, so that a new token is noticed.
    pub token_file: Option<PathBuf>,
    /// Which start of the job this is.
    pub attempt: u64,
}

impl LinkOptions {
    /// What `POLLUX_SERVER`, `POLLUX_TOKEN_FILE` and `POLLUX_ATTEMPT` say; nothing where there is no server.
    ///
    /// ```
    /// use pollux_api::client::LinkOptions;
    ///
    /// let variable = |name: &str| (name == "POLLUX_SERVER").then(|| "http://127.0.0.1:7117/".to_owned());
    /// let options = LinkOptions::from_env(variable)?.unwrap();
    /// assert_eq!((options.server.as_str(), options.attempt), ("http://127.0.0.1:7117", 0));
    /// # Ok::<(), pollux_api::client::LinkOptionsError>(())
    /// ```
    pub fn from_env(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, LinkOptionsError> {
        let Some(server) = variable("POLLUX_SERVER").filter(|server| !server.is_empty()) else {
            return Ok(None);
        };
        let attempt = match variable("POLLUX_ATTEMPT") {
            None => 0,
            Some(value) => value.parse().map_err(|_| LinkOptionsError::Attempt { value })?,
        };
        Ok(Some(Self {
            server: server.trim_end_matches('/').to_owned(),
            token_file: variable("POLLUX_TOKEN_FILE").map(PathBuf::from),
            attempt,
        }))
    }
}

/// Variables that tell no server to report to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkOptionsError {
    /// The attempt is no number.
    #[error("POLLUX_ATTEMPT is `{value}`; it must be a whole number, the count of the job's starts")]
    Attempt {
        /// What it is instead.
        value: String,
    },
}

/// What the scheduler asks of a worker.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Save a checkpoint soon.
    Checkpoint,
    /// Save a checkpoint and end.
    Stop {
        /// Seconds until it is ended, if the server says so.
        grace_s: Option<f64>,
    },
}

/// Posts a job's reports from a thread of its own.
///
/// Nothing here blocks or fails: a report that could not be sent is replaced by the next one, a server that does not
/// answer is asked again after growing pauses with some chance in them, and only [`AgentLink::trouble`] tells of it.
/// Dropping it sends what is left to say, for at most a second.
#[derive(Debug)]
pub struct AgentLink {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    training: bool,
    /// The newest report not yet sent.
    report: Option<AgentReportBody>,
    /// Whether any report was given: the first of a run goes out at once.
    reported: bool,
    /// Whether to send before the next regular time.
    urgent: bool,
    orders: Vec<Order>,
    every: Duration,
    trouble: Option<String>,
    phase: Phase,
}

/// How far the thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Posting,
    /// The link was dropped: what is left to say is said once.
    Ending,
    Ended,
}

#[derive(Serialize)]
struct Message<'a> {
    version: u64,
    attempt: u64,
    training: bool,
    report: Option<&'a AgentReportBody>,
}

impl AgentLink {
    /// Starts to report.
    pub fn new(options: LinkOptions) -> Self {
        let state = State {
            training: false,
            report: None,
            reported: false,
            urgent: true,
            orders: Vec::new(),
            every: FIRST_EVERY,
            trouble: None,
            phase: Phase::Posting,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let worker = Arc::clone(&shared);
        let started = thread::Builder::new().name("agent-link".to_owned()).spawn(move || {
            post_until_the_end(&worker, &options);
            worker.lock().phase = Phase::Ended;
            worker.changed.notify_all();
        });
        if let Err(error) = started {
            let mut state = shared.lock();
            state.trouble = Some(format!("no thread to report from: {error}"));
            state.phase = Phase::Ended;
        }
        Self { shared }
    }

    /// Says that the first step of this attempt is done. Sent at once.
    pub fn training(&self) {
        let mut state = self.shared.lock();
        if !state.training {
            state.training = true;
            state.urgent = true;
            self.shared.changed.notify_all();
        }
    }

    /// Gives the newest report; an older one that was not sent yet is dropped.
    pub fn report(&self, report: &AgentReport) {
        let report = AgentReportBody::from(report);
        let mut state = self.shared.lock();
        state.report = Some(report);
        state.urgent |= !state.reported;
        state.reported = true;
        self.shared.changed.notify_all();
    }

    /// The orders that arrived since the last call.
    pub fn take_orders(&self) -> Vec<Order> {
        std::mem::take(&mut self.shared.lock().orders)
    }

    /// How often the server wants to hear of this job.
    pub fn report_every(&self) -> Duration {
        self.shared.lock().every
    }

    /// Why the last report did not arrive; nothing if it did.
    pub fn trouble(&self) -> Option<String> {
        self.shared.lock().trouble.clone()
    }
}

impl Drop for AgentLink {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if state.phase == Phase::Posting {
            state.phase = Phase::Ending;
        }
        self.shared.changed.notify_all();
        let deadline = Instant::now() + LAST_LIMIT;
        while state.phase != Phase::Ended {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.shared.wait(state, left);
        }
    }
}

impl Shared {
    /// The state; what a thread that panicked left behind is as good as any.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, limit: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Posts whenever it is time, until the link is dropped.
fn post_until_the_end(shared: &Shared, options: &LinkOptions) {
    let poster = Poster::new(options);
    let mut pauses = Pauses::new(options.attempt);
    let mut due = Instant::now();
    let mut told_training = false;
    loop {
        let mut state = shared.lock();
        loop {
            let left = due.saturating_duration_since(Instant::now());
            let hurry = state.urgent && pauses.n_failures == 0;
            if state.phase != Phase::Posting || hurry || left.is_zero() {
                break;
            }
            state = shared.wait(state, left);
        }
        let ending = state.phase != Phase::Posting;
        let training = state.training;
        if ending && state.report.is_none() && training == told_training {
            return;
        }
        state.urgent = false;
        let report = state.report.take();
        drop(state);

        let message =
            Message { version: VERSION, attempt: options.attempt, training, report: report.as_ref() };
        let limit = if ending { LAST_LIMIT } else { REQUEST_LIMIT };
        let outcome = poster.post(&message, limit);

        let mut state = shared.lock();
        match outcome {
            Ok(reply) => {
                told_training = training;
                state.take_in(&reply);
                pauses.n_failures = 0;
                due = Instant::now() + state.every;
            }
            Err(failure) => {
                // What did not arrive is sent again, unless there is something newer by now.
                state.report = state.report.take().or(report);
                due = Instant::now() + pauses.next(&failure);
                state.trouble = Some(failure.to_string());
            }
        }
        if ending {
            return;
        }
    }
}

impl State {
    fn take_in(&mut self, reply: &Reply) {
        self.trouble = None;
        if let Some(secs) = reply.report_every_s {
            self.every = Duration::from_secs_f64(secs.clamp(0.01, 3_600.0));
        }
        self.orders.extend(reply.orders.iter().filter_map(order));
    }
}

/// An order as the server wrote it; what this version does not know is left out.
fn order(order: &Value) -> Option<Order> {
    if order.get("checkpoint").is_some() {
        return Some(Order::Checkpoint);
    }
    let stop = order.get("stop")?;
    Some(Order::Stop { grace_s: stop.get("grace_s").and_then(Value::as_f64) })
}

/// Pauses that grow, with some chance in them so that many workers do not come back at one moment.
struct Pauses {
    n_failures: u32,
    random: Random,
}

impl Pauses {
    fn new(attempt: u64) -> Self {
        Self { n_failures: 0, random: Random::stream(std::process::id().into(), attempt) }
    }

    /// Between half and the whole of `0.5 s · 2^failures`, at most half a minute; at once that after a refusal.
    fn next(&mut self, failure: &Failure) -> Duration {
        let longest = match failure {
            Failure::Refused { .. } => LONGEST_PAUSE,
            Failure::NotReached { .. } | Failure::Server { .. } => {
                FIRST_PAUSE.saturating_mul(1 << self.n_failures.min(10)).min(LONGEST_PAUSE)
            }
        };
        self.n_failures += 1;
        longest.mul_f64(self.random.uniform(0.5, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_pause(pauses: &mut Pauses, failure: &Failure, most: f64) {
        let secs = pauses.next(failure).as_secs_f64();
        assert!((0.5 * most..=most).contains(&secs), "{secs} s, at most {most}");
    }

    #[test]
    fn pauses_grow_up_to_half_a_minute() {
        let mut pauses = Pauses::new(1);
        let down = Failure::NotReached { reason: "down".to_owned() };
        for most in [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0] {
            check_pause(&mut pauses, &down, most);
        }
        check_pause(&mut Pauses::new(1), &Failure::Refused { status: 409, text: String::new() }, 30.0);
    }

    #[test]
    fn unknown_orders_are_left_out() {
        let orders: Vec<Value> =
            serde_json::from_str(r#"[{"dance": 1}, {"checkpoint": {}}, {"stop": {"grace_s": 7}}, 3]"#)
                .unwrap();
        let known: Vec<Order> = orders.iter().filter_map(order).collect();
        assert_eq!(known, [Order::Checkpoint, Order::Stop { grace_s: Some(7.0) }]);
    }
}
