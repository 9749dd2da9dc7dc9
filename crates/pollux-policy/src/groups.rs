//! Groups as constraints: what a group may hold at most, and what others must leave to it.
//!
//! A cap limits the GPUs of one type that the jobs of a group and of all groups below it hold together. An
//! entitlement limits everybody else: as far as a group has use for what it is entitled to, the jobs outside it may
//! hold no more than the rest. What it has no use for is idle, and anybody may borrow it; who does is the
//! objective's choice. Entitlements of children hold among siblings, those of parents against the outside, so
//! siblings borrow from each other first.

use std::collections::BTreeMap;

use crate::problem::{Cap, Problem};
use crate::snapshot::{GroupId, Snapshot};
use crate::valuation::Valuation;

/// What a cap of the problem stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bond {
    /// This group may hold no more.
    Cap(GroupId),
    /// The rest is kept for this group.
    Reserve(GroupId),
}

/// Adds the groups' constraints to a problem; returns what each of its caps stands for.
pub(crate) fn constrain<K>(
    snapshot: &Snapshot<K>,
    valuation: &Valuation<'_>,
    problem: &mut Problem,
) -> Vec<Bond> {
    let groups = &snapshot.cluster().groups;
    if groups.is_empty() {
        return Vec::new();
    }
    let tree = Tree::new(snapshot);
    let mut bonds = Vec::new();
    let mut rows = vec![Vec::new(); groups.len() + 1];
    for (group, record) in groups.iter().enumerate() {
        for (pool, kind) in valuation.pools().iter().enumerate() {
            if let Some(&limit) = record.caps.get(&kind.gpu_type) {
                push(problem, &mut bonds, &mut rows, Bond::Cap(record.id), Cap { pool, limit }, |row| {
                    tree.is_within(row, group)
                });
            }
        }
    }
    for (pool, kind) in valuation.pools().iter().enumerate() {
        let all: u64 =
            problem.nodes.iter().filter(|slot| slot.pool == pool).map(|slot| u64::from(slot.gpus)).sum();
        let entitled = |group: usize| groups[group].entitled.get(&kind.gpu_type).copied().unwrap_or(0);
        // More may have been promised than there is, since nodes come and go: then all get less alike.
        let promised: u64 = (0..groups.len())
            .filter(|&group| !tree.is_covered(group))
            .map(|group| u64::from(entitled(group)))
            .sum();
        for (group, record) in groups.iter().enumerate() {
            let share = if promised > all {
                u64::from(entitled(group)) * all / promised
            } else {
                u64::from(entitled(group))
            };
            let used = tree.use_for(snapshot, valuation, group, pool, share);
            if used > 0 {
                let limit = u32::try_from(all.saturating_sub(used)).unwrap_or(u32::MAX);
                push(problem, &mut bonds, &mut rows, Bond::Reserve(record.id), Cap { pool, limit }, |row| {
                    !tree.is_within(row, group)
                });
            }
        }
    }
    problem.groups = rows;
    for (table, job) in problem.jobs.iter_mut().zip(snapshot.jobs()) {
        table.group = Some(tree.row_of(job.group));
    }
    bonds
}

/// Adds a cap over the jobs of those rows that it `covers`.
fn push(
    problem: &mut Problem,
    bonds: &mut Vec<Bond>,
    rows: &mut [Vec<usize>],
    bond: Bond,
    cap: Cap,
    covers: impl Fn(usize) -> bool,
) {
    for (row, caps) in rows.iter_mut().enumerate() {
        if covers(row) {
            caps.push(problem.caps.len());
        }
    }
    problem.caps.push(cap);
    bonds.push(bond);
}

/// The groups by position; jobs of no group have a row after all others.
struct Tree {
    positions: BTreeMap<GroupId, usize>,
    parents: Vec<Option<usize>>,
    /// Whether a group or one above it is entitled to something.
    is_entitled: Vec<bool>,
    /// Rows of jobs, by group.
    jobs: Vec<Vec<usize>>,
}

impl Tree {
    fn new<K>(snapshot: &Snapshot<K>) -> Self {
        let groups = &snapshot.cluster().groups;
        let positions: BTreeMap<GroupId, usize> =
            groups.iter().enumerate().map(|(position, group)| (group.id, position)).collect();
        let parents = groups.iter().map(|group| positions.get(&group.parent?).copied()).collect();
        let is_entitled = groups.iter().map(|group| !group.entitled.is_empty()).collect();
        let mut tree = Self { positions, parents, is_entitled, jobs: vec![Vec::new(); groups.len() + 1] };
        for (index, job) in snapshot.jobs().iter().enumerate() {
            let row = tree.row_of(job.group);
            tree.jobs[row].push(index);
        }
        tree
    }

    fn row_of(&self, group: Option<GroupId>) -> usize {
        group.and_then(|id| self.positions.get(&id).copied()).unwrap_or(self.parents.len())
    }

    /// Whether a row's jobs belong to a group or to one below it.
    fn is_within(&self, row: usize, group: usize) -> bool {
        let mut at = Some(row).filter(|&row| row < self.parents.len());
        while let Some(here) = at {
            if here == group {
                return true;
            }
            at = self.parents[here];
        }
        false
    }

    /// Whether a group above has an entitlement, so that this one's is part of it.
    fn is_covered(&self, group: usize) -> bool {
        let mut at = self.parents[group];
        while let Some(here) = at {
            if self.is_entitled[here] {
                return true;
            }
            at = self.parents[here];
        }
        false
    }

    /// How much of `share` GPUs of a pool a group's jobs have use for, each in the pool that suits it best.
    fn use_for<K>(
        &self,
        snapshot: &Snapshot<K>,
        valuation: &Valuation<'_>,
        group: usize,
        pool: usize,
        share: u64,
    ) -> u64 {
        let entitled = &snapshot.cluster().groups[group].entitled;
        let is_open =
            |other: usize| other == pool || entitled.contains_key(&valuation.pools()[other].gpu_type);
        let mut used = 0;
        for row in (0..self.parents.len()).filter(|&row| self.is_within(row, group)) {
            for &job in &self.jobs[row] {
                if used < share && valuation.best_pool(job, is_open) == Some(pool) {
                    used += u64::from(valuation.useful_gpus(job, pool));
                }
            }
        }
        used.min(share)
    }
}
