//! The state machine.

use std::collections::{BTreeMap, BTreeSet};

use pollux_model::fit::History;
use pollux_model::{AgentReport, Allocation, GpuType, JobId, NodeId, Timestamp};
use pollux_policy::{Certificate, Cluster, Group, Node, NodeState, Snapshot, SnapshotError};

use crate::config::Config;
use crate::effect::{CycleId, Effect, Generation};
use crate::ended::Ended;
use crate::history::Histories;
use crate::input::{Input, JobEdit, JobSpec, NodeSpec, Refused};
use crate::job::{Job, JobView, Outcome, Phase, models};
use crate::ledger::Ledger;
use crate::rounds::Rounds;
use crate::scaler::{Fleet, PoolId};
use crate::speeds::{Teacher, TypeSpeeds};

/// The scheduler: inputs in, effects out.
///
/// A plan is carried out in two phases. Jobs that are to leave GPUs are asked to at once; a job starts when all its
/// GPUs have no holder. So no GPU is given twice, whatever order the world answers in.
///
/// ```
/// use pollux_core::{Config, Effect, Input, JobSpec, NodeSpec, Scheduler};
/// use pollux_model::{GpuType, JobId, NodeId, Timestamp};
/// use pollux_policy::{AnyPolicy, Fifo, Terms};
///
/// let mut scheduler = Scheduler::new(Config::default());
/// let minute = Timestamp::from_secs(60);
/// let node = NodeSpec { gpu_type: GpuType::new("t4"), gpus: 4 };
/// scheduler.handle(Timestamp::ZERO, Input::NodeJoined(NodeId(0), node)).unwrap();
/// scheduler.handle(Timestamp::ZERO, Input::JobSubmitted(JobId(1), JobSpec::default())).unwrap();
///
/// let effects = scheduler.handle(minute, Input::Tick).unwrap();
/// let Effect::Solve { cycle, snapshot, seed } = &effects[0] else { panic!() };
/// let plan = AnyPolicy::plan(&Fifo, snapshot, &Terms { seed: *seed, ..Terms::default() });
/// let effects = scheduler.handle(minute, Input::PlanReady(*cycle, plan)).unwrap();
/// assert!(matches!(effects[0], Effect::Start { job: JobId(1), .. }));
/// ```
#[derive(Debug)]
pub struct Scheduler {
    pub(crate) config: Config,
    pub(crate) now: Timestamp,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    /// Jobs that have not ended.
    pub(crate) active: BTreeSet<JobId>,
    pub(crate) ended: Ended,
    /// Jobs that are to hold something else than they do.
    pub(crate) unsettled: BTreeSet<JobId>,
    pub(crate) ledger: Ledger,
    pub(crate) groups: Vec<Group>,
    pub(crate) histories: Histories,
    pub(crate) speeds: TypeSpeeds,
    pub(crate) rounds: Rounds,
    pub(crate) fleet: Fleet,
}

pub(crate) type Effects = Result<Vec<Effect>, Refused>;

