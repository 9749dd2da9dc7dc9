//! Gavel: time on each GPU type by a linear program, realised in rounds.

mod shares;

use std::time::Duration;

use pollux_model::{GpuType, Placement};

use super::place::{Layout, Room};
use super::{Standing, asked, by_arrival, carry_out, held};
use crate::plan::Plan;
use crate::policy::{About, Cadence, Policy, Terms};
use crate::snapshot::{Carried, Job, Known, Served, Snapshot};
use shares::{Bidder, Market};

/// Gavel: users' GPU counts and batches, but on which type of GPU is for the policy to say.
///
/// A linear program gives the fraction of time that each job should spend on each type. Rounds of six minutes realise it:
/// type by type, the fastest first, jobs come in the order of `fraction / part of the type's time received so far`
/// ([`Carried::served`]), and who fits runs. Who waits for a type that others filled takes another, if that is free.
/// Who goes on with the same GPUs is not restarted.
///
/// Throughputs are an oracle's, since the paper profiles them; without one, what the agent learned; without that, the
/// cluster's relative speeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gavel {
    /// What the program maximises.
    pub objective: Objective,
}

/// What Gavel's program maximises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Objective {
    /// The least of all jobs' throughputs against an equal share of each type; with rounds, least attained service.
    #[default]
    Fairness,
    /// The sum of all throughputs, each in that of one GPU of the job's slowest type.
    Throughput,
}

impl Policy for Gavel {
    type Knows = Known;

    fn about(&self) -> About {
        About {
            name: "gavel",
            summary: "what users ask for, on GPU types in turn: fractions of time by a linear program, in rounds of 6 minutes",
            source: "Narayanan et al., OSDI 2020",
            adapts_batch: false,
        }
    }

    fn cadence(&self) -> Cadence {
        Cadence { every: Duration::from_mins(6), on_events: None }
    }

    fn plan(&self, snapshot: &Snapshot<Known>, _: &Terms<'_>) -> Plan {
        let mut room = Room::new(snapshot);
        let types: Vec<GpuType> = room.types().cloned().collect();
        let carried = Carried { served: served(snapshot), ..Carried::default() };
        let jobs = snapshot.jobs();
        let open: Vec<usize> =
            by_arrival(jobs).into_iter().filter(|&index| !jobs[index].is_pinned()).collect();
        let market = market(snapshot, &room, &types, &open);
        let shares = market.shares(self.objective);
        let received = |at: usize, on: usize| {
            let served = carried.served.get(&jobs[open[at]].id);
            served.and_then(|served| served.secs.get(&types[on])).copied().unwrap_or(0.0)
        };
        let urgency = |at: usize, on: usize| shares[at][on] / received(at, on).max(1e-9);

        let mut standings = vec![Standing::Stays; jobs.len()];
        let mut is_placed = vec![false; open.len()];
        // First by shares; then whoever is left takes what is left.
        for fills in [false, true] {
            for &on in &fastest_first(&market) {
                let may = |at: &usize| market.jobs[*at].rates[on] > 0.0 && (fills || shares[*at][on] > 1e-9);
                let mut queue: Vec<usize> = (0..open.len()).filter(may).collect();
                // Stable: of equals the oldest.
                queue.sort_by(|&a, &b| urgency(b, on).total_cmp(&urgency(a, on)));
                for at in queue {
                    let (job, gpus) = (&jobs[open[at]], market.jobs[at].gpus);
                    if is_placed[at] {
                        continue;
                    }
                    let stays = held(job) == gpus && room.may_stay(job) == Some(on) && room.keep(job);
                    if stays || room.promise_on(job, gpus, on) {
                        is_placed[at] = true;
                        standings[open[at]] =
                            if stays { Standing::Stays } else { Standing::Comes { pool: on, gpus } };
                    }
                }
            }
        }
        for (at, _) in is_placed.iter().enumerate().filter(|(_, is_placed)| !**is_placed) {
            let (job, gpus) = (&jobs[open[at]], market.jobs[at].gpus);
            standings[open[at]] = Standing::Waits(room.why_not(job, gpus));
        }
        // The largest first, on as few nodes as can be.
        let mut order: Vec<usize> = (0..open.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(market.jobs[at].gpus));
        let order: Vec<usize> = order.into_iter().map(|at| open[at]).collect();
        Plan { carried, ..carry_out(snapshot, &mut room, &order, &standings, Layout::Packed) }
    }
}

