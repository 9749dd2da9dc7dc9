//! Placing jobs at given prices, and improving what was placed.

mod share;

use self::share::Sharer;
use super::dual::Shadow;
use super::state::{Held, Kind, State, index};
use crate::problem::Choice;
use pollux_model::Random;

/// A state under improvement.
pub(crate) struct Search<'p> {
    pub(crate) state: State<'p>,
    random: Random,
    /// Price of a GPU by group and pool.
    priced: Vec<f64>,
    /// What prices are multiplied by at present, for each pool.
    factors: Vec<f64>,
    /// Units of work done.
    pub(crate) units: u64,
    /// What jobs held before the present attempt.
    log: Vec<(u32, Held)>,
    logged: Vec<u32>,
    attempt: u32,
    /// Jobs that are farthest from what they would buy at the prices.
    worst: Vec<u32>,
    is_stale: bool,
    shadow: Shadow,
    scratch: Scratch,
}

/// How many of the worst off are looked after.
const N_WORST: usize = 32;

#[derive(Default)]
struct Scratch {
    jobs: Vec<u32>,
    nodes: Vec<u32>,
    at: Vec<(u32, u32)>,
    sharers: Vec<Sharer>,
    worth: Vec<f64>,
    best: Vec<f64>,
    choice: Vec<u32>,
}

/// Where a job could go.
#[derive(Clone, Copy)]
enum Spot {
    Keep,
    OneNode { pool: usize, gpus: u32 },
    Spread { pool: usize, gpus: u32 },
}

impl<'p> Search<'p> {
    pub(crate) fn new(state: State<'p>, shadow: &Shadow, random: Random) -> Self {
        let n_jobs = state.problem.jobs.len();
        let n_pools = state.problem.n_pools;
        let priced = state.hulls.priced(shadow);
        Self {
            state,
            random,
            priced,
            factors: vec![1.0; n_pools],
            units: 0,
            log: Vec::new(),
            logged: vec![0; n_jobs],
            attempt: 0,
            worst: Vec::new(),
            is_stale: false,
            shadow: shadow.clone(),
            scratch: Scratch::default(),
        }
    }

    /// Everybody keeps what they hold, where that is possible; the rest is placed.
    pub(crate) fn keep_all(&mut self) {
        for job in 0..self.state.held.len() {
            if self.state.is_movable(job) && self.state.can_keep(job) {
                self.state.keep(job);
            }
        }
        self.place_idle();
    }

    /// Exactly as an answer has it.
    pub(crate) fn put_all(&mut self, choices: &[Choice]) {
        for (job, choice) in choices.iter().enumerate() {
            if !self.state.is_movable(job) {
                continue;
            }
            match choice {
                Choice::Nothing => {}
                Choice::Keep => self.state.keep(job),
                Choice::Place(at) => {
                    let at: Vec<(u32, u32)> = at.iter().map(|&(node, gpus)| (index(node), gpus)).collect();
                    let pool =
                        at.first().map_or(0, |&(node, _)| self.state.problem.nodes[node as usize].pool);
                    let (kind, worth) = self.state.worth_at(job, pool, &at);
                    self.state.put(job, kind, worth, &at);
                }
            }
        }
    }

    /// Everybody gets what the prices suggest, the largest first, those who stay before all others.
    pub(crate) fn place_all(&mut self, shadow: &Shadow) {
        let hulls = self.state.hulls;
        let mut wishes: Vec<(bool, u32, u32)> = Vec::new();
        for job in 0..self.state.held.len() {
            if !self.state.is_movable(job) || !hulls.has_hope(job) {
                continue;
            }
            let best = hulls.best(job, &self.priced, shadow);
            if best.keeps && self.state.can_keep(job) {
                self.state.keep(job);
            } else {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole GPUs")]
                wishes.push((best.starves, best.gpus as u32, index(job)));
            }
        }
        wishes.sort_by_key(|&(starves, gpus, job)| (starves, std::cmp::Reverse(gpus), job));
        for (_, _, job) in wishes {
            self.insert(job as usize);
        }
        self.place_idle();
        self.hand_out_rest();
    }

