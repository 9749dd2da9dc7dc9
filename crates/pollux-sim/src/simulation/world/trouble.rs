//! What goes wrong on the way through a workload.

use std::collections::BTreeSet;
use std::time::Duration;

use pollux_core::{Generation, Input, JobSpec, NodeSpec};
use pollux_model::{Allocation, JobId, NodeId, Random, Timestamp};
use pollux_policy::NodeState;

use super::{Coming, World};
use crate::driver::{Broken, index_of, job_id};
use crate::faults::{Befalls, Fate, Faults, NodeEvent};
use crate::simulation::job::SimJob;
use crate::simulation::{Options, SimulationError};

/// How long jobs may go on dying without any of them getting further.
const HOPELESS: Duration = Duration::from_hours(30 * 24);

/// The nodes as they are, and what will become of them.
#[derive(Default)]
pub(super) struct Trouble {
    /// All of them, whether they are there or not; none where nothing befalls them.
    nodes: Vec<(NodeSpec, Fate)>,
    slow: BTreeSet<NodeId>,
    /// Nodes that are gone or will be in a moment.
    away: BTreeSet<NodeId>,
    /// When hope was last checked, and all progress that was saved then.
    hope: (Timestamp, f64),
}

impl Trouble {
    pub(super) fn new(options: &Options) -> Self {
        let Options { cluster, faults, seed, .. } = options;
        let is_any = faults.loses_nodes() || faults.has_stragglers();
        let nodes = (0..).map(NodeId).zip(cluster.nodes()).filter(|_| is_any);
        let nodes = nodes.map(|(node, spec)| (spec.clone(), faults.fate(*seed, node)));
        Self { nodes: nodes.collect(), ..Self::default() }
    }

    /// Whether all nodes are there to stay for now, so that a plan says what can be had.
    pub(super) fn is_over(&self) -> bool {
        self.away.is_empty()
    }
}

/// Which starts of a job fail: its n-th start does or does not whatever a policy does.
#[derive(Default)]
pub(super) struct Starts {
    chance: Option<(f64, Random)>,
    pub(super) latest_fails: bool,
    /// How often the job died.
    pub(super) n_failures: u32,
}

impl Starts {
    pub(super) fn new(options: &Options, job: usize) -> Self {
        let part = options.faults.restart_failure;
        let chance = options.faults.starts(options.seed, job).map(|random| (part, random));
        Self { chance, ..Self::default() }
    }

    /// One more start.
    pub(super) fn next(&mut self) {
        self.latest_fails = self.chance.as_mut().is_some_and(|(part, random)| random.chance(*part));
    }
}

