//! A cluster and its jobs at one moment, as JSON, version 1: all that a policy needs for a plan.
//!
//! People may write one by hand, so absent keys have defaults. They also mistype, so an unknown key, node or
//! group is an error that names its place and the name that is nearest. No nodes or no jobs is no error.

mod error;
mod job;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use pollux_model::GpuType;
use pollux_policy::{Known, Snapshot};

use crate::Names;
use crate::near::nearest;
use crate::quote::Quoted;
pub use error::{Owner, Problem, SnapshotFileError};

/// The version this crate writes, and the only one it reads.
pub const VERSION: u64 = 1;

/// Most nodes of a snapshot, counting those that `count` stands for.
pub const MOST_NODES: u32 = 100_000;

/// Most GPUs of one node.
pub const MOST_GPUS_PER_NODE: u32 = 1_024;

/// A snapshot and what people call the things in it.
///
/// The ids of a snapshot that was read are positions: `NodeId(0)` is the first node.
///
/// ```
/// use pollux_api::snapshot::NamedSnapshot;
///
/// let json = r#"{
///     "nodes": [{"name": "rack", "count": 2, "gpu_type": "a100", "gpus": 8}],
///     "jobs": [{"name": "bert", "holds": {"rack-1": 4}, "age_s": 3600}]
/// }"#;
/// let read = NamedSnapshot::read("snapshot.json", json.as_bytes())?;
/// assert_eq!(read.snapshot.cluster().nodes.len(), 2);
/// assert_eq!(read.names.job(read.snapshot.jobs()[0].id), "bert");
///
/// let again = NamedSnapshot::read("again", read.to_json().as_bytes())?;
/// assert_eq!(again.to_json(), read.to_json());
/// # Ok::<(), pollux_api::snapshot::SnapshotFileError>(())
/// ```
#[derive(Clone, Debug)]
pub struct NamedSnapshot {
    /// The snapshot.
    pub snapshot: Snapshot<Known>,
    /// Names of its nodes, groups and jobs.
    pub names: Names,
}

impl NamedSnapshot {
    /// Reads a snapshot. `file` is the name that errors give it.
    ///
    /// # Errors
    ///
    /// What is not JSON, not of this version, or contradicts itself; the error names the job and the key.
    pub fn read(file: &str, bytes: &[u8]) -> Result<Self, SnapshotFileError> {
        read::parse(bytes).map_err(|trouble| trouble.of_file(file))
    }

    /// The snapshot's text, with a newline at its end.
    ///
    /// Read back it is the same snapshot, but for what a genetic algorithm bred, queues of demoted jobs, times received by GPU
    /// type and oracles, which are not written, and times, which are kept to the microsecond.
    pub fn to_json(&self) -> String {
        write::to_json(self)
    }

    /// What is no error and yet looks like one, a sentence each: GPU types that no node has.
    pub fn remarks(&self) -> Vec<String> {
        let cluster = self.snapshot.cluster();
        let known: BTreeSet<&GpuType> = cluster.nodes.iter().map(|node| &node.gpu_type).collect();
        if known.is_empty() {
            return Vec::new();
        }
        // The first mention of each.
        let mut strange = BTreeMap::<&GpuType, String>::new();
        let mut mention = |gpu_type, by: String| {
            if !known.contains(gpu_type) {
                strange.entry(gpu_type).or_insert(by);
            }
        };
        for gpu_type in cluster.speeds.keys() {
            mention(gpu_type, "`gpu_speeds` names".to_owned());
        }
        for group in &cluster.groups {
            let by = || format!("group {} names", Quoted(&self.names.group(group.id)));
            group.entitled.keys().chain(group.caps.keys()).for_each(|gpu_type| mention(gpu_type, by()));
        }
        for job in self.snapshot.jobs() {
            let by = || format!("job {} asks for", Quoted(&self.names.job(job.id)));
            job.types.iter().for_each(|gpu_type| mention(gpu_type, by()));
        }
        strange.iter().map(|(gpu_type, by)| remark(gpu_type, by, &known)).collect()
    }
}

fn remark(gpu_type: &GpuType, by: &str, known: &BTreeSet<&GpuType>) -> String {
    let known = known.iter().map(|gpu_type| gpu_type.name());
    let meant = nearest(gpu_type.name(), known).map(|near| format!("; did you mean {}?", Quoted(near)));
    let meant = meant.unwrap_or_default();
    format!("no node has GPUs of type {}, which {by}{meant}", Quoted(gpu_type.name()))
}
