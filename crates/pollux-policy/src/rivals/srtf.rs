//! Who is done soonest goes first.

use std::collections::BTreeMap;
use std::time::Duration;

use pollux_model::{GpuType, Placement};

use super::place::{Layout, Room};
use super::{asked, by_arrival, carry_out, scan};
use crate::plan::Plan;
use crate::policy::{About, Cadence, Policy, Terms};
use crate::snapshot::{Job, Known, Snapshot};

/// Shortest remaining time first, each job with what it asks for.
///
/// Preemptive: each round starts from the whole cluster; who does not fit in what shorter jobs leave waits, and the next
/// is tried. Who goes on running keeps its GPUs, others are packed on as few nodes as possible.
///
/// The remaining time is the [`Oracle`](crate::Oracle)'s, or else the declared work over the goodput that the job's
/// reports promise on what it asks for. Who has neither comes last. Of equals the oldest is first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShortestFirst;

/// Seconds a job has left on so many GPUs, as far as anybody knows.
fn remaining_secs(job: &Job, gpus: u32, node_sizes: &BTreeMap<&GpuType, u32>) -> Option<f64> {
    let foreseen = job
        .knows
        .oracle
        .as_ref()
        .and_then(|oracle| Some(oracle.remaining_iterations * oracle.step_secs_on(gpus)?));
    let declared = || {
        let goodput = |(gpu_type, size): (&&GpuType, &u32)| {
            let may_use = job.types.is_empty() || job.types.contains(*gpu_type);
            let curve = job.knows.learned.curves.on(gpu_type).filter(|_| may_use)?;
            Some(curve.goodput(Placement::packed(gpus, *size)?).useful_samples_per_sec())
        };
        let fastest = node_sizes.iter().filter_map(goodput).fold(0.0, f64::max);
        job.knows.remaining.map(|samples| samples / fastest)
    };
    foreseen.or_else(declared).filter(|secs| secs.is_finite() && *secs >= 0.0)
}

impl Policy for ShortestFirst {
    type Knows = Known;

    fn about(&self) -> About {
        About {
            name: "srtf",
            summary: "what users ask for, shortest remaining time first, preemptive",
            source: "Schrage, Operations Research 1968 (SRPT); with gangs of GPUs a heuristic",
            adapts_batch: false,
        }
    }

    fn cadence(&self) -> Cadence {
        Cadence { every: Duration::from_mins(1), on_events: Some(Duration::ZERO) }
    }

    fn plan(&self, snapshot: &Snapshot<Known>, _: &Terms<'_>) -> Plan {
        let jobs = snapshot.jobs();
        let mut node_sizes = BTreeMap::<&GpuType, u32>::new();
        for node in &snapshot.cluster().nodes {
            let size = node_sizes.entry(&node.gpu_type).or_default();
            *size = node.gpus.max(*size);
        }
        let gpus: Vec<u32> = jobs.iter().map(|job| asked(job, job.knows.request)).collect();
        let left =
            |(job, &gpus): (&Job, &u32)| remaining_secs(job, gpus, &node_sizes).unwrap_or(f64::INFINITY);
        let left: Vec<f64> = jobs.iter().zip(&gpus).map(left).collect();
        let mut order = by_arrival(jobs);
        order.sort_by(|&a, &b| left[a].total_cmp(&left[b]));
        let mut room = Room::new(snapshot);
        let standings = scan(&mut room, jobs, &order, &gpus);
        carry_out(snapshot, &mut room, &order, &standings, Layout::Packed)
    }
}
