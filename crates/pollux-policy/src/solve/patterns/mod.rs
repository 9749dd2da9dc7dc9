//! A sharper bound: one that knows that GPUs come in nodes.
//!
//! Prices on GPUs ([`super::dual`]) ignore where nodes end. Here every piece has a price of its own: `k` GPUs on one
//! node, a part of `a` GPUs of a job that spans nodes, the very place a job holds now. A node sells the pieces that
//! fill it best, at most one of them a part of a job that spans nodes; each job buys what pays best. Any prices
//! give a bound; the best ones come from a linear program whose columns (ways to fill a node, options of a
//! job) are added as the prices call for them. Prices in proportion to GPUs give the bound of [`super::dual`] again.

mod filling;

use self::filling::{Filling, NodeKind};
use super::dual::{CLASSES, class};
use super::hull::Hulls;
use super::lp::Lp;
use super::state::{Kind, State};
use crate::problem::Problem;

/// Programs with more rows than this are not tried: their time grows with the square.
const MOST_ROWS: usize = 240;
/// Rounds of new columns at most. Wherever they end, what they proved is a bound.
const MOST_ROUNDS: usize = 80;
/// Costs of more GPUs than this are not listed.
const MOST_COSTS: u32 = 4_096;

/// The bound on the sum of jobs with hope if so many starve. The choices of `state` are the first columns; the
/// search for prices ends when a bound `suffices`. None if the problem is too large.
pub(super) fn bound(
    state: &State<'_>,
    starved: [u32; CLASSES],
    suffices: &dyn Fn(f64) -> bool,
) -> Option<Sharp> {
    let problem = state.problem;
    let largest =
        |pool| problem.nodes.iter().filter(|slot| slot.pool == pool).map(|slot| slot.gpus as usize).max();
    let pieces: usize = (0..problem.n_pools).filter_map(largest).map(|gpus| 2 * gpus).sum();
    if problem.jobs.len() + pieces > MOST_ROWS {
        return None;
    }
    let mut program = Program::new(state, starved, true);
    if program.n_rows() > MOST_ROWS {
        program = Program::new(state, starved, false);
    }
    (program.n_rows() <= MOST_ROWS).then(|| program.run(state, suffices))
}

/// The bound, and what its prices say about options that no table lists.
#[derive(Clone, Debug)]
pub(crate) struct Sharp {
    pub(crate) bound: f64,
    /// For each pool, the least that 0, 1, .. of its GPUs cost.
    pub(crate) costs: Vec<Vec<f64>>,
    /// What each job is left with after paying for its best listed option.
    pub(crate) nets: Vec<f64>,
    /// What it is left with if it keeps what it holds.
    pub(crate) nets_of_keeping: Vec<Option<f64>>,
}

/// The rows of the program.
struct Program<'p> {
    problem: &'p Problem,
    hulls: &'p Hulls,
    jobs: Vec<JobRow>,
    kinds: Vec<NodeKind>,
    /// Which kind an open node is of.
    kind_of: Vec<Option<usize>>,
    /// Largest node of each pool, and the first of its rows: pieces, then parts.
    pools: Vec<(u32, usize)>,
    caps: Vec<(usize, f64)>,
    starved: [Option<(usize, f64)>; CLASSES],
    may_starve: [bool; CLASSES],
    b: Vec<f64>,
    /// Rows that must be met exactly; the others may have something left.
    is_exact: Vec<bool>,
    fixed: f64,
}

struct JobRow {
    job: usize,
    row: usize,
    /// The parts of what it holds on open nodes: node and row. None: nothing to keep, or not told apart.
    links: Option<Vec<(usize, usize)>>,
}

