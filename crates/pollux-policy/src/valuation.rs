//! What every allocation is worth to every job: the one evaluator of the objective.

use std::collections::BTreeMap;

use pollux_model::{Allocation, GoodputCurve, GpuType, NodeId, Placement};

use crate::plan::Starved;
use crate::settings::{FairShare, RestartPrice, Settings};
use crate::snapshot::{Freedom, Job, Known, Learned, NodeState, Snapshot};
use crate::utility::Utility;

/// The GPUs of one type.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Which type.
    pub gpu_type: GpuType,
    /// GPUs that are not others' and not on nodes that empty.
    pub gpus: u32,
    /// Most such GPUs on one node.
    pub largest_node: u32,
    /// Speed of one GPU against other types.
    speed: f64,
}

/// What a mode adds to a job: how much it counts, and how long it still runs where that is known.
#[derive(Clone, Copy, Debug)]
pub struct Stake {
    /// Weight of its utility.
    pub weight: f64,
    /// Seconds to its end at its present allocation.
    pub remaining_secs: Option<f64>,
}

/// Speed-ups, restart prices and utilities of all jobs of a snapshot.
#[derive(Debug)]
pub struct Valuation<'a> {
    pools: Vec<Pool>,
    jobs: Vec<JobValue<'a>>,
    utility: Utility,
    fair_gpus: u32,
    least_weight: f64,
}

/// One job's part.
#[derive(Debug)]
pub struct JobValue<'a> {
    /// Weight of its utility.
    pub weight: f64,
    /// What its speed-up is multiplied by if it is moved.
    pub restart_factor: f64,
    /// Per pool: where its goodput comes from, and how many GPUs it may hold there. None: not at all.
    pub pools: Vec<Option<Source<'a>>>,
    /// Goodput at its fair share.
    fair: f64,
}

/// Where a job's goodput on one GPU type comes from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The learned curve, and what to multiply it by where it was learned on another type. None: nothing
    /// learned yet, or nothing to learn.
    curve: Option<(&'a GoodputCurve, f64)>,
    /// Fewest GPUs it runs on.
    pub min: u32,
    /// Most GPUs it may hold now.
    pub max: u32,
    /// What it may hold but for exploration.
    pub max_explored: u32,
    /// Speed-up for each unit of the curve's goodput.
    per_goodput: f64,
    /// Speed-up for each GPU that it does not exceed.
    ceiling: f64,
}

impl AsRef<Learned> for Learned {
    fn as_ref(&self) -> &Learned {
        self
    }
}

impl AsRef<Learned> for Known {
    fn as_ref(&self) -> &Learned {
        &self.learned
    }
}

impl<'a> Valuation<'a> {
    /// Of a snapshot's jobs, with what a mode knows about each (`stakes`, in the order of the jobs).
    pub fn new<K: AsRef<Learned>>(snapshot: &'a Snapshot<K>, settings: &Settings, stakes: &[Stake]) -> Self {
        let pools = pools(snapshot);
        let total = pools.iter().fold(0_u32, |sum, pool| sum.saturating_add(pool.gpus));
        let fair_gpus =
            total.div_ceil(u32::try_from(snapshot.jobs().len()).unwrap_or(u32::MAX).max(1)).max(1);
        let jobs = snapshot.jobs().iter().zip(stakes);
        let jobs = jobs.map(|(job, stake)| JobValue::new(job, *stake, &pools, fair_gpus, settings)).collect();
        let utility = Utility::new(settings.fairness, settings.floor, settings.scale);
        let least_weight = stakes.iter().map(|stake| stake.weight).fold(f64::INFINITY, f64::min);
        Self { pools, jobs, utility, fair_gpus, least_weight }
    }

    /// The GPU types of the cluster, in the order of their names.
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// The jobs, in the order of the snapshot.
    pub fn jobs(&self) -> &[JobValue<'a>] {
        &self.jobs
    }

