//! What the store keeps for people, from what the service shows.

use pollux_api::rest::{EventShown, JobShown, RoundShown};
use pollux_model::Timestamp;

use super::clock::{micros, rfc3339};
use super::events::Event;
use crate::store::{self, EndedJob, Keep, NewEvent, Round};

/// Rows of the journal that are kept beyond what the snapshots need.
const ROWS: u64 = 100_000;
/// Events, rounds and ended jobs that are kept.
const EVENTS: u64 = 200_000;
const ROUNDS: u64 = 20_000;
const JOBS: u64 = 50_000;
/// How long events and ended jobs are kept, in microseconds: 90 days.
const KEPT_FOR: u64 = 90 * 86_400_000_000;

/// How much is kept at this time.
pub(super) fn keep(now: Timestamp) -> Keep {
    let now = now.as_micros();
    let since = now.saturating_sub(KEPT_FOR);
    Keep { rows: ROWS, events: EVENTS, rounds: ROUNDS, jobs: JOBS, since, now }
}

pub(super) fn event(event: &Event) -> NewEvent<'_> {
    let job = event.job.as_ref().map(|(id, _)| id.0);
    NewEvent { at: event.at.as_micros(), actor: &event.actor, job, kind: event.kind, text: &event.text }
}

pub(super) fn round(round: &RoundShown) -> Round {
    Round {
        cycle: round.round,
        at: micros(&round.at),
        seed: round.seed,
        value: round.value,
        bound: round.bound,
        moved: u32::try_from(round.changes.len()).unwrap_or(u32::MAX),
        plan: serde_json::to_string(round).unwrap_or_default(),
    }
}

pub(super) fn ended(job: &JobShown) -> EndedJob {
    EndedJob {
        id: job.id,
        name: job.name.clone(),
        owner: job.owner.clone(),
        submitted: micros(&job.submitted),
        ended: job.ended.as_deref().map_or(0, micros),
        outcome: job.state.word().to_owned(),
        detail: serde_json::to_string(job).unwrap_or_default(),
    }
}

/// A round as it was shown then.
pub fn round_shown(round: &Round) -> Option<RoundShown> {
    serde_json::from_str(&round.plan).ok()
}

/// A job as it was shown when it ended.
pub fn job_shown(job: &EndedJob) -> Option<JobShown> {
    serde_json::from_str(&job.detail).ok()
}

/// An event as the API shows it, with the name of its job.
pub fn event_shown(event: store::Event, name: impl Fn(u64) -> Option<String>) -> EventShown {
    let store::Event { seq, at, actor, job, kind, text } = event;
    let job = job.map(|job| name(job).unwrap_or_else(|| format!("job-{job}")));
    EventShown { seq, at: rfc3339(Timestamp::from_micros(at)), actor, job, kind, text }
}
