//! A job as the scheduler remembers it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pollux_model::{AgentReport, Allocation, GoodputModel, GpuType, JobCurves, Timestamp};
use pollux_policy::{Decision, Reason};

use crate::effect::{CycleId, Generation};
use crate::input::JobSpec;
use crate::restart::RestartClock;
use crate::state::{Curves, JobRecord};

/// The time that a budget of moves is for.
const HOUR: Duration = Duration::from_hours(1);

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It holds nothing.
    Waiting,
    /// It holds its GPUs and is on its way to its first step.
    Starting,
    /// It trains.
    Running,
    /// It was asked to leave and holds its GPUs until it has.
    Stopping,
    /// It is over.
    Ended(Outcome),
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All its work is done.
    Finished,
    /// It died too often.
    Failed,
    /// Its user wanted it no more.
    Cancelled,
}

/// Why a job holds what it holds: the policy's reason, and when it was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The round.
    pub cycle: CycleId,
    /// When the round began.
    pub at: Timestamp,
    /// What was decided.
    pub decision: Decision,
    /// What it was to hold.
    pub allocation: Allocation,
    /// Why.
    pub reason: Reason,
}

/// Until when plans leave a job where it is, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// Until when; the latest time of all if for ever.
    pub until: Timestamp,
    /// Why.
    pub why: StayReason,
}

/// Why plans leave a job where it is for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StayReason {
    /// Its minimum run time is not over.
    MinRuntime,
    /// It was moved as often within an hour as its user allows.
    ResizeBudget,
}

/// A job as others may see it.
#[derive(Clone, Copy, Debug)]
pub struct JobView<'a> {
    /// What its user said.
    pub spec: &'a JobSpec,
    /// Where it is in its life.
    pub phase: Phase,
    /// GPUs it holds, until the last of its processes is gone.
    pub holds: &'a Allocation,
    /// Its latest start; 0 before the first.
    pub generation: Generation,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// Restarts so far.
    pub restarts: u32,
    /// What a restart costs it; none before the first start.
    pub restart_cost: Option<Duration>,
    /// Failures since it last made progress.
    pub failures: u32,
    /// Until when plans leave it where it is, as of the latest input.
    pub stay: Option<Stay>,
    /// What its agent reported last.
    pub report: Option<&'a AgentReport>,
    /// Why it holds what it holds.
    pub explanation: Option<&'a Explanation>,
}

/// A job's record.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) spec: JobSpec,
    pub(crate) submitted: Timestamp,
    pub(crate) phase: Phase,
    pub(crate) generation: Generation,
    /// What the ledger has under its name.
    pub(crate) held: Allocation,
    pub(crate) held_since: Timestamp,
    /// What it is to hold.
    pub(crate) wanted: Allocation,
    /// GPU-seconds of former holdings.
    pub(crate) attained: f64,
    pub(crate) clock: RestartClock,
    /// When plans moved or stopped it, the latest last, as many as its budget of an hour has.
    pub(crate) resizes: Vec<Timestamp>,
    pub(crate) suspended: bool,
    pub(crate) cancelled: bool,
    pub(crate) failures: u32,
    pub(crate) not_before: Timestamp,
    pub(crate) report: Option<AgentReport>,
    pub(crate) curves: Arc<JobCurves>,
    /// The furthest it had come when it failed.
    pub(crate) progress_at_failure: f64,
    /// Whether any of its starts came as far as training.
    pub(crate) has_trained: bool,
    /// The latest start that lost a part of itself with a node; 0 if none has.
    pub(crate) lost_in: Generation,
    pub(crate) explanation: Option<Explanation>,
}

impl Job {
    pub(crate) fn new(spec: JobSpec, now: Timestamp) -> Self {
        Self {
            spec,
            submitted: now,
            phase: Phase::Waiting,
            generation: Generation(0),
            held: Allocation::none(),
            held_since: now,
            wanted: Allocation::none(),
            attained: 0.0,
            clock: RestartClock::default(),
            resizes: Vec::new(),
            suspended: false,
            cancelled: false,
            failures: 0,
            not_before: now,
            report: None,
            curves: Arc::default(),
            progress_at_failure: 0.0,
            has_trained: false,
            lost_in: Generation(0),
            explanation: None,
        }
    }

