//! Which nodes there are, as written on a command line.

use std::fmt;
use std::str::FromStr;

use pollux_core::NodeSpec;
use pollux_model::GpuType;

/// A cluster: so many nodes of so many GPUs of a type, and more such pools.
///
/// ```
/// use pollux_sim::ClusterShape;
///
/// let shape: ClusterShape = "6x4:t4,2x8:a100".parse().unwrap();
/// assert_eq!((shape.nodes().count(), shape.gpus()), (8, 40));
/// assert_eq!(shape.to_string(), "6x4:t4,2x8:a100");
/// assert!("16*4".parse::<ClusterShape>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterShape {
    pools: Vec<(u32, NodeSpec)>,
}

/// Most nodes of a cluster.
const MOST_NODES: u32 = 100_000;
/// Most GPUs of a node.
const MOST_GPUS: u32 = 64;

/// Text that describes no cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// Not the form that is expected.
    #[error("`{0}` is no cluster; write NODESxGPUS:TYPE, as in 16x4:t4, and more after commas")]
    Form(String),
    /// A number out of range.
    #[error("`{0}`: 1 to {MOST_NODES} nodes of 1 to {MOST_GPUS} GPUs")]
    Range(String),
}

impl ClusterShape {
    /// `n_nodes` nodes of `gpus` GPUs.
    pub fn uniform(n_nodes: u32, gpus: u32, gpu_type: &GpuType) -> Self {
        Self { pools: vec![(n_nodes, NodeSpec { gpu_type: gpu_type.clone(), gpus })] }
    }

    /// So many nodes of each kind.
    pub(crate) fn of_pools(pools: Vec<(u32, NodeSpec)>) -> Self {
        Self { pools }
    }

    /// The nodes, one after the other.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeSpec> {
        self.pools.iter().flat_map(|(n_nodes, spec)| (0..*n_nodes).map(move |_| spec))
    }

    /// All GPUs.
    pub fn gpus(&self) -> u32 {
        self.pools.iter().fold(0, |sum, (n_nodes, spec)| sum + n_nodes * spec.gpus)
    }

    /// The types of GPU, in order and each once.
    pub fn gpu_types(&self) -> Vec<GpuType> {
        let mut types: Vec<GpuType> = self.pools.iter().map(|(_, spec)| spec.gpu_type.clone()).collect();
        types.sort();
        types.dedup();
        types
    }

    /// GPUs of the largest node of a type; 0 if there is none.
    pub fn largest_node(&self, gpu_type: &GpuType) -> u32 {
        let of_type = self.pools.iter().filter(|(_, spec)| spec.gpu_type == *gpu_type);
        of_type.map(|(_, spec)| spec.gpus).max().unwrap_or(0)
    }

    /// GPUs of a type.
    pub fn gpus_of(&self, gpu_type: &GpuType) -> u32 {
        let of_type = self.pools.iter().filter(|(_, spec)| spec.gpu_type == *gpu_type);
        of_type.fold(0, |sum, (n_nodes, spec)| sum + n_nodes * spec.gpus)
    }
}

impl Default for ClusterShape {
    /// The paper's: 16 nodes of 4 T4.
    fn default() -> Self {
        Self::uniform(16, 4, &GpuType::new("t4"))
    }
}

impl FromStr for ClusterShape {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<Self, ShapeError> {
        let mut pools = Vec::new();
        let mut n_all = 0_u32;
        for part in text.split(',') {
            let form = || ShapeError::Form(part.to_owned());
            let (size, gpu_type) = part.split_once(':').unwrap_or((part, "t4"));
            let (n_nodes, gpus) = size.split_once('x').ok_or_else(form)?;
            let n_nodes: u32 = n_nodes.parse().map_err(|_| form())?;
            let gpus: u32 = gpus.parse().map_err(|_| form())?;
            let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if gpu_type.is_empty() || !gpu_type.chars().all(is_name) {
                return Err(form());
            }
            n_all = n_all.saturating_add(n_nodes);
            if !(1..=MOST_NODES).contains(&n_nodes) || !(1..=MOST_GPUS).contains(&gpus) || n_all > MOST_NODES
            {
                return Err(ShapeError::Range(part.to_owned()));
            }
            pools.push((n_nodes, NodeSpec { gpu_type: GpuType::new(gpu_type), gpus }));
        }
        Ok(Self { pools })
    }
}

impl fmt::Display for ClusterShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (n_nodes, spec)) in self.pools.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{n_nodes}x{}:{}", spec.gpus, spec.gpu_type)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_error(text: &str, expected: &str) {
        let error = text.parse::<ClusterShape>().unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }

    #[test]
    fn shapes_are_counted_by_type() {
        let shape: ClusterShape = "6x4:t4,2x8:a100,1x8:t4".parse().unwrap();
        let [t4, a100] = ["t4", "a100"].map(GpuType::new);
        assert_eq!((shape.gpus(), shape.gpus_of(&t4), shape.gpus_of(&a100)), (48, 32, 16));
        assert_eq!((shape.largest_node(&t4), shape.largest_node(&GpuType::new("h100"))), (8, 0));
        assert_eq!(shape.gpu_types(), [a100, t4]);
        assert_eq!("16x4".parse(), Ok(ClusterShape::default()));
    }

    #[test]
    fn what_is_no_cluster_is_said() {
        for text in ["", "16", "x4", "16x4:", "16x4:t4,", "axb:t4", "2x2:t 4", "-1x4"] {
            check_error(text, "NODESxGPUS:TYPE");
        }
        for text in ["0x4:t4", "16x0:t4", "1x65:t4", "100001x1", "60000x1,60000x1"] {
            check_error(text, "1 to 100000 nodes");
        }
    }
}
