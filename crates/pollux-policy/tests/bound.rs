//! The bound is a bound, and plans come close to it: against the exhaustive answer to thousands of small
//! problems.
#![allow(clippy::print_stderr, reason = "the tests say what they measured")]

mod common;

use std::sync::LazyLock;

use common::Dice;
use common::oracle::{Exact, exhaust};
use common::random_problem::{Drawn, Size, draw};
use pollux_policy::problem::{Choice, Problem, Score};
use pollux_policy::solve::{Solution, bound, solve};
use pollux_policy::{Effort, Starved, Terms};

const N_PROBLEMS: u64 = 4_000;

/// Sums are compared to this fraction of their size.
const ROUNDING: f64 = 1e-9;

/// A problem and its answers: the best there is, and ours.
struct Case {
    seed: u64,
    drawn: Drawn,
    exact: Exact,
    solution: Solution,
}

static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let case = |seed: u64| {
        let drawn = draw(&mut Dice(seed.wrapping_mul(0x51_7cc1)), &Size::SMALL);
        let exact = exact(&drawn.problem);
        let solution = solve(&drawn.problem, &Effort::DEFAULT, &Terms::seeded(seed));
        Case { seed, drawn, exact, solution }
    };
    (0..N_PROBLEMS).map(case).collect()
});

fn exact(problem: &Problem) -> Exact {
    exhaust(problem).expect("what is kept was held, so it fits")
}

/// How much of `sum` may be rounding.
fn rounding(sum: f64) -> f64 {
    ROUNDING * sum.abs().max(1.0)
}

#[test]
fn the_bound_is_never_below_the_optimum() {
    for Case { seed, drawn: Drawn { problem, .. }, exact, solution } in &*CASES {
        for (&starved, &sum) in &exact.best {
            let bound = bound(problem, starved);
            assert!(bound >= sum - rounding(sum), "{seed}: {bound} < {sum} with {starved:?} of {problem:#?}");
        }
        assert!(
            solution.starved_bound <= exact.starved,
            "{seed}: {:?}, yet {:?} can be had in {problem:#?}",
            solution.starved_bound,
            exact.starved
        );
        let best = exact.best.get(&solution.score.starved).copied();
        let best = best.unwrap_or_else(|| panic!("{seed}: {:?} cannot be had", solution.score.starved));
        assert!(
            solution.bound >= best - rounding(best),
            "{seed}: {} < {best} of {problem:#?}",
            solution.bound
        );
    }
}

/// How far plans are from the optimum.
#[derive(Default)]
struct Gaps {
    n: u32,
    sum: f64,
    /// The largest, and the seed of that problem.
    worst: (f64, u64),
    /// Seeds of the problems in which more jobs starve than must.
    starving_more: Vec<u64>,
    n_optimal: u32,
}

impl Gaps {
    /// The gap is that of the means; a plan that starves more than it must is worth nothing.
    fn add(&mut self, Case { seed, drawn, exact, solution }: &Case) {
        let starves_more = solution.score.starved > exact.starved;
        let gap = if starves_more {
            1.0
        } else if solution.score.sum >= exact.sum - rounding(exact.sum) {
            0.0
        } else {
            let (mean, best) = (drawn.mean(&solution.choices), drawn.mean(&exact.choices));
            if best > 0.0 { (1.0 - mean / best).max(0.0) } else { 0.0 }
        };
        self.n += 1;
        self.sum += gap;
        if gap > self.worst.0 && !starves_more {
            self.worst = (gap, *seed);
        }
        self.starving_more.extend(starves_more.then_some(*seed));
        self.n_optimal += u32::from(gap == 0.0);
    }

    fn mean(&self) -> f64 {
        self.sum / f64::from(self.n.max(1))
    }

    fn print(&self, name: &str) {
        eprintln!(
            "{name}: {} problems, mean gap {:.4} %, worst {:.2} % (seed {}), optimal {:.1} %, starving more {:?}",
            self.n,
            100.0 * self.mean(),
            100.0 * self.worst.0,
            self.worst.1,
            100.0 * f64::from(self.n_optimal) / f64::from(self.n.max(1)),
            self.starving_more
        );
    }
}

#[test]
fn plans_are_within_one_percent_of_the_optimum_on_average() {
    let (mut all, mut harmonic) = (Gaps::default(), Gaps::default());
    for case in &*CASES {
        let Case { seed, drawn, exact, solution } = case;
        let score = drawn.problem.score(&solution.choices);
        let score = score.unwrap_or_else(|violation| panic!("{seed}: {violation} in {:#?}", drawn.problem));
        assert_eq!(score.starved, solution.score.starved, "{seed}");
        assert!((score.sum - solution.score.sum).abs() <= rounding(score.sum), "{seed}");
        assert!(score.starved >= exact.starved, "{seed}: better than the best");
        let best = exact.best[&score.starved];
        assert!(score.sum <= best + rounding(best), "{seed}: {} is better than the best, {best}", score.sum);
        all.add(case);
        if (-1.0..0.0).contains(&drawn.utility.exponent()) {
            harmonic.add(case);
        }
    }
    all.print("all exponents");
    harmonic.print("harmonic means");
    assert!(harmonic.mean() <= 0.01, "mean gap {}", harmonic.mean());
    assert!(all.mean() <= 0.01, "mean gap {}", all.mean());
}

