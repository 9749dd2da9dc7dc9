//! Run times of a profile on a cluster, for whoever draws workloads.

use pollux_model::{GpuType, Placement};

use super::Profile;
use crate::cluster::ClusterShape;
use crate::workload::{Known, Runtimes};

/// A profile on GPUs of one type, packed on as few nodes as hold them.
///
/// ```
/// use pollux_sim::ClusterShape;
/// use pollux_sim::profile::{PackedOn, builtin};
/// use pollux_sim::workload::Runtimes as _;
///
/// let profiles = builtin();
/// let bert = PackedOn::cluster(&profiles[0], &ClusterShape::default()).unwrap();
/// assert!(bert.run_secs(2, 24) < bert.run_secs(1, 12));
/// ```
#[derive(Clone, Debug)]
pub struct PackedOn<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// The type of GPU.
    pub gpu_type: GpuType,
    /// GPUs of a node.
    pub gpus_per_node: u32,
    /// The most GPUs there are.
    pub most_gpus: u32,
}

impl<'a> PackedOn<'a> {
    /// On the largest nodes of that type which the cluster has most of, among those the profile knows. Nothing if it
    /// knows none of them.
    pub fn cluster(profile: &'a Profile, cluster: &ClusterShape) -> Option<Self> {
        let known = cluster.gpu_types().into_iter().filter(|gpu_type| profile.step_times(gpu_type).is_some());
        // The first by name of equals.
        let gpu_type = known.rev().max_by_key(|gpu_type| cluster.gpus_of(gpu_type))?;
        let (gpus_per_node, most_gpus) = (cluster.largest_node(&gpu_type), cluster.gpus_of(&gpu_type));
        Some(Self { profile, gpu_type, gpus_per_node, most_gpus })
    }
}

impl Runtimes for PackedOn<'_> {
    fn initial_batch(&self) -> u64 {
        self.profile.limits().initial().0
    }

    fn max_batch(&self) -> u64 {
        self.profile.limits().max().0
    }

    fn max_gpus(&self) -> u32 {
        self.profile.max_gpus(&self.gpu_type).min(self.most_gpus)
    }

    fn run_secs(&self, gpus: u32, batch: u64) -> Option<f64> {
        let placement = Placement::new(gpus.div_ceil(self.gpus_per_node.max(1)), gpus)?;
        self.profile.run_secs(&self.gpu_type, placement, batch)
    }
}

impl Profile {
    /// What a reader of workloads must know of it.
    pub fn known(&self) -> Known<'_> {
        let limits = self.limits();
        Known { name: self.name(), initial_batch: limits.initial().0, max_batch: limits.max().0 }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::profile::parse_profile;

    /// 20 steps at a batch of 20, without noise: 1 s alone, half as long on two GPUs of a node, 3 s on two nodes.
    const SMALL: &str = r#"{
        "kind": "pollux.application", "version": 1, "name": "small", "source": "made up",
        "batch": {"initial": 20, "max": 20, "micro_min": 10, "micro_max": 20},
        "restart_secs": 30,
        "work": {"epoch_ends": [20], "noise_scales": {"batches": [20], "epochs": [[0]]}},
        "step_times": {"t4": {"shapes": [
            {"nodes": 1, "replicas": 1, "micro_batches": [10, 20], "step_secs": [1, 1], "sync_secs": [0, 0]},
            {"nodes": 1, "replicas": 2, "micro_batches": [10, 20], "step_secs": [0.5, 0.5], "sync_secs": [0, 0]},
            {"nodes": 2, "replicas": 2, "micro_batches": [10, 20], "step_secs": [3, 3], "sync_secs": [0, 0]}
        ]}}
    }"#;

    fn check(cluster: &str, gpus: u32, expected: Option<f64>) {
        let profile = parse_profile(Path::new("small.json"), SMALL).unwrap();
        let packed = PackedOn::cluster(&profile, &cluster.parse().unwrap());
        let secs =
            packed.filter(|packed| gpus <= packed.max_gpus()).and_then(|packed| packed.run_secs(gpus, 20));
        assert_eq!(secs, expected, "{gpus} of {cluster}");
    }

    #[test]
    fn run_times_are_those_of_as_few_nodes_as_possible() {
        check("2x4:t4", 1, Some(20.0));
        check("2x4:t4", 2, Some(10.0));
        check("2x1:t4", 2, Some(60.0));
        check("8x8:a100,1x2:t4", 2, Some(10.0));
    }

    #[test]
    fn nobody_asks_for_more_than_there_is() {
        check("1x1:t4", 2, None);
        check("2x4:t4", 3, None); // 20 samples are 10 for each of two
        check("8x8:a100", 1, None);
    }
}
