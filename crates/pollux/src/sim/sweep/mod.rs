//! `pollux sim sweep`.

pub(crate) mod args;
mod table;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use pollux_sim::campaign::CampaignError;
use pollux_sim::simulation::Options;
use pollux_sim::sweep::{Study, Sweep, sweep_json};

use super::failure::SimFailure;
use super::progress::Bar;
use super::{inputs, run::contender};
use crate::cli::PlainOutput;
use crate::failure::Failure;
use crate::output::Output;
use crate::text::{count, duration};
use args::SweepArgs;

pub(crate) fn run(args: &SweepArgs) -> Result<Output, Failure> {
    let study = study(args)?;
    let (_, batch) =
        study.sweep.request(&study.profiles, &study.options.cluster).map_err(SimFailure::from)?;

    let began = Instant::now();
    let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let n_threads = args.threads.map_or_else(cores, |threads| threads as usize).min(study.n_runs());
    let bar = Bar::new(study.n_runs());
    let records = study.execute(n_threads, |n_done| bar.at(n_done)).map_err(SimFailure::from)?;
    drop(bar);
    let (n_runs, took) = (count(records.len(), "search").replace("hs", "hes"), duration(began.elapsed()));
    let notes = vec![
        format!("simulated {n_runs} in {took} on {}", count(n_threads, "thread")),
        "accuracies follow a formula and the seed; none is measured".to_owned(),
    ];
    let data = match args.output {
        PlainOutput::Text => table::render(&records, &study, batch, args.seeds),
        PlainOutput::Json => sweep_json(&study.options.cluster, &study.sweep, batch, &records),
    };
    Ok(Output { data, notes, file: None })
}

/// The searches that arguments describe.
fn study(args: &SweepArgs) -> Result<Study, Failure> {
    let contenders = args.policy.iter().map(|text| contender(text)).collect::<Result<Vec<_>, _>>()?;
    once("policy", contenders.iter().map(|contender| contender.label.clone()))?;
    once("search", args.search.iter().map(ToString::to_string))?;
    let sweep = Sweep {
        n_trials: args.trials as usize,
        at_once: args.at_once as usize,
        application: args.application.clone(),
        gpus: args.gpus,
        batch: args.batch,
        median: args.median,
    };
    let options = Options {
        cluster: args.cluster.clone(),
        round: args.round.map(Duration::from_secs_f64),
        restart: args.restart,
        interference: args.interference,
        noise: args.noise,
        history: args.history,
        ..Options::default()
    };
    let profiles = inputs::profiles(&args.traces, &args.cluster)?;
    let (searches, seeds) = (args.search.clone(), args.seeds.numbers());
    Ok(Study { contenders, searches, seeds, sweep, profiles, options })
}

fn once(what: &'static str, labels: impl Iterator<Item = String>) -> Result<(), SimFailure> {
    let mut seen = BTreeSet::new();
    for label in labels {
        if !seen.insert(label.clone()) {
            return Err(CampaignError::Twice { what, label }.into());
        }
    }
    Ok(())
}