impl<'p> Program<'p> {
    fn new(state: &State<'p>, starved: [u32; CLASSES], with_links: bool) -> Self {
        let (problem, hulls) = (state.problem, state.hulls);
        let mut program = Self {
            problem,
            hulls,
            jobs: Vec::new(),
            kinds: Vec::new(),
            kind_of: vec![None; problem.nodes.len()],
            pools: Vec::new(),
            caps: Vec::new(),
            starved: [None; CLASSES],
            may_starve: [false; CLASSES],
            b: Vec::new(),
            is_exact: Vec::new(),
            fixed: 0.0,
        };
        let mut gpus: Vec<u32> = problem.nodes.iter().map(|slot| slot.gpus).collect();
        let mut has_part = vec![false; problem.nodes.len()];
        let mut cap_left: Vec<f64> = problem.caps.iter().map(|cap| f64::from(cap.limit)).collect();
        for (job, table) in problem.jobs.iter().enumerate() {
            if !state.is_movable(job) {
                program.fixed += state.held[job].worth;
                for &(node, count) in &state.held[job].at {
                    gpus[node as usize] -= count;
                    has_part[node as usize] |= state.held[job].at.len() > 1;
                }
                for &cap in hulls.caps(job, state.held[job].pool) {
                    cap_left[cap] -= f64::from(state.held[job].gpus);
                }
            } else if hulls.has_hope(job) {
                let row = program.row(1.0, true);
                let open = |&&(node, _): &&(usize, u32)| problem.nodes[node].open;
                let parts = table.keep.iter().flat_map(|keep| keep.at.iter()).filter(open);
                let links: Vec<(usize, usize)> = if with_links {
                    parts.map(|&(node, _)| (node, program.row(0.0, false))).collect()
                } else {
                    Vec::new()
                };
                program.jobs.push(JobRow { job, row, links: with_links.then_some(links) });
            }
        }
        program.add_pools();
        program.add_nodes(&gpus, &has_part);
        for (cap, left) in cap_left.into_iter().enumerate() {
            let row = program.row(left.max(0.0), false);
            program.caps.push((cap, left.max(0.0)));
            debug_assert_eq!(row, program.cap_row(cap));
        }
        for (class, n) in starved.into_iter().enumerate() {
            let n = n.saturating_sub(hulls.hopeless[class]);
            if n > 0 {
                let row = program.row(f64::from(n), true);
                program.starved[class] = Some((row, f64::from(n)));
                program.may_starve[class] = true;
            }
        }
        program
    }

    fn row(&mut self, b: f64, is_exact: bool) -> usize {
        self.b.push(b);
        self.is_exact.push(is_exact);
        self.b.len() - 1
    }

    fn n_rows(&self) -> usize {
        self.b.len()
    }

    fn cap_row(&self, cap: usize) -> usize {
        let (largest, first) = self.pools.last().copied().unwrap_or((0, 0));
        let nodes = self.kinds.len();
        first + 2 * largest as usize + nodes + cap
    }

    fn add_pools(&mut self) {
        for pool in 0..self.problem.n_pools {
            let open = self.problem.nodes.iter().filter(|slot| slot.open && slot.pool == pool);
            let largest = open.map(|slot| slot.gpus).max().unwrap_or(0);
            let first = self.n_rows();
            for _ in 0..2 * largest {
                self.row(0.0, false);
            }
            self.pools.push((largest, first));
        }
    }

    fn add_nodes(&mut self, gpus: &[u32], has_part: &[bool]) {
        let mut kept = vec![Vec::new(); gpus.len()];
        for job in &self.jobs {
            let Some(keep) = &self.problem.jobs[job.job].keep else { continue };
            for &(node, row) in job.links.iter().flatten() {
                let here = keep.at.iter().find(|&&(at, _)| at == node);
                let size = here.map_or(0, |&(_, gpus)| gpus);
                kept[node].push((size, keep.at.len() > 1, row));
            }
        }
        for (node, kept) in kept.into_iter().enumerate() {
            let slot = self.problem.nodes[node];
            if !slot.open || gpus[node] == 0 {
                continue;
            }
            let takes_part = !has_part[node] || !self.problem.avoid_interference;
            let alike = |kind: &NodeKind| {
                kind.kept.is_empty()
                    && (kind.pool, kind.gpus, kind.takes_part) == (slot.pool, gpus[node], takes_part)
            };
            let known = if kept.is_empty() { self.kinds.iter().position(alike) } else { None };
            let kind = known.unwrap_or_else(|| {
                let row = self.row(0.0, false);
                self.kinds.push(NodeKind {
                    pool: slot.pool,
                    gpus: gpus[node],
                    takes_part,
                    kept,
                    row,
                    n: 0.0,
                });
                self.kinds.len() - 1
            });
            self.kinds[kind].n += 1.0;
            self.b[self.kinds[kind].row] += 1.0;
            self.kind_of[node] = Some(kind);
        }
    }

