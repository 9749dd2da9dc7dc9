//! What an agent might report.

use std::collections::BTreeMap;

use pollux_model::fit::{Coverage, Fit, RelativeError};
use pollux_model::{
    Affine, AgentReport, BatchLimits, Compute, Estimator, GpuType, GradientMoments, NoiseReport, NoiseScale,
    PerfParams,
};

/// A report of a job that runs on T4: 1 ms for each sample, initial batch 100, little exchange.
pub fn report(progress: f64) -> AgentReport {
    report_of(progress, 0.001, 2)
}

/// The same with other seconds for each sample, seen on so many GPUs.
pub fn report_of(progress: f64, secs_per_sample: f64, most_replicas: u32) -> AgentReport {
    let params = PerfParams {
        grad: Compute::Linear { alpha: 0.01, beta: secs_per_sample },
        sync_local: Affine { alpha: 0.001, beta: 0.0 },
        sync_node: Affine { alpha: 0.002, beta: 0.0 },
        gamma: 1.0,
        optimizer_step: 0.0,
    };
    let fit = Fit {
        params,
        undetermined: Vec::new(),
        objective: 0.0,
        error: RelativeError { mean: 0.0, worst: 0.0 },
        coverage: Coverage { micro_batch: (10, 100), alone: true, one_node: Some((2, 2)), distributed: None },
    };
    let noise = NoiseReport {
        acted: NoiseScale::from_samples(1_000.0).unwrap(),
        moments: GradientMoments { sqr: 1.0, var: 1_000.0 },
        estimator: Estimator::Pairs,
        n_measured: 10,
        n_implausible: 0,
        suspicious: false,
    };
    AgentReport {
        fits: BTreeMap::from([(GpuType::new("t4"), fit)]),
        noise: Some(noise),
        limits: BatchLimits::new(100, 1_600, 10, 400).unwrap(),
        micro_max: BTreeMap::new(),
        plan: None,
        learning_rate_factor: 1.0,
        progress,
        samples: 0,
        most_replicas,
        model_error: None,
    }
}
