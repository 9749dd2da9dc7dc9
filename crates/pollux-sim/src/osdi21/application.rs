//! The six applications and the limits the artifact sets them.

use crate::workload::Known;

/// What an application may do: batch sizes in samples, length in epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Name, also of the folder of its traces.
    pub name: &'static str,
    /// Initial batch size: the smallest one it was trained with.
    pub init_batch: u32,
    /// Largest batch size it was trained with.
    pub max_batch: u32,
    /// Smallest batch of one GPU and one pass.
    pub min_local: u32,
    /// Largest batch of one GPU and one pass.
    pub max_local: u32,
    /// Epochs until it is complete; no application has a target metric.
    pub n_epochs: u32,
}

/// The applications by name. The local range is what `placements.csv` covers, but for yolov3, which was measured up to
/// 16 and is held to 8 by the artifact.
pub const APPLICATIONS: [Limits; 6] = [
    limits("bert", (12, 384), (4, 12), 2),
    limits("cifar10", (128, 4_096), (32, 1_024), 100),
    limits("deepspeech2", (20, 640), (10, 80), 80),
    limits("imagenet", (200, 12_800), (20, 200), 90),
    limits("ncf", (256, 32_768), (32, 32_768), 10),
    limits("yolov3", (8, 512), (4, 8), 50),
];

const fn limits(name: &'static str, batch: (u32, u32), local: (u32, u32), n_epochs: u32) -> Limits {
    Limits { name, init_batch: batch.0, max_batch: batch.1, min_local: local.0, max_local: local.1, n_epochs }
}

impl Limits {
    /// Those of the application with this name.
    ///
    /// ```
    /// use pollux_sim::osdi21::Limits;
    ///
    /// assert_eq!(Limits::named("bert").unwrap().init_batch, 12);
    /// assert_eq!(Limits::named("gpt"), None);
    /// ```
    pub fn named(name: &str) -> Option<&'static Self> {
        APPLICATIONS.iter().find(|limits| limits.name == name)
    }

    /// What a reader of workloads must know of all six.
    pub fn known() -> [Known<'static>; 6] {
        APPLICATIONS.map(|Self { name, init_batch, max_batch, .. }| Known {
            name,
            initial_batch: init_batch.into(),
            max_batch: max_batch.into(),
        })
    }

    /// The most replicas that can each have their smallest batch.
    pub fn max_replicas(&self) -> u32 {
        self.max_batch / self.min_local
    }
}
