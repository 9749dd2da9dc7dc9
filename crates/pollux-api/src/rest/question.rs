//! Why, and what if.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a job holds what it holds, or waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explained {
    /// The job.
    pub job: String,
    /// The round that decided.
    pub round: Option<u64>,
    /// When it began.
    pub at: Option<String>,
    /// `keep`, `place`, `wait` or `reject`.
    pub decision: Option<String>,
    /// GPUs it was to hold.
    pub gpus: u32,
    /// Its speed-up there.
    pub speedup: Option<f64>,
    /// Why, in sentences.
    pub text: Vec<String>,
}

impl Explained {
    /// Nothing is known yet.
    pub fn nothing(job: &str) -> Self {
        let job = job.to_owned();
        Self { job, round: None, at: None, decision: None, gpus: 0, speedup: None, text: Vec::new() }
    }
}

/// A change that is only imagined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WhatIf {
    /// Jobs that were there too: job files as JSON.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    pub submit: Vec<serde_json::Value>,
    /// Nodes that were there too, such as `2x8:h100`.
    #[serde(default)]
    pub add_nodes: Option<String>,
    /// Nodes that were gone.
    #[serde(default)]
    pub remove_nodes: Vec<String>,
    /// Jobs that were gone.
    #[serde(default)]
    pub cancel: Vec<String>,
    /// Weights of jobs.
    #[serde(default)]
    pub weights: BTreeMap<String, f64>,
}

/// Who would hold what. No reservation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIfAnswer {
    /// Each job, now and then.
    pub jobs: Vec<WhatIfJob>,
    /// The mean speed-up as things are, planned anew.
    pub value_now: Option<f64>,
    /// The same after the change.
    pub value_then: Option<f64>,
}

/// A job, now and then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIfJob {
    /// Its name.
    pub name: String,
    /// GPUs that a plan made now gives it.
    pub gpus_now: Option<u32>,
    /// GPUs after the change.
    pub gpus_then: Option<u32>,
    /// Speed-up after the change.
    pub speedup_then: Option<f64>,
    /// Why, in sentences.
    pub text: Vec<String>,
}
