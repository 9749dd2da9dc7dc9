//! A job in a made-up cluster: what happens at a step follows from its number and the batch alone.

use std::time::Duration;

use pollux_agent::{
    Agent, AgentConfig, AgentSettings, AgentState, BatchDecision, GradientNorm, GradientSample,
    GradientSpace, LearningRateRule, MomentSums, NoiseState, ProfileEntry, RunningMoments, StepObservation,
    StepTiming,
};
use pollux_model::fit::{Fit, RelativeError};
use pollux_model::{
    Affine, AgentReport, BatchLimits, BatchPlan, Compute, GpuType, PerfParams, Placement, Timestamp,
};

/// The steps a job runs on one allocation.
const PHASE: u64 = 350;

/// What an agent said, by step.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) decisions: Vec<(u64, Option<BatchDecision>)>,
    pub(crate) reports: Vec<(u64, AgentReport)>,
}

/// Runs the steps `from` to `to` (excluded).
pub(crate) fn drive(agent: &mut Agent, from: u64, to: u64) -> Said {
    let mut said = Said::default();
    for step in from..to {
        let (gpu_type, placement) = allocation(step);
        if step == 1_111 {
            agent.limit_micro_batch(&gpu_type, 150);
        }
        let plan = agent.state().plan;
        if plan.is_none() || step % PHASE == 0 || step % 100 == 0 || agent.wants_decision() {
            said.decisions.push((step, agent.decide(&gpu_type, placement)));
        }
        if let Some(plan) = agent.state().plan {
            agent.observe(&observation(step, gpu_type, placement, plan));
        }
        if let Some(report) = agent.poll(Timestamp::from_micros(step * 700_000)) {
            said.reports.push((step, report));
        }
    }
    said
}

/// Configurations that between them use all that a state can hold.
pub(crate) fn configs() -> [AgentConfig; 3] {
    let adaptive = AgentConfig::new(BatchLimits::new(128, 2_048, 8, 256).unwrap());
    let gullible = AgentSettings {
        believe_after_steps: 60,
        block_steps: 8,
        explore_micro_batches: 6,
        report_interval: Duration::from_secs(5),
        ..AgentSettings::default()
    };
    let adam = AgentConfig {
        rule: LearningRateRule::AdamScale,
        space: GradientSpace::Preconditioned,
        settings: gullible,
        ..AgentConfig::new(BatchLimits::new(100, 1_000, 4, 300).unwrap())
    };
    let fixed = AgentConfig {
        rule: LearningRateRule::Legw { base_warmup_epochs: 1.0, epoch_samples: 20_000.0 },
        ..AgentConfig::new(BatchLimits::fixed(131, 4, 200).unwrap())
    };
    [adaptive, adam, fixed]
}

fn allocation(step: u64) -> (GpuType, Placement) {
    let phase = step / PHASE;
    let placement = if phase.is_multiple_of(2) { Placement::new(1, 3) } else { Placement::new(2, 8) };
    let gpu_type = if (phase / 2).is_multiple_of(2) { "t4" } else { "NVIDIA A100-SXM4-80GB" };
    (GpuType::new(gpu_type), placement.unwrap())
}

fn observation(step: u64, gpu_type: GpuType, placement: Placement, plan: BatchPlan) -> StepObservation {
    let mut random = Random::new(step);
    let timing = timing(&mut random, step, &gpu_type, placement, plan);
    let gradient = gradient(&mut random, step, placement, plan);
    StepObservation { gpu_type, placement, plan, timing, gradient }
}

fn timing(
    random: &mut Random,
    step: u64,
    gpu_type: &GpuType,
    placement: Placement,
    plan: BatchPlan,
) -> Option<StepTiming> {
    let slow = if gpu_type.name() == "t4" { 4.0 } else { 1.0 };
    let stall = if random.below(40) == 0 { 5.0 } else { 1.0 };
    let unit = slow * stall * random.around_one(0.05);
    let compute = unit * (0.011 + 0.000_43 * f64::from(plan.atomic_batch()));
    let sync = 0.007 * f64::from(placement.n_nodes()) * random.around_one(0.2);
    let timing = StepTiming {
        accum_secs: (plan.accum_steps() > 0).then_some(compute),
        optim_secs: if random.below(50) == 0 { f64::NAN } else { compute + sync + 0.002 },
        sync_secs: sync,
        optimizer_secs: 0.002,
    };
    (!step.is_multiple_of(PHASE)).then_some(timing)
}

/// Wild for 180 of every 900 steps; of the poorer kind at first; none on every third step.
fn gradient(random: &mut Random, step: u64, placement: Placement, plan: BatchPlan) -> Option<GradientSample> {
    let wild = if step % 900 >= 500 && step % 900 < 680 { 60.0 } else { 1.0 };
    let sqr = 5.0 / (1.0 + step as f64 / 800.0) * random.around_one(0.3);
    let trace = 900.0 * wild * random.around_one(0.3);
    let norm = |batch: f64| GradientNorm { batch, sqr_norm: sqr + trace / batch };
    let batch = plan.global().0 as f64;
    match step {
        _ if step.is_multiple_of(3) => None,
        ..40 => Some(GradientSample::Consecutive {
            batch,
            sqr_norm: norm(batch).sqr_norm,
            previous_sqr_norm: norm(batch).sqr_norm * random.around_one(0.1),
            dot: sqr,
        }),
        _ => Some(GradientSample::Pair {
            small: norm(batch / f64::from(placement.n_replicas())),
            big: norm(batch),
        }),
    }
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xd134_2543_de82_ef95))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn around_one(&mut self, spread: f64) -> f64 {
        1.0 + spread * ((self.next() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0)
    }
}

/// Every float of a state, as bits: equality of floats would let `0.0` pass for `-0.0`.
pub(crate) fn bits(state: &AgentState) -> Vec<u64> {
    let AgentState { profile, noise, fits, learning_rate_factor, progress, .. } = state;
    let NoiseState { block, held_back, running, acted, .. } = noise;
    let mut floats = vec![*learning_rate_factor, *progress];
    floats.extend(acted);
    for &MomentSums { n_measured: _, n_steps: _, scale, sqr, trace } in [block, held_back] {
        floats.extend([scale, sqr, trace]);
    }
    let &RunningMoments { sqr, trace, sqr_deviation, weight, deviation_weight, n_blocks: _ } = running;
    floats.extend([sqr, trace, sqr_deviation, weight, deviation_weight]);
    for ProfileEntry { n_steps: _, first, log_compute, log_optim, deviation } in profile.entries.values() {
        floats.extend([log_compute, log_optim, deviation]);
        floats.extend(first.iter().flat_map(|&(compute, optim)| [compute, optim]));
    }
    for Fit { params, objective, error: RelativeError { mean, worst }, .. } in fits.values() {
        let PerfParams { grad, sync_local, sync_node, gamma, optimizer_step } = params;
        floats.extend([objective, mean, worst, gamma, optimizer_step]);
        for Affine { alpha, beta } in [sync_local, sync_node] {
            floats.extend([alpha, beta]);
        }
        match grad {
            Compute::Linear { alpha, beta } => floats.extend([alpha, beta]),
            Compute::Roofline { alpha, beta, delta } => floats.extend([alpha, beta, delta]),
            Compute::Table(table) => floats.extend(table.points().iter().map(|(_, secs)| secs)),
        }
    }
    floats.into_iter().map(f64::to_bits).collect()
}
