//! Jobs: listed, described, changed, explained.

use std::fmt::Write as _;

use pollux_api::rest::{Explained, JobEdits, JobList, JobShown, RoundShown};

use super::args::{ActArgs, ExplainCommand, HistoryArgs, JobArgs, ListArgs, RoundArgs, SetArgs};
use super::failure::LiveFailure;
use super::place::{client, part};
use super::show::{self, JOB_COLUMNS, job_row};
use crate::output::Output;

pub(crate) fn list(args: &ListArgs) -> Result<Output, LiveFailure> {
    let client = client(&args.shown.at)?;
    let state = args.status.as_deref().or_else(|| (!args.all).then_some("active"));
    let filters = [("state", state), ("owner", args.owner.as_deref()), ("queue", args.queue.as_deref())];
    let query: String =
        filters.iter().filter_map(|(key, value)| Some(format!("&{key}={}", part((*value)?)))).collect();
    let mut jobs = Vec::new();
    let mut after = 0;
    let mut is_emulated;
    loop {
        let page: JobList = client.get(&format!("/v1/jobs?after={after}{query}"))?;
        jobs.extend(page.jobs);
        is_emulated = page.is_emulated;
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    let mut output = show::rows(args.shown.output, &jobs, &JOB_COLUMNS, job_row, |job| job.name.clone())?;
    if is_emulated {
        output.notes.push("the GPUs are emulated".to_owned());
    }
    if jobs.is_empty() {
        output
            .notes
            .push("no jobs; `pollux submit` submits one, `pollux list --all` shows ended ones".to_owned());
    }
    Ok(output)
}

pub(crate) fn history(args: &HistoryArgs) -> Result<Output, LiveFailure> {
    let jobs: Vec<JobShown> = client(&args.shown.at)?.get(&format!("/v1/history?limit={}", args.limit))?;
    show::rows(args.shown.output, &jobs, &JOB_COLUMNS, job_row, |job| job.name.clone())
}

pub(crate) fn describe(args: &JobArgs) -> Result<Output, LiveFailure> {
    let job: JobShown = client(&args.shown.at)?.get(&format!("/v1/jobs/{}", part(&args.job)))?;
    show::one(args.shown.output, &job, || described(&job))
}

fn described(job: &JobShown) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<12}{value}");
    };
    line("job", format!("{} (number {}, by {})", job.name, job.id, job.owner));
    line("state", job.state.word().to_owned());
    line("why", job.reason.clone());
    if job.is_emulated {
        line("emulated", "its GPUs are made up; steps take as long as a profile says".to_owned());
    }
    let limits = job
        .max_gpus
        .map_or_else(|| format!("{} or more", job.min_gpus), |most| format!("{} to {most}", job.min_gpus));
    let kind = job.gpu_type.as_deref().unwrap_or("");
    let held = if job.gpus == 0 {
        "none".to_owned()
    } else {
        format!("{} {kind} on {}", job.gpus, show::places(job))
    };
    line("gpus", format!("{held} (may hold {limits})"));
    line("priority", job.priority.clone());
    if let Some(queue) = &job.queue {
        line("queue", queue.clone());
    }
    if let Some(batch) = job.batch {
        let micro = job.micro_batch.unwrap_or(0);
        let passes = job.accumulation.unwrap_or(0) + 1;
        line("batch", format!("{batch} samples: {micro} on each GPU, {passes} times a step"));
    }
    if let Some(factor) = job.lr_factor {
        line("lr", format!("{factor:.2} times the user's"));
    }
    if let (Some(throughput), Some(efficiency), Some(goodput)) = (job.throughput, job.efficiency, job.goodput)
    {
        let text = format!(
            "{} samples/s x {efficiency:.2} = {} useful samples/s",
            show::short(throughput),
            show::short(goodput)
        );
        line("goodput", text);
    }
    if let Some(noise) = job.noise_scale {
        line("noise", format!("{} samples", show::short(noise)));
    }
    if let Some(progress) = job.progress {
        let share = job
            .progress_ratio
            .map_or_else(String::new, |ratio| format!(", {:.1} % of its work", 100.0 * ratio));
        line("progress", format!("{progress:.0} steps at the initial batch{share}"));
    }
    line("submitted", format!("{} ({} ago)", job.submitted, show::age(&job.submitted, None)));
    if let Some(ended) = &job.ended {
        line("ended", format!("{ended} (after {})", show::age(&job.submitted, Some(ended))));
    }
    line("restarts", format!("{} (failures since progress: {})", job.restarts, job.failures));
    if !job.attempts.is_empty() {
        let rows: Vec<Vec<String>> = job.attempts.iter().map(attempt).collect();
        let _ = write!(
            text,
            "\n{}",
            crate::text::table(&["ATTEMPT", "GPUS", "NODES", "STARTED", "TO TRAIN", "LASTED", "END"], &rows)
        );
    }
    text
}

