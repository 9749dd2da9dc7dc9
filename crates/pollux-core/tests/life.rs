//! The life of a job: waiting, starting, running, stopping, ended.

mod common;

use common::{World, adapting, asking, minutely, plan};
use pollux_core::{Generation, Input, JobEdit, Outcome, Phase, Refused};
use pollux_model::JobId;

/// A job that runs on two GPUs of node 0, beside an empty node.
fn one_running() -> World {
    World::with_running(minutely(), &[4, 4], &[(1, &[(0, 2)])])
}

/// Cancels job 1, which ends after at most one acknowledgement.
fn check_cancelled(mut world: World, said: &[&str]) {
    world.forget();
    world.cancel(1);
    world.check_said(said);
    if world.job(1).phase == Phase::Stopping {
        world.cancel(1);
        world.check_said(&[]);
        world.stopped(1);
    }
    world.check_phase(1, Phase::Ended(Outcome::Cancelled));
    world.check_holds(1, &[]);
    world.check_said(&[]);
    world.check_refused(Input::JobCancelled(JobId(1)), &Refused::Ended(JobId(1)));
}

#[test]
fn a_job_waits_starts_runs_and_ends() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, adapting());
    world.check_phase(1, Phase::Waiting);
    world.round(&[(1, &[(0, 2)])]);
    world.check_said(&["start 1.1 on 0:2"]);
    world.check_phase(1, Phase::Starting);
    world.train(1);
    world.check_phase(1, Phase::Running);
    world.finish(1);
    world.check_phase(1, Phase::Ended(Outcome::Finished));
    world.check_holds(1, &[]);
    assert_eq!(world.scheduler.active().count(), 0);
    world
        .check_refused(Input::JobReported(JobId(1), common::reports::report(1.0)), &Refused::Ended(JobId(1)));
}

#[test]
fn a_plan_can_send_a_job_back_to_waiting() {
    let mut world = one_running();
    world.round(&[(1, &[])]);
    world.check_said(&["stop 1.1"]);
    world.check_phase(1, Phase::Stopping);
    world.check_holds(1, &[(0, 2)]);
    world.stopped(1);
    world.check_phase(1, Phase::Waiting);
    world.round(&[(1, &[(1, 1)])]);
    world.check_said(&["start 1.2 on 1:1"]);
}

#[test]
fn a_job_can_end_before_its_first_step() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, adapting());
    world.round(&[(1, &[(0, 2)])]);
    world.finish(1);
    world.check_phase(1, Phase::Ended(Outcome::Finished));
}

#[test]
fn a_job_that_finishes_while_it_is_asked_to_leave_is_done() {
    let mut world = one_running();
    world.round(&[(1, &[(1, 4)])]);
    world.finish(1);
    world.check_phase(1, Phase::Ended(Outcome::Finished));
    world.check_said(&["stop 1.1"]);
    assert_eq!(world.scheduler.held_on(pollux_model::NodeId(0)), Some(0));
}

#[test] // The word of its end was on the way when its node was lost.
fn a_job_that_is_done_is_not_started_again() {
    let mut world = one_running();
    world.lose(0);
    world.check_phase(1, Phase::Waiting);
    world.finish(1);
    world.check_phase(1, Phase::Ended(Outcome::Finished));
}

#[test]
fn a_job_that_never_started_cannot_finish() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, adapting());
    world.tell(Input::JobFinished(JobId(1), Generation(0)));
    world.check_phase(1, Phase::Waiting);
}

#[test]
fn what_is_said_of_an_older_start_is_ignored() {
    let mut world = one_running();
    world.round(&[(1, &[(1, 2)])]);
    world.stopped(1);
    world.check_said(&["stop 1.1", "start 1.2 on 1:2"]);
    let (job, old) = (JobId(1), Generation(1));
    let late = [
        Input::JobTraining(job, old),
        Input::JobStopped(job, old),
        Input::JobFailed(job, old),
        Input::JobFinished(job, old),
        // And of one that is yet to come.
        Input::JobStopped(job, Generation(3)),
    ];
    for input in late {
        world.tell(input);
        world.check_phase(1, Phase::Starting);
        world.check_holds(1, &[(1, 2)]);
        world.check_said(&[]);
    }
}

#[test]
fn a_job_can_be_cancelled_while_it_waits() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, adapting());
    check_cancelled(world, &[]);
}

