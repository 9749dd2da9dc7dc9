//! All of a scheduler as plain data: saved by the shell, so that it goes on after a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pollux_model::fit::PastFit;
use pollux_model::{
    AgentReport, Allocation, GoodputModel, GpuType, JobCurves, JobId, NodeId, NoiseScale, Timestamp,
};
use pollux_policy::{Group, NodeState, SnapshotError};

use crate::config::Config;
use crate::effect::Generation;
use crate::ended::Ended;
use crate::history::Histories;
use crate::input::{JobSpec, NodeSpec, Refused};
use crate::job::{Explanation, Job, Phase};
use crate::ledger::Ledger;
use crate::restart::RestartClock;
use crate::rounds::Rounds;
use crate::scaler::{Fleet, Leaving, PoolId};
use crate::scheduler::Scheduler;
use crate::speeds::{Alone, Teacher, TypeSpeeds};

/// Everything a scheduler remembers, but its [`Config`]. What follows from the rest is not in it: who is active, how much
/// of a node is held, and tables that fill themselves.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The latest time it was told.
    pub now: Timestamp,
    /// Jobs, ended ones as long as they are remembered.
    pub jobs: BTreeMap<JobId, JobRecord>,
    /// Who has ended, and in which order.
    pub ended: Ended,
    /// Jobs that are to hold something else than they do.
    pub unsettled: BTreeSet<JobId>,
    /// The nodes.
    pub nodes: BTreeMap<NodeId, NodeRecord>,
    /// The groups of jobs.
    pub groups: Vec<Group>,
    /// What earlier jobs taught, by application.
    pub histories: BTreeMap<Arc<str>, PastRecord>,
    /// What one GPU of each type is worth to whom.
    pub speeds: BTreeMap<Teacher, BTreeMap<GpuType, Alone>>,
    /// Plans asked for and awaited.
    pub rounds: Rounds,
    /// Nodes ordered and wanted.
    pub fleet: Fleet,
}

/// A job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRecord {
    /// What its user said.
    pub spec: JobSpec,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// Where it is in its life.
    pub phase: Phase,
    /// Its latest start; 0 before the first.
    pub generation: Generation,
    /// GPUs it holds.
    pub held: Allocation,
    /// Since when.
    pub held_since: Timestamp,
    /// GPUs it is to hold.
    pub wanted: Allocation,
    /// GPU-seconds of former holdings.
    pub attained: f64,
    /// What its restarts cost.
    pub clock: RestartClock,
    /// Moves within the last hour that count against its budget.
    pub resizes: Vec<Timestamp>,
    /// Whether its user suspended it.
    pub suspended: bool,
    /// Whether its user cancelled it.
    pub cancelled: bool,
    /// Failures since it last made progress.
    pub failures: u32,
    /// Until when it waits after a failure.
    pub not_before: Timestamp,
    /// What its agent reported last.
    pub report: Option<AgentReport>,
    /// The models it is valued by: those of an earlier report as long as they stand for the latest.
    pub curves: Curves,
    /// The furthest it had come when it failed.
    pub progress_at_failure: f64,
    /// Whether any of its starts came as far as training.
    pub has_trained: bool,
    /// The latest start that lost a part of itself with a node; 0 if none has.
    pub lost_in: Generation,
    /// Why it holds what it holds.
    pub explanation: Option<Explanation>,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRecord {
    /// What it is like.
    pub spec: NodeSpec,
    /// Whether jobs may come and must go.
    pub state: NodeState,
    /// GPUs that others use.
    pub others: u32,
    /// The pool it was bought from, and when it came.
    pub of_pool: Option<(PoolId, Timestamp)>,
    /// Why it is on its way out.
    pub leaving: Option<Leaving>,
}

