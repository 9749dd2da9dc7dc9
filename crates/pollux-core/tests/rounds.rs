//! When plans are asked for, and with which seed.

mod common;

use std::time::Duration;

use common::{World, adapting, eager, minutely, plan};
use pollux_core::{Config, CycleId, Input, Refused};
use pollux_policy::{Cadence, Seed};

/// A round for what happens, ten seconds apart at least, and one a minute.
fn patient() -> Config {
    let cadence = Cadence { every: Duration::from_mins(1), on_events: Some(Duration::from_secs(10)) };
    Config { cadence, ..Config::default() }
}

/// A job that arrives at some second is planned for at another.
fn check_served(arrives: u64, served: u64) {
    let mut world = World::of(minutely(), &[4]);
    world.secs = arrives;
    world.submit(1, adapting());
    world.ask();
    assert_eq!(world.secs, served);
}

/// The seeds of the first three rounds.
fn seeds(seed: u64) -> Vec<Seed> {
    let mut world = World::of(Config { seed: Seed(seed), ..minutely() }, &[4]);
    world.submit(1, adapting());
    let mut seed_of_round = || {
        world.ask();
        let seed = world.asked.as_ref().unwrap().2;
        world.answer(plan(&[]));
        seed
    };
    (0..3).map(|_| seed_of_round()).collect()
}

#[test]
fn rounds_are_at_multiples_of_the_period() {
    check_served(0, 0);
    check_served(1, 60);
    check_served(60, 60);
    check_served(61, 120);
}

#[test]
fn each_round_asks_for_the_next() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, adapting());
    for minute in 0..5 {
        world.round(&[]);
        assert_eq!(world.secs, minute * 60);
    }
}

#[test]
fn a_job_that_comes_after_a_round_began_is_served_in_the_next() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, adapting());
    world.ask();
    world.submit(2, adapting());
    world.answer(plan(&[]));
    world.ask();
    assert_eq!(world.secs, 60);
    assert!(world.shown(2).is_some());
}

#[test]
fn ticks_that_nobody_asked_for_change_nothing() {
    let mut world = World::of(minutely(), &[4]);
    world.tell(Input::Tick);
    world.submit(1, adapting());
    world.round(&[]);
    world.secs = 30;
    world.tell(Input::Tick);
    assert!(world.asked.is_none());
}

#[test] // Ticks come half a second late, and events all the time.
fn a_busy_shell_still_begins_rounds() {
    let mut world = World::of(minutely(), &[4]);
    world.secs = 10;
    world.submit(1, adapting());
    assert_eq!(world.wakes, [60]);
    world.secs = 61;
    world.submit(2, adapting());
    world.tell(Input::Tick);
    assert!(world.asked.is_some());
    assert_eq!(world.wakes, [60, 120]);
}

#[test] // The plan takes 130 s: two rounds are left out, and the third is not forgotten.
fn a_slow_plan_does_not_end_the_rounds() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, adapting());
    world.ask();
    for minute in [60, 120] {
        assert!(world.wakes.contains(&minute));
        world.secs = minute;
        world.tell(Input::Tick);
    }
    world.secs = 130;
    world.answer(plan(&[]));
    world.ask();
    assert_eq!(world.secs, 180);
}

#[test]
fn nobody_is_woken_when_no_job_is_active() {
    let mut world = World::of(minutely(), &[4]);
    assert_eq!(world.wakes, [] as [u64; 0]);
    world.submit(1, adapting());
    world.round(&[]);
    world.cancel(1);
    assert_eq!(world.wakes, [60]);
    world.secs = 60;
    world.tell(Input::Tick);
    assert_eq!(world.wakes, [60]);
    // A job that comes in the very second is not put off.
    world.submit(2, adapting());
    world.ask();
    assert_eq!(world.secs, 60);
}

#[test]
fn nobody_is_planned_for_when_all_are_suspended() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, adapting());
    world.suspend(1, true);
    world.tell(Input::Tick);
    assert!(world.asked.is_none());
    world.secs = 1;
    world.suspend(1, false);
    world.ask();
    assert_eq!(world.secs, 60);
}

#[test]
fn an_eager_scheduler_asks_at_once() {
    let mut world = World::of(eager(), &[4]);
    world.secs = 7;
    world.submit(1, adapting());
    assert!(world.asked.is_some());
    world.answer(plan(&[(1, &[(0, 2)])]));
    assert!(world.asked.is_none(), "nothing happened since");
    world.secs = 8;
    world.finish(1);
    assert!(world.asked.is_none(), "nobody is left to plan for");
}

