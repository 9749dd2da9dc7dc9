//! A simulated cluster, driven by events.
//!
//! The scheduler and the agents are those of production. Only the world is not: a job's steps take as long as its
//! profile says, and its gradients are as noisy. Between events nothing changes speed, so times are exact and nothing
//! ticks but the scheduler's rounds.
//!
//! | question | module |
//! | --- | --- |
//! | what can be chosen? | [`Options`] |
//! | how does one job train? | `job` |
//! | what is left of it when it dies? | `saves` |
//! | how do jobs, scheduler and policy go through a workload? | `world`, and `world::trouble` where things go wrong |
//! | which rented nodes are there, and what do they cost? | `fleet`, and `world::rented` |
//! | who submits and gives up jobs while it runs? | [`Guide`] |
//! | what would a job do alone, what is an oracle told? | `truth` |

mod fleet;
mod guide;
mod job;
mod options;
mod saves;
mod truth;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use pollux_policy::AnyPolicy;

pub use guide::{Guide, Milestone, Order};
pub use options::{Options, RestartCost, RestartCostError};

use crate::driver::Broken;
use crate::outcome::Run;
use crate::profile::Profile;
use crate::workload::Workload;

/// A run that cannot be had.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimulationError {
    /// No profile of a job's application.
    #[error("{job}: there is no profile of application `{application}`; there are {}", .known.join(", "))]
    NoProfile {
        /// Which job.
        job: String,
        /// What it trains.
        application: String,
        /// What there is.
        known: Vec<String>,
    },
    /// An application that was measured on none of the cluster's GPUs.
    #[error("{job}: the profile of `{application}` has no step times on {}", .types.join(" or "))]
    NoStepTimes {
        /// Which job.
        job: String,
        /// What it trains.
        application: String,
        /// The cluster's GPU types.
        types: Vec<String>,
    },
    /// A batch that the application cannot have.
    #[error("{job}: `{application}` cannot train with a batch of {batch}")]
    NoSuchBatch {
        /// Which job.
        job: String,
        /// What it trains.
        application: String,
        /// The batch.
        batch: u64,
    },
    /// Faults of nodes where nodes are rented.
    #[error(
        "faults befall only nodes that are there from the beginning; rented ones come and go as their pools say"
    )]
    FaultsOfRented,
    /// A job that went with a node before it had ever reported.
    #[error("{job}: its node was taken back before it had reported; a longer warning lets it")]
    LostWithNode {
        /// Which job.
        job: String,
    },
    /// Jobs that no plan ever gives anything.
    #[error("these jobs can never run on this cluster: {}", .0.join(", "))]
    NeverRun(Vec<String>),
    /// Jobs that lose what they do before they save it, again and again.
    #[error("in a month these jobs got no further: {}; let nodes fail less often, or jobs save more often", .0.join(", "))]
    Hopeless(Vec<String>),
    /// A law of the simulation was broken.
    #[error("this is a mistake in the simulator: {0}")]
    Broken(#[from] Broken),
}

/// Runs a workload on a simulated cluster.
///
/// ```
/// use std::collections::BTreeMap;
/// use pollux_policy::Pollux;
/// use pollux_sim::simulation::{Options, simulate};
/// use pollux_sim::workload::{Submission, Workload};
/// use pollux_sim::profile::builtin;
///
/// let job = |name: &str, at_secs| Submission {
///     name: name.into(),
///     at_secs,
///     application: "cifar10".into(),
///     gpus: 1,
///     batch: 128,
///     work: None,
///     group: None,
/// };
/// let workload = Workload { name: "two".into(), jobs: vec![job("first", 0), job("second", 600)] };
/// let profiles: BTreeMap<_, _> = builtin().into_iter().map(|p| (p.name().to_owned(), p)).collect();
/// let run = simulate(&workload, &profiles, &Pollux::default(), &Options::default()).unwrap();
/// assert!(run.jobs.iter().all(|job| job.jct_secs().unwrap() < 3_600.0));
/// ```
pub fn simulate(
    workload: &Workload,
    profiles: &BTreeMap<String, Arc<Profile>>,
    policy: &dyn AnyPolicy,
    options: &Options,
) -> Result<Run, SimulationError> {
    world::World::new(workload, profiles, policy, options, None)?.run()
}

/// Runs a workload that grows and shrinks on the way, as its guide orders.
///
/// Jobs that are given up have no time of completion; where there are any, no job's fairness is judged.
pub fn simulate_guided(
    workload: &Workload,
    profiles: &BTreeMap<String, Arc<Profile>>,
    policy: &dyn AnyPolicy,
    options: &Options,
    guide: &mut dyn Guide,
) -> Result<Run, SimulationError> {
    world::World::new(workload, profiles, policy, options, Some(guide))?.run()
}
