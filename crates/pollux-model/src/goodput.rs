//! Goodput: what a job is worth on given GPUs.

use crate::allocation::Placement;
use crate::batch::{BatchLimits, BatchPlan};
use crate::best_batch;
use crate::noise::NoiseScale;
use crate::perf::{InvalidParams, PerfParams};
use crate::quantity::{Efficiency, Goodput, Throughput};

/// A job's goodput on one GPU type, now: step times, gradient noise, and the batches it may use.
///
/// ```
/// use pollux_model::{Affine, BatchLimits, Compute, GoodputModel, NoiseScale, PerfParams, Placement};
///
/// let params = PerfParams {
///     grad: Compute::Linear { alpha: 0.03, beta: 0.0004 },
///     sync_local: Affine { alpha: 0.01, beta: 0.001 },
///     sync_node: Affine { alpha: 0.1, beta: 0.004 },
///     gamma: 1.6,
///     optimizer_step: 0.0,
/// };
/// let noise = NoiseScale::from_samples(1_000.0).unwrap();
/// let limits = BatchLimits::new(128, 4_096, 32, 1_024).unwrap();
/// let model = GoodputModel::new(params, noise, limits).unwrap();
///
/// let four = Placement::new(1, 4).unwrap();
/// let plan = model.best_batch(four).unwrap();
/// assert!(model.goodput(four, plan) > model.goodput(Placement::ALONE, model.best_batch(Placement::ALONE).unwrap()));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GoodputModel {
    params: PerfParams,
    noise: NoiseScale,
    limits: BatchLimits,
}

impl GoodputModel {
    /// Puts the three together; refuses parameters that describe no step time.
    pub fn new(params: PerfParams, noise: NoiseScale, limits: BatchLimits) -> Result<Self, InvalidParams> {
        params.validate()?;
        Ok(Self { params, noise, limits })
    }

    /// Step times.
    pub fn params(&self) -> &PerfParams {
        &self.params
    }

    /// Gradient noise.
    pub fn noise(&self) -> NoiseScale {
        self.noise
    }

    /// Batches the job may use.
    pub fn limits(&self) -> &BatchLimits {
        &self.limits
    }

    /// Samples per second.
    pub fn throughput(&self, placement: Placement, plan: BatchPlan) -> Throughput {
        self.params.throughput(placement, plan)
    }

    /// Progress per sample at this plan's batch, relative to the initial one.
    pub fn efficiency(&self, plan: BatchPlan) -> Efficiency {
        self.noise.efficiency(self.limits.initial(), plan.global())
    }

    /// Useful samples per second.
    pub fn goodput(&self, placement: Placement, plan: BatchPlan) -> Goodput {
        self.throughput(placement, plan) * self.efficiency(plan)
    }

    /// The plan of highest goodput within the limits; nothing where no batch keeps them.
    ///
    /// Exact: no plan of whole samples with equal micro-batches is better. Where the limits leave no such
    /// plan (a fixed batch that the number of GPUs does not divide), or only worse ones, the smallest batch
    /// allowed is split as evenly as whole samples allow; see [`BatchPlan`].
    pub fn best_batch(&self, placement: Placement) -> Option<BatchPlan> {
        best_batch::best_batch(self, placement)
    }

    /// The goodput of the best plan; zero where no batch keeps the limits.
    pub fn best_goodput(&self, placement: Placement) -> Goodput {
        self.best_batch(placement).map_or(Goodput::default(), |plan| self.goodput(placement, plan))
    }

    /// No number of GPUs, however placed, has a goodput above this many useful samples per second for each.
    ///
    /// A step takes at least its forward and backward passes, and no batch above the initial one is worth
    /// more than its samples. Lets an allocator skip what cannot matter.
    pub fn ceiling_per_gpu(&self) -> Goodput {
        Goodput::new(self.params.grad.best_rate(self.limits.micro_max()))
    }
}
