//! Least attained service in two queues.

use std::collections::{BTreeMap, BTreeSet};

use pollux_model::JobId;

use super::place::{Layout, Room};
use super::{asked, by_arrival, carry_out, scan};
use crate::plan::Plan;
use crate::policy::{About, Policy, Terms};
use crate::snapshot::{Carried, Job, Requested, Snapshot};

/// Tiresias as the Pollux authors ported it.
///
/// Jobs begin in a first queue, in the order of their arrival. Who has attained the threshold goes to the end of a
/// second, for good ([`Carried::queue`]). Each round starts from the whole cluster and goes through the first queue,
/// then the second: who fits in the GPUs left runs on what it asked for, who does not is suspended, and the next is
/// tried. Who goes on running keeps its GPUs; new ones take the node with most free GPUs, and again.
///
/// The original consolidates jobs by their model's tensors and promotes who waited long; this port does neither.
///
/// ```
/// use pollux_policy::{Policy, Tiresias};
///
/// let hasty = Tiresias { demote_at: 3_600.0 };
/// assert_eq!(hasty.about().name, "tiresias");
/// assert_eq!(Tiresias::default().demote_at, 16.0 * 3_600.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tiresias {
    /// GPU-seconds of attained service that lead to the second queue.
    pub demote_at: f64,
}

impl Default for Tiresias {
    /// 16 GPU-hours, as in the artifact.
    fn default() -> Self {
        Self { demote_at: 16.0 * 3_600.0 }
    }
}

impl Tiresias {
    /// The second queue: those who are in it and still there, then those who have just attained the threshold.
    fn demoted(self, snapshot: &Snapshot<Requested>, arrival: &[usize]) -> Vec<JobId> {
        let jobs = snapshot.jobs();
        let present: BTreeSet<JobId> = jobs.iter().map(|job| job.id).collect();
        let mut seen = BTreeSet::new();
        let old = snapshot.carried().queue.iter().copied().filter(|id| present.contains(id));
        let newly = arrival.iter().map(|&index| &jobs[index]).filter(|job| job.attained >= self.demote_at);
        old.chain(newly.map(|job: &Job<Requested>| job.id)).filter(|id| seen.insert(*id)).collect()
    }
}

impl Policy for Tiresias {
    type Knows = Requested;

    fn about(&self) -> About {
        About {
            name: "tiresias",
            summary: "what users ask for, least attained service first in two queues, preemptive",
            source: "Gu et al., NSDI 2019, as ported by petuum/adaptdl, branch osdi21",
            adapts_batch: false,
        }
    }

    fn plan(&self, snapshot: &Snapshot<Requested>, _: &Terms<'_>) -> Plan {
        let jobs = snapshot.jobs();
        let mut order = by_arrival(jobs);
        let queue = self.demoted(snapshot, &order);
        let place_in_queue: BTreeMap<JobId, usize> = queue.iter().copied().zip(1..).collect();
        // Stable: the first queue stays in the order of arrival.
        order.sort_by_key(|&index| place_in_queue.get(&jobs[index].id).copied().unwrap_or(0));
        let gpus: Vec<u32> = jobs.iter().map(|job| asked(job, job.knows.request)).collect();
        let mut room = Room::new(snapshot);
        let standings = scan(&mut room, jobs, &order, &gpus);
        let plan = carry_out(snapshot, &mut room, &order, &standings, Layout::Emptiest);
        Plan { carried: Carried { queue, ..Carried::default() }, ..plan }
    }
}
