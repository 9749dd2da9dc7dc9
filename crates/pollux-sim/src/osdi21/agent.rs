//! The agent of the authors' simulator: what a job learns of itself, and the batch it chooses for it.

use std::collections::BTreeMap;

use pollux_model::fit::{ComputeChoice, Fit, FitRequest, History, Observation as Measured, fit};
use pollux_model::osdi21::{self as coded, N_CANDIDATES};
use pollux_model::{
    AgentReport, BatchLimits, BatchPlan, Estimator, GlobalBatch, GpuType, GradientMoments, NoiseReport,
    NoiseScale, Placement,
};

use super::application::Limits;
use super::batch::{BatchRule, LocalBatch, first_target};
use super::job::{Job, Observation};

/// The agent of the authors' simulator.
///
/// It keeps the first measurement of each (nodes, replicas, local batch), fits the paper's model anew whenever there
/// is another, always from the same start, and takes the best of 50 batches. The gradient is the latest one, exact.
/// Refitting waits until a choice or a report needs it, which changes neither.
#[derive(Clone, Debug)]
pub struct ArtifactAgent {
    limits: Limits,
    pinned: Option<u32>,
    history: Option<History>,
    /// By placement, then batch; each once.
    profile: Vec<Measured>,
    /// Of the profile as it is; none while it is to be made.
    fit: Option<(Fit, coded::Params)>,
    gradient: Option<(GradientMoments, NoiseScale)>,
    n_observed: u64,
    most_replicas: u32,
    /// The latest choice by this fit: a job asks the same over and over while its epoch lasts.
    chosen: Option<(Placement, NoiseScale, LocalBatch)>,
}

impl ArtifactAgent {
    /// An agent that adapts the batch within an application's limits.
    pub fn new(limits: &Limits) -> Self {
        Self {
            limits: *limits,
            pinned: None,
            history: None,
            profile: Vec::new(),
            fit: None,
            gradient: None,
            n_observed: 0,
            most_replicas: 0,
            chosen: None,
        }
    }

    /// One that stays with this target and one GPU, but measures and reports all the same: ncf under Pollux, with a
    /// batch of 32768.
    pub fn pinned(limits: &Limits, batch: u32) -> Self {
        Self { pinned: Some(batch), ..Self::new(limits) }
    }

    /// The same with what earlier jobs of the application were like, for what it has not measured itself. The artifact
    /// has nothing like it.
    pub fn build_on(&mut self, history: History) {
        (self.history, self.fit, self.chosen) = (Some(history), None, None);
    }

    /// Whether it stays with one batch and one GPU.
    pub fn is_pinned(&self) -> bool {
        self.pinned.is_some()
    }

    /// Distinct configurations it has measured.
    pub fn n_configurations(&self) -> usize {
        self.profile.len()
    }

    /// What it tells the scheduler about its `job`, whose GPUs are of this type. None before the first measurement, as
    /// for limits that allow no batch.
    ///
    /// Samples are what the progress would have taken at the initial batch. The limits are the application's, for a
    /// pinned job too.
    pub fn report(&mut self, gpu_type: &GpuType, job: &Job) -> Option<AgentReport> {
        let fit = self.fitted()?.0.clone();
        let noise = self.gradient.map(|(moments, acted)| NoiseReport {
            acted,
            moments,
            estimator: Estimator::Pairs,
            n_measured: self.n_observed,
            n_implausible: 0,
            suspicious: false,
        });
        self.said(job, BTreeMap::from([(gpu_type.clone(), fit)]), noise)
    }

