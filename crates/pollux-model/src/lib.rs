//! What a training job is worth on given GPUs.
//!
//! The vocabulary of the whole project (time, GPUs, allocations, batches, quantities with units) and the
//! goodput model of the Pollux paper (Qiao et al., OSDI 2021), extended where newer hardware needs it:
//! [`PerfParams`] says how long a step takes, [`NoiseScale`] what a larger batch is worth, [`GoodputModel`]
//! joins them and finds the best batch, [`fit`](mod@fit) learns the parameters from observations.
//!
//! Pure: no files, sockets, clock, environment or randomness, and no wire format (those are `pollux-api`).

pub mod fit;
pub mod osdi21;
pub mod random;

mod allocation;
mod batch;
mod best_batch;
mod compute;
mod curve;
mod goodput;
mod gpu;
mod job;
mod math;
mod noise;
mod perf;
mod quantity;
mod report;
mod time;

pub use allocation::{Allocation, Placement, Regime};
pub use batch::{BatchLimits, BatchPlan, GlobalBatch, InvalidLimits};
pub use compute::{Compute, InvalidTable, StepTable};
pub use curve::{GoodputCurve, JobCurves};
pub use goodput::GoodputModel;
pub use gpu::{GpuShare, GpuType, NodeId};
pub use job::JobId;
pub use noise::{GradientMoments, NoiseScale};
pub use perf::{Affine, InvalidParams, PerfParams};
pub use quantity::{Efficiency, Goodput, Speedup, Throughput};
pub use random::Random;
pub use report::{AgentReport, Estimator, NoiseReport};
pub use time::Timestamp;
