//! Jobs, scheduler and policy on their way through a workload.

mod groups;
mod guided;
mod rented;
mod trouble;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use pollux_core::{Config, Effect, Generation, Input, JobSpec, PoolId};
use pollux_model::{Allocation, BatchLimits, GlobalBatch, GpuType, JobId, NodeId, Timestamp};
use pollux_policy::{AnyPolicy, GroupId, Request, Seed};

use super::SimulationError;
use super::fleet::Fleet;
use super::guide::{Guide, Milestone};
use super::job::{SimJob, Slowed};
use super::options::{Options, RestartCost};
use super::truth::{Foresight, fair_secs};
use crate::driver::{Broken, Driver, index_of, job_id};
use crate::faults::Befalls;
use crate::interference::slowed;
use crate::outcome::{JobOutcome, Run};
use crate::profile::Profile;
use crate::random;
use crate::workload::{Submission, Workload};
use trouble::{Starts, Trouble};

/// Rounds in which nobody runs and nothing else happens, after which nothing ever will.
const IDLE_ROUNDS: u32 = 10_000;

/// Jobs that the scheduler remembers after their end; nobody here asks it for one.
const REMEMBERED: usize = 16;

/// Something that is going to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Coming {
    Submission(usize),
    /// The job's restart is over.
    Training(usize, Generation),
    /// The job is to be looked at, unless it was in between.
    Wake(usize, u64),
    /// Something befalls a node.
    Node(NodeId, Befalls),
    Tick,
    /// A node of a pool is there, which was ordered then.
    Arrival(PoolId, Timestamp),
    /// A provider wants a node back.
    Reclaim(NodeId),
    /// A node that was wanted back is gone.
    Gone(NodeId),
}

/// A job of the workload.
struct Member {
    submission: Submission,
    profile: Arc<Profile>,
    limits: BatchLimits,
    restart: Duration,
    job: Option<SimJob>,
    allocation: Allocation,
    /// When it was given its GPUs, and when it begins to train on them.
    started: Timestamp,
    trains_from: Timestamp,
    /// Counts how often its next wake was set; older ones are void.
    wakes: u64,
    completed: Option<Timestamp>,
    given_up: bool,
    n_starts: u32,
    gpu_secs: f64,
    held_secs: f64,
    restart_secs: f64,
    starts: Starts,
    /// What its job had done when it was over, its useful GPU-seconds, and those it did again.
    done: f64,
    useful_gpu_secs: f64,
    redone_gpu_secs: f64,
    /// Its place in [`World::foresight`].
    foresight: Option<usize>,
}

impl Member {
    /// Keeps the figures of a job that is over; the job itself and its agent are needed no more.
    fn retire(&mut self) {
        if let Some(job) = self.job.take() {
            (self.done, self.useful_gpu_secs) = (job.progress(), job.useful_gpu_secs);
        }
    }
}

pub(super) struct World<'a> {
    options: &'a Options,
    profiles: &'a BTreeMap<String, Arc<Profile>>,
    guide: Option<&'a mut dyn Guide>,
    driver: Driver<'a>,
    members: Vec<Member>,
    coming: BinaryHeap<Reverse<(Timestamp, u64, Coming)>>,
    n_scheduled: u64,
    types: BTreeMap<NodeId, GpuType>,
    n_submitted: usize,
    n_open: usize,
    /// Jobs that hold GPUs.
    holders: BTreeSet<usize>,
    adapts: bool,
    /// What an oracle is told, by application and batch; [`Member::foresight`] is a place in it.
    foresight: Vec<Foresight>,
    trouble: Trouble,
    /// The groups of the workload's jobs.
    groups: BTreeMap<String, GroupId>,
    /// Nodes that are rented.
    fleet: Option<Fleet<'a>>,
}