    fn piece_row(&self, pool: usize, gpus: u32) -> usize {
        self.pools[pool].1 + gpus as usize - 1
    }

    fn part_row(&self, pool: usize, gpus: u32) -> usize {
        self.pools[pool].1 + self.pools[pool].0 as usize + gpus as usize - 1
    }

    /// Adds columns until none would change the prices' verdict; the least bound on the way.
    fn run(&self, state: &State<'_>, suffices: &dyn Fn(f64) -> bool) -> Sharp {
        let unit = self.hulls.spread_of_worth(self.may_starve).max(f64::MIN_POSITIVE);
        // What stands in until real columns do must be worse than any of them, but not by more than rounding bears.
        let dear = unit * (100.0 + 10.0 * self.jobs.len() as f64);
        let mut costs: Vec<f64> =
            self.is_exact.iter().map(|&exact| if exact { -dear } else { 0.0 }).collect();
        for row in &self.jobs {
            costs[row.row] += self.hulls.lowest_worth(row.job, self.may_starve);
        }
        let mut lp = Lp::new(&self.b, costs.into_iter().map(|cost| (1.0, cost)));
        self.add_present(&mut lp, state);
        let mut best = f64::INFINITY;
        let mut at = vec![0.0; self.n_rows()];
        for _ in 0..MOST_ROUNDS {
            lp.maximise();
            let prices: Vec<f64> = lp
                .prices()
                .iter()
                .zip(&self.is_exact)
                .map(|(&price, &exact)| if exact { price } else { price.max(0.0) })
                .collect();
            let reached: f64 = lp.prices().iter().zip(&self.b).map(|(price, b)| price * b).sum();
            let n_columns = lp.n_columns();
            let round = self.respond(&prices, &mut lp);
            if round < best {
                (best, at) = (round, prices);
            }
            let is_done = lp.n_columns() == n_columns || round - reached <= 1e-12 * reached.abs();
            if is_done || suffices(best + self.fixed) {
                break;
            }
        }
        self.sharp(best + self.fixed, &at, &mut lp)
    }

    /// The bound with all that its prices say.
    fn sharp(&self, bound: f64, prices: &[f64], lp: &mut Lp) -> Sharp {
        let costs = (0..self.pools.len()).map(|pool| {
            let slots = self.problem.nodes.iter().filter(|slot| slot.open && slot.pool == pool);
            let all: u32 = slots.map(|slot| slot.gpus).sum();
            let mut costs = self.cheapest_parts(prices, pool, all.min(MOST_COSTS) as usize).cost;
            for gpus in 1..=self.pools[pool].0 {
                let piece = prices[self.piece_row(pool, gpus)];
                costs[gpus as usize] = costs[gpus as usize].min(piece);
            }
            costs
        });
        let costs = costs.collect();
        let parts: Vec<Parts> =
            (0..self.pools.len()).map(|pool| self.cheapest_listed_parts(prices, pool)).collect();
        let mut nets = vec![f64::INFINITY; self.problem.jobs.len()];
        let mut nets_of_keeping = vec![None; self.problem.jobs.len()];
        for row in &self.jobs {
            nets[row.job] = self.buy(prices, &parts, row, lp);
            nets_of_keeping[row.job] = self.net_of_keeping(prices, row);
        }
        Sharp { bound, costs, nets, nets_of_keeping }
    }

