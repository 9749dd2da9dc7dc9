//! The live scheduler through its command: real processes on an emulated cluster.

mod jobs;
mod scheduler;
mod surroundings;
