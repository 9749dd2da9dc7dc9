//! A choice for each job under a few shared limits, to optimality: Sia's binary program.

use crate::plan::{Stopped, Work};
use crate::policy::Terms;
use crate::solve::simplex::Master;

use super::layers::{Ground, Layers};

/// `min Σ cost`, one column or none for each job, and in each row no more than there is room for.
///
/// A multiple-choice knapsack with a row for each GPU type, and some more where caps or broken nodes ask for them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// What each job can choose from.
    pub jobs: Vec<Vec<Column>>,
    /// What a job costs that gets nothing.
    pub waiting: f64,
    /// How much there is of each row.
    pub room: Vec<u32>,
}

/// What a job can choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its part of the objective; at least 0.
    pub cost: f64,
    /// How much it takes of which rows, each row at most once.
    pub uses: Vec<(usize, u32)>,
}

/// The best choice found, and what proves how good it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// The column of each job, or nothing.
    pub columns: Vec<Option<usize>>,
    /// The objective.
    pub cost: f64,
    /// No choice costs less, but for rounding ([`TOLERANCE`]).
    pub bound: f64,
    /// What it took; a unit is one column tried in one state.
    pub work: Work,
}

/// Costs closer than this are taken for equal.
pub const TOLERANCE: f64 = 1e-9;

/// States that are kept at a time, from pass to pass.
const WIDTHS: [usize; 4] = [32, 1_024, 8_192, 65_536];

/// Units of work for a plan; a minute's round of 64 GPUs takes some thousands.
const BUDGET: u64 = 20_000_000;

/// Cuts at most in the search for prices.
const MOST_CUTS: usize = 500;

impl Program {
    /// What choices cost, and whether there is room for them.
    pub fn judge(&self, columns: &[Option<usize>]) -> Option<f64> {
        let (mut cost, mut left) = (0.0, self.room.clone());
        for (job, column) in self.jobs.iter().zip(columns) {
            let Some(column) = column else {
                cost += self.waiting;
                continue;
            };
            let column = job.get(*column)?;
            cost += column.cost;
            for &(row, amount) in &column.uses {
                left[row] = left[row].checked_sub(amount)?;
            }
        }
        Some(cost)
    }

    /// Solves it: prices of the rows give a bound, and layer after layer of jobs the choices that may still beat the best are
    /// kept. What is dropped for want of space is remembered in the bound.
    pub fn solve(&self, terms: &Terms<'_>) -> Chosen {
        let ground = Ground::new(self);
        let prices = best_prices(&ground);
        let layers = Layers::new(&ground, &prices);
        let budget = terms.work.unwrap_or(BUDGET);
        let mut best: Option<(f64, Vec<Option<usize>>)> = None;
        let (mut bound, mut units, mut stopped) = (layers.bound(), 0, Stopped::Budget);
        for (pass, width) in WIDTHS.into_iter().enumerate() {
            let known = best.as_ref().map(|(cost, _)| *cost);
            // The first pass always ends, so that there is something to carry out.
            let cut = |units: u64| match pass {
                0 => None,
                _ if units >= budget => Some(Stopped::Budget),
                _ => terms.is_late().then_some(Stopped::Deadline),
            };
            match layers.pass(width, known, &mut units, &cut) {
                Ok(passed) => {
                    best = passed.best.or(best);
                    bound = passed.bound.max(bound);
                }
                Err(why) => {
                    stopped = why;
                    break;
                }
            }
            if best.as_ref().is_some_and(|(cost, _)| bound >= cost - TOLERANCE) {
                stopped = Stopped::Done;
                break;
            }
        }
        let nothing = || (self.waiting * self.jobs.len() as f64, vec![None; self.jobs.len()]);
        let (cost, columns) = best.unwrap_or_else(nothing);
        Chosen {
            columns,
            cost,
            bound: bound.min(cost),
            work: Work { units, budget: budget.max(units), stopped },
        }
    }
}

/// The prices of the rows at which the bound is highest, by cutting planes.
fn best_prices(ground: &Ground) -> Vec<f64> {
    let n_rows = ground.room.len();
    if n_rows == 0 {
        return Vec::new();
    }
    let (low, high) = (vec![0.0; n_rows], vec![ground.waiting; n_rows]);
    // The bound falls away from the best prices: seen from below, a valley of planes.
    let plane = |prices: &[f64]| {
        let (mut cost, mut slope) =
            (0.0, ground.room.iter().map(|&room| f64::from(room)).collect::<Vec<_>>());
        for job in &ground.jobs {
            let column = &job[Ground::cheapest(job, prices)];
            cost += column.cost;
            for (part, used) in slope.iter_mut().zip(&column.uses) {
                *part -= f64::from(*used);
            }
        }
        (-cost, slope)
    };
    let value = |(offset, slope): &(f64, Vec<f64>), at: &[f64]| {
        offset + slope.iter().zip(at).map(|(slope, price)| slope * price).sum::<f64>()
    };
    let mut at = low.clone();
    let first = plane(&at);
    let mut best = (value(&first, &at), at.clone());
    let mut master = Master::new(first.0, &first.1, &low, &high);
    for _ in 0..MOST_CUTS {
        let lowest = master.lowest();
        at = lowest.at;
        let cut = plane(&at);
        let here = value(&cut, &at);
        if here < best.0 {
            best = (here, at);
        }
        if best.0 <= lowest.value + 1e-12 * (1.0 + lowest.value.abs()) {
            break;
        }
        master.add(cut.0, &cut.1);
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(cost: f64, uses: &[(usize, u32)]) -> Column {
        Column { cost, uses: uses.to_vec() }
    }

    fn check(program: &Program, cost: f64, columns: &[Option<usize>]) {
        let chosen = program.solve(&Terms::default());
        assert!((chosen.cost - cost).abs() < 1e-9 && chosen.bound >= chosen.cost - 1e-9, "{chosen:?}");
        assert_eq!(chosen.columns, columns);
        assert_eq!(chosen.work.stopped, Stopped::Done);
        assert!(program.judge(&chosen.columns).is_some_and(|judged| (judged - cost).abs() < 1e-9));
    }

    #[test] // Two on three GPUs each cost 0.2, yet one on two and the other on two cost 0.9.
    fn the_best_is_not_the_greediest() {
        let job = || vec![column(0.45, &[(0, 2)]), column(0.1, &[(0, 3)])];
        check(&Program { jobs: vec![job(), job()], waiting: 1.0, room: vec![4] }, 0.9, &[Some(0), Some(0)]);
        check(&Program { jobs: vec![job(), job()], waiting: 1.0, room: vec![6] }, 0.2, &[Some(1), Some(1)]);
        check(&Program { jobs: vec![job()], waiting: 1.0, room: vec![1] }, 1.0, &[None]);
        check(&Program::default(), 0.0, &[]);
    }

    #[test]
    fn who_is_dearer_than_waiting_waits() {
        let jobs = vec![vec![column(1.2, &[(0, 1)])], vec![column(0.9, &[(0, 1)])]];
        check(&Program { jobs, waiting: 1.1, room: vec![2] }, 2.0, &[None, Some(0)]);
    }

    #[test]
    fn the_first_pass_is_made_on_any_budget() {
        let job = || vec![column(0.5, &[(0, 1)])];
        let program = Program { jobs: vec![job(); 9], waiting: 1.0, room: vec![9] };
        let chosen = program.solve(&Terms { work: Some(0), ..Terms::default() });
        assert!((chosen.cost - 4.5).abs() < 1e-9, "{chosen:?}");
    }
}
