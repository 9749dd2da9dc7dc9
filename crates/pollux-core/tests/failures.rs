//! Failures, retries, and what a restart costs.

mod common;

use std::time::Duration;

use common::{World, adapting, eager, minutely};
use pollux_core::{Input, JobSpec, Outcome, Phase};
use pollux_model::JobId;

/// Job 1 runs again on node 0, after a round.
fn restart(world: &mut World) {
    world.round(&[(1, &[(0, 2)])]);
    world.train(1);
}

fn one_running(retries: u32) -> World {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, JobSpec { retries, ..adapting() });
    restart(&mut world);
    world.report(1, 1.0);
    world
}

/// Seconds for which plans leave job 1 out after it fails now.
fn back_off(world: &mut World) -> u64 {
    let failed = world.secs;
    world.fail(1);
    loop {
        world.secs += 1;
        world.tell(pollux_core::Input::Tick);
        if world.asked.is_some() {
            let waits = world.shown(1).is_none();
            world.answer(common::plan(&[]));
            if !waits {
                return world.secs - failed;
            }
        }
    }
}

#[test]
fn a_job_that_fails_waits_and_is_tried_again() {
    let mut world = one_running(3);
    world.fail(1);
    world.check_phase(1, Phase::Waiting);
    assert_eq!(world.job(1).failures, 1);
    restart(&mut world);
    world.check_said(&["start 1.1 on 0:2", "start 1.2 on 0:2"]);
    world.check_phase(1, Phase::Running);
}

#[test] // An eager scheduler asks as soon as the wait is over: after 10, 20 and 40 s.
fn each_wait_is_twice_the_one_before() {
    let mut world = World::with_running(eager(), &[4], &[(1, &[(0, 2)])]);
    for expected in [10, 20, 40] {
        assert_eq!(back_off(&mut world), expected);
        world.secs += 1;
        world.submit(100 + world.secs, adapting());
        world.answer(common::plan(&[(1, &[(0, 2)])]));
        world.train(1);
    }
}

#[test] // Nobody needs to be woken for a round that is to come anyway.
fn who_is_asked_once_a_minute_waits_for_the_minute() {
    let mut world = one_running(3);
    world.secs = 70;
    assert_eq!(back_off(&mut world), 50);
    assert!(world.wakes.iter().all(|at| at % 60 == 0), "{:?}", world.wakes);
}

#[test]
fn a_job_that_fails_too_often_is_given_up() {
    let mut world = one_running(2);
    for _ in 0..2 {
        world.fail(1);
        world.check_phase(1, Phase::Waiting);
        restart(&mut world);
    }
    world.fail(1);
    world.check_phase(1, Phase::Ended(Outcome::Failed));
}

#[test]
fn progress_forgives_failures() {
    let mut world = one_running(1);
    for progress in [2.0, 3.0, 4.0] {
        world.fail(1);
        assert_eq!(world.job(1).failures, 1);
        restart(&mut world);
        world.report(1, progress);
        assert_eq!(world.job(1).failures, 0);
    }
    world.fail(1);
    restart(&mut world);
    world.report(1, 4.0);
    assert_eq!(world.job(1).failures, 1, "it is no further than when it failed");
    world.fail(1);
    world.check_phase(1, Phase::Ended(Outcome::Failed));
}

#[test]
fn without_retries_the_first_failure_is_the_last() {
    let mut world = one_running(0);
    world.fail(1);
    world.check_phase(1, Phase::Ended(Outcome::Failed));
}

#[test]
fn what_no_further_try_would_mend_is_not_tried_again() {
    let mut world = one_running(3);
    world.tell(Input::JobGivenUp(JobId(1), world.generation(1)));
    world.check_phase(1, Phase::Ended(Outcome::Failed));
}

