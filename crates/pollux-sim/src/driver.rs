//! The shell around the scheduler: plans are made on the spot, and what is asked of the world is checked.

use std::collections::BTreeMap;

use pollux_core::{Config, Effect, Generation, Input, PoolId, Scheduler};
use pollux_model::{Allocation, JobId, NodeId, Timestamp};
use pollux_policy::{AnyPolicy, Limit, Oracle};

use crate::cluster::ClusterShape;
use crate::log::{Event, Kept, Log, What};
use crate::shell::{Shell, answered};

/// A run that broke a law. Each is a mistake of the simulator or the scheduler, never of its user.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Broken {
    /// A node was made to hold more than it has.
    #[error("at {at} s node {node} holds {held} of its {gpus} GPUs")]
    Overfull {
        /// When.
        at: f64,
        /// Which node.
        node: u32,
        /// GPUs held.
        held: u32,
        /// GPUs it has.
        gpus: u32,
    },
    /// A job ran before it was there.
    #[error("at {at} s job {job} runs before it was submitted")]
    TooEarly {
        /// When.
        at: f64,
        /// Which job.
        job: u64,
    },
    /// A job ended with work undone, or did more than it had.
    #[error("job {job} did {done} of {needed} units of work")]
    WrongWork {
        /// Which job.
        job: u64,
        /// Done.
        done: f64,
        /// To do.
        needed: f64,
    },
    /// A node was given back while a job was there.
    #[error("at {at} s node {node} is given back while {held} of its GPUs are held")]
    StillHeld {
        /// When.
        at: f64,
        /// Which node.
        node: u32,
        /// GPUs held.
        held: u32,
    },
    /// The scheduler refused what happened.
    #[error("at {at} s the scheduler refused an event: {why}")]
    Refused {
        /// When.
        at: f64,
        /// Its words.
        why: String,
    },
}

/// The id of the job at a place in its workload.
pub(crate) fn job_id(index: usize) -> JobId {
    JobId(index as u64)
}

/// The place of the job with this id.
#[expect(clippy::cast_possible_truncation, reason = "ids are positions in a list")]
pub(crate) fn index_of(job: JobId) -> usize {
    job.0 as usize
}

/// What only a simulator can tell a policy about a job.
pub(crate) type Oracles<'a> = dyn Fn(JobId) -> Option<Oracle> + 'a;

/// Rounds as they went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoundStats {
    /// Plans made.
    pub n_rounds: u64,
    /// Sum of their gaps to the certified bound.
    pub sum_gaps: f64,
    /// The worst of them.
    pub worst_gap: f64,
    /// Plans that came with a certificate.
    pub n_certified: u64,
}

/// Drives a scheduler through a run.
pub(crate) struct Driver<'p> {
    shell: Shell,
    policy: &'p dyn AnyPolicy,
    audit: Audit,
    kept: Kept,
    pub(crate) log: Log,
    pub(crate) rounds: RoundStats,
    /// Jobs that the latest plan says could run nowhere.
    pub(crate) impossible: Vec<JobId>,
    /// Whether the latest plan gave anybody anything.
    pub(crate) anybody_runs: bool,
}

impl<'p> Driver<'p> {
    pub(crate) fn new(
        config: Config,
        policy: &'p dyn AnyPolicy,
        cluster: &ClusterShape,
        kept: Kept,
    ) -> Result<Self, Broken> {
        let mut driver = Self::without_nodes(config, policy, kept);
        for (node, spec) in (0..).map(NodeId).zip(cluster.nodes()) {
            driver.audit.nodes.insert(node, (spec.gpus, 0));
            driver.tell(Timestamp::ZERO, Input::NodeJoined(node, spec.clone()), &|_| None)?;
        }
        Ok(driver)
    }

    /// Of a cluster whose nodes have yet to come.
    pub(crate) fn without_nodes(config: Config, policy: &'p dyn AnyPolicy, kept: Kept) -> Self {
        Self {
            shell: Shell::new(config),
            policy,
            audit: Audit::default(),
            kept,
            log: Log::default(),
            rounds: RoundStats::default(),
            impossible: Vec::new(),
            anybody_runs: true,
        }
    }

