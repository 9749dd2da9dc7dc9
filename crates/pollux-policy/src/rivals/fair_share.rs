//! The same for everyone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::place::{Layout, Room};
use super::{Standing, by_arrival, carry_out, give_fewest, limits, settle};
use crate::plan::Plan;
use crate::policy::{About, Cadence, Policy, Terms};
use crate::snapshot::{Job, Snapshot};

/// The GPUs divided evenly among the jobs that are there, whole ones, what is left over to the oldest.
///
/// Every job gets the fewest it runs on, the oldest first, while GPUs last; then always who has fewest gets one more, up
/// to its own limit. Who gets as many as it holds keeps them; the others are packed on as few nodes as possible, the
/// largest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvenShare;

/// Hands out GPUs by count.
fn divide(room: &mut Room, jobs: &[Job<()>], order: &[usize]) -> Vec<Standing> {
    let mut standings = give_fewest(room, jobs, order);
    let mut fewest = BinaryHeap::new();
    for (rank, &index) in order.iter().enumerate() {
        if let Standing::Comes { gpus, .. } = standings[index] {
            fewest.push(Reverse((gpus, rank)));
        }
    }
    while let Some(Reverse((_, rank))) = fewest.pop() {
        let job = &jobs[order[rank]];
        if let Standing::Comes { pool, gpus } = &mut standings[order[rank]]
            && *gpus < limits(job).1
            && room.grow(job, *pool)
        {
            *gpus += 1;
            fewest.push(Reverse((*gpus, rank)));
        }
    }
    standings
}

impl Policy for EvenShare {
    type Knows = ();

    fn about(&self) -> About {
        About {
            name: "fair-share",
            summary: "the GPUs divided evenly among the jobs, whatever they make of them",
            source: "processor sharing, in whole GPUs",
            adapts_batch: false,
        }
    }

    fn cadence(&self) -> Cadence {
        Cadence { every: Duration::from_mins(1), on_events: Some(Duration::ZERO) }
    }

    fn plan(&self, snapshot: &Snapshot<()>, _: &Terms<'_>) -> Plan {
        let jobs = snapshot.jobs();
        let mut order = by_arrival(jobs);
        let mut room = Room::new(snapshot);
        let mut standings = divide(&mut room, jobs, &order);
        settle(&mut room, jobs, &mut standings);
        order.sort_by_key(|&index| match standings[index] {
            Standing::Comes { gpus, .. } => Reverse(gpus),
            _ => Reverse(0),
        });
        carry_out(snapshot, &mut room, &order, &standings, Layout::Packed)
    }
}
