//! The life of one job in a run.

use pollux_api::{Names, explain, nearest};
use pollux_model::{Allocation, JobId};
use pollux_policy::JobPlan;
use pollux_sim::campaign::Cell;
use pollux_sim::workload::Workload;
use pollux_sim::{Event, JobOutcome, Run, What};

use super::failure::SimFailure;
use crate::plan;
use crate::text::{self, Align, Table, significant};

/// Names that are offered in place of an unknown one.
const OFFERED: usize = 5;

/// The place of a job in a workload.
pub(super) fn find(job: &str, workload: &Workload) -> Result<JobId, SimFailure> {
    if let Some(index) = workload.jobs.iter().position(|submission| submission.name == job) {
        return Ok(JobId(index as u64));
    }
    let names = || workload.jobs.iter().map(|submission| submission.name.as_str());
    let stem = |name: &str| name.trim_end_matches(|letter: char| letter.is_ascii_digit()).to_owned();
    let alike = names().filter(|name| stem(name) == stem(job));
    let mut near: Vec<String> = Vec::new();
    for name in nearest(job, names()).into_iter().chain(alike).chain(names()) {
        if near.len() < OFFERED && !near.iter().any(|offered| offered == name) {
            near.push(name.to_owned());
        }
    }
    Err(SimFailure::NoSuchJob {
        job: job.to_owned(),
        workload: workload.name.clone(),
        near,
        n_jobs: workload.jobs.len(),
    })
}

/// Width of the reasons.
const WIDTH: usize = 110;

/// A line for everything that happened to a job, and the reason for each of its allocations.
pub(super) fn tell(job: JobId, cell: &Cell<'_>, run: &Run) -> String {
    let Some(outcome) = usize::try_from(job.0).ok().and_then(|index| run.jobs.get(index)) else {
        return String::new();
    };
    let mut table = Table::new([
        ("TIME (s)", Align::Right),
        ("EVENT", Align::Left),
        ("GPUS", Align::Right),
        ("NODES", Align::Left),
        ("BATCH", Align::Right),
        ("EFFICIENCY", Align::Right),
    ]);
    let mut reasons = String::new();
    let mut is_beginning = false;
    let names = Names { jobs: [(job, outcome.name.clone())].into(), ..Names::default() };
    let none = || "-".to_owned();
    let mut held = Allocation::none();
    let mut batch = (none(), none());
    for Event { at, what, .. } in run.log.events.iter().filter(|event| event.job == job) {
        let secs = format!("{:.1}", at.as_secs_f64());
        let event = match what {
            What::Submitted => "submitted",
            What::Started { allocation, why: told } => {
                held = allocation.clone();
                batch = (none(), none());
                if let Some(told) = told {
                    let (decision, reason) = (told.decision, told.reason.clone());
                    let plan = JobPlan { job, decision, allocation: told.allocation.clone(), reason };
                    let why = format!("at {secs} s {}", explain::sentence(&plan, &names));
                    reasons.push_str(&text::wrap(&why, WIDTH, "  "));
                }
                "started"
            }
            What::Training => {
                is_beginning = true;
                continue;
            }
            // A new epoch changes what a sample is worth; the story is of the batch.
            What::Batch { global, .. } if !is_beginning && global.to_string() == batch.0 => continue,
            What::Batch { global, efficiency } => {
                let next = (global.to_string(), format!("{efficiency:.3}"));
                // A difference that the table would not show.
                if next == batch {
                    continue;
                }
                batch = next;
                if std::mem::take(&mut is_beginning) { "training" } else { "batch" }
            }
            What::Stopped => {
                held = Allocation::none();
                "stopped"
            }
            What::Failed => {
                held = Allocation::none();
                "failed"
            }
            What::Finished => {
                held = Allocation::none();
                "finished"
            }
        };
        if held.is_empty() {
            batch = (none(), none());
        }
        let gpus = if held.is_empty() { none() } else { held.gpus().to_string() };
        let nodes = plan::nodes(&held, &names);
        let (global, efficiency) = batch.clone();
        table.push([secs, event.to_owned(), gpus, nodes, global, efficiency]);
    }
    let why =
        if reasons.is_empty() { String::new() } else { format!("\nWhy it got what it got:\n{reasons}") };
    format!("{}\n\n{}{why}", heading(outcome, cell), table.render())
}

fn heading(outcome: &JobOutcome, cell: &Cell<'_>) -> String {
    let JobOutcome { name, application, restarts, gpu_secs, .. } = outcome;
    let hours = |secs: f64| significant(secs / 3_600.0, 3);
    let done = match (outcome.jct_secs(), outcome.rho) {
        (Some(jct), Some(rho)) => format!("done after {} h (rho {})", hours(jct), significant(rho, 3)),
        (Some(jct), None) => format!("done after {} h", hours(jct)),
        (None, _) => "never done".to_owned(),
    };
    let mut restarts = text::count(*restarts as usize, "restart");
    if outcome.failures > 0 {
        let failures = text::count(outcome.failures as usize, "failure");
        restarts =
            format!("{restarts}, {failures} ({} GPU-hours done again)", hours(outcome.redone_gpu_secs));
    }
    let gpu_hours = hours(*gpu_secs);
    let Cell { policy, workload, seed, .. } = cell;
    let under = format!("{name} ({application}) under {policy}, workload {workload}, seed {seed}");
    format!("{under}:\n{done}, {restarts}, {gpu_hours} GPU-hours")
}
