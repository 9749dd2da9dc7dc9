//! A thousand agents that report every five seconds, while people look.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use pollux_api::agent_report::AgentReportBody;
use pollux_api::client::Client;
use pollux_api::rest::{AgentOrders, AgentReports, JobList, JobShown, JobState, VERSION};
use pollux_model::fit::{Coverage, Fit, RelativeError};
use pollux_model::{
    Affine, AgentReport, BatchLimits, BatchPlan, Compute, Estimator, GpuType, GradientMoments, NoiseReport,
    NoiseScale, PerfParams, Placement,
};

use crate::measure::verdict;
use crate::scheduler::{Scheduler, until};

/// What is promised: cores of the scheduler, and milliseconds of 99 of 100 answers.
const PROMISED: [f64; 2] = [0.5, 100.0];
const REPORT_EVERY: Duration = Duration::from_secs(5);
/// Threads that send reports.
const N_SENDERS: u32 = 4;

/// An agent, as the scheduler knows it.
struct Agent {
    client: Client,
    attempt: u32,
    number: u32,
}

/// Sends reports of all agents, and asks for lists and descriptions.
pub(crate) fn run(is_quick: bool) {
    let (n_nodes, secs) = if is_quick { (10, 10) } else { (250, 120) };
    let n_agents = 4 * n_nodes;
    let scheduler = Scheduler::up(&format!("{n_nodes}x4:t4"), &[]);
    let began = Instant::now();
    let text = format!(
        "name: agent\ncommand: [sleep, '100000']\nresources: {{gpus: 1..4}}\narray: {n_agents}\n\
         training: {{application: bench, batch: {{initial: 128, max: 4096, per_gpu: [16, 256]}}}}\n\
         checkpoint: {{grace: 1s}}\n"
    );
    scheduler.submit(&text);
    let is_started =
        |job: &JobShown| token(&scheduler, job.id, 1).is_some() && job.state == JobState::Starting;
    until("every job has begun", || scheduler.jobs().iter().all(is_started));
    println!("{n_agents} jobs began within {:.0} s.", began.elapsed().as_secs_f64());
    let agents: Vec<Agent> =
        scheduler.jobs().iter().zip(0..).map(|(job, number)| agent(&scheduler, job.id, number)).collect();
    // The first word of each is journalled at once: not what is measured.
    for agent in &agents {
        agent.report(0).expect("the first report is taken");
    }
    sleep(Duration::from_secs(2));

    let end = Instant::now() + Duration::from_secs(secs);
    let before = scheduler.cpu_secs();
    let began = Instant::now();
    let is_over = AtomicBool::new(false);
    let (mut reports, mut described, mut listed) = (Vec::new(), Vec::new(), Vec::new());
    let mut lost = 0;
    thread::scope(|scope| {
        let share = agents.len().div_ceil(N_SENDERS as usize);
        let senders: Vec<_> =
            agents.chunks(share).map(|agents| scope.spawn(move || send(agents, end))).collect();
        let looking = scope.spawn(|| look(&scheduler, &agents, &is_over));
        for sender in senders {
            let (times, n_lost) = sender.join().expect("a sender does not panic");
            reports.extend(times);
            lost += n_lost;
        }
        is_over.store(true, Ordering::Relaxed);
        (described, listed) = looking.join().expect("who looks does not panic");
    });
    let cores = (scheduler.cpu_secs() - before) / began.elapsed().as_secs_f64();
    let [now, most] = scheduler.memory_mb();
    let n_reports = reports.len();
    println!(
        "{n_agents} agents, {n_reports} reports in {:.0} s, {lost} not taken in:",
        began.elapsed().as_secs_f64()
    );
    println!("  the scheduler used {cores:.2} cores and {now:.0} MB ({most:.0} at most)");
    let mut all: Vec<f64> = Vec::new();
    for (what, times) in [("report", reports), ("describe", described), ("list of up to 500", listed)] {
        print_times(what, &times);
        all.extend(times);
    }
    let p99 = print_times("all answers", &all);
    let is_kept = cores < PROMISED[0] && p99 < PROMISED[1];
    println!(
        "  promised: below {} cores, 99th percentile below {} ms: {}",
        PROMISED[0],
        PROMISED[1],
        verdict(is_kept)
    );
}

/// Prints milliseconds; returns the 99th percentile.
fn print_times(what: &str, times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    let at = |percent: usize| times[(times.len() * percent).div_ceil(100) - 1];
    let count = times.len();
    println!(
        "  {what}: median {:.1} ms, 99th percentile {:.1}, most {:.1} ({count})",
        at(50),
        at(99),
        at(100)
    );
    at(99)
}

