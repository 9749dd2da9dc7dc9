//! Who holds which GPUs.
//!
//! A [`Policy`] turns a [`Snapshot`] and a seed into a [`Plan`]: an allocation for each job, with the reason, and
//! for policies with an objective a certificate of how close to the best it is. The objective of the Pollux
//! paper (Qiao et al., OSDI 2021) is solved by prices and local search; see `docs/concepts/allocation.md`.
//!
//! Pure: no files, sockets, clock, environment or ambient randomness.

mod exchange;
mod ga;
mod groups;
mod plan;
mod policy;
mod pollux;
pub mod problem;
mod reason;
mod rivals;
mod round;
mod settings;
mod size_aware;
mod snapshot;
pub mod solve;
mod tables;
mod type_blind;
mod utility;
mod valuation;

pub use ga::{Genetic, Variant};
pub use plan::{Against, Certificate, Decision, JobPlan, Limit, Plan, Reason, Starved, Step, Stopped, Work};
pub use policy::{About, AnyPolicy, Cadence, Policy, Seed, Terms};
pub use pollux::{Pollux, policies};
pub use rivals::{EvenShare, Fifo, Gavel, Objective, Optimus, ShortestFirst, Sia, Tiresias, sia};
pub use settings::{Effort, FairShare, RestartPrice, Settings};
pub use size_aware::SizeAware;
pub use snapshot::{
    Carried, Cluster, Foreseen, Freedom, Group, GroupId, Job, Knowledge, Known, Learned, Node, NodeState,
    Oracle, Population, Priority, Request, Requested, Served, Snapshot, SnapshotError,
};
pub use type_blind::TypeBlind;
pub use utility::Utility;
pub use valuation::{JobValue, Judgement, Pool, Source, Stake, Valuation};