impl<'a> World<'a> {
    pub(super) fn new(
        workload: &Workload,
        profiles: &'a BTreeMap<String, Arc<Profile>>,
        policy: &'a dyn AnyPolicy,
        options: &'a Options,
        guide: Option<&'a mut dyn Guide>,
    ) -> Result<Self, SimulationError> {
        if options.cloud.is_some() && options.faults.befalls_nodes() {
            return Err(SimulationError::FaultsOfRented);
        }
        let adapts = policy.about().adapts_batch;
        let members = workload.jobs.iter().map(|submission| member(submission, profiles, adapts, options));
        let mut members = members.collect::<Result<Vec<_>, _>>()?;
        for (index, member) in members.iter_mut().enumerate() {
            member.starts = Starts::new(options, index);
        }
        let cadence = policy.cadence().with_round(options.round);
        let default_cost = match options.restart {
            RestartCost::Fixed(cost) => cost,
            RestartCost::PerApplication => Duration::from_secs(30),
        };
        let config = Config {
            cadence,
            seed: Seed(options.seed),
            restart_cost: default_cost,
            history: options.history,
            remember_ended: REMEMBERED,
            scaler: options.cloud.as_ref().and_then(|cloud| cloud.scaler),
            ..Config::default()
        };
        let driver = match options.cloud {
            None => Driver::new(config, policy, &options.cluster, options.log)?,
            Some(_) => Driver::without_nodes(config, policy, options.log),
        };
        let nodes = (0..).map(NodeId).zip(options.cluster.nodes().filter(|_| options.cloud.is_none()));
        let mut world = Self {
            options,
            profiles,
            guide,
            driver,
            n_open: members.len(),
            members,
            coming: BinaryHeap::new(),
            n_scheduled: 0,
            types: nodes.map(|(node, spec)| (node, spec.gpu_type.clone())).collect(),
            n_submitted: 0,
            holders: BTreeSet::new(),
            adapts,
            foresight: Vec::new(),
            trouble: Trouble::new(options),
            groups: groups::numbered(workload),
            fleet: options.cloud.as_ref().map(|cloud| Fleet::new(cloud, options.seed)),
        };
        world.form_groups()?;
        world.rent()?;
        world.expect_trouble();
        if !adapts {
            world.foresee();
        }
        for index in 0..world.members.len() {
            let at = Timestamp::from_secs(world.members[index].submission.at_secs);
            world.schedule(at, Coming::Submission(index));
        }
        Ok(world)
    }

    fn schedule(&mut self, at: Timestamp, coming: Coming) {
        self.coming.push(Reverse((at, self.n_scheduled, coming)));
        self.n_scheduled += 1;
    }

    pub(super) fn run(mut self) -> Result<Run, SimulationError> {
        let mut idle_rounds = 0;
        while self.n_open > 0 {
            let Some(Reverse((now, _, coming))) = self.coming.pop() else { return Err(self.never_run()) };
            match coming {
                Coming::Submission(index) => self.submit(now, index)?,
                Coming::Training(index, generation) => self.training(now, index, generation)?,
                Coming::Wake(index, wake) => {
                    if self.members[index].wakes == wake {
                        self.wake(now, index)?;
                    }
                }
                Coming::Node(node, what) => self.befall(now, node, what)?,
                Coming::Tick => {
                    self.tell(now, Input::Tick)?;
                    self.check_hope(now)?;
                    let is_idle = self.holders.is_empty() && self.n_submitted == self.members.len();
                    idle_rounds = if is_idle { idle_rounds + 1 } else { 0 };
                    // Where nodes can still come, what is impossible now may not stay so.
                    let is_settled = self.trouble.is_over() && self.fleet.is_none();
                    let impossible = self.driver.impossible.len() == self.n_open && is_settled;
                    if is_idle && (impossible || idle_rounds > IDLE_ROUNDS) {
                        return Err(self.never_run());
                    }
                }
                Coming::Arrival(pool, ordered) => self.node_joins(now, pool, ordered)?,
                Coming::Reclaim(node) => {
                    if let Some(gone) = self.fleet.as_mut().and_then(|fleet| fleet.reclaim(now, node)) {
                        self.schedule(gone, Coming::Gone(node));
                        self.tell(now, Input::NodeReclaimed(node, gone))?;
                    }
                }
                Coming::Gone(node) => self.node_leaves(now, node)?,
            }
        }
        self.outcome()
    }

    fn never_run(&self) -> SimulationError {
        SimulationError::NeverRun(self.left())
    }

    /// The names of the jobs that are not done.
    fn left(&self) -> Vec<String> {
        let left = self.members.iter().filter(|member| member.completed.is_none() && !member.given_up);
        left.map(|member| member.submission.name.clone()).collect()
    }

