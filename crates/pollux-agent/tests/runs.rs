//! Many equal steps at once are the same as one after the other.

use std::sync::Arc;

use pollux_agent::{
    Agent, AgentConfig, AgentState, CustomRule, GradientNorm, GradientSample, LearningRateRule, RuleInput,
    StepObservation, StepTiming,
};
use pollux_model::{BatchLimits, BatchPlan, GlobalBatch, GpuType, Placement};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

/// What is told of the same steps in both ways differs by no more than this, relatively.
const TOLERANCE: f64 = 1e-6;

/// A stretch of training in which every step is like the other.
#[derive(Clone, Debug)]
struct Run {
    n_steps: u64,
    replicas: u32,
    batch: u64,
    compute_secs: f64,
    sync_secs: f64,
    signal: f64,
    noise_scale: f64,
    /// Which gradients are told of: none, pairs, differences.
    kind: u8,
}

impl Run {
    fn step(&self) -> StepObservation {
        let placement = Placement::packed(self.replicas, 4).unwrap();
        let batch = self.batch as f64;
        let norm =
            |batch: f64| GradientNorm { batch, sqr_norm: self.signal * (1.0 + self.noise_scale / batch) };
        let gradient = match self.kind % 4 {
            0 => None,
            1 => Some(GradientSample::Consecutive {
                batch,
                sqr_norm: norm(batch).sqr_norm,
                previous_sqr_norm: norm(batch).sqr_norm,
                dot: self.signal,
            }),
            _ => Some(GradientSample::Pair { small: norm(batch / 2.0), big: norm(batch) }),
        };
        StepObservation {
            gpu_type: GpuType::new("t4"),
            placement,
            plan: BatchPlan::split(GlobalBatch(self.batch), placement, 0).unwrap(),
            timing: (!self.kind.is_multiple_of(5)).then_some(StepTiming {
                accum_secs: Some(self.compute_secs),
                optim_secs: self.compute_secs + self.sync_secs,
                sync_secs: self.sync_secs,
                optimizer_secs: 0.0,
            }),
            gradient,
        }
    }
}

/// From `low` to `high`, as likely to be doubled here as there.
fn log_uniform(low: f64, high: f64) -> impl Strategy<Value = f64> {
    (libm::log(low)..libm::log(high)).prop_map(libm::exp)
}

fn run() -> impl Strategy<Value = Run> {
    let n_steps = prop_oneof![0..20_u64, 0..400_u64, 0..30_000_u64];
    let gradient = (log_uniform(0.5, 2.0), log_uniform(10.0, 10_000.0), any::<u8>());
    (n_steps, 1..9_u32, 16..600_u64, log_uniform(0.01, 1.0), log_uniform(0.001, 1.0), gradient).prop_map(
        |(n_steps, replicas, batch, compute_secs, sync_secs, (signal, noise_scale, kind))| Run {
            n_steps,
            replicas: 1 + replicas / 4,
            batch: 16 * (batch / 100 + 1),
            compute_secs,
            sync_secs,
            signal,
            noise_scale,
            kind,
        },
    )
}

/// Follows the progress, which no rule that comes with the agent does.
struct Cooling;

impl CustomRule for Cooling {
    fn factor(&self, input: &RuleInput) -> f64 {
        input.gain / (1.0 + input.progress / 1_000.0)
    }
}

fn rule(kind: u8) -> LearningRateRule {
    match kind % 4 {
        0 => LearningRateRule::AdaScale,
        1 => LearningRateRule::SquareRoot,
        2 => LearningRateRule::Legw { base_warmup_epochs: 2.0, epoch_samples: 1e5 },
        _ => LearningRateRule::Custom(Arc::new(Cooling)),
    }
}

fn agent(rule: LearningRateRule) -> Agent {
    let limits = BatchLimits::new(16, 4_096, 1, 4_096).unwrap();
    let mut agent = Agent::new(AgentConfig { rule, ..AgentConfig::new(limits) });
    agent.decide(&GpuType::new("t4"), Placement::ALONE).unwrap();
    agent
}

