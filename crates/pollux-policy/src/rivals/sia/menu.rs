//! What each job can choose from: Sia's configurations, and what they are worth to it.

use std::collections::BTreeSet;

use pollux_model::{GoodputCurve, GpuType, NodeId, Placement};

use super::super::limits;
use super::super::place::Room;
use crate::snapshot::{Freedom, Job, Learned, NodeState, Snapshot};

/// The open nodes of one GPU type.
#[derive(Debug)]
pub(super) struct Stock {
    pub(super) gpu_type: GpuType,
    /// Speed of one GPU against other types.
    speed: f64,
    /// GPUs of a whole node: the largest power of two that some node has, so that no node has two of it.
    pub(super) unit: u32,
    /// Nodes that have a unit, were nobody there.
    n_units: u32,
    pub(super) nodes: Vec<Spot>,
}

/// A node as far as nobody is sure to stay there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) node: NodeId,
    pub(super) free: u32,
    /// Whether no job on several nodes stays there.
    pub(super) is_clean: bool,
}

/// A configuration that a job can have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Offer {
    pub(super) pool: usize,
    pub(super) n_nodes: u32,
    pub(super) gpus: u32,
    /// Goodput against the least of the job's configurations, times the fewest GPUs it runs on.
    pub(super) value: f64,
    /// Whether it is what the job holds.
    pub(super) is_held: bool,
}

impl Stock {
    /// All types, after those who are sure to stay where they are (`settled`, by position) were held in the room.
    pub(super) fn all<K>(snapshot: &Snapshot<K>, room: &Room, settled: &[bool]) -> Vec<Self> {
        let jobs = snapshot.jobs().iter().zip(settled);
        let spread = jobs.filter(|(job, is_settled)| **is_settled && job.holds.iter().nth(1).is_some());
        let unclean: BTreeSet<NodeId> =
            spread.flat_map(|(job, _)| job.holds.iter().map(|(node, _)| node)).collect();
        let stock = |(pool, gpu_type): (usize, &GpuType)| {
            let cluster = snapshot.cluster();
            let is_open = |state: NodeState, on: &GpuType| state == NodeState::Ready && on == gpu_type;
            let open = cluster.nodes.iter().filter(|node| is_open(node.state, &node.gpu_type));
            let usable: Vec<u32> = open.map(|node| node.gpus.saturating_sub(node.others)).collect();
            let unit = usable.iter().max().and_then(|most| most.checked_ilog2()).map_or(1, |log| 1 << log);
            let n_units = usable.iter().filter(|usable| **usable >= unit).count();
            let spot = |(node, free)| Spot { node, free, is_clean: !unclean.contains(&node) };
            Self {
                gpu_type: gpu_type.clone(),
                speed: cluster.speeds.get(gpu_type).copied().unwrap_or(1.0),
                unit,
                n_units: u32::try_from(n_units).unwrap_or(u32::MAX),
                nodes: room.open_nodes(pool).into_iter().map(spot).collect(),
            }
        };
        room.types().enumerate().map(stock).collect()
    }

    /// `(1, 1), (1, 2), (1, 4) .. (1, R), (2, 2R), (3, 3R) ..`: nodes and GPUs.
    fn configurations(&self) -> impl Iterator<Item = (u32, u32)> {
        let within = (0..=self.unit.ilog2()).map(|log| (1, 1 << log)).filter(|_| self.n_units > 0);
        within
            .chain((2..=self.n_units).filter_map(|n_nodes| Some((n_nodes, n_nodes.checked_mul(self.unit)?))))
    }

    /// So many GPUs, be they a configuration or not: on one node, or on whole ones but for the last.
    fn shape(&self, gpus: u32) -> Option<(u32, u32)> {
        let n_nodes = gpus.div_ceil(self.unit);
        (n_nodes <= self.n_units).then_some((n_nodes, gpus))
    }
}

