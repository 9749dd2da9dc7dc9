//! Writes the application profiles of the live demo: step times are formulas, gradient noise is measured by training.
//!
//! `cargo run --release -p pollux-trainer --example make_profiles` writes `examples/profiles/demo-*.json`. It trains the
//! digits with each application's own settings at several fixed batches, one process and no clock, so that the same
//! files come out every time. What a start and a stop of a worker really take was measured apart.
#![expect(clippy::print_stdout, reason = "what was written is said")]

use std::path::Path;

use pollux_agent::{Agent, AgentConfig, GradientNorm, GradientSample, StepObservation};
use pollux_model::{BatchLimits, BatchPlan, GlobalBatch, GpuType, Placement};
use pollux_sim::profile::{parse_profile, write_profile};
use pollux_trainer::network::Network;
use pollux_trainer::pace::PassSecs;
use pollux_trainer::replica::Replica;
use serde_json::{Value, json};

/// Seconds from the order to start until the first step may begin; what processes really need is less.
const RESTART_SECS: f64 = 0.5;
/// Epochs of equal progress in which noise is told apart.
const N_EPOCHS: usize = 6;
/// Seeds over which noise is averaged.
const SEEDS: [u64; 8] = [11, 12, 13, 14, 15, 16, 17, 18];

/// An application of the demo: its training is real, its GPUs are made up.
struct Application {
    name: &'static str,
    steps: u32,
    initial: u64,
    max: u64,
    micro: (u32, u32),
    hidden: usize,
    learning_rate: f64,
    /// Seconds of a pass: launch, and each sample.
    compute: (f64, f64),
    /// Seconds of an exchange within a node and across nodes, and for each replica beyond two.
    exchange: (f64, f64, f64),
}

const APPLICATIONS: [Application; 4] = [
    // Scales well, across nodes too.
    Application {
        name: "demo-vision",
        steps: 750,
        initial: 32,
        max: 512,
        micro: (8, 128),
        hidden: 0,
        learning_rate: 0.02,
        compute: (0.016, 0.0016),
        exchange: (0.004, 0.008, 0.0005),
    },
    // Large, and scales well within a node.
    Application {
        name: "demo-language",
        steps: 750,
        initial: 32,
        max: 512,
        micro: (8, 64),
        hidden: 32,
        learning_rate: 0.02,
        compute: (0.014, 0.0024),
        exchange: (0.006, 0.015, 0.001),
    },
    // Noisy enough for small batches alone, so it scales a little.
    Application {
        name: "demo-speech",
        steps: 500,
        initial: 32,
        max: 256,
        micro: (8, 64),
        hidden: 16,
        learning_rate: 0.05,
        compute: (0.012, 0.0015),
        exchange: (0.006, 0.020, 0.0015),
    },
    // Launch-bound: more GPUs do not help it, a larger batch does.
    Application {
        name: "demo-ranking",
        steps: 700,
        initial: 64,
        max: 256,
        micro: (16, 256),
        hidden: 0,
        learning_rate: 0.05,
        compute: (0.020, 0.0001),
        exchange: (0.030, 0.060, 0.005),
    },
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/profiles");
    for application in &APPLICATIONS {
        let file = format!("{}.json", application.name);
        let profile = parse_profile(file.as_ref(), &application.json().to_string())?;
        std::fs::write(folder.join(&file), write_profile(&profile))?;
        println!("examples/profiles/{file}");
    }
    Ok(())
}

impl Application {
    fn json(&self) -> Value {
        let work = f64::from(self.steps);
        let ends: Vec<f64> = (1..=N_EPOCHS).map(|epoch| work * epoch as f64 / N_EPOCHS as f64).collect();
        let doubled = std::iter::successors(Some(self.initial), |batch| Some(batch * 2));
        let batches: Vec<u64> = doubled.take_while(|batch| *batch <= self.max).collect();
        let by_batch: Vec<Vec<f64>> = batches.iter().map(|batch| self.noise(*batch)).collect();
        let by_epoch: Vec<Vec<f64>> =
            (0..N_EPOCHS).map(|epoch| by_batch.iter().map(|row| row[epoch]).collect()).collect();
        for (batch, row) in batches.iter().zip(&by_batch) {
            println!("{} at {batch}: {row:?}", self.name);
        }
        json!({
            "kind": "pollux.application", "version": 1, "name": self.name,
            "source": "made for the demo (make_profiles of pollux-trainer): step times are formulas, noise scales measured",
            "batch": {"initial": self.initial, "max": self.max, "micro_min": self.micro.0, "micro_max": self.micro.1},
            "restart_secs": RESTART_SECS,
            "work": {"epoch_ends": ends, "noise_scales": {"batches": batches, "epochs": by_epoch}},
            "step_times": {"t4": {"shapes": self.shapes()}},
        })
    }

