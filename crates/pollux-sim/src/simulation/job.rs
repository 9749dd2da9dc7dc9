//! A job that pretends to train, with a real agent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pollux_agent::{
    Agent, AgentConfig, AgentSettings, GradientNorm, GradientSample, StepObservation, StepTiming,
};
use pollux_model::fit::History;
use pollux_model::{AgentReport, BatchLimits, BatchPlan, GpuType, Placement, Timestamp};

use super::saves::{Saved, Saves};
use crate::profile::Profile;
use pollux_model::Random;

/// A job between its first start and its last step.
pub(super) struct SimJob {
    profile: Arc<Profile>,
    /// Its epochs are so many times as long as the profile's.
    scale: f64,
    agent: Agent,
    settings: AgentSettings,
    progress: f64,
    epoch: usize,
    /// Whole steps are told to the agent; this is what is left over.
    part_step: f64,
    stretch: Option<Stretch>,
    last_report: Timestamp,
    noise: Option<(f64, Random)>,
    /// How fast nodes exchange gradients against those that were measured.
    network: f64,
    /// Whether its batch is as large as its GPUs hold, instead of what its agent decides.
    blind: bool,
    /// Whether its work is what its agent counts.
    agent_counts: bool,
    /// GPU-seconds of training, times statistical efficiency; without what was lost and done again.
    pub(super) useful_gpu_secs: f64,
    /// All progress ever made, with what was lost.
    pub(super) done: f64,
    /// What it goes back to when it dies; none where nobody dies.
    saves: Option<Box<Saves>>,
}

/// What a job loses of its speed, each from 0 to below 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Slowed {
    /// To others on its nodes.
    pub(super) by_others: f64,
    /// To a node that is slow itself.
    pub(super) by_node: f64,
}

/// A stretch of constant speed.
struct Stretch {
    since: Timestamp,
    gpu_type: GpuType,
    placement: Placement,
    slowed: Slowed,
    plan: BatchPlan,
    timing: StepTiming,
    step_secs: f64,
    /// Progress of one step.
    gain: f64,
    efficiency: f64,
    noise_scale: f64,
}

/// What a job has to say when it is looked at.
#[derive(Default)]
pub(super) struct Said {
    /// It is done.
    pub(super) finished: bool,
    /// Its agent reported.
    pub(super) report: Option<AgentReport>,
    /// Its batch is another, or a new epoch changed its worth: samples of a step, and what each is worth.
    pub(super) batch: Option<(u64, f64)>,
    /// An epoch ended, and so many have by now.
    pub(super) epochs: Option<usize>,
}

impl SimJob {
    /// A job with nothing done, and `scale` times the profile's work before it. `noise` is the spread of what it measures, and where chance comes from.
    pub(super) fn new(
        profile: Arc<Profile>,
        scale: f64,
        limits: BatchLimits,
        history: BTreeMap<GpuType, History>,
        noise: Option<(f64, Random)>,
    ) -> Self {
        let config = AgentConfig { history, ..AgentConfig::new(limits) };
        let settings = config.settings.clone();
        let mut agent = Agent::new(config);
        for gpu_type in profile.gpu_types() {
            agent.limit_micro_batch(gpu_type, profile.limits_on(gpu_type).micro_max());
        }
        Self {
            profile,
            scale,
            agent,
            settings,
            progress: 0.0,
            epoch: 0,
            part_step: 0.0,
            stretch: None,
            last_report: Timestamp::ZERO,
            noise,
            network: 1.0,
            blind: false,
            agent_counts: false,
            useful_gpu_secs: 0.0,
            done: 0.0,
            saves: None,
        }
    }

    /// The same job, which saves its state this often.
    pub(super) fn saving(mut self, every: Duration) -> Self {
        self.saves = Some(Box::new(Saves::new(every, self.state())));
        self
    }

    /// What it goes back to when it dies, and what it lost so far.
    pub(super) fn saves(&self) -> Option<&Saves> {
        self.saves.as_deref()
    }

    /// What a checkpoint holds.
    fn state(&self) -> Saved {
        Saved {
            agent: self.agent.clone(),
            progress: self.progress,
            epoch: self.epoch,
            useful_gpu_secs: self.useful_gpu_secs,
        }
    }

