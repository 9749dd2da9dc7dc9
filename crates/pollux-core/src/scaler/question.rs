//! How many nodes would suit the jobs at hand.

use std::collections::BTreeMap;

use pollux_model::{GpuType, NodeId, Placement};
use pollux_policy::{AnyPolicy, Job, Seed, Snapshot};

use super::outlook::{Outlook, unplaced};
use super::{Pool, PoolId, ScaleRule};

/// Nodes of each pool.
pub type Sizes = BTreeMap<PoolId, u32>;

/// Everything that sizes are chosen by: a value, so that any answer can be had again.
#[derive(Clone, Debug)]
pub struct SizeQuestion {
    /// Jobs and nodes as a policy would see them now.
    pub snapshot: Snapshot,
    /// What a size is judged by.
    pub rule: ScaleRule,
    /// Whether nodes may be added.
    pub may_grow: bool,
    /// Whether nodes may be given back.
    pub may_shrink: bool,
    /// Seed of the plans that are tried.
    pub seed: Seed,
    /// The pools.
    pub pools: Vec<PoolNow>,
}

/// A pool as it is now.
#[derive(Clone, Debug)]
pub struct PoolNow {
    /// The pool.
    pub pool: Pool,
    /// Its nodes but those that leave, in the order in which they are kept.
    pub nodes: Vec<NodeId>,
    /// So many of them cannot be given back now: jobs on them cannot be moved, or they are paid for.
    pub fixed: u32,
    /// Most nodes it could have now; fewer than its limit after an order failed.
    pub most: u32,
}

/// Sizes are changed only where work becomes cheaper by this part.
const CHEAPER: f64 = 0.02;
/// A node is given back only where its scaling efficiency is this much below what buys one.
const SLACK: f64 = 0.8;

impl SizeQuestion {
    /// The sizes that suit best, by plans that the policy makes for clusters of other sizes.
    ///
    /// Pools are filled in the order of their price for the same goodput, spot first of equals, and emptied in the
    /// reverse order. Those who cannot be judged stay as they are.
    pub fn answer(&self, policy: &dyn AnyPolicy) -> Sizes {
        let judge = Judge { question: self, jobs: unplaced(self), policy };
        let sizes = match self.rule {
            ScaleRule::Goodput { low, high } => judge.by_goodput(f64::midpoint(low, high)),
            ScaleRule::Cost { job_hour } => judge.by_cost(job_hour),
            ScaleRule::Throughput { worth } => judge.by_throughput(worth),
        };
        sizes.unwrap_or_else(|| self.present())
    }

    fn present(&self) -> Sizes {
        self.pools.iter().map(|now| (now.pool.id, now.size())).collect()
    }

    /// Pools by the price of a GPU's goodput, the cheapest first.
    fn cheapest_first(&self) -> Vec<&PoolNow> {
        let price = |now: &PoolNow| {
            let worth = f64::from(now.pool.node.gpus) * self.speed(&now.pool.node.gpu_type);
            if worth > 0.0 { now.pool.price / worth } else { f64::INFINITY }
        };
        let mut pools: Vec<&PoolNow> = self.pools.iter().collect();
        pools.sort_by(|a, b| {
            price(a).total_cmp(&price(b)).then(b.pool.spot.cmp(&a.pool.spot)).then(a.pool.id.cmp(&b.pool.id))
        });
        pools
    }

    /// How fast one GPU of a type is against the fastest type, on average over the jobs that know it; 1 if none does.
    fn speed(&self, gpu_type: &GpuType) -> f64 {
        let jobs = self.snapshot.jobs().iter();
        let speeds = jobs.filter_map(|job| {
            let curves = &job.knows.learned.curves;
            let own = curves.on(gpu_type)?.goodput(Placement::ALONE).useful_samples_per_sec();
            let all =
                curves.iter().map(|(_, curve)| curve.goodput(Placement::ALONE).useful_samples_per_sec());
            let best = all.fold(0.0, f64::max);
            (best > 0.0).then(|| own / best)
        });
        let (sum, n) = speeds.fold((0.0, 0.0), |(sum, n), speed| (sum + speed, n + 1.0));
        if n > 0.0 { sum / n } else { 1.0 }
    }
}

impl PoolNow {
    /// Nodes it has.
    pub fn size(&self) -> u32 {
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    /// The sizes that can be chosen.
    fn range(&self, question: &SizeQuestion) -> (u32, u32) {
        let least = if question.may_shrink { self.pool.least.max(self.fixed) } else { self.size() };
        let most = if question.may_grow { self.most } else { self.size() };
        (least.min(self.size()), most.max(self.size()))
    }
}

struct Judge<'a> {
    question: &'a SizeQuestion,
    jobs: Vec<Job>,
    policy: &'a dyn AnyPolicy,
}

