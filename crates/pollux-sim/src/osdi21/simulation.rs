//! The artifact's loop: turns of a minute around the scheduler.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pollux_core::{Config, Effect, Input, JobSpec};
use pollux_model::{Allocation, GpuType, JobId, Timestamp};
use pollux_policy::{AnyPolicy, Cadence, Oracle, Request, Seed};

use super::agent::{ArtifactAgent, plain_report};
use super::batch::{BatchRule, FixedBatch, LocalBatch};
use super::job::{Job, JobError, Observation, RESTART_SECS};
use super::progress;
use super::{Application, Limits};
use crate::cluster::ClusterShape;
use crate::driver::{Broken, Driver, index_of, job_id};
use crate::interference::slowed;
use crate::log::Kept;
use crate::outcome::{JobOutcome, Run};
use crate::workload::{Submission, Workload};

/// Most GPUs of a job.
const MOST_GPUS: u32 = 64;
/// GPUs of a node: placements are digits.
const GPUS_PER_NODE: u32 = 4;
/// Turns in which nobody runs, after which nobody ever will.
const IDLE_TURNS: u32 = 10_000;

/// Changes of efficiency that the log tells of.
const NOTED: f64 = 0.005;

/// What can be chosen about the artifact's world.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster: nodes of at most 4 GPUs, all of one type.
    pub cluster: ClusterShape,
    /// Seconds of a turn.
    pub turn_secs: u64,
    /// The part of its speed that a distributed job loses beside another.
    pub interference: f64,
    /// Whether Optimus' oracle counts what is left from the beginning of an epoch, not from its end (B5).
    pub repaired: bool,
    /// Whether new jobs build on what earlier ones of their application learned. Beyond the artifact.
    pub history: bool,
    /// What is kept of what happens.
    pub log: Kept,
    /// The seed of all rounds.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cluster: ClusterShape::default(),
            turn_secs: 60,
            interference: 0.0,
            repaired: false,
            history: false,
            log: Kept::default(),
            seed: 0,
        }
    }
}

/// A run that cannot be had.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimulationError {
    /// The artifact's placements have a digit for each node.
    #[error("the artifact's traces know nodes of up to 4 GPUs of one type; `{0}` is another cluster")]
    Cluster(String),
    /// No traces for a job's application.
    #[error("no traces of application `{0}`")]
    NoTraces(String),
    /// A job with work of its own.
    #[error(
        "{0}: in the artifact's world all jobs of an application have the same work; leave out column `work`"
    )]
    Scaled(String),
    /// The traces do not tell how a job goes on.
    #[error("{job}: {why}")]
    Job {
        /// Which job.
        job: String,
        /// Why not.
        why: JobError,
    },
    /// Jobs that no plan ever gives anything.
    #[error("these jobs never run: {}", .0.join(", "))]
    NeverRun(Vec<String>),
    /// A law of the simulation was broken.
    #[error("this is a mistake in the simulator: {0}")]
    Broken(#[from] Broken),
}

/// How a job's batch is chosen: by its agent, or by its user.
enum Rule {
    Agent(Box<ArtifactAgent>),
    Fixed(FixedBatch),
}

impl Rule {
    /// Most GPUs that have a batch each.
    fn most_gpus(&self, limits: &Limits) -> u32 {
        let most = match self {
            Self::Agent(agent) if agent.is_pinned() => 1,
            Self::Agent(_) => limits.max_replicas(),
            Self::Fixed(fixed) => fixed.target / limits.min_local,
        };
        most.clamp(1, MOST_GPUS)
    }
}

impl BatchRule for Rule {
    fn observe(&mut self, observation: &Observation) {
        match self {
            Self::Agent(agent) => agent.observe(observation),
            Self::Fixed(fixed) => fixed.observe(observation),
        }
    }

