//! Who holds which GPUs.

use std::collections::{BTreeMap, BTreeSet};

use pollux_model::{Allocation, GpuType, NodeId, Timestamp};
use pollux_policy::{Node, NodeState};

use crate::input::NodeSpec;
use crate::scaler::{Leaving, PoolId};
use crate::state::NodeRecord;

/// Every node with the number of its GPUs that have a holder. A GPU is free only when its last holder is gone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    nodes: BTreeMap<NodeId, Entry>,
    /// Why nodes are on their way out.
    leaving: BTreeMap<NodeId, Leaving>,
    /// GPUs of the largest node, and of all.
    sizes: (u32, u32),
    gpu_types: BTreeSet<GpuType>,
}

#[derive(Clone, Debug)]
struct Entry {
    spec: NodeSpec,
    state: NodeState,
    others: u32,
    held: u32,
    /// The pool it was bought from, and when it came.
    of_pool: Option<(PoolId, Timestamp)>,
}

/// A node that is of a pool, or on its way out.
pub(crate) struct Member {
    pub(crate) node: NodeId,
    pub(crate) of_pool: Option<(PoolId, Timestamp)>,
    pub(crate) leaving: Option<Leaving>,
    pub(crate) held: u32,
}

impl Ledger {
    pub(crate) fn records(&self) -> BTreeMap<NodeId, NodeRecord> {
        let record = |(&node, entry): (&NodeId, &Entry)| {
            let Entry { spec, state, others, held: _, of_pool } = entry;
            let leaving = self.leaving.get(&node).copied();
            let (spec, state, others, of_pool) = (spec.clone(), *state, *others, *of_pool);
            (node, NodeRecord { spec, state, others, of_pool, leaving })
        };
        self.nodes.iter().map(record).collect()
    }

    /// The nodes with nobody on them yet.
    pub(crate) fn of(records: BTreeMap<NodeId, NodeRecord>) -> Self {
        let mut ledger = Self::default();
        for (node, NodeRecord { spec, state, others, of_pool, leaving }) in records {
            ledger.nodes.insert(node, Entry { spec, state, others, held: 0, of_pool });
            ledger.set_leaving(node, leaving);
        }
        ledger.measure();
        ledger
    }

    /// Whether so many GPUs of these nodes could be held besides those that are.
    pub(crate) fn has_room(&self, allocation: &Allocation) -> bool {
        allocation.iter().all(|(node, share)| {
            let free = self.nodes.get(&node).map(|entry| entry.spec.gpus.saturating_sub(entry.held));
            share.is_whole() && free.is_some_and(|free| share.n_replicas() <= free)
        })
    }

    pub(crate) fn contains(&self, node: NodeId) -> bool {
        self.nodes.contains_key(&node)
    }

    pub(crate) fn join(&mut self, node: NodeId, spec: NodeSpec, of_pool: Option<(PoolId, Timestamp)>) {
        self.nodes.insert(node, Entry { spec, state: NodeState::Ready, others: 0, held: 0, of_pool });
        self.measure();
    }

    pub(crate) fn set_leaving(&mut self, node: NodeId, leaving: Option<Leaving>) {
        match leaving {
            Some(leaving) => self.leaving.insert(node, leaving),
            None => self.leaving.remove(&node),
        };
    }

    /// Nodes on their way out, and why.
    pub(crate) fn leaving(&self) -> impl Iterator<Item = (NodeId, Leaving)> {
        self.leaving.iter().map(|(&node, &leaving)| (node, leaving))
    }

    /// Who is on its way out empties, whatever else was said of it.
    fn state(&self, node: NodeId, entry: &Entry) -> NodeState {
        if self.leaving.contains_key(&node) { NodeState::Draining } else { entry.state }
    }

    /// Nodes that are of a pool, or on their way out.
    pub(crate) fn members(&self) -> impl Iterator<Item = Member> {
        let all = self.nodes.iter().map(|(&node, entry)| {
            let &Entry { of_pool, held, .. } = entry;
            Member { node, of_pool, leaving: self.leaving.get(&node).copied(), held }
        });
        all.filter(|member| member.of_pool.is_some() || member.leaving.is_some())
    }

