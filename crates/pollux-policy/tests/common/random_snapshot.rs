//! Random clusters, groups and jobs, drawn from a seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pollux_model::{
    Affine, Allocation, BatchLimits, Compute, GoodputModel, GpuType, JobCurves, JobId, NodeId, NoiseScale,
    PerfParams,
};
use pollux_policy::{
    Cluster, Freedom, Group, GroupId, Job, Known, Learned, Node, NodeState, Oracle, Priority, Request,
    Snapshot,
};

use super::Dice;
use super::rounds::n_gpus;

/// What a snapshot is drawn from: ranges from, to, and how much of each complication there is.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub nodes: (u64, u64),
    pub gpus: (u64, u64),
    pub jobs: (u64, u64),
    /// GPU types at most.
    pub types: usize,
    /// How many jobs hold something.
    pub holding: f64,
    /// How many nodes, jobs and groups are of a kind that restricts what may be done.
    pub odd: f64,
}

impl Shape {
    /// Anything that may come in.
    pub const ANY: Self =
        Self { nodes: (0, 6), gpus: (1, 8), jobs: (0, 10), types: 3, holding: 0.5, odd: 0.2 };
    /// Few enough GPUs and jobs to try every allocation.
    pub const TINY: Self =
        Self { nodes: (1, 3), gpus: (1, 2), jobs: (1, 3), types: 2, holding: 0.4, odd: 0.15 };
    /// A few equal nodes and jobs of which anything may be asked.
    pub const MIDDLING: Self =
        Self { nodes: (4, 4), gpus: (4, 4), jobs: (6, 10), types: 1, holding: 0.6, odd: 0.0 };
}

/// Draws a snapshot.
pub fn draw(dice: &mut Dice, shape: &Shape) -> Snapshot<Known> {
    let cluster = draw_cluster(dice, shape);
    let mut free: Vec<u32> = cluster.nodes.iter().map(|node| node.gpus - node.others).collect();
    let n_jobs = dice.whole(shape.jobs.0, shape.jobs.1);
    // Neither the order of the ids nor their distance may matter.
    let stride = dice.one_of(&[1, 7, u64::MAX - 2]);
    let mut jobs = Vec::new();
    for index in 0..n_jobs {
        let id = JobId(stride.wrapping_mul(index + 1));
        jobs.push(draw_job(dice, shape, id, &cluster, &mut free));
    }
    // After all else, so that what is drawn for Pollux does not depend on what its rivals are told.
    for job in &mut jobs {
        job.knows.request = dice.chance(0.8).then(|| Request { gpus: dice.whole(0, 8) as u32 });
        job.knows.oracle = dice.chance(0.8).then(|| draw_oracle(dice));
    }
    Snapshot::new(cluster, jobs).expect("drawn from what is there")
}

fn draw_cluster(dice: &mut Dice, shape: &Shape) -> Cluster {
    let types: Vec<GpuType> =
        ["t4", "a100", "h100"][..shape.types].iter().map(|name| GpuType::new(name)).collect();
    let types = &types[..dice.whole(1, types.len() as u64) as usize];
    let same_size = dice.chance(0.5).then(|| dice.whole(shape.gpus.0, shape.gpus.1) as u32);
    let mut nodes = Vec::new();
    for index in 0..dice.whole(shape.nodes.0, shape.nodes.1) as u32 {
        let gpus = same_size.unwrap_or_else(|| dice.whole(shape.gpus.0, shape.gpus.1) as u32);
        let state = match dice.whole(0, 1) {
            _ if !dice.chance(shape.odd) => NodeState::Ready,
            0 => NodeState::Cordoned,
            _ => NodeState::Draining,
        };
        nodes.push(Node {
            id: NodeId(1_000 - 3 * index),
            gpu_type: types[dice.index(types.len())].clone(),
            gpus,
            others: if dice.chance(shape.odd) { dice.whole(0, u64::from(gpus)) as u32 } else { 0 },
            state,
        });
    }
    let speeds = types.iter().filter(|_| dice.chance(0.7)).cloned().collect::<Vec<_>>();
    let speeds = speeds.into_iter().map(|gpu_type| (gpu_type, dice.log_uniform(0.5, 8.0))).collect();
    Cluster { nodes, groups: draw_groups(dice, shape, types), speeds }
}

