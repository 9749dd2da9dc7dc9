//! Where jobs go: what is free, by GPU type and by node, and what groups may still hold.
//!
//! Policies that do not weigh places decide in two steps. First GPUs are counted: who keeps what it holds and who
//! gets how many of which type. Then nodes are picked. A job may be spread over any nodes of a type, so what was
//! promised by count is there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use pollux_model::{Allocation, GpuType, NodeId};

use crate::plan::Limit;
use crate::snapshot::{GroupId, Job, NodeState, Snapshot};

/// The cluster less what others use and what may not be moved.
#[derive(Debug)]
pub(super) struct Room {
    /// GPU types by name.
    pools: Vec<Pool>,
    slots: BTreeMap<NodeId, Slot>,
    caps: Vec<Cap>,
    /// The caps that the jobs of each group count for: its own and those of all it is part of.
    caps_of: BTreeMap<GroupId, Vec<usize>>,
}

/// The nodes of one GPU type.
#[derive(Debug)]
struct Pool {
    gpu_type: GpuType,
    /// GPUs of open nodes that others do not use.
    total: u32,
    /// Those of them that nobody was promised.
    left: u32,
    /// Open nodes with free GPUs; the last has most of them and, of those, the lowest id.
    free: BTreeSet<(u32, Reverse<NodeId>)>,
}

#[derive(Debug)]
struct Slot {
    pool: usize,
    state: NodeState,
    free: u32,
}

/// A group's limit on one type.
#[derive(Debug)]
struct Cap {
    group: GroupId,
    pool: usize,
    limit: u32,
    left: u32,
}

/// How a job is laid out on nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// All of the node with most free GPUs, and so on: what the authors' ports do.
    Emptiest,
    /// On as few nodes as possible, and of those the ones it fills best.
    Packed,
}

impl Room {
    pub(super) fn new<K>(snapshot: &Snapshot<K>) -> Self {
        let cluster = snapshot.cluster();
        let types: BTreeSet<&GpuType> = cluster.nodes.iter().map(|node| &node.gpu_type).collect();
        let pool = |gpu_type: &&GpuType| Pool {
            gpu_type: (*gpu_type).clone(),
            total: 0,
            left: 0,
            free: BTreeSet::new(),
        };
        let mut room = Self {
            pools: types.iter().map(pool).collect(),
            slots: BTreeMap::new(),
            caps: Vec::new(),
            caps_of: BTreeMap::new(),
        };
        for node in &cluster.nodes {
            let Some(at) = room.pools.iter().position(|pool| pool.gpu_type == node.gpu_type) else {
                continue;
            };
            let free = node.gpus.saturating_sub(node.others);
            room.slots.insert(node.id, Slot { pool: at, state: node.state, free });
            if node.state == NodeState::Ready {
                let pool = &mut room.pools[at];
                pool.total = pool.total.saturating_add(free);
                pool.free.insert((free, Reverse(node.id)));
            }
        }
        for pool in &mut room.pools {
            pool.left = pool.total;
        }
        room.add_caps(snapshot);
        for job in snapshot.jobs().iter().filter(|job| job.is_pinned()) {
            room.charge(job);
            room.hold(job);
        }
        room
    }

    fn add_caps<K>(&mut self, snapshot: &Snapshot<K>) {
        let groups = &snapshot.cluster().groups;
        let mut own = BTreeMap::<GroupId, Vec<usize>>::new();
        for group in groups {
            for (gpu_type, &limit) in &group.caps {
                if let Some(pool) = self.pools.iter().position(|pool| pool.gpu_type == *gpu_type) {
                    own.entry(group.id).or_default().push(self.caps.len());
                    self.caps.push(Cap { group: group.id, pool, limit, left: limit });
                }
            }
        }
        let parents: BTreeMap<GroupId, Option<GroupId>> =
            groups.iter().map(|group| (group.id, group.parent)).collect();
        for group in groups {
            let mut caps = Vec::new();
            let mut at = Some(group.id);
            while let Some(id) = at {
                caps.extend(own.get(&id).into_iter().flatten().copied());
                at = parents.get(&id).copied().flatten();
            }
            self.caps_of.insert(group.id, caps);
        }
    }

    /// The type of what a job holds, if it may stay there: no node of it is to be emptied.
    pub(super) fn may_stay<K>(&self, job: &Job<K>) -> Option<usize> {
        let mut on = None;
        for (node, _) in job.holds.iter() {
            let slot = self.slots.get(&node).filter(|slot| slot.state != NodeState::Draining)?;
            on = Some(slot.pool);
        }
        on.filter(|&pool| self.may_use(job, pool))
    }

