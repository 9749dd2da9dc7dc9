//! The snapshot a policy is shown.

use std::collections::BTreeMap;

use pollux_model::{Allocation, JobId, NodeId, Placement, Timestamp};
use pollux_policy::{
    Cluster, Freedom, Group, Job as Shown, Known, Learned, Request, Snapshot, SnapshotError,
};

use crate::config::Config;
use crate::history::Histories;
use crate::job::{Job, Phase};
use crate::ledger::Ledger;
use crate::speeds::TypeSpeeds;

/// Everything a snapshot is made of.
pub(crate) struct View<'a> {
    pub(crate) now: Timestamp,
    pub(crate) config: &'a Config,
    pub(crate) ledger: &'a Ledger,
    pub(crate) groups: &'a [Group],
    pub(crate) histories: &'a Histories,
    pub(crate) speeds: &'a TypeSpeeds,
}

impl View<'_> {
    /// The jobs that plans are made for, and the cluster without those that are leaving for good. Whatever happened
    /// before, there is one: nothing enters the scheduler's state that a snapshot would refuse.
    pub(crate) fn snapshot<'j>(
        &self,
        jobs: impl Iterator<Item = (JobId, &'j Job)>,
    ) -> Result<Snapshot, SnapshotError> {
        let planned = jobs.filter(|(_, job)| job.is_planned(self.now));
        let jobs: Vec<Shown> = planned.map(|(id, job)| self.job(id, job)).collect();
        let mut held = BTreeMap::<NodeId, u32>::new();
        for (node, share) in jobs.iter().flat_map(|job| job.holds.iter()) {
            *held.entry(node).or_default() += share.n_replicas();
        }
        let cluster = Cluster {
            nodes: self.ledger.nodes(&held),
            groups: self.groups.to_vec(),
            speeds: self.speeds.pooled(self.ledger.gpu_types()),
        };
        Snapshot::new(cluster, jobs)
    }

    fn job(&self, id: JobId, job: &Job) -> Shown {
        let (holds, is_underway) = position(job);
        let spec = &job.spec;
        let min_gpus = spec.min_gpus;
        let freedom = if is_underway {
            Freedom::Restarting
        } else if !job.can_come_back() && !holds.is_empty() {
            // It has never reported: a restart could destroy it.
            Freedom::Rigid { gpus: holds.placement().map_or(1, Placement::n_replicas) }
        } else if let Some(gpus) = job.rigid_request() {
            Freedom::Rigid { gpus }
        } else if spec.preemptible && job.stay(self.now).is_none() {
            Freedom::Elastic
        } else {
            Freedom::NonPreemptible
        };
        Shown {
            id,
            group: spec.group,
            priority: spec.priority,
            weight: spec.weight,
            min_gpus,
            max_gpus: spec.max_gpus,
            types: spec.types.clone(),
            freedom,
            holds,
            age: self.now - job.submitted,
            attained: job.attained_at(self.now),
            restarts: job.restarts(),
            restart_cost: job.clock.measured().unwrap_or(self.config.restart_cost),
            knows: Known {
                learned: self.learned(job),
                remaining: remaining(job),
                request: spec.request.or(Some(Request { gpus: min_gpus })),
                oracle: None,
            },
        }
    }

    /// What is known of its goodput: its own reports, or those of earlier jobs like it.
    fn learned(&self, job: &Job) -> Learned {
        let past = job.spec.application.as_deref().filter(|_| self.config.history);
        let own = job.report.as_ref().map_or(0, |report| report.most_replicas);
        if job.curves.iter().next().is_none()
            && let Some(learned) = past.and_then(|application| self.histories.learned(application))
        {
            return learned;
        }
        let most_gpus = past.map_or(own, |application| own.max(self.histories.most_gpus(application)));
        Learned { curves: job.curves.clone(), most_gpus }
    }
}

/// Where a job is or will be, and whether it is on its way there.
fn position(job: &Job) -> (Allocation, bool) {
    match job.phase {
        Phase::Running if job.held == job.wanted => (job.held.clone(), false),
        Phase::Starting if job.held == job.wanted => (job.held.clone(), true),
        _ if job.wanted.is_empty() => (Allocation::none(), false),
        _ => (job.wanted.clone(), true),
    }
}

/// Useful samples that are left of those declared; never quite nothing, for declarations can be wrong.
fn remaining(job: &Job) -> Option<f64> {
    let work = job.spec.work?;
    let done = job.report.as_ref().map_or(0.0, |report| report.progress * report.limits.initial().0 as f64);
    Some((work - done).max(work * 1e-3))
}
