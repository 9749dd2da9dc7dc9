//! One long job on a rented cluster: sizes by goodput beside sizes by throughput, as in section 5.3.2 of the paper.
//!
//! The paper trained ResNet-50 on ImageNet and saw a quarter less cost for 6 % more time.

use std::collections::BTreeMap;
use std::sync::Arc;

use pollux_core::{ScaleRule, Scaler};
use pollux_model::Timestamp;
use pollux_policy::AnyPolicy;

use crate::cloud::Cloud;
use crate::log::What;
use crate::outcome::Run;
use crate::profile::Profile;
use crate::simulation::{Options, SimulationError, simulate};
use crate::workload::{Submission, Workload};

/// How a job fared on a cluster whose size was chosen by one rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Autoscaled {
    /// Seconds from submission to completion.
    pub jct_secs: f64,
    /// What all nodes cost.
    pub cost: f64,
    /// Hours of all nodes.
    pub node_hours: f64,
    /// Restarts of the job.
    pub restarts: u32,
    /// How it went: from each moment on.
    pub series: Vec<Moment>,
}

/// How things stand from a moment on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// Seconds since the beginning.
    pub secs: f64,
    /// Nodes of the cluster.
    pub nodes: u32,
    /// GPUs that the job holds.
    pub gpus: f64,
    /// Samples of a step; 0 while it does not train.
    pub batch: u64,
    /// What each of them is worth against one of the initial batch.
    pub efficiency: f64,
}

/// Both rules on the same cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Sizes by goodput.
    pub goodput: Autoscaled,
    /// Sizes by throughput.
    pub throughput: Autoscaled,
}

impl Comparison {
    /// The part of the cost that sizes by goodput save.
    pub fn saved(&self) -> f64 {
        1.0 - self.goodput.cost / self.throughput.cost
    }

    /// The part of the time that they take besides.
    pub fn slower(&self) -> f64 {
        self.goodput.jct_secs / self.throughput.jct_secs - 1.0
    }
}

/// What the rival that scales by throughput knows of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RivalBatch {
    /// It takes the largest batch its GPUs hold: it is blind to efficiency there too, as in the paper.
    Throughput,
    /// Its agent chooses batches by goodput: only the choice of the cluster's size differs.
    Goodput,
}

/// Trains one ImageNet job under both rules: goodput (its band, or its price of time) as the cluster's own scaler has it, or else
/// [`Scaler::GOODPUT`], and [`Scaler::THROUGHPUT`] with the same patience.
pub fn autoscale_imagenet(
    cloud: &Cloud,
    rival: RivalBatch,
    profiles: &BTreeMap<String, Arc<Profile>>,
    policy: &dyn AnyPolicy,
    seed: u64,
) -> Result<Comparison, SimulationError> {
    let is_own = |scaler: &Scaler| !matches!(scaler.rule, ScaleRule::Throughput { .. });
    let own = cloud.scaler.filter(is_own).unwrap_or(Scaler::GOODPUT);
    let with = |scaler: Scaler, blind: bool| {
        let cloud = Cloud { scaler: Some(scaler), ..cloud.clone() };
        one_job("imagenet", &cloud, blind, profiles, policy, seed)
    };
    let by_throughput = Scaler { patience: own.patience, ..Scaler::THROUGHPUT };
    let is_blind = rival == RivalBatch::Throughput;
    Ok(Comparison { goodput: with(own, false)?, throughput: with(by_throughput, is_blind)? })
}

/// Trains one job of an application on a rented cluster; `blind` as [`Options::blind_batch`].
pub fn one_job(
    application: &str,
    cloud: &Cloud,
    blind: bool,
    profiles: &BTreeMap<String, Arc<Profile>>,
    policy: &dyn AnyPolicy,
    seed: u64,
) -> Result<Autoscaled, SimulationError> {
    let batch = profiles.get(application).map_or(1, |profile| profile.limits().initial().0);
    let (name, application) = (application.to_owned(), application.to_owned());
    let job =
        Submission { name: name.clone(), at_secs: 0, application, gpus: 1, batch, work: None, group: None };
    let workload = Workload { name, jobs: vec![job] };
    let (cluster, blind_batch) = (cloud.shape(), blind);
    let options = Options { cluster, cloud: Some(cloud.clone()), blind_batch, seed, ..Options::default() };
    Ok(of_run(&simulate(&workload, profiles, policy, &options)?))
}

fn of_run(run: &Run) -> Autoscaled {
    let bill = &run.log.bill;
    let job = run.jobs.first();
    Autoscaled {
        jct_secs: job.and_then(crate::JobOutcome::jct_secs).unwrap_or_default(),
        cost: bill.cost(),
        node_hours: bill.node_hours(),
        restarts: job.map_or(0, |job| job.restarts),
        series: series(run),
    }
}

/// Changes of the cluster and of the job, in one list.
fn series(run: &Run) -> Vec<Moment> {
    let mut sizes = run.log.bill.totals().into_iter().peekable();
    let mut now = Moment::default();
    let mut series: Vec<Moment> = Vec::new();
    let mut push = |moment: Moment| match series.last_mut() {
        Some(last) if last.secs.to_bits() == moment.secs.to_bits() => *last = moment,
        _ => series.push(moment),
    };
    let mut grow_until = |at: Timestamp, now: &mut Moment, push: &mut dyn FnMut(Moment)| {
        while let Some((then, nodes)) = sizes.next_if(|(then, _)| *then <= at) {
            (now.secs, now.nodes) = (then.as_secs_f64(), nodes);
            push(*now);
        }
    };
    for event in &run.log.events {
        grow_until(event.at, &mut now, &mut push);
        match &event.what {
            What::Started { allocation, .. } => now.gpus = allocation.gpus(),
            What::Batch { global, efficiency } => (now.batch, now.efficiency) = (*global, *efficiency),
            What::Stopped | What::Failed | What::Finished => {
                (now.gpus, now.batch, now.efficiency) = (0.0, 0, 0.0);
            }
            What::Submitted | What::Training => continue,
        }
        now.secs = event.at.as_secs_f64();
        push(now);
    }
    series
}