    fn choose(&mut self, n_nodes: u32, n_replicas: u32, limits: &Limits) -> LocalBatch {
        match self {
            Self::Agent(agent) => agent.choose(n_nodes, n_replicas, limits),
            Self::Fixed(fixed) => fixed.choose(n_nodes, n_replicas, limits),
        }
    }
}

struct SimJob<'a> {
    submission: &'a Submission,
    application: Arc<Application>,
    job: Job,
    rule: Rule,
    allocation: Allocation,
    started: u64,
    held_secs: u64,
    batch: u32,
    efficiency: f64,
    oracle_steps: Option<Arc<[f64]>>,
    has_reported: bool,
}

/// Runs a workload in the artifact's world.
pub fn simulate(
    workload: &Workload,
    applications: &BTreeMap<String, Arc<Application>>,
    policy: &dyn AnyPolicy,
    options: &Options,
) -> Result<Run, SimulationError> {
    let mut simulation = Simulation::new(workload, applications, policy, options)?;
    simulation.run()?;
    simulation.outcome()
}

struct Simulation<'a> {
    options: &'a Options,
    gpu_type: GpuType,
    driver: Driver<'a>,
    jobs: Vec<SimJob<'a>>,
    now: u64,
    n_submitted: usize,
    adapts: bool,
}

