//! Prices, and the bound they prove.
//!
//! Put a price on every GPU, on every GPU under a cap, and on every starved job, let each job choose its best
//! option alone, and add what the prices would earn if everything were sold: no plan is worth more, whatever
//! the prices. The bound is the least over all prices, found by cutting planes.

use super::hull::Hulls;
use super::simplex::Master;
use crate::problem::{Problem, Table};
use crate::snapshot::Priority;

/// What a GPU of each pool, and a GPU under each cap, is worth; and what a starved job of each priority would be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadow {
    /// Per pool.
    pub(crate) pool: Vec<f64>,
    /// Per cap.
    pub(crate) cap: Vec<f64>,
    /// Per priority; minus infinity where no job of that priority needs to starve.
    pub(crate) starved: [f64; CLASSES],
}

/// A bound and the prices that prove it.
#[derive(Clone, Debug)]
pub(crate) struct Proof {
    pub(crate) bound: f64,
    pub(crate) shadow: Shadow,
}

/// What a price is on.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Coupling {
    Pool(usize),
    Cap(usize),
    Starved(usize),
}

/// The function of the prices whose least value is the bound.
pub(crate) struct Dual<'p> {
    problem: &'p Problem,
    hulls: &'p Hulls,
    couplings: Vec<Coupling>,
    /// GPUs of each pool, GPUs under each cap, starved jobs of each priority.
    supply: Vec<f64>,
    starving: [Starving; CLASSES],
}

/// What is asked of the jobs of one priority that could run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Starving {
    /// All of them run.
    Never,
    /// Exactly so many do not.
    Exactly(u32),
    /// As many do not as may be.
    Freely,
}

/// Classes of jobs, the last to starve last: one for each priority.
pub(crate) const CLASSES: usize = 3;

pub(crate) fn class(table: &Table) -> usize {
    match table.priority {
        Priority::Low => 0,
        Priority::Normal => 1,
        Priority::High => 2,
    }
}

impl<'p> Dual<'p> {
    /// For plans that starve exactly so many jobs of each class, those included that could run nowhere.
    pub(crate) fn at(problem: &'p Problem, hulls: &'p Hulls, starved: [u32; CLASSES]) -> Self {
        let mut starving = [Starving::Never; CLASSES];
        for (class, n) in starved.into_iter().enumerate() {
            match n.saturating_sub(hulls.hopeless[class]) {
                0 => {}
                n => starving[class] = Starving::Exactly(n),
            }
        }
        Self::new(problem, hulls, starving)
    }

    pub(crate) fn new(problem: &'p Problem, hulls: &'p Hulls, starving: [Starving; CLASSES]) -> Self {
        let mut couplings = Vec::new();
        let mut supply = Vec::new();
        for pool in 0..problem.n_pools {
            let open = problem.nodes.iter().filter(|slot| slot.pool == pool && slot.open);
            couplings.push(Coupling::Pool(pool));
            supply.push(open.map(|slot| f64::from(slot.gpus)).sum());
        }
        let forced = forced_under_caps(problem);
        for (index, cap) in problem.caps.iter().enumerate() {
            couplings.push(Coupling::Cap(index));
            supply.push(f64::from(cap.limit.max(forced[index])));
        }
        for (class, starving) in starving.iter().enumerate() {
            if let Starving::Exactly(n) = *starving {
                couplings.push(Coupling::Starved(class));
                supply.push(f64::from(n));
            }
        }
        Self { problem, hulls, couplings, supply, starving }
    }

    fn shadow(&self, at: &[f64]) -> Shadow {
        let mut shadow = Shadow {
            pool: vec![0.0; self.problem.n_pools],
            cap: vec![0.0; self.problem.caps.len()],
            starved: self
                .starving
                .map(|starving| if starving == Starving::Freely { 0.0 } else { f64::NEG_INFINITY }),
        };
        for (coupling, &price) in self.couplings.iter().zip(at) {
            match *coupling {
                Coupling::Pool(pool) => shadow.pool[pool] = price,
                Coupling::Cap(cap) => shadow.cap[cap] = price,
                Coupling::Starved(class) => shadow.starved[class] = -price,
            }
        }
        shadow
    }