    fn said(
        &self,
        job: &Job,
        fits: BTreeMap<GpuType, Fit>,
        noise: Option<NoiseReport>,
    ) -> Option<AgentReport> {
        let Limits { init_batch, max_batch, min_local, max_local, .. } = self.limits;
        let limits = BatchLimits::new(init_batch.into(), max_batch.into(), min_local, max_local).ok()?;
        let LocalBatch { atomic, accum_steps } = job.batch();
        let n_nodes = u32::try_from(job.placement().len()).unwrap_or(u32::MAX);
        let placement = Placement::new(n_nodes, job.placement().iter().sum());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "rounded; `as` saturates"
        )]
        let samples = (job.progress() * f64::from(init_batch)).round() as u64;
        Some(AgentReport {
            fits,
            noise,
            limits: limits.accumulating_alone(),
            micro_max: BTreeMap::new(),
            plan: placement.and_then(|placement| BatchPlan::even(placement, atomic, accum_steps)),
            learning_rate_factor: 1.0,
            progress: job.progress(),
            samples,
            most_replicas: self.most_replicas,
            model_error: None,
        })
    }

    /// The model of all that was measured; none before anything was.
    fn fitted(&mut self) -> Option<&(Fit, coded::Params)> {
        if self.fit.is_none() {
            let request = FitRequest {
                observations: &self.profile,
                compute: ComputeChoice::Linear,
                previous: None,
                history: self.history.as_ref(),
            };
            let fit = fit(&request).ok()?;
            let params = coded::Params::from_perf(&fit.params)?;
            self.fit = Some((fit, params));
        }
        self.fit.as_ref()
    }

    /// The artifact's choice; none before the first measurement, and where no batch keeps the limits.
    fn best(&mut self, placement: Placement) -> Option<LocalBatch> {
        let (_, noise) = self.gradient?;
        if let Some((asked, with, batch)) = self.chosen
            && (asked, with) == (placement, noise)
        {
            return Some(batch);
        }
        let limits = coded::Limits {
            init: self.limits.init_batch.into(),
            max: self.limits.max_batch.into(),
            min_atomic: self.limits.min_local.into(),
            max_atomic: self.limits.max_local.into(),
        };
        let choice = self.fitted()?.1.optimize(placement, limits, noise.samples(), N_CANDIDATES);
        let atomic = u32::try_from(choice.atomic_batch).ok().filter(|&atomic| atomic > 0)?;
        let batch = LocalBatch { atomic, accum_steps: u32::try_from(choice.accum_steps).ok()? };
        self.chosen = Some((placement, noise, batch));
        Some(batch)
    }
}

/// What a job without an agent says of itself: how far it is, and that it can come back.
pub fn plain_report(limits: &Limits, job: &Job) -> Option<AgentReport> {
    ArtifactAgent::new(limits).said(job, BTreeMap::new(), None)
}

impl BatchRule for ArtifactAgent {
    fn observe(&mut self, observation: &Observation) {
        let &Observation { n_nodes, n_replicas, atomic_batch, step_secs, sync_secs, grad_sqr, grad_var } =
            observation;
        let moments = GradientMoments { sqr: grad_sqr, var: grad_var };
        if let Some(noise) = moments.noise_scale(GlobalBatch(self.limits.init_batch.into())) {
            self.gradient = Some((moments, noise));
            self.n_observed += 1;
        }
        let Some(placement) = Placement::new(n_nodes, n_replicas) else { return };
        let key = (placement, atomic_batch);
        if let Err(at) =
            self.profile.binary_search_by_key(&key, |seen| (seen.placement(), seen.micro_batch()))
        {
            // A step that is exchange and nothing else has no logarithm to fit.
            let Ok(measured) = Measured::new(placement, atomic_batch, step_secs - sync_secs, step_secs)
            else {
                return;
            };
            self.profile.insert(at, measured);
            self.most_replicas = self.most_replicas.max(n_replicas);
            (self.fit, self.chosen) = (None, None);
        }
    }