    pub(crate) fn lose(&mut self, node: NodeId) {
        self.nodes.remove(&node);
        self.leaving.remove(&node);
        self.measure();
    }

    pub(crate) fn set_state(&mut self, node: NodeId, state: NodeState) {
        if let Some(entry) = self.nodes.get_mut(&node) {
            entry.state = state;
        }
    }

    pub(crate) fn set_others(&mut self, node: NodeId, others: u32) {
        if let Some(entry) = self.nodes.get_mut(&node) {
            entry.others = others;
        }
    }

    /// Whether all of these GPUs have no holder.
    pub(crate) fn is_free(&self, allocation: &Allocation) -> bool {
        allocation.iter().all(|(node, share)| {
            self.nodes.get(&node).is_some_and(|entry| {
                let taken = entry.held.saturating_add(entry.others).saturating_add(share.n_replicas());
                taken <= entry.spec.gpus
            })
        })
    }

    /// The type of these GPUs: whole ones, all of one type, on nodes that jobs may come to. None if they are not.
    pub(crate) fn open_type(&self, allocation: &Allocation) -> Option<&GpuType> {
        let mut types = allocation.iter().map(|(node, share)| {
            let is_open = |entry: &&Entry| self.state(node, entry) == NodeState::Ready && share.is_whole();
            self.nodes.get(&node).filter(is_open).map(|entry| &entry.spec.gpu_type)
        });
        let first = types.next()??;
        types.all(|other| other == Some(first)).then_some(first)
    }

    pub(crate) fn hold(&mut self, allocation: &Allocation) {
        for (node, share) in allocation.iter() {
            if let Some(entry) = self.nodes.get_mut(&node) {
                entry.held += share.n_replicas();
            }
        }
    }

    pub(crate) fn release(&mut self, allocation: &Allocation) {
        for (node, share) in allocation.iter() {
            if let Some(entry) = self.nodes.get_mut(&node) {
                entry.held = entry.held.saturating_sub(share.n_replicas());
            }
        }
    }

    /// GPUs of each node that our jobs may hold.
    pub(crate) fn capacities(&self) -> BTreeMap<NodeId, u32> {
        let usable = |entry: &Entry| entry.spec.gpus.saturating_sub(entry.others);
        self.nodes.iter().map(|(&node, entry)| (node, usable(entry))).collect()
    }

    /// The types of all nodes.
    pub(crate) fn gpu_types(&self) -> &BTreeSet<GpuType> {
        &self.gpu_types
    }

    /// The nodes as a policy sees them where jobs hold this much.
    pub(crate) fn nodes(&self, held: &BTreeMap<NodeId, u32>) -> Vec<Node> {
        let node = |(&id, entry): (&NodeId, &Entry)| {
            let left = entry.spec.gpus.saturating_sub(held.get(&id).copied().unwrap_or(0));
            Node {
                id,
                gpu_type: entry.spec.gpu_type.clone(),
                gpus: entry.spec.gpus,
                // Others may have come to where a job of ours still is.
                others: entry.others.min(left),
                state: self.state(id, entry),
            }
        };
        self.nodes.iter().map(node).collect()
    }

    /// GPUs of the largest node, and of all.
    pub(crate) fn sizes(&self) -> (u32, u32) {
        self.sizes
    }

    fn measure(&mut self) {
        let gpus = || self.nodes.values().map(|entry| entry.spec.gpus);
        self.sizes = (gpus().max().unwrap_or(0), gpus().fold(0, u32::saturating_add));
        self.gpu_types = self.nodes.values().map(|entry| &entry.spec.gpu_type).cloned().collect();
    }

    /// GPUs held of a node; none if it is not there.
    pub(crate) fn held_on(&self, node: NodeId) -> Option<u32> {
        Some(self.nodes.get(&node)?.held)
    }
}
