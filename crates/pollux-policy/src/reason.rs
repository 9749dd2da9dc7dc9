//! Why a job holds what it holds, from the prices.

use pollux_model::Placement;

use crate::exchange::Floor;
use crate::groups::Bond;
use crate::plan::{Against, Limit, Reason, Step};
use crate::problem::{Choice, Problem};
use crate::round::Solved;
use crate::snapshot::{Freedom, Job, Snapshot};
use crate::valuation::Valuation;

/// What all reasons of a plan are made from.
pub(crate) struct Reasons<'a, K> {
    pub(crate) snapshot: &'a Snapshot<K>,
    pub(crate) valuation: &'a Valuation<'a>,
    pub(crate) problem: &'a Problem,
    pub(crate) solved: &'a Solved,
    /// Utilities and weights of the running jobs.
    pub(crate) sum: f64,
    pub(crate) weight: f64,
    /// The mean they make.
    value: f64,
    /// How much higher the sum could be.
    pub(crate) missing: f64,
    /// Price of a GPU by group and pool.
    pub(crate) priced: Vec<f64>,
    floor: Floor<'a>,
    pub(crate) against: Against,
}

/// What one job holds.
pub(crate) struct Present<'a> {
    pub(crate) job: usize,
    pub(crate) pool: usize,
    pub(crate) gpus: u32,
    pub(crate) is_spread: bool,
    pub(crate) worth: f64,
    pub(crate) choice: &'a Choice,
    /// What its best option leaves it at the prices.
    best_net: f64,
}

impl<'a, K> Reasons<'a, K> {
    pub(crate) fn new(
        snapshot: &'a Snapshot<K>,
        valuation: &'a Valuation<'a>,
        problem: &'a Problem,
        solved: &'a Solved,
        (sum, weight, missing): (f64, f64, f64),
    ) -> Self {
        let priced = solved.hulls.priced(&solved.solution.shadow);
        let floor = Floor::new(problem, &solved.hulls, &solved.solution.choices);
        let value = valuation.mean(sum, weight);
        let against = Against::FairShare;
        Self { snapshot, valuation, problem, solved, sum, weight, value, missing, priced, floor, against }
    }

    /// The reason for one job's choice.
    pub(crate) fn of(&self, job: usize, choice: &'a Choice) -> Reason {
        let record = &self.snapshot.jobs()[job];
        let places = self.problem.places(job, choice);
        let Some(&(first, _)) = places.first() else {
            let limit = if self.solved.hulls.has_hope(job) { Limit::Starved } else { Limit::Impossible };
            return Reason { limit, against: self.against, ..Reason::default() };
        };
        let present = Present {
            job,
            pool: self.problem.nodes[first].pool,
            gpus: places.iter().map(|&(_, gpus)| gpus).sum(),
            is_spread: places.len() > 1,
            worth: self.problem.worth(job, choice).unwrap_or(0.0),
            choice,
            best_net: self.solved.hulls.best(job, &self.priced, &self.solved.solution.shadow).net,
        };
        let speedup = self.speedup(&present, present.gpus, present.is_spread);
        let is_movable = self.problem.jobs[job].nothing.is_some();
        let more =
            present.gpus.checked_add(1).filter(|_| is_movable).and_then(|gpus| self.step(&present, gpus));
        let fewer =
            present.gpus.checked_sub(1).filter(|_| is_movable).and_then(|gpus| self.step(&present, gpus));
        let limit = self.limit(&present, record, more.as_ref(), speedup);
        Reason { speedup: Some(speedup), against: self.against, more, fewer, limit }
    }

    fn speedup(&self, present: &Present<'_>, gpus: u32, is_spread: bool) -> f64 {
        let placement = Placement::new(if is_spread { 2 } else { 1 }, gpus);
        placement.map_or(0.0, |placement| self.valuation.jobs()[present.job].speedup(present.pool, placement))
    }

    fn price(&self, job: usize, pool: usize) -> f64 {
        let group = self.problem.jobs[job].group.unwrap_or(self.problem.groups.len());
        self.priced[group * self.problem.n_pools + pool]
    }

    /// What a job would be with another number of GPUs, of whichever pool suits it best then.
    fn step(&self, present: &Present<'_>, gpus: u32) -> Option<Step> {
        let job = present.job;
        let value = &self.valuation.jobs()[job];
        let solution = &self.solved.solution;
        let mut best: Option<(f64, usize, bool)> = None;
        // What pieces leave it, at their prices.
        let mut most_by_pieces = f64::NEG_INFINITY;
        for (pool, source) in value.pools.iter().enumerate() {
            if !source.as_ref().is_some_and(|source| (source.min..=source.max).contains(&gpus)) {
                continue;
            }
            for is_spread in [false, true] {
                let worth = self.worth(present, pool, gpus, is_spread);
                let net = worth - self.price(job, pool) * f64::from(gpus);
                if worth.is_finite() && best.is_none_or(|(most, ..)| net > most) {
                    best = Some((net, pool, is_spread));
                }
                if let Some(sharp) = &solution.sharp {
                    let costs = &sharp.costs[pool];
                    let cost = costs.get(gpus as usize).or(costs.last()).copied().unwrap_or(0.0);
                    most_by_pieces = most_by_pieces.max(worth - cost);
                }
            }
        }
        if let Some((net, pool, is_spread)) = self.step_back(job, gpus) {
            if best.is_none_or(|(most, ..)| net > most) {
                best = Some((net, pool, is_spread));
            }
            if let Some(sharp) = &solution.sharp {
                most_by_pieces = most_by_pieces.max(sharp.nets_of_keeping[job].unwrap_or(f64::INFINITY));
            }
        }
        let (net, pool, is_spread) = best?;
        let placement = Placement::new(if is_spread { 2 } else { 1 }, gpus)?;
        let paid = self.price(job, present.pool) * f64::from(present.gpus);
        let change = net - (present.worth - paid);
        // Forced to this, a job's part of a bound falls from its best to what this leaves it.
        let mut most = solution.bound_by_gpus - solution.score.sum + (net - present.best_net);
        if let Some(sharp) = &solution.sharp {
            most = most.min(self.missing + (most_by_pieces - sharp.nets[job]));
        }
        let least = self.floor.exchange(self.problem, present, gpus).map(|least| least.min(most));
        Some(Step {
            gpus,
            speedup: value.speedup(pool, placement),
            at_least: least.map(|least| self.change_of_value(least)),
            worth: self.change_of_value(change.max(least.unwrap_or(f64::NEG_INFINITY)).min(most)),
            at_most: self.change_of_value(most),
        })
    }