    /// The objective's shape.
    pub fn utility(&self) -> Utility {
        self.utility
    }

    /// GPUs of a fair share.
    pub fn fair_gpus(&self) -> u32 {
        self.fair_gpus
    }

    /// What a placement is worth to a job, `moved` there or already in place; weight included.
    pub fn worth(&self, job: usize, pool: usize, placement: Placement, moved: bool) -> f64 {
        let job = &self.jobs[job];
        let factor = if moved { job.restart_factor } else { 1.0 };
        job.weight * self.utility.of(job.speedup(pool, placement) * factor)
    }

    /// What it is worth to a job to hold nothing.
    pub fn worth_of_nothing(&self, job: usize) -> f64 {
        self.jobs[job].weight * self.utility.of(0.0)
    }

    /// What it is worth to a job to wait, where the number of waiting jobs is settled before: nothing, but that
    /// the lighter ones do so rather than the heavier.
    pub(crate) fn worth_of_waiting(&self, job: usize) -> f64 {
        -1_000.0 * (self.jobs[job].weight - self.least_weight)
    }

    /// Utility of `gpus` GPUs of a pool that this job certainly does not exceed, however they are placed.
    pub fn ceiling(&self, job: usize, pool: usize, gpus: f64) -> f64 {
        let value = &self.jobs[job];
        let best = match &value.pools[pool] {
            Some(source) if source.ceiling > 0.0 => gpus * source.ceiling,
            Some(_) => 1.0,
            None => 0.0,
        };
        value.weight * self.utility.of(best)
    }

    /// The pool, of those that are `open`, in which a job is fastest on the fewest GPUs it runs on.
    pub(crate) fn best_pool(&self, job: usize, is_open: impl Fn(usize) -> bool) -> Option<usize> {
        let speed = |pool: usize| {
            let source = self.jobs[job].pools[pool].as_ref()?;
            let placement = Placement::packed(source.min, self.pools[pool].largest_node)?;
            Some((pool, self.jobs[job].speedup(pool, placement)))
        };
        let speeds = (0..self.pools.len()).filter(|&pool| is_open(pool)).filter_map(speed);
        // The first of equals.
        let best = speeds.reduce(|best, other| if other.1 > best.1 { other } else { best });
        best.filter(|(_, speed)| *speed > 0.0).map(|(pool, _)| pool)
    }

    /// GPUs of a pool beyond which a job certainly gets no faster, within its limits: found by doubling, so up to
    /// twice too many.
    pub(crate) fn useful_gpus(&self, job: usize, pool: usize) -> u32 {
        let Some(source) = &self.jobs[job].pools[pool] else { return 0 };
        let most = source.max.min(self.pools[pool].gpus);
        let speed = |gpus: u32| {
            let several = if gpus > 1 { Placement::new(2, gpus) } else { None };
            let one = Placement::new(1, gpus).filter(|_| gpus <= self.pools[pool].largest_node);
            [one, several]
                .into_iter()
                .flatten()
                .map(|at| self.jobs[job].speedup(pool, at))
                .fold(0.0, f64::max)
        };
        let mut gpus = source.min.max(1);
        while gpus < most && speed(gpus.saturating_mul(2).min(most)) > speed(gpus) {
            gpus = gpus.saturating_mul(2).min(most);
        }
        gpus.saturating_mul(2).saturating_sub(1).min(most)
    }

    /// The power mean of utilities that sum to `sum`, of jobs with this weight together.
    pub fn mean(&self, sum: f64, weight: f64) -> f64 {
        if weight > 0.0 { self.utility.mean(sum / weight) } else { 0.0 }
    }