impl World<'_> {
    /// What comes first for each node.
    pub(super) fn expect_trouble(&mut self) {
        for node in 0..self.trouble.nodes.len() {
            self.expect_next(node);
        }
    }

    fn expect_next(&mut self, node: usize) {
        let next = self.trouble.nodes[node].1.next();
        if let Some(((at, what), id)) = next.zip(u32::try_from(node).ok().map(NodeId)) {
            self.schedule(at, Coming::Node(id, what));
        }
    }

    /// Something befalls a node.
    pub(super) fn befall(
        &mut self,
        now: Timestamp,
        node: NodeId,
        what: Befalls,
    ) -> Result<(), SimulationError> {
        self.driver.log.nodes.push(NodeEvent { at: now, node, what });
        match what {
            Befalls::Warned => {
                self.trouble.away.insert(node);
                self.tell(now, Input::NodeStateSet(node, NodeState::Draining))?;
            }
            Befalls::Lost => {
                self.trouble.away.insert(node);
                self.trouble.slow.remove(&node);
                for index in 0..self.members.len() {
                    if self.members[index].allocation.on(node).is_some() {
                        self.crash(now, index);
                    }
                }
                self.tell(now, Input::NodeLost(node))?;
            }
            Befalls::Back => {
                self.trouble.away.remove(&node);
                // What could not run without it may now.
                self.driver.impossible.clear();
                let spec = self.trouble.nodes[node.0 as usize].0.clone();
                self.tell(now, Input::NodeJoined(node, spec))?;
            }
            Befalls::Slow => {
                self.trouble.slow.insert(node);
            }
            Befalls::Steady => {
                self.trouble.slow.remove(&node);
            }
        }
        self.spread_interference(now);
        self.expect_next(node.0 as usize);
        Ok(())
    }

    /// All processes of a job die, and what it did since it last saved is lost.
    fn crash(&mut self, now: Timestamp, index: usize) {
        let member = &mut self.members[index];
        member.starts.n_failures += 1;
        if let Some(job) = &mut member.job {
            job.crash(now);
        }
        self.stop(now, index);
    }

    /// A start fails at the moment at which the job would have begun to train.
    pub(super) fn fail(
        &mut self,
        now: Timestamp,
        index: usize,
        generation: Generation,
    ) -> Result<(), SimulationError> {
        self.crash(now, index);
        self.tell(now, Input::JobFailed(job_id(index), generation))?;
        self.spread_interference(now);
        Ok(())
    }

    /// A job is asked to leave: it does, unless it died with a node a moment ago.
    pub(super) fn leave(&mut self, now: Timestamp, job: JobId, generation: Generation) -> Input {
        if self.members[index_of(job)].allocation.is_empty() {
            return Input::JobFailed(job, generation);
        }
        self.stop(now, index_of(job));
        Input::JobStopped(job, generation)
    }

    /// What a job loses of its speed to a slow node among its own.
    pub(super) fn slowed_by_node(&self, allocation: &Allocation) -> f64 {
        let is_slow = allocation.iter().any(|(node, _)| self.trouble.slow.contains(&node));
        if is_slow { self.options.faults.slowdown } else { 0.0 }
    }

    /// What is declared of a job, as its user sees it.
    pub(super) fn misjudge(&self, index: usize, spec: &mut JobSpec) {
        let Options { faults, seed, .. } = self.options;
        spec.work = spec.work.map(|work| work * faults.misjudgement(*seed, index));
        if faults.restart_failure > 0.0 {
            // Whoever dies here does so by no fault of its own: to give it up would be wrong.
            spec.retries = u32::MAX;
        }
    }

    /// Gives up where nobody has got further for a month: each job dies before it saves, and always will.
    pub(super) fn check_hope(&mut self, now: Timestamp) -> Result<(), SimulationError> {
        let (since, before) = self.trouble.hope;
        if !self.options.faults.loses_nodes() || now - since < HOPELESS {
            return Ok(());
        }
        let saved = |job: &SimJob| job.saves().map_or(0.0, crate::simulation::saves::Saves::progress);
        // Jobs that are still to come are hope, too.
        let hope = self.n_submitted as f64
            + self.members.iter().filter_map(|member| member.job.as_ref()).map(saved).sum::<f64>();
        if hope <= before {
            return Err(SimulationError::Hopeless(self.left()));
        }
        self.trouble.hope = (now, hope);
        Ok(())
    }
}

/// A job that saves its state, where that can matter.
pub(super) fn saving(job: SimJob, faults: &Faults) -> SimJob {
    if faults.loses_nodes() { job.saving(faults.checkpoint) } else { job }
}

/// GPU-seconds of training that a job lost. All it did is what was needed and what was lost.
pub(super) fn redone(index: usize, job: Option<&SimJob>, needed: f64) -> Result<f64, Broken> {
    let Some(job) = job else { return Ok(0.0) };
    let (redone, gpu_secs) = job.saves().map_or((0.0, 0.0), |saves| (saves.redone, saves.redone_gpu_secs));
    // A job goes a long way in small steps, each of which is rounded.
    if (job.done - redone - needed).abs() > 1e-6 * needed.max(redone) {
        return Err(Broken::WrongWork { job: index as u64, done: job.done - redone, needed });
    }
    Ok(gpu_secs)
}
