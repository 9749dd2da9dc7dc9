//! Versioned formats, apart from the types of the model they carry.
//!
//! | module | format |
//! | --- | --- |
//! | [`observations`] | measured step times, as CSV |
//! | [`fit_file`] | fitted step-time models, as JSON |
//! | [`agent_report`] | what a job's agent tells the scheduler, as JSON |
//! | [`agent_state`] | everything a job's agent remembers, as JSON |
//! | [`journal`] | what happened to a scheduler and what came of it, and all it remembers, as JSON |
//! | [`goodput_table`] | goodput by number of GPUs, as JSON or CSV |
//! | [`snapshot`] | a cluster and its jobs at one moment, as JSON |
//! | [`plan_file`] | who holds which GPUs and why, as JSON |
//! | [`policy_list`] | the policies there are, as JSON |
//! | [`rest`] | bodies of the HTTP API |
//! | [`job_file`] | what a user wants run, as YAML, TOML or JSON |
//! | [`policy_spec`] | a policy and its settings, as one word on a command line |
//!
//! [`client`] speaks to a server, for workers; it alone opens sockets and files.
//! [`explain`] puts a plan's reasons into sentences, for all who show one to people.
//!
//! Every format is converted by hand at this rim: a change of the model's types changes no file by
//! accident. Readers take bytes and a label for messages, so that the crate itself opens no file; their
//! errors hold the place and the value that is wrong, and no input makes them panic.

pub mod adaptdl;
pub mod agent_report;
pub mod agent_state;
pub mod client;
pub mod explain;
pub mod fit_file;
pub mod goodput_table;
pub mod job_file;
pub mod journal;
pub mod observations;
pub mod plan_file;
pub mod policy_list;
pub mod policy_spec;
pub mod rest;
pub mod snapshot;

mod json;
mod names;
mod near;
mod quote;
mod wire;

pub use names::Names;
pub use near::nearest;
pub use policy_spec::{PolicySpec, PolicySpecError, parse_policy};