    /// Places who holds nothing.
    fn place_idle(&mut self) {
        let mut idle = self.state.idle.jobs.clone();
        idle.sort_unstable();
        for job in idle {
            self.insert(job as usize);
        }
    }

    /// Hands out what is left.
    pub(crate) fn hand_out_rest(&mut self) {
        for node in 0..self.state.free.len() {
            if self.state.free[node] > 0 && self.state.problem.nodes[node].open {
                self.share(node);
            }
            if self.state.free[node] > 0 {
                self.lend(node);
            }
        }
    }

    /// Gives a job that holds nothing its best free place, at the present factors of the prices.
    fn insert(&mut self, job: usize) -> bool {
        self.units += 1;
        let state = &self.state;
        let problem = state.problem;
        let table = &problem.jobs[job];
        let group = table.group.unwrap_or(problem.groups.len());
        let mut most = f64::NEG_INFINITY;
        let mut spot = None;
        if let Some(keep) = &table.keep
            && state.can_keep(job)
        {
            let open = keep.at.iter().filter(|&&(node, _)| problem.nodes[node].open);
            let gpus: u32 = open.map(|&(_, gpus)| gpus).sum();
            let pool = keep.at.first().map_or(0, |&(node, _)| problem.nodes[node].pool);
            most = keep.worth
                - self.factors[pool] * self.priced[group * problem.n_pools + pool] * f64::from(gpus);
            spot = Some(Spot::Keep);
        }
        for (pool, options) in table.options.iter().enumerate() {
            let price = self.factors[pool] * self.priced[group * problem.n_pools + pool];
            let allowed = state.allowed(job, pool) as usize;
            let on_one = options.one_node.len().min(state.most_free(pool) as usize).min(allowed);
            let mut cost = 0.0;
            for (k, worth) in options.one_node[..on_one].iter().enumerate() {
                cost += price;
                if worth - cost > most {
                    most = worth - cost;
                    spot = Some(Spot::OneNode { pool, gpus: index(k + 1) });
                }
            }
            let room = usize::try_from(state.spread_room[pool]).unwrap_or(usize::MAX);
            let on_several = options.spread.len().min(room.saturating_sub(1)).min(allowed.saturating_sub(1));
            cost = price;
            for (k, worth) in options.spread[..on_several].iter().enumerate() {
                cost += price;
                if worth - cost > most {
                    most = worth - cost;
                    spot = Some(Spot::Spread { pool, gpus: index(k + 2) });
                }
            }
        }
        match spot {
            None => false,
            Some(Spot::Keep) => {
                self.state.keep(job);
                true
            }
            Some(Spot::OneNode { pool, gpus }) => self.put_on_one(job, pool, gpus),
            Some(Spot::Spread { pool, gpus }) => {
                self.put_on_several(job, pool, gpus) || self.put_smaller(job, pool, gpus)
            }
        }
    }

    /// On the node that it fills best.
    fn put_on_one(&mut self, job: usize, pool: usize, gpus: u32) -> bool {
        let most = self.state.most_free(pool);
        let Some(free) = (gpus..=most).find(|&free| !self.state.with_free(pool, free).is_empty()) else {
            return false;
        };
        let nodes = self.state.with_free(pool, free);
        let node = nodes[self.random.below(nodes.len())];
        let (kind, worth) = self.state.worth_at(job, pool, &[(node, gpus)]);
        self.state.put(job, kind, worth, &[(node, gpus)]);
        true
    }