impl<'a> Simulation<'a> {
    fn new(
        workload: &'a Workload,
        applications: &BTreeMap<String, Arc<Application>>,
        policy: &'a dyn AnyPolicy,
        options: &'a Options,
    ) -> Result<Self, SimulationError> {
        let types = options.cluster.gpu_types();
        let [gpu_type] = &types[..] else {
            return Err(SimulationError::Cluster(options.cluster.to_string()));
        };
        if options.cluster.largest_node(gpu_type) > GPUS_PER_NODE {
            return Err(SimulationError::Cluster(options.cluster.to_string()));
        }
        if let Some(scaled) = workload.jobs.iter().find(|job| job.work.is_some()) {
            return Err(SimulationError::Scaled(scaled.name.clone()));
        }
        let adapts = policy.about().adapts_batch;
        let job = |submission: &'a Submission| {
            let application = applications.get(&submission.application);
            let application =
                application.ok_or_else(|| SimulationError::NoTraces(submission.application.clone()))?.clone();
            Ok(SimJob {
                submission,
                job: Job::new(application.clone()),
                rule: rule(adapts, application.limits(), submission),
                application,
                allocation: Allocation::none(),
                started: 0,
                held_secs: 0,
                batch: 0,
                efficiency: 0.0,
                oracle_steps: None,
                has_reported: false,
            })
        };
        let jobs = workload.jobs.iter().map(job).collect::<Result<Vec<_>, SimulationError>>()?;
        let config = Config {
            cadence: Cadence { every: Duration::from_secs(options.turn_secs), on_events: None },
            seed: Seed(options.seed),
            restart_cost: Duration::from_secs(RESTART_SECS),
            history: options.history,
            ..Config::default()
        };
        let driver = Driver::new(config, policy, &options.cluster, options.log)?;
        Ok(Self { options, gpu_type: gpu_type.clone(), driver, jobs, now: 0, n_submitted: 0, adapts })
    }

    fn run(&mut self) -> Result<(), SimulationError> {
        let mut idle_turns = 0;
        while self.jobs.iter().any(|job| job.job.completed_at_secs().is_none()) {
            self.advance()?;
            self.turn()?;
            let everybody_is_here = self.n_submitted == self.jobs.len();
            idle_turns = if self.driver.anybody_runs || !everybody_is_here { 0 } else { idle_turns + 1 };
            let n_left = self.jobs.iter().filter(|job| job.job.completed_at_secs().is_none()).count();
            let all_impossible = everybody_is_here && self.driver.impossible.len() == n_left && n_left > 0;
            if idle_turns > IDLE_TURNS || all_impossible {
                let left = self.jobs.iter().filter(|job| job.job.completed_at_secs().is_none());
                let names = left.map(|job| job.submission.name.clone()).collect();
                return Err(SimulationError::NeverRun(names));
            }
        }
        Ok(())
    }

    /// Lets a turn pass under the allocations decided before, and tells the scheduler what happened.
    fn advance(&mut self) -> Result<(), SimulationError> {
        let turn = self.options.turn_secs;
        let end = self.now + turn;
        let slowed = if self.options.interference > 0.0 {
            slowed(self.jobs.iter().map(|job| &job.allocation))
        } else {
            Vec::new()
        };
        let mut inputs = Vec::new();
        for (index, sim) in self.jobs.iter_mut().enumerate() {
            let id = job_id(index);
            let was_running = sim.job.completed_at_secs().is_none() && !sim.allocation.is_empty();
            let restart_left = sim.job.restart_secs_left();
            let interference = if slowed.get(index) == Some(&true) { self.options.interference } else { 0.0 };
            let fails = |why| SimulationError::Job { job: sim.submission.name.clone(), why };
            sim.job.advance(turn, interference, &mut sim.rule).map_err(fails)?;
            if !was_running {
                continue;
            }
            let generation = self.driver.generation(id);
            if (1..=turn).contains(&restart_left) {
                inputs.push((self.now + restart_left, Input::JobTraining(id, generation)));
            }
            if let Some(completed) = sim.job.completed_at_secs() {
                inputs.push((completed, Input::JobFinished(id, generation)));
                sim.held_secs += completed - sim.started;
                sim.allocation = Allocation::none();
            }
        }
        while let Some(job) = self.jobs.get(self.n_submitted).filter(|job| job.submission.at_secs <= end) {
            let spec = spec(job);
            inputs.push((job.submission.at_secs, Input::JobSubmitted(job_id(self.n_submitted), spec)));
            self.n_submitted += 1;
        }
        inputs.sort_by_key(|(at, _)| *at);
        self.now = end;
        for (at, input) in inputs {
            self.driver.tell(Timestamp::from_secs(at), input, &|_| None)?;
        }
        self.report()
    }

    /// Every job that trained says what it learned.
    fn report(&mut self) -> Result<(), SimulationError> {
        let now = Timestamp::from_secs(self.now);
        for index in 0..self.jobs.len() {
            let id = job_id(index);
            let sim = &mut self.jobs[index];
            if sim.allocation.is_empty() || sim.job.completed_at_secs().is_some() {
                continue;
            }
            let (n_replicas, batch) = (replicas(&sim.allocation), sim.job.batch());
            let efficiency = sim.job.efficiency();
            let is_news =
                sim.batch != batch.total(n_replicas) || (efficiency - sim.efficiency).abs() >= NOTED;
            if is_news && sim.job.restart_secs_left() == 0 {
                (sim.batch, sim.efficiency) = (batch.total(n_replicas), efficiency);
                self.driver.note_batch(now, id, u64::from(sim.batch), efficiency);
            }
            let report = match &mut sim.rule {
                Rule::Agent(agent) => agent.report(&self.gpu_type, &sim.job),
                // One word is enough: it can come back.
                Rule::Fixed(_) if !sim.has_reported && sim.job.progress() > 0.0 => {
                    plain_report(sim.application.limits(), &sim.job)
                }
                Rule::Fixed(_) => None,
            };
            if let Some(report) = report {
                sim.has_reported = true;
                self.driver.tell(now, Input::JobReported(id, report), &|_| None)?;
            }
        }
        Ok(())
    }

    /// A round, carried out at once.
    fn turn(&mut self) -> Result<(), SimulationError> {
        let now = Timestamp::from_secs(self.now);
        if !self.adapts {
            for sim in &mut self.jobs {
                if sim.oracle_steps.is_none() && sim.submission.at_secs <= self.now {
                    sim.oracle_steps = Some(true_steps(&sim.application, sim.submission));
                }
            }
        }
        let (jobs, repaired) = (&self.jobs, self.options.repaired);
        let oracles = |id: JobId| oracle(&jobs[usize::try_from(id.0).ok()?], repaired);
        let mut open = self.driver.tell(now, Input::Tick, &oracles)?;
        open.reverse();
        while let Some(effect) = open.pop() {
            match effect {
                Effect::Stop { job, generation } => {
                    let sim = &mut self.jobs[index_of(job)];
                    sim.held_secs += self.now - sim.started;
                    sim.job.reallocate(&[], &mut sim.rule);
                    sim.allocation = Allocation::none();
                    let mut more = self.driver.tell(now, Input::JobStopped(job, generation), &|_| None)?;
                    more.reverse();
                    open.extend(more);
                }
                Effect::Start { job, allocation, .. } => self.start(job, allocation),
                // Nothing here is rented.
                _ => {}
            }
        }
        Ok(())
    }

    fn start(&mut self, job: JobId, allocation: Allocation) {
        let prior = if self.options.history { self.driver.scheduler().prior(job) } else { BTreeMap::new() };
        let sim = &mut self.jobs[index_of(job)];
        if let (Rule::Agent(agent), Some(history)) = (&mut sim.rule, prior.get(&self.gpu_type))
            && sim.job.n_restarts().is_none()
        {
            agent.build_on(history.clone());
        }
        let mut placement: Vec<u32> = allocation.iter().map(|(_, share)| share.n_replicas()).collect();
        if !self.adapts {
            // The artifact lists nodes as they were picked, the fullest share first; Pollux goes by their number.
            placement.sort_unstable_by(|a, b| b.cmp(a));
        }
        sim.job.reallocate(&placement, &mut sim.rule);
        sim.allocation = allocation;
        sim.started = self.now;
        sim.batch = 0;
    }

    fn outcome(self) -> Result<Run, SimulationError> {
        let mut run = Run {
            gpus: self.options.cluster.gpus(),
            rounds: self.driver.rounds,
            log: self.driver.log,
            jobs: Vec::with_capacity(self.jobs.len()),
        };
        for (index, sim) in self.jobs.iter().enumerate() {
            let (done, needed) = (sim.job.progress(), work(&sim.application));
            if (done - needed).abs() > 1e-9 * needed {
                return Err(Broken::WrongWork { job: index as u64, done, needed }.into());
            }
            let restarts = sim.job.n_restarts();
            run.jobs.push(JobOutcome {
                name: sim.submission.name.clone(),
                application: sim.submission.application.clone(),
                submitted: Timestamp::from_secs(sim.submission.at_secs),
                completed: sim.job.completed_at_secs().map(Timestamp::from_secs),
                restarts: restarts.unwrap_or(0),
                gpu_secs: sim.job.gpu_secs() as f64,
                useful_gpu_secs: sim.job.useful_gpu_secs(),
                held_secs: sim.held_secs as f64,
                restart_secs: sim.job.restarted_secs() as f64,
                failures: 0,
                redone_gpu_secs: 0.0,
                rho: None,
            });
        }
        let mut known = BTreeMap::new();
        let (jobs, adapts) = (&self.jobs, self.adapts);
        run.judge_fairness(|index, gpus| {
            let sim = &jobs[index];
            let batch = if adapts { 0 } else { sim.submission.batch };
            let key = (sim.submission.application.as_str(), batch, gpus);
            *known.entry(key).or_insert_with(|| alone_secs(sim, adapts, gpus))
        });
        Ok(run)
    }
}