    /// Columns for what the state has.
    fn add_present(&self, lp: &mut Lp, state: &State<'_>) {
        let mut fillings: Vec<Filling> = (0..self.problem.nodes.len())
            .map(|_| Filling { value: 0.0, pieces: Vec::new(), parts: Vec::new(), kept: Vec::new() })
            .collect();
        for row in &self.jobs {
            let held = &state.held[row.job];
            match (held.kind, &row.links) {
                (Kind::Nothing, _) if !self.may_starve[class(&self.problem.jobs[row.job])] => {}
                (Kind::Nothing, _) => self.add_nothing(lp, row),
                (Kind::Keep, Some(links)) => {
                    self.add_keep(lp, row);
                    for &(node, link) in links {
                        fillings[node].kept.push(link);
                    }
                }
                _ => {
                    let at: Vec<u32> = held
                        .at
                        .iter()
                        .filter(|&&(node, _)| self.problem.nodes[node as usize].open)
                        .map(|&(_, gpus)| gpus)
                        .collect();
                    for &(node, gpus) in &held.at {
                        if held.at.len() > 1 {
                            fillings[node as usize].parts.push(gpus);
                        } else {
                            fillings[node as usize].pieces.push(gpus);
                        }
                    }
                    self.add_place(lp, row, held.pool, held.gpus, &at, held.at.len() > 1, held.worth);
                }
            }
        }
        for (node, filling) in fillings.iter().enumerate() {
            if let Some(kind) = self.kind_of[node] {
                self.add_filling(lp, kind, filling);
            }
        }
    }

    fn add_nothing(&self, lp: &mut Lp, row: &JobRow) {
        let table = &self.problem.jobs[row.job];
        let mut entries = vec![(entry(row.row), 1.0)];
        if let Some((starved, _)) = self.starved[class(table)] {
            entries.push((entry(starved), 1.0));
        }
        lp.add(table.nothing.unwrap_or(0.0), entries);
    }

    fn add_keep(&self, lp: &mut Lp, row: &JobRow) {
        let Some(keep) = &self.problem.jobs[row.job].keep else { return };
        let mut entries = vec![(entry(row.row), 1.0)];
        entries.extend(row.links.iter().flatten().map(|&(_, link)| (entry(link), 1.0)));
        let gpus: u32 = keep.at.iter().map(|&(_, gpus)| gpus).sum();
        let pool = keep.at.first().map_or(0, |&(node, _)| self.problem.nodes[node].pool);
        self.push_caps(&mut entries, row.job, pool, gpus);
        lp.add(keep.worth, entries);
    }

    fn push_caps(&self, entries: &mut Vec<(u32, f64)>, job: usize, pool: usize, gpus: u32) {
        for &cap in self.hulls.caps(job, pool) {
            entries.push((entry(self.cap_row(cap)), f64::from(gpus)));
        }
    }

    #[expect(clippy::too_many_arguments, reason = "an option has that many sides")]
    fn add_place(
        &self,
        lp: &mut Lp,
        row: &JobRow,
        pool: usize,
        gpus: u32,
        at: &[u32],
        is_spread: bool,
        worth: f64,
    ) {
        let mut entries = vec![(entry(row.row), 1.0)];
        for &part in at {
            let piece = if is_spread { self.part_row(pool, part) } else { self.piece_row(pool, part) };
            match entries.iter_mut().find(|(other, _)| *other == entry(piece)) {
                Some((_, count)) => *count += 1.0,
                None => entries.push((entry(piece), 1.0)),
            }
        }
        self.push_caps(&mut entries, row.job, pool, gpus);
        lp.add(worth, entries);
    }