impl Judge<'_> {
    fn outlook(&self, sizes: &Sizes) -> Option<Outlook> {
        Outlook::of(self.question, &self.jobs, sizes, self.policy).ok()
    }

    /// The sizes whose utility is nearest to the middle of the band, among those that starve as few as can be.
    fn by_goodput(&self, middle: f64) -> Option<Sizes> {
        let mut sizes = self.question.present();
        let mut pools = self.question.cheapest_first();
        let largest = pools.iter().map(|now| (now.pool.id, now.range(self.question).1)).collect();
        let starved = self.outlook(&largest)?.starved;
        let is_too_small = |outlook: &Outlook| outlook.starved > starved || outlook.utility() > middle;
        let grows = is_too_small(&self.outlook(&sizes)?);
        if !grows {
            pools.reverse();
        }
        for now in pools {
            let id = now.pool.id;
            let (least, most) = now.range(self.question);
            let bounds = if grows { (now.size(), most) } else { (least, now.size()) };
            let at = |size: u32| {
                let mut sizes = sizes.clone();
                sizes.insert(id, size);
                self.outlook(&sizes)
            };
            // The smallest size that is not too small, or the largest there is.
            let (mut low, mut high) = bounds;
            while low < high {
                let size = low + (high - low) / 2;
                if is_too_small(&at(size)?) { low = size + 1 } else { high = size }
            }
            let mut chosen = (low, at(low)?);
            if low > bounds.0 {
                let smaller = at(low - 1)?;
                let distance = |outlook: &Outlook| (outlook.utility() - middle).abs();
                if smaller.starved == chosen.1.starved && distance(&smaller) <= distance(&chosen.1) {
                    chosen = (low - 1, smaller);
                }
            }
            // What nobody would use is not worth having, whatever the utility.
            let idle = chosen.1.empty.get(&id).copied().unwrap_or(0);
            let size = chosen.0.saturating_sub(idle).max(bounds.0);
            sizes.insert(id, size);
            let is_done = if grows { size < most } else { size > least };
            if is_done {
                break;
            }
        }
        Some(sizes)
    }

    /// The sizes at which work is cheapest, among those that starve as few as can be; pool after pool, and as they are unless
    /// others are noticeably cheaper.
    fn by_cost(&self, job_hour: f64) -> Option<Sizes> {
        let question = self.question;
        let pools = question.cheapest_first();
        let price = |sizes: &Sizes| {
            let nodes = pools
                .iter()
                .map(|now| now.pool.price * f64::from(sizes.get(&now.pool.id).copied().unwrap_or_default()));
            nodes.sum::<f64>() + job_hour * self.jobs.len() as f64
        };
        // Starved jobs first, then the price of a unit of work.
        let judged = |sizes: &Sizes| {
            let outlook = self.outlook(sizes)?;
            Some((outlook.starved, price(sizes) / outlook.speedups.max(f64::MIN_POSITIVE)))
        };
        let present = question.present();
        let (mut sizes, mut best) = (present.clone(), judged(&present)?);
        let at_first = best;
        for now in &pools {
            let (least, most) = now.range(question);
            for size in least..=most {
                let mut other = sizes.clone();
                other.insert(now.pool.id, size);
                let value = judged(&other)?;
                if value.0 < best.0 || value.0 == best.0 && value.1 < best.1 {
                    (sizes, best) = (other, value);
                }
            }
        }
        let is_better = best.0 < at_first.0 || best.1 < at_first.1 * (1.0 - CHEAPER);
        Some(if is_better { sizes } else { present })
    }

    /// Nodes as long as each step adds enough throughput.
    fn by_throughput(&self, worth: f64) -> Option<Sizes> {
        let mut sizes = self.question.present();
        for now in self.question.cheapest_first() {
            let id = now.pool.id;
            let more = self.worth_having(&sizes, now, worth)?;
            let size = if more >= now.size() {
                more
            } else {
                self.worth_having(&sizes, now, SLACK * worth)?.min(now.size())
            };
            sizes.insert(id, size);
        }
        Some(sizes)
    }

    /// The last size of a pool, from the smallest on, that adds this part of the average to the one accepted before.
    fn worth_having(&self, sizes: &Sizes, now: &PoolNow, worth: f64) -> Option<u32> {
        let at = |size: u32| {
            let mut sizes = sizes.clone();
            sizes.insert(now.pool.id, size);
            self.outlook(&sizes)
        };
        let (least, most) = now.range(self.question);
        let mut accepted = (least, at(least)?);
        for size in least + 1..=most {
            let next = at(size)?;
            let (_, before) = &accepted;
            let gained = next.speedups - before.speedups;
            let expected = before.utility() * (next.gpus - before.gpus);
            if gained > 0.0 && gained >= worth * expected {
                accepted = (size, next);
            }
        }
        Some(accepted.0)
    }
}