    pub(crate) fn scheduler(&self) -> &Scheduler {
        self.shell.scheduler()
    }

    /// Tells the scheduler what happened. Plans it asks for are made at once; what else it asks for is returned.
    pub(crate) fn tell(
        &mut self,
        now: Timestamp,
        input: Input,
        oracles: &Oracles<'_>,
    ) -> Result<Vec<Effect>, Broken> {
        self.note(now, &input);
        let mut open = vec![input];
        let mut asked = Vec::new();
        while let Some(input) = open.pop() {
            let refused =
                |why: pollux_core::Refused| Broken::Refused { at: now.as_secs_f64(), why: why.to_string() };
            for effect in self.shell.tell(now, input).map_err(refused)? {
                let wish = match answered(effect, self.policy, oracles, None) {
                    Ok(answer) => {
                        if let Input::PlanReady(_, plan) = &answer {
                            self.count(plan);
                        }
                        open.push(answer);
                        continue;
                    }
                    Err(wish) => wish,
                };
                match wish {
                    Effect::Start { job, generation, allocation } => {
                        self.audit.start(now, job, &allocation)?;
                        let told = || self.scheduler().job(job).and_then(|job| job.explanation.cloned());
                        let why = if self.kept.reasons_of(job) { told().map(Box::new) } else { None };
                        let what = What::Started { allocation: allocation.clone(), why };
                        self.log.push(self.kept, Event { at: now, job, what });
                        asked.push(Effect::Start { job, generation, allocation });
                    }
                    Effect::Release { node } => {
                        self.audit.release(now, node)?;
                        asked.push(Effect::Release { node });
                    }
                    other => asked.push(other),
                }
            }
        }
        match self.scheduler().fault() {
            Some(fault) => Err(Broken::Refused { at: now.as_secs_f64(), why: fault.to_string() }),
            None => Ok(asked),
        }
    }

    /// A job's batch as it is from now on.
    pub(crate) fn note_batch(&mut self, at: Timestamp, job: JobId, global: u64, efficiency: f64) {
        self.log.push(self.kept, Event { at, job, what: What::Batch { global, efficiency } });
    }

    fn note(&mut self, at: Timestamp, input: &Input) {
        match input {
            Input::NodeJoined(node, spec) => {
                self.audit.nodes.insert(*node, (spec.gpus, 0));
            }
            Input::NodeLost(node) => {
                let gone = self.audit.lose(*node).into_iter();
                self.log.events.extend(gone.map(|job| Event { at, job, what: What::Failed }));
            }
            _ => {}
        }
        let (job, what) = match input {
            Input::JobSubmitted(job, _) => {
                self.audit.submitted.insert(*job, at);
                (*job, What::Submitted)
            }
            Input::JobTraining(job, _) => (*job, What::Training),
            Input::JobStopped(job, _) => {
                self.audit.leave(*job);
                (*job, What::Stopped)
            }
            Input::JobFailed(job, _) => {
                self.audit.leave(*job);
                (*job, What::Failed)
            }
            Input::JobFinished(job, _) => {
                self.audit.leave(*job);
                self.audit.submitted.remove(job);
                (*job, What::Finished)
            }
            other => return self.audit.nodes_changed(other),
        };
        self.log.push(self.kept, Event { at, job, what });
    }

    fn count(&mut self, plan: &pollux_policy::Plan) {
        self.rounds.n_rounds += 1;
        if let Some(certificate) = &plan.certificate {
            self.rounds.n_certified += 1;
            self.rounds.sum_gaps += certificate.gap();
            self.rounds.worst_gap = self.rounds.worst_gap.max(certificate.gap());
        }
        self.anybody_runs = plan.jobs.iter().any(|job| !job.allocation.is_empty());
        let impossible = plan.jobs.iter().filter(|job| job.reason.limit == Limit::Impossible);
        self.impossible = impossible.map(|job| job.job).collect();
    }

