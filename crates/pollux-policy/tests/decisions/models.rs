//! Jobs whose goodput can be told in one's head.

use pollux_model::{Affine, BatchLimits, Compute, GoodputModel, NoiseScale, PerfParams};

/// The batch a user chose; the GPUs of a node divide it evenly, up to eight of them.
const BATCH: u64 = 840;

/// Most GPUs that a batch may be grown for.
const MOST_GPUS: u64 = 64;

/// What there is to choose from.
pub(crate) const NAMES: &str = "linear, saturating, flat, local, near, fixed or none";

/// The model of this name on GPUs that are `speed` times as fast; `K` stands for GPUs.
///
/// | name | goodput, in that of one GPU |
/// | --- | --- |
/// | `linear` | `K` |
/// | `saturating` | `2 K / (K + 1)`: 1, 1.33, 1.5, 1.6 |
/// | `flat` | 1 |
/// | `local` | `K` on one node, `K / 4` on several |
/// | `near` | `K` on one node, `5/6 K` on several |
/// | `fixed` | as `linear`, but the batch may not grow: `2 K / (K + 1)` |
pub(crate) fn model(name: &str, speed: f64) -> Option<GoodputModel> {
    // All noise: a larger batch loses nothing. None: it gains nothing.
    let (noise, across_nodes) = match name {
        "linear" | "fixed" => (f64::INFINITY, 0.0),
        "saturating" => (BATCH as f64, 0.0),
        "flat" => (0.0, 0.0),
        "local" => (f64::INFINITY, 3.0),
        "near" => (f64::INFINITY, 0.2),
        _ => return None,
    };
    let limits = if name == "fixed" {
        BatchLimits::fixed(BATCH, 1, 840)
    } else {
        BatchLimits::new(BATCH, BATCH * MOST_GPUS, 840, 840)
    };
    // A whole batch takes a second, half of it whatever its size.
    let grad = Compute::Linear { alpha: 0.5 / speed, beta: 0.5 / BATCH as f64 / speed };
    let params = PerfParams {
        grad,
        sync_local: Affine::default(),
        sync_node: Affine { alpha: across_nodes / speed, beta: 0.0 },
        gamma: 1.0,
        optimizer_step: 0.0,
    };
    let limits = limits.ok()?.with_max_accum_steps(0);
    GoodputModel::new(params, NoiseScale::from_samples(noise)?, limits).ok()
}