    /// Tells the scheduler, and does what it asks for.
    fn tell(&mut self, now: Timestamp, input: Input) -> Result<(), SimulationError> {
        let (members, foresight) = (&self.members, &self.foresight);
        let oracles = |id: JobId| {
            let member = &members[index_of(id)];
            let known = &foresight[member.foresight?];
            let (epoch, progress) = member.job.as_ref().map_or((0, 0.0), |job| (job.epoch(), job.progress()));
            Some(known.oracle(&member.profile, epoch, progress, member.submission.work_scale()))
        };
        let mut asked = self.driver.tell(now, input, &oracles)?;
        asked.reverse();
        let mut moved = false;
        while let Some(effect) = asked.pop() {
            match effect {
                Effect::Stop { job, generation } => {
                    let said = self.leave(now, job, generation);
                    moved = true;
                    let mut more = self.driver.tell(now, said, &|_| None)?;
                    more.reverse();
                    asked.extend(more);
                }
                Effect::Start { job, generation, allocation } => {
                    self.start(now, index_of(job), generation, allocation);
                    moved = true;
                }
                Effect::WakeAt(at) => self.schedule(at, Coming::Tick),
                Effect::Grow { pool, nodes } => {
                    let ready = self.fleet.as_ref().map_or(Duration::ZERO, |fleet| fleet.ready_after(pool));
                    (0..nodes).for_each(|_| self.schedule(now + ready, Coming::Arrival(pool, now)));
                }
                Effect::Release { node } => self.schedule(now, Coming::Gone(node)),
                Effect::Solve { .. } | Effect::Size { .. } => {}
            }
        }
        if moved {
            self.spread_interference(now);
        }
        Ok(())
    }

    /// Computes what an oracle is told, once for each application and batch.
    fn foresee(&mut self) {
        let mut places: BTreeMap<(&str, u64), usize> = BTreeMap::new();
        for member in &mut self.members {
            let key = (member.submission.application.as_str(), member.submission.batch);
            member.foresight = places.get(&key).copied();
            if member.foresight.is_none()
                && let Some(gpu_type) = main_type(self.options, &member.profile)
            {
                let gpus_per_node = self.options.cluster.largest_node(&gpu_type);
                member.foresight = Some(self.foresight.len());
                places.insert(key, self.foresight.len());
                let known = Foresight::new(&member.profile, &member.limits, &gpu_type, gpus_per_node)
                    .by_type(&member.profile, &member.limits, &self.options.cluster);
                self.foresight.push(known);
            }
        }
    }

    fn submit(&mut self, now: Timestamp, index: usize) -> Result<(), SimulationError> {
        self.n_submitted += 1;
        if self.members[index].given_up {
            return Ok(());
        }
        let mut spec = spec(&self.members[index], self.options);
        self.misjudge(index, &mut spec);
        self.join_group(index, &mut spec);
        self.tell(now, Input::JobSubmitted(job_id(index), spec))
    }

    fn start(&mut self, now: Timestamp, index: usize, generation: Generation, allocation: Allocation) {
        let prior = self.driver.scheduler().prior(job_id(index));
        let noise = self.options.noise;
        let seed = self.options.seed;
        let member = &mut self.members[index];
        if member.job.is_none() {
            let chance = || (noise, random::numbered(seed, "measurements", index as u64));
            let noise = (noise > 0.0).then(chance);
            let scale = member.submission.work_scale();
            let job = SimJob::new(member.profile.clone(), scale, member.limits, prior, noise);
            let job = job.reporting(self.options.report_every).counting(self.options.agents_count);
            let job =
                job.with_network(rented::network(self.options)).with_blind_batch(self.options.blind_batch);
            member.job = Some(trouble::saving(job, &self.options.faults));
        }
        member.starts.next();
        member.allocation = allocation;
        member.n_starts += 1;
        member.started = now;
        member.trains_from = now + member.restart;
        let at = member.trains_from;
        self.holders.insert(index);
        self.schedule(at, Coming::Training(index, generation));
    }

    /// The job leaves its GPUs.
    fn stop(&mut self, now: Timestamp, index: usize) {
        let member = &mut self.members[index];
        if let Some(job) = &mut member.job {
            job.stop(now);
        }
        let held = (now - member.started).as_secs_f64();
        member.held_secs += held;
        member.gpu_secs += held * member.allocation.gpus();
        member.restart_secs += (now.min(member.trains_from) - member.started).as_secs_f64();
        member.allocation = Allocation::none();
        member.wakes += 1;
        self.holders.remove(&index);
    }

