//! A job that never reports cannot come back from a restart, so nobody causes one.

mod common;

use common::{World, adapting, asking, minutely};
use pollux_core::{Input, JobEdit, JobSpec, Outcome, Phase, Refused};
use pollux_model::JobId;
use pollux_policy::Freedom;

/// A job that never reported runs on two GPUs of node 0.
fn one_running(spec: JobSpec) -> World {
    let mut world = World::of(minutely(), &[4, 4]);
    world.submit(1, spec);
    world.round(&[(1, &[(0, 2)])]);
    world.check_said(&["start 1.1 on 0:2"]);
    world.train(1);
    world
}

/// Plans of all kinds come, and it stays.
fn check_stays(spec: JobSpec) {
    let mut world = one_running(spec);
    for places in [&[][..], &[(0, 4)], &[(0, 1)], &[(1, 2)], &[(0, 1), (1, 1)], &[(7, 7)]] {
        world.round(&[(1, places)]);
        world.check_said(&[]);
        world.check_holds(1, &[(0, 2)]);
    }
    let suspend = JobEdit { suspended: Some(true), ..JobEdit::default() };
    world.check_refused(Input::JobEdited(JobId(1), suspend), &Refused::CannotComeBack(JobId(1)));
}

fn check_given_up(mut world: World, told: impl FnOnce(&mut World)) {
    told(&mut world);
    world.check_phase(1, Phase::Ended(Outcome::Failed));
    world.check_holds(1, &[]);
}

#[test]
fn no_plan_stops_it() {
    check_stays(asking(2));
}

#[test]
fn no_plan_stops_a_job_that_adapts_but_has_not_reported_yet() {
    check_stays(adapting());
}

#[test]
fn no_plan_stops_it_while_it_starts() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, asking(2));
    world.round(&[(1, &[(0, 2)])]);
    world.round(&[(1, &[])]);
    world.check_said(&["start 1.1 on 0:2"]);
}

#[test]
fn it_is_shown_as_rigid_with_what_it_asks_for_and_then_with_what_it_holds() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, asking(3));
    world.submit(2, JobSpec { min_gpus: 2, ..JobSpec::default() });
    world.submit(3, adapting());
    world.ask();
    let freedom = |world: &World, job| world.shown(job).unwrap().freedom;
    assert_eq!(freedom(&world, 1), Freedom::Rigid { gpus: 3 });
    assert_eq!(freedom(&world, 2), Freedom::Rigid { gpus: 2 });
    assert_eq!(freedom(&world, 3), Freedom::Elastic);
    world.answer(common::plan(&[(1, &[(0, 3)]), (3, &[(0, 1)])]));
    world.ask();
    assert_eq!(freedom(&world, 1), Freedom::Restarting);
    world.answer(common::plan(&[]));
    world.train(1);
    world.train(3);
    world.ask();
    assert_eq!(freedom(&world, 1), Freedom::Rigid { gpus: 3 });
    assert_eq!(freedom(&world, 3), Freedom::Rigid { gpus: 1 });
    world.answer(common::plan(&[]));
    world.report(3, 1.0);
    world.ask();
    assert_eq!(freedom(&world, 3), Freedom::Elastic);
}

#[test]
fn it_gets_what_it_asked_for_or_nothing() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, asking(2));
    world.round(&[(1, &[(0, 1)])]);
    world.round(&[(1, &[(0, 4)])]);
    world.check_said(&[]);
    world.round(&[(1, &[(0, 2)])]);
    world.check_said(&["start 1.1 on 0:2"]);
}

#[test]
fn it_is_not_tried_again_after_a_failure() {
    check_given_up(one_running(asking(2)), |world| world.fail(1));
    check_given_up(one_running(adapting()), |world| world.fail(1));
}

#[test]
fn it_is_not_tried_again_after_the_loss_of_its_node() {
    check_given_up(one_running(asking(2)), |world| world.lose(0));
}

#[test]
fn it_is_not_tried_again_if_it_leaves_by_itself() {
    check_given_up(one_running(asking(2)), |world| world.stopped(1));
}

#[test]
fn what_is_left_of_it_is_asked_to_leave_and_no_more_planned_for() {
    let mut world = World::of(minutely(), &[1, 1]);
    world.submit(1, asking(2));
    world.submit(2, asking(1));
    world.round(&[(1, &[(0, 1), (1, 1)])]);
    world.train(1);
    world.forget();
    world.lose(0);
    world.check_said(&["stop 1.1"]);
    world.ask();
    assert!(world.shown(1).is_none());
    world.answer(common::plan(&[(1, &[(1, 1)]), (2, &[(1, 1)])]));
    check_given_up(world, |world| {
        world.stopped(1);
        world.check_said(&["start 2.1 on 1:1"]);
    });
}

#[test] // The report was on its way when the node was lost.
fn a_report_that_comes_late_saves_it() {
    let mut world = World::of(minutely(), &[1, 1]);
    world.submit(1, JobSpec { max_gpus: Some(2), ..adapting() });
    world.round(&[(1, &[(0, 1), (1, 1)])]);
    world.lose(0);
    world.report(1, 1.0);
    world.stopped(1);
    world.check_phase(1, Phase::Waiting);
}
