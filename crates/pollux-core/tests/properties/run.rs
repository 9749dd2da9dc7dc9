//! A run: acts become inputs, and effects are held against the ledger.

use std::collections::BTreeSet;
use std::time::Duration;

use pollux_core::{Config, CycleId, Effect, Generation, Input, NodeSpec, Phase, Pool, PoolId, Scheduler};
use pollux_core::{SizeId, SizeQuestion};
use pollux_model::{Allocation, GpuShare, GpuType, JobId, NodeId, Timestamp};
use pollux_policy::{AnyPolicy, Decision, Fifo, Group, GroupId, JobPlan, Plan, Reason};
use pollux_policy::{Seed, Snapshot, Terms};
use proptest::sample::Index;

use crate::acts::{Act, MadeUp, Word};
use crate::common::{plan, plan_of, reports};
use crate::ledger::Ledger;

pub(crate) struct Run {
    pub(crate) scheduler: Scheduler,
    /// What happened when, and what came of it.
    pub(crate) journal: Vec<(Timestamp, Input, String)>,
    ledger: Ledger,
    secs: u64,
    wakes: BTreeSet<Timestamp>,
    asked: Option<(CycleId, Box<Snapshot>, Seed)>,
    sizing: Option<(SizeId, Box<SizeQuestion>)>,
    suspended: BTreeSet<JobId>,
}

