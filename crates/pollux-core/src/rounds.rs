//! Rounds: asking for a plan, and carrying it out in two phases.

use std::collections::{BTreeMap, BTreeSet};

use pollux_model::random::{GOLDEN, scramble};
use pollux_model::{Allocation, GpuShare, JobId, NodeId, Timestamp};
use pollux_policy::{Carried, Certificate, Plan, Seed, Snapshot, SnapshotError};

use crate::effect::{CycleId, Effect};
use crate::input::Refused;
use crate::job::{Explanation, Job, Phase};
use crate::ledger::Ledger;
use crate::scheduler::{Effects, Scheduler};
use crate::view::View;

/// Plans asked for and awaited.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rounds {
    /// The latest round.
    pub latest: CycleId,
    /// The round a plan is awaited for, and when it began.
    pub awaited: Option<(CycleId, Timestamp)>,
    /// When the latest round began, or would have, had no plan been awaited.
    pub began: Option<Timestamp>,
    /// Something happened since.
    pub is_stale: bool,
    /// The next plan cannot wait for its time.
    pub is_urgent: bool,
    /// When the tick of the next round was asked for; it may come late.
    pub wake_at: Option<Timestamp>,
    /// What the latest plan carried over.
    pub carried: Carried,
    /// How good the latest plan is.
    pub certificate: Option<Certificate>,
    /// Why the latest round could not be shown to a policy.
    pub fault: Option<SnapshotError>,
}

impl Scheduler {
    /// Something happened that a plan should take into account: at once, or at the next round.
    pub(crate) fn happened(&mut self, now: Timestamp) -> Vec<Effect> {
        self.rounds.is_stale = true;
        if self.is_wanted(now) { self.solve(now) } else { self.wake(now).into_iter().collect() }
    }

    /// Whether a plan is wanted before its time: something happened, and the latest is long enough ago.
    fn is_wanted(&self, now: Timestamp) -> bool {
        let is_news = self.rounds.is_stale && self.rounds.awaited.is_none();
        is_news && self.earliest().is_some_and(|earliest| earliest <= now)
    }

    /// When something that happened may lead to a plan at the earliest; never if plans are made at fixed times.
    fn earliest(&self) -> Option<Timestamp> {
        let apart = self.config.cadence.on_events?;
        Some(self.rounds.began.map_or(Timestamp::ZERO, |began| began + apart))
    }

    /// Asks to be woken for the next round, if anybody is there for it.
    fn wake(&mut self, now: Timestamp) -> Option<Effect> {
        if self.active.is_empty() && !self.is_restless() {
            return None;
        }
        let every = u64::try_from(self.config.cadence.every.as_micros()).unwrap_or(u64::MAX).max(1);
        let multiple = |n: u64| Timestamp::from_micros(n.saturating_mul(every));
        let mut next = multiple(now.as_micros().div_ceil(every));
        if self.rounds.began.is_some_and(|began| next <= began) {
            next = multiple(next.as_micros() / every + 1);
        }
        // While a plan is awaited nothing can be asked; its answer looks again.
        if let Some(earliest) =
            self.earliest().filter(|_| self.rounds.is_stale && self.rounds.awaited.is_none())
        {
            next = next.min(earliest.max(now));
        }
        // A tick that is late is still on its way: were it given up, a busy shell would never begin a round.
        if self.rounds.wake_at.is_some_and(|at| at <= next) {
            return None;
        }
        self.rounds.wake_at = Some(next);
        Some(Effect::WakeAt(next))
    }