    /// The value at these prices; fills in how it changes with each.
    fn value(&self, at: &[f64], slope: &mut [f64]) -> f64 {
        let shadow = self.shadow(at);
        let n_pools = self.problem.n_pools;
        let first_starved = n_pools + self.problem.caps.len();
        let mut value = 0.0;
        for ((supply, price), slope) in self.supply.iter().zip(at).zip(slope.iter_mut()) {
            value += supply * price;
            *slope = *supply;
        }
        let mut starved_at = [None; CLASSES];
        for (index, coupling) in self.couplings.iter().enumerate().skip(first_starved) {
            if let Coupling::Starved(class) = coupling {
                starved_at[*class] = Some(index);
            }
        }
        let priced = self.hulls.priced(&shadow);
        for job in 0..self.problem.jobs.len() {
            let choice = self.hulls.best(job, &priced, &shadow);
            value += choice.net;
            if choice.starves {
                if let Some(index) = starved_at[self.hulls.class(job)] {
                    slope[index] -= 1.0;
                }
            } else if choice.gpus + choice.capped > 0.0 {
                slope[choice.pool] -= choice.gpus;
                for &cap in self.hulls.caps(job, choice.pool) {
                    slope[n_pools + cap] -= choice.capped;
                }
            }
        }
        value
    }

    /// The least value over all prices, starting near `guess` (a price per pool).
    pub(crate) fn least(&self, guess: Option<&[f64]>) -> Proof {
        let n = self.couplings.len();
        let mut search = Search {
            dual: self,
            slope: vec![0.0; n],
            best: f64::INFINITY,
            at: vec![0.0; n],
            planes: Vec::new(),
        };
        if n == 0 {
            let bound = search.look(&[]);
            return Proof { bound, shadow: self.shadow(&[]) };
        }
        search.run(guess);
        Proof { bound: search.best, shadow: self.shadow(&search.at) }
    }
}

struct Search<'d, 'p> {
    dual: &'d Dual<'p>,
    slope: Vec<f64>,
    best: f64,
    at: Vec<f64>,
    /// Every look touches the function from below with a plane: its value at no prices, and its slopes.
    planes: Vec<(f64, Vec<f64>)>,
}

impl Search<'_, '_> {
    fn look(&mut self, at: &[f64]) -> f64 {
        let value = self.dual.value(at, &mut self.slope);
        if value < self.best {
            self.best = value;
            self.at.clear();
            self.at.extend_from_slice(at);
        }
        let along: f64 = self.slope.iter().zip(at).map(|(slope, price)| slope * price).sum();
        self.planes.push((value - along, self.slope.clone()));
        value
    }