    /// Within the limits the agent was made with.
    fn choose(&mut self, n_nodes: u32, n_replicas: u32, limits: &Limits) -> LocalBatch {
        let target = match self.pinned {
            Some(batch) => batch,
            None => match Placement::new(n_nodes, n_replicas).and_then(|placement| self.best(placement)) {
                Some(batch) => return batch,
                None => first_target(n_replicas, limits),
            },
        };
        LocalBatch::of_target(target, n_replicas, limits)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pollux_model::fit::PastFit;
    use pollux_model::{Affine, Compute, PerfParams};
    use proptest::prelude::*;

    use super::*;
    use crate::osdi21::progress::{Epoch, GradientStats, Validation};
    use crate::osdi21::throughput::StepTime;
    use crate::osdi21::traces::Application;

    /// Initial batch 100, at most 200, 10 to 100 on each GPU.
    const LIMITS: Limits =
        Limits { name: "toy", init_batch: 100, max_batch: 200, min_local: 10, max_local: 100, n_epochs: 1 };

    /// On one node, with a gradient that is all noise.
    fn seen(n_replicas: u32, atomic_batch: u32, step_secs: f64, sync_secs: f64) -> Observation {
        let (grad_sqr, grad_var) = (0.0, 1.0);
        Observation { n_nodes: 1, n_replicas, atomic_batch, step_secs, sync_secs, grad_sqr, grad_var }
    }

    fn agent(observations: &[Observation]) -> ArtifactAgent {
        let mut agent = ArtifactAgent::new(&LIMITS);
        for observation in observations {
            agent.observe(observation);
        }
        agent
    }

    fn params(agent: &mut ArtifactAgent) -> PerfParams {
        agent.fitted().expect("it has measured").0.params.clone()
    }

    fn check_choice(agent: &mut ArtifactAgent, n_replicas: u32, atomic: u32, accum_steps: u32) {
        let expected = LocalBatch { atomic, accum_steps };
        for _ in 0..2 {
            assert_eq!(agent.choose(1, n_replicas, &LIMITS), expected, "on {n_replicas}");
        }
    }

    fn check_line(agent: &mut ArtifactAgent, expected: (f64, f64)) {
        let Compute::Linear { alpha, beta } = params(agent).grad else { panic!("not linear") };
        assert!((alpha - expected.0).abs() < 1e-3 && (beta - expected.1).abs() < 1e-5, "{alpha} {beta}");
    }

    #[test]
    fn before_the_first_measurement_it_takes_the_initial_batch() {
        let mut agent = agent(&[]);
        check_choice(&mut agent, 1, 100, 0);
        check_choice(&mut agent, 4, 25, 0);
        check_choice(&mut agent, 20, 10, 0);
    }

    #[test] // 100 samples in 1 s, of which half is constant: two passes of 50 take 0.75 s, two of 100 take 1 s.
    fn noise_decides_how_large_a_batch_is_worth_it() {
        let all_noise = seen(1, 100, 1.0, 0.0);
        check_choice(&mut agent(&[all_noise]), 2, 100, 0);
        let all_signal = Observation { grad_sqr: 1.0, grad_var: 0.0, ..all_noise };
        check_choice(&mut agent(&[all_signal]), 2, 50, 0);
        // The latest gradient counts, though nothing else is new.
        check_choice(&mut agent(&[all_noise, all_signal]), 2, 50, 0);
        let mut agent = agent(&[all_signal]);
        check_choice(&mut agent, 2, 50, 0);
        agent.observe(&all_noise);
        check_choice(&mut agent, 2, 100, 0);
    }

    #[test]
    fn the_first_measurement_of_a_configuration_is_kept() {
        let mut agent = agent(&[seen(1, 100, 1.0, 0.0), seen(1, 100, 9.0, 0.0)]);
        assert_eq!(agent.n_configurations(), 1);
        check_line(&mut agent, (0.5, 0.005)); // half of one measurement is taken to be constant
        agent.observe(&seen(1, 50, 0.9, 0.0));
        check_line(&mut agent, (0.8, 0.002));
    }

    #[test] // Two replicas need 1.5 s instead of 1; without overlap the exchange is half a second.
    fn exchange_is_learned_and_several_nodes_are_taken_to_be_dearer() {
        let mut agent = agent(&[seen(1, 100, 1.0, 0.0), seen(1, 50, 0.9, 0.0), seen(2, 100, 1.5, 0.5)]);
        let params = params(&mut agent);
        let secs = params.last_micro_step_secs(Placement::new(1, 2).unwrap(), 100);
        assert!((secs - 1.5).abs() < 1e-3, "{secs}");
        assert!((params.sync_local.alpha - 0.5).abs() < 1e-2, "{params:?}");
        assert!((params.sync_node.alpha / params.sync_local.alpha - 1.1).abs() < 1e-12, "{params:?}");
    }

    #[test]
    fn what_is_no_measurement_is_left_out() {
        let mut agent = agent(&[seen(1, 100, 1.0, 1.0), seen(0, 100, 1.0, 0.0), seen(1, 0, 1.0, 0.0)]);
        assert_eq!(agent.n_configurations(), 0);
        check_choice(&mut agent, 2, 50, 0);
    }

    #[test]
    fn a_pinned_job_stays_with_its_batch_and_one_gpu() {
        let mut agent = ArtifactAgent::pinned(&LIMITS, 200);
        check_choice(&mut agent, 1, 100, 1);
        agent.observe(&Observation { grad_sqr: 1.0, ..seen(1, 100, 1.0, 0.0) });
        check_choice(&mut agent, 1, 100, 1);
        check_line(&mut agent, (0.5, 0.005));
    }

    #[test]
    fn earlier_jobs_tell_of_what_was_not_measured() {
        let sync_local = Affine { alpha: 0.5, beta: 0.0 };
        let grad = Compute::Linear { alpha: 0.8, beta: 0.002 };
        let past = PerfParams { grad, sync_local, sync_node: sync_local, gamma: 1.0, optimizer_step: 0.0 };
        let past = PastFit { params: past, undetermined: Vec::new() };
        let history = History::of([&past]).unwrap();
        let mut alone = agent(&[seen(1, 100, 1.0, 0.0)]);
        assert!(params(&mut alone).sync_local.alpha.abs() < 1e-6);
        let mut agent = alone;
        agent.build_on(history);
        assert!((params(&mut agent).sync_local.alpha - 0.5).abs() < 1e-3);
        check_line(&mut agent, (0.8, 0.002));
    }

    /// Runs on one GPU, where 100 samples take a second and noise is all there is; an epoch of 1000.
    fn toy_job() -> Job {
        let gradient = GradientStats { sqr: 0.0, var: 1.0 };
        let epochs = vec![Epoch { progress: 1_000.0, iterations: 1_000.0, gradient }];
        let runs = [100, 200].map(|batch| Validation { batch, epochs: epochs.clone() }).to_vec();
        let time = |step_secs| StepTime { step_secs, sync_secs: 0.0 };
        let measured = [(10, time(0.1)), (100, time(1.0))];
        Job::new(Arc::new(Application::on_one_placement(LIMITS, &[1], &measured, runs)))
    }

    #[test]
    fn a_report_says_what_the_job_is_at() {
        let (mut job, mut agent, t4) = (toy_job(), ArtifactAgent::new(&LIMITS), GpuType::new("t4"));
        job.reallocate(&[1], &mut agent);
        assert_eq!(agent.report(&t4, &job), None);
        job.advance(40, 0.0, &mut agent).unwrap();
        let report = agent.report(&t4, &job).unwrap();
        assert_eq!((report.progress, report.samples, report.most_replicas), (10.0, 1_000, 1));
        assert_eq!((report.limits.initial().0, report.limits.max().0), (100, 200));
        assert!(report.limits.accumulates_alone());
        let noise = report.noise.unwrap();
        assert_eq!((noise.acted.samples(), noise.n_measured), (f64::INFINITY, 1));
        let LocalBatch { atomic, accum_steps } = job.batch();
        assert_eq!(report.plan, BatchPlan::even(Placement::ALONE, atomic, accum_steps));
        assert_eq!(report.fits.keys().collect::<Vec<_>>(), [&t4]);
        job.reallocate(&[], &mut agent);
        assert_eq!(agent.report(&t4, &job).unwrap().plan, None); // suspended
    }

    fn any_observation() -> impl Strategy<Value = Observation> {
        (1..=4_u32, 1..=20_u32, 1..=200_u32, 1e-6..10.0, 0.0..=1.0, 0.0..2.0, 0.0..2.0).prop_map(
            |(n_nodes, n_replicas, atomic_batch, step_secs, share, grad_sqr, grad_var)| Observation {
                n_nodes,
                n_replicas,
                atomic_batch,
                step_secs,
                sync_secs: step_secs * share,
                grad_sqr,
                grad_var,
            },
        )
    }

    proptest! {
        #[test]
        fn every_choice_keeps_the_limits(
            observations in prop::collection::vec(any_observation(), 0..12),
            n_replicas in 1..=20_u32,
        ) {
            let mut agent = agent(&observations);
            let batch = agent.choose(n_replicas.min(2), n_replicas, &LIMITS);
            prop_assert!((10..=100).contains(&batch.atomic), "{:?}", batch);
            let total = batch.capped(n_replicas, &LIMITS).total(n_replicas);
            prop_assert!((100..=200).contains(&total), "{:?}", batch);
        }
    }
}
