//! The artifact's agent on the artifact's applications.
//!
//! Needs the data folder and the table of simplices; says so loudly where one is absent.
#![allow(clippy::print_stderr, reason = "what was not compared is said")]

mod common;

use std::sync::Arc;

use common::{packed, reference};
use pollux_model::GpuType;
use pollux_sim::osdi21::{
    Application, ArtifactAgent, BatchRule, FixedBatch, Job, Limits, LocalBatch, Observation,
};

/// An agent whose choices are watched: they keep the application's limits, whatever it has seen.
struct Watched(ArtifactAgent);

impl BatchRule for Watched {
    fn observe(&mut self, observation: &Observation) {
        self.0.observe(observation);
    }

    fn choose(&mut self, n_nodes: u32, n_replicas: u32, limits: &Limits) -> LocalBatch {
        let batch = self.0.choose(n_nodes, n_replicas, limits);
        assert!((limits.min_local..=limits.max_local).contains(&batch.atomic), "{}: {batch:?}", limits.name);
        let total = batch.capped(n_replicas, limits).total(n_replicas);
        assert!((limits.init_batch..=limits.max_batch).contains(&total), "{}: {batch:?}", limits.name);
        batch
    }
}

/// Seconds a job alone on these GPUs takes, the first restart included.
fn run(application: &Arc<Application>, placement: &[u32], rule: &mut impl BatchRule) -> u64 {
    let mut job = Job::new(application.clone());
    job.reallocate(placement, rule);
    while job.completed_at_secs().is_none() {
        job.advance(60, 0.0, rule).unwrap_or_else(|error| panic!("{}: {error}", application.limits().name));
    }
    job.completed_at_secs().expect("it is complete")
}

/// The agent a job has under Pollux.
fn agent(limits: &Limits) -> ArtifactAgent {
    if limits.name == "ncf" {
        ArtifactAgent::pinned(limits, limits.max_batch)
    } else {
        ArtifactAgent::new(limits)
    }
}

#[test]
fn jobs_that_adapt_finish_on_any_number_of_gpus() {
    let Some(reference) = reference() else { return };
    for application in &reference.applications {
        let limits = application.limits();
        let secs = [1, 2, 4, 8, 16].map(|n_replicas| {
            let mut watched = Watched(ArtifactAgent::new(limits));
            run(application, &packed(n_replicas), &mut watched)
        });
        let fixed = run(application, &[1], &mut FixedBatch { target: limits.init_batch });
        let under_pollux = run(application, &[1], &mut agent(limits));
        eprintln!(
            "{:11} {secs:6?} s on 1, 2, 4, 8, 16 GPUs; on 1, under Pollux {under_pollux} s, at the initial batch {fixed} s",
            limits.name
        );
        assert!(under_pollux <= fixed && secs[0] <= fixed, "{}", limits.name);
    }
}

#[test]
fn the_first_choice_is_the_initial_batch_and_the_first_report_follows_it() {
    let Some(reference) = reference() else { return };
    let gpu_type = GpuType::new("t4");
    for application in &reference.applications {
        let limits = application.limits();
        let mut agent = agent(limits);
        let mut job = Job::new(application.clone());
        job.reallocate(&[1], &mut agent);
        let first = if limits.name == "ncf" { limits.max_batch } else { limits.init_batch };
        assert_eq!(job.batch(), LocalBatch::of_target(first, 1, limits));
        assert_eq!(agent.report(&gpu_type, &job), None);
        job.advance(31, 0.0, &mut agent).unwrap();
        let report = agent.report(&gpu_type, &job).expect("it has measured");
        assert_eq!((report.most_replicas, report.samples > 0), (1, true));
        assert!(report.noise.is_some() && report.plan.is_some());
        assert!(report.fits[&gpu_type].params.validate().is_ok());
    }
}