#[test]
fn a_job_that_dies_when_asked_to_leave_has_left_and_failed() {
    let mut world = World::with_running(minutely(), &[2, 2], &[(1, &[(0, 2)])]);
    world.round(&[(1, &[(1, 2)])]);
    world.fail(1);
    world.check_said(&["stop 1.1", "start 1.2 on 1:2"]);
    assert_eq!(world.job(1).failures, 1);
}

/// Job 1 is moved to and fro, crashes each time it should save, and reports so much progress after each start. Says
/// how often it was asked to leave before it was given up, at most nine times.
fn times_moved(progress: impl Fn(u32) -> f64) -> u32 {
    let mut world = World::with_running(minutely(), &[2, 2], &[(1, &[(0, 2)])]);
    for n_moves in 1..10 {
        world.round(&[(1, &[(n_moves % 2, 2)])]);
        world.fail(1);
        if world.job(1).phase == Phase::Ended(Outcome::Failed) {
            return n_moves;
        }
        world.train(1);
        world.report(1, progress(n_moves));
    }
    9
}

#[test] // Three retries; in the last case it comes a little less far each time, then further than the time before.
fn a_job_that_crashes_whenever_it_is_to_leave_is_given_up() {
    assert_eq!(times_moved(|_| 0.5), 4);
    assert_eq!(times_moved(|_| 1.0), 4);
    assert_eq!(times_moved(|n_moves| [0.0, 0.9, 0.8, 0.85][n_moves as usize]), 4);
}

#[test]
fn a_job_that_crashes_when_it_is_to_leave_but_saves_meanwhile_is_kept() {
    assert_eq!(times_moved(|n_moves| 1.0 + f64::from(n_moves)), 9);
}

#[test]
fn a_job_that_was_cancelled_and_crashes_is_cancelled() {
    let mut world = one_running(0);
    world.cancel(1);
    world.fail(1);
    world.check_phase(1, Phase::Ended(Outcome::Cancelled));
}

/// Starts of job 1 fail before it trains, until it is given up: how many there were.
fn starts_that_fail(spec: JobSpec) -> u32 {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, spec);
    for n_starts in 1..10 {
        // Rounds come and go while it waits.
        while world.job(1).phase == Phase::Waiting {
            world.round(&[(1, &[(0, 2)])]);
        }
        world.fail(1);
        if world.job(1).phase == Phase::Ended(Outcome::Failed) {
            return n_starts;
        }
    }
    9
}

#[test] // It never trained, so there is nothing that a second start could destroy.
fn a_first_start_that_fails_is_tried_again() {
    assert_eq!(starts_that_fail(adapting()), 4);
    assert_eq!(starts_that_fail(JobSpec { retries: 1, ..common::asking(2) }), 2);
    assert_eq!(starts_that_fail(JobSpec { retries: 0, ..adapting() }), 1);
}

#[test] // 20 s to start; then 10 s to stop and 40 s to start: 50 s, and 35 s on average.
fn what_a_restart_costs_is_measured_for_each_job() {
    let mut world = World::of(minutely(), &[2, 2]);
    world.submit(1, adapting());
    world.submit(2, adapting());
    world.ask();
    let cost = |world: &World, job| world.shown(job).unwrap().restart_cost;
    assert_eq!(cost(&world, 1), Duration::from_secs(30), "nothing was measured yet");
    world.answer(common::plan(&[(1, &[(0, 2)])]));
    world.secs = 20;
    world.train(1);
    world.report(1, 1.0);
    world.ask();
    assert_eq!(cost(&world, 1), Duration::from_secs(20));
    assert_eq!(cost(&world, 2), Duration::from_secs(30));
    world.answer(common::plan(&[(1, &[(1, 2)])]));
    world.secs = 70;
    world.stopped(1);
    world.secs = 110;
    world.train(1);
    world.ask();
    assert_eq!(cost(&world, 1), Duration::from_secs(35));
    assert_eq!(world.shown(1).unwrap().restarts, 1);
    assert_eq!(world.job(1).restart_cost, Some(Duration::from_secs(35)));
}