    fn shapes(&self) -> Vec<Value> {
        let shapes = [(1, 1), (1, 2), (1, 3), (1, 4), (2, 2), (2, 4), (2, 8)];
        let micro_batches: Vec<u32> = [8, 16, 32, 64, 128, 256]
            .into_iter()
            .filter(|batch| (self.micro.0..=self.micro.1).contains(batch))
            .collect();
        let shape = |&(nodes, replicas): &(u32, u32)| {
            let (local, across, each) = self.exchange;
            let base = if nodes == 1 { local } else { across };
            let sync = if replicas == 1 { 0.0 } else { base + each * f64::from(replicas - 2) };
            let secs = |batch: &u32| rounded(self.compute.0 + self.compute.1 * f64::from(*batch) + sync);
            let step_secs: Vec<f64> = micro_batches.iter().map(secs).collect();
            let sync_secs = vec![rounded(sync); micro_batches.len()];
            json!({"nodes": nodes, "replicas": replicas, "micro_batches": micro_batches,
                "step_secs": step_secs, "sync_secs": sync_secs})
        };
        shapes.iter().map(shape).collect()
    }

    /// The noise scale of each epoch when it trains with this batch, the learning rate following.
    fn noise(&self, batch: u64) -> Vec<f64> {
        let mut sums = [(0.0, 0.0); N_EPOCHS];
        for seed in SEEDS {
            self.train(batch, seed, &mut sums);
        }
        sums.iter().map(|(noise, signal)| (noise / signal.max(1e-12)).clamp(0.0, 1e9).round()).collect()
    }

    /// Adds up gradient noise and signal by epoch.
    fn train(&self, batch: u64, seed: u64, sums: &mut [(f64, f64)]) {
        let all = BatchLimits::new(self.initial, self.max, 1, 1 << 20).expect("batches are in order");
        let limits = all.within(GlobalBatch(batch), GlobalBatch(batch)).expect("within the limits");
        let mut agent = Agent::new(AgentConfig::new(limits));
        let mut replica = Replica::new(0, Placement::ALONE, Network { hidden: self.hidden }, 0.9, seed);
        // In four parts, so that one step tells more of the noise than two halves would.
        let plan =
            BatchPlan::split(GlobalBatch(batch), Placement::ALONE, 3).expect("batches are divisible by 4");
        let mut position = 0;
        while agent.progress() < f64::from(self.steps) {
            let (mut part, _) = replica.compute(plan, position, PassSecs::default());
            position += batch;
            part.gradient.iter_mut().for_each(|value| *value /= batch as f64);
            replica.apply(self.learning_rate * agent.learning_rate_factor(), &part.gradient);
            let count = part.moments.count as f64;
            let small = GradientNorm {
                batch: count / part.moments.inverse_batch,
                sqr_norm: part.moments.sqr_norm / count,
            };
            let sqr_norm = part.gradient.iter().map(|value| value * value).sum();
            let big = GradientNorm { batch: batch as f64, sqr_norm };
            let epoch = agent.progress() / f64::from(self.steps) * N_EPOCHS as f64;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded down")]
            let (noise, signal) = &mut sums[(epoch as usize).min(N_EPOCHS - 1)];
            *noise += (small.sqr_norm - big.sqr_norm) / (1.0 / small.batch - 1.0 / big.batch);
            *signal += (big.batch * big.sqr_norm - small.batch * small.sqr_norm) / (big.batch - small.batch);
            agent.observe(&StepObservation {
                gpu_type: GpuType::new("t4"),
                placement: Placement::ALONE,
                plan,
                timing: None,
                gradient: Some(GradientSample::Pair { small, big }),
            });
        }
    }
}

/// To the microsecond.
fn rounded(secs: f64) -> f64 {
    (secs * 1e6).round() / 1e6
}
