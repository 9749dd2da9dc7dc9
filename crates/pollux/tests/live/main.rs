//! The live scheduler through its command: real processes on an emulated cluster.

mod access;
mod adaptdl;
mod damage;
mod doors;
mod jobs;
mod scheduler;
mod surroundings;