    /// On the emptiest nodes, the last one filled best.
    fn put_on_several(&mut self, job: usize, pool: usize, gpus: u32) -> bool {
        let mut at = std::mem::take(&mut self.scratch.at);
        at.clear();
        let mut left = gpus;
        let mut free = self.state.most_free(pool);
        while free > 0 && left > 0 {
            let nodes = self.state.with_free(pool, free);
            let start = self.random.below(nodes.len());
            for step in 0..nodes.len() {
                let node = nodes[(start + step) % nodes.len()];
                if left == 0 || (left < free && !at.is_empty()) {
                    break;
                }
                if self.state.may_spread_to(node as usize) {
                    // One node is not several: leave a GPU for the next.
                    let take = if at.is_empty() { free.min(left - 1) } else { free.min(left) };
                    at.push((node, take));
                    left -= take;
                }
            }
            free = (free - 1).min(left.max(1));
            if left == 0 {
                break;
            }
            if left < free + 1 && !at.is_empty() {
                // The tightest node that takes the rest at once.
                let most = self.state.most_free(pool);
                let last = (left..=most).find_map(|free| {
                    let nodes = self.state.with_free(pool, free).iter();
                    nodes.copied().find(|&node| {
                        self.state.may_spread_to(node as usize) && at.iter().all(|&(other, _)| other != node)
                    })
                });
                if let Some(node) = last {
                    at.push((node, left));
                    left = 0;
                }
            }
        }
        let fits = left == 0 && at.len() > 1;
        if fits {
            at.sort_unstable();
            let (kind, worth) = self.state.worth_at(job, pool, &at);
            self.state.put(job, kind, worth, &at);
        }
        self.scratch.at = at;
        fits
    }

    /// What was meant for several nodes, on one.
    fn put_smaller(&mut self, job: usize, pool: usize, gpus: u32) -> bool {
        let most = self.state.most_free(pool).min(gpus);
        let options = &self.state.problem.jobs[job].options[pool];
        let best = (1..=most)
            .filter(|&k| options.worth(k, false).is_finite())
            .max_by(|&a, &b| options.worth(a, false).total_cmp(&options.worth(b, false)));
        best.is_some_and(|gpus| self.put_on_one(job, pool, gpus))
    }

    /// Remembers what a job holds, once an attempt.
    fn record(&mut self, job: usize) {
        if self.logged[job] != self.attempt {
            self.logged[job] = self.attempt;
            self.log.push((index(job), self.state.held[job].clone()));
        }
    }

    fn undo(&mut self) {
        for at in 0..self.log.len() {
            self.state.clear(self.log[at].0 as usize);
        }
        for (job, held) in std::mem::take(&mut self.log) {
            if held.kind != Kind::Nothing {
                self.state.put(job as usize, held.kind, held.worth, &held.at);
            }
        }
    }

    /// Empties a few nodes, places their jobs anew at disturbed prices, and keeps that if it is no worse.
    pub(crate) fn ruin_and_recreate(&mut self) -> bool {
        let n_jobs = self.state.held.len();
        if self.is_stale || (self.attempt as usize).is_multiple_of(n_jobs.div_ceil(16).max(64)) {
            self.find_worst();
            self.is_stale = false;
        }
        self.attempt += 1;
        self.log.clear();
        if self.attempt.is_multiple_of(1 << 12) {
            self.state.recount();
        }
        let before = self.state.rank();
        let mut nodes = std::mem::take(&mut self.scratch.nodes);
        let mut jobs = std::mem::take(&mut self.scratch.jobs);
        self.choose_nodes(&mut nodes);
        jobs.clear();
        for &node in &nodes {
            for at in 0..self.state.tenants[node as usize].len() {
                let job = self.state.tenants[node as usize][at];
                if self.state.is_movable(job as usize) && !jobs.contains(&job) {
                    jobs.push(job);
                }
            }
        }
        self.add_others(&mut jobs);
        // Where jobs starve all must make do with less, and the one that does comes first.
        let starving = !self.state.idle.jobs.is_empty();
        let last = jobs.len().saturating_sub(1);
        let first = usize::from(starving && self.random.chance(0.5) && !jobs.is_empty());
        if first == 1 {
            jobs.swap(0, last);
        }
        let factor = 0.7 + if starving { 3.0 } else { 0.6 } * self.random.unit();
        for slot in 0..self.factors.len() {
            // Now and then a pool costs next to nothing: prices may be wrong where few jobs ask for it.
            let cheap = self.random.chance(if self.factors.len() > 1 { 0.1 } else { 0.02 });
            self.factors[slot] = if cheap { 0.3 * self.random.unit() } else { factor };
        }
        for &job in &jobs {
            self.record(job as usize);
            self.state.clear(job as usize);
        }
        self.random.shuffle(&mut jobs[first..]);
        for &job in &jobs {
            self.insert(job as usize);
        }
        for &node in &nodes {
            self.share(node as usize);
            if self.state.free[node as usize] > 0 {
                self.lend(node as usize);
            }
        }
        (self.scratch.nodes, self.scratch.jobs) = (nodes, jobs);
        let after = self.state.rank();
        let tiny = 1e-12 * before.sum.abs();
        if after.beats(before, -tiny) {
            // Somebody made room for a job that starved, whatever it cost: see to that first.
            self.is_stale = after.starves_fewer(before);
            return after.beats(before, tiny);
        }
        self.undo();
        false
    }