/// The configurations of a job, with their values; none where it could run nowhere.
pub(super) fn offers(job: &Job<Learned>, room: &Room, stocks: &[Stock]) -> Vec<Offer> {
    let mut offers = Vec::new();
    for (pool, stock) in stocks.iter().enumerate().filter(|(pool, _)| room.may_use(job, *pool)) {
        match (job.freedom, Rate::of(&job.knows, stocks, stock)) {
            (Freedom::Rigid { gpus }, _) => {
                let value = f64::from(gpus) * stock.speed;
                offers.extend(stock.shape(gpus).map(|at| offer(pool, at, value)));
            }
            // Nothing is known of it: the fewest GPUs, and all types as good.
            (_, None) => {
                let least = allowed(stock, limits(job)).into_iter().next();
                offers.extend(least.map(|at| offer(pool, at, 1.0)));
            }
            (_, Some(rate)) => {
                let (least, most) = limits(job);
                let all = allowed(stock, (least, most.min(rate.curve.max_replicas())));
                let seen = job.knows.most_gpus.saturating_mul(2);
                let grown = all.iter().enumerate().filter(|(place, (_, gpus))| *place == 0 || *gpus <= seen);
                let placed = grown.filter_map(|(_, &at)| Some((at, Placement::new(at.0, at.1)?)));
                offers.extend(placed.map(|(at, placement)| offer(pool, at, rate.goodput(placement))));
            }
        }
    }
    offers.retain(|offer| offer.value > 0.0 && offer.value.is_finite());
    let least = offers.iter().map(|offer| offer.value).fold(f64::INFINITY, f64::min);
    for offer in &mut offers {
        offer.value *= f64::from(limits(job).0) / least;
        offer.is_held = is_held(job, &stocks[offer.pool], offer);
    }
    offers
}

fn offer(pool: usize, (n_nodes, gpus): (u32, u32), value: f64) -> Offer {
    Offer { pool, n_nodes, gpus, value, is_held: false }
}

/// The configurations within a job's limits; if they leave none, the fewest GPUs it runs on.
fn allowed(stock: &Stock, (least, most): (u32, u32)) -> Vec<(u32, u32)> {
    let within = stock.configurations().filter(|(_, gpus)| (least..=most).contains(gpus));
    let within: Vec<_> = within.collect();
    if within.is_empty() && least <= most { stock.shape(least).into_iter().collect() } else { within }
}

/// Whether a job could stay where it is and have this.
fn is_held(job: &Job<Learned>, stock: &Stock, offer: &Offer) -> bool {
    let spot = |node| stock.nodes.iter().find(|spot| spot.node == node);
    let is_whole = |(node, share): (NodeId, pollux_model::GpuShare)| {
        spot(node).is_some() && (offer.n_nodes == 1 || share.n_replicas() == stock.unit)
    };
    job.holds.placement() == Placement::new(offer.n_nodes, offer.gpus) && job.holds.iter().all(is_whole)
}

/// A job's goodput on a type: a learned curve, and what to multiply it by.
struct Rate<'a> {
    curve: &'a GoodputCurve,
    scale: f64,
}

impl<'a> Rate<'a> {
    /// What was learned on the type. If that is the speed of one GPU alone, other types say how it scales:
    /// `g(N, A) = g(1, A) / g(1, B) g(N, B)`. If it is nothing, they say all, at the cluster's relative speeds.
    fn of(learned: &'a Learned, stocks: &[Stock], stock: &Stock) -> Option<Self> {
        let curves = &learned.curves;
        let alone = |curve: &GoodputCurve| curve.goodput(Placement::ALONE).useful_samples_per_sec();
        let teacher = curves.iter().find(|(_, curve)| knows_exchange(curve));
        let own = curves.on(&stock.gpu_type);
        match (own, teacher) {
            (Some(own), Some((_, other))) if !knows_exchange(own) => {
                let scale = alone(own) / alone(other);
                let is_usable = scale > 0.0 && scale.is_finite();
                Some(if is_usable { Self { curve: other, scale } } else { Self { curve: own, scale: 1.0 } })
            }
            (Some(curve), _) => Some(Self { curve, scale: 1.0 }),
            (None, teacher) => {
                let (on, curve) = teacher.or_else(|| curves.iter().next())?;
                let there =
                    stocks.iter().find(|stock| stock.gpu_type == *on).map_or(1.0, |stock| stock.speed);
                Some(Self { curve, scale: stock.speed / there })
            }
        }
    }

    fn goodput(&self, placement: Placement) -> f64 {
        self.curve.goodput(placement).useful_samples_per_sec() * self.scale
    }
}

/// Whether a job was seen on several GPUs of a type: before, its exchange of gradients counts as free.
fn knows_exchange(curve: &GoodputCurve) -> bool {
    let params = curve.model().params();
    [params.sync_local, params.sync_node].iter().any(|exchange| exchange.alpha + exchange.beta > 0.0)
}
