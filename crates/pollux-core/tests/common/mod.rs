//! A tiny world around a scheduler: what is asked of it is written down as text, and answered when a test says so.
#![allow(dead_code, unreachable_pub, reason = "each test uses its own part")]

pub mod reports;

use std::time::Duration;

use pollux_core::{Config, CycleId, Effect, Generation, Input, JobEdit, JobSpec, JobView};
use pollux_core::{NodeSpec, Phase, Refused, Scheduler, SizeId, SizeQuestion};
use pollux_model::{Allocation, GpuShare, GpuType, JobId, NodeId, Timestamp};
use pollux_policy::{
    Cadence, Carried, Decision, Job, JobPlan, NodeState, Plan, Reason, Request, Seed, Snapshot, Stopped, Work,
};

/// A place: node and number of GPUs.
pub type On<'a> = &'a [(u32, u32)];

/// A scheduler, a clock, and what was asked.
pub struct World {
    pub scheduler: Scheduler,
    pub secs: u64,
    /// What was asked for since the last check, wishes to be woken left out: `start 1.2 on 0:4`, `stop 1.2`.
    said: Vec<String>,
    /// Wishes to be woken, in seconds.
    pub wakes: Vec<u64>,
    /// The plan that is awaited.
    pub asked: Option<(CycleId, Box<Snapshot>, Seed)>,
    /// The question about sizes that waits for an answer.
    pub sizing: Option<(SizeId, Box<SizeQuestion>)>,
}

/// A round a minute.
pub fn minutely() -> Config {
    Config::default()
}

/// A round for every event, and one a minute.
pub fn eager() -> Config {
    Config {
        cadence: Cadence { every: Duration::from_mins(1), on_events: Some(Duration::ZERO) },
        ..Config::default()
    }
}

/// A job whose script is known to report.
pub fn adapting() -> JobSpec {
    JobSpec { adapts: true, ..JobSpec::default() }
}

/// A job that asks for GPUs and says no more.
pub fn asking(gpus: u32) -> JobSpec {
    JobSpec { request: Some(Request { gpus }), ..JobSpec::default() }
}

/// A place as an allocation.
pub fn on(places: On<'_>) -> Allocation {
    Allocation::whole(places.iter().map(|&(node, gpus)| (NodeId(node), gpus)))
}