/// What each job has received of each type up to now: what it attained since the last round it attained where it is.
fn served(snapshot: &Snapshot<Known>) -> std::collections::BTreeMap<pollux_model::JobId, Served> {
    let cluster = snapshot.cluster();
    let type_of = |job: &Job| {
        let (node, _) = job.holds.iter().next()?;
        cluster.nodes.iter().find(|other| other.id == node).map(|node| node.gpu_type.clone())
    };
    let update = |job: &Job| {
        let mut served = snapshot.carried().served.get(&job.id).cloned().unwrap_or_default();
        served.last = type_of(job).or(served.last);
        let gpus = held(job).max(asked(job, job.knows.request)).max(1);
        let secs = (job.attained - served.attained).max(0.0) / f64::from(gpus);
        if let Some(on) = served.last.clone().filter(|_| secs > 0.0) {
            *served.secs.entry(on).or_default() += secs;
        }
        served.attained = job.attained;
        (job.id, served)
    };
    snapshot.jobs().iter().map(update).collect()
}

fn market(snapshot: &Snapshot<Known>, room: &Room, types: &[GpuType], open: &[usize]) -> Market {
    let cluster = snapshot.cluster();
    let largest = |gpu_type: &GpuType| {
        let nodes = cluster.nodes.iter().filter(|node| node.gpu_type == *gpu_type);
        nodes.map(|node| node.gpus).max().unwrap_or(1)
    };
    let speed = |gpu_type: &GpuType| cluster.speeds.get(gpu_type).copied().unwrap_or(1.0);
    let bidder = |&index: &usize| {
        let job = &snapshot.jobs()[index];
        let gpus = asked(job, job.knows.request);
        let rate =
            |gpu_type: &GpuType, gpus: u32| rate(job, gpu_type, gpus, largest(gpu_type), speed(gpu_type));
        let rates = types.iter().enumerate().map(|(pool, gpu_type)| {
            let may = room.is_possible(job, pool, gpus) || room.may_stay(job) == Some(pool);
            if may { rate(gpu_type, gpus) } else { 0.0 }
        });
        let rates: Vec<f64> = rates.collect();
        let slowest = types.iter().map(|gpu_type| rate(gpu_type, 1)).filter(|rate| *rate > 0.0);
        Bidder { gpus, weight: job.weight, rates, alone: slowest.fold(f64::INFINITY, f64::min) }
    };
    let free =
        |pool: usize| room.open_nodes(pool).iter().fold(0_u32, |sum, (_, free)| sum.saturating_add(*free));
    Market { jobs: open.iter().map(bidder).collect(), gpus: (0..types.len()).map(free).collect() }
}

/// A job's throughput on so many GPUs of a type; 0 if it has none there.
fn rate(job: &Job, gpu_type: &GpuType, gpus: u32, gpus_per_node: u32, speed: f64) -> f64 {
    let told = job.knows.oracle.as_ref();
    let told = told.filter(|oracle| !(oracle.step_secs.is_empty() && oracle.step_secs_by_type.is_empty()));
    let learned = || {
        let curve = job.knows.learned.curves.on(gpu_type)?;
        Some(curve.goodput(Placement::packed(gpus, gpus_per_node)?).useful_samples_per_sec())
    };
    let known = match told {
        Some(oracle) => oracle.step_secs_on_type(gpu_type, gpus).map_or(0.0, |secs| 1.0 / secs),
        None => learned().unwrap_or(f64::from(gpus) * speed),
    };
    if known.is_finite() { known.max(0.0) } else { 0.0 }
}

/// The types in the order of how fast they are to the jobs there are.
fn fastest_first(market: &Market) -> Vec<usize> {
    let sum = |on: usize| {
        market.jobs.iter().map(|job| job.rates[on] / job.alone).filter(|rate| rate.is_finite()).sum()
    };
    let sums: Vec<f64> = (0..market.gpus.len()).map(sum).collect();
    let mut order: Vec<usize> = (0..sums.len()).collect();
    order.sort_by(|&a, &b| sums[b].total_cmp(&sums[a]));
    order
}
