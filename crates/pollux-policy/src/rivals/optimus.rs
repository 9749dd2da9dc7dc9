//! GPUs where they shorten the remaining time most.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::place::{Layout, Room};
use super::{Standing, by_arrival, carry_out, give_fewest, limits, settle};
use crate::plan::Plan;
use crate::policy::{About, Policy, Terms};
use crate::snapshot::{Foreseen, Job, Snapshot};

/// Optimus with an oracle, as the Pollux authors ported it.
///
/// Every job gets one GPU (the fewest it runs on) in the order of submission while GPUs last. Then, again and again,
/// one GPU goes where it saves most: `(step(k) - step(k + 1)) * remaining`, with the true seconds of an iteration and
/// the true number of iterations left ([`Oracle`](crate::Oracle)); of equals the first submitted. It stops when no GPU
/// is left or nobody gains. Who gets as many as it holds keeps them. The others are placed anew, the smallest first,
/// each on the node with most free GPUs, and again. A restart costs nothing in its eyes.
///
/// The artifact counts the iterations left from the end of the current epoch (B5). Here the caller counts them, so it
/// can do either. A job without an oracle stays at the fewest it runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Optimus;

/// The worth of one GPU more.
#[derive(Clone, Copy, Debug)]
struct Gain {
    secs: f64,
    /// Place in the order of submission.
    rank: usize,
    job: usize,
}

impl Ord for Gain {
    fn cmp(&self, other: &Self) -> Ordering {
        self.secs.total_cmp(&other.secs).then(other.rank.cmp(&self.rank))
    }
}

impl PartialOrd for Gain {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Gain {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Gain {}

/// Seconds that one GPU more than `gpus` saves a job, if it may hold it and gains.
fn gain(job: &Job<Foreseen>, gpus: u32) -> Option<f64> {
    let oracle = job.knows.oracle.as_ref()?;
    let more = gpus.checked_add(1)?;
    let is_within = more <= limits(job).1.min(oracle.max_gpus) && more as usize <= oracle.step_secs.len();
    let saved = is_within.then(|| Some(oracle.step_secs_on(gpus)? - oracle.step_secs_on(more)?))??;
    Some(saved * oracle.remaining_iterations).filter(|secs| *secs > 0.0)
}

/// Hands out GPUs by count.
fn divide(room: &mut Room, jobs: &[Job<Foreseen>], order: &[usize]) -> Vec<Standing> {
    let mut standings = give_fewest(room, jobs, order);
    let mut gains = BinaryHeap::new();
    for (rank, &index) in order.iter().enumerate() {
        if let Standing::Comes { gpus, .. } = standings[index] {
            gains.extend(gain(&jobs[index], gpus).map(|secs| Gain { secs, rank, job: index }));
        }
    }
    while let Some(Gain { rank, job: index, .. }) = gains.pop() {
        let job = &jobs[index];
        if let Standing::Comes { pool, gpus } = &mut standings[index]
            && room.grow(job, *pool)
        {
            *gpus += 1;
            gains.extend(gain(job, *gpus).map(|secs| Gain { secs, rank, job: index }));
        }
    }
    standings
}

impl Policy for Optimus {
    type Knows = Foreseen;

    fn about(&self) -> About {
        About {
            name: "optimus",
            summary: "each GPU where it shortens the remaining time most, with an oracle of times and iterations",
            source: "Peng et al., EuroSys 2018, as ported by petuum/adaptdl, branch osdi21",
            adapts_batch: false,
        }
    }

    fn plan(&self, snapshot: &Snapshot<Foreseen>, _: &Terms<'_>) -> Plan {
        let jobs = snapshot.jobs();
        let mut order = by_arrival(jobs);
        let mut room = Room::new(snapshot);
        let mut standings = divide(&mut room, jobs, &order);
        settle(&mut room, jobs, &mut standings);
        // Stable: the first submitted of those that get as many.
        order.sort_by_key(|&index| match standings[index] {
            Standing::Comes { gpus, .. } => gpus,
            _ => 0,
        });
        carry_out(snapshot, &mut room, &order, &standings, Layout::Emptiest)
    }
}