fn draw_groups(dice: &mut Dice, shape: &Shape, types: &[GpuType]) -> Vec<Group> {
    let n_groups = if dice.chance(2.0 * shape.odd) { dice.whole(1, 4) as u32 } else { 0 };
    let mut by_type = |most: u64| -> BTreeMap<GpuType, u32> {
        let some = types.iter().filter(|_| dice.chance(0.5)).cloned().collect::<Vec<_>>();
        some.into_iter().map(|gpu_type| (gpu_type, dice.whole(0, most) as u32)).collect()
    };
    let mut groups: Vec<Group> = (0..n_groups)
        .map(|index| Group {
            id: GroupId(50 - 7 * index),
            parent: None,
            entitled: by_type(4),
            caps: by_type(12),
        })
        .collect();
    for index in 1..groups.len() {
        if dice.chance(0.6) {
            groups[index].parent = Some(groups[dice.index(index)].id);
        }
    }
    groups
}

fn draw_job(dice: &mut Dice, shape: &Shape, id: JobId, cluster: &Cluster, free: &mut [u32]) -> Job<Known> {
    let types: BTreeSet<GpuType> = cluster.nodes.iter().map(|node| node.gpu_type.clone()).collect();
    let allowed = if dice.chance(shape.odd) {
        types.iter().filter(|_| dice.chance(0.6)).cloned().collect()
    } else {
        BTreeSet::new()
    };
    let holds = draw_holds(dice, shape, &cluster.nodes, &allowed, free);
    let held = n_gpus(&holds);
    let freedom = match dice.whole(0, 2) {
        _ if !dice.chance(1.5 * shape.odd) => Freedom::Elastic,
        0 => Freedom::NonPreemptible,
        1 => Freedom::Rigid { gpus: if held > 0 { held } else { dice.whole(1, 8) as u32 } },
        _ if held > 0 => Freedom::Restarting,
        _ => Freedom::Elastic,
    };
    let min_gpus = if dice.chance(shape.odd) { dice.whole(1, 6) as u32 } else { 1 };
    let max_gpus = dice.chance(shape.odd).then(|| min_gpus + dice.whole(0, 8) as u32);
    let ran_before = held > 0 || dice.chance(0.3);
    let restarts = if ran_before { dice.whole(0, 5) as u32 } else { 0 };
    let cost = dice.whole(0, 120);
    // Older than what its restarts took; or so young that a restart leaves nothing of it.
    let age = if dice.chance(0.1) {
        dice.whole(0, 60)
    } else {
        cost * u64::from(restarts) + dice.log_uniform(60.0, 1e5) as u64
    };
    let is_profiled = held > 0 || ran_before || dice.chance(0.7);
    let most_gpus = held.max(if ran_before { dice.whole(1, 4) as u32 } else { 1 });
    let learned = if is_profiled && !dice.chance(shape.odd / 2.0) {
        Learned { curves: Arc::new(draw_curves(dice, &types)), most_gpus }
    } else {
        Learned { most_gpus: held, ..Learned::default() }
    };
    let groups = &cluster.groups;
    Job {
        id,
        group: (!groups.is_empty() && dice.chance(0.7)).then(|| groups[dice.index(groups.len())].id),
        priority: if dice.chance(shape.odd) {
            dice.one_of(&[Priority::Low, Priority::High])
        } else {
            Priority::Normal
        },
        weight: if dice.chance(shape.odd) { dice.log_uniform(0.3, 3.0) } else { 1.0 },
        min_gpus,
        max_gpus,
        types: allowed,
        freedom,
        holds,
        age: Duration::from_secs(age),
        attained: if ran_before { dice.log_uniform(1.0, 1e6) } else { 0.0 },
        restarts,
        restart_cost: Duration::from_secs(cost),
        knows: Known {
            learned,
            remaining: dice.chance(0.5).then(|| dice.log_uniform(1e4, 1e8)),
            ..Known::default()
        },
    }
}

