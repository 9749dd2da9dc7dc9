//! Whatever a job reports, the agent neither panics nor goes mad.

use pollux_agent::{
    Agent, AgentConfig, GradientNorm, GradientSample, GradientSpace, LearningRateRule, StepObservation,
    StepTiming,
};
use pollux_model::{BatchLimits, BatchPlan, GlobalBatch, GpuType, Placement, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

/// One thing that can happen to an agent.
#[derive(Clone, Debug)]
enum Event {
    Step { times: [f64; 4], norms: [f64; 4], dot: f64, kind: u8, global: u64, accum_steps: u32 },
    Decide { n_nodes: u32, n_replicas: u32 },
    Poll { secs: u64 },
    OutOfMemory { most: u32 },
}

/// Any float at all, with plausible ones among them.
fn float() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), 1e-4..10.0_f64, Just(f64::NAN), Just(f64::INFINITY), Just(0.0), Just(-1.0)]
}

fn floats() -> impl Strategy<Value = [f64; 4]> {
    [float(), float(), float(), float()]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (floats(), floats(), float(), any::<u8>(), 1..1_u64 << 40, 0..4_u32).prop_map(
            |(times, norms, dot, kind, global, accum_steps)| Event::Step { times, norms, dot, kind, global, accum_steps }
        ),
        2 => (1..40_u32, 1..300_u32).prop_map(|(n_nodes, n_replicas)| Event::Decide { n_nodes, n_replicas }),
        1 => (0..u64::MAX).prop_map(|secs| Event::Poll { secs }),
        1 => any::<u32>().prop_map(|most| Event::OutOfMemory { most }),
    ]
}

fn rule(kind: u8) -> LearningRateRule {
    match kind % 6 {
        0 => LearningRateRule::AdaScale,
        1 => LearningRateRule::AdamScale,
        2 => LearningRateRule::SquareRoot,
        3 => LearningRateRule::Linear,
        4 => LearningRateRule::Legw { base_warmup_epochs: 2.0, epoch_samples: 1e4 },
        _ => LearningRateRule::None,
    }
}

fn sample(norms: [f64; 4], dot: f64, kind: u8) -> Option<GradientSample> {
    let [a, b, c, d] = norms;
    match kind % 3 {
        0 => None,
        1 => Some(GradientSample::Pair {
            small: GradientNorm { batch: a, sqr_norm: b },
            big: GradientNorm { batch: c, sqr_norm: d },
        }),
        _ => Some(GradientSample::Consecutive { batch: a, sqr_norm: b, previous_sqr_norm: c, dot }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_event_breaks_an_agent(
        events in proptest::collection::vec(event(), 0..200),
        kind in any::<u8>(),
        initial in 1..1_000_u64,
        growth in 1..1_000_u64,
        micro_min in 1..64_u32,
        micro_span in 0..10_000_u32,
    ) {
        let limits = BatchLimits::new(initial, initial * growth, micro_min, micro_min + micro_span).unwrap();
        let space = if kind > 128 { GradientSpace::Preconditioned } else { GradientSpace::Plain };
        let mut agent = Agent::new(AgentConfig { rule: rule(kind), space, ..AgentConfig::new(limits) });
        let gpu_type = GpuType::new("t4");
        let mut placement = Placement::ALONE;
        for event in events {
            match event {
                Event::Step { times: [accum, optim, sync, optimizer], norms, dot, kind, global, accum_steps } => {
                    let Some(plan) = BatchPlan::split(GlobalBatch(global), placement, accum_steps) else { continue };
                    agent.observe(&StepObservation {
                        gpu_type: gpu_type.clone(),
                        placement,
                        plan,
                        timing: Some(StepTiming {
                            accum_secs: (kind % 2 == 0).then_some(accum),
                            optim_secs: optim,
                            sync_secs: sync,
                            optimizer_secs: optimizer,
                        }),
                        gradient: sample(norms, dot, kind),
                    });
                }
                Event::Decide { n_nodes, n_replicas } => {
                    let Some(wanted) = Placement::new(n_nodes, n_replicas) else { continue };
                    if let Some(decision) = agent.decide(&gpu_type, wanted) {
                        placement = wanted;
                        let allowed = agent.limits_on(&gpu_type).allows(wanted, decision.plan);
                        prop_assert!(allowed, "{decision:?} breaks {limits:?} on {wanted:?}");
                    }
                }
                Event::Poll { secs } => {
                    if let Some(report) = agent.poll(Timestamp::from_micros(secs)) {
                        for fit in report.fits.values() {
                            prop_assert!(fit.params.validate().is_ok());
                        }
                    }
                }
                Event::OutOfMemory { most } => agent.limit_micro_batch(&gpu_type, most),
            }
            let factor = agent.learning_rate_factor();
            prop_assert!(factor > 0.0 && factor.is_finite());
            prop_assert!(agent.progress() >= 0.0 && agent.progress().is_finite());
            prop_assert!(agent.noise_scale().is_none_or(|noise| noise.samples() > 0.0));
            prop_assert!(Agent::restore(AgentConfig::new(limits), agent.state().clone()).is_ok());
        }
    }
}