    /// Judges any allocation, ours or another's: starved jobs, and the mean of the others' speed-ups.
    pub fn judge<K>(&self, snapshot: &Snapshot<K>, allocations: &[Allocation]) -> Judgement {
        let pool_of = |gpu_type: &GpuType| self.pools.iter().position(|pool| pool.gpu_type == *gpu_type);
        let nodes = snapshot.cluster().nodes.iter();
        let pools: BTreeMap<NodeId, Option<usize>> =
            nodes.map(|node| (node.id, pool_of(&node.gpu_type))).collect();
        let mut judgement = Judgement::default();
        let (mut sum, mut weight) = (0.0, 0.0);
        for (index, (job, allocation)) in snapshot.jobs().iter().zip(allocations).enumerate() {
            let pool = allocation.iter().next().and_then(|(node, _)| *pools.get(&node)?);
            if let (Some(pool), Some(placement)) = (pool, allocation.placement()) {
                sum += self.worth(index, pool, placement, *allocation != job.holds);
                weight += self.jobs[index].weight;
            } else {
                *judgement.starved.of(job.priority) += 1;
                judgement.sum_of_starved += self.worth_of_nothing(index);
            }
        }
        judgement.sum = sum;
        judgement.value = self.mean(sum, weight);
        judgement
    }
}

/// How an allocation of all jobs is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Judgement {
    /// Jobs that hold nothing, those included that could run nowhere.
    pub starved: Starved,
    /// Power mean of the speed-ups of those that hold something.
    pub value: f64,
    /// Sum of the weighted utilities of those that hold something.
    pub sum: f64,
    /// Sum of the weighted utilities of those that hold nothing.
    pub sum_of_starved: f64,
}

impl<'a> JobValue<'a> {
    fn new<K: AsRef<Learned>>(
        job: &'a Job<K>,
        stake: Stake,
        pools: &[Pool],
        fair_gpus: u32,
        settings: &Settings,
    ) -> Self {
        let mut sources: Vec<_> = pools.iter().map(|pool| Source::new(job, pool, pools, settings)).collect();
        let fair = fair_goodput(&sources, pools, fair_gpus, settings.fair_share);
        for source in sources.iter_mut().flatten() {
            if let Some((curve, scale)) = source.curve.filter(|_| fair > 0.0) {
                source.per_goodput = scale / fair;
                source.ceiling = curve.ceiling_per_gpu().useful_samples_per_sec() * source.per_goodput;
            }
        }
        let restart_factor = restart_factor(job, stake.remaining_secs, settings.restart_price);
        Self { weight: stake.weight, restart_factor, pools: sources, fair }
    }

    /// Speed-up on a placement against the fair share, restart not counted.
    pub fn speedup(&self, pool: usize, placement: Placement) -> f64 {
        match &self.pools[pool] {
            Some(Source { curve: Some((curve, _)), per_goodput, .. }) if self.fair > 0.0 => {
                curve.goodput(placement).useful_samples_per_sec() * per_goodput
            }
            // Nothing is known of it: neither better nor worse off than with a fair share.
            Some(Source { min, max, .. }) if (*min..=*max).contains(&placement.n_replicas()) => 1.0,
            _ => 0.0,
        }
    }

    /// Goodput at the fair share, in useful samples per second; 0 where nothing is known.
    pub fn fair_goodput(&self) -> f64 {
        self.fair
    }

    /// Whether anything was learned about its speed.
    pub fn is_profiled(&self) -> bool {
        self.fair > 0.0
    }
}

