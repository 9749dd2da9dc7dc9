//! `pollux sim journal`: the jobs of a live scheduler's journal simulated, beside what became of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pollux_api::parse_policy;
use pollux_sim::JobOutcome;
use pollux_sim::profile::{Profile, builtin, read_profile};
use pollux_sim::simulation::{Options, RestartCost, simulate};
use pollux_sim::workload::{JournalJob, Workload, workload_of_journal};
use serde::Serialize;

use crate::cli::PlainOutput;
use crate::failure::Failure;
use crate::live::LiveFailure;
use crate::live::journal::{self, Journal};
use crate::output::Output;
use crate::text::table;

/// What the processes of a job take for a stop and a start beyond their profile, measured once with `pollux-trainer` on two cores.
pub(crate) const OVERHEAD_SECS: f64 = 0.15;

#[derive(Args)]
pub(crate) struct JournalArgs {
    /// The journal: pollux.db of a state folder whose scheduler does not run, or a backup
    #[arg(value_name = "FILE")]
    journal: PathBuf,

    /// Who plans instead
    #[arg(long, value_name = "NAME[:SETTINGS]")]
    policy: Option<String>,

    /// How often the jobs' agents report, in seconds
    #[arg(long, value_name = "SECS", default_value = "5", value_parser = super::args::round)]
    report_every: f64,

    /// Seconds that a stop and a start take beyond what profiles say
    #[arg(long, value_name = "SECS", default_value_t = OVERHEAD_SECS)]
    overhead: f64,

    /// What to print
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: PlainOutput,
}

/// Completion times, live and simulated.
#[derive(Debug, Serialize)]
pub(crate) struct Compared {
    /// Who planned in the simulation.
    pub(crate) policy: String,
    pub(crate) jobs: Vec<ComparedJob>,
    /// Of the jobs that were done in both.
    pub(crate) live_mean_s: f64,
    pub(crate) simulated_mean_s: f64,
    /// The mean of what single jobs are off, as a share of the live time.
    pub(crate) mean_error: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct ComparedJob {
    pub(crate) job: String,
    pub(crate) live_s: Option<f64>,
    pub(crate) simulated_s: Option<f64>,
}

pub(crate) fn run(args: &JournalArgs) -> Result<Output, Failure> {
    let compared = compare(&args.journal, args.policy.as_deref(), args.report_every, args.overhead)?;
    let data = match args.output {
        PlainOutput::Json => serde_json::to_string_pretty(&compared).unwrap_or_default() + "\n",
        PlainOutput::Text => text(&compared),
    };
    Ok(Output { data, ..Output::default() })
}

/// Simulates the jobs of a journal, under its own policy or another.
pub(crate) fn compare(
    path: &Path,
    policy: Option<&str>,
    report_every: f64,
    overhead: f64,
) -> Result<Compared, LiveFailure> {
    let journal = journal::read(path)?;
    let failed = |error: &dyn std::fmt::Display| LiveFailure::failed(error.to_string());
    let (workload, profiles) = workload(&journal, overhead)?;
    let name = policy.unwrap_or(&journal.policy);
    let policy = parse_policy(name).map_err(|error| failed(&error))?;
    let options = Options {
        cluster: journal.cluster.clone(),
        round: Some(journal.round),
        report_every: Some(Duration::from_secs_f64(report_every)),
        agents_count: true,
        restart: RestartCost::PerApplication,
        ..Options::default()
    };
    let run = simulate(&workload, &profiles, policy.as_ref(), &options).map_err(|error| failed(&error))?;
    let simulated = |name: &str| run.jobs.iter().find(|job| job.name == name).and_then(JobOutcome::jct_secs);
    let jobs: Vec<ComparedJob> = journal
        .jobs
        .iter()
        .map(|entry| ComparedJob {
            job: entry.name.clone(),
            live_s: entry.finished.map(|finished| (finished - entry.submitted).as_secs_f64()),
            simulated_s: simulated(&entry.name),
        })
        .collect();
    let both: Vec<(f64, f64)> = jobs.iter().filter_map(|job| job.live_s.zip(job.simulated_s)).collect();
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| both.iter().map(of).sum::<f64>() / both.len().max(1) as f64;
    Ok(Compared {
        policy: name.to_owned(),
        live_mean_s: mean(&|(live, _)| *live),
        simulated_mean_s: mean(&|(_, simulated)| *simulated),
        mean_error: mean(&|(live, simulated)| (simulated / live.max(1e-3) - 1.0).abs()),
        jobs,
    })
}

/// The jobs of a journal whose files name profiles, as a workload with its profiles.
pub(super) fn workload(
    journal: &Journal,
    overhead: f64,
) -> Result<(Workload, BTreeMap<String, Arc<Profile>>), LiveFailure> {
    let mut known: BTreeMap<String, Arc<Profile>> =
        builtin().into_iter().map(|profile| (profile.name().to_owned(), profile)).collect();
    let mut jobs = Vec::new();
    for entry in &journal.jobs {
        let Some(emulate) = &entry.file.emulate else {
            let text = format!(
                "{}: its job file names no profile (`emulate.profile`), so nobody knows how it trains",
                entry.name
            );
            return Err(LiveFailure::failed(text));
        };
        let name = &emulate.profile;
        if !known.contains_key(name) {
            let file = entry
                .file
                .workdir
                .as_ref()
                .map_or_else(|| PathBuf::from(name), |folder| Path::new(folder).join(name));
            let profile = read_profile(&file).map_err(|error| LiveFailure::failed(error.to_string()))?;
            known.insert(name.clone(), Arc::new(profile));
        }
        jobs.push(JournalJob {
            name: entry.name.clone(),
            at: entry.submitted,
            file: entry.file.clone(),
            profile: known[name].clone(),
        });
    }
    workload_of_journal("journal", &jobs, overhead).map_err(|error| LiveFailure::failed(error.to_string()))
}

fn text(compared: &Compared) -> String {
    let secs = |secs: Option<f64>| secs.map_or_else(|| "-".to_owned(), |secs| format!("{secs:.1}"));
    let off = |live: f64, simulated: f64| format!("{:+.1} %", 100.0 * (simulated / live.max(1e-3) - 1.0));
    let rows: Vec<Vec<String>> = compared
        .jobs
        .iter()
        .map(|job| {
            let off = job
                .live_s
                .zip(job.simulated_s)
                .map_or_else(|| "-".to_owned(), |(live, simulated)| off(live, simulated));
            vec![job.job.clone(), secs(job.live_s), secs(job.simulated_s), off]
        })
        .collect();
    let mut text = table(&["JOB", "LIVE (S)", "SIMULATED (S)", "OFF"], &rows);
    let (live, simulated) = (compared.live_mean_s, compared.simulated_mean_s);
    let _ = writeln!(
        text,
        "mean completion time under {}: {live:.1} s live, {simulated:.1} s simulated, {}; single jobs are off by {:.1} % on average",
        compared.policy,
        off(live, simulated),
        100.0 * compared.mean_error
    );
    text
}