    /// A job's present start.
    pub(crate) fn generation(&self, job: JobId) -> Generation {
        self.scheduler().job(job).map_or(Generation(0), |job| job.generation)
    }
}

/// A second ledger, kept from what was asked and answered alone.
#[derive(Debug, Default)]
struct Audit {
    /// GPUs of each node: all, and held.
    nodes: BTreeMap<NodeId, (u32, u32)>,
    holders: BTreeMap<JobId, Allocation>,
    submitted: BTreeMap<JobId, Timestamp>,
    /// GPUs of a node of each pool.
    pools: BTreeMap<PoolId, u32>,
}

impl Audit {
    /// Nodes that come and go while the cluster runs.
    fn nodes_changed(&mut self, input: &Input) {
        match input {
            Input::PoolsSet(pools) => {
                self.pools = pools.iter().map(|pool| (pool.id, pool.node.gpus)).collect();
            }
            Input::PoolNodeJoined(node, pool) => {
                self.nodes.insert(*node, (self.pools.get(pool).copied().unwrap_or(0), 0));
            }
            Input::NodeLost(node) => _ = self.nodes.remove(node),
            _ => {}
        }
    }

    /// A node is given back: nobody may be there.
    fn release(&self, now: Timestamp, node: NodeId) -> Result<(), Broken> {
        match self.nodes.get(&node) {
            Some((_, held)) if *held > 0 => {
                Err(Broken::StillHeld { at: now.as_secs_f64(), node: node.0, held: *held })
            }
            _ => Ok(()),
        }
    }

    fn start(&mut self, now: Timestamp, job: JobId, allocation: &Allocation) -> Result<(), Broken> {
        let at = now.as_secs_f64();
        if self.submitted.get(&job).is_none_or(|submitted| *submitted > now) {
            return Err(Broken::TooEarly { at, job: job.0 });
        }
        for (node, share) in allocation.iter() {
            let (gpus, held) = self.nodes.get_mut(&node).map_or((0, u32::MAX), |entry| {
                entry.1 += share.n_replicas();
                *entry
            });
            if held > gpus {
                return Err(Broken::Overfull { at, node: node.0, held, gpus });
            }
        }
        self.holders.insert(job, allocation.clone());
        Ok(())
    }

    /// A node is gone with what ran there. Says of whom nothing is left.
    fn lose(&mut self, node: NodeId) -> Vec<JobId> {
        self.nodes.remove(&node);
        for allocation in self.holders.values_mut().filter(|held| held.on(node).is_some()) {
            let rest = allocation.iter().filter(|(held, _)| *held != node);
            *allocation = Allocation::whole(rest.map(|(node, share)| (node, share.n_replicas())));
        }
        self.holders.extract_if(.., |_, held| held.is_empty()).map(|(job, _)| job).collect()
    }