    fn save(&mut self, now: Timestamp) {
        let state = self.saves.is_some().then(|| self.state());
        if let Some((saves, state)) = self.saves.as_mut().zip(state) {
            saves.save(now, state);
        }
    }

    /// All its processes die: what was done since it last saved is lost.
    pub(super) fn crash(&mut self, now: Timestamp) {
        self.advance(now);
        self.stretch = None;
        if let Some(saves) = &mut self.saves {
            let Saved { agent, progress, epoch, useful_gpu_secs } = saves.lose(self.progress);
            (self.agent, self.progress, self.epoch) = (agent, progress, epoch);
            self.useful_gpu_secs = useful_gpu_secs;
        }
    }

    /// On nodes that exchange gradients faster than those that were measured, or slower.
    pub(super) fn with_network(self, network: f64) -> Self {
        Self { network, ..self }
    }

    /// With the batch of highest throughput.
    pub(super) fn with_blind_batch(self, blind: bool) -> Self {
        Self { blind, ..self }
    }

    /// The same job, whose agent reports this often.
    pub(super) fn reporting(mut self, every: Option<Duration>) -> Self {
        if let Some(every) = every {
            self.settings.report_interval = every;
            self.agent = self.agent.reporting(every);
        }
        self
    }

    /// The same job, whose work is what its agent counts.
    pub(super) fn counting(self, agent_counts: bool) -> Self {
        Self { agent_counts, ..self }
    }

    /// Progress as the agent counts it, in the profile's own steps; of the step that is under way too.
    fn counted(&self, plan: BatchPlan) -> f64 {
        (self.agent.progress() + self.part_step * self.agent.gain(plan)) / self.scale
    }

    /// The batch on these GPUs: what the agent decides, or the largest they hold.
    fn decide(&mut self, gpu_type: &GpuType, placement: Placement) -> Option<BatchPlan> {
        let decided = self.agent.decide(gpu_type, placement)?.plan;
        if !self.blind {
            return Some(decided);
        }
        let limits = self.profile.limits();
        let share = limits.max().0 / u64::from(placement.n_replicas());
        let micro_batch = u32::try_from(share).unwrap_or(u32::MAX).min(limits.micro_max());
        let largest = BatchPlan::even(placement, micro_batch, 0);
        Some(largest.filter(|plan| plan.global() >= limits.min()).unwrap_or(decided))
    }

    /// Progress in the profile's own steps, whatever the scale.
    pub(super) fn progress(&self) -> f64 {
        self.progress
    }

    pub(super) fn epoch(&self) -> usize {
        self.epoch
    }

    /// Training begins on these GPUs. None if they cannot be used.
    pub(super) fn begin(
        &mut self,
        now: Timestamp,
        gpu_type: &GpuType,
        placement: Placement,
        slowed: Slowed,
    ) -> Option<(u64, f64)> {
        let plan = self.decide(gpu_type, placement)?;
        self.last_report = now;
        self.part_step = 0.0;
        if let Some(saves) = &mut self.saves {
            saves.begin(now);
        }
        self.set_out(now, gpu_type.clone(), placement, slowed, plan)?;
        let stretch = self.stretch.as_ref()?;
        Some((plan.global().0, stretch.efficiency))
    }