#[test]
fn one_more_gpu_never_lowers_the_bound() {
    let mut dice = Dice(3);
    for Case { seed, drawn: Drawn { problem, .. }, exact, .. } in &*CASES {
        let open: Vec<usize> = (0..problem.nodes.len()).filter(|&node| problem.nodes[node].open).collect();
        if open.is_empty() {
            continue;
        }
        let node = dice.one_of(&open);
        let mut larger = problem.clone();
        larger.nodes[node].gpus += 1;
        for &starved in exact.best.keys() {
            let (before, after) = (bound(problem, starved), bound(&larger, starved));
            assert!(
                // Prices of 1e9 times the sum leave that much rounding.
                after >= before || before - after <= 10.0 * rounding(before),
                "{seed}: {before} fell to {after} with {starved:?} and a GPU on node {node} of {problem:#?}"
            );
        }
        // The bound on starved jobs does not depend on how long one searches.
        let quick = Terms { work: Some(1), ..Terms::seeded(*seed) };
        let starved = |problem| -> Starved { solve(problem, &Effort::DEFAULT, &quick).starved_bound };
        let (before, after) = (starved(problem), starved(&larger));
        assert!(
            after <= before,
            "{seed}: {before:?} rose to {after:?} with a GPU on node {node} of {problem:#?}"
        );
    }
}

#[test]
fn the_exhaustive_search_agrees_with_trying_every_combination() {
    for seed in 0..300 {
        let Drawn { problem, .. } = draw(&mut Dice(seed), &Size::TINY);
        let exact = exact(&problem);
        let mut best = std::collections::BTreeMap::<Starved, f64>::new();
        each_combination(&problem, &mut Vec::new(), &mut |score| {
            let known = best.entry(score.starved).or_insert(f64::NEG_INFINITY);
            *known = known.max(score.sum);
        });
        assert_eq!(
            best.keys().collect::<Vec<_>>(),
            exact.best.keys().collect::<Vec<_>>(),
            "{seed}: {problem:#?}"
        );
        for (starved, sum) in &best {
            assert!((sum - exact.best[starved]).abs() <= rounding(*sum), "{seed}: {problem:#?}");
        }
    }
}

#[test]
fn the_problems_are_of_every_kind() {
    let mut n_with = [0_u32; 9];
    for Case { drawn: Drawn { problem, .. }, exact, .. } in &*CASES {
        let chosen = |which: &dyn Fn(&Choice) -> bool| exact.choices.iter().any(which);
        let uncapped = Problem { groups: vec![Vec::new(); problem.groups.len()], ..problem.clone() };
        let mixed = Problem { avoid_interference: false, ..problem.clone() };
        let is_better = |other: &Problem| {
            let other = self::exact(other);
            other.starved < exact.starved || other.sum > exact.sum + rounding(exact.sum)
        };
        let kinds = [
            exact.starved.total() > 0,
            exact.starved.total() == 0,
            chosen(&|choice| matches!(choice, Choice::Place(at) if at.len() > 1)),
            chosen(&|choice| matches!(choice, Choice::Place(at) if at.len() == 1)),
            exact
                .choices
                .iter()
                .zip(&problem.jobs)
                .any(|(choice, job)| *choice == Choice::Keep && job.nothing.is_some()),
            exact
                .choices
                .iter()
                .zip(&problem.jobs)
                .any(|(choice, job)| *choice != Choice::Keep && job.keep.is_some()),
            problem.jobs.iter().any(|job| job.nothing.is_none()),
            is_better(&uncapped),
            is_better(&mixed),
        ];
        for (n, is_kind) in n_with.iter_mut().zip(kinds) {
            *n += u32::from(is_kind);
        }
    }
    eprintln!(
        "starving, serving all, spreading, on one node, keeping, moving, pinned, capped, interfering: {n_with:?}"
    );
    assert!(n_with.iter().all(|n| *n >= 100), "{n_with:?}");
}

#[test]
fn what_the_exhaustive_search_chose_is_worth_what_it_says() {
    for Case { seed, drawn: Drawn { problem, .. }, exact, .. } in &*CASES {
        let score = problem.score(&exact.choices);
        let score = score.unwrap_or_else(|violation| panic!("{seed}: {violation} in {problem:#?}"));
        assert_eq!(score.starved, exact.starved, "{seed}");
        assert!((score.sum - exact.sum).abs() <= rounding(exact.sum), "{seed}: {problem:#?}");
    }
}

/// Scores every choice of every job, those that do not fit left out.
fn each_combination(problem: &Problem, choices: &mut Vec<Choice>, visit: &mut dyn FnMut(Score)) {
    if choices.len() == problem.jobs.len() {
        if let Ok(score) = problem.score(choices) {
            visit(score);
        }
        return;
    }
    let mut options = vec![Choice::Nothing, Choice::Keep];
    let n_counts: Vec<u32> = problem.nodes.iter().map(|slot| slot.gpus + 1).collect();
    let n_places: u32 = n_counts.iter().product();
    for place in 1..n_places {
        let mut digits = place;
        let mut at = Vec::new();
        for (node, n) in n_counts.iter().enumerate() {
            if digits % n > 0 {
                at.push((node, digits % n));
            }
            digits /= n;
        }
        options.push(Choice::Place(at));
    }
    for option in options {
        choices.push(option);
        each_combination(problem, choices, visit);
        choices.pop();
    }
}
