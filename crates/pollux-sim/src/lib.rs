//! Simulated clusters: the same agent, policy and scheduler as in production, around jobs that only pretend to train.
//!
//! | module | what |
//! | --- | --- |
//! | [`campaign`] | many runs: policies by workloads by seeds |
//! | [`workload`] | which jobs arrive when: read from a file, or generated |
//! | [`faults`] | what goes wrong: nodes that fail, starts that fail, slow nodes |
//! | [`traces`] | public traces of clusters, and workloads made of them |
//! | [`profile`] | what must be known of an application: step times, gradient noise, work |
//! | [`sweep`] | hyper-parameter search: trials that decide which trials come next |
//! | [`osdi21`] | traces, job model and loop of the authors' OSDI'21 artifact, to the digit |
//! | [`report`] | what became of a campaign, as a page of tables and charts |
//! | [`setting`] | settings as text, `KEY=VALUE,KEY=VALUE` |
//! | [`random`] | seeded random numbers, a stream for each purpose |
//! | [`autoscale`] | the paper's comparison of cluster sizes by goodput and by throughput |
//! | [`cloud`] | clusters of rented nodes: prices, delays, reclaims, sizes that follow the jobs |
//! | [`replay`] | the journal of a live scheduler through the simulator's shell |
//! | `driver` | the shell around the scheduler, and the laws no run may break |

pub mod autoscale;
mod bill;
pub mod campaign;
pub mod cloud;
mod cluster;
mod driver;
pub mod faults;
mod hardware;
pub mod interference;
mod log;
mod metrics;
pub mod osdi21;
mod outcome;
pub mod profile;
pub mod random;
pub mod replay;
pub mod report;
pub mod reproduce;
pub mod setting;
mod shell;
pub mod simulation;
pub mod sweep;
pub mod traces;
pub mod whatif;
pub mod workload;

pub use bill::{NodeBill, PoolBill, SizeChange};
pub use cluster::{ClusterShape, ShapeError};
pub use driver::{Broken, RoundStats};
pub use hardware::{HardwareRow, compare_hardware, relative_load};
pub use log::{Event, Kept, Log, What};
pub use metrics::{Metrics, Spread};
pub use outcome::{JobOutcome, Run};
