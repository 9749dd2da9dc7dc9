//! The agent: one job's brain, as a state machine.

use std::collections::BTreeMap;
use std::time::Duration;

use pollux_model::fit::{Fit, FitRequest, History, fit};
use pollux_model::{
    AgentReport, BatchLimits, BatchPlan, GoodputModel, GpuType, NoiseScale, Placement, Timestamp,
};

use crate::batching::{self, BatchDecision, BatchReason};
use crate::observation::{GradientSpace, StepObservation};
use crate::rules::{LearningRateRule, RuleInput};
use crate::settings::AgentSettings;
use crate::state::{AgentState, Exploring, InvalidState};

/// More steps at once than any job takes: counts stay far from the ends of their ranges.
const MOST_STEPS: u64 = 1 << 40;

/// Times that a rule which follows the progress is asked within a run of equal steps.
const MOST_PARTS: u64 = 1_024;

/// What an agent is told when it starts.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// Batches the job may use.
    pub limits: BatchLimits,
    /// How the learning rate follows the batch.
    pub rule: LearningRateRule,
    /// The space gradients are measured in.
    pub space: GradientSpace,
    /// Earlier jobs of the same application, per GPU type.
    pub history: BTreeMap<GpuType, History>,
    /// Smoothing, limits, exploration.
    pub settings: AgentSettings,
}

impl AgentConfig {
    /// `limits` with the default rule (`AdaScale`, plain gradients), no history and default settings.
    pub fn new(limits: BatchLimits) -> Self {
        Self {
            limits,
            rule: LearningRateRule::default(),
            space: GradientSpace::default(),
            history: BTreeMap::new(),
            settings: AgentSettings::default(),
        }
    }
}

/// The job side of Pollux: learns from steps, answers with batches, learning rates and reports.
///
/// It never reads a clock, starts a thread or fails: what it cannot use it leaves out.
///
/// ```
/// use pollux_agent::{Agent, AgentConfig, StepObservation, StepTiming};
/// use pollux_model::{BatchLimits, GpuType, Placement, Timestamp};
///
/// let mut agent = Agent::new(AgentConfig::new(BatchLimits::new(128, 1_024, 32, 256).unwrap()));
/// let gpu_type = GpuType::new("t4");
/// let plan = agent.decide(&gpu_type, Placement::ALONE).unwrap().plan;
/// assert_eq!(plan.global().0, 128);
///
/// let timing = StepTiming { accum_secs: None, optim_secs: 0.1, sync_secs: 0.0, optimizer_secs: 0.0 };
/// for _ in 0..10 {
///     agent.observe(&StepObservation {
///         gpu_type: gpu_type.clone(),
///         placement: Placement::ALONE,
///         plan,
///         timing: Some(timing),
///         gradient: None,
///     });
/// }
/// let report = agent.poll(Timestamp::from_secs(60)).unwrap();
/// assert_eq!(report.progress, 10.0);
/// assert!(report.fits.contains_key(&gpu_type));
/// ```
#[derive(Clone, Debug)]
pub struct Agent {
    config: AgentConfig,
    state: AgentState,
}

impl Agent {
    /// A job's first start.
    pub fn new(config: AgentConfig) -> Self {
        Self { config, state: AgentState::default() }
    }

    /// A later start: goes on exactly where the saved agent stood.
    pub fn restore(config: AgentConfig, state: AgentState) -> Result<Self, InvalidState> {
        state.validate()?;
        Ok(Self { config, state })
    }

    /// The same agent, which reports this often.
    #[must_use]
    pub fn reporting(mut self, every: Duration) -> Self {
        self.config.settings.report_interval = every;
        self
    }

    /// Everything to be saved with a checkpoint.
    pub fn state(&self) -> &AgentState {
        &self.state
    }

    /// Learns from one optimizer step.
    pub fn observe(&mut self, step: &StepObservation) {
        self.observe_run(step, 1);
    }

    /// Learns from `n_steps` equal optimizer steps: the same as so many calls of [`Agent::observe`], up to rounding,
    /// in a time that grows with the measured blocks of gradients and not with the steps.
    ///
    /// Two limits keep it short. More than 2^40 steps count as 2^40. A user's own learning-rate rule is asked at
    /// most 1,024 times between two changes of the noise scale: for every step, unless gradients are rare.
    pub fn observe_run(&mut self, step: &StepObservation, n_steps: u64) {
        let n_steps = n_steps.min(MOST_STEPS);
        let state = &mut self.state;
        if state.profile.observe(step, n_steps) {
            state.most_replicas = state.most_replicas.max(step.placement.n_replicas());
        }
        let scale = step.plan.global().0 as f64 / self.config.limits.initial().0 as f64;
        let mut steps = state.noise.begin(scale, self.config.space, step.gradient.as_ref(), n_steps);
        while let Some(mut left) = self.state.noise.advance(&self.config.settings, &mut steps) {
            let part = if self.config.rule.sees_progress() { left.div_ceil(MOST_PARTS) } else { left };
            while left > 0 {
                self.progress_by(step.plan, part.min(left));
                left -= part.min(left);
            }
        }
    }