impl Run {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            scheduler: Scheduler::new(config),
            journal: Vec::new(),
            ledger: Ledger::default(),
            secs: 0,
            wakes: BTreeSet::new(),
            asked: None,
            sizing: None,
            suspended: BTreeSet::new(),
        }
    }

    pub(crate) fn act(&mut self, act: Act) {
        match act {
            Act::Submit(job, spec) => self.tell(Input::JobSubmitted(JobId(job), spec)),
            Act::Edit(job, edit) => self.tell(Input::JobEdited(JobId(job), edit)),
            Act::Cancel(job) => self.tell(Input::JobCancelled(JobId(job))),
            Act::Report(job, progress) => {
                self.tell(Input::JobReported(JobId(job), reports::report(progress)));
            }
            Act::Answer(which, word) => self.answer(which, word),
            Act::Grant => self.grant(),
            Act::Babble(job, generation, word) => self.say(JobId(job), Generation(generation), word),
            Act::Join(node, other, gpus) => {
                let gpu_type = GpuType::new(if other { "a100" } else { "t4" });
                self.tell(Input::NodeJoined(NodeId(node), NodeSpec { gpu_type, gpus }));
            }
            Act::State(node, state) => self.tell(Input::NodeStateSet(NodeId(node), state)),
            Act::Others(node, gpus) => self.tell(Input::NodeUsedByOthers(NodeId(node), gpus)),
            Act::Lose(node) => self.tell(Input::NodeLost(NodeId(node))),
            Act::Groups(n) => self.tell(Input::GroupsSet((0..n).map(group).collect())),
            Act::Pools(n) => self.tell(Input::PoolsSet((0..n).map(pool).collect())),
            Act::PoolJoin(node, pool) => self.tell(Input::PoolNodeJoined(NodeId(node), PoolId(pool))),
            Act::GrowFailed(pool, nodes) => self.tell(Input::GrowFailed(PoolId(pool), nodes)),
            Act::Reclaim(node, secs) => {
                let deadline = Timestamp::from_secs(self.secs + secs);
                self.tell(Input::NodeReclaimed(NodeId(node), deadline));
            }
            Act::Size => {
                if let Some((id, question)) = self.sizing.take() {
                    self.tell(Input::SizeReady(id, question.answer(&Fifo)));
                }
            }
            Act::AnySize(one, other) => {
                let sizes = [(PoolId(0), one), (PoolId(1), other)].into();
                let id = self.sizing.take().map_or(SizeId(0), |(id, question)| {
                    // As in a replay, which cannot tell: curves are filled by who asks them.
                    question.answer(&Fifo);
                    id
                });
                self.tell(Input::SizeReady(id, sizes));
            }
            Act::Plan => {
                if let Some((cycle, snapshot, seed)) = self.asked.take() {
                    let plan = AnyPolicy::plan(&Fifo, &snapshot, &Terms { seed, ..Terms::default() });
                    self.tell(Input::PlanReady(cycle, plan));
                }
            }
            Act::MadeUp(answers) => {
                if let Some((cycle, ..)) = self.asked.take() {
                    self.tell(Input::PlanReady(cycle, made_up(answers)));
                }
            }
            Act::Stray(cycle) => {
                let awaited = self.asked.as_ref().map(|(cycle, ..)| cycle.0);
                if awaited != Some(cycle) {
                    self.tell(Input::PlanReady(CycleId(cycle), plan(&[])));
                }
            }
            Act::Wait(secs) => self.wait_until(Timestamp::from_secs(self.secs + secs)),
            Act::Tick(offset) => {
                let now = Timestamp::from_secs(self.secs.saturating_add_signed(offset));
                self.tell_at(now, Input::Tick);
            }
        }
    }

    /// From here on stops are granted, first-come-first-served plans come at once, and there is room for all: then all
    /// who may start do.
    pub(crate) fn check_that_everybody_starts(&mut self) {
        for (node, name) in [(100, "t4"), (101, "a100")] {
            let spec = NodeSpec { gpu_type: GpuType::new(name), gpus: 64 };
            self.tell(Input::NodeJoined(NodeId(node), spec));
        }
        for _ in 0..12 {
            self.act(Act::Plan);
            while self.ledger.starts.values().any(|start| start.is_asked_to_stop) {
                self.grant();
            }
            let active: Vec<JobId> = self.scheduler.active().map(|(id, _)| id).collect();
            for id in active {
                self.say(id, self.scheduler.job(id).unwrap().generation, Word::Training);
            }
            if self.scheduler.active().next().is_some() {
                let wake = self.wakes.first().copied();
                self.wait_until(wake.expect("jobs are active, and nobody is to be woken"));
            }
        }
        for (id, job) in self.scheduler.active() {
            let may_run = !self.suspended.contains(&id);
            assert_eq!(may_run, job.phase == Phase::Running, "{id:?}: {job:?}");
        }
    }

    fn wait_until(&mut self, then: Timestamp) {
        while let Some(wake) = self.wakes.first().copied().filter(|wake| *wake <= then) {
            self.wakes.remove(&wake);
            self.secs = self.secs.max(wake.as_micros() / 1_000_000);
            self.tell(Input::Tick);
        }
        self.secs = self.secs.max(then.as_micros() / 1_000_000);
    }

    fn answer(&mut self, which: Index, word: Word) {
        let starts = self.ledger.starts.iter();
        let starts: Vec<_> = starts.map(|(job, start)| (*job, start.generation)).collect();
        if !starts.is_empty() {
            let (job, generation) = *which.get(&starts);
            self.say(job, generation, word);
        }
    }

    fn grant(&mut self) {
        let mut asked = self.ledger.starts.iter().filter(|(_, start)| start.is_asked_to_stop);
        if let Some((job, generation)) = asked.next().map(|(job, start)| (*job, start.generation)) {
            self.say(job, generation, Word::Stopped);
        }
    }

    fn say(&mut self, job: JobId, generation: Generation, word: Word) {
        self.tell(match word {
            Word::Training => Input::JobTraining(job, generation),
            Word::Stopped => Input::JobStopped(job, generation),
            Word::Finished => Input::JobFinished(job, generation),
            Word::Failed => Input::JobFailed(job, generation),
            Word::GivenUp => Input::JobGivenUp(job, generation),
        });
    }

    fn tell(&mut self, input: Input) {
        self.tell_at(Timestamp::from_secs(self.secs), input);
    }

    fn tell_at(&mut self, now: Timestamp, input: Input) {
        let before = format!("{:?}", self.scheduler);
        let effects = self.scheduler.handle(now, input.clone());
        let text = format!("{effects:?}");
        if let Ok(effects) = effects {
            self.happened(&input, effects);
        } else {
            assert_eq!(format!("{:?}", self.scheduler), before, "what is refused changes nothing");
        }
        self.journal.push((now, input, text));
    }

    fn happened(&mut self, input: &Input, effects: Vec<Effect>) {
        self.ledger.happened(input);
        if let Input::JobEdited(job, edit) = input {
            match edit.suspended {
                Some(true) => _ = self.suspended.insert(*job),
                Some(false) => _ = self.suspended.remove(job),
                None => {}
            }
        }
        for effect in effects {
            self.ledger.asked(&effect);
            match effect {
                Effect::Solve { cycle, snapshot, seed } => {
                    assert!(self.asked.is_none(), "a plan is asked for while one is awaited");
                    self.asked = Some((cycle, snapshot, seed));
                }
                Effect::Size { id, question } => {
                    assert!(self.sizing.is_none(), "sizes are asked for while they are awaited");
                    self.sizing = Some((id, question));
                }
                Effect::Grow { nodes, .. } => assert!(nodes > 0, "nothing is ordered"),
                Effect::WakeAt(at) => _ = self.wakes.insert(at),
                Effect::Start { job, .. } => assert!(!self.suspended.contains(&job), "{job:?} is suspended"),
                Effect::Stop { .. } | Effect::Release { .. } => {}
            }
        }
        self.check_agreement();
    }

    /// The scheduler has the same in its ledger, and could show every round to a policy.
    fn check_agreement(&self) {
        assert_eq!(self.scheduler.fault(), None);
        for node in self.ledger.nodes() {
            assert_eq!(self.scheduler.held_on(node), Some(self.ledger.held_on(node)), "{node:?}");
        }
        for (id, job) in self.scheduler.active() {
            assert_eq!(*job.holds, self.ledger.holds(id), "{id:?}");
            assert_eq!(job.holds.is_empty(), job.phase == Phase::Waiting, "{id:?} {:?}", job.phase);
        }
        let n_holding = self.scheduler.active().filter(|(_, job)| !job.holds.is_empty()).count();
        assert_eq!(n_holding, self.ledger.starts.len(), "who has ended holds nothing");
    }
}

/// From one to five nodes, kept for two minutes.
fn pool(id: u32) -> Pool {
    let minutes = Duration::from_mins(2);
    Pool {
        id: PoolId(id),
        node: NodeSpec { gpu_type: GpuType::new("t4"), gpus: 4 },
        price: f64::from(id),
        ready_after: minutes,
        min_hold: minutes,
        least: 1 - id.min(1),
        most: 5,
        spot: id == 0,
    }
}

fn group(id: u32) -> Group {
    Group { id: GroupId(id), parent: None, entitled: [].into(), caps: [].into() }
}

fn made_up(answers: Vec<MadeUp>) -> Plan {
    let answer = |made_up: MadeUp| {
        let places = made_up.places.into_iter().map(|(node, gpus)| (NodeId(node), gpus));
        let part = GpuShare::part_of_one(500).and_then(|half| Allocation::part_of_one(NodeId(0), half));
        let allocation = part.filter(|_| made_up.is_part).unwrap_or_else(|| Allocation::whole(places));
        JobPlan { job: JobId(made_up.job), decision: Decision::Place, allocation, reason: Reason::default() }
    };
    plan_of(answers.into_iter().map(answer).collect())
}