#[test]
fn an_eager_scheduler_asks_again_if_something_happened_meanwhile() {
    let mut world = World::of(eager(), &[4]);
    world.submit(1, adapting());
    world.submit(2, adapting());
    world.answer(plan(&[(1, &[(0, 2)])]));
    let (cycle, ..) = world.asked.as_ref().unwrap();
    assert_eq!(*cycle, CycleId(2));
    assert!(world.shown(2).is_some());
}

#[test]
fn an_eager_scheduler_wishes_for_each_minute_once() {
    let mut world = World::of(eager(), &[4]);
    for job in 1..10 {
        world.secs = job;
        world.submit(job, adapting());
        world.answer(plan(&[]));
    }
    assert_eq!(world.wakes, [60]);
    world.ask();
    assert_eq!(world.secs, 60);
}

#[test] // Ten jobs come within ten seconds: one plan for the first, one for all others.
fn what_happens_soon_after_a_plan_is_planned_for_together() {
    let mut world = World::of(patient(), &[4]);
    for job in 1..=10 {
        world.secs = 100 + job;
        world.submit(job, adapting());
        if world.asked.is_some() {
            assert_eq!(job, 1);
            world.answer(plan(&[]));
        }
    }
    world.ask();
    assert_eq!(world.secs, 111);
    assert!((1..=10).all(|job| world.shown(job).is_some()));
    world.answer(plan(&[]));
    world.ask();
    assert_eq!(world.secs, 120, "rounds at fixed times stay");
}

#[test]
fn what_happens_while_a_plan_is_made_waits_no_longer() {
    let mut world = World::of(patient(), &[4]);
    world.secs = 1;
    world.submit(1, adapting());
    world.secs = 3;
    world.submit(2, adapting());
    world.secs = 5;
    world.answer(plan(&[]));
    assert!(world.asked.is_none());
    world.ask();
    assert_eq!(world.secs, 11);
}

#[test]
fn who_goes_where_a_plan_sent_it_is_no_news() {
    let mut world = World::with_running(eager(), &[4], &[(1, &[(0, 2)])]);
    world.round(&[(1, &[(0, 4)])]);
    world.stopped(1);
    assert!(world.asked.is_none());
    world.check_holds(1, &[(0, 4)]);
}

#[test] // The shell dies while a plan is made; the next one is asked for the same jobs.
fn a_new_shell_is_asked_what_the_old_one_was() {
    let mut world = World::of(eager(), &[4]);
    world.secs = 30;
    world.submit(1, adapting());
    let (lost, ..) = world.asked.take().unwrap();
    world.wakes.clear();
    world.secs = 40;
    world.tell(Input::ShellRestarted);
    assert!(world.shown(1).is_some());
    assert_eq!(world.wakes, [60]);
    world.check_refused(Input::PlanReady(lost, plan(&[])), &Refused::UnknownCycle(lost));
    world.answer(plan(&[(1, &[(0, 2)])]));
    world.check_said(&["start 1.1 on 0:2"]);
}

#[test]
fn looking_ahead_changes_nothing() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, adapting());
    let before = format!("{:?}", world.scheduler);
    assert_eq!(world.scheduler.preview(world.now()).unwrap().jobs().len(), 1);
    assert_eq!(format!("{:?}", world.scheduler), before);
}

#[test]
fn a_plan_that_nobody_awaits_is_refused() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, adapting());
    world.ask();
    let late = |cycle| Input::PlanReady(CycleId(cycle), plan(&[(1, &[(0, 1)])]));
    world.check_refused(late(0), &Refused::UnknownCycle(CycleId(0)));
    world.check_refused(late(2), &Refused::UnknownCycle(CycleId(2)));
    world.tell(late(1));
    world.check_refused(late(1), &Refused::UnknownCycle(CycleId(1)));
}

#[test]
fn seeds_differ_by_round_and_repeat_by_run() {
    let [first, second] = [seeds(1), seeds(2)];
    assert_eq!(first, seeds(1));
    let all: std::collections::BTreeSet<u64> = first.iter().chain(&second).map(|seed| seed.0).collect();
    assert_eq!(all.len(), 6, "{first:?} {second:?}");
}

#[test]
fn a_clock_that_is_set_back_does_no_harm() {
    let mut world = World::of(minutely(), &[4]);
    world.secs = 100;
    world.submit(1, adapting());
    world.secs = 50;
    world.submit(2, adapting());
    world.secs = 120;
    world.tell(Input::Tick);
    assert_eq!(world.shown(2).unwrap().age, Duration::from_secs(20));
}

#[test]
fn the_period_is_the_policys() {
    let cadence = Cadence { every: Duration::from_secs(7), on_events: None };
    let mut world = World::of(Config { cadence, ..minutely() }, &[4]);
    world.secs = 8;
    world.submit(1, adapting());
    world.round(&[]);
    assert_eq!(world.secs, 14);
    world.round(&[]);
    assert_eq!(world.secs, 21);
}