/// Every number of a state under its name; those of one state and of another can be compared one by one.
fn numbers(state: &AgentState) -> Vec<(String, f64)> {
    let noise = &state.noise;
    let running = &noise.running;
    let mut numbers: Vec<(String, f64)> = [
        ("progress", state.progress),
        ("samples", state.samples as f64),
        ("steps since change", state.steps_since_change as f64),
        ("steps to explore", state.exploring.map_or(-1.0, |exploring| f64::from(exploring.steps_left))),
        ("learning rate", state.learning_rate_factor),
        ("most replicas", f64::from(state.most_replicas)),
        ("acted", noise.acted.unwrap_or(-1.0)),
        ("measured", noise.n_measured as f64),
        ("implausible", noise.n_implausible as f64),
        ("blocks", f64::from(running.n_blocks)),
        ("running signal", running.sqr),
        ("running noise", running.trace),
        // Next to the signal: what is left of it where nothing deviates is rounding.
        ("running deviation", running.sqr + running.sqr_deviation.sqrt()),
        ("weight", running.weight),
        ("deviation weight", running.deviation_weight),
    ]
    .map(|(name, number)| (name.to_owned(), number))
    .to_vec();
    for (name, sums) in [("block", &noise.block), ("held back", &noise.held_back)] {
        let of = [f64::from(sums.n_measured), f64::from(sums.n_steps), sums.scale, sums.sqr, sums.trace];
        numbers.extend(of.map(|number| (name.to_owned(), number)));
    }
    for (key, entry) in &state.profile.entries {
        let first = entry.first.iter().flat_map(|&(compute, optim)| [compute, optim]);
        let of = [entry.n_steps as f64, entry.log_compute, entry.log_optim, entry.deviation];
        numbers.extend(of.into_iter().chain(first).map(|number| (format!("{key:?}"), number)));
    }
    numbers
}

fn check_same(at_once: &Agent, one_by_one: &Agent) {
    let (a, b) = (numbers(at_once.state()), numbers(one_by_one.state()));
    assert_eq!(a.len(), b.len());
    for ((name, a), (_, b)) in a.into_iter().zip(b) {
        assert!((a - b).abs() <= TOLERANCE * b.abs(), "{name}: {a} at once, {b} one by one");
    }
}

fn check_runs(rule: &LearningRateRule, runs: &[Run]) {
    let (mut at_once, mut one_by_one) = (agent(rule.clone()), agent(rule.clone()));
    for run in runs {
        let step = run.step();
        at_once.observe_run(&step, run.n_steps);
        (0..run.n_steps).for_each(|_| one_by_one.observe(&step));
        check_same(&at_once, &one_by_one);
        // Experiments count their steps too.
        let [plan, same] = [&mut at_once, &mut one_by_one]
            .map(|agent| agent.decide(&step.gpu_type, step.placement).unwrap().plan);
        assert_eq!(plan, same);
        let tried = StepObservation { plan, ..step };
        at_once.observe_run(&tried, 7);
        (0..7).for_each(|_| one_by_one.observe(&tried));
        check_same(&at_once, &one_by_one);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..ProptestConfig::default()
    })]

    #[test]
    fn equal_steps_at_once_are_equal_steps_one_by_one(
        runs in proptest::collection::vec(run(), 1..12),
        kind in 0..4_u8,
    ) {
        check_runs(&rule(kind), &runs);
    }

    #[test]
    fn no_number_of_steps_is_too_large(runs in proptest::collection::vec(run(), 1..4), kind in 0..4_u8) {
        let mut agent = agent(rule(kind));
        for run in &runs {
            agent.observe_run(&run.step(), u64::MAX - run.n_steps);
            let config = AgentConfig::new(agent.limits_on(&GpuType::new("t4")));
            prop_assert!(Agent::restore(config, agent.state().clone()).is_ok());
        }
    }
}

const USUAL: Run = Run {
    n_steps: 0,
    replicas: 1,
    batch: 64,
    compute_secs: 0.1,
    sync_secs: 0.1,
    signal: 1.0,
    noise_scale: 240.0,
    kind: 2,
};

#[test]
fn no_steps_are_nothing() {
    let mut agent = agent(LearningRateRule::AdaScale);
    let before = agent.state().clone();
    agent.observe_run(&USUAL.step(), 0);
    assert_eq!(*agent.state(), before);
}

#[test] // Four times the batch at a noise scale of 240: 4 (240 + 16) / (240 + 64) = 3.368 of a step.
fn for_ever_ends_at_the_truth() {
    let mut agent = agent(LearningRateRule::AdaScale);
    let run = |noise_scale: f64, secs: f64| Run { noise_scale, compute_secs: secs, sync_secs: secs, ..USUAL };
    for run in [run(9e5, 3e-9), run(1e-3, 5e9), run(240.0, 0.1)] {
        agent.observe_run(&run.step(), u64::MAX);
        let entry = agent.state().profile.entries.values().next().unwrap();
        assert!((entry.optim_secs() / (2.0 * run.compute_secs) - 1.0).abs() < 1e-9);
        assert!((entry.log_compute - libm::log(run.compute_secs)).abs() < 1e-9);
        let acted = agent.noise_scale().unwrap().samples();
        assert!((acted / run.noise_scale - 1.0).abs() < 1e-6, "{acted} for {}", run.noise_scale);
    }
    assert!((agent.learning_rate_factor() - 1_024.0 / 304.0).abs() < 1e-6);
}

#[test] // Equal norms, whatever the batch: no noise at all, which is never plausible.
fn gradients_without_noise_take_no_longer() {
    let mut agent = agent(LearningRateRule::AdaScale);
    agent.observe_run(&Run { noise_scale: 0.0, ..USUAL }.step(), u64::MAX);
    assert_eq!(agent.noise_scale(), None);
}