    fn training(
        &mut self,
        now: Timestamp,
        index: usize,
        generation: Generation,
    ) -> Result<(), SimulationError> {
        let member = &mut self.members[index];
        if member.allocation.is_empty() || self.driver.generation(job_id(index)) != generation {
            return Ok(());
        }
        if member.starts.latest_fails {
            return self.fail(now, index, generation);
        }
        let gpu_type = member.allocation.iter().next().and_then(|(node, _)| self.types.get(&node)).cloned();
        let begun =
            member.job.as_mut().zip(gpu_type).zip(member.allocation.placement()).and_then(
                |((job, gpu_type), placement)| job.begin(now, &gpu_type, placement, Slowed::default()),
            );
        let Some((batch, efficiency)) = begun else {
            return Err(SimulationError::NoSuchBatch {
                job: member.submission.name.clone(),
                application: member.submission.application.clone(),
                batch: member.submission.batch,
            });
        };
        self.tell(now, Input::JobTraining(job_id(index), generation))?;
        self.driver.note_batch(now, job_id(index), batch, efficiency);
        self.spread_interference(now);
        self.set_wake(index);
        Ok(())
    }

    fn set_wake(&mut self, index: usize) {
        let member = &mut self.members[index];
        member.wakes += 1;
        let (wake, at) = (member.wakes, member.job.as_ref().and_then(SimJob::next_wake));
        if let Some(at) = at {
            self.schedule(at, Coming::Wake(index, wake));
        }
    }

    fn wake(&mut self, now: Timestamp, index: usize) -> Result<(), SimulationError> {
        let Some(job) = &mut self.members[index].job else { return Ok(()) };
        let said = job.wake(now);
        let id = job_id(index);
        if said.finished {
            self.members[index].completed = Some(now);
            self.n_open -= 1;
            self.stop(now, index);
            let member = &mut self.members[index];
            let needed = member.profile.training().work();
            member.redone_gpu_secs = trouble::redone(index, member.job.as_ref(), needed)?;
            member.retire();
            let generation = self.driver.generation(id);
            self.tell(now, Input::JobFinished(id, generation))?;
            self.spread_interference(now);
            return self.ask_guide(now, index, Milestone::Done);
        }
        if let Some((batch, efficiency)) = said.batch {
            self.driver.note_batch(now, id, batch, efficiency);
        }
        if let Some(report) = said.report {
            self.tell(now, Input::JobReported(id, report))?;
        }
        self.set_wake(index);
        match said.epochs {
            Some(n_epochs) => self.ask_guide(now, index, Milestone::Epochs(n_epochs)),
            None => Ok(()),
        }
    }

    /// Distributed jobs that share a node slow each other down, and a slow node all that are on it.
    fn spread_interference(&mut self, now: Timestamp) {
        if self.options.interference <= 0.0 && !self.options.faults.has_stragglers() {
            return;
        }
        let slowed = slowed(self.holders.iter().map(|&index| &self.members[index].allocation));
        let holders: Vec<usize> = self.holders.iter().copied().collect();
        for (index, is_slowed) in holders.into_iter().zip(slowed) {
            let by_others = if is_slowed { self.options.interference } else { 0.0 };
            let by_node = self.slowed_by_node(&self.members[index].allocation);
            let by = Slowed { by_others, by_node };
            if let Some(job) = &mut self.members[index].job
                && job.set_slowed(now, by)
            {
                self.set_wake(index);
            }
        }
    }

