//! Job by job, the ways to use the rows that may still lead to the best choice.
//!
//! At prices `π` a choice costs at least `bound + Σ d + π · idle`, where `d ≥ 0` is what each column costs at those prices above
//! its job's cheapest, and `idle` is what is left of the rows. Wherever that is no better than the best known, a state is
//! left out. Of states that use the same of every row the cheapest stays.

use super::program::{Program, TOLERANCE};
use crate::plan::Stopped;

/// A program as the search sees it: only columns that can be part of a best choice; waiting is one of them.
pub(super) struct Ground {
    pub(super) jobs: Vec<Vec<Use>>,
    pub(super) waiting: f64,
    pub(super) room: Vec<u32>,
}

/// A column with an entry for every row.
pub(super) struct Use {
    pub(super) cost: f64,
    pub(super) uses: Vec<u32>,
    /// Its place in the program; none for waiting.
    column: Option<usize>,
}

impl Ground {
    pub(super) fn new(program: &Program) -> Self {
        let n_rows = program.room.len();
        let jobs = program.jobs.iter().map(|columns| {
            let mut kept = vec![Use { cost: program.waiting, uses: vec![0; n_rows], column: None }];
            for (index, column) in columns.iter().enumerate() {
                let mut uses = vec![0; n_rows];
                for &(row, amount) in &column.uses {
                    uses[row] = amount;
                }
                let fits = uses.iter().zip(&program.room).all(|(used, room)| used <= room);
                // Waiting is worse than running for as much.
                if fits && column.cost <= program.waiting {
                    kept.push(Use { cost: column.cost, uses, column: Some(index) });
                }
            }
            undominated(kept)
        });
        Self { jobs: jobs.collect(), waiting: program.waiting, room: program.room.clone() }
    }

    /// The column that costs least at these prices, the first of equals.
    pub(super) fn cheapest(job: &[Use], prices: &[f64]) -> usize {
        let mut best = (0, f64::INFINITY);
        for (index, column) in job.iter().enumerate() {
            let cost = column.at(prices);
            if cost < best.1 {
                best = (index, cost);
            }
        }
        best.0
    }
}

impl Use {
    /// Its cost at these prices.
    fn at(&self, prices: &[f64]) -> f64 {
        self.cost + self.uses.iter().zip(prices).map(|(used, price)| f64::from(*used) * price).sum::<f64>()
    }
}

/// Leaves out columns for which another takes no more of any row and costs no more.
fn undominated(columns: Vec<Use>) -> Vec<Use> {
    let is_worse = |index: usize| {
        let column = &columns[index];
        columns.iter().enumerate().any(|(at, other)| {
            let takes_less = other.uses.iter().zip(&column.uses).all(|(other, own)| other <= own);
            let is_same =
                takes_less && other.uses == column.uses && other.cost.total_cmp(&column.cost).is_eq();
            // Of equals the last stays: waiting is the first.
            at != index && takes_less && other.cost <= column.cost && (!is_same || at > index)
        })
    };
    let worse: Vec<bool> = (0..columns.len()).map(is_worse).collect();
    columns.into_iter().zip(worse).filter_map(|(column, is_worse)| (!is_worse).then_some(column)).collect()
}

/// The search at certain prices.
pub(super) struct Layers<'a> {
    ground: &'a Ground,
    prices: &'a [f64],
    /// Cost of each job's columns at these prices above its cheapest.
    above: Vec<Vec<f64>>,
    bound: f64,
}

/// What a pass found.
pub(super) struct Passed {
    /// A choice that is better than the one known, and what it costs.
    pub(super) best: Option<(f64, Vec<Option<usize>>)>,
    /// No choice costs less than this, or than the best known.
    pub(super) bound: f64,
}

/// The ways to serve the first jobs.
#[derive(Default)]
struct Layer {
    /// What each state uses of the rows, state after state.
    used: Vec<u32>,
    states: Vec<State>,
}

#[derive(Clone, Copy)]
struct State {
    cost: f64,
    /// Cost at the prices above the bound.
    above: f64,
    /// The same, with what is sure to be left of the rows.
    least: f64,
    parent: u32,
    choice: u32,
}

impl<'a> Layers<'a> {
    pub(super) fn new(ground: &'a Ground, prices: &'a [f64]) -> Self {
        let mut bound =
            -ground.room.iter().zip(prices).map(|(room, price)| f64::from(*room) * price).sum::<f64>();
        let above = ground.jobs.iter().map(|job| {
            let costs: Vec<f64> = job.iter().map(|column| column.at(prices)).collect();
            let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
            bound += least;
            costs.into_iter().map(|cost| cost - least).collect()
        });
        let above = above.collect();
        Self { ground, prices, above, bound }
    }

    /// No choice costs less, by the prices alone.
    pub(super) fn bound(&self) -> f64 {
        self.bound
    }

