//! Starts, stops and watches the processes of jobs on this machine.
//!
//! A *run* is one start of a job. Its folder is made before anything is started and is the truth about it
//! ([`folder`]); each of its processes has a supervisor that outlives the scheduler ([`supervisor`]).
//! [`LocalEngine`] starts and stops runs, says how they ended, and finds them again after a restart.

mod cgroup;
pub mod environment;
pub mod folder;
pub mod gpus;
mod how;
mod launch;
mod local;
mod log;
mod nvml;
mod orphans;
mod process;
mod run;
pub mod slots;
pub mod supervisor;
mod watch;

pub use how::{End, How};
pub use local::{EngineConfig, EngineError, EngineEvent, Found, LocalEngine, Stop};
pub use process::{Moment, Process};
pub use run::{Devices, Limits, LogLimits, Rank, RunId, RunRequest, RunSpec, Share, Told};