fn attempt(attempt: &pollux_api::rest::Attempt) -> Vec<String> {
    let dash = || "-".to_owned();
    vec![
        attempt.attempt.to_string(),
        attempt.nodes.values().sum::<u32>().to_string(),
        attempt.nodes.iter().map(|(node, gpus)| format!("{node}={gpus}")).collect::<Vec<_>>().join(" "),
        attempt.started.clone(),
        attempt.training.as_deref().map_or_else(dash, |training| show::age(&attempt.started, Some(training))),
        attempt.ended.as_deref().map_or_else(dash, |ended| show::age(&attempt.started, Some(ended))),
        attempt.how.clone().unwrap_or_else(dash),
    ]
}

pub(crate) fn act(args: &ActArgs, verb: &str) -> Result<Output, LiveFailure> {
    let client = client(&args.shown.at)?;
    let mut jobs = Vec::new();
    for job in &args.jobs {
        let shown: JobShown =
            client.send("POST", &format!("/v1/jobs/{}:{verb}", part(job)), &[], None::<&()>)?;
        jobs.push(shown);
    }
    show::rows(args.shown.output, &jobs, &JOB_COLUMNS, job_row, |job| job.name.clone())
}

pub(crate) fn set(args: &SetArgs) -> Result<Output, LiveFailure> {
    let edits = JobEdits {
        priority: args.priority.clone(),
        weight: args.weight,
        min_gpus: args.min,
        max_gpus: args.max,
    };
    if edits == JobEdits::default() {
        return Err(LiveFailure::usage("nothing to change: give --priority, --weight, --min or --max"));
    }
    let client = client(&args.shown.at)?;
    let job: JobShown = client.send("PATCH", &format!("/v1/jobs/{}", part(&args.job)), &[], Some(&edits))?;
    show::rows(args.shown.output, &[job], &JOB_COLUMNS, job_row, |job| job.name.clone())
}

pub(crate) fn explain(command: &ExplainCommand) -> Result<Output, LiveFailure> {
    match command {
        ExplainCommand::Job(args) => {
            let told: Explained =
                client(&args.shown.at)?.get(&format!("/v1/jobs/{}/explain", part(&args.job)))?;
            show::one(args.shown.output, &told, || {
                let when = told.round.zip(told.at.as_ref());
                let when = when.map_or_else(String::new, |(round, at)| format!("(round {round}, {at})\n"));
                let text = if told.text.is_empty() {
                    "It waits for its first round.".to_owned()
                } else {
                    told.text.join("\n")
                };
                format!("{text}\n{when}")
            })
        }
        ExplainCommand::Round(args) => round(args),
    }
}

fn round(args: &RoundArgs) -> Result<Output, LiveFailure> {
    let client = client(&args.shown.at)?;
    let round: RoundShown = if let Some(number) = args.round {
        client.get(&format!("/v1/rounds/{number}"))?
    } else {
        let latest: Vec<RoundShown> = client.get("/v1/rounds?limit=1")?;
        latest.into_iter().next_back().ok_or_else(|| LiveFailure::failed("there has been no round yet"))?
    };
    show::one(args.shown.output, &round, || {
        let mut text = format!("round {} at {}, for {} jobs\n", round.round, round.at, round.jobs);
        if let (Some(value), Some(bound), Some(gap)) = (round.value, round.bound, round.gap) {
            let _ = writeln!(
                text,
                "mean speed-up {value:.3}; no plan exceeds {bound:.3} (gap {:.2} %)",
                100.0 * gap
            );
        }
        if round.changes.is_empty() {
            text.push_str("everybody stays.\n");
        }
        for change in &round.changes {
            let _ = writeln!(text, "- {change}");
        }
        text
    })
}