    pub(crate) fn record(&self) -> JobRecord {
        let Self {
            spec,
            submitted,
            phase,
            generation,
            held,
            held_since,
            wanted,
            attained,
            clock,
            resizes,
            suspended,
            cancelled,
            failures,
            not_before,
            report,
            curves,
            progress_at_failure,
            has_trained,
            lost_in,
            explanation,
        } = self;
        JobRecord {
            spec: spec.clone(),
            submitted: *submitted,
            phase: *phase,
            generation: *generation,
            held: held.clone(),
            held_since: *held_since,
            wanted: wanted.clone(),
            attained: *attained,
            clock: *clock,
            resizes: resizes.clone(),
            suspended: *suspended,
            cancelled: *cancelled,
            failures: *failures,
            not_before: *not_before,
            report: report.clone(),
            curves: Curves::of(curves),
            progress_at_failure: *progress_at_failure,
            has_trained: *has_trained,
            lost_in: *lost_in,
            explanation: explanation.clone(),
        }
    }

    pub(crate) fn of(record: JobRecord) -> Self {
        Self {
            spec: record.spec,
            submitted: record.submitted,
            phase: record.phase,
            generation: record.generation,
            held: record.held,
            held_since: record.held_since,
            wanted: record.wanted,
            attained: record.attained,
            clock: record.clock,
            resizes: record.resizes,
            suspended: record.suspended,
            cancelled: record.cancelled,
            failures: record.failures,
            not_before: record.not_before,
            report: record.report,
            curves: record.curves.tables(),
            progress_at_failure: record.progress_at_failure,
            has_trained: record.has_trained,
            lost_in: record.lost_in,
            explanation: record.explanation,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    /// Whether it has reported, and so can come back from a restart.
    pub(crate) fn can_come_back(&self) -> bool {
        self.report.is_some()
    }

    /// Whether it is tried again after it lost its place by no fault of its own, or before it trained: it has
    /// reported, its script is known to report, or there is nothing yet to lose.
    pub(crate) fn may_begin_again(&self) -> bool {
        self.can_come_back() || self.spec.adapts || !self.has_trained
    }

    /// Whether plans are made for it now: not while it waits after a failure, nor if it will not come back.
    pub(crate) fn is_planned(&self, now: Timestamp) -> bool {
        let is_lost = self.phase == Phase::Stopping && !self.may_begin_again();
        !self.has_ended() && !self.suspended && !self.cancelled && !is_lost && self.not_before <= now
    }

    /// Whether it is to start on GPUs that it does not hold yet.
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self.phase, Phase::Waiting | Phase::Stopping) && !self.wanted.is_empty()
    }

    /// GPUs it asks for, these and no others, as long as nobody knows whether it reports. None if it adapts.
    pub(crate) fn rigid_request(&self) -> Option<u32> {
        let asked = self.spec.request.map_or(self.spec.min_gpus, |request| request.gpus);
        (!self.can_come_back() && !self.spec.adapts).then_some(asked)
    }

    /// Whether it may start on so many GPUs of a type, as its user has it now.
    pub(crate) fn accepts(&self, gpu_type: &GpuType, allocation: &Allocation) -> bool {
        let spec = &self.spec;
        let limits = (spec.min_gpus, spec.max_gpus.unwrap_or(u32::MAX));
        let (least, most) = self.rigid_request().map_or(limits, |asked| (asked, asked));
        let fits = allocation.placement().is_some_and(|at| (least..=most).contains(&at.n_replicas()));
        fits && (spec.types.is_empty() || spec.types.contains(gpu_type))
    }

