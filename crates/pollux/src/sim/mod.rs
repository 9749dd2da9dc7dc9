//! `pollux sim`: simulated clusters.

pub(crate) mod args;
pub(crate) mod failure;
mod files;
mod inputs;
pub(crate) mod profile;
mod progress;
pub(crate) mod run;
mod seeds;
mod story;
pub(crate) mod sweep;
mod table;
pub(crate) mod workload;