#[test]
fn a_job_can_be_cancelled_while_its_gpus_are_being_freed() {
    let mut world = one_running();
    world.submit(2, adapting());
    world.round(&[(1, &[(1, 1)]), (2, &[(0, 4)])]);
    world.cancel(2);
    world.check_phase(2, Phase::Ended(Outcome::Cancelled));
    world.stopped(1);
    world.check_said(&["stop 1.1", "start 1.2 on 1:1"]);
}

#[test]
fn a_job_can_be_cancelled_while_it_starts() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, adapting());
    world.round(&[(1, &[(0, 2)])]);
    check_cancelled(world, &["stop 1.1"]);
}

#[test]
fn a_job_can_be_cancelled_while_it_runs() {
    check_cancelled(one_running(), &["stop 1.1"]);
}

#[test]
fn a_job_can_be_cancelled_while_it_stops() {
    let mut world = one_running();
    world.round(&[(1, &[(1, 2)])]);
    check_cancelled(world, &[]);
}

#[test]
fn a_rigid_job_can_be_cancelled() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, asking(2));
    world.round(&[(1, &[(0, 2)])]);
    world.train(1);
    check_cancelled(world, &["stop 1.1"]);
}

#[test]
fn a_job_that_dies_after_it_was_cancelled_is_cancelled() {
    let mut world = one_running();
    world.cancel(1);
    world.fail(1);
    world.check_phase(1, Phase::Ended(Outcome::Cancelled));
}

#[test]
fn a_suspended_job_holds_nothing_until_it_is_resumed() {
    let mut world = one_running();
    world.submit(2, adapting());
    world.suspend(1, true);
    world.check_said(&["stop 1.1"]);
    world.stopped(1);
    world.ask();
    assert!(world.shown(1).is_none() && world.shown(2).is_some());
    // Whatever the plan says.
    world.answer(plan(&[(1, &[(0, 4)])]));
    world.check_said(&[]);
    world.suspend(1, false);
    world.round(&[(1, &[(0, 4)])]);
    world.check_said(&["start 1.2 on 0:4"]);
}

#[test]
fn a_job_suspended_on_its_way_does_not_arrive() {
    let mut world = one_running();
    world.round(&[(1, &[(1, 4)])]);
    world.suspend(1, true);
    world.stopped(1);
    world.check_said(&["stop 1.1"]);
    world.check_phase(1, Phase::Waiting);
}

#[test]
fn a_job_resumed_before_it_has_left_starts_when_it_has() {
    let mut world = one_running();
    world.suspend(1, true);
    world.suspend(1, false);
    world.round(&[(1, &[(0, 2)])]);
    world.check_said(&["stop 1.1"]);
    world.check_phase(1, Phase::Stopping);
    world.stopped(1);
    world.check_said(&["start 1.2 on 0:2"]);
}

#[test]
fn a_job_without_a_start_can_be_suspended_though_it_never_reported() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, asking(2));
    world.suspend(1, true);
    world.submit(2, asking(1));
    world.ask();
    assert!(world.shown(1).is_none());
}

#[test]
fn edited_limits_are_seen_by_the_next_plan() {
    let mut world = one_running();
    let edit = JobEdit { max_gpus: Some(Some(1)), weight: Some(3.0), ..JobEdit::default() };
    world.edit(1, edit);
    world.check_said(&[]);
    world.check_phase(1, Phase::Running);
    world.ask();
    let shown = world.shown(1).unwrap();
    assert_eq!((shown.min_gpus, shown.max_gpus, shown.weight), (1, Some(1), 3.0));
    world.answer(plan(&[(1, &[(0, 1)])]));
    world.check_said(&["stop 1.1"]);
}

#[test] // A restart to 4 GPUs would be followed by one to 2.
fn a_plan_from_before_an_edit_breaks_no_limit() {
    let mut world = one_running();
    world.ask();
    world.edit(1, JobEdit { max_gpus: Some(Some(2)), ..JobEdit::default() });
    world.answer(plan(&[(1, &[(1, 4)])]));
    world.check_said(&[]);
}

#[test]
fn a_start_that_waits_is_withdrawn_when_the_limits_forbid_it() {
    let mut world = one_running();
    world.round(&[(1, &[(1, 4)])]);
    world.edit(1, JobEdit { max_gpus: Some(Some(2)), ..JobEdit::default() });
    world.stopped(1);
    world.check_said(&["stop 1.1"]);
    world.round(&[(1, &[(1, 2)])]);
    world.check_said(&["start 1.2 on 1:2"]);
}
