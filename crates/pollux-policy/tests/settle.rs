//! Nobody moves between nodes that are alike where the same could be had in place.
#![allow(clippy::print_stderr, reason = "the test says what it measured")]

mod common;

use common::Dice;
use common::random_problem::{Size, draw};
use pollux_policy::problem::{Choice, Problem};
use pollux_policy::solve::solve;
use pollux_policy::{Effort, Terms};

const N_PROBLEMS: u64 = 2_000;

/// Few enough nodes to try every way to exchange their contents.
const SIZE: Size = Size { nodes: (2, 5), gpus: (1, 4), jobs: (2, 7) };

/// Jobs that stay.
fn n_kept(choices: &[Choice]) -> usize {
    choices.iter().filter(|choice| **choice == Choice::Keep).count()
}

/// Every order of the nodes that puts each in the place of one of its like; closed nodes stay what they are.
fn orders(problem: &Problem) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    for (node, slot) in problem.nodes.iter().enumerate() {
        let like = |other: &usize| {
            if slot.open { problem.nodes[*other] == *slot } else { *other == node }
        };
        let places: Vec<usize> = (0..problem.nodes.len()).filter(like).collect();
        let longer = orders.iter().flat_map(|order| {
            let free = places.iter().filter(|place| !order.contains(*place));
            free.map(|&place| order.iter().copied().chain([place]).collect::<Vec<_>>())
        });
        orders = longer.collect();
    }
    orders
}

/// The same plan with the contents of node `n` on node `order[n]`.
fn exchanged(problem: &Problem, choices: &[Choice], order: &[usize]) -> Vec<Choice> {
    let exchange = |(table, choice): (&pollux_policy::problem::Table, &Choice)| {
        let held = table.keep.as_ref().map_or(&[][..], |keep| &keep.at);
        let at = match choice {
            Choice::Nothing => return Choice::Nothing,
            Choice::Keep => held,
            Choice::Place(at) => at,
        };
        let mut at: Vec<(usize, u32)> = at.iter().map(|&(node, gpus)| (order[node], gpus)).collect();
        at.sort_unstable();
        if at == held { Choice::Keep } else { Choice::Place(at) }
    };
    problem.jobs.iter().zip(choices).map(exchange).collect()
}

/// An exchange of like nodes after which more jobs stay and nothing is lost, if there is one.
fn better_exchange(problem: &Problem, choices: &[Choice]) -> Option<Vec<Choice>> {
    let now = problem.score(choices).expect("a plan");
    let (kept, least) = (n_kept(choices), now.sum - 1e-9 * now.sum.abs());
    let others = orders(problem).into_iter().map(|order| exchanged(problem, choices, &order));
    others
        .filter(|other| n_kept(other) > kept)
        .filter(|other| problem.score(other).is_ok_and(|score| score.sum >= least))
        .max_by_key(|other| n_kept(other))
}

/// The same problem where a restart costs nothing.
fn with_free_restarts(mut problem: Problem) -> Problem {
    for table in &mut problem.jobs {
        let Some(keep) = &mut table.keep else { continue };
        let gpus = keep.at.iter().map(|&(_, gpus)| gpus).sum();
        let options = &table.options[problem.nodes[keep.at[0].0].pool];
        let worth = options.worth(gpus, keep.at.len() > 1);
        keep.worth = if worth.is_finite() { worth } else { keep.worth };
    }
    problem
}

#[test]
fn no_exchange_of_like_nodes_keeps_more_jobs() {
    check(|problem| problem);
}

#[test]
fn no_exchange_keeps_more_jobs_though_restarts_are_free() {
    check(with_free_restarts);
}

fn check(edit: impl Fn(Problem) -> Problem) {
    let (mut warm, mut failed) = (0, 0);
    let mut smallest: Option<(usize, String)> = None;
    for seed in 0..N_PROBLEMS {
        let problem = edit(draw(&mut Dice(seed), &SIZE).problem);
        if problem.jobs.iter().all(|table| table.keep.is_none()) || orders(&problem).len() < 2 {
            continue;
        }
        warm += 1;
        let solution = solve(&problem, &Effort::DEFAULT, &Terms::seeded(seed));
        if let Some(better) = better_exchange(&problem, &solution.choices) {
            failed += 1;
            let size = problem.nodes.len() * 10 + problem.jobs.len();
            if smallest.as_ref().is_none_or(|(least, _)| size < *least) {
                let text = format!("{seed}: {problem:#?}\n{:?}\nbut better\n{better:?}", solution.choices);
                smallest = Some((size, text));
            }
        }
    }
    eprintln!("{failed} of {warm} warm plans move jobs for nothing");
    assert!(failed == 0, "{failed} of {warm}; the smallest is {}", smallest.unwrap_or_default().1);
}
