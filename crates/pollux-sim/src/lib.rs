//! Simulated jobs and workloads.
//!
//! | module | what |
//! | --- | --- |
//! | [`osdi21`] | traces, workloads and job model of the authors' OSDI'21 artifact, to the digit |

pub mod osdi21;
