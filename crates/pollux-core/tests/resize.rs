//! Two phases: nobody starts before the last holder is gone, and what a late plan says is held against the world.

mod common;

use common::{World, adapting, eager, minutely, on, plan, plan_of};
use pollux_core::{JobSpec, Phase};
use pollux_model::{Allocation, GpuShare, GpuType, JobId, NodeId};
use pollux_policy::{Decision, JobPlan, NodeState, Reason};

/// Jobs 1 and 2 fill a node of two GPUs each.
fn two_running() -> World {
    World::with_running(minutely(), &[2, 2], &[(1, &[(0, 2)]), (2, &[(1, 2)])])
}

/// Two jobs change places; one leaves before the other.
fn check_swap(first: u64, then: u64, said: &[&str]) {
    let mut world = two_running();
    world.round(&[(1, &[(1, 2)]), (2, &[(0, 2)])]);
    world.check_said(&["stop 1.1", "stop 2.1"]);
    world.stopped(first);
    world.check_said(&[]);
    world.stopped(then);
    world.check_said(said);
    world.check_holds(1, &[(1, 2)]);
    world.check_holds(2, &[(0, 2)]);
}

/// Job 1, which runs on two GPUs of node 0, is given this by a plan and stays where it is.
fn check_dropped(allocation: Allocation) {
    let mut world = World::with_running(minutely(), &[4, 4], &[(1, &[(0, 2)])]);
    world.join(2, "a100", 4);
    world.ask();
    let answer = JobPlan { job: JobId(1), decision: Decision::Place, allocation, reason: Reason::default() };
    world.answer(plan_of(vec![answer]));
    world.check_said(&[]);
    world.check_phase(1, Phase::Running);
}

#[test]
fn two_jobs_change_places_whoever_leaves_first() {
    check_swap(1, 2, &["start 1.2 on 1:2", "start 2.2 on 0:2"]);
    check_swap(2, 1, &["start 1.2 on 1:2", "start 2.2 on 0:2"]);
}

#[test]
fn a_job_that_grows_in_place_leaves_first() {
    let mut world = World::with_running(minutely(), &[4], &[(1, &[(0, 2)])]);
    world.round(&[(1, &[(0, 4)])]);
    world.check_said(&["stop 1.1"]);
    world.stopped(1);
    world.check_said(&["start 1.2 on 0:4"]);
}

#[test]
fn a_gang_starts_when_the_last_of_its_gpus_is_free() {
    let mut world = two_running();
    world.submit(3, adapting());
    world.round(&[(1, &[]), (2, &[]), (3, &[(0, 2), (1, 2)])]);
    world.check_said(&["stop 1.1", "stop 2.1"]);
    world.stopped(2);
    world.check_said(&[]);
    world.check_holds(3, &[]);
    world.stopped(1);
    world.check_said(&["start 3.1 on 0:2 1:2"]);
}

#[test] // It needs one GPU, and one of the two is free.
fn what_is_free_at_once_starts_at_once() {
    let mut world = World::with_running(minutely(), &[2], &[(1, &[(0, 1)])]);
    world.submit(2, adapting());
    world.round(&[(1, &[(0, 1)]), (2, &[(0, 1)])]);
    world.check_said(&["start 2.1 on 0:1"]);
}

#[test]
fn a_job_on_its_way_is_not_turned_round() {
    let mut world = World::with_running(minutely(), &[2, 2], &[(1, &[(0, 2)])]);
    world.round(&[(1, &[(1, 2)])]);
    world.round(&[(1, &[])]);
    world.stopped(1);
    world.check_said(&["stop 1.1", "start 1.2 on 1:2"]);
    world.round(&[(1, &[])]);
    world.check_said(&[]);
    world.check_phase(1, Phase::Starting);
}

#[test]
fn a_plan_may_name_who_is_gone_and_the_rest_is_carried_out() {
    let mut world = two_running();
    world.submit(3, adapting());
    world.submit(4, adapting());
    world.ask();
    world.finish(1);
    world.cancel(3);
    world.answer(plan(&[(1, &[(0, 1)]), (3, &[(0, 1)]), (4, &[(0, 1)]), (99, &[(0, 1)])]));
    world.check_said(&["start 4.1 on 0:1"]);
}