/// What jobs of an application taught.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PastRecord {
    /// The latest fit of each of the latest jobs, by GPU type.
    pub fits: BTreeMap<GpuType, BTreeMap<JobId, PastFit>>,
    /// Gradient noise as the latest job first reported it.
    pub early_noise: Option<NoiseScale>,
    /// Most GPUs any of them ran on.
    pub most_gpus: u32,
    /// The models a job that begins is valued by.
    pub curves: Curves,
}

/// Goodput tables without their entries, which follow from the models.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    /// The models by GPU type.
    pub models: BTreeMap<GpuType, GoodputModel>,
    /// GPUs on one node and on several that the tables go up to.
    pub sizes: (u32, u32),
}

impl Curves {
    pub(crate) fn of(curves: &JobCurves) -> Self {
        let models = curves.iter().map(|(gpu_type, curve)| (gpu_type.clone(), curve.model().clone()));
        // All were made at once.
        let sizes = curves.iter().next().map_or((0, 0), |(_, curve)| curve.sizes());
        Self { models: models.collect(), sizes }
    }

    pub(crate) fn tables(self) -> Arc<JobCurves> {
        let mut curves = JobCurves::default();
        curves.update(self.models, self.sizes.0, self.sizes.1);
        Arc::new(curves)
    }
}

/// A state no scheduler can have been in.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InvalidState {
    /// A job that contradicts itself or the rest.
    #[error("`{part}` of job {job:?} contradicts the rest of the saved state")]
    Job {
        /// The job.
        job: JobId,
        /// The part of its record.
        part: &'static str,
    },
    /// A job as no user could have submitted it.
    #[error("job {job:?} of the saved state: {refused}")]
    Spec {
        /// The job.
        job: JobId,
        /// Why it would have been refused.
        refused: Refused,
    },
    /// A node of a pool that is not there.
    #[error("node {0:?} of the saved state is of a pool that is not there")]
    Node(NodeId),
    /// Anything else.
    #[error("`{part}` of the saved state is nothing a scheduler could have written")]
    Part {
        /// The part.
        part: &'static str,
    },
    /// A state that no policy could be shown.
    #[error("the saved state makes no snapshot: {0}")]
    Snapshot(#[from] SnapshotError),
}

/// Counts that go up one by one are far below this.
const MOST: u64 = 1 << 53;
const MOST_STARTS: u32 = 1 << 31;

impl Scheduler {
    /// Everything it remembers. A scheduler restored from it goes on as this one: same inputs, same effects.
    pub fn state(&self) -> State {
        State {
            now: self.now,
            jobs: self.jobs.iter().map(|(id, job)| (*id, job.record())).collect(),
            ended: self.ended.clone(),
            unsettled: self.unsettled.clone(),
            nodes: self.ledger.records(),
            groups: self.groups.clone(),
            histories: self.histories.records(),
            speeds: self.speeds.0.clone(),
            rounds: self.rounds.clone(),
            fleet: self.fleet.clone(),
        }
    }

    /// Goes on where a scheduler stood. The config may be another one; it counts from now on.
    ///
    /// ```
    /// use pollux_core::{Config, Input, JobSpec, Scheduler};
    /// use pollux_model::{JobId, Timestamp};
    ///
    /// let mut scheduler = Scheduler::new(Config::default());
    /// scheduler.handle(Timestamp::ZERO, Input::JobSubmitted(JobId(1), JobSpec::default()))?;
    /// let restored = Scheduler::restore(Config::default(), scheduler.state())?;
    /// assert!(restored.job(JobId(1)).is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A state that contradicts itself, so that no scheduler was ever in it.
    pub fn restore(config: Config, state: State) -> Result<Self, InvalidState> {
        state.check()?;
        let State { now, jobs, ended, unsettled, nodes, groups, histories, speeds, rounds, fleet } = state;
        let jobs: BTreeMap<JobId, Job> = jobs.into_iter().map(|(id, job)| (id, Job::of(job))).collect();
        let mut ledger = Ledger::of(nodes);
        for (&job, record) in &jobs {
            if !ledger.has_room(&record.held) {
                return Err(InvalidState::Job { job, part: "held" });
            }
            ledger.hold(&record.held);
        }
        let active = jobs.iter().filter(|(_, job)| !job.has_ended()).map(|(id, _)| *id).collect();
        let (histories, speeds) = (Histories::of(histories), TypeSpeeds(speeds));
        let scheduler = Self {
            config,
            now,
            jobs,
            active,
            ended,
            unsettled,
            ledger,
            groups,
            histories,
            speeds,
            rounds,
            fleet,
        };
        // One that had a fault goes on with it, as it would have.
        if scheduler.rounds.fault.is_none() {
            scheduler.snapshot(now)?;
        }
        Ok(scheduler)
    }
}