    fn run(&mut self, guess: Option<&[f64]>) {
        let n = self.dual.couplings.len();
        let mut at = vec![0.0; n];
        if guess.is_none() {
            // Free GPUs cost nothing: often enough the end of it.
            self.look(&at);
            let is_starving =
                self.dual.couplings.iter().any(|coupling| matches!(coupling, Coupling::Starved(_)));
            if !is_starving && self.slope.iter().all(|slope| *slope >= 0.0) {
                return;
            }
        }
        let (low, high) = self.bracket(guess);
        let unit = if high > 0.0 { high } else { 1.0 };
        let hulls = self.dual.hulls;
        // No price need be above what a GPU can add, no starved job's above what it could make of all it can hold.
        let dear = 4.0 * hulls.steepest().max(unit) / unit;
        let wide = 4.0
            * hulls.spread_of_worth(self.dual.starving.map(|starving| starving != Starving::Never))
            / unit
            + dear * hulls.most_gpus();
        let mut low_wall = vec![0.0; n];
        let mut high_wall = vec![0.0; n];
        let mut outer = vec![0.0; n];
        for (k, coupling) in self.dual.couplings.iter().enumerate() {
            (low_wall[k], high_wall[k], outer[k]) = match coupling {
                Coupling::Pool(_) if n == 1 => (low / unit, 1.0, dear),
                Coupling::Pool(_) | Coupling::Cap(_) => (0.0, dear.min(4.0), dear),
                Coupling::Starved(_) => (-wide, wide, wide),
            };
        }
        let (offset, slope) = &self.planes[0];
        let mut master = Master::new(offset / unit, slope, &low_wall, &high_wall);
        let mut n_known = 1;
        for _ in 0..(80 + 60 * n) {
            for (offset, slope) in &self.planes[n_known..] {
                master.add(offset / unit, slope);
            }
            n_known = self.planes.len();
            let mut lowest = master.lowest();
            let is_least = |best: f64, value: f64| best - value * unit <= 1e-11 * best.abs().max(unit);
            while is_least(self.best, lowest.value) {
                // The least within the walls; if one of them holds it back, move it.
                let mut moved = false;
                for k in 0..n {
                    let width = high_wall[k] - low_wall[k];
                    if lowest.at[k] >= high_wall[k] - 1e-9 * width && high_wall[k] < outer[k] {
                        high_wall[k] = (high_wall[k] + 7.0 * width).min(outer[k]);
                        moved = true;
                    }
                    if lowest.at[k] <= low_wall[k] + 1e-9 * width && low_wall[k] > 0.0 {
                        low_wall[k] = (low_wall[k] - 7.0 * width).max(0.0);
                        moved = true;
                    }
                }
                if !moved {
                    return;
                }
                master.set_box(&low_wall, &high_wall);
                lowest = master.lowest();
            }
            for (at, x) in at.iter_mut().zip(&lowest.at) {
                *at = x * unit;
            }
            self.look(&at);
        }
    }

    /// One price for all pools below which they are asked too much of, and one above.
    fn bracket(&mut self, guess: Option<&[f64]>) -> (f64, f64) {
        let n = self.dual.couplings.len();
        let n_pools = self.dual.problem.n_pools;
        let most = self.dual.hulls.steepest().max(f64::MIN_POSITIVE);
        let near =
            guess.and_then(|guess| guess.iter().copied().filter(|&price| price > 0.0).reduce(f64::max));
        let mut price = near.unwrap_or_else(|| self.dual.hulls.typical()).clamp(most * 1e-12, most);
        let factor = if near.is_some() { 1.02 } else { 2.0 };
        let mut step = factor;
        let (mut low, mut high) = (0.0, f64::INFINITY);
        let mut at = vec![0.0; n];
        for _ in 0..200 {
            at[..n_pools].fill(price);
            self.look(&at);
            let excess: f64 = self.slope[..n_pools].iter().sum();
            if excess < 0.0 {
                low = price;
                if high.is_finite() || price >= 2.0 * most {
                    break;
                }
                price *= step;
            } else {
                high = price;
                if low > 0.0 || price <= most * 1e-12 {
                    break;
                }
                price /= step;
            }
            step *= factor;
        }
        (low, if high.is_finite() { high } else { low.max(most) * 2.0 })
    }
}

/// GPUs under each cap that jobs hold who cannot leave them.
fn forced_under_caps(problem: &Problem) -> Vec<u32> {
    let mut forced = vec![0; problem.caps.len()];
    for table in problem.jobs.iter().filter(|table| table.nothing.is_none()) {
        let (Some(group), Some(keep)) = (table.group, &table.keep) else { continue };
        for &(node, gpus) in &keep.at {
            for &cap in &problem.groups[group] {
                if problem.caps[cap].pool == problem.nodes[node].pool {
                    forced[cap] += gpus;
                }
            }
        }
    }
    forced
}