impl Scheduler {
    /// Without nodes and jobs.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            now: Timestamp::ZERO,
            jobs: BTreeMap::new(),
            active: BTreeSet::new(),
            ended: Ended::default(),
            unsettled: BTreeSet::new(),
            ledger: Ledger::default(),
            groups: Vec::new(),
            histories: Histories::default(),
            speeds: TypeSpeeds::default(),
            rounds: Rounds::default(),
            fleet: Fleet::default(),
        }
    }

    /// Takes in what happened and says what is to be done. What is refused changed nothing.
    pub fn handle(&mut self, now: Timestamp, input: Input) -> Effects {
        // Clocks are set back now and then; nothing here goes back with them.
        let now = self.now.max(now);
        let mut effects = match input {
            Input::JobSubmitted(id, spec) => self.submit(now, id, spec),
            Input::JobEdited(id, edit) => self.edit(now, id, &edit),
            Input::JobCancelled(id) => self.cancel(now, id),
            Input::JobReported(id, report) => self.report(id, report),
            Input::JobTraining(id, generation) => self.training(now, id, generation),
            Input::JobStopped(id, generation) => self.stopped(now, id, generation),
            Input::JobFinished(id, generation) => self.finished(now, id, generation),
            Input::JobFailed(id, generation) => self.failed(now, id, generation),
            Input::JobGivenUp(id, generation) => self.given_up(now, id, generation),
            Input::NodeJoined(node, spec) => self.join(now, node, spec, None),
            Input::NodeStateSet(node, state) => {
                self.known_node(node)?;
                self.ledger.set_state(node, state);
                self.withdraw();
                Ok(self.happened(now))
            }
            Input::NodeUsedByOthers(node, gpus) => {
                self.known_node(node)?;
                self.ledger.set_others(node, gpus);
                self.withdraw();
                Ok(self.after_release(now))
            }
            Input::NodeLost(node) => self.lose(now, node),
            Input::PoolsSet(pools) => self.set_pools(now, pools),
            Input::PoolNodeJoined(node, pool) => self.join_pool(now, node, pool),
            Input::GrowFailed(pool, nodes) => self.grow_failed(now, pool, nodes),
            Input::NodeReclaimed(node, deadline) => self.reclaim(now, node, deadline),
            Input::SizeReady(id, sizes) => self.resize(id, &sizes),
            Input::GroupsSet(groups) => self.set_groups(now, groups),
            Input::PlanReady(cycle, plan) => self.carry_out(now, cycle, plan),
            Input::Tick => Ok(self.tick(now)),
            Input::ShellRestarted => Ok(self.ask_anew(now)),
        }?;
        self.now = now;
        effects.extend(self.tend(now));
        Ok(effects)
    }

    /// A job, ended ones included as long as they are remembered ([`Config::remember_ended`]).
    pub fn job(&self, id: JobId) -> Option<JobView<'_>> {
        self.jobs.get(&id).map(|job| job.view(self.now))
    }

    /// Jobs that have not ended.
    pub fn active(&self) -> impl Iterator<Item = (JobId, JobView<'_>)> {
        self.active.iter().map(|id| (*id, self.jobs[id].view(self.now)))
    }

    /// What a policy would be shown now: for questions that change nothing.
    pub fn preview(&self, now: Timestamp) -> Result<Snapshot, SnapshotError> {
        Ok(self.snapshot(self.now.max(now))?.carrying(self.rounds.carried.clone()))
    }

    /// How it goes about its rounds.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Goes about its rounds otherwise from now on. A shell does so when it begins anew, before it says so.
    pub fn reconfigure(&mut self, config: Config) {
        self.config = config;
    }

    /// The groups of jobs.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The latest round; 0 before the first.
    pub fn latest_round(&self) -> CycleId {
        self.rounds.latest
    }

    /// How good the latest plan is, if its policy says so.
    pub fn certificate(&self) -> Option<&Certificate> {
        self.rounds.certificate.as_ref()
    }

    /// Why the latest round could not be shown to a policy. Nothing but a mistake in the scheduler leads there: a
    /// shell should say so loudly, for jobs stay as they are until it is mended.
    pub fn fault(&self) -> Option<&SnapshotError> {
        self.rounds.fault.as_ref()
    }

    /// What other jobs of its application taught, as a prior for this job's own fits; empty unless asked for in
    /// [`Config::history`].
    pub fn prior(&self, id: JobId) -> BTreeMap<GpuType, History> {
        let application = self.jobs.get(&id).and_then(|job| job.spec.application.as_deref());
        match application {
            Some(application) if self.config.history => self.histories.prior(application, id),
            _ => BTreeMap::new(),
        }
    }

    /// GPUs of a node that have a holder.
    pub fn held_on(&self, node: NodeId) -> Option<u32> {
        self.ledger.held_on(node)
    }

    fn live(&mut self, id: JobId) -> Result<&mut Job, Refused> {
        let unknown = if self.ended.contains(id) { Refused::Ended(id) } else { Refused::UnknownJob(id) };
        let job = self.jobs.get_mut(&id).ok_or(unknown)?;
        if job.has_ended() { Err(Refused::Ended(id)) } else { Ok(job) }
    }

    pub(crate) fn known_node(&self, node: NodeId) -> Result<(), Refused> {
        if self.ledger.contains(node) { Ok(()) } else { Err(Refused::UnknownNode(node)) }
    }
}

/// What users and agents say.
impl Scheduler {
    fn submit(&mut self, now: Timestamp, id: JobId, spec: JobSpec) -> Effects {
        spec.check()?;
        if self.jobs.contains_key(&id) || self.ended.contains(id) {
            return Err(Refused::KnownJob(id));
        }
        if let Some(group) = spec.group
            && !self.groups.iter().any(|known| known.id == group)
        {
            return Err(Refused::Cluster(SnapshotError::UnknownGroup(group)));
        }
        self.jobs.insert(id, Job::new(spec, now));
        self.active.insert(id);
        Ok(self.happened(now))
    }

