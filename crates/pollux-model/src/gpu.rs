//! GPUs: their types, the nodes they sit in, and how much of one a job holds.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A kind of GPU (`t4`, `a100`, `h200`): jobs have one throughput model for each. Ordered by name.
#[derive(Clone, Debug)]
pub struct GpuType(Arc<str>);

impl GpuType {
    /// The type called `name`.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Ord for GpuType {
    /// Copies of one another are told by their place, without a look at the name: plans compare them by the thousand.
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.cmp(&other.0) }
    }
}

impl PartialOrd for GpuType {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for GpuType {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for GpuType {}

impl Hash for GpuType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Default for GpuType {
    /// The one type of a cluster that does not tell its GPUs apart.
    fn default() -> Self {
        Self::new("gpu")
    }
}

impl fmt::Display for GpuType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A node of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// An amount of GPUs on one node: whole ones, or a part of a single one.
///
/// Kept in thousandths, so that two halves are exactly one. Never zero.
///
/// ```
/// use pollux_model::GpuShare;
///
/// assert_eq!(GpuShare::whole(2).unwrap().n_replicas(), 2);
/// let half = GpuShare::part_of_one(500).unwrap();
/// assert_eq!((half.gpus(), half.n_replicas()), (0.5, 1));
/// assert!(GpuShare::part_of_one(1_000).is_none(), "a whole GPU is not a part");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GpuShare(u64);

impl GpuShare {
    const ONE: u64 = 1_000;

    /// `count` whole GPUs; none for a count of zero.
    pub fn whole(count: u32) -> Option<Self> {
        (count > 0).then(|| Self(u64::from(count) * Self::ONE))
    }

    /// `thousandths` of one GPU, which the job shares with others; from 1 to 999.
    pub fn part_of_one(thousandths: u32) -> Option<Self> {
        (1..1_000).contains(&thousandths).then(|| Self(u64::from(thousandths)))
    }

    /// Whether the job has its GPUs to itself.
    pub fn is_whole(self) -> bool {
        self.0.is_multiple_of(Self::ONE)
    }

    /// The amount in thousandths of a GPU.
    pub fn thousandths(self) -> u64 {
        self.0
    }

    /// The amount in GPUs.
    pub fn gpus(self) -> f64 {
        self.0 as f64 / Self::ONE as f64
    }

    /// Replicas that run on it: one for each whole GPU, and one for a part.
    pub fn n_replicas(self) -> u32 {
        u32::try_from(self.0.div_ceil(Self::ONE)).unwrap_or(u32::MAX)
    }
}
