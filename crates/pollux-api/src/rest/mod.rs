//! Bodies of the HTTP API, as both sides know them.
//!
//! | module | what |
//! | --- | --- |
//! | [`job`] | jobs as they are shown, submitted and edited |
//! | [`cluster`] | nodes, queues, rounds, events, the service itself |
//! | [`question`] | why, and what if |
//! | [`agent`] | what a job's agent says, and what it is told |
//! | [`access`] | tokens and roles |
//! | [`problem`] | errors (RFC 9457) |
//!
//! Fields are added, never renamed: a reader passes over what it does not know.

pub mod access;
pub mod agent;
pub mod cluster;
pub mod job;
pub mod problem;
pub mod question;

pub use access::{NewToken, Role, TokenMade, TokenShown};
pub use agent::{AgentOrders, AgentReports, Order};
pub use cluster::{DeviceShown, EventShown, NodeEdit, NodeShown, QueueShown, RoundShown, ServiceShown};
pub use job::{Attempt, JobEdits, JobList, JobShown, JobState, Submission, Submitted};
pub use problem::Problem;
pub use question::{Explained, WhatIf, WhatIfAnswer, WhatIfJob};

/// The version of the API, in every path and in every agent's words.
pub const VERSION: u32 = 1;
