//! One workload on one generation of GPUs after another: what faster GPUs leave of an advantage.

use std::collections::BTreeMap;
use std::sync::Arc;

use pollux_model::JobId;
use pollux_policy::AnyPolicy;

use crate::campaign::{Contender, World, WorldError};
use crate::cluster::ClusterShape;
use crate::log::{Event, What};
use crate::metrics::Metrics;
use crate::outcome::Run;
use crate::profile::{PackedOn, Profile};
use crate::simulation::Options;
use crate::workload::Workload;
use crate::workload::requests::fastest_near;

/// How a policy fared on one cluster, as means over workloads.
#[derive(Clone, Debug, PartialEq)]
pub struct HardwareRow {
    /// The cluster.
    pub cluster: String,
    /// The policy's label.
    pub policy: String,
    /// Mean time from submission to completion, in seconds.
    pub avg_jct_secs: f64,
    /// The same over that of the first policy on the same cluster.
    pub against_first: f64,
    /// The part of it in which a job holds no GPU, on average, in seconds.
    pub waiting_secs: f64,
    /// GPUs that a job holds, while it holds any.
    pub gpus_per_job: f64,
    /// Batch over the initial one, weighted by the GPU-seconds trained with it.
    pub batch_growth: f64,
    /// Statistical efficiency, weighted likewise.
    pub efficiency: f64,
    /// The part of the time with GPUs that restarts take.
    pub lost_share: f64,
    /// GPU-seconds held over those there were.
    pub utilisation: f64,
    /// The worst finish-time fairness.
    pub worst_rho: f64,
}

/// Every policy on every cluster, with the same jobs and, number by number, the seeds of the workloads: rows by cluster,
/// then by policy.
///
/// The jobs must fit the smallest cluster, and their profiles know all types. What users ask for stays as it is on
/// faster GPUs: policies that heed it can make no more of them.
pub fn compare_hardware(
    contenders: &[Contender],
    clusters: &[ClusterShape],
    workloads: &[(u64, Workload)],
    profiles: &BTreeMap<String, Arc<Profile>>,
    options: &Options,
) -> Result<Vec<HardwareRow>, WorldError> {
    let mut rows: Vec<HardwareRow> = Vec::with_capacity(clusters.len() * contenders.len());
    for cluster in clusters {
        let options = Options { cluster: cluster.clone(), ..options.clone() };
        let world = World::Profiles { profiles: profiles.clone(), options };
        let first = rows.len();
        for Contender { label, policy } in contenders {
            let row = row(&world, label, policy.as_ref(), workloads, profiles)?;
            let against = rows.get(first).map_or(row.avg_jct_secs, |first| first.avg_jct_secs);
            rows.push(HardwareRow { against_first: row.avg_jct_secs / against, ..row });
        }
    }
    Ok(rows)
}

/// The time that jobs need one GPU at a time, over the time of all GPUs of a cluster in so many seconds.
///
/// Each job alone with the batch that is fastest there, on the fewest GPUs it runs on. At 1 the cluster could just do the
/// work while it comes in, if GPUs added up without loss; they do not, so it is busy below. None where a job has no profile
/// for the cluster's GPUs.
pub fn relative_load(
    workload: &Workload,
    profiles: &BTreeMap<String, Arc<Profile>>,
    cluster: &ClusterShape,
    secs: f64,
) -> Option<f64> {
    let mut known: BTreeMap<&str, f64> = BTreeMap::new();
    let mut needed = 0.0;
    for job in &workload.jobs {
        let name = job.application.as_str();
        let gpu_secs = if let Some(gpu_secs) = known.get(name) {
            *gpu_secs
        } else {
            let packed = PackedOn::cluster(profiles.get(name)?, cluster)?;
            let (request, secs) = fastest_near(&packed, 1)?;
            let gpu_secs = f64::from(request.gpus) * secs;
            known.insert(name, gpu_secs);
            gpu_secs
        };
        needed += gpu_secs * job.work_scale();
    }
    (secs > 0.0).then(|| needed / (f64::from(cluster.gpus()) * secs))
}

fn row(
    world: &World,
    label: &str,
    policy: &dyn AnyPolicy,
    workloads: &[(u64, Workload)],
    profiles: &BTreeMap<String, Arc<Profile>>,
) -> Result<HardwareRow, WorldError> {
    let mut row = HardwareRow {
        cluster: world.cluster().to_string(),
        policy: label.to_owned(),
        avg_jct_secs: 0.0,
        against_first: 1.0,
        waiting_secs: 0.0,
        gpus_per_job: 0.0,
        batch_growth: 0.0,
        efficiency: 0.0,
        lost_share: 0.0,
        utilisation: 0.0,
        worst_rho: 0.0,
    };
    let part = 1.0 / workloads.len().max(1) as f64;
    for (seed, jobs) in workloads {
        let run = world.simulate(jobs, policy, *seed)?;
        let metrics = Metrics::of(&run);
        let held = run.jobs.iter().map(|job| job.held_secs).sum::<f64>().max(f64::MIN_POSITIVE);
        let (growth, efficiency) = batches(&run, profiles);
        row.avg_jct_secs += part * metrics.avg_jct_secs;
        let done: Vec<_> = run.jobs.iter().filter_map(|job| Some((job.jct_secs()?, job.held_secs))).collect();
        let waiting = done.iter().map(|(jct, held)| jct - held).sum::<f64>() / done.len().max(1) as f64;
        row.waiting_secs += part * waiting;
        row.gpus_per_job += part * metrics.gpu_secs / held;
        row.batch_growth += part * growth;
        row.efficiency += part * efficiency;
        row.lost_share += part * metrics.lost_share;
        row.utilisation += part * metrics.utilisation;
        row.worst_rho += part * metrics.worst_rho;
    }
    Ok(row)
}

/// A job on its way through the log.
#[derive(Default)]
struct Trail {
    gpus: f64,
    /// Since when it trains with its batch.
    since: Option<f64>,
    growth: f64,
    efficiency: f64,
}

/// Growth of the batch, and efficiency, each weighted by GPU-seconds of training.
fn batches(run: &Run, profiles: &BTreeMap<String, Arc<Profile>>) -> (f64, f64) {
    let mut trails: BTreeMap<JobId, Trail> = BTreeMap::new();
    let (mut growth, mut efficiency, mut all) = (0.0, 0.0, 0.0);
    for Event { at, job, what } in &run.log.events {
        let (now, trail) = (at.as_secs_f64(), trails.entry(*job).or_default());
        if let Some(since) = trail.since.take() {
            let gpu_secs = (now - since) * trail.gpus;
            growth += gpu_secs * trail.growth;
            efficiency += gpu_secs * trail.efficiency;
            all += gpu_secs;
        }
        match what {
            What::Started { allocation, .. } => trail.gpus = allocation.gpus(),
            What::Batch { global, efficiency } => {
                let application = usize::try_from(job.0).ok().and_then(|index| run.jobs.get(index));
                let profile = application.and_then(|job| profiles.get(&job.application));
                let initial = profile.map_or(1, |profile| profile.limits().initial().0);
                (trail.growth, trail.efficiency) = (*global as f64 / initial as f64, *efficiency);
                trail.since = Some(now);
            }
            What::Submitted | What::Training | What::Stopped | What::Failed | What::Finished => {}
        }
    }
    if all > 0.0 { (growth / all, efficiency / all) } else { (0.0, 0.0) }
}