    /// What a job is left with that keeps what it holds, if that is so many GPUs.
    fn step_back(&self, job: usize, gpus: u32) -> Option<(f64, usize, bool)> {
        let keep = self.problem.jobs[job].keep.as_ref()?;
        let pool = self.problem.nodes[keep.at.first()?.0].pool;
        let held: u32 = keep.at.iter().map(|&(_, gpus)| gpus).sum();
        let open = keep.at.iter().filter(|&&(node, _)| self.problem.nodes[node].open);
        let open: u32 = open.map(|&(_, gpus)| gpus).sum();
        let price = self.solved.solution.shadow.pool[pool];
        let for_caps = self.price(job, pool) - price;
        let net = keep.worth - price * f64::from(open) - for_caps * f64::from(held);
        (held == gpus).then_some((net, pool, keep.at.len() > 1))
    }

    /// What GPUs would be worth to a job that has to move for them, tables or not.
    fn worth(&self, present: &Present<'_>, pool: usize, gpus: u32, is_spread: bool) -> f64 {
        let largest = self.valuation.pools()[pool].largest_node;
        if gpus == 0 || (!is_spread && gpus > largest) || (is_spread && gpus < 2) {
            return f64::NEG_INFINITY;
        }
        let listed = self.problem.jobs[present.job].options[pool].worth(gpus, is_spread);
        if listed.is_finite() {
            return listed;
        }
        let Some(placement) = Placement::new(if is_spread { 2 } else { 1 }, gpus) else {
            return f64::NEG_INFINITY;
        };
        if self.valuation.jobs()[present.job].speedup(pool, placement) <= 0.0 {
            return f64::NEG_INFINITY;
        }
        self.valuation.worth(present.job, pool, placement, true)
    }

    fn change_of_value(&self, change: f64) -> f64 {
        self.valuation.mean(self.sum + change, self.weight) - self.value
    }

    fn limit(&self, present: &Present<'_>, record: &Job<K>, more: Option<&Step>, speedup: f64) -> Limit {
        let value = &self.valuation.jobs()[present.job];
        if record.freedom == Freedom::Restarting {
            return Limit::Restarting;
        }
        if record.is_pinned() || matches!(record.freedom, Freedom::Rigid { .. }) {
            return Limit::Pinned;
        }
        if !value.is_profiled() {
            return Limit::Unprofiled;
        }
        let next = present.gpus.saturating_add(1);
        if let Some(source) = &value.pools[present.pool] {
            if next > source.max_explored {
                return Limit::OwnMaximum;
            }
            if next > source.max {
                return Limit::Exploration;
            }
        }
        let Some(more) = more else { return Limit::OwnMaximum };
        let price = self.solved.solution.shadow.pool[present.pool];
        // A larger node would help, were there one.
        let lacks_room = || {
            let is_full = next > self.valuation.pools()[present.pool].largest_node && !present.is_spread;
            let undivided = Placement::new(1, next).filter(|_| is_full);
            let undivided = undivided.map_or(0.0, |placement| value.speedup(present.pool, placement));
            undivided > speedup * (1.0 + 1e-9)
                && value.weight * self.valuation.utility().of(undivided) - present.worth > price
        };
        if more.speedup <= speedup * (1.0 + 1e-9) {
            return if lacks_room() { Limit::NodeSize } else { Limit::NoGain };
        }
        let on_one = self.worth(present, present.pool, next, false);
        let gain = on_one.max(self.worth(present, present.pool, next, true)) - present.worth;
        if gain > price {
            let caps = self.solved.hulls.caps(present.job, present.pool);
            let Some(&full) = caps.iter().find(|&&cap| self.floor.cap_left[cap] <= 0) else {
                return Limit::Packing;
            };
            let gpu_type = self.valuation.pools()[present.pool].gpu_type.clone();
            return match self.solved.bonds[full] {
                Bond::Cap(group) => Limit::GroupCap { group, gpu_type },
                Bond::Reserve(group) => Limit::Reserved { group, gpu_type },
            };
        }
        // It gains less than a GPU costs; what of the gain is in the way?
        let unmoved = value.weight * self.valuation.utility().of(more.speedup);
        if *present.choice == Choice::Keep && unmoved - present.worth > price {
            return Limit::RestartPrice;
        }
        if lacks_room() {
            return Limit::NodeSize;
        }
        Limit::Price
    }
}