    pub(crate) fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        self.rounds.is_stale |= self.is_anybody_back(now);
        let is_due = self.rounds.wake_at.is_some_and(|at| at <= now);
        if self.is_wanted(now) || is_due && self.rounds.awaited.is_none() {
            return self.solve(now);
        }
        if is_due {
            // The plan of an earlier round is still awaited: this one is left out.
            self.rounds.began = Some(now);
            self.rounds.wake_at = None;
        }
        self.wake(now).into_iter().collect()
    }

    /// Whether the wait of a job that failed has ended since the latest round.
    fn is_anybody_back(&self, now: Timestamp) -> bool {
        let began = self.rounds.began.unwrap_or_default();
        let mut waits = self.active.iter().map(|id| self.jobs[id].not_before);
        waits.any(|until| began < until && until <= now)
    }

    /// Asks for a plan, if there is anybody to plan for.
    pub(crate) fn solve(&mut self, now: Timestamp) -> Vec<Effect> {
        self.rounds.wake_at = self.rounds.wake_at.filter(|at| *at > now);
        self.rounds.is_urgent = false;
        self.rounds.is_stale = false;
        if self.active.is_empty() {
            if self.is_restless() {
                self.rounds.began = Some(now);
            }
            return self.wake(now).into_iter().collect();
        }
        self.rounds.began = Some(now);
        let wake = self.wake(now);
        let snapshot = self.snapshot(now);
        self.rounds.fault = snapshot.as_ref().err().cloned();
        let mut effects = Vec::new();
        if let Some(snapshot) = snapshot.ok().filter(|snapshot| !snapshot.jobs().is_empty()) {
            let cycle = CycleId(self.rounds.latest.0 + 1);
            self.rounds.latest = cycle;
            self.rounds.awaited = Some((cycle, now));
            effects.extend(self.look(now, &snapshot));
            let snapshot = Box::new(snapshot.carrying(self.rounds.carried.clone()));
            effects.push(Effect::Solve { cycle, snapshot, seed: mixed(self.config.seed, cycle) });
        }
        effects.extend(wake);
        effects
    }

    /// The jobs that plans are made for, and the cluster, as a policy is shown them.
    pub(crate) fn snapshot(&self, now: Timestamp) -> Result<Snapshot, SnapshotError> {
        let jobs = self.active.iter().map(|id| (*id, &self.jobs[id]));
        let (config, ledger, groups) = (&self.config, &self.ledger, &self.groups);
        let (histories, speeds) = (&self.histories, &self.speeds);
        View { now, config, ledger, groups, histories, speeds }.snapshot(jobs)
    }

    /// Nobody answers any more what was asked, nor wakes the scheduler: it asks again, and for the next round.
    pub(crate) fn ask_anew(&mut self, now: Timestamp) -> Vec<Effect> {
        self.rounds.awaited = None;
        self.rounds.wake_at = None;
        self.forget_question();
        let mut effects = self.happened(now);
        if self.config.cadence.on_events.is_some() {
            let waits = self.active.iter().map(|id| self.jobs[id].not_before).filter(|until| *until > now);
            effects.extend(waits.map(Effect::WakeAt));
        }
        effects
    }

    /// Carries out what still fits of a plan: the world may have moved on.
    pub(crate) fn carry_out(&mut self, now: Timestamp, cycle: CycleId, plan: Plan) -> Effects {
        let awaited = self.rounds.awaited.filter(|(awaited, _)| *awaited == cycle);
        let (_, at) = awaited.ok_or(Refused::UnknownCycle(cycle))?;
        self.rounds.awaited = None;
        self.rounds.carried = plan.carried;
        self.rounds.certificate = plan.certificate;
        let (mut answered, mut moves) = (BTreeSet::new(), BTreeMap::new());
        for answer in plan.jobs {
            let id = answer.job;
            let Some(job) = self.jobs.get_mut(&id).filter(|job| job.is_planned(now)) else { continue };
            // Of two answers for one job the first counts.
            if !answered.insert(id) {
                continue;
            }
            let is_possible = answer.allocation.is_empty() || suits(&self.ledger, job, &answer.allocation);
            if may_move(job, now) && is_possible && answer.allocation != job.wanted {
                moves.insert(id, answer.allocation.clone());
            }
            // Who is on its way somewhere is best explained by what sent it there.
            if job.explanation.is_some() && is_underway(job) && !moves.contains_key(&id) {
                continue;
            }
            job.explanation = Some(Explanation {
                cycle,
                at,
                decision: answer.decision,
                allocation: answer.allocation,
                reason: answer.reason,
            });
        }
        for (id, wanted) in self.fitting(moves) {
            if let Some(job) = self.jobs.get_mut(&id) {
                job.wanted = wanted;
                self.unsettled.insert(id);
            }
        }
        let mut effects = Vec::new();
        for id in self.unsettled.clone() {
            let asked = self.ask_to_leave(now, id);
            if asked.is_some()
                && let Some(job) = self.jobs.get_mut(&id)
            {
                job.count_resize(now);
            }
            effects.extend(asked);
        }
        effects.extend(self.start_waiting(now));
        if self.rounds.is_urgent {
            effects.extend(self.solve(now));
        } else if self.rounds.is_stale {
            effects.extend(self.happened(now));
        }
        Ok(effects)
    }

    /// The moves for which there is room beside all who stay. Who cannot go where it should stays where it is, and
    /// may be in the way of others: so it is tried until nobody more is left out.
    fn fitting(&self, mut moves: BTreeMap<JobId, Allocation>) -> BTreeMap<JobId, Allocation> {
        loop {
            let mut room = self.ledger.capacities();
            for id in self.active.iter().filter(|id| !moves.contains_key(id)) {
                take(&mut room, &self.jobs[id].wanted);
            }
            let n_moves = moves.len();
            moves.retain(|_, wanted| take_if_free(&mut room, wanted));
            if moves.len() == n_moves {
                return moves;
            }
        }
    }

    /// Forgets starts that can no longer happen: nodes were closed or lost, others came, limits changed. The next
    /// plan says where these jobs go.
    pub(crate) fn withdraw(&mut self) {
        let mut room = self.ledger.capacities();
        for job in self.active.iter().map(|id| &self.jobs[id]).filter(|job| !job.is_pending()) {
            take(&mut room, &job.wanted);
        }
        for id in self.unsettled.clone() {
            let Some(job) = self.jobs.get_mut(&id).filter(|job| job.is_pending()) else { continue };
            if !suits(&self.ledger, job, &job.wanted) || !take_if_free(&mut room, &job.wanted) {
                job.wanted = Allocation::none();
                self.unsettled.remove(&id);
            }
        }
    }

    /// A job that holds other GPUs than it should is asked to leave them.
    pub(crate) fn ask_to_leave(&mut self, now: Timestamp, id: JobId) -> Option<Effect> {
        let job = self.jobs.get_mut(&id)?;
        if !matches!(job.phase, Phase::Starting | Phase::Running) {
            return None;
        }
        if job.held == job.wanted {
            self.unsettled.remove(&id);
            return None;
        }
        job.phase = Phase::Stopping;
        job.clock.stop_asked(now);
        Some(Effect::Stop { job: id, generation: job.generation })
    }

    /// Starts every job all of whose GPUs have no holder any more.
    pub(crate) fn start_waiting(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        for id in self.unsettled.clone() {
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            if job.phase != Phase::Waiting {
                continue;
            }
            if job.wanted.is_empty() {
                self.unsettled.remove(&id);
            } else if self.ledger.is_free(&job.wanted) {
                self.ledger.hold(&job.wanted);
                job.held = job.wanted.clone();
                job.held_since = now;
                job.generation.0 += 1;
                job.phase = Phase::Starting;
                job.clock.started(now);
                self.unsettled.remove(&id);
                let (generation, allocation) = (job.generation, job.held.clone());
                effects.push(Effect::Start { job: id, generation, allocation });
            }
        }
        effects
    }
}

