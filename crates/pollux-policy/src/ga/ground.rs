//! One round as a genetic algorithm sees it: rows, columns, and what a member must keep to.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pollux_model::Allocation;

use super::Variant;
use crate::snapshot::{GroupId, Job, Learned, NodeState, Snapshot};
use crate::valuation::Valuation;

/// The fixed part of a search. A member is a dense matrix of GPU counts, a row for each job and a column for
/// each node, row after row.
#[derive(Debug)]
pub(super) struct Ground {
    /// The jobs in the order of the search. Those that are pinned come first.
    pub rows: Vec<Row>,
    /// The nodes, by id.
    pub columns: Vec<Column>,
    /// Limits on what the jobs of a group hold together.
    pub caps: Vec<Cap>,
    /// How many GPU types there are.
    pub n_pools: usize,
    /// How many of the first rows may not change.
    pub n_pinned: usize,
    /// What the jobs hold now, as a member.
    pub current: Vec<u16>,
    /// Whether two jobs on several nodes each may share one.
    pub avoid_interference: bool,
    /// Whether some column is closed, so that not every row that fits is allowed.
    pub has_closed: bool,
}

/// A job.
#[derive(Debug)]
pub(super) struct Row {
    /// Its place in the snapshot.
    pub job: usize,
    /// How many GPUs of each pool it may hold.
    pub bounds: Vec<Bounds>,
    /// The caps it counts for.
    pub caps: Vec<usize>,
}

/// Fewest and most GPUs, if any; a most of zero means none at all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Fewest.
    pub min: u32,
    /// Most.
    pub max: u32,
}

/// A node.
#[derive(Debug)]
pub(super) struct Column {
    /// Its place in the snapshot.
    pub node: usize,
    /// The type of its GPUs.
    pub pool: usize,
    /// GPUs that our jobs may hold.
    pub gpus: u16,
    /// Whether jobs may come.
    pub is_open: bool,
    /// Whether jobs that are here may stay.
    pub may_stay: bool,
}

/// A group's limit.
#[derive(Debug)]
pub(super) struct Cap {
    /// Of which pool.
    pub pool: usize,
    /// GPUs at most.
    pub limit: u32,
}

impl Ground {
    /// Lays out a snapshot; no job gets more than `most_gpus`.
    pub(super) fn new(
        snapshot: &Snapshot<Learned>,
        valuation: &Valuation<'_>,
        variant: Variant,
        most_gpus: u32,
        avoid_interference: bool,
    ) -> Self {
        let columns = columns(snapshot, valuation);
        let mut room = vec![0_u32; valuation.pools().len()];
        for column in columns.iter().filter(|column| column.may_stay) {
            room[column.pool] = room[column.pool].saturating_add(u32::from(column.gpus));
        }
        let (caps, caps_of) = caps(snapshot, valuation);
        let order = order(snapshot.jobs(), variant);
        let rows: Vec<Row> = order
            .iter()
            .map(|&index| Row {
                job: index,
                bounds: bounds(valuation, index, most_gpus, &room),
                caps: snapshot.jobs()[index]
                    .group
                    .and_then(|group| caps_of.get(&group).cloned())
                    .unwrap_or_default(),
            })
            .collect();
        let n_pinned = order.iter().take_while(|&&index| snapshot.jobs()[index].is_pinned()).count();
        let mut current = vec![0; rows.len() * columns.len()];
        for (at, row) in order.iter().enumerate() {
            let holds = &snapshot.jobs()[*row].holds;
            for (cell, column) in current[at * columns.len()..].iter_mut().zip(&columns) {
                let node = snapshot.cluster().nodes[column.node].id;
                *cell = holds.on(node).map_or(0, |share| count(share.n_replicas()));
            }
        }
        let has_closed = columns.iter().any(|column| !column.is_open);
        let n_pools = valuation.pools().len();
        Self { rows, columns, caps, n_pools, n_pinned, current, avoid_interference, has_closed }
    }

    /// Columns of a row.
    pub(super) fn width(&self) -> usize {
        self.columns.len()
    }