    fn outcome(self) -> Result<Run, SimulationError> {
        let mut jobs = Vec::with_capacity(self.members.len());
        for (index, member) in self.members.iter().enumerate() {
            let done = member.done;
            let needed = member.profile.training().work();
            if !member.given_up && (done - needed).abs() > 1e-9 * needed {
                return Err(Broken::WrongWork { job: index as u64, done, needed }.into());
            }
            jobs.push(JobOutcome {
                name: member.submission.name.clone(),
                application: member.submission.application.clone(),
                submitted: Timestamp::from_secs(member.submission.at_secs),
                completed: member.completed,
                restarts: member.n_starts.saturating_sub(1),
                gpu_secs: member.gpu_secs,
                useful_gpu_secs: member.useful_gpu_secs,
                held_secs: member.held_secs,
                restart_secs: member.restart_secs,
                failures: member.starts.n_failures,
                redone_gpu_secs: member.redone_gpu_secs,
                rho: None,
            });
        }
        let gpus = self.options.cluster.gpus();
        let mut run = Run { jobs, gpus, rounds: self.driver.rounds, log: self.driver.log };
        if let Some(fleet) = self.fleet {
            let end = run.jobs.iter().filter_map(|job| job.completed).max();
            run.log.bill = fleet.close(end.unwrap_or_default());
        }
        // Fairness is judged by the company that jobs kept until they were done.
        if self.members.iter().any(|member| member.given_up) {
            return Ok(run);
        }
        let mut known = BTreeMap::new();
        let (members, options, adapts) = (&self.members, self.options, self.adapts);
        run.judge_fairness(|index, gpus| {
            let member = &members[index];
            let batch = if adapts { 0 } else { member.submission.batch };
            let key = (member.submission.application.as_str(), batch, gpus);
            let alone: &mut Option<f64> = known.entry(key).or_insert_with(|| {
                let network = rented::network(options);
                fair_secs(&member.profile, member.limits, &options.cluster, gpus, member.restart, network)
            });
            // More work of the same kind takes that much longer; there is one restart all the same.
            let restart = member.restart.as_secs_f64();
            alone.map(|secs| match member.submission.work {
                Some(scale) => restart + (secs - restart) * scale,
                None => secs,
            })
        });
        Ok(run)
    }
}

fn member(
    submission: &Submission,
    profiles: &BTreeMap<String, Arc<Profile>>,
    adapts: bool,
    options: &Options,
) -> Result<Member, SimulationError> {
    let (job, application) = (submission.name.clone(), submission.application.clone());
    let Some(profile) = profiles.get(&application) else {
        let known = profiles.keys().cloned().collect();
        return Err(SimulationError::NoProfile { job, application, known });
    };
    if main_type(options, profile).is_none() {
        let types = options.cluster.gpu_types().iter().map(ToString::to_string).collect();
        return Err(SimulationError::NoStepTimes { job, application, types });
    }
    let limits = profile.limits_among(&options.cluster.gpu_types());
    let batch = submission.batch;
    let limits = if adapts { Some(limits) } else { limits.within(GlobalBatch(batch), GlobalBatch(batch)) };
    let limits = limits.ok_or(SimulationError::NoSuchBatch { job, application, batch })?;
    let restart = match options.restart {
        RestartCost::Fixed(cost) => cost,
        RestartCost::PerApplication => Duration::from_secs_f64(profile.restart_secs()),
    };
    Ok(Member {
        submission: submission.clone(),
        profile: profile.clone(),
        limits,
        restart,
        job: None,
        allocation: Allocation::none(),
        started: Timestamp::ZERO,
        trains_from: Timestamp::ZERO,
        wakes: 0,
        completed: None,
        given_up: false,
        n_starts: 0,
        gpu_secs: 0.0,
        held_secs: 0.0,
        restart_secs: 0.0,
        starts: Starts::default(),
        done: 0.0,
        useful_gpu_secs: 0.0,
        redone_gpu_secs: 0.0,
        foresight: None,
    })
}

/// What the scheduler is told of a job.
fn spec(member: &Member, options: &Options) -> JobSpec {
    let (profile, submission) = (&member.profile, &member.submission);
    let in_cluster = options.cluster.gpu_types();
    let types: BTreeSet<GpuType> =
        profile.gpu_types().filter(|known| in_cluster.contains(known)).cloned().collect();
    let most = types.iter().map(|gpu_type| profile.max_gpus(gpu_type)).max().unwrap_or(1);
    let most = most.min(member.limits.max_replicas()).max(1);
    JobSpec {
        application: Some(submission.application.as_str().into()),
        weight: options.weights.get(&submission.application).copied().unwrap_or(1.0),
        max_gpus: Some(most),
        types: if types.len() == in_cluster.len() { BTreeSet::new() } else { types },
        request: Some(Request { gpus: submission.gpus }),
        adapts: true,
        work: Some(profile.training().work() * submission.work_scale() * profile.limits().initial().0 as f64),
        ..JobSpec::default()
    }
}

/// The GPU type the application was measured on that the cluster has most of.
fn main_type(options: &Options, profile: &Profile) -> Option<GpuType> {
    let types = options.cluster.gpu_types().into_iter();
    let known = types.filter(|gpu_type| profile.step_times(gpu_type).is_some());
    known.max_by_key(|gpu_type| options.cluster.gpus_of(gpu_type))
}
