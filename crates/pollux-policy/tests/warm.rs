//! Rounds in which nothing happened: jobs stay where they are, whatever the seed.
#![allow(clippy::print_stderr, reason = "the tests say what they measured")]

mod common;

use std::time::Duration;

use common::Dice;
use common::random_snapshot::{Shape, draw};
use common::rounds::{allocations, holds, in_place, judge};
use pollux_policy::{AnyPolicy, Decision, Known, Pollux, Settings, Snapshot, Terms};

const N_SNAPSHOTS: u64 = 60;
const N_ROUNDS: u64 = 3;

/// Plans again and again with other seeds. Who holds something moves only if that pays.
fn check_rounds(shape: &Shape, settings: Settings) {
    let policy = Pollux { settings };
    let (mut n_rounds, mut n_moved) = (0, 0);
    for seed in 0..N_SNAPSHOTS {
        let mut snapshot = draw(&mut Dice(seed), shape);
        let mut plan = policy.plan(&snapshot, &Terms::seeded(seed));
        for round in 1..=N_ROUNDS {
            snapshot = in_place(&snapshot, &plan, Duration::from_mins(1));
            plan = policy.plan(&snapshot, &Terms::seeded(seed + 1_000 * round));
            n_rounds += 1;
            n_moved += usize::from(moves_pay(&snapshot, &settings, &plan, seed));
        }
    }
    eprintln!("jobs moved in {n_moved} of {n_rounds} rounds");
}

/// Whether anyone who holds something moves, or holds nothing from now on. Panics if that does not pay.
fn moves_pay(snapshot: &Snapshot<Known>, settings: &Settings, plan: &pollux_policy::Plan, seed: u64) -> bool {
    let moves = |(job, answer): (&pollux_policy::Job, &pollux_policy::JobPlan)| {
        !job.holds.is_empty() && answer.decision != Decision::Keep
    };
    if !snapshot.jobs().iter().zip(&plan.jobs).any(moves) {
        return false;
    }
    let before = judge(snapshot, settings, &holds(snapshot));
    let after = judge(snapshot, settings, &allocations(plan));
    let epsilon = settings.effort.epsilon;
    assert!(
        after.starved < before.starved
            || (after.starved == before.starved
                && after.value > before.value * (1.0 + epsilon) * (1.0 - 1e-12)),
        "{seed}: moved from {before:?} to {after:?}\n{snapshot:#?}\n{plan:#?}"
    );
    true
}

#[test]
fn nobody_moves_for_nothing_in_a_middling_cluster() {
    check_rounds(&Shape::MIDDLING, Settings::PAPER);
}

#[test]
fn nobody_moves_for_nothing_in_any_cluster() {
    check_rounds(&Shape::ANY, Settings::PAPER);
}

#[test]
fn nobody_moves_for_nothing_though_restarts_are_free() {
    let settings = Settings { restart_price: pollux_policy::RestartPrice::Free, ..Settings::PAPER };
    check_rounds(&Shape::MIDDLING, settings);
}
