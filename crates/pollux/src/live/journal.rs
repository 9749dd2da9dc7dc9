//! A live scheduler's journal, as the simulator takes it.

use std::path::Path;
use std::time::Duration;

use pollux_api::job_file::JobFile;
use pollux_api::journal;
use pollux_core::{Config, Input};
use pollux_model::{JobId, Timestamp};
use pollux_server::service::Note;
use pollux_server::store::{Row, Store};
use pollux_sim::ClusterShape;
use pollux_sim::replay::Recorded;

use super::failure::LiveFailure;
use crate::failure::Failure;

/// Rows that are read at once.
const CHUNK: u32 = 1_000;

/// What a journal says of a cluster and its jobs.
pub(crate) struct Journal {
    /// Who planned.
    pub(crate) policy: String,
    /// Between two rounds.
    pub(crate) round: Duration,
    /// The nodes that joined.
    pub(crate) cluster: ClusterShape,
    /// The jobs, in the order of submission.
    pub(crate) jobs: Vec<Entry>,
}

/// A job of a journal.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) file: JobFile,
    pub(crate) submitted: Timestamp,
    /// When it was done, if it was.
    pub(crate) finished: Option<Timestamp>,
}

/// Every row, with its note.
pub(crate) fn rows(path: &Path) -> Result<Vec<(Recorded, Note)>, LiveFailure> {
    if !path.is_file() {
        return Err(LiveFailure::Other(Box::new(Failure::NoFile { path: path.to_owned() })));
    }
    let failed = |error: &dyn std::fmt::Display| LiveFailure::failed(format!("{}: {error}", path.display()));
    let store = Store::open(path).map_err(|error| failed(&error))?;
    let mut all = Vec::new();
    loop {
        let first = all.last().map_or(0, |(row, _): &(Recorded, Note)| row.seq + 1);
        let rows = store.rows(first, CHUNK).map_err(|error| failed(&error))?;
        if rows.is_empty() {
            return Ok(all);
        }
        for row in &rows {
            all.push(recorded(row).map_err(|why| failed(&format!("row {}: {why}", row.seq)))?);
        }
    }
}

fn recorded(row: &Row) -> Result<(Recorded, Note), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let note: Note = serde_json::from_str(&row.note).map_err(|error| text(&error))?;
    let began = match &note {
        Note::Began { config, policy } => {
            let config: Config = journal::config_from_json(config).map_err(|error| text(&error))?;
            Some((config, policy.clone()))
        }
        _ => None,
    };
    let recorded = Recorded {
        seq: row.seq,
        at: Timestamp::from_micros(row.at),
        input: journal::input_from_json(&row.input).map_err(|error| text(&error))?,
        effects: journal::effects_from_json(&row.effects).map_err(|error| text(&error))?,
        began,
    };
    Ok((recorded, note))
}

/// The cluster and the jobs of a journal.
pub(crate) fn read(path: &Path) -> Result<Journal, LiveFailure> {
    let failed = |text: String| LiveFailure::failed(format!("{}: {text}", path.display()));
    let mut began = None;
    let mut nodes = Vec::new();
    let mut jobs: Vec<(JobId, Entry)> = Vec::new();
    for (row, note) in rows(path)? {
        began = row.began.or(began);
        match (row.input, note) {
            (Input::NodeJoined(_, spec), _) => nodes.push(format!("1x{}:{}", spec.gpus, spec.gpu_type)),
            (Input::JobSubmitted(id, _), Note::Submitted { name, file, .. }) => {
                let file = JobFile::from_json(&file)?;
                jobs.push((id, Entry { name, file, submitted: row.at, finished: None }));
            }
            (Input::JobFinished(id, _), _) => {
                if let Some((_, entry)) = jobs.iter_mut().find(|(job, _)| *job == id) {
                    entry.finished = Some(row.at);
                }
            }
            _ => {}
        }
    }
    let (config, policy) = began.ok_or_else(|| failed("no scheduler ever began with it".to_owned()))?;
    let cluster =
        nodes.join(",").parse().map_err(|error: pollux_sim::ShapeError| failed(error.to_string()))?;
    let jobs = jobs.into_iter().map(|(_, entry)| entry).collect();
    Ok(Journal { policy, round: config.cadence.every, cluster, jobs })
}