    fn add_filling(&self, lp: &mut Lp, kind: usize, filling: &Filling) {
        let kind = &self.kinds[kind];
        let mut entries = vec![(entry(kind.row), 1.0)];
        let pieces = filling.pieces.iter().map(|&piece| self.piece_row(kind.pool, piece));
        let parts = filling.parts.iter().map(|&part| self.part_row(kind.pool, part));
        for row in pieces.chain(parts).map(entry) {
            match entries.iter_mut().find(|(other, _)| *other == row) {
                Some((_, count)) => *count -= 1.0,
                None => entries.push((row, -1.0)),
            }
        }
        entries.extend(filling.kept.iter().map(|&link| (entry(link), -1.0)));
        lp.add(0.0, entries);
    }

    /// What everybody would do at these prices: adds that as columns, and returns the bound it proves.
    fn respond(&self, prices: &[f64], lp: &mut Lp) -> f64 {
        let mut bound = Sum::default();
        for (index, &(_, limit)) in self.caps.iter().enumerate() {
            bound.add(prices[self.cap_row(index)] * limit);
        }
        for (row, n) in self.starved.iter().flatten() {
            bound.add(prices[*row] * n);
        }
        let parts: Vec<Parts> =
            (0..self.pools.len()).map(|pool| self.cheapest_listed_parts(prices, pool)).collect();
        for row in &self.jobs {
            bound.add(self.buy(prices, &parts, row, lp));
        }
        for kind in 0..self.kinds.len() {
            let filling = self.fill(prices, kind);
            bound.add(self.kinds[kind].n * filling.value);
            if filling.value > prices[self.kinds[kind].row] + 1e-15 * filling.value.abs() {
                self.add_filling(lp, kind, &filling);
            }
        }
        bound.rounded_up()
    }

    fn cheapest_listed_parts(&self, prices: &[f64], pool: usize) -> Parts {
        let lists = self.problem.jobs.iter().filter_map(|table| table.options.get(pool));
        let longest = lists.map(|options| options.spread.len() + 1).max().unwrap_or(0);
        self.cheapest_parts(prices, pool, longest)
    }

    /// The cheapest ways to have up to `longest` GPUs of a pool in two parts or more.
    fn cheapest_parts(&self, prices: &[f64], pool: usize, longest: usize) -> Parts {
        let largest = self.pools[pool].0;
        let price = |part: usize| prices[self.part_row(pool, entry(part))];
        let mut cost = vec![f64::INFINITY; longest + 1];
        let mut first = vec![0_u32; longest + 1];
        for gpus in 2..=longest {
            for part in 1..=(largest as usize).min(gpus - 1) {
                let left = gpus - part;
                let alone = if left <= largest as usize { price(left) } else { f64::INFINITY };
                let sum = price(part) + alone.min(cost[left]);
                if sum < cost[gpus] {
                    cost[gpus] = sum;
                    first[gpus] = entry(part);
                }
            }
        }
        let single = (0..=largest as usize).map(|part| if part > 0 { price(part) } else { 0.0 }).collect();
        Parts { cost, first, single }
    }

    /// What a job is left with if it keeps what it holds and pays for it.
    fn net_of_keeping(&self, prices: &[f64], row: &JobRow) -> Option<f64> {
        let keep = self.problem.jobs[row.job].keep.as_ref()?;
        let pool = keep.at.first().map_or(0, |&(node, _)| self.problem.nodes[node].pool);
        let all: u32 = keep.at.iter().map(|&(_, gpus)| gpus).sum();
        let pays: f64 = if let Some(links) = &row.links {
            links.iter().map(|&(_, link)| prices[link]).sum()
        } else {
            let open = keep.at.iter().filter(|&&(node, _)| self.problem.nodes[node].open);
            let rows = open.map(|&(_, gpus)| match keep.at.len() {
                1 => self.piece_row(pool, gpus),
                _ => self.part_row(pool, gpus),
            });
            rows.map(|row| prices[row]).sum()
        };
        Some(keep.worth - pays - self.price_of_caps(prices, row.job, pool) * f64::from(all))
    }

