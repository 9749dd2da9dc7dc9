//! `pollux sim run`.

use std::path::Path;
use std::time::Instant;

use pollux_api::PolicySpec;
use pollux_model::JobId;
use pollux_sim::campaign::{Campaign, Cell, Contender, Record, Source, World, results_json};
use pollux_sim::report::Digest;
use pollux_sim::{Kept, Run};

use super::args::RunArgs;
use super::failure::SimFailure;
use super::files::Folder;
use super::progress::Bar;
use super::{inputs, report, story, table};
use crate::cli::PlainOutput;
use crate::failure::Failure;
use crate::output::Output;
use crate::text::{count, duration};

pub(crate) fn run(args: &RunArgs) -> Result<Output, Failure> {
    inputs::check(args)?;
    let contenders = args.policy.iter().map(|text| contender(text)).collect::<Result<Vec<_>, _>>()?;
    let mut world = inputs::world(args)?;
    // Of runs that nobody looks into only the figures are needed; reasons are for stories alone.
    world.keep(Kept { events: args.out.is_some(), reasons: false, story: None });
    let sources = inputs::sources(&args.workload, &world, &contenders)?;
    let mut notes: Vec<String> = sources.iter().filter_map(left_out).collect();
    let campaign =
        Campaign::new(contenders, &sources, &args.seeds.numbers(), world).map_err(SimFailure::from)?;
    let shown = shown(args, &campaign)?;
    let campaign = match shown {
        Some(job) => campaign.telling(job),
        None => campaign,
    };
    let folder = args.out.as_deref().map(|path| Folder::create(path, &campaign)).transpose()?;

    let began = Instant::now();
    let n_threads = inputs::threads(args.threads).min(campaign.n_runs());
    let Done { records, digests, story } = execute(&campaign, n_threads, shown, folder.as_ref())?;
    let (n_runs, took) = (count(records.len(), "run"), duration(began.elapsed()));
    notes.push(format!("simulated {n_runs} in {took} on {}", count(n_threads, "thread")));

    let compat = args.compat.map(|_| "osdi21");
    let traces = traces(campaign.world(), args.traces.as_deref());
    if let Some(folder) = &folder {
        let summary = table::about(&records, args.seeds, campaign.world(), &traces);
        folder.report(&report::page(args, &campaign, (summary, &traces), shown, &records, &digests))?;
    }
    let json = || results_json(campaign.world().cluster(), compat, &records);
    let data = match args.output {
        PlainOutput::Text => {
            let tables = table::render(&records, args.seeds, campaign.world(), &traces);
            story.map_or(tables.clone(), |story| format!("{tables}\n{story}"))
        }
        PlainOutput::Json => json(),
    };
    let file = folder.map(|folder| (folder.results(), json().into_bytes()));
    Ok(Output { data, notes, file })
}

/// Lines of a trace that are no jobs.
fn left_out(source: &Source) -> Option<String> {
    match source {
        Source::Traced(trace) => trace.note(),
        Source::Fixed(_) | Source::Generated(_) => None,
    }
}

pub(super) fn contender(text: &str) -> Result<Contender, Failure> {
    let spec: PolicySpec = text.parse()?;
    Ok(Contender { label: text.trim().to_owned(), policy: spec.policy() })
}

/// The job whose story is to be told, which the first run must have.
fn shown(args: &RunArgs, campaign: &Campaign) -> Result<Option<JobId>, SimFailure> {
    match (&args.show, campaign.cells().next()) {
        (Some(job), Some(first)) => story::find(job, first.jobs).map(Some),
        _ => Ok(None),
    }
}

/// What all runs left.
struct Done {
    records: Vec<Record>,
    /// For the report; none without a folder to write it to.
    digests: Vec<Digest>,
    story: Option<String>,
}

/// Makes all runs. Of each its files are written when it is done, so that no more than one is held in memory per thread.
fn execute(
    campaign: &Campaign,
    n_threads: usize,
    shown: Option<JobId>,
    folder: Option<&Folder>,
) -> Result<Done, Failure> {
    let bar = Bar::new(campaign.n_runs());
    let keep = |cell: &Cell<'_>, run: &Run| -> Result<(Option<Digest>, Option<String>), Failure> {
        let digest = match folder {
            Some(folder) => {
                folder.keep(cell, run)?;
                Some(Digest::of(cell, run, report::in_detail(campaign, cell)))
            }
            None => None,
        };
        Ok((digest, shown.filter(|_| cell.index == 0).map(|job| story::tell(job, cell, run))))
    };
    let results = campaign.execute(n_threads, |n_done| bar.at(n_done), keep).map_err(SimFailure::from)?;
    let mut told = None;
    let mut digests = Vec::new();
    let mut records = Vec::with_capacity(results.len());
    for (record, kept) in results {
        let (digest, story) = kept?;
        digests.extend(digest);
        told = told.or(story);
        records.push(record);
    }
    Ok(Done { records, digests, story: told })
}

/// What the jobs' behaviour comes from.
fn traces(world: &World, traces: Option<&Path>) -> String {
    match (world, traces) {
        (World::Osdi21 { .. }, _) => "the authors' traces in the world of their artifact (osdi21)".to_owned(),
        (World::Profiles { .. }, Some(path)) if path != Path::new("builtin") => {
            format!("profiles of {}", path.display())
        }
        _ => "built-in profiles".to_owned(),
    }
}