    /// Whether a job holds GPUs that it could not come back to.
    pub(super) fn is_on_closed<K>(&self, job: &Job<K>) -> bool {
        let is_closed = |node| self.slots.get(&node).is_some_and(|slot| slot.state != NodeState::Ready);
        job.holds.iter().any(|(node, _)| is_closed(node))
    }

    /// Leaves a job where it is, if it may stay, and neither those before it nor a cap are in its way.
    pub(super) fn keep<K>(&mut self, job: &Job<K>) -> bool {
        let Some(pool) = self.may_stay(job) else { return false };
        let (open, all) = self.held(job);
        let fits = open <= self.pools[pool].left && self.refusing(job, pool, all).is_none();
        if fits {
            self.charge(job);
            self.hold(job);
        }
        fits
    }

    /// Promises GPUs of one type: that of `first` if it has them, else that with most left.
    pub(super) fn promise<K>(&mut self, job: &Job<K>, gpus: u32, first: Option<usize>) -> Option<usize> {
        let fits = |pool: &usize| {
            let pool = *pool;
            self.may_use(job, pool)
                && self.pools[pool].left >= gpus
                && self.refusing(job, pool, gpus).is_none()
        };
        // Of equals the first by name.
        let most_left = || (0..self.pools.len()).rev().filter(fits).max_by_key(|&pool| self.pools[pool].left);
        let pool = first.filter(fits).or_else(most_left)?;
        self.spend(job, pool, gpus, gpus);
        Some(pool)
    }

    /// Promises GPUs of this type and no other.
    pub(super) fn promise_on<K>(&mut self, job: &Job<K>, gpus: u32, pool: usize) -> bool {
        let fits = self.may_use(job, pool)
            && self.pools[pool].left >= gpus
            && self.refusing(job, pool, gpus).is_none();
        if fits {
            self.spend(job, pool, gpus, gpus);
        }
        fits
    }

    /// Promises one GPU more of a type.
    pub(super) fn grow<K>(&mut self, job: &Job<K>, pool: usize) -> bool {
        let fits = self.pools[pool].left > 0 && self.refusing(job, pool, 1).is_none();
        if fits {
            self.spend(job, pool, 1, 1);
        }
        fits
    }

    /// Keeps what a waiting job waits for from all that come after it.
    pub(super) fn close_for<K>(&mut self, job: &Job<K>, gpus: u32) {
        for pool in 0..self.pools.len() {
            if !self.is_possible(job, pool, gpus) {
                continue;
            }
            if self.refusing(job, pool, gpus).is_none() {
                self.pools[pool].left = 0;
            }
            for cap in self.caps_of(job) {
                let cap = &mut self.caps[cap];
                if cap.pool == pool && cap.left < gpus {
                    cap.left = 0;
                }
            }
        }
    }

    /// Why a job that was promised nothing waits.
    pub(super) fn why_not<K>(&self, job: &Job<K>, gpus: u32) -> Limit {
        let mut limit = Limit::Impossible;
        for pool in (0..self.pools.len()).filter(|&pool| self.is_possible(job, pool, gpus)) {
            let Some(cap) = self.refusing(job, pool, gpus) else { return Limit::Starved };
            let gpu_type = self.pools[pool].gpu_type.clone();
            if limit == Limit::Impossible {
                limit = Limit::GroupCap { group: self.caps[cap].group, gpu_type };
            }
        }
        if limit == Limit::Impossible && self.may_stay(job).is_some() { Limit::Starved } else { limit }
    }

    /// Picks nodes for what was promised, after all who stay were held.
    pub(super) fn pick(&mut self, pool: usize, gpus: u32, layout: Layout) -> Allocation {
        let mut counts = Vec::new();
        let mut missing = gpus;
        while missing > 0 {
            let Some((free, node)) = self.next_node(pool, missing, layout) else { break };
            let count = free.min(missing);
            self.take(node, count);
            counts.push((node, count));
            missing -= count;
        }
        debug_assert_eq!(missing, 0, "what was promised is there");
        Allocation::whole(counts)
    }