    /// Goes through all jobs with at most `width` states at a time, looking for what is better than `known`.
    pub(super) fn pass(
        &self,
        width: usize,
        known: Option<f64>,
        units: &mut u64,
        cut: &dyn Fn(u64) -> Option<Stopped>,
    ) -> Result<Passed, Stopped> {
        let n_rows = self.ground.room.len();
        let limit = known.map_or(f64::INFINITY, |known| known - self.bound - TOLERANCE);
        let order = self.order(limit);
        let most = self.most_used(&order, limit);
        let mut dropped = limit;
        let first = State { cost: 0.0, above: 0.0, least: 0.0, parent: 0, choice: 0 };
        let mut layer = Layer { used: vec![0; n_rows], states: vec![first] };
        let mut trail: Vec<Vec<(u32, u32)>> = Vec::new();
        for (step, &job) in order.iter().enumerate() {
            if let Some(why) = cut(*units) {
                return Err(why);
            }
            let next = self.extend(&layer, job, &most[step + 1], limit, units);
            layer = self.thin(&next, width, &mut dropped);
            trail.push(layer.states.iter().map(|state| (state.parent, state.choice)).collect());
        }
        let ends = layer.states.iter().enumerate();
        let best = ends.min_by(|a, b| a.1.cost.total_cmp(&b.1.cost).then(a.0.cmp(&b.0)));
        let best = best.map(|(end, state)| (state.cost, self.trace(&order, &trail, end)));
        let found = best.as_ref().map_or(f64::INFINITY, |(cost, _)| *cost);
        let known = known.unwrap_or(f64::INFINITY);
        Ok(Passed {
            bound: (self.bound + dropped).min(found).min(known),
            best: best.filter(|(cost, _)| *cost < known),
        })
    }

    /// Jobs with one choice left come first: they split no state.
    fn order(&self, limit: f64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.above.len()).collect();
        let n_choices = |job: usize| self.above[job].iter().filter(|&&above| above < limit).count();
        order.sort_by_key(|&job| (n_choices(job), job));
        order
    }

    /// What the jobs from each place of the order on can use of each row at most.
    fn most_used(&self, order: &[usize], limit: f64) -> Vec<Vec<u32>> {
        let mut most = vec![vec![0_u32; self.ground.room.len()]; order.len() + 1];
        for (step, &job) in order.iter().enumerate().rev() {
            let columns = self.ground.jobs[job].iter().zip(&self.above[job]);
            let within: Vec<&Use> =
                columns.filter(|(_, above)| **above < limit).map(|(column, _)| column).collect();
            for row in 0..self.ground.room.len() {
                let own = within.iter().map(|column| column.uses[row]).max().unwrap_or(0);
                most[step][row] = most[step + 1][row].saturating_add(own);
            }
        }
        most
    }

    /// Every state with every choice of a job that fits and may still lead to something better.
    fn extend(&self, layer: &Layer, job: usize, most: &[u32], limit: f64, units: &mut u64) -> Layer {
        let room = &self.ground.room;
        let mut next = Layer::default();
        let mut used = vec![0_u32; room.len()];
        for (parent, state) in layer.states.iter().enumerate() {
            let before = &layer.used[parent * room.len()..][..room.len()];
            for (choice, column) in self.ground.jobs[job].iter().enumerate() {
                *units += 1;
                let above = state.above + self.above[job][choice];
                let fits = above < limit
                    && before.iter().zip(&column.uses).zip(room).all(|((a, b), room)| a + b <= *room);
                if !fits {
                    continue;
                }
                let mut least = above;
                for row in 0..room.len() {
                    used[row] = before[row] + column.uses[row];
                    let idle = (room[row] - used[row]).saturating_sub(most[row]);
                    least += self.prices[row] * f64::from(idle);
                }
                if least < limit {
                    next.used.extend_from_slice(&used);
                    let (parent, choice) = (index(parent), index(choice));
                    next.states.push(State { cost: state.cost + column.cost, above, least, parent, choice });
                }
            }
        }
        next
    }

    /// The cheapest of states that use the same, and of those the most promising.
    fn thin(&self, layer: &Layer, width: usize, dropped: &mut f64) -> Layer {
        let n_rows = self.ground.room.len();
        let used = |at: u32| &layer.used[at as usize * n_rows..][..n_rows];
        let state = |at: u32| &layer.states[at as usize];
        let mut kept: Vec<u32> = (0..index(layer.states.len())).collect();
        kept.sort_by(|&a, &b| used(a).cmp(used(b)).then(state(a).cost.total_cmp(&state(b).cost)));
        kept.dedup_by(|later, first| used(*later) == used(*first));
        if kept.len() > width {
            // Stable: of equals those that use less.
            kept.sort_by(|&a, &b| state(a).least.total_cmp(&state(b).least));
            *dropped = dropped.min(state(kept[width]).least);
            kept.truncate(width);
        }
        let states = kept.iter().map(|&at| *state(at)).collect();
        Layer { used: kept.iter().flat_map(|&at| used(at)).copied().collect(), states }
    }

    /// The choices that led to a state of the last layer.
    fn trace(&self, order: &[usize], trail: &[Vec<(u32, u32)>], end: usize) -> Vec<Option<usize>> {
        let mut columns = vec![None; order.len()];
        let mut at = end;
        for (step, &job) in order.iter().enumerate().rev() {
            let (parent, choice) = trail[step][at];
            columns[job] = self.ground.jobs[job][choice as usize].column;
            at = parent as usize;
        }
        columns
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
