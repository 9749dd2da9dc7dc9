//! What a cluster of another size would be like.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pollux_model::{Allocation, GoodputModel, GpuType, JobCurves, NodeId, NoiseScale, Placement};
use pollux_policy::{
    AnyPolicy, Cluster, Freedom, Job, Learned, Node, NodeState, Snapshot, SnapshotError, Terms,
};

use super::question::{PoolNow, SizeQuestion, Sizes};
use super::{PoolId, ScaleRule};

/// How jobs would fare.
#[derive(Clone, Debug, Default)]
pub(super) struct Outlook {
    /// Jobs that would hold nothing.
    pub(super) starved: usize,
    /// Sum of speed-ups against one GPU of the same type.
    pub(super) speedups: f64,
    /// GPUs that could be given.
    pub(super) gpus: f64,
    /// Nodes of each pool that nobody would be on.
    pub(super) empty: BTreeMap<PoolId, u32>,
}

impl Outlook {
    /// Speed-up of a GPU; nothing of no GPUs.
    pub(super) fn utility(&self) -> f64 {
        if self.gpus > 0.0 { self.speedups / self.gpus } else { 0.0 }
    }

    /// With so many nodes of each pool, shared out anew by the policy.
    pub(super) fn of(
        question: &SizeQuestion,
        jobs: &[Job],
        sizes: &Sizes,
        policy: &dyn AnyPolicy,
    ) -> Result<Self, SnapshotError> {
        let (nodes, of_pool) = nodes(question, sizes);
        let cluster = Cluster { nodes, ..question.snapshot.cluster().clone() };
        let snapshot = Snapshot::new(cluster, jobs.to_vec())?;
        let plan = policy.plan(&snapshot, &Terms { seed: question.seed, ..Terms::default() });
        let given: Vec<&Allocation> = plan.jobs.iter().map(|job| &job.allocation).collect();
        let used: BTreeSet<NodeId> =
            given.iter().flat_map(|allocation| allocation.iter()).map(|(node, _)| node).collect();
        let mut empty = BTreeMap::new();
        for (node, pool) in of_pool {
            *empty.entry(pool).or_default() += u32::from(!used.contains(&node));
        }
        Ok(Self {
            starved: given.iter().filter(|allocation| allocation.is_empty()).count(),
            speedups: speedups(&snapshot, given.into_iter()),
            gpus: open_gpus(snapshot.cluster()),
            empty,
        })
    }
}

/// Speed-up of a GPU as things are.
pub(super) fn utility_now(snapshot: &Snapshot) -> f64 {
    let gpus = open_gpus(snapshot.cluster());
    let sum = speedups(snapshot, snapshot.jobs().iter().map(|job| &job.holds));
    if gpus > 0.0 { sum / gpus } else { 0.0 }
}

/// GPUs of nodes that stay, less those that others use.
pub(super) fn open_gpus(cluster: &Cluster) -> f64 {
    let open = cluster.nodes.iter().filter(|node| node.state != NodeState::Draining);
    open.fold(0.0, |sum, node| sum + f64::from(node.gpus.saturating_sub(node.others)))
}

/// Of jobs that hold this. A job of which nothing is known is taken to use what it holds.
fn speedups<'a>(snapshot: &Snapshot, holds: impl Iterator<Item = &'a Allocation>) -> f64 {
    let nodes = snapshot.cluster().nodes.iter();
    let types: BTreeMap<NodeId, &GpuType> = nodes.map(|node| (node.id, &node.gpu_type)).collect();
    let mut sum = 0.0;
    for (job, allocation) in snapshot.jobs().iter().zip(holds) {
        let Some(placement) = allocation.placement() else { continue };
        let curves = &job.knows.learned.curves;
        let gpu_type = allocation.iter().next().and_then(|(node, _)| types.get(&node));
        let curve = gpu_type.and_then(|gpu_type| curves.on(gpu_type));
        // On a type it has not seen it scales as on another.
        let curve = curve.or_else(|| curves.iter().next().map(|(_, curve)| curve));
        sum += match curve {
            Some(curve) => curve.speedup(placement, Placement::ALONE).ratio(),
            None => f64::from(placement.n_replicas()),
        };
    }
    sum
}

/// The nodes of a cluster of these sizes, and which of them are of which pool.
fn nodes(question: &SizeQuestion, sizes: &Sizes) -> (Vec<Node>, Vec<(NodeId, PoolId)>) {
    let mut nodes = question.snapshot.cluster().nodes.clone();
    let mut of_pool = Vec::new();
    let taken: BTreeSet<NodeId> = nodes.iter().map(|node| node.id).collect();
    let mut fresh = (0..=u32::MAX).rev().map(NodeId).filter(|id| !taken.contains(id));
    for PoolNow { pool, nodes: present, .. } in &question.pools {
        let size = sizes.get(&pool.id).copied().unwrap_or(0) as usize;
        let (kept, left_out) = present.split_at(size.min(present.len()));
        nodes.retain(|node| !left_out.contains(&node.id));
        of_pool.extend(kept.iter().map(|id| (*id, pool.id)));
        for id in fresh.by_ref().take(size - kept.len()) {
            let (gpu_type, gpus) = (pool.node.gpu_type.clone(), pool.node.gpus);
            nodes.push(Node { id, gpu_type, gpus, others: 0, state: NodeState::Ready });
            of_pool.push((id, pool.id));
        }
    }
    (nodes, of_pool)
}

/// The jobs as if they had yet to be placed, at no cost; who cannot be moved stays.
pub(super) fn unplaced(question: &SizeQuestion) -> Vec<Job> {
    let blind = matches!(question.rule, ScaleRule::Throughput { .. });
    let unplaced = |job: &Job| {
        let mut job = job.clone();
        job.restart_cost = Duration::ZERO;
        if job.freedom == Freedom::Restarting {
            let is_known = job.knows.learned.curves.iter().next().is_some();
            let gpus = job.holds.placement().map_or(1, Placement::n_replicas);
            job.freedom = if is_known { Freedom::Elastic } else { Freedom::Rigid { gpus } };
            job.holds = Allocation::none();
        }
        if !job.is_pinned() {
            job.holds = Allocation::none();
        }
        if blind {
            job.knows.learned = throughput_only(&job.knows.learned, question);
        }
        job
    };
    question.snapshot.jobs().iter().map(unplaced).collect()
}

/// The same curves where every sample counts as much as one of the initial batch.
fn throughput_only(learned: &Learned, question: &SizeQuestion) -> Learned {
    let endless = NoiseScale::from_samples(f64::INFINITY);
    let models = learned.curves.iter().filter_map(|(gpu_type, curve)| {
        let model = curve.model();
        let blind = GoodputModel::new(model.params().clone(), endless?, *model.limits()).ok()?;
        Some((gpu_type.clone(), blind))
    });
    let present = question.snapshot.cluster().nodes.iter().map(|node| (node.gpus, 1));
    let pools = question.pools.iter().map(|now| (now.pool.node.gpus, now.most));
    let (largest, all) = present.chain(pools).fold((0, 0_u32), |(largest, all), (gpus, n)| {
        (gpus.max(largest), all.saturating_add(gpus.saturating_mul(n)))
    });
    let mut curves = JobCurves::default();
    curves.update(models.collect(), largest, all);
    Learned { curves: Arc::new(curves), most_gpus: learned.most_gpus }
}
