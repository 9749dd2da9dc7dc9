//! The policies that Pollux is compared with.
//!
//! Each keeps to what a snapshot can say (GPU types, closed nodes, pinned and rigid jobs, limits, group caps), but
//! none of them knows priorities, weights or entitlements, and none but Sia prices a restart or keeps distributed jobs
//! apart. A job that a cap holds back waits.

mod fair_share;
mod fifo;
mod gavel;
mod optimus;
mod place;
pub mod sia;
mod srtf;
mod tiresias;

use std::cmp::Reverse;

pub use fair_share::EvenShare;
pub use fifo::Fifo;
pub use gavel::{Gavel, Objective};
pub use optimus::Optimus;
pub use sia::Sia;
pub use srtf::ShortestFirst;
pub use tiresias::Tiresias;

use place::{Layout, Room};
use pollux_model::{Allocation, Placement};

use crate::plan::{Decision, JobPlan, Limit, Plan, Reason, Stopped, Work};
use crate::snapshot::{Carried, Freedom, Job, Request, Snapshot};

/// What was decided about a job before nodes are picked.
#[derive(Clone, Debug, PartialEq)]
enum Standing {
    /// It holds what it holds.
    Stays,
    /// It gets GPUs of a type.
    Comes { pool: usize, gpus: u32 },
    /// It gets nothing.
    Waits(Limit),
}

/// Fewest and most GPUs a job may hold.
fn limits<K>(job: &Job<K>) -> (u32, u32) {
    match job.freedom {
        Freedom::Rigid { gpus } => (gpus, gpus),
        _ => (job.min_gpus, job.max_gpus.unwrap_or(u32::MAX)),
    }
}

/// GPUs to give a job: what its user asked for, within its limits; the fewest it runs on where nothing was said.
fn asked<K>(job: &Job<K>, request: Option<Request>) -> u32 {
    let (least, most) = limits(job);
    request.map_or(least, |request| request.gpus).clamp(least, most)
}

fn held<K>(job: &Job<K>) -> u32 {
    job.holds.placement().map_or(0, Placement::n_replicas)
}

/// Positions of the jobs, the oldest first.
fn by_arrival<K>(jobs: &[Job<K>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&index| (Reverse(jobs[index].age), jobs[index].id));
    order
}

/// Goes through all jobs in order, none of which is sure of what it holds: who fits in what those before it leave runs,
/// who does not waits, and the next is tried. `gpus` by position.
fn scan<K>(room: &mut Room, jobs: &[Job<K>], order: &[usize], gpus: &[u32]) -> Vec<Standing> {
    let mut standings = vec![Standing::Stays; jobs.len()];
    for &index in order {
        let (job, gpus) = (&jobs[index], gpus[index]);
        if job.is_pinned() || (held(job) == gpus && room.keep(job)) {
            continue;
        }
        standings[index] = match room.promise(job, gpus, None) {
            Some(pool) => Standing::Comes { pool, gpus },
            None => Standing::Waits(room.why_not(job, gpus)),
        };
    }
    standings
}

/// The fewest GPUs a job runs on to each, in this order, while there are any. Who may not be moved stays.
fn give_fewest<K>(room: &mut Room, jobs: &[Job<K>], order: &[usize]) -> Vec<Standing> {
    let mut standings = vec![Standing::Stays; jobs.len()];
    for &index in order {
        let job = &jobs[index];
        let (least, most) = limits(job);
        let may_hold = (least..=most).contains(&held(job));
        // Who is on a closed node could not come back: it stays as it is.
        if job.is_pinned() || (may_hold && room.is_on_closed(job) && room.keep(job)) {
            continue;
        }
        standings[index] = match room.promise(job, least, room.may_stay(job)) {
            Some(pool) => Standing::Comes { pool, gpus: least },
            None => Standing::Waits(room.why_not(job, least)),
        };
    }
    standings
}

/// Lets those stay who would get as many GPUs of the same type as they hold.
fn settle<K>(room: &mut Room, jobs: &[Job<K>], standings: &mut [Standing]) {
    for (job, standing) in jobs.iter().zip(standings) {
        if let Standing::Comes { pool, gpus } = *standing
            && gpus == held(job)
            && room.may_stay(job) == Some(pool)
            && !room.is_on_closed(job)
        {
            room.hold(job);
            *standing = Standing::Stays;
        }
    }
}

/// Picks nodes in this order for all who come, and writes the plan.
fn carry_out<K>(
    snapshot: &Snapshot<K>,
    room: &mut Room,
    order: &[usize],
    standings: &[Standing],
    layout: Layout,
) -> Plan {
    let jobs = snapshot.jobs();
    let mut allocations = vec![Allocation::none(); jobs.len()];
    for &index in order {
        if let Standing::Comes { pool, gpus } = standings[index] {
            allocations[index] = room.pick(pool, gpus, layout);
        }
    }
    written(snapshot, standings, allocations)
}

/// The plan in which each gets this, by position; who stays keeps what it holds.
fn written<K>(snapshot: &Snapshot<K>, standings: &[Standing], allocations: Vec<Allocation>) -> Plan {
    let jobs = snapshot.jobs();
    let answer = |((job, standing), allocation): ((&Job<K>, &Standing), Allocation)| {
        let allocation = if *standing == Standing::Stays { job.holds.clone() } else { allocation };
        let decision = if allocation.is_empty() {
            Decision::Wait
        } else if allocation == job.holds {
            Decision::Keep
        } else {
            Decision::Place
        };
        let limit = match standing {
            _ if job.freedom == Freedom::Restarting => Limit::Restarting,
            _ if job.is_pinned() => Limit::Pinned,
            Standing::Waits(limit) => limit.clone(),
            _ => Limit::Unstated,
        };
        JobPlan { job: job.id, decision, allocation, reason: Reason { limit, ..Reason::default() } }
    };
    let units = jobs.len() as u64;
    Plan {
        jobs: jobs.iter().zip(standings).zip(allocations).map(answer).collect(),
        certificate: None,
        work: Work { units, budget: units, stopped: Stopped::Done },
        carried: Carried::default(),
    }
}
