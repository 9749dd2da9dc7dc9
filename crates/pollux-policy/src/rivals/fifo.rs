//! First come, first served.

use std::time::Duration;

use super::place::{Layout, Room};
use super::{Standing, asked, by_arrival, carry_out, held, limits};
use crate::plan::Plan;
use crate::policy::{About, Cadence, Policy, Terms};
use crate::snapshot::{Requested, Snapshot};

/// In the order of arrival, each what it asks for, until it is done.
///
/// All of it or nothing, on as few nodes as possible. Nobody overtakes: where the first who waits could go, nobody
/// goes who came later, be it by GPU type or under the cap of a group. A job that could run nowhere holds up nobody. Only a
/// node that is to be emptied, limits or caps take GPUs from who runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fifo;

impl Policy for Fifo {
    type Knows = Requested;

    fn about(&self) -> About {
        About {
            name: "fifo",
            summary: "what users ask for in the order of arrival, until done; nobody overtakes",
            source: "the plainest queue there is",
            adapts_batch: false,
        }
    }

    fn cadence(&self) -> Cadence {
        Cadence { every: Duration::from_mins(1), on_events: Some(Duration::ZERO) }
    }

    fn plan(&self, snapshot: &Snapshot<Requested>, _: &Terms<'_>) -> Plan {
        let jobs = snapshot.jobs();
        let order = by_arrival(jobs);
        let mut room = Room::new(snapshot);
        let mut standings = vec![Standing::Stays; jobs.len()];
        let mut waiting = Vec::new();
        for &index in &order {
            let job = &jobs[index];
            let (least, most) = limits(job);
            let stays = job.is_pinned() || ((least..=most).contains(&held(job)) && room.keep(job));
            waiting.extend((!stays).then_some(index));
        }
        for index in waiting {
            let job = &jobs[index];
            let gpus = asked(job, job.knows.request);
            let Some(pool) = room.promise(job, gpus, None) else {
                standings[index] = Standing::Waits(room.why_not(job, gpus));
                room.close_for(job, gpus);
                continue;
            };
            standings[index] = Standing::Comes { pool, gpus };
        }
        carry_out(snapshot, &mut room, &order, &standings, Layout::Packed)
    }
}