    /// Finds who is farthest from what it would buy at the prices.
    fn find_worst(&mut self) {
        let hulls = self.state.hulls;
        let mut regrets: Vec<(f64, u32)> = Vec::with_capacity(self.state.held.len());
        for (job, held) in self.state.held.iter().enumerate() {
            if held.kind != Kind::Nothing && self.state.is_movable(job) {
                let group = self.state.problem.jobs[job].group.unwrap_or(self.state.problem.groups.len());
                let price = self.priced[group * self.factors.len() + held.pool];
                let best = hulls.best(job, &self.priced, &self.shadow).net;
                regrets.push((best - (held.worth - price * f64::from(held.gpus)), index(job)));
            }
        }
        let n = N_WORST.min(regrets.len());
        if n > 0 && n < regrets.len() {
            regrets.select_nth_unstable_by(n - 1, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        }
        self.worst.clear();
        self.worst.extend(regrets[..n].iter().map(|&(_, job)| job));
        self.worst.sort_unstable();
    }

    /// A node where something can be gained, or any.
    fn choose_node(&mut self) -> usize {
        let node = self.random.below(self.state.free.len());
        let chance = self.random.unit();
        // Of many jobs few are badly off, and what is to be gained is mostly theirs.
        let for_worst = if self.state.held.len() > 8 * N_WORST { 0.7 } else { 0.3 };
        if chance < for_worst {
            let worst = self.worst.get(self.random.below(self.worst.len()));
            let held = worst.map_or(&[][..], |&job| &self.state.held[job as usize].at);
            return held.get(self.random.below(held.len())).map_or(node, |&(node, _)| node as usize);
        }
        let pool = self.state.problem.nodes[node].pool;
        let most = self.state.most_free(pool);
        if chance < f64::midpoint(1.0, for_worst) && most > 0 {
            // GPUs are idle.
            let idle = self.state.with_free(pool, 1 + index(self.random.below(most as usize)));
            return idle.get(self.random.below(idle.len())).map_or(node, |&node| node as usize);
        }
        node
    }

    fn choose_nodes(&mut self, nodes: &mut Vec<u32>) {
        let n_nodes = self.state.free.len();
        nodes.clear();
        let wanted = 1 + self.random.below(3);
        for _ in 0..4 * wanted {
            let node = if nodes.is_empty() { self.choose_node() } else { self.random.below(n_nodes) };
            if self.state.problem.nodes[node].open && !nodes.contains(&index(node)) {
                nodes.push(index(node));
            }
            if nodes.len() == wanted {
                break;
            }
        }
    }

    /// Some jobs from elsewhere take part: one that spans nodes, some that starve, any other.
    fn add_others(&mut self, jobs: &mut Vec<u32>) {
        let spreading = &self.state.spreading.jobs;
        if !spreading.is_empty() && self.random.chance(0.3) {
            let job = spreading[self.random.below(spreading.len())];
            self.add_other(jobs, job);
        }
        let n_idle = self.state.idle.jobs.len();
        if n_idle == 0 || self.random.chance(0.5) {
            let job = index(self.random.below(self.state.held.len()));
            self.add_other(jobs, job);
        }
        for _ in 0..n_idle.min(1 + self.random.below(3)) {
            let job = self.state.idle.jobs[self.random.below(n_idle)];
            self.add_other(jobs, job);
        }
    }

    fn add_other(&self, jobs: &mut Vec<u32>, job: u32) {
        if self.state.is_movable(job as usize)
            && self.state.hulls.has_hope(job as usize)
            && !jobs.contains(&job)
        {
            jobs.push(job);
        }
    }
}
