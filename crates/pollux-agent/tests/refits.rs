//! Fits are made when there is something to learn, and only then.

mod common;

use common::Dice;
use pollux_agent::{Agent, AgentConfig, StepObservation, StepTiming};
use pollux_model::{BatchLimits, BatchPlan, GpuType, Placement};

struct Job {
    agent: Agent,
    dice: Dice,
    n_fits: u32,
}

impl Job {
    fn new() -> Self {
        let limits = BatchLimits::new(16, 1_024, 1, 1_024).unwrap();
        Self { agent: Agent::new(AgentConfig::new(limits)), dice: Dice(3), n_fits: 0 }
    }

    /// One GPU takes `secs` for each step, give or take some noise; a refit is asked for every 50 steps.
    fn train(&mut self, micro_batch: u32, n_steps: u32, secs: f64, noise: f64) {
        for step in 1..=n_steps {
            let optim_secs = secs * libm::exp(noise * self.dice.normal());
            self.agent.observe(&StepObservation {
                gpu_type: GpuType::new("t4"),
                placement: Placement::ALONE,
                plan: BatchPlan::even(Placement::ALONE, micro_batch, 0).unwrap(),
                timing: Some(StepTiming {
                    accum_secs: None,
                    optim_secs,
                    sync_secs: 0.0,
                    optimizer_secs: 0.0,
                }),
                gradient: None,
            });
            if step % 50 == 0 {
                let before = self.agent.state().fit_revisions.clone();
                self.agent.refit();
                self.n_fits += u32::from(self.agent.state().fit_revisions != before);
            }
        }
    }

    fn predicted_secs(&self, micro_batch: u32) -> f64 {
        let fit = &self.agent.state().fits[&GpuType::new("t4")];
        fit.params.last_micro_step_secs(Placement::ALONE, micro_batch)
    }

    fn check_predicted(&self, micro_batch: u32, secs: f64) {
        let predicted = self.predicted_secs(micro_batch);
        assert!((predicted / secs - 1.0).abs() < 0.04, "{predicted} s for {micro_batch}, not {secs}");
    }
}

#[test]
fn each_configuration_is_learned_and_then_left_alone() {
    let mut job = Job::new();
    job.train(32, 5_000, 0.1, 0.0);
    job.train(64, 5_000, 0.16, 0.0);
    // At 50 steps and, with a little more weight, at 100.
    assert_eq!(job.n_fits, 4);
    job.check_predicted(32, 0.1);
    job.check_predicted(64, 0.16);
}

#[test]
fn noise_is_nothing_new() {
    let mut job = Job::new();
    for _ in 0..20 {
        job.train(32, 2_500, 0.1, 0.05);
        job.train(64, 2_500, 0.16, 0.05);
    }
    assert!(job.n_fits <= 8, "{} fits in 100,000 steps", job.n_fits);
    job.check_predicted(32, 0.1);
}

#[test]
fn a_lasting_change_of_step_time_is_learned() {
    let mut job = Job::new();
    job.train(32, 2_000, 0.1, 0.03);
    job.train(64, 2_000, 0.16, 0.03);
    for secs in [0.2, 0.19, 0.16] {
        job.train(64, 3_000, secs, 0.03);
        job.check_predicted(64, secs);
        job.check_predicted(32, 0.1);
    }
}

#[test]
fn a_restored_agent_knows_what_its_fit_has_seen() {
    let mut job = Job::new();
    job.train(32, 500, 0.1, 0.0);
    let mut restored =
        Agent::restore(AgentConfig::new(job.agent.limits_on(&GpuType::new("t4"))), job.agent.state().clone())
            .unwrap();
    restored.refit();
    assert_eq!(restored.state(), job.agent.state());
}