    /// From now on at the speed that its epoch, batch and GPUs make.
    fn set_out(
        &mut self,
        now: Timestamp,
        gpu_type: GpuType,
        placement: Placement,
        slowed: Slowed,
        plan: BatchPlan,
    ) -> Option<()> {
        let mut time = self.profile.step_time(&gpu_type, placement, plan.atomic_batch())?;
        if placement.n_nodes() > 1 {
            let sync_secs = time.sync_secs / self.network;
            time.step_secs += sync_secs - time.sync_secs;
            time.sync_secs = sync_secs;
        }
        let initial = self.profile.limits().initial().0;
        let training = self.profile.training();
        let global = plan.global().0;
        let gain = training.gain(self.epoch, global, initial);
        // A slow node slows all it does, and who exchanges gradients with it is no faster.
        let compute = (time.step_secs - time.sync_secs) / (1.0 - slowed.by_node);
        let step_secs = time.iteration_secs(plan.accum_steps()) / (1.0 - slowed.by_node);
        // What others take from a job's speed shows where it waits for them: in the exchange.
        let step_secs = step_secs / (1.0 - slowed.by_others);
        let optim_secs = step_secs - compute * f64::from(plan.accum_steps());
        let timing = StepTiming {
            accum_secs: (plan.accum_steps() > 0).then_some(compute),
            optim_secs,
            sync_secs: optim_secs - compute,
            optimizer_secs: 0.0,
        };
        let noise_scale = training.noise_scale(self.epoch, global);
        let efficiency = gain * initial as f64 / global as f64;
        let since = now;
        // Progress is counted in the profile's steps, each of which takes as many as the scale says.
        let gain = if self.agent_counts { self.agent.gain(plan) } else { gain } / self.scale;
        self.stretch = Some(Stretch {
            since,
            gpu_type,
            placement,
            slowed,
            plan,
            timing,
            step_secs,
            gain,
            efficiency,
            noise_scale,
        });
        Some(())
    }

    /// Training stops; what was done is kept.
    pub(super) fn stop(&mut self, now: Timestamp) {
        self.advance(now);
        self.stretch = None;
        self.save(now);
    }

    /// It is slowed down by so much; says whether that is news.
    pub(super) fn set_slowed(&mut self, now: Timestamp, slowed: Slowed) -> bool {
        let is_news = |stretch: &Stretch| stretch.slowed != slowed;
        if !self.stretch.as_ref().is_some_and(is_news) {
            return false;
        }
        self.advance(now);
        if let Some(Stretch { gpu_type, placement, plan, .. }) = self.stretch.take() {
            let set_out = self.set_out(now, gpu_type, placement, slowed, plan);
            debug_assert!(set_out.is_some(), "it was under way before");
        }
        true
    }

    /// When it is to be looked at next: its epoch ends, it is to save, its agent wants to report or to try another batch.
    pub(super) fn next_wake(&self) -> Option<Timestamp> {
        let stretch = self.stretch.as_ref()?;
        let report = self.last_report + self.settings.report_interval;
        let state = self.agent.state();
        let explore_steps = u64::from(self.settings.explore_steps);
        let steps = match &state.exploring {
            Some(exploring) => Some(u64::from(exploring.steps_left)),
            None => explore_steps.checked_sub(state.steps_since_change),
        };
        let steps = steps.filter(|steps| *steps > 0).map(|steps| {
            let secs = (steps as f64 - self.part_step).max(0.0) * stretch.step_secs;
            // A moment later, so that the last step is whole.
            stretch.since + duration(secs) + Duration::from_micros(2)
        });
        let left = self.profile.training().epoch_end(self.epoch) - self.progress;
        let epoch_end = stretch.since + duration(left.max(0.0) * stretch.step_secs / stretch.gain);
        let next = steps.map_or(report, |steps| steps.min(report));
        let next = self.saves.as_ref().map_or(next, |saves| saves.due().min(next));
        // Time moves on, however short a step.
        Some(next.min(epoch_end).max(stretch.since + Duration::from_micros(1)))
    }

    /// Moves on to `now` and takes in what happened on the way.
    fn advance(&mut self, now: Timestamp) {
        let Some(stretch) = &mut self.stretch else { return };
        let secs = (now - stretch.since).as_secs_f64();
        stretch.since = now;
        if secs <= 0.0 {
            return;
        }
        let steps = secs / stretch.step_secs;
        self.progress += steps * stretch.gain;
        self.done += steps * stretch.gain;
        let gpu_secs = secs * f64::from(stretch.placement.n_replicas());
        self.useful_gpu_secs += gpu_secs * stretch.efficiency;
        if let Some(saves) = &mut self.saves {
            saves.unsaved_gpu_secs += gpu_secs;
        }
        self.part_step += steps;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded down")]
        let whole = self.part_step as u64;
        self.part_step -= whole as f64;
        if whole > 0 {
            let seen = observation(stretch, whole, &mut self.noise);
            self.agent.observe_run(&seen, whole);
        }
        if let Some(plan) = self.stretch.as_ref().filter(|_| self.agent_counts).map(|stretch| stretch.plan) {
            let counted = self.counted(plan);
            self.done += counted - self.progress;
            self.progress = counted;
            if let Some(stretch) = &mut self.stretch {
                stretch.gain = self.agent.gain(plan) / self.scale;
            }
        }
    }

