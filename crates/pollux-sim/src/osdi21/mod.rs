//! Traces, workloads and job model of the authors' OSDI'21 artifact, so that published results can be repeated.
//!
//! | question | module |
//! | --- | --- |
//! | which applications are there, within which limits? | [`application`] |
//! | how long does a step take on these GPUs? | [`throughput`], on measurements read by [`traces`] |
//! | and where nothing was measured? | [`mesh`] |
//! | what does an iteration achieve, when does an epoch end? | [`progress`] |
//! | which batch does a job run? | [`batch`] |
//! | how does a job move through time? | [`job`] |
//! | what does a job learn of itself? | [`agent`] |
//! | how do jobs, scheduler and policy go through a workload? | [`simulation`] |
//! | which jobs arrive when? | [`workload`](crate::workload), with what [`Limits::known`] says |
//!
//! Semantics after petuum/adaptdl, branch `osdi21-artifact`, folder `simulator`; the code is ours. Formulas keep the
//! artifact's order of operations, so that results agree to the last bit or nearly so. Its data is not part of this
//! repository: readers take the folder it lies in.

pub mod agent;
pub mod application;
pub mod batch;
pub mod file;
pub mod job;
pub mod mesh;
pub mod progress;
mod runtimes;
pub mod simulation;
pub mod throughput;
pub mod traces;

pub use agent::ArtifactAgent;
pub use application::{APPLICATIONS, Limits};
pub use batch::{BatchRule, FixedBatch, LocalBatch};
pub use file::FileError;
pub use job::{Job, JobError, Observation};
pub use mesh::{MeshTable, TableError};
pub use progress::{GradientStats, ProgressError, Validation};
pub use simulation::{Options, SimulationError, simulate};
pub use throughput::{StepTime, ThroughputError};
pub use traces::{Application, LoadError};