impl<'a> Source<'a> {
    fn new<K: AsRef<Learned>>(
        job: &'a Job<K>,
        pool: &Pool,
        pools: &[Pool],
        settings: &Settings,
    ) -> Option<Self> {
        if !job.types.is_empty() && !job.types.contains(&pool.gpu_type) {
            return None;
        }
        let learned = job.knows.as_ref();
        let curve = learned.curves.on(&pool.gpu_type).map(|curve| (curve, 1.0)).or_else(|| {
            // Not seen on this type: as on another, times how much faster one GPU is.
            let known =
                pools.iter().find_map(|other| Some((learned.curves.on(&other.gpu_type)?, other.speed)));
            known.map(|(curve, speed)| (curve, pool.speed / speed))
        });
        if let Freedom::Rigid { gpus } = job.freedom {
            return Some(Self::unlearned(gpus));
        }
        let Some((known, scale)) = curve else {
            return Some(Self::unlearned(job.min_gpus));
        };
        let own = job.max_gpus.unwrap_or(u32::MAX).min(known.max_replicas());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates, as it should"
        )]
        let seen = (f64::from(learned.most_gpus) * settings.exploration) as u32;
        let max = own.min(seen.max(1).max(job.min_gpus));
        let curve = Some((known, scale));
        Some(Self { curve, min: job.min_gpus, max, max_explored: own, per_goodput: 0.0, ceiling: 0.0 })
    }

    /// Nothing is known of its speed: so many GPUs and no others.
    fn unlearned(gpus: u32) -> Self {
        Self { curve: None, min: gpus, max: gpus, max_explored: gpus, per_goodput: 0.0, ceiling: 0.0 }
    }

    /// The curve, and what to multiply it by.
    pub fn curve(&self) -> Option<(&'a GoodputCurve, f64)> {
        self.curve
    }
}

fn pools<K>(snapshot: &Snapshot<K>) -> Vec<Pool> {
    let mut pools: Vec<Pool> = Vec::new();
    for node in &snapshot.cluster().nodes {
        let index = match pools.binary_search_by(|pool| pool.gpu_type.cmp(&node.gpu_type)) {
            Ok(index) => index,
            Err(index) => {
                let speed = snapshot.cluster().speeds.get(&node.gpu_type).copied().unwrap_or(1.0);
                let gpu_type = node.gpu_type.clone();
                pools.insert(index, Pool { gpu_type, gpus: 0, largest_node: 0, speed });
                index
            }
        };
        if node.state != NodeState::Draining {
            let usable = node.gpus.saturating_sub(node.others);
            pools[index].gpus = pools[index].gpus.saturating_add(usable);
            pools[index].largest_node = pools[index].largest_node.max(usable);
        }
    }
    pools
}

/// Goodput on a fair share: of each type, in proportion to its GPUs.
fn fair_goodput(sources: &[Option<Source<'_>>], pools: &[Pool], fair_gpus: u32, shape: FairShare) -> f64 {
    let (mut sum, mut gpus) = (0.0, 0.0);
    for (source, pool) in sources.iter().zip(pools) {
        let Some(Source { curve: Some((curve, scale)), .. }) = source else { continue };
        let n_replicas = fair_gpus.min(curve.max_replicas()).max(1);
        let placement = match shape {
            FairShare::Packed => Placement::packed(n_replicas, pool.largest_node),
            FairShare::OneNode => Placement::new(1, n_replicas),
            FairShare::OneGpu => Some(Placement::ALONE),
        };
        let Some(placement) = placement else { continue };
        sum += f64::from(pool.gpus) * curve.goodput(placement).useful_samples_per_sec() * scale;
        gpus += f64::from(pool.gpus);
    }
    if gpus > 0.0 { sum / gpus } else { 0.0 }
}

fn restart_factor<K>(job: &Job<K>, remaining_secs: Option<f64>, price: RestartPrice) -> f64 {
    let cost = job.restart_cost.as_secs_f64();
    let age = job.age.as_secs_f64();
    let by_age = || {
        if age + cost > 0.0 { (age - f64::from(job.restarts) * cost).max(0.0) / (age + cost) } else { 1.0 }
    };
    match price {
        RestartPrice::Osdi21 => by_age(),
        _ if !job.has_run() => 1.0,
        RestartPrice::Free => 1.0,
        RestartPrice::Paper => by_age(),
        RestartPrice::Horizon(horizon) => {
            let horizon = horizon.as_secs_f64().max(3.0 * cost);
            let within = remaining_secs.map_or(horizon, |left| left.min(horizon));
            if within > cost { 1.0 - cost / within } else { 0.0 }
        }
    }
}
