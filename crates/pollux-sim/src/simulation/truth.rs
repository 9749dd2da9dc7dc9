//! What nobody in the simulated world can know.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pollux_model::{BatchLimits, GpuType, Placement, Timestamp};
use pollux_policy::Oracle;

use super::job::{SimJob, Slowed};
use crate::cluster::ClusterShape;
use crate::profile::Profile;

/// Seconds from start to completion of a job that has these GPUs to itself.
pub(super) fn alone_secs(
    profile: &Arc<Profile>,
    limits: BatchLimits,
    gpu_type: &GpuType,
    placement: Placement,
    restart: Duration,
    network: f64,
) -> Option<f64> {
    let job = SimJob::new(profile.clone(), 1.0, limits, BTreeMap::new(), None);
    let mut job = job.with_network(network);
    job.begin(Timestamp::ZERO + restart, gpu_type, placement, Slowed::default())?;
    loop {
        let now = job.next_wake()?;
        if job.wake(now).finished {
            return Some(now.as_secs_f64());
        }
    }
}

/// The same on so many GPUs of each type that the job may use, as one speed: the mean of its speeds on them, weighted by
/// how many GPUs of each there are. So the policy's own fair share is counted.
pub(super) fn fair_secs(
    profile: &Arc<Profile>,
    limits: BatchLimits,
    cluster: &ClusterShape,
    gpus: u32,
    restart: Duration,
    network: f64,
) -> Option<f64> {
    let (mut speed, mut weight, mut n_types, mut last) = (0.0, 0.0, 0, None);
    for gpu_type in cluster.gpu_types().iter().filter(|gpu_type| profile.step_times(gpu_type).is_some()) {
        let pool = cluster.gpus_of(gpu_type);
        let most = profile.max_gpus(gpu_type).min(limits.max_replicas()).min(pool);
        let placement = Placement::packed(gpus.min(most).max(1), cluster.largest_node(gpu_type))?;
        let secs = alone_secs(profile, limits, gpu_type, placement, restart, network)?;
        speed += f64::from(pool) / secs;
        weight += f64::from(pool);
        (n_types, last) = (n_types + 1, Some(secs));
    }
    // One type needs no mean, nor its rounding.
    if n_types == 1 { last } else { (speed > 0.0).then(|| weight / speed) }
}

/// What a policy with an oracle is told of one application at one batch.
#[derive(Clone, Debug)]
pub(super) struct Foresight {
    /// Seconds of a step on 1, 2, .. GPUs on as few nodes as hold them.
    step_secs: Arc<[f64]>,
    /// The same on each type of the cluster that it was measured on; empty if there is but one.
    step_secs_by_type: Arc<BTreeMap<GpuType, Arc<[f64]>>>,
    /// Steps from the beginning of each epoch to the end of training.
    steps_left: Vec<f64>,
    /// Progress of a step in each epoch.
    gains: Vec<f64>,
    max_gpus: u32,
}

impl Foresight {
    pub(super) fn new(
        profile: &Profile,
        limits: &BatchLimits,
        gpu_type: &GpuType,
        gpus_per_node: u32,
    ) -> Self {
        let batch = limits.min().0;
        let max_gpus = profile.max_gpus(gpu_type).min(limits.max_replicas()).max(1);
        let training = profile.training();
        let initial = profile.limits().initial().0;
        let gains: Vec<f64> =
            (0..training.n_epochs()).map(|epoch| training.gain(epoch, batch, initial)).collect();
        let mut steps_left = vec![0.0; gains.len() + 1];
        for epoch in (0..gains.len()).rev() {
            let begin = if epoch > 0 { training.epoch_end(epoch - 1) } else { 0.0 };
            steps_left[epoch] = steps_left[epoch + 1] + (training.epoch_end(epoch) - begin) / gains[epoch];
        }
        let step_secs = true_steps(profile, limits, gpu_type, gpus_per_node);
        Self { step_secs, step_secs_by_type: Arc::default(), steps_left, gains, max_gpus }
    }

    /// With step times on each type of a cluster, if there are several.
    pub(super) fn by_type(mut self, profile: &Profile, limits: &BatchLimits, cluster: &ClusterShape) -> Self {
        let types = cluster.gpu_types();
        if types.len() > 1 {
            let measured = types.into_iter().filter(|gpu_type| profile.step_times(gpu_type).is_some());
            let steps = measured.map(|gpu_type| {
                let steps = true_steps(profile, limits, &gpu_type, cluster.largest_node(&gpu_type));
                (gpu_type, steps)
            });
            self.step_secs_by_type = Arc::new(steps.collect());
        }
        self
    }

    /// The truth about a job that stands at `progress` in its `epoch`, with `scale` times the profile's work.
    pub(super) fn oracle(&self, profile: &Profile, epoch: usize, progress: f64, scale: f64) -> Oracle {
        let in_epoch = (profile.training().epoch_end(epoch) - progress).max(0.0) / self.gains[epoch];
        Oracle {
            remaining_iterations: (self.steps_left[epoch + 1] + in_epoch) * scale,
            step_secs: self.step_secs.clone(),
            step_secs_by_type: self.step_secs_by_type.clone(),
            max_gpus: self.max_gpus,
        }
    }
}

/// Seconds of a step at the user's batch on 1, 2, .. GPUs of a type, on as few nodes as hold them.
fn true_steps(profile: &Profile, limits: &BatchLimits, gpu_type: &GpuType, gpus_per_node: u32) -> Arc<[f64]> {
    let batch = limits.min().0;
    let max_gpus = profile.max_gpus(gpu_type).min(limits.max_replicas()).max(1);
    let step_secs = |gpus: u32| {
        let placement = Placement::packed(gpus, gpus_per_node)?;
        let share = batch.div_ceil(u64::from(gpus));
        let passes = share.div_ceil(u64::from(profile.limits_on(gpu_type).micro_max())).max(1);
        let micro = u32::try_from(share.div_ceil(passes)).ok()?;
        let time = profile.step_time(gpu_type, placement, micro)?;
        Some(time.iteration_secs(u32::try_from(passes - 1).ok()?))
    };
    (1..=max_gpus).map_while(step_secs).collect()
}
