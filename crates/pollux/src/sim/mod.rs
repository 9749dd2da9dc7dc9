//! `pollux sim`: simulated clusters.

pub(crate) mod args;
mod cluster;
pub(crate) mod failure;
mod files;
mod inputs;
pub(crate) mod journal;
pub(crate) mod plot;
pub(crate) mod profile;
mod progress;
mod report;
pub(crate) mod reproduce;
pub(crate) mod run;
mod seeds;
mod story;
pub(crate) mod sweep;
mod table;
pub(crate) mod whatif;
pub(crate) mod workload;