/// What the scheduler is told of a job.
fn spec(job: &SimJob<'_>) -> JobSpec {
    let limits = job.application.limits();
    let work = progress::progress_after(job.application.validation(), limits.n_epochs).ok();
    JobSpec {
        application: Some(job.submission.application.as_str().into()),
        max_gpus: Some(job.rule.most_gpus(limits)),
        request: Some(Request { gpus: job.submission.gpus }),
        adapts: true,
        work: work.map(|work| work * f64::from(limits.init_batch)),
        ..JobSpec::default()
    }
}

/// Completion time of a job that has so many GPUs to itself from the beginning, as few nodes as hold them.
fn alone_secs(sim: &SimJob<'_>, adapts: bool, gpus: u32) -> Option<f64> {
    let limits = sim.application.limits();
    let mut rule = rule(adapts, limits, sim.submission);
    let mut job = Job::new(sim.application.clone());
    job.reallocate(&packed(gpus.min(rule.most_gpus(limits))), &mut rule);
    while job.completed_at_secs().is_none() {
        job.advance(3_600, 0.0, &mut rule).ok()?;
    }
    Some(job.completed_at_secs()? as f64)
}

fn rule(adapts: bool, limits: &Limits, submission: &Submission) -> Rule {
    // The artifact has ncf always at its largest batch and on one GPU under Pollux.
    match (adapts, submission.application.as_str()) {
        (true, "ncf") => Rule::Agent(Box::new(ArtifactAgent::pinned(limits, limits.max_batch))),
        (true, _) => Rule::Agent(Box::new(ArtifactAgent::new(limits))),
        (false, _) => Rule::Fixed(FixedBatch { target: u32::try_from(submission.batch).unwrap_or(u32::MAX) }),
    }
}

