//! A journal gone through again.

use std::fmt::Write as _;
use std::path::Path;

use pollux_server::service::replay;
use serde::Serialize;

use super::args::ReplayArgs;
use super::failure::LiveFailure;
use super::journal;
use super::place::state_folder;
use super::show;
use crate::failure::Failure;
use crate::output::Output;

/// What was found, for programs.
#[derive(Serialize)]
struct Found {
    rows: u64,
    after: u64,
    plans: u64,
    unplanned: u64,
    n_differences: u64,
    differences: Vec<String>,
}

/// The service's own way.
fn in_service(path: &Path) -> Result<Found, LiveFailure> {
    let replayed = replay(path).map_err(|error| LiveFailure::failed(error.to_string()))?;
    Ok(Found {
        rows: replayed.rows,
        after: replayed.after,
        plans: replayed.plans,
        unplanned: replayed.unplanned,
        n_differences: replayed.n_differences,
        differences: replayed.differences,
    })
}

/// The simulator's: what it does with the same inputs is compared with what the service did.
fn in_simulator(path: &Path) -> Result<Found, LiveFailure> {
    let rows = journal::rows(path)?.into_iter().map(|(row, _)| row);
    let replayed =
        pollux_sim::replay::replay(rows).map_err(|error| LiveFailure::failed(error.to_string()))?;
    Ok(Found {
        rows: replayed.rows,
        after: 0,
        plans: replayed.plans,
        unplanned: replayed.unplanned,
        n_differences: replayed.differences.len() as u64,
        differences: replayed.differences.into_iter().take(10).collect(),
    })
}

pub(crate) fn run(args: &ReplayArgs) -> Result<Output, LiveFailure> {
    let path = args.journal.clone().unwrap_or_else(|| state_folder(&args.shown.at).join("pollux.db"));
    if !path.is_file() {
        return Err(LiveFailure::Other(Box::new(Failure::NoFile { path })));
    }
    let found = if args.simulator { in_simulator(&path)? } else { in_service(&path)? };
    let output = show::one(args.shown.output, &found, || {
        let mut text =
            format!("{} rows after row {}, {} plans made again", found.rows, found.after, found.plans);
        if found.unplanned > 0 {
            let _ = write!(text, " ({} could not be)", found.unplanned);
        }
        let _ = writeln!(text, ": {} differences", found.n_differences);
        for difference in &found.differences {
            let _ = writeln!(text, "- {difference}");
        }
        text
    })?;
    if found.n_differences == 0 {
        return Ok(output);
    }
    output.deliver().map_err(|failure| LiveFailure::Other(Box::new(failure)))?;
    Err(LiveFailure::Jobs(format!("{} decisions differ from the journal", found.n_differences)))
}