    fn leave(&mut self, job: JobId) {
        for (node, share) in self.holders.remove(&job).unwrap_or_default().iter() {
            if let Some((_, held)) = self.nodes.get_mut(&node) {
                *held -= share.n_replicas();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes of 4 GPUs; jobs 1 and 2 are there from second 10 on.
    fn audit() -> Audit {
        let submitted = [1, 2].map(|job| (JobId(job), Timestamp::from_secs(10))).into();
        Audit { nodes: [0, 1].map(|node| (NodeId(node), (4, 0))).into(), submitted, ..Audit::default() }
    }

    fn start(audit: &mut Audit, secs: u64, job: u64, gpus: &[(u32, u32)]) -> Result<(), Broken> {
        let allocation = Allocation::whole(gpus.iter().map(|&(node, gpus)| (NodeId(node), gpus)));
        audit.start(Timestamp::from_secs(secs), JobId(job), &allocation)
    }

    #[test] // 3 of node 0's 4 GPUs are held: 1 more is fine, 2 are not.
    fn a_node_holds_no_more_than_it_has() {
        let mut audit = audit();
        assert_eq!(start(&mut audit, 10, 1, &[(0, 3), (1, 4)]), Ok(()));
        let overfull = Broken::Overfull { at: 20.0, node: 0, held: 5, gpus: 4 };
        assert_eq!(overfull.to_string(), "at 20 s node 0 holds 5 of its 4 GPUs");
        assert_eq!(start(&mut audit, 20, 2, &[(0, 2)]), Err(overfull));
    }

    #[test]
    fn a_node_can_be_filled_and_has_to_exist() {
        let mut audit = audit();
        assert_eq!(start(&mut audit, 10, 1, &[(0, 3)]), Ok(()));
        assert_eq!(start(&mut audit, 10, 2, &[(0, 1), (1, 4)]), Ok(()));
        let nowhere = start(&mut audit, 10, 1, &[(2, 1)]);
        assert!(matches!(nowhere, Err(Broken::Overfull { node: 2, gpus: 0, .. })), "{nowhere:?}");
    }

    #[test] // One comes a second early, one never came.
    fn nobody_runs_before_it_was_submitted() {
        let mut audit = audit();
        let early = |at, job| Err(Broken::TooEarly { at, job });
        assert_eq!(start(&mut audit, 9, 1, &[(0, 1)]), early(9.0, 1));
        assert_eq!(start(&mut audit, 99, 3, &[(0, 1)]), early(99.0, 3));
        assert_eq!(start(&mut audit, 10, 1, &[(0, 4), (1, 4)]), Ok(()));
    }

    #[test]
    fn a_node_is_given_back_by_nobody_but_the_last() {
        let mut audit = audit();
        assert_eq!(start(&mut audit, 10, 1, &[(0, 3)]), Ok(()));
        let now = Timestamp::from_secs(20);
        assert_eq!(audit.release(now, NodeId(0)), Err(Broken::StillHeld { at: 20.0, node: 0, held: 3 }));
        audit.leave(JobId(1));
        assert_eq!(audit.release(now, NodeId(0)), Ok(()));
        audit.nodes_changed(&Input::NodeLost(NodeId(0)));
        assert!(start(&mut audit, 20, 1, &[(0, 1)]).is_err());
    }

    #[test]
    fn who_leaves_frees_its_gpus_once() {
        let mut audit = audit();
        assert_eq!(start(&mut audit, 10, 1, &[(0, 4), (1, 1)]), Ok(()));
        assert_eq!(start(&mut audit, 10, 2, &[(1, 3)]), Ok(()));
        audit.leave(JobId(1));
        audit.leave(JobId(1));
        assert_eq!(audit.nodes.values().map(|(_, held)| *held).collect::<Vec<_>>(), [0, 3]);
        assert_eq!(start(&mut audit, 20, 1, &[(0, 4), (1, 1)]), Ok(()));
        assert!(start(&mut audit, 20, 3, &[(0, 1)]).is_err());
    }

    #[test] // Job 1 loses its part on node 0 and job 2 all it has; node 0 comes back empty.
    fn what_was_on_a_lost_node_is_gone() {
        let mut audit = audit();
        assert_eq!(start(&mut audit, 10, 1, &[(0, 2), (1, 3)]), Ok(()));
        assert_eq!(start(&mut audit, 10, 2, &[(0, 2)]), Ok(()));
        assert_eq!(audit.lose(NodeId(0)), [JobId(2)]);
        assert!(start(&mut audit, 20, 2, &[(0, 1)]).is_err());
        audit.nodes.insert(NodeId(0), (4, 0));
        audit.leave(JobId(1));
        assert_eq!(audit.nodes.values().map(|(_, held)| *held).collect::<Vec<_>>(), [0, 0]);
    }

    #[test] // A job that starts again without having left would hold both.
    fn who_does_not_leave_holds_on() {
        let mut audit = audit();
        assert_eq!(start(&mut audit, 10, 1, &[(0, 3)]), Ok(()));
        let overfull = Broken::Overfull { at: 20.0, node: 0, held: 6, gpus: 4 };
        assert_eq!(start(&mut audit, 20, 1, &[(0, 3)]), Err(overfull));
    }
}