/// What Optimus is told: the truth about a job at its user's batch.
fn oracle(sim: &SimJob<'_>, repaired: bool) -> Option<Oracle> {
    let steps = sim.oracle_steps.clone()?;
    let limits = sim.application.limits();
    let batch = u32::try_from(sim.submission.batch).ok()?;
    let (runs, epoch) = (sim.application.validation(), sim.job.n_epochs());
    let until = |epoch| progress::iterations(runs, batch, epoch).ok();
    let total = until(limits.n_epochs - 1)?;
    let remaining_iterations = if repaired {
        total - if epoch > 0 { until(epoch - 1)? } else { 0.0 }
    } else if epoch + 1 < limits.n_epochs {
        total - until(epoch)?
    } else {
        1.0
    };
    let max_gpus = if sim.submission.application == "ncf" { 1 } else { batch / limits.min_local };
    Some(Oracle { remaining_iterations, step_secs: steps, max_gpus: max_gpus.max(1), ..Oracle::default() })
}

/// Seconds of an iteration at the user's batch on 1, 2, .. GPUs on as few nodes as hold them.
fn true_steps(application: &Application, submission: &Submission) -> Arc<[f64]> {
    let limits = application.limits();
    let target = u32::try_from(submission.batch).unwrap_or(u32::MAX);
    let secs = |gpus: u32| {
        let mut batch = LocalBatch::of_target(target, gpus, limits);
        if gpus == 1 && batch.accum_steps == 0 {
            // The artifact's Optimus always accumulates there.
            batch = LocalBatch { atomic: target.div_ceil(2), accum_steps: 1 };
        }
        let batch = batch.capped(gpus, limits);
        let time = application.step_time(&packed(gpus), batch.atomic).ok()?;
        Some(time.iteration_secs(batch.accum_steps))
    };
    let most = (target / limits.min_local).clamp(1, MOST_GPUS);
    (1..=most).map_while(secs).collect()
}

/// GPUs on as few nodes as hold them.
fn packed(n_replicas: u32) -> Vec<u32> {
    (0..n_replicas)
        .step_by(GPUS_PER_NODE as usize)
        .map(|placed| (n_replicas - placed).min(GPUS_PER_NODE))
        .collect()
}

fn work(application: &Application) -> f64 {
    let limits = application.limits();
    progress::progress_after(application.validation(), limits.n_epochs).unwrap_or(0.0)
}

fn replicas(allocation: &Allocation) -> u32 {
    allocation.placement().map_or(0, pollux_model::Placement::n_replicas)
}
