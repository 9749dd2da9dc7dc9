//! Which GPUs a job holds, and the shape of that as the model sees it.

use std::num::NonZeroU32;

use crate::gpu::{GpuShare, NodeId};

/// The GPUs one job holds, per node. Never a zero count, so equal allocations compare equal.
///
/// A job holds whole GPUs on any nodes, or a part of one GPU on one node and nothing else.
///
/// ```
/// use pollux_model::{Allocation, NodeId};
///
/// let allocation = Allocation::whole([(NodeId(0), 4), (NodeId(1), 0), (NodeId(2), 2)]);
/// let placement = allocation.placement().unwrap();
/// assert_eq!((placement.n_nodes(), placement.n_replicas()), (2, 6));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Allocation(Vec<(NodeId, GpuShare)>); // by node, each once: a short list is faster than a tree

impl Allocation {
    /// No GPU at all.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whole GPUs, counted per node; zero counts are left out, counts of a node named twice add up.
    pub fn whole(counts: impl IntoIterator<Item = (NodeId, u32)>) -> Self {
        let mut counts: Vec<(NodeId, u32)> = counts.into_iter().filter(|&(_, count)| count > 0).collect();
        counts.sort_unstable();
        counts.dedup_by(|next, sum| {
            let same = next.0 == sum.0;
            if same {
                sum.1 = sum.1.saturating_add(next.1);
            }
            same
        });
        Self(counts.into_iter().filter_map(|(node, count)| Some((node, GpuShare::whole(count)?))).collect())
    }

    /// A part of one GPU of `node`.
    pub fn part_of_one(node: NodeId, share: GpuShare) -> Option<Self> {
        (!share.is_whole()).then(|| Self(vec![(node, share)]))
    }

    /// Whether the job holds nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What it holds on `node`.
    pub fn on(&self, node: NodeId) -> Option<GpuShare> {
        let at = self.0.binary_search_by_key(&node, |&(node, _)| node).ok()?;
        Some(self.0[at].1)
    }

    /// Nodes and amounts, by node.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, GpuShare)> {
        self.0.iter().copied()
    }

    /// The amount in GPUs, all nodes together.
    pub fn gpus(&self) -> f64 {
        // Not `sum`, which is -0.0 of nothing.
        self.0.iter().fold(0.0, |sum, (_, share)| sum + share.gpus())
    }

    /// The shape of this allocation; nothing for an empty one.
    pub fn placement(&self) -> Option<Placement> {
        let n_replicas = self.0.iter().fold(0_u32, |sum, (_, share)| sum.saturating_add(share.n_replicas()));
        Placement::new(u32::try_from(self.0.len()).unwrap_or(u32::MAX), n_replicas)
    }
}

/// The shape of an allocation as the model sees it: how many nodes, how many replicas in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Placement {
    n_nodes: NonZeroU32,
    n_replicas: NonZeroU32,
}

impl Placement {
    /// One replica on one node.
    pub const ALONE: Self = Self { n_nodes: NonZeroU32::MIN, n_replicas: NonZeroU32::MIN };

    /// `n_replicas` on `n_nodes`: at least one of each, and no node without a replica.
    pub fn new(n_nodes: u32, n_replicas: u32) -> Option<Self> {
        let (n_nodes, n_replicas) = (NonZeroU32::new(n_nodes)?, NonZeroU32::new(n_replicas)?);
        (n_nodes <= n_replicas).then_some(Self { n_nodes, n_replicas })
    }

    /// `n_replicas` on as few nodes of `gpus_per_node` as hold them.
    pub fn packed(n_replicas: u32, gpus_per_node: u32) -> Option<Self> {
        Self::new(n_replicas.div_ceil(gpus_per_node.max(1)), n_replicas)
    }

    /// Nodes it spans.
    pub fn n_nodes(self) -> u32 {
        self.n_nodes.get()
    }

    /// Replicas in all, one per GPU.
    pub fn n_replicas(self) -> u32 {
        self.n_replicas.get()
    }

    /// How its replicas exchange gradients.
    pub fn regime(self) -> Regime {
        match (self.n_nodes.get(), self.n_replicas.get()) {
            (_, 1) => Regime::Alone,
            (1, _) => Regime::OneNode,
            _ => Regime::Distributed,
        }
    }
}

/// How replicas exchange gradients. The model tells placements of equal size apart by this alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Regime {
    /// One replica: nothing to exchange.
    Alone,
    /// Several replicas of one node.
    OneNode,
    /// Replicas on two nodes or more.
    Distributed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_counts_leave_no_trace() {
        assert_eq!(Allocation::whole([(NodeId(3), 0)]), Allocation::none());
        assert_eq!(Allocation::none().placement(), None);
    }

    #[test]
    fn nothing_is_no_gpus_and_not_minus_none() {
        assert!(Allocation::none().gpus().is_sign_positive());
        assert_eq!(format!("{}", Allocation::none().gpus()), "0");
    }

    #[test]
    fn counts_of_a_node_named_twice_add_up() {
        let twice = Allocation::whole([(NodeId(5), 1), (NodeId(2), 3), (NodeId(5), 2)]);
        assert_eq!(twice, Allocation::whole([(NodeId(2), 3), (NodeId(5), 3)]));
        assert_eq!((twice.on(NodeId(5)), twice.on(NodeId(3))), (GpuShare::whole(3), None));
    }

    #[test]
    fn a_part_of_a_gpu_runs_one_replica() {
        let share = GpuShare::part_of_one(250).unwrap();
        let allocation = Allocation::part_of_one(NodeId(1), share).unwrap();
        assert_eq!(allocation.placement(), Some(Placement::ALONE));
        assert!((allocation.gpus() - 0.25).abs() < 1e-12);
        assert_eq!(Allocation::part_of_one(NodeId(1), GpuShare::whole(1).unwrap()), None);
    }

    #[test]
    fn a_node_without_a_replica_is_no_placement() {
        assert_eq!(Placement::new(3, 2), None);
        assert_eq!(Placement::new(0, 2), None);
        assert_eq!(Placement::packed(9, 4).map(Placement::n_nodes), Some(3));
    }
}