    /// Counts steps that all see the same noise scale, and moves the learning rate.
    fn progress_by(&mut self, plan: BatchPlan, n_steps: u64) {
        let gain = self.gain(plan);
        let state = &mut self.state;
        state.progress += gain * n_steps as f64;
        state.samples = state.samples.saturating_add(plan.global().0.saturating_mul(n_steps));
        state.steps_since_change = state.steps_since_change.saturating_add(n_steps);
        if let Some(exploring) = &mut state.exploring
            && exploring.plan == plan
        {
            let count = u32::try_from(n_steps).unwrap_or(u32::MAX);
            exploring.steps_left = exploring.steps_left.saturating_sub(count);
        }
        self.move_learning_rate(plan, n_steps);
    }

    /// Steps at the initial batch that one step with this plan is worth, as far as is known.
    pub fn gain(&self, plan: BatchPlan) -> f64 {
        let initial = self.config.limits.initial();
        match self.state.noise.acted() {
            Some(noise) => noise.gain(initial, plan.global()),
            // Nothing known: count on no help from the larger batch.
            None => (plan.global().0 as f64 / initial.0 as f64).min(1.0),
        }
    }

    /// What the user's learning rate is to be multiplied by for the next step.
    pub fn learning_rate_factor(&self) -> f64 {
        self.state.learning_rate_factor
    }

    /// The noise scale learning rate and batch are set by.
    pub fn noise_scale(&self) -> Option<NoiseScale> {
        self.state.noise.acted()
    }

    /// Work done, in steps at the initial batch size.
    pub fn progress(&self) -> f64 {
        self.state.progress
    }

    /// Where the learning-rate rule wants the factor; nothing if it gave no usable number.
    fn wanted_factor(&self, plan: BatchPlan) -> Option<f64> {
        self.config.rule.factor(&RuleInput {
            scale: plan.global().0 as f64 / self.config.limits.initial().0 as f64,
            gain: self.gain(plan),
            noise_scale: self.noise_scale().map(NoiseScale::samples),
            progress: self.state.progress,
            samples: self.state.samples as f64,
        })
    }

    /// Some steps towards the wanted factor, no further than the warm-up allows.
    fn move_learning_rate(&mut self, plan: BatchPlan, n_steps: u64) {
        let Some(wanted) = self.wanted_factor(plan) else { return };
        let reach = libm::exp2(n_steps as f64 / f64::from(self.config.settings.warm_up_steps.max(1)));
        let factor = &mut self.state.learning_rate_factor;
        *factor = if self.config.rule.warms_up_itself() {
            wanted
        } else {
            wanted.clamp(*factor / reach, *factor * reach)
        };
    }

    /// Chooses the batch for this allocation: at a start, after a resize, between epochs, and whenever
    /// [`Agent::wants_decision`] says so. Nothing where no batch keeps the limits on it.
    pub fn decide(&mut self, gpu_type: &GpuType, placement: Placement) -> Option<BatchDecision> {
        let before = self.state.plan;
        let (plan, reason) = self.choose(gpu_type, placement)?;
        let changed = before != Some(plan);
        let state = &mut self.state;
        if changed || state.placement != Some(placement) || state.gpu_type.as_ref() != Some(gpu_type) {
            state.steps_since_change = 0;
        }
        state.plan = Some(plan);
        state.placement = Some(placement);
        state.gpu_type = Some(gpu_type.clone());
        // A smaller batch bears a smaller learning rate only, and at once; a larger one is warmed up to.
        if before.is_some_and(|before| plan.global() < before.global())
            && let Some(wanted) = self.wanted_factor(plan)
        {
            self.state.learning_rate_factor = self.state.learning_rate_factor.min(wanted);
        }
        Some(BatchDecision { plan, changed, reason })
    }

    fn choose(&mut self, gpu_type: &GpuType, placement: Placement) -> Option<(BatchPlan, BatchReason)> {
        let limits = self.limits_on(gpu_type);
        let state = &self.state;
        let moved = state.placement != Some(placement) || state.gpu_type.as_ref() != Some(gpu_type);
        let experiment = state.exploring;
        if let Some(experiment) = experiment
            && !moved
            && experiment.steps_left > 0
        {
            return Some((experiment.plan, BatchReason::Explore));
        }
        let Some(base) = experiment.map_or(state.plan, |experiment| Some(experiment.before)) else {
            return Some((batching::initial_plan(&limits, placement)?, BatchReason::Initial));
        };
        let current = if !moved && limits.allows(placement, base) {
            base
        } else {
            batching::carried_over(&limits, base, placement)?
        };
        // Nothing is given up before it is sure that these GPUs can be used.
        self.state.exploring = None;
        if let Some(plan) = self.plan_to_explore(&limits, gpu_type, placement, current, moved) {
            let steps_left = self.config.settings.explore_steps;
            self.state.exploring = Some(Exploring { plan, before: current, steps_left });
            return Some((plan, BatchReason::Explore));
        }
        let settled = self.state.steps_since_change >= u64::from(self.config.settings.batch_change_steps);
        if (moved || settled)
            && let Some(model) = self.model_on(gpu_type)
            && let Some((plan, factor)) =
                batching::better_within_reach(&self.config.settings, &model, placement, current)
        {
            return Some((plan, BatchReason::Better { factor }));
        }
        let reason = if moved {
            BatchReason::NewPlacement
        } else if experiment.is_some() {
            BatchReason::Explored
        } else if limits.is_fixed() {
            BatchReason::OnlyChoice
        } else {
            BatchReason::Keep
        };
        Some((current, reason))
    }