/// Step times that fall at first and may rise again.
fn draw_oracle(dice: &mut Dice) -> Oracle {
    let (compute, exchange) = (dice.log_uniform(0.01, 10.0), dice.log_uniform(1e-3, 1.0));
    let step = |gpus: u64| compute / gpus as f64 + exchange * (gpus - 1) as f64;
    Oracle {
        remaining_iterations: dice.log_uniform(1.0, 1e6),
        step_secs: (1..=dice.whole(0, 16)).map(step).collect(),
        max_gpus: dice.whole(1, 16) as u32,
        ..Oracle::default()
    }
}

/// Free GPUs of one type the job may use; or none.
fn draw_holds(
    dice: &mut Dice,
    shape: &Shape,
    nodes: &[Node],
    allowed: &BTreeSet<GpuType>,
    free: &mut [u32],
) -> Allocation {
    if nodes.is_empty() || !dice.chance(shape.holding) {
        return Allocation::none();
    }
    let gpu_type = &nodes[dice.index(nodes.len())].gpu_type;
    let most_nodes = dice.one_of(&[1, 1, 1, 2, 3]);
    let mut holds = Vec::new();
    for (node, free) in nodes.iter().zip(free) {
        let may = allowed.is_empty() || allowed.contains(&node.gpu_type);
        if !may || node.gpu_type != *gpu_type || *free == 0 || holds.len() == most_nodes || dice.chance(0.4) {
            continue;
        }
        let gpus = dice.whole(1, u64::from(*free)).min(dice.whole(1, 4)) as u32;
        *free -= gpus;
        holds.push((node.id, gpus));
    }
    Allocation::whole(holds)
}

/// Curves for some of the types, at least one of them.
fn draw_curves(dice: &mut Dice, types: &BTreeSet<GpuType>) -> JobCurves {
    let model = draw_model(dice);
    let mut models = BTreeMap::new();
    for gpu_type in types {
        if models.is_empty() || dice.chance(0.7) {
            models.insert(gpu_type.clone(), faster(&model, dice.log_uniform(1.0, 6.0)));
        }
    }
    let mut curves = JobCurves::default();
    curves.update(models, 8, 64);
    curves
}

/// A job of the usual kind.
pub fn draw_model(dice: &mut Dice) -> GoodputModel {
    let mut affine = |low, high| {
        let alpha = dice.log_uniform(low, high);
        Affine { alpha, beta: alpha * dice.log_uniform(0.01, 0.2) }
    };
    let (sync_local, sync_node) = (affine(1e-3, 0.05), affine(5e-3, 0.3));
    let params = PerfParams {
        grad: Compute::Linear { alpha: dice.log_uniform(3e-3, 0.1), beta: dice.log_uniform(1e-4, 1e-2) },
        sync_local,
        sync_node,
        gamma: 1.0 + 4.0 * dice.unit(),
        optimizer_step: 0.0,
    };
    let noise = NoiseScale::from_samples(dice.log_uniform(50.0, 1e5)).expect("positive");
    let initial = dice.one_of(&[32, 64, 128, 256]);
    let growth = dice.one_of(&[1, 4, 8, 32]);
    let limits = BatchLimits::new(initial, growth * initial, dice.one_of(&[1, 8, 16]), 512);
    GoodputModel::new(params, noise, limits.expect("not empty")).expect("valid")
}

/// The same job where one GPU computes this much faster.
pub fn faster(model: &GoodputModel, speed: f64) -> GoodputModel {
    let params = model.params().clone();
    let grad = match params.grad {
        Compute::Linear { alpha, beta } => Compute::Linear { alpha: alpha / speed, beta: beta / speed },
        other => other,
    };
    GoodputModel::new(PerfParams { grad, ..params }, model.noise(), *model.limits()).expect("valid")
}
