//! Jobs that are left alone for a while: minimum run times and budgets of moves.

mod common;

use std::time::Duration;

use common::{World, adapting, minutely, plan};
use pollux_core::{JobSpec, Stay, StayReason};
use pollux_model::Timestamp;
use pollux_policy::Freedom;

/// Job 1 starts on one GPU at 0 s, and has reported.
fn running(spec: JobSpec) -> World {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, spec);
    world.round(&[(1, &[(0, 1)])]);
    world.train(1);
    world.report(1, 1.0);
    world.forget();
    world
}

/// At the next round the job is shown to be free or not, and a plan that gives it so many GPUs is obeyed or not.
#[track_caller]
fn check_round(world: &mut World, gpus: u32, freedom: Freedom, said: &[&str]) {
    world.ask();
    assert_eq!(world.shown(1).unwrap().freedom, freedom, "at {} s", world.secs);
    world.answer(plan(&[(1, &[(0, gpus)])]));
    world.check_said(said);
}

/// The job leaves as it was asked to, and starts where it was sent.
fn go(world: &mut World) {
    world.stopped(1);
    world.train(1);
    world.forget();
}

/// The job stays until some second.
#[track_caller]
fn check_stay(world: &World, secs: u64, why: StayReason) {
    assert_eq!(world.job(1).stay, Some(Stay { until: Timestamp::from_secs(secs), why }));
}

#[test] // Two minutes after each start: at 0 s, and at 120 s.
fn a_job_is_left_alone_for_its_minimum_run_time() {
    let mut world = running(JobSpec { min_runtime: Duration::from_mins(2), ..adapting() });
    check_stay(&world, 120, StayReason::MinRuntime);
    check_round(&mut world, 2, Freedom::NonPreemptible, &[]);
    check_round(&mut world, 2, Freedom::Elastic, &["stop 1.1"]);
    go(&mut world);
    check_stay(&world, 240, StayReason::MinRuntime);
    check_round(&mut world, 3, Freedom::NonPreemptible, &[]);
    check_round(&mut world, 3, Freedom::Elastic, &["stop 1.2"]);
}

#[test] // Moved at 60 s and 120 s; the first of the two is an hour ago at 3660 s.
fn a_budget_of_moves_is_for_an_hour() {
    let mut world = running(JobSpec { max_resizes_per_hour: Some(2), ..adapting() });
    for (gpus, said) in [(2, "stop 1.1"), (3, "stop 1.2")] {
        assert_eq!(world.job(1).stay, None);
        check_round(&mut world, gpus, Freedom::Elastic, &[said]);
        go(&mut world);
    }
    check_stay(&world, 3_660, StayReason::ResizeBudget);
    for _ in 3..61 {
        check_round(&mut world, 4, Freedom::NonPreemptible, &[]);
    }
    check_round(&mut world, 4, Freedom::Elastic, &["stop 1.3"]);
    go(&mut world);
    check_stay(&world, 3_720, StayReason::ResizeBudget);
}

#[test]
fn a_budget_of_nothing_keeps_a_job_where_it_is() {
    let mut world = running(JobSpec { max_resizes_per_hour: Some(0), ..adapting() });
    let stay = world.job(1).stay.unwrap();
    assert_eq!((stay.until, stay.why), (Timestamp::from_micros(u64::MAX), StayReason::ResizeBudget));
    check_round(&mut world, 2, Freedom::NonPreemptible, &[]);
}

#[test]
fn a_job_that_holds_nothing_waits_for_no_time() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, JobSpec { min_runtime: Duration::from_hours(1), ..adapting() });
    assert_eq!(world.job(1).stay, None);
    check_round(&mut world, 1, Freedom::Elastic, &["start 1.1 on 0:1"]);
}

#[test]
fn its_user_may_pause_it_all_the_same_and_that_is_no_move() {
    let hour = Duration::from_hours(1);
    let mut world = running(JobSpec { min_runtime: hour, max_resizes_per_hour: Some(1), ..adapting() });
    world.suspend(1, true);
    world.check_said(&["stop 1.1"]);
    world.stopped(1);
    world.suspend(1, false);
    world.round(&[(1, &[(0, 1)])]);
    world.train(1);
    check_stay(&world, world.secs + 3_600, StayReason::MinRuntime);
}