    /// Until when plans leave it where it is, if for any time at all: its minimum run time is not over, or it was moved
    /// too often within an hour. Not whether it may be stopped at all.
    pub(crate) fn stay(&self, now: Timestamp) -> Option<Stay> {
        if self.held.is_empty() {
            return None;
        }
        let runs = Stay { until: self.held_since + self.spec.min_runtime, why: StayReason::MinRuntime };
        let budget = self.spec.max_resizes_per_hour.map(|most| {
            let oldest = self.resizes.len().checked_sub(most as usize).and_then(|at| self.resizes.get(at));
            // None at all is allowed with a budget of nothing, and an hour after the oldest of as many as are allowed.
            let never = if most == 0 { Timestamp::from_micros(u64::MAX) } else { Timestamp::ZERO };
            Stay { until: oldest.map_or(never, |at| *at + HOUR), why: StayReason::ResizeBudget }
        });
        let latest =
            budget.into_iter().fold(runs, |one, other| if other.until > one.until { other } else { one });
        (latest.until > now).then_some(latest)
    }

    /// Counts that a plan moves or stops it.
    pub(crate) fn count_resize(&mut self, now: Timestamp) {
        let Some(most) = self.spec.max_resizes_per_hour else { return };
        self.resizes.retain(|at| *at + HOUR > now);
        self.resizes.push(now);
        let surplus = self.resizes.len().saturating_sub(most as usize);
        self.resizes.drain(..surplus);
    }

    /// Counts a failure, and says whether there were too many without progress in between.
    pub(crate) fn count_failure(&mut self) -> bool {
        self.failures = self.failures.saturating_add(1);
        let reached = self.report.as_ref().map_or(0.0, |report| report.progress);
        // Who goes back to an older state and dies a little earlier has made no progress.
        self.progress_at_failure = self.progress_at_failure.max(reached);
        self.failures > self.spec.retries
    }

    /// GPU-seconds held so far.
    pub(crate) fn attained_at(&self, now: Timestamp) -> f64 {
        self.attained + self.held.gpus() * (now - self.held_since).as_secs_f64()
    }

    /// Counts what it held until now, before that changes.
    pub(crate) fn settle(&mut self, now: Timestamp) {
        self.attained = self.attained_at(now);
        self.held_since = now;
    }

    pub(crate) fn restarts(&self) -> u32 {
        self.generation.0.saturating_sub(1)
    }

    /// Takes in a report and the models it leads to; tables of models that did not change to speak of are kept.
    pub(crate) fn learn(
        &mut self,
        report: AgentReport,
        models: BTreeMap<GpuType, GoodputModel>,
        sizes: (u32, u32),
    ) {
        let same = |(gpu_type, model)| {
            self.curves.on(gpu_type).is_some_and(|curve| is_as_good(curve.model(), model))
        };
        if models.len() != self.curves.iter().count() || !models.iter().all(same) {
            let mut curves = JobCurves::default();
            curves.update(models, sizes.0, sizes.1);
            self.curves = Arc::new(curves);
        }
        if report.progress > self.progress_at_failure {
            self.failures = 0;
        }
        self.report = Some(report);
    }

    pub(crate) fn view(&self, now: Timestamp) -> JobView<'_> {
        JobView {
            spec: &self.spec,
            phase: self.phase,
            holds: &self.held,
            generation: self.generation,
            submitted: self.submitted,
            restarts: self.restarts(),
            restart_cost: self.clock.measured(),
            failures: self.failures,
            stay: self.stay(now),
            report: self.report.as_ref(),
            explanation: self.explanation.as_ref(),
        }
    }
}

/// A noise scale that moved by less than this is the same: it is known less well, and no efficiency moves as much.
const SAME_NOISE: f64 = 0.03;

/// Whether a model still stands for a newer one.
fn is_as_good(old: &GoodputModel, new: &GoodputModel) -> bool {
    let (before, after) = (old.noise().samples(), new.noise().samples());
    // Infinite noise is as near to itself as can be.
    let is_near = before.to_bits() == after.to_bits() || (after - before).abs() <= SAME_NOISE * before;
    is_near && old.params() == new.params() && old.limits() == new.limits()
}

/// Goodput by GPU type; nothing until the noise is known.
pub(crate) fn models(report: &AgentReport) -> BTreeMap<GpuType, GoodputModel> {
    let Some(noise) = &report.noise else { return BTreeMap::new() };
    let models = report.fits.iter().filter_map(|(gpu_type, fit)| {
        let model = GoodputModel::new(fit.params.clone(), noise.acted, report.limits_on(gpu_type)).ok()?;
        Some((gpu_type.clone(), model))
    });
    models.collect()
}