#[test]
fn gpus_that_are_not_there_are_not_given() {
    check_dropped(on(&[(9, 1)]));
    check_dropped(on(&[(1, 5)]));
    check_dropped(on(&[(0, 1), (9, 1)]));
    check_dropped(on(&[(1, u32::MAX)]));
}

#[test]
fn gpus_of_two_types_and_parts_of_one_are_not_given() {
    check_dropped(on(&[(1, 1), (2, 1)]));
    let half = GpuShare::part_of_one(500).unwrap();
    check_dropped(Allocation::part_of_one(NodeId(1), half).unwrap());
}

#[test]
fn gpus_of_a_type_that_the_job_may_not_use_are_not_given() {
    let mut world = World::of(minutely(), &[4]);
    world.join(1, "a100", 4);
    world.submit(1, JobSpec { types: [GpuType::new("a100")].into(), ..adapting() });
    world.round(&[(1, &[(0, 1)])]);
    world.check_said(&[]);
    world.round(&[(1, &[(1, 1)])]);
    world.check_said(&["start 1.1 on 1:1"]);
}

#[test] // Both are given three of the four GPUs.
fn a_node_is_not_filled_twice() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, adapting());
    world.submit(2, adapting());
    world.round(&[(1, &[(0, 3)]), (2, &[(0, 3)])]);
    world.check_said(&["start 1.1 on 0:3"]);
}

#[test]
fn of_two_answers_for_one_job_the_first_counts() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, adapting());
    world.round(&[(1, &[(0, 1)]), (1, &[(0, 4)])]);
    world.check_said(&["start 1.1 on 0:1"]);
}

#[test] // Node 2, where job 2 was to go, is lost; so job 2 stays, job 1 cannot take its place, and stays too.
fn nobody_is_driven_out_by_who_has_nowhere_to_go() {
    let jobs: &[(u64, common::On<'_>)] = &[(1, &[(0, 2)]), (2, &[(1, 2)])];
    let mut world = World::with_running(minutely(), &[2, 2, 2], jobs);
    world.submit(3, adapting());
    world.ask();
    world.lose(2);
    world.answer(plan(&[(1, &[(1, 2)]), (2, &[(2, 2)]), (3, &[(0, 2)])]));
    world.check_said(&[]);
    world.check_phase(1, Phase::Running);
    world.check_phase(2, Phase::Running);
}

#[test]
fn a_plan_that_gives_nobody_anything_new_changes_nothing() {
    let mut world = two_running();
    world.round(&[(1, &[(0, 2)]), (2, &[(1, 2)])]);
    world.round(&[]);
    world.check_said(&[]);
}

#[test]
fn a_late_plan_does_not_wake_who_failed_meanwhile() {
    let mut world = two_running();
    world.ask();
    world.fail(1);
    world.answer(plan(&[(1, &[(0, 2)])]));
    world.check_said(&[]);
    world.check_phase(1, Phase::Waiting);
}

#[test]
fn a_job_that_does_not_want_to_be_stopped_stays() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, JobSpec { preemptible: false, ..adapting() });
    world.round(&[(1, &[(0, 2)])]);
    world.train(1);
    world.report(1, 1.0);
    world.forget();
    world.round(&[(1, &[])]);
    world.round(&[(1, &[(0, 4)])]);
    world.check_said(&[]);
}

#[test]
fn a_node_that_comes_back_as_another_type_mixes_no_types() {
    let mut world = World::with_running(eager(), &[2, 2], &[(1, &[(0, 2)])]);
    world.submit(2, adapting());
    world.lose(1);
    world.join(1, "a100", 2);
    world.answer(plan(&[(1, &[(0, 2), (1, 2)])]));
    world.check_said(&[]);
    world.set_state(1, NodeState::Ready);
    world.check_holds(1, &[(0, 2)]);
}