    /// One row of a member.
    pub(super) fn row<'m>(&self, member: &'m [u16], row: usize) -> &'m [u16] {
        &member[row * self.width()..(row + 1) * self.width()]
    }

    /// One row of a member, to change.
    pub(super) fn row_mut<'m>(&self, member: &'m mut [u16], row: usize) -> &'m mut [u16] {
        &mut member[row * self.width()..(row + 1) * self.width()]
    }

    /// Whether a row is as it is now.
    pub(super) fn is_current(&self, row: usize, cells: &[u16]) -> bool {
        self.row(&self.current, row) == cells
    }

    /// Whether a job may come to a node at all.
    pub(super) fn may_come(&self, row: usize, column: usize) -> bool {
        let column = &self.columns[column];
        column.is_open && self.rows[row].bounds[column.pool].max > 0
    }

    /// Whether some pool could ever hold a job, were it alone.
    pub(super) fn is_possible(&self, row: usize) -> bool {
        let row = &self.rows[row];
        row.bounds.iter().enumerate().any(|(pool, bounds)| {
            let open = self.columns.iter().filter(|column| column.is_open && column.pool == pool);
            let gpus = open.fold(0_u32, |sum, column| sum.saturating_add(u32::from(column.gpus)));
            let caps = row.caps.iter().map(|&cap| &self.caps[cap]).filter(|cap| cap.pool == pool);
            let most = caps.map(|cap| cap.limit).fold(gpus.min(bounds.max), u32::min);
            most >= bounds.min
        })
    }

    /// A row as an allocation.
    pub(super) fn allocation(&self, snapshot: &Snapshot<Learned>, cells: &[u16]) -> Allocation {
        let at = cells.iter().zip(&self.columns);
        Allocation::whole(
            at.map(|(&gpus, column)| (snapshot.cluster().nodes[column.node].id, u32::from(gpus))),
        )
    }
}

/// A count as a cell; nobody has a node of more GPUs than fit.
pub(super) fn count(gpus: u32) -> u16 {
    u16::try_from(gpus).unwrap_or(u16::MAX)
}

/// The artifact has the least attained service first, and who comes first wins every conflict. The paper
/// knows no order.
fn order(jobs: &[Job<Learned>], variant: Variant) -> Vec<usize> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by(|&a, &b| {
        let (left, right) = (&jobs[a], &jobs[b]);
        let by_pin = right.is_pinned().cmp(&left.is_pinned());
        match variant {
            Variant::Paper => by_pin,
            Variant::Osdi21 => by_pin
                .then(left.attained.total_cmp(&right.attained))
                .then(Reverse(left.age).cmp(&Reverse(right.age))),
        }
    });
    order
}

fn columns(snapshot: &Snapshot<Learned>, valuation: &Valuation<'_>) -> Vec<Column> {
    let nodes = &snapshot.cluster().nodes;
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|&index| nodes[index].id);
    let column = |index: usize| {
        let node = &nodes[index];
        let pool = valuation.pools().iter().position(|pool| pool.gpu_type == node.gpu_type)?;
        Some(Column {
            node: index,
            pool,
            gpus: count(node.gpus.saturating_sub(node.others)),
            is_open: node.state == NodeState::Ready,
            may_stay: node.state != NodeState::Draining,
        })
    };
    order.into_iter().filter_map(column).collect()
}

/// Within the job's own limits, `most_gpus` and the GPUs of each pool.
fn bounds(valuation: &Valuation<'_>, job: usize, most_gpus: u32, room: &[u32]) -> Vec<Bounds> {
    let sources = valuation.jobs()[job].pools.iter().zip(room);
    let bounds = sources.map(|(source, &room)| {
        let (min, max) = source.as_ref().map_or((1, 0), |source| (source.min, source.max));
        let max = max.min(most_gpus).min(room);
        Bounds { min: min.max(1), max: if max < min { 0 } else { max } }
    });
    bounds.collect()
}

/// All caps, and for each group those that its jobs count for: its own and those of all it is part of.
fn caps(
    snapshot: &Snapshot<Learned>,
    valuation: &Valuation<'_>,
) -> (Vec<Cap>, BTreeMap<GroupId, Vec<usize>>) {
    let groups = &snapshot.cluster().groups;
    let mut caps = Vec::new();
    let mut own = BTreeMap::<GroupId, Vec<usize>>::new();
    for group in groups {
        for (gpu_type, &limit) in &group.caps {
            if let Some(pool) = valuation.pools().iter().position(|pool| pool.gpu_type == *gpu_type) {
                own.entry(group.id).or_default().push(caps.len());
                caps.push(Cap { pool, limit });
            }
        }
    }
    let parents: BTreeMap<GroupId, Option<GroupId>> =
        groups.iter().map(|group| (group.id, group.parent)).collect();
    let mut caps_of = BTreeMap::new();
    for group in groups {
        let mut all = Vec::new();
        let mut at = Some(group.id);
        while let Some(id) = at {
            all.extend(own.get(&id).into_iter().flatten());
            at = parents.get(&id).copied().flatten();
        }
        caps_of.insert(group.id, all);
    }
    (caps, caps_of)
}