/// Each agent in its turn, all of them in [`REPORT_EVERY`]. A time counts from when the report was due, so that a slow answer is
/// not hidden by the reports that wait behind it.
fn send(agents: &[Agent], end: Instant) -> (Vec<f64>, usize) {
    let apart = REPORT_EVERY / u32::try_from(agents.len()).expect("a thousand at most");
    let (mut times, mut lost) = (Vec::new(), 0);
    let mut due = Instant::now();
    for turn in 1.. {
        for agent in agents {
            if due >= end {
                return (times, lost);
            }
            sleep(due.saturating_duration_since(Instant::now()));
            if agent.report(turn).is_none() {
                lost += 1;
            }
            times.push(1e3 * due.elapsed().as_secs_f64());
            due += apart;
        }
    }
    (times, lost)
}

/// Looks at jobs, ten a second, and at a list every second.
fn look(scheduler: &Scheduler, agents: &[Agent], is_over: &AtomicBool) -> (Vec<f64>, Vec<f64>) {
    let (mut described, mut listed) = (Vec::new(), Vec::new());
    for turn in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let began = Instant::now();
        let client = scheduler.client();
        if turn % 10 == 0 {
            client.get::<JobList>("/v1/jobs").expect("the scheduler lives");
            listed.push(1e3 * began.elapsed().as_secs_f64());
        } else {
            let id = 1 + (turn * 37) % agents.len();
            client.get::<JobShown>(&format!("/v1/jobs/{id}")).expect("the scheduler lives");
            described.push(1e3 * began.elapsed().as_secs_f64());
        }
        sleep(Duration::from_millis(100).saturating_sub(began.elapsed()));
    }
    (described, listed)
}

impl Agent {
    /// Posts a report, as a worker would; none if it was not taken.
    fn report(&self, turn: u32) -> Option<AgentOrders> {
        let report = AgentReportBody::from(&report(self.number, turn));
        let body = AgentReports {
            version: VERSION,
            attempt: self.attempt,
            training: true,
            report: serde_json::to_value(report).ok(),
        };
        self.client.send("POST", "/v1/agent/reports", &[], Some(&body)).ok()
    }
}

fn agent(scheduler: &Scheduler, id: u64, number: u32) -> Agent {
    let token = token(scheduler, id, 1).expect("the job was started");
    Agent { client: Client::new(scheduler.client().server(), &token), attempt: 1, number }
}

/// The secret of a start of a job, from where its worker would read it.
fn token(scheduler: &Scheduler, id: u64, attempt: u32) -> Option<String> {
    let file = scheduler.folder().join("jobs").join(id.to_string()).join(format!("token-{attempt}"));
    fs::read_to_string(file).ok().filter(|token| token.ends_with('\n'))
}

/// What the agent of a job on one GPU knows after a while; no two say the same.
fn report(number: u32, turn: u32) -> AgentReport {
    let size = 1.0 + f64::from(number % 16) / 16.0;
    let params = PerfParams {
        grad: Compute::Linear { alpha: 0.05 * size, beta: 0.002 * size },
        sync_local: Affine { alpha: 0.02, beta: 0.001 },
        sync_node: Affine { alpha: 0.08, beta: 0.002 },
        gamma: 1.5,
        optimizer_step: 0.01,
    };
    let fit = Fit {
        params,
        undetermined: Vec::new(),
        objective: 0.01,
        error: RelativeError { mean: 0.02, worst: 0.1 },
        coverage: Coverage { micro_batch: (16, 256), alone: true, one_node: Some((2, 4)), distributed: None },
    };
    let noise = NoiseReport {
        acted: NoiseScale::from_samples(500.0 * size).expect("it is above zero"),
        moments: GradientMoments { sqr: 1.0, var: 500.0 * size },
        estimator: Estimator::Pairs,
        n_measured: u64::from(turn) * 10,
        n_implausible: 0,
        suspicious: false,
    };
    AgentReport {
        fits: [(GpuType::new("t4"), fit)].into(),
        noise: Some(noise),
        limits: BatchLimits::new(128, 4_096, 16, 256).expect("limits in order"),
        micro_max: [].into(),
        plan: Placement::new(1, 1).and_then(|placement| BatchPlan::even(placement, 128, 0)),
        learning_rate_factor: 1.0,
        progress: f64::from(turn) * 20.0,
        samples: u64::from(turn) * 2_560,
        most_replicas: 1,
        model_error: Some(0.01),
    }
}