    /// Looks after the job at the time it asked for, or at any other.
    pub(super) fn wake(&mut self, now: Timestamp) -> Said {
        self.advance(now);
        let training = self.profile.training();
        let end = training.epoch_end(self.epoch);
        // Microseconds are all the time there is: what is missing for less than two of them is done.
        let tolerance = self.stretch.as_ref().map_or(0.0, |stretch| 2e-6 * stretch.gain / stretch.step_secs);
        let mut is_decision_due = self.agent.wants_decision();
        let mut new_epoch = false;
        if self.progress >= end - tolerance {
            self.done += end - self.progress;
            self.progress = end;
            if self.epoch + 1 == training.n_epochs() {
                self.stretch = None;
                return Said { finished: true, ..Said::default() };
            }
            self.epoch += 1;
            (is_decision_due, new_epoch) = (true, true);
        }
        if self.saves.as_ref().is_some_and(|saves| saves.due() <= now) {
            self.save(now);
        }
        let mut said = Said { epochs: new_epoch.then_some(self.epoch), ..Said::default() };
        if now - self.last_report >= self.settings.report_interval {
            self.last_report = now;
            said.report = self.agent.poll(now);
            is_decision_due = true;
        }
        if is_decision_due && let Some(stretch) = self.stretch.take() {
            let Stretch { gpu_type, placement, slowed, plan: before, efficiency, .. } = stretch;
            let plan = self.decide(&gpu_type, placement).unwrap_or(before);
            if plan != before || new_epoch {
                self.part_step = if plan == before { self.part_step } else { 0.0 };
                let set_out = self.set_out(now, gpu_type, placement, slowed, plan);
                debug_assert!(set_out.is_some(), "it was under way before");
                let after = self.stretch.as_ref().map_or(efficiency, |stretch| stretch.efficiency);
                let is_news = plan != before || after.to_bits() != efficiency.to_bits();
                said.batch = is_news.then_some((plan.global().0, after));
            } else {
                self.stretch = Some(Stretch { gpu_type, placement, ..stretch });
            }
        }
        said
    }
}

/// What the agent sees of so many steps: the truth, or near it.
fn observation(stretch: &Stretch, n_steps: u64, noise: &mut Option<(f64, Random)>) -> StepObservation {
    let StepTiming { mut accum_secs, mut optim_secs, mut sync_secs, .. } = stretch.timing;
    let mut noise_scale = stretch.noise_scale;
    if let Some((spread, random)) = noise {
        // The mean of many is nearer to the truth.
        let spread = *spread / (n_steps as f64).sqrt();
        let factor = libm::exp(spread * random.normal());
        accum_secs = accum_secs.map(|secs| secs * factor);
        (optim_secs, sync_secs) = (optim_secs * factor, sync_secs * factor);
        noise_scale *= libm::exp(spread * random.normal());
    }
    let batch = stretch.plan.global().0 as f64;
    let n_parts = f64::from(stretch.placement.n_replicas()) * f64::from(stretch.plan.accum_steps() + 1);
    // Where there is one part alone, its two halves are compared.
    let small = batch / n_parts.max(2.0);
    let norm = |batch: f64| GradientNorm { batch, sqr_norm: 1.0 + noise_scale / batch };
    StepObservation {
        gpu_type: stretch.gpu_type.clone(),
        placement: stretch.placement,
        plan: stretch.plan,
        timing: Some(StepTiming { accum_secs, optim_secs, sync_secs, optimizer_secs: 0.0 }),
        gradient: Some(GradientSample::Pair { small: norm(small), big: norm(batch) }),
    }
}

/// Rounded up, so that what is waited for has happened.
fn duration(secs: f64) -> Duration {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
    let micros = (secs * 1e6).ceil() as u64;
    Duration::from_micros(micros)
}