/// Whether a job has been sent somewhere and does not train there yet.
fn is_underway(job: &Job) -> bool {
    let is_there = job.phase == Phase::Running && job.held == job.wanted;
    !job.wanted.is_empty() && !is_there
}

/// Whether a plan may change what a job is to hold: it is not on its way, and may be stopped if it runs
/// and has run for long enough.
fn may_move(job: &Job, now: Timestamp) -> bool {
    match job.phase {
        Phase::Running => job.can_come_back() && job.spec.preemptible && job.stay(now).is_none(),
        // Who is being suspended may be wanted again.
        Phase::Waiting | Phase::Stopping => job.wanted.is_empty(),
        Phase::Starting | Phase::Ended(_) => false,
    }
}

/// Whether a job may start on these GPUs, once they have no holder.
fn suits(ledger: &Ledger, job: &Job, allocation: &Allocation) -> bool {
    ledger.open_type(allocation).is_some_and(|gpu_type| job.accepts(gpu_type, allocation))
}

fn take_if_free(room: &mut BTreeMap<NodeId, u32>, allocation: &Allocation) -> bool {
    let is_free =
        |(node, share): (NodeId, GpuShare)| room.get(&node).is_some_and(|&free| free >= share.n_replicas());
    let fits = allocation.iter().all(is_free);
    if fits {
        take(room, allocation);
    }
    fits
}

fn take(room: &mut BTreeMap<NodeId, u32>, allocation: &Allocation) {
    for (node, share) in allocation.iter() {
        if let Some(free) = room.get_mut(&node) {
            *free = free.saturating_sub(share.n_replicas());
        }
    }
}

/// A round's own seed: neighbours in number are no neighbours in seed.
pub(crate) fn mixed(seed: Seed, cycle: CycleId) -> Seed {
    Seed(scramble(seed.0 ^ cycle.0.wrapping_mul(GOLDEN)))
}