impl State {
    fn check(&self) -> Result<(), InvalidState> {
        for (&job, record) in &self.jobs {
            record.spec.check().map_err(|refused| InvalidState::Spec { job, refused })?;
            let group = record.spec.group;
            let is_known = |group| self.groups.iter().any(|known| known.id == group);
            if !record.has_ended() && !group.is_none_or(is_known) {
                return Err(InvalidState::Job { job, part: "spec.group" });
            }
            if let Some(part) = record.flaw() {
                return Err(InvalidState::Job { job, part });
            }
            if self.ended.contains(job) {
                return Err(InvalidState::Part { part: "ended.forgotten" });
            }
        }
        for (node, record) in &self.nodes {
            if record.of_pool.is_some_and(|(pool, _)| !self.fleet.stocks.contains_key(&pool)) {
                return Err(InvalidState::Node(*node));
            }
        }
        let is_counted = |known: &Alone| known.goodput >= 0.0 && known.goodput.is_finite();
        let part = if !self.ended.is_sound() {
            "ended.forgotten"
        } else if !self.remembers_who_ended() {
            "ended.latest"
        } else if !self.unsettled.iter().all(|id| self.jobs.get(id).is_some_and(|job| !job.has_ended())) {
            "unsettled"
        } else if self.rounds.latest.0 > MOST {
            "rounds.latest"
        } else if self.rounds.awaited.is_some_and(|(awaited, _)| awaited != self.rounds.latest) {
            "rounds.awaited"
        } else if self.fleet.latest.0 > MOST {
            "fleet.latest"
        } else if let Some(part) = self.fleet.flaw() {
            part
        } else if !self.speeds.values().flat_map(BTreeMap::values).all(is_counted) {
            "speeds"
        } else {
            return Ok(());
        };
        Err(InvalidState::Part { part })
    }

    /// Whether those listed as ended are those who have ended.
    fn remembers_who_ended(&self) -> bool {
        let listed: BTreeSet<JobId> = self.ended.latest.iter().copied().collect();
        let ended = self.jobs.iter().filter(|(_, job)| job.has_ended()).map(|(id, _)| *id);
        listed.len() == self.ended.latest.len() && ended.eq(listed)
    }
}

impl JobRecord {
    fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    /// What of it no scheduler can have written, if anything.
    fn flaw(&self) -> Option<&'static str> {
        let is_amount = |number: f64| number >= 0.0 && number.is_finite();
        let is_there = self.held == self.wanted;
        let holds = match self.phase {
            Phase::Waiting => self.held.is_empty(),
            Phase::Starting | Phase::Running => !self.held.is_empty() && is_there,
            Phase::Stopping => !self.held.is_empty(),
            Phase::Ended(_) => self.held.is_empty() && self.wanted.is_empty(),
        };
        if !holds {
            Some("held")
        } else if !is_amount(self.attained) {
            Some("attained")
        } else if self.progress_at_failure.is_nan() || self.progress_at_failure < 0.0 {
            Some("progress_at_failure")
        } else if self.generation.0 > MOST_STARTS || self.lost_in > self.generation {
            Some("generation")
        } else {
            None
        }
    }
}