/// A plan made by hand.
pub fn plan(answers: &[(u64, On<'_>)]) -> Plan {
    let answer = |&(job, places): &(u64, On<'_>)| JobPlan {
        job: JobId(job),
        decision: if places.is_empty() { Decision::Wait } else { Decision::Place },
        allocation: on(places),
        reason: Reason::default(),
    };
    plan_of(answers.iter().map(answer).collect())
}

/// A plan of these answers.
pub fn plan_of(jobs: Vec<JobPlan>) -> Plan {
    let work = Work { units: 0, budget: 0, stopped: Stopped::Done };
    Plan { jobs, certificate: None, work, carried: Carried::default() }
}

impl World {
    /// Nodes 0, 1, .. with so many T4 each.
    pub fn of(config: Config, gpus: &[u32]) -> Self {
        let scheduler = Scheduler::new(config);
        let (said, wakes) = (Vec::new(), Vec::new());
        let mut world = Self { scheduler, secs: 0, said, wakes, asked: None, sizing: None };
        for (node, &gpus) in (0..).zip(gpus) {
            world.join(node, "t4", gpus);
        }
        world
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from_secs(self.secs)
    }

    /// Something happens that makes sense.
    pub fn tell(&mut self, input: Input) {
        let text = format!("{input:?}");
        self.try_tell(input).unwrap_or_else(|refused| panic!("{text}: {refused}"));
    }

    pub fn try_tell(&mut self, input: Input) -> Result<(), Refused> {
        for effect in self.scheduler.handle(self.now(), input)? {
            match effect {
                Effect::Start { job, generation, allocation } => {
                    let place =
                        |(node, share): (NodeId, GpuShare)| format!("{}:{}", node.0, share.n_replicas());
                    let places: Vec<String> = allocation.iter().map(place).collect();
                    self.said.push(format!("start {}.{} on {}", job.0, generation.0, places.join(" ")));
                }
                Effect::Stop { job, generation } => {
                    self.said.push(format!("stop {}.{}", job.0, generation.0));
                }
                Effect::Size { id, question } => {
                    assert!(self.sizing.is_none(), "sizes are asked for while they are awaited");
                    self.sizing = Some((id, question));
                }
                Effect::Grow { pool, nodes } => self.said.push(format!("grow {} by {nodes}", pool.0)),
                Effect::Release { node } => self.said.push(format!("release {}", node.0)),
                Effect::WakeAt(at) => self.wakes.push(at.as_micros() / 1_000_000),
                Effect::Solve { cycle, snapshot, seed } => {
                    assert!(self.asked.is_none(), "a second plan is asked for while one is awaited");
                    self.asked = Some((cycle, snapshot, seed));
                }
            }
        }
        assert_eq!(self.scheduler.fault(), None);
        Ok(())
    }

    /// What happens next is refused, and changes nothing.
    pub fn check_refused(&mut self, input: Input, expected: &Refused) {
        let before = format!("{:?}", self.scheduler);
        assert_eq!(self.try_tell(input).as_ref(), Err(expected));
        assert_eq!(format!("{:?}", self.scheduler), before, "what is refused changes nothing");
    }

    /// What was asked for since the last check.
    #[track_caller]
    pub fn check_said(&mut self, expected: &[&str]) {
        assert_eq!(std::mem::take(&mut self.said), expected);
    }

    /// What was asked for since the last look, to be looked at.
    pub fn take_said(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }

    /// What was asked for so far is of no interest.
    pub fn forget(&mut self) {
        self.said.clear();
    }

    #[track_caller]
    pub fn check_phase(&self, job: u64, phase: Phase) {
        assert_eq!(self.job(job).phase, phase);
    }

    #[track_caller]
    pub fn check_holds(&self, job: u64, places: On<'_>) {
        assert_eq!(*self.job(job).holds, on(places));
    }

    pub fn job(&self, job: u64) -> JobView<'_> {
        self.scheduler.job(JobId(job)).unwrap()
    }

    /// The generation of a job's latest start.
    pub fn generation(&self, job: u64) -> Generation {
        self.job(job).generation
    }

    pub fn join(&mut self, node: u32, gpu_type: &str, gpus: u32) {
        self.tell(Input::NodeJoined(NodeId(node), NodeSpec { gpu_type: GpuType::new(gpu_type), gpus }));
    }

    pub fn set_state(&mut self, node: u32, state: NodeState) {
        self.tell(Input::NodeStateSet(NodeId(node), state));
    }

    pub fn others(&mut self, node: u32, gpus: u32) {
        self.tell(Input::NodeUsedByOthers(NodeId(node), gpus));
    }

    pub fn lose(&mut self, node: u32) {
        self.tell(Input::NodeLost(NodeId(node)));
    }

    pub fn submit(&mut self, job: u64, spec: JobSpec) {
        self.tell(Input::JobSubmitted(JobId(job), spec));
    }

    pub fn edit(&mut self, job: u64, edit: JobEdit) {
        self.tell(Input::JobEdited(JobId(job), edit));
    }

    pub fn suspend(&mut self, job: u64, suspended: bool) {
        self.edit(job, JobEdit { suspended: Some(suspended), ..JobEdit::default() });
    }

    pub fn cancel(&mut self, job: u64) {
        self.tell(Input::JobCancelled(JobId(job)));
    }

    pub fn train(&mut self, job: u64) {
        self.tell(Input::JobTraining(JobId(job), self.generation(job)));
    }

    pub fn stopped(&mut self, job: u64) {
        self.tell(Input::JobStopped(JobId(job), self.generation(job)));
    }

    pub fn finish(&mut self, job: u64) {
        self.tell(Input::JobFinished(JobId(job), self.generation(job)));
    }

    pub fn fail(&mut self, job: u64) {
        self.tell(Input::JobFailed(JobId(job), self.generation(job)));
    }

    /// Its agent reports so much progress.
    pub fn report(&mut self, job: u64, progress: f64) {
        self.tell(Input::JobReported(JobId(job), reports::report(progress)));
    }

    /// Time passes until the next round, whose plan is awaited then.
    pub fn ask(&mut self) {
        let next = self.wakes.iter().copied().filter(|&at| at >= self.secs).min();
        self.secs = next.expect("nobody wishes to be woken");
        self.wakes.retain(|&at| at > self.secs);
        self.tell(Input::Tick);
        assert!(self.asked.is_some(), "no plan was asked for at {} s", self.secs);
    }

    /// The plan that is awaited comes.
    pub fn answer(&mut self, plan: Plan) {
        let (cycle, ..) = self.asked.take().expect("no plan is awaited");
        self.tell(Input::PlanReady(cycle, plan));
    }

    /// A whole round, with a plan made by hand.
    pub fn round(&mut self, answers: &[(u64, On<'_>)]) {
        self.ask();
        self.answer(plan(answers));
    }

    /// A job as the policy is shown it in the plan that is awaited.
    pub fn shown(&self, job: u64) -> Option<&Job> {
        let (_, snapshot, _) = self.asked.as_ref().expect("no plan is awaited");
        snapshot.jobs().iter().find(|shown| shown.id == JobId(job))
    }

    /// Jobs that adapt, have reported and run on these places, all of them at the end of one round.
    pub fn with_running(config: Config, gpus: &[u32], jobs: &[(u64, On<'_>)]) -> Self {
        let mut world = Self::of(config, gpus);
        for &(job, _) in jobs {
            world.submit(job, adapting());
        }
        if world.asked.is_none() {
            world.ask();
        }
        world.answer(plan(jobs));
        // Who is eager has asked again for those that came meanwhile.
        if world.asked.is_some() {
            world.answer(plan(jobs));
        }
        for &(job, places) in jobs {
            world.train(job);
            world.report(job, 1.0);
            world.check_holds(job, places);
        }
        world.forget();
        world
    }
}