    /// A plan worth trying for its timing, once the present one is timed.
    fn plan_to_explore(
        &self,
        limits: &BatchLimits,
        gpu_type: &GpuType,
        placement: Placement,
        current: BatchPlan,
        moved: bool,
    ) -> Option<BatchPlan> {
        let settings = &self.config.settings;
        let enough_steps = u64::from(settings.explore_steps);
        let timed = self.state.profile.micro_batches(gpu_type, enough_steps / 2);
        let known = timed.len() >= settings.explore_micro_batches as usize;
        if moved || known || self.state.steps_since_change < enough_steps {
            return None;
        }
        batching::exploring_plan(settings, limits, placement, current, &timed)
    }

    /// Whether a new decision is due before the next epoch: an experiment is over, or one can begin.
    pub fn wants_decision(&self) -> bool {
        let state = &self.state;
        let (Some(plan), Some(placement), Some(gpu_type)) = (state.plan, state.placement, &state.gpu_type)
        else {
            return false;
        };
        if let Some(exploring) = &state.exploring {
            return exploring.steps_left == 0;
        }
        self.plan_to_explore(&self.limits_on(gpu_type), gpu_type, placement, plan, false).is_some()
    }

    /// Remembers that micro-batches above `most` do not fit in this type's memory.
    pub fn limit_micro_batch(&mut self, gpu_type: &GpuType, most: u32) {
        let limit = self.state.micro_max.entry(gpu_type.clone()).or_insert(u32::MAX);
        *limit = (*limit).min(most.max(self.config.limits.micro_min()));
        self.state.exploring = None;
    }

    /// The limits on this type of GPU, with what its memory was found to hold.
    pub fn limits_on(&self, gpu_type: &GpuType) -> BatchLimits {
        let limits = self.config.limits;
        let most =
            self.state.micro_max.get(gpu_type).map_or(limits.micro_max(), |&m| m.min(limits.micro_max()));
        limits.with_micro_max(most).unwrap_or(limits)
    }

    /// The goodput model on this type, once step times and noise are known.
    pub fn model_on(&self, gpu_type: &GpuType) -> Option<GoodputModel> {
        let params = self.state.fits.get(gpu_type)?.params.clone();
        GoodputModel::new(params, self.noise_scale()?, self.limits_on(gpu_type)).ok()
    }

    /// Refits and reports if it is time. Takes some ten to a few hundred microseconds where there is something new to
    /// learn (`cargo xtask bench agent`): it belongs off the training path.
    pub fn poll(&mut self, now: Timestamp) -> Option<AgentReport> {
        let due =
            self.state.last_report.is_none_or(|last| now - last >= self.config.settings.report_interval);
        if !due || self.state.profile.entries.is_empty() {
            return None;
        }
        self.state.last_report = Some(now);
        self.refit();
        Some(self.report())
    }

    /// Refits step times wherever there is something new to learn.
    pub fn refit(&mut self) {
        for gpu_type in self.state.profile.gpu_types() {
            let revision = self.state.profile.revision(&gpu_type);
            if self.state.fit_revisions.get(&gpu_type).is_some_and(|&fitted| revision.is_known_to(fitted)) {
                continue;
            }
            let observations = self.state.profile.observations(&gpu_type);
            let request = FitRequest {
                observations: &observations,
                previous: self.state.fits.get(&gpu_type).map(|fit: &Fit| &fit.params),
                history: self.config.history.get(&gpu_type),
                ..FitRequest::default()
            };
            if let Ok(fit) = fit(&request) {
                self.state.fits.insert(gpu_type.clone(), fit);
                self.state.fit_revisions.insert(gpu_type, revision.number());
            }
        }
    }

    fn report(&self) -> AgentReport {
        let state = &self.state;
        AgentReport {
            fits: state.fits.clone(),
            noise: state.noise.report(&self.config.settings, self.config.limits.initial()),
            limits: self.config.limits,
            micro_max: state.micro_max.clone(),
            plan: state.plan,
            learning_rate_factor: state.learning_rate_factor,
            progress: state.progress,
            samples: state.samples,
            most_replicas: state.most_replicas,
            model_error: self.model_error(),
        }
    }

    fn model_error(&self) -> Option<f64> {
        let state = &self.state;
        let (plan, placement, gpu_type) = (state.plan?, state.placement?, state.gpu_type.as_ref()?);
        let measured = state.profile.entry(gpu_type, placement, plan.atomic_batch())?.optim_secs();
        let params = &state.fits.get(gpu_type)?.params;
        Some(params.last_micro_step_secs(placement, plan.atomic_batch()) / measured - 1.0)
    }
}