    fn edit(&mut self, now: Timestamp, id: JobId, edit: &JobEdit) -> Effects {
        let job = self.live(id)?;
        let mut spec = job.spec.clone();
        spec.priority = edit.priority.unwrap_or(spec.priority);
        spec.weight = edit.weight.unwrap_or(spec.weight);
        spec.min_gpus = edit.min_gpus.unwrap_or(spec.min_gpus);
        spec.max_gpus = edit.max_gpus.unwrap_or(spec.max_gpus);
        spec.check()?;
        if edit.suspended == Some(true) && !job.held.is_empty() && !job.can_come_back() {
            return Err(Refused::CannotComeBack(id));
        }
        job.spec = spec;
        job.suspended = edit.suspended.unwrap_or(job.suspended);
        if job.suspended {
            job.wanted = Allocation::none();
        }
        self.withdraw();
        let mut effects: Vec<Effect> = self.ask_to_leave(now, id).into_iter().collect();
        effects.extend(self.after_release(now));
        Ok(effects)
    }

    fn cancel(&mut self, now: Timestamp, id: JobId) -> Effects {
        let job = self.live(id)?;
        job.cancelled = true;
        job.wanted = Allocation::none();
        let mut effects: Vec<Effect> = self.ask_to_leave(now, id).into_iter().collect();
        if self.jobs[&id].phase == Phase::Waiting {
            self.end(id, Outcome::Cancelled);
        }
        effects.extend(self.after_release(now));
        Ok(effects)
    }

    fn report(&mut self, id: JobId, report: AgentReport) -> Effects {
        let sizes = self.sizes();
        let history = self.config.history;
        let job = self.live(id)?;
        let is_first = job.report.is_none();
        if let Some(application) = job.spec.application.clone().filter(|_| history) {
            self.histories.learn(&application, id, &report, is_first, sizes);
        }
        let mut models = models(&report);
        // With one type alone there is nothing to compare.
        if self.ledger.gpu_types().len() > 1 {
            let application = self.live(id)?.spec.application.clone();
            let teacher = application.map_or(Teacher::Job(id), Teacher::Application);
            self.speeds.learn(&teacher, &report);
            self.speeds.fill(&teacher, &mut models);
        }
        self.live(id)?.learn(report, models, sizes);
        Ok(Vec::new())
    }
}

/// What becomes of jobs.
impl Scheduler {
    fn training(&mut self, now: Timestamp, id: JobId, generation: Generation) -> Effects {
        let job = self.live(id)?;
        if job.generation == generation && job.phase == Phase::Starting {
            job.phase = Phase::Running;
            job.has_trained = true;
            job.clock.training(now);
        }
        Ok(Vec::new())
    }

    fn stopped(&mut self, now: Timestamp, id: JobId, generation: Generation) -> Effects {
        if self.gone(now, id, generation)?.is_none() {
            return Ok(Vec::new());
        }
        self.go_on(id);
        let mut effects = self.start_waiting(now);
        // Who goes where a plan sent it is no news.
        if self.jobs.get(&id).is_none_or(|job| job.wanted.is_empty()) {
            effects.extend(self.happened(now));
        }
        Ok(effects)
    }

    fn finished(&mut self, now: Timestamp, id: JobId, generation: Generation) -> Effects {
        let job = self.live(id)?;
        // The word may come after the loss of its last node; a job that is done is not started again.
        let is_late = job.phase == Phase::Waiting && job.generation == generation && generation.0 > 0;
        if self.gone(now, id, generation)?.is_none() && !is_late {
            return Ok(Vec::new());
        }
        self.end(id, Outcome::Finished);
        Ok(self.after_release(now))
    }

    fn failed(&mut self, now: Timestamp, id: JobId, generation: Generation) -> Effects {
        let Some(was) = self.gone(now, id, generation)? else { return Ok(Vec::new()) };
        let mut effects = Vec::new();
        if was == Phase::Stopping {
            self.fail_to_leave(id);
        } else {
            effects.extend(self.fail(now, id, was));
        }
        effects.extend(self.after_release(now));
        Ok(effects)
    }

    fn given_up(&mut self, now: Timestamp, id: JobId, generation: Generation) -> Effects {
        if self.gone(now, id, generation)?.is_none() {
            return Ok(Vec::new());
        }
        let outcome = if self.jobs[&id].cancelled { Outcome::Cancelled } else { Outcome::Failed };
        self.end(id, outcome);
        Ok(self.after_release(now))
    }

    /// A job that has left its GPUs goes on elsewhere if its user still wants it and it can begin again.
    fn go_on(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        if job.cancelled {
            self.end(id, Outcome::Cancelled);
        } else if !job.may_begin_again() {
            self.end(id, Outcome::Failed);
        }
    }