    fn price_of_caps(&self, prices: &[f64], job: usize, pool: usize) -> f64 {
        self.hulls.caps(job, pool).iter().map(|&cap| prices[self.cap_row(cap)]).sum()
    }

    /// What a job gains at these prices; adds the option if it beats what the program knows.
    fn buy(&self, prices: &[f64], parts: &[Parts], row: &JobRow, lp: &mut Lp) -> f64 {
        enum Best {
            None,
            Nothing,
            Keep,
            Place { pool: usize, gpus: u32, is_spread: bool, worth: f64 },
        }
        let table = &self.problem.jobs[row.job];
        let (mut most, mut best) = (f64::NEG_INFINITY, Best::None);
        if self.may_starve[class(table)] {
            let price = self.starved[class(table)].map_or(0.0, |(starved, _)| prices[starved]);
            most = table.nothing.unwrap_or(f64::NEG_INFINITY) - price;
            best = Best::Nothing;
        }
        if let Some(net) = self.net_of_keeping(prices, row).filter(|net| *net > most) {
            (most, best) = (net, Best::Keep);
        }
        for (pool, options) in table.options.iter().enumerate() {
            let largest = self.pools[pool].0 as usize;
            let cap = self.price_of_caps(prices, row.job, pool);
            for (index, &worth) in options.one_node.iter().enumerate().take(largest) {
                let gpus = entry(index + 1);
                let net = worth - prices[self.piece_row(pool, gpus)] - cap * f64::from(gpus);
                if net > most {
                    (most, best) = (net, Best::Place { pool, gpus, is_spread: false, worth });
                }
            }
            for (index, &worth) in options.spread.iter().enumerate() {
                let gpus = entry(index + 2);
                let net = worth - parts[pool].cost[index + 2] - cap * f64::from(gpus);
                if net > most {
                    (most, best) = (net, Best::Place { pool, gpus, is_spread: true, worth });
                }
            }
        }
        if most > prices[row.row] + 1e-15 * most.abs() {
            match best {
                Best::None => {}
                Best::Nothing => self.add_nothing(lp, row),
                Best::Keep if row.links.is_some() => self.add_keep(lp, row),
                Best::Keep => {
                    if let Some(keep) = &table.keep {
                        let open = keep.at.iter().filter(|&&(node, _)| self.problem.nodes[node].open);
                        let at: Vec<u32> = open.map(|&(_, gpus)| gpus).collect();
                        let pool = keep.at.first().map_or(0, |&(node, _)| self.problem.nodes[node].pool);
                        let gpus = keep.at.iter().map(|&(_, gpus)| gpus).sum();
                        self.add_place(lp, row, pool, gpus, &at, keep.at.len() > 1, keep.worth);
                    }
                }
                Best::Place { pool, gpus, is_spread, worth } => {
                    let at = if is_spread { parts[pool].split(gpus) } else { vec![gpus] };
                    self.add_place(lp, row, pool, gpus, &at, is_spread, worth);
                }
            }
        }
        most
    }
}

/// A sum that knows how much of it may be rounding.
#[derive(Default)]
struct Sum {
    sum: f64,
    size: f64,
}

impl Sum {
    fn add(&mut self, term: f64) {
        self.sum += term;
        self.size += term.abs();
    }

    /// Not below the true sum.
    fn rounded_up(&self) -> f64 {
        self.sum + 1e-14 * self.size
    }
}

/// The cheapest ways to have GPUs in several parts.
struct Parts {
    cost: Vec<f64>,
    first: Vec<u32>,
    /// Price of one part.
    single: Vec<f64>,
}

impl Parts {
    fn split(&self, gpus: u32) -> Vec<u32> {
        let mut parts = Vec::new();
        let mut left = gpus as usize;
        loop {
            let part = self.first[left] as usize;
            parts.push(entry(part));
            left -= part;
            let alone = self.single.get(left).copied().unwrap_or(f64::INFINITY);
            if alone <= self.cost[left] {
                parts.push(entry(left));
                return parts;
            }
        }
    }
}

fn entry(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
