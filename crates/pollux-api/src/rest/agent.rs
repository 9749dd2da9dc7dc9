//! What a job's agent says, and what it is told.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Said by the first replica of a job, now and then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentReports {
    /// The version of the API it speaks.
    pub version: u32,
    /// Which start of the job it is of: `POLLUX_ATTEMPT`.
    pub attempt: u32,
    /// Whether it has made a step.
    #[serde(default)]
    pub training: bool,
    /// What it has learned.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub report: Option<serde_json::Value>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentOrders {
    /// The version of the API the service speaks.
    pub version: u32,
    /// What the job is to do.
    pub orders: Vec<Order>,
    /// How often it may report, in seconds.
    pub report_every_s: f64,
}

/// Something a job is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Save its state now, and go on.
    Checkpoint {},
    /// Save its state and leave within so many seconds. A signal says the same.
    Stop {
        /// Seconds until it is ended.
        grace_s: f64,
    },
}
