//! The format itself. What changes here changes files: then raise [`VERSION`](super::VERSION) and keep
//! reading the old one.

use std::collections::BTreeMap;

use pollux_agent::GradientSpace;
use serde::{Deserialize, Serialize};

use crate::wire::{
    AtLeastOne, Count, Estimator, Fit, LogSecs, NotNegative, Plan, Positive, Share, SmallCount,
};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    pub(super) version: u64,
    pub(super) progress: NotNegative,
    pub(super) samples: u64,
    pub(super) learning_rate_factor: Positive,
    pub(super) most_replicas: u32,
    pub(super) gpu_type: Option<String>,
    pub(super) placement: Option<Placement>,
    pub(super) plan: Option<Plan>,
    pub(super) steps_since_change: u64,
    pub(super) exploring: Option<Exploring>,
    pub(super) last_report_us: Option<u64>,
    pub(super) micro_max: BTreeMap<String, AtLeastOne>,
    pub(super) noise: Noise,
    pub(super) fits: BTreeMap<String, Fit>,
    pub(super) profile: Vec<ProfileEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Placement {
    pub(super) nodes: AtLeastOne,
    pub(super) replicas: AtLeastOne,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exploring {
    pub(super) plan: Plan,
    pub(super) before: Plan,
    pub(super) steps_left: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Noise {
    #[serde(with = "Estimator")]
    pub(super) estimator: pollux_model::Estimator,
    #[serde(with = "Space")]
    pub(super) space: GradientSpace,
    pub(super) acted: Option<Positive>,
    /// Nothing depends on it any more. It is written, as 0, since older builds of this version require it.
    #[serde(default)]
    pub(super) steps_known: u64,
    pub(super) n_measured: Count,
    pub(super) n_implausible: Count,
    pub(super) block: Sums,
    pub(super) held_back: Sums,
    pub(super) running: Running,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "GradientSpace", rename_all = "snake_case")]
enum Space {
    Plain,
    Preconditioned,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sums {
    pub(super) n_measured: SmallCount,
    pub(super) n_steps: u32,
    pub(super) scale: NotNegative,
    pub(super) sqr: f64,
    pub(super) trace: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Running {
    pub(super) sqr: f64,
    pub(super) trace: f64,
    pub(super) sqr_deviation: NotNegative,
    pub(super) weight: Share,
    pub(super) deviation_weight: Share,
    pub(super) n_blocks: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileEntry {
    pub(super) gpu_type: String,
    pub(super) nodes: AtLeastOne,
    pub(super) replicas: AtLeastOne,
    pub(super) micro_batch: AtLeastOne,
    pub(super) n_steps: Count,
    pub(super) log_compute: LogSecs,
    pub(super) log_optim: LogSecs,
    pub(super) deviation: NotNegative,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) first: Vec<(LogSecs, LogSecs)>,
}