    fn next_node(&self, pool: usize, gpus: u32, layout: Layout) -> Option<(u32, NodeId)> {
        let free = &self.pools[pool].free;
        let emptiest = || free.last().filter(|(free, _)| *free > 0);
        let found = match layout {
            Layout::Emptiest => emptiest(),
            Layout::Packed => {
                let enough = free.range((gpus, Reverse(NodeId(u32::MAX)))..).next();
                // Of the nodes with as few the one with the lowest id.
                let lowest =
                    enough.and_then(|&(least, _)| free.range(..=(least, Reverse(NodeId(0)))).next_back());
                lowest.or_else(emptiest)
            }
        };
        found.map(|&(free, Reverse(node))| (free, node))
    }

    /// The GPU types, by name.
    pub(super) fn types(&self) -> impl Iterator<Item = &GpuType> {
        self.pools.iter().map(|pool| &pool.gpu_type)
    }

    /// The open nodes of a type, by id, and how much of each nobody holds.
    pub(super) fn open_nodes(&self, pool: usize) -> Vec<(NodeId, u32)> {
        let is_open = |slot: &Slot| slot.pool == pool && slot.state == NodeState::Ready;
        self.slots.iter().filter(|(_, slot)| is_open(slot)).map(|(node, slot)| (*node, slot.free)).collect()
    }

    /// What each cap still leaves its group.
    pub(super) fn caps_left(&self) -> Vec<u32> {
        self.caps.iter().map(|cap| cap.left).collect()
    }

    /// The caps on a type that a job counts for.
    pub(super) fn caps_on<K>(&self, job: &Job<K>, pool: usize) -> Vec<usize> {
        self.caps_of(job).into_iter().filter(|&cap| self.caps[cap].pool == pool).collect()
    }

    /// Takes what a job holds from its nodes.
    pub(super) fn hold<K>(&mut self, job: &Job<K>) {
        for (node, share) in job.holds.iter() {
            self.take(node, share.n_replicas());
        }
    }

    fn take(&mut self, node: NodeId, gpus: u32) {
        let Some(slot) = self.slots.get_mut(&node) else { return };
        let before = slot.free;
        slot.free = before.saturating_sub(gpus);
        let free = &mut self.pools[slot.pool].free;
        if free.remove(&(before, Reverse(node))) {
            free.insert((slot.free, Reverse(node)));
        }
    }

    /// Counts what a job holds as promised.
    fn charge<K>(&mut self, job: &Job<K>) {
        let (open, all) = self.held(job);
        let first = job.holds.iter().next();
        if let Some(slot) = first.and_then(|(node, _)| self.slots.get(&node)) {
            self.spend(job, slot.pool, open, all);
        }
    }

    /// GPUs that a job holds on open nodes, and on all.
    fn held<K>(&self, job: &Job<K>) -> (u32, u32) {
        job.holds.iter().fold((0, 0), |(open, all), (node, share)| {
            let gpus = share.n_replicas();
            let is_open = self.slots.get(&node).is_some_and(|slot| slot.state == NodeState::Ready);
            (if is_open { open + gpus } else { open }, all + gpus)
        })
    }

    fn spend<K>(&mut self, job: &Job<K>, pool: usize, open: u32, all: u32) {
        let left = &mut self.pools[pool].left;
        *left = left.saturating_sub(open);
        for cap in self.caps_of(job) {
            let cap = &mut self.caps[cap];
            if cap.pool == pool {
                cap.left = cap.left.saturating_sub(all);
            }
        }
    }

    fn caps_of<K>(&self, job: &Job<K>) -> Vec<usize> {
        job.group.and_then(|group| self.caps_of.get(&group).cloned()).unwrap_or_default()
    }

    /// The first cap that does not leave a job so many GPUs more.
    fn refusing<K>(&self, job: &Job<K>, pool: usize, gpus: u32) -> Option<usize> {
        let caps = job.group.and_then(|group| self.caps_of.get(&group)).into_iter().flatten().copied();
        caps.into_iter().find(|&cap| self.caps[cap].pool == pool && self.caps[cap].left < gpus)
    }

    pub(super) fn may_use<K>(&self, job: &Job<K>, pool: usize) -> bool {
        job.types.is_empty() || job.types.contains(&self.pools[pool].gpu_type)
    }

    /// Whether a type could hold a job, were it alone.
    pub(super) fn is_possible<K>(&self, job: &Job<K>, pool: usize, gpus: u32) -> bool {
        let within = |&cap: &usize| self.caps[cap].pool != pool || self.caps[cap].limit >= gpus;
        let caps = job.group.and_then(|group| self.caps_of.get(&group));
        self.may_use(job, pool)
            && self.pools[pool].total >= gpus
            && caps.is_none_or(|caps| caps.iter().all(within))
    }
}
