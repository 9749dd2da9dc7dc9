//! What goes wrong in a cluster: nodes fail, are taken away or grow slow, starts fail, users misjudge their jobs.
//!
//! | question | module |
//! | --- | --- |
//! | what can go wrong, and how often? | [`Faults`] |
//! | how is that written? | `text` |
//! | what befalls one node, and when? | [`Fate`] |
//!
//! Every kind of fault has a stream of chance of its own for each node or job. What befalls a node depends on the seed and
//! the node alone, whether the n-th start of a job fails on the seed and the job: so all policies meet the same faults,
//! and their runs can be compared pair by pair.

mod fate;
mod text;

use std::time::Duration;

use pollux_model::{NodeId, Random, Timestamp};

pub use fate::{Befalls, Fate};
pub use text::FaultsError;

use crate::random;

/// What goes wrong, and how often. By default nothing does.
///
/// ```
/// use std::time::Duration;
/// use pollux_sim::faults::Faults;
///
/// let faults: Faults = "mtbf=200h,checkpoint=5m".parse().unwrap();
/// assert_eq!((faults.mtbf, faults.checkpoint), (Some(Duration::from_hours(200)), Duration::from_mins(5)));
/// assert_eq!(faults.to_string(), "mtbf=200h,checkpoint=5m");
/// assert!(!Faults::default().is_any());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    /// Mean time to the failure of a node, exponentially distributed; nodes never fail if none.
    pub mtbf: Option<Duration>,
    /// How long after a node is lost it is back, or another in its place.
    pub repair: Duration,
    /// How often an hour a node is taken away, as spot machines are.
    pub reclaims_per_hour: f64,
    /// How long before that it is said.
    pub warning: Duration,
    /// The part of all starts that fail, from 0 to below 1.
    pub restart_failure: f64,
    /// How often an hour a node becomes slow.
    pub stragglers_per_hour: f64,
    /// The part of its speed that a slow node loses, from 0 to below 1.
    pub slowdown: f64,
    /// How long it is slow.
    pub slow_for: Duration,
    /// Spread of the work that users declare around what it is: the declared work is `e^(spread * z)` times the true
    /// one, with `z` from the standard normal distribution.
    pub work_error: f64,
    /// How long a job trains until it saves its state, and again until it does the next time. What was done since is
    /// lost if it dies.
    pub checkpoint: Duration,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            mtbf: None,
            repair: Duration::from_hours(2),
            reclaims_per_hour: 0.0,
            warning: Duration::from_mins(2),
            restart_failure: 0.0,
            stragglers_per_hour: 0.0,
            slowdown: 0.5,
            slow_for: Duration::from_hours(1),
            work_error: 0.0,
            checkpoint: Duration::from_mins(10),
        }
    }
}

impl Faults {
    /// Whether anything goes wrong at all.
    pub fn is_any(&self) -> bool {
        self.loses_nodes() || self.has_stragglers() || self.restart_failure > 0.0 || self.work_error > 0.0
    }

    /// Whether nodes are lost, and work with them.
    pub fn loses_nodes(&self) -> bool {
        self.mtbf.is_some() || self.reclaims_per_hour > 0.0
    }

    /// Whether nodes become slow.
    pub fn has_stragglers(&self) -> bool {
        self.stragglers_per_hour > 0.0
    }

    /// Whether anything befalls nodes, which must then be there from the beginning: rented ones are not.
    pub fn befalls_nodes(&self) -> bool {
        self.loses_nodes() || self.has_stragglers()
    }

    /// What befalls a node of a run with this seed; nothing ever does if nodes are as they should be.
    pub fn fate(&self, seed: u64, node: NodeId) -> Fate {
        Fate::new(self, seed, node)
    }

    /// Where it is drawn whether a job's next start fails; nowhere if none does.
    pub(crate) fn starts(&self, seed: u64, job: usize) -> Option<Random> {
        (self.restart_failure > 0.0).then(|| random::numbered(seed, "restart failures", job as u64))
    }

    /// What the user of a job takes its work to be, over what it is.
    pub(crate) fn misjudgement(&self, seed: u64, job: usize) -> f64 {
        if self.work_error <= 0.0 {
            return 1.0;
        }
        libm::exp(self.work_error * random::numbered(seed, "declared work", job as u64).normal())
    }
}

/// Something that befell a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeEvent {
    /// When.
    pub at: Timestamp,
    /// Which node.
    pub node: NodeId,
    /// What.
    pub what: Befalls,
}
