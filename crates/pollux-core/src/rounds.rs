//! Rounds: asking for a plan, and carrying it out in two phases.

use std::collections::{BTreeMap, BTreeSet};

use pollux_model::{Allocation, JobId, NodeId, Timestamp};
use pollux_policy::{Carried, Certificate, Plan, Seed};

use crate::effect::{CycleId, Effect};
use crate::input::Refused;
use crate::job::{Explanation, Job, Phase};
use crate::scheduler::{Effects, Scheduler};
use crate::view::View;

/// Plans asked for and awaited.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    pub(crate) latest: CycleId,
    /// The round a plan is awaited for, and when it began.
    pub(crate) awaited: Option<(CycleId, Timestamp)>,
    /// When the latest round began.
    pub(crate) began: Option<Timestamp>,
    /// Something happened since.
    pub(crate) is_stale: bool,
    pub(crate) wake_at: Option<Timestamp>,
    pub(crate) carried: Carried,
    pub(crate) certificate: Option<Certificate>,
}

impl Scheduler {
    /// Something happened that a plan should take into account: at once, or at the next round.
    pub(crate) fn happened(&mut self, now: Timestamp) -> Vec<Effect> {
        self.rounds.is_stale = true;
        if self.config.cadence.on_events && self.rounds.awaited.is_none() {
            return self.solve(now);
        }
        self.wake(now).into_iter().collect()
    }

    /// Asks to be woken for the next round, if anybody is there for it.
    fn wake(&mut self, now: Timestamp) -> Option<Effect> {
        if self.active.is_empty() {
            return None;
        }
        let every = u64::try_from(self.config.cadence.every.as_micros()).unwrap_or(u64::MAX).max(1);
        let multiple = |n: u64| Timestamp::from_micros(n.saturating_mul(every));
        let mut next = multiple(now.as_micros().div_ceil(every));
        if self.rounds.began.is_some_and(|began| next <= began) {
            next = multiple(next.as_micros() / every + 1);
        }
        if self.rounds.wake_at.is_some_and(|at| now <= at && at <= next) {
            return None;
        }
        self.rounds.wake_at = Some(next);
        Some(Effect::WakeAt(next))
    }

    pub(crate) fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        let is_due = self.rounds.wake_at.is_none_or(|at| at <= now)
            || (self.config.cadence.on_events && self.rounds.is_stale);
        if self.rounds.awaited.is_some() || !is_due {
            return self.wake(now).into_iter().collect();
        }
        self.solve(now)
    }

    /// Asks for a plan.
    fn solve(&mut self, now: Timestamp) -> Vec<Effect> {
        self.rounds.began = Some(now);
        self.rounds.wake_at = None;
        let wake = self.wake(now);
        let jobs = self.active.iter().map(|id| (*id, &self.jobs[id]));
        let (config, ledger, groups) = (&self.config, &self.ledger, &self.groups);
        let view = View { now, config, ledger, groups, histories: &self.histories };
        let mut effects = Vec::new();
        if let Ok(snapshot) = view.snapshot(jobs)
            && !snapshot.jobs().is_empty()
        {
            let cycle = CycleId(self.rounds.latest.0 + 1);
            self.rounds.latest = cycle;
            self.rounds.awaited = Some((cycle, now));
            self.rounds.is_stale = false;
            let snapshot = Box::new(snapshot.carrying(self.rounds.carried.clone()));
            effects.push(Effect::Solve { cycle, snapshot, seed: mixed(self.config.seed, cycle) });
        }
        effects.extend(wake);
        effects
    }

    /// Carries out what still fits of a plan: the world may have moved on.
    pub(crate) fn carry_out(&mut self, now: Timestamp, cycle: CycleId, plan: Plan) -> Effects {
        let awaited = self.rounds.awaited.filter(|(awaited, _)| *awaited == cycle);
        let (_, at) = awaited.ok_or(Refused::UnknownCycle(cycle))?;
        self.rounds.awaited = None;
        self.rounds.carried = plan.carried;
        self.rounds.certificate = plan.certificate;
        let mut room = self.ledger.capacities();
        let mut comers = Vec::new();
        let mut planned = BTreeSet::new();
        for answer in plan.jobs {
            let id = answer.job;
            let Some(job) = self.jobs.get_mut(&id).filter(|job| job.is_planned(now)) else { continue };
            planned.insert(id);
            let is_free = may_move(job);
            let keeps = answer.allocation == job.wanted || !is_free;
            let wanted = if keeps { job.wanted.clone() } else { answer.allocation.clone() };
            job.explanation = Some(Explanation {
                cycle,
                at,
                decision: answer.decision,
                allocation: answer.allocation,
                reason: answer.reason,
            });
            if keeps {
                take(&mut room, &wanted);
            } else if wanted.is_empty() {
                job.wanted = wanted;
                self.unsettled.insert(id);
            } else {
                comers.push((id, wanted));
            }
        }
        for (id, job) in self.active.iter().map(|id| (*id, &self.jobs[id])) {
            if !planned.contains(&id) {
                take(&mut room, &job.wanted);
            }
        }
        for (id, wanted) in comers {
            let fits = self.ledger.is_open(&wanted) && has_room(&room, &wanted);
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            if fits {
                take(&mut room, &wanted);
                job.wanted = wanted;
            } else if has_room(&room, &job.wanted) {
                // What was planned is gone; it stays as it is until the next plan.
                take(&mut room, &job.wanted);
            } else {
                job.wanted = Allocation::none();
            }
            self.unsettled.insert(id);
        }
        let mut effects = Vec::new();
        for id in self.unsettled.clone() {
            effects.extend(self.ask_to_leave(now, id));
        }
        effects.extend(self.start_waiting(now));
        if self.config.cadence.on_events && self.rounds.is_stale {
            effects.extend(self.solve(now));
        }
        Ok(effects)
    }

    /// Does what can be done now to bring one job to what it is to hold.
    pub(crate) fn reconcile(&mut self, now: Timestamp, id: JobId) -> Vec<Effect> {
        self.unsettled.insert(id);
        let mut effects: Vec<Effect> = self.ask_to_leave(now, id).into_iter().collect();
        effects.extend(self.start_waiting(now));
        effects
    }

    /// A job that holds other GPUs than it should is asked to leave them.
    fn ask_to_leave(&mut self, now: Timestamp, id: JobId) -> Option<Effect> {
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
            if job.wanted.is_empty() || !self.ledger.is_open(&job.wanted) {
                job.wanted = Allocation::none();
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

/// Whether a plan may change what a job is to hold: it is not on its way, and can come back from a stop.
fn may_move(job: &Job) -> bool {
    match job.phase {
        Phase::Running => job.held == job.wanted && job.can_come_back(),
        // Who is being suspended may be wanted again.
        Phase::Waiting | Phase::Stopping => job.wanted.is_empty(),
        Phase::Starting | Phase::Ended(_) => false,
    }
}

fn has_room(room: &BTreeMap<NodeId, u32>, allocation: &Allocation) -> bool {
    allocation.iter().all(|(node, share)| room.get(&node).is_some_and(|&free| free >= share.n_replicas()))
}

fn take(room: &mut BTreeMap<NodeId, u32>, allocation: &Allocation) {
    for (node, share) in allocation.iter() {
        if let Some(free) = room.get_mut(&node) {
            *free = free.saturating_sub(share.n_replicas());
        }
    }
}

/// A round's own seed: neighbours in number are no neighbours in seed.
fn mixed(seed: Seed, cycle: CycleId) -> Seed {
    let mut bits = seed.0 ^ cycle.0.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    Seed(bits ^ (bits >> 31))
}
