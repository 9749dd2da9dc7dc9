//! What a job's agent tells the scheduler.

use std::collections::BTreeMap;

use crate::batch::{BatchLimits, BatchPlan};
use crate::fit::Fit;
use crate::gpu::GpuType;
use crate::noise::{GradientMoments, NoiseScale};

/// One job's state as its agent sees it: everything the scheduler needs to value GPUs for it.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentReport {
    /// Step times, per GPU type the job has run on.
    pub fits: BTreeMap<GpuType, Fit>,
    /// Gradient noise; nothing until enough gradients were measured.
    pub noise: Option<NoiseReport>,
    /// Batches the job may use.
    pub limits: BatchLimits,
    /// The largest micro-batch on types of GPU whose memory holds less than the limits say.
    pub micro_max: BTreeMap<GpuType, u32>,
    /// The batch it uses now.
    pub plan: Option<BatchPlan>,
    /// What the learning rate is multiplied by now.
    pub learning_rate_factor: f64,
    /// Work done, in steps at the initial batch size.
    pub progress: f64,
    /// Samples processed.
    pub samples: u64,
    /// Most replicas it has run on; exploration goes on from here.
    pub most_replicas: u32,
    /// Predicted over measured time of the present configuration, less one; nothing until both are known.
    pub model_error: Option<f64>,
}

impl AgentReport {
    /// Batches the job may use on this type of GPU.
    pub fn limits_on(&self, gpu_type: &GpuType) -> BatchLimits {
        let most = self.micro_max.get(gpu_type).map(|most| (*most).min(self.limits.micro_max()));
        most.and_then(|most| self.limits.with_micro_max(most).ok()).unwrap_or(self.limits)
    }
}

/// The noise scale, and how far to trust it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseReport {
    /// The noise scale the agent acts on: smoothed, and bounded in how fast it moves.
    pub acted: NoiseScale,
    /// The plain smoothed moments; their ratio may run ahead of what is acted on.
    pub moments: GradientMoments,
    /// How the moments were obtained.
    pub estimator: Estimator,
    /// Steps with a usable gradient measurement.
    pub n_measured: u64,
    /// Measurements held back as implausible, now or at any time.
    pub n_implausible: u64,
    /// Whether measurements are being held back at present.
    pub suspicious: bool,
}

/// How gradient moments were obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// From two or more gradients of one step: replicas, accumulation steps or halves of a batch. Unbiased.
    Pairs,
    /// From gradients of consecutive steps, between which the model moved. Biased: the signal reads too
    /// weak when the loss surface curves, so the noise scale reads high.
    Differences,
}

impl Estimator {
    /// Whether the estimate is off even over long runs.
    pub fn is_biased(self) -> bool {
        self == Self::Differences
    }
}