    /// A job died that was to leave: it has left, and goes where it was to go. Unless it died of a lost node that is a
    /// failure like any other: who can never save makes no progress, and must not be tried for ever.
    fn fail_to_leave(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let is_its_own = job.lost_in != job.generation && !job.cancelled;
        if is_its_own && job.count_failure() {
            self.end(id, Outcome::Failed);
        } else {
            self.go_on(id);
        }
    }

    /// Counts a failure: the job waits a while, or is given up. A start that never trained lost nothing.
    fn fail(&mut self, now: Timestamp, id: JobId, was: Phase) -> Option<Effect> {
        let config = self.config;
        let job = self.jobs.get_mut(&id)?;
        let is_worth_it = if was == Phase::Starting { job.may_begin_again() } else { job.can_come_back() };
        if job.count_failure() || !is_worth_it {
            self.end(id, Outcome::Failed);
            return None;
        }
        job.wanted = Allocation::none();
        job.not_before = now + config.back_off_after(job.failures);
        // Who is asked at fixed times alone need not be woken in between.
        config.cadence.on_events.map(|_| Effect::WakeAt(job.not_before))
    }

    /// All processes of a start are gone: its GPUs are free. Says where the job was in its life; nothing if it was
    /// another start.
    fn gone(&mut self, now: Timestamp, id: JobId, generation: Generation) -> Result<Option<Phase>, Refused> {
        let job = self.live(id)?;
        if job.generation != generation || job.phase == Phase::Waiting {
            return Ok(None);
        }
        let was = job.phase;
        if was != Phase::Stopping {
            // It left unasked; the next plan says where it goes on.
            job.wanted = Allocation::none();
        }
        job.settle(now);
        job.clock.stopped(now);
        job.phase = Phase::Waiting;
        let held = std::mem::take(&mut job.held);
        self.ledger.release(&held);
        Ok(Some(was))
    }

    fn end(&mut self, id: JobId, outcome: Outcome) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.phase = Phase::Ended(outcome);
            job.wanted = Allocation::none();
            job.curves = std::sync::Arc::default();
            for forgotten in self.ended.insert(id, self.config.remember_ended) {
                self.jobs.remove(&forgotten);
            }
        }
        self.active.remove(&id);
        self.unsettled.remove(&id);
    }

    fn after_release(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = self.start_waiting(now);
        effects.extend(self.happened(now));
        effects
    }
}

/// What becomes of nodes and groups.
impl Scheduler {
    pub(crate) fn join(
        &mut self,
        now: Timestamp,
        node: NodeId,
        spec: NodeSpec,
        pool: Option<PoolId>,
    ) -> Effects {
        if self.ledger.contains(node) {
            return Err(Refused::KnownNode(node));
        }
        let NodeSpec { gpu_type, gpus } = spec.clone();
        let shown = Node { id: node, gpu_type, gpus, others: 0, state: NodeState::Ready };
        Snapshot::<()>::new(Cluster { nodes: vec![shown], ..Cluster::default() }, Vec::new())?;
        self.ledger.join(node, spec, pool.map(|pool| (pool, now)));
        Ok(self.happened(now))
    }

    /// What ran there is gone. The rest of a job that was spread is asked to leave.
    fn lose(&mut self, now: Timestamp, node: NodeId) -> Effects {
        self.known_node(node)?;
        self.ledger.lose(node);
        let mut effects = Vec::new();
        for id in self.active.clone() {
            let held_there = |job: &&mut Job| job.held.on(node).is_some();
            let Some(job) = self.jobs.get_mut(&id).filter(held_there) else { continue };
            job.settle(now);
            job.lost_in = job.generation;
            let rest = job.held.iter().filter(|(held, _)| *held != node);
            job.held = Allocation::whole(rest.map(|(node, share)| (node, share.n_replicas())));
            if job.phase != Phase::Stopping {
                job.wanted = Allocation::none();
            }
            if job.held.is_empty() {
                let generation = job.generation;
                self.gone(now, id, generation)?;
                self.go_on(id);
            } else {
                effects.extend(self.ask_to_leave(now, id));
            }
        }
        self.withdraw();
        effects.extend(self.after_release(now));
        Ok(effects)
    }

    fn set_groups(&mut self, now: Timestamp, groups: Vec<Group>) -> Effects {
        let used = self.active.iter().filter_map(|id| self.jobs[id].spec.group);
        for group in used {
            if !groups.iter().any(|known| known.id == group) {
                return Err(Refused::Cluster(SnapshotError::UnknownGroup(group)));
            }
        }
        let cluster = Cluster { groups, ..Cluster::default() };
        let checked = Snapshot::<()>::new(cluster, Vec::new())?;
        self.groups.clone_from(&checked.cluster().groups);
        Ok(self.happened(now))
    }
}
