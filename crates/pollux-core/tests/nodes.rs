//! Nodes come, close, empty and vanish; GPUs are used by others.

mod common;

use common::{On, World, adapting, minutely, plan};
use pollux_core::{Input, NodeSpec, Phase, Refused};
use pollux_model::{GpuType, NodeId};
use pollux_policy::{AnyPolicy, EvenShare, Fifo, NodeState, Pollux, SnapshotError, Terms};

/// A job of two GPUs on each of two nodes.
fn spread() -> World {
    World::with_running(minutely(), &[2, 2, 4], &[(1, &[(0, 2), (1, 2)])])
}

/// Job 1 leaves node 0 for job 2, which has a start waiting there.
fn one_start_waits() -> World {
    let mut world = World::with_running(minutely(), &[2, 2], &[(1, &[(0, 2)])]);
    world.submit(2, adapting());
    world.round(&[(1, &[]), (2, &[(0, 2)])]);
    world.check_said(&["stop 1.1"]);
    world
}

/// A round with a real policy.
fn round_with(world: &mut World, policy: &dyn AnyPolicy) {
    world.ask();
    let (_, snapshot, seed) = world.asked.as_ref().unwrap();
    let plan = policy.plan(snapshot, &Terms { seed: *seed, ..Terms::default() });
    world.answer(plan);
}

/// Something befalls node 0 and the start does not happen; a plan finds job 2 another place.
fn check_withdrawn(befalls: impl FnOnce(&mut World)) {
    let mut world = one_start_waits();
    befalls(&mut world);
    world.stopped(1);
    world.check_said(&[]);
    world.check_phase(2, Phase::Waiting);
    world.round(&[(2, &[(1, 2)])]);
    world.check_said(&["start 2.1 on 1:2"]);
}

#[test]
fn a_job_whose_nodes_are_lost_waits_and_comes_back() {
    let mut world = World::with_running(minutely(), &[2, 2], &[(1, &[(0, 2)])]);
    world.lose(0);
    world.check_said(&[]);
    world.check_phase(1, Phase::Waiting);
    assert_eq!(world.job(1).failures, 0, "it is no fault of its own");
    world.round(&[(1, &[(1, 2)])]);
    world.check_said(&["start 1.2 on 1:2"]);
}

#[test]
fn the_rest_of_a_job_that_lost_a_node_is_asked_to_leave() {
    let mut world = spread();
    world.lose(1);
    world.check_said(&["stop 1.1"]);
    world.check_holds(1, &[(0, 2)]);
    world.stopped(1);
    world.check_phase(1, Phase::Waiting);
    world.round(&[(1, &[(2, 4)])]);
    world.check_said(&["start 1.2 on 2:4"]);
}

#[test] // The loss of its peers kills the rest before it hears of the wish to stop.
fn a_job_that_dies_of_a_lost_node_has_not_failed() {
    let mut world = spread();
    world.lose(1);
    world.fail(1);
    world.check_phase(1, Phase::Waiting);
    assert_eq!(world.job(1).failures, 0);
    world.round(&[(1, &[(2, 4)])]);
    world.check_said(&["stop 1.1", "start 1.2 on 2:4"]);
}

#[test]
fn a_job_that_loses_one_node_after_the_other_is_asked_once() {
    let mut world = spread();
    world.lose(0);
    world.lose(1);
    world.check_said(&["stop 1.1"]);
    world.check_phase(1, Phase::Waiting);
    // The acknowledgement comes late.
    world.stopped(1);
    world.check_phase(1, Phase::Waiting);
    world.check_said(&[]);
}

#[test]
fn a_node_lost_while_a_job_starts_there_sends_it_back() {
    let mut world = World::of(minutely(), &[2, 2]);
    world.submit(1, adapting());
    world.round(&[(1, &[(0, 2)])]);
    world.report(1, 0.0);
    world.lose(0);
    world.check_phase(1, Phase::Waiting);
    world.round(&[(1, &[(1, 2)])]);
    world.check_said(&["start 1.1 on 0:2", "start 1.2 on 1:2"]);
}

#[test] // Its script is known to report, and it has not yet: it begins again rather than being given up.
fn a_job_that_loses_its_node_before_its_first_report_begins_again() {
    let mut world = World::of(minutely(), &[2, 2]);
    world.submit(1, adapting());
    world.round(&[(1, &[(0, 2)])]);
    world.train(1);
    world.lose(0);
    world.check_phase(1, Phase::Waiting);
    world.round(&[(1, &[(1, 2)])]);
    world.check_said(&["start 1.1 on 0:2", "start 1.2 on 1:2"]);
    // The second start never trains.
    world.fail(1);
    world.check_phase(1, Phase::Waiting);
    assert_eq!(world.job(1).failures, 1);
}

#[test]
fn the_rest_of_a_job_that_never_reported_leaves_and_begins_again() {
    let mut world = World::of(minutely(), &[2, 2, 4]);
    world.submit(1, adapting());
    world.round(&[(1, &[(0, 2), (1, 2)])]);
    world.train(1);
    world.lose(1);
    world.ask();
    assert!(world.shown(1).is_some(), "plans are made for it while it leaves");
    world.answer(plan(&[(1, &[(2, 4)])]));
    world.fail(1);
    world.check_said(&["start 1.1 on 0:2 1:2", "stop 1.1", "start 1.2 on 2:4"]);
    assert_eq!(world.job(1).failures, 0);
}

#[test]
fn a_rigid_job_that_loses_its_node_before_it_trains_begins_again() {
    let mut world = World::of(minutely(), &[2, 2]);
    world.submit(1, common::asking(2));
    world.round(&[(1, &[(0, 2)])]);
    world.lose(0);
    world.round(&[(1, &[(1, 2)])]);
    world.check_said(&["start 1.1 on 0:2", "start 1.2 on 1:2"]);
}

#[test]
fn a_job_that_is_leaving_a_lost_node_goes_where_it_was_to_go() {
    let mut world = World::with_running(minutely(), &[2, 2], &[(1, &[(0, 2)])]);
    world.round(&[(1, &[(1, 2)])]);
    world.lose(0);
    world.check_said(&["stop 1.1", "start 1.2 on 1:2"]);
}

#[test]
fn a_job_on_its_way_to_a_lost_node_waits() {
    let mut world = World::with_running(minutely(), &[2, 2], &[(1, &[(0, 2)])]);
    world.round(&[(1, &[(1, 2)])]);
    world.lose(1);
    world.stopped(1);
    world.check_said(&["stop 1.1"]);
    world.check_phase(1, Phase::Waiting);
}

#[test] // What is left of job 1 on node 0 is released once, and node 1 has nothing to release.
fn a_node_that_comes_back_is_empty_while_a_job_still_leaves() {
    let mut world = spread();
    world.lose(1);
    world.join(1, "t4", 2);
    assert_eq!(world.scheduler.held_on(NodeId(1)), Some(0));
    world.submit(2, adapting());
    world.round(&[(2, &[(1, 2)])]);
    world.check_said(&["stop 1.1", "start 2.1 on 1:2"]);
    world.stopped(1);
    assert_eq!(world.scheduler.held_on(NodeId(0)), Some(0));
    assert_eq!(world.scheduler.held_on(NodeId(1)), Some(2));
}

#[test]
fn a_start_that_waited_does_not_happen_on_a_node_that_closed() {
    check_withdrawn(|world| world.set_state(0, NodeState::Cordoned));
    check_withdrawn(|world| world.set_state(0, NodeState::Draining));
}

#[test]
fn a_start_that_waited_does_not_happen_on_gpus_that_others_took() {
    check_withdrawn(|world| world.others(0, 1));
}

#[test]
fn a_start_that_waits_is_no_more_shown_once_it_cannot_happen() {
    let mut world = one_start_waits();
    world.ask();
    assert_eq!(world.shown(2).unwrap().holds, common::on(&[(0, 2)]));
    world.answer(plan(&[]));
    world.set_state(0, NodeState::Cordoned);
    world.ask();
    assert!(world.shown(2).unwrap().holds.is_empty());
}

#[test]
fn nobody_comes_to_a_closed_node_and_who_is_there_may_stay() {
    let mut world = World::with_running(minutely(), &[4], &[(1, &[(0, 2)])]);
    world.submit(2, adapting());
    world.set_state(0, NodeState::Cordoned);
    world.round(&[(1, &[(0, 2)]), (2, &[(0, 2)])]);
    world.check_said(&[]);
    world.check_phase(1, Phase::Running);
    world.set_state(0, NodeState::Ready);
    world.round(&[(1, &[(0, 2)]), (2, &[(0, 2)])]);
    world.check_said(&["start 2.1 on 0:2"]);
}

#[test]
fn who_can_move_leaves_a_draining_node_by_the_next_plan() {
    for policy in [&Pollux::default() as &dyn AnyPolicy, &Fifo, &EvenShare] {
        let mut world = World::with_running(minutely(), &[2, 2], &[(1, &[(0, 2)])]);
        world.set_state(0, NodeState::Draining);
        world.check_said(&[]);
        round_with(&mut world, policy);
        world.check_said(&["stop 1.1"]);
        world.stopped(1);
        assert_eq!(world.scheduler.held_on(NodeId(0)), Some(0));
    }
}

#[test]
fn gpus_that_others_use_are_not_given() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, adapting());
    world.others(0, 2);
    world.round(&[(1, &[(0, 3)])]);
    world.check_said(&[]);
    world.others(0, 0);
    world.round(&[(1, &[(0, 3)])]);
    world.check_said(&["start 1.1 on 0:3"]);
}

#[test] // Others use five GPUs of four, and two of ours.
fn others_may_come_to_where_our_jobs_are() {
    let places: On<'_> = &[(0, 2)];
    let mut world = World::with_running(minutely(), &[4], &[(1, places)]);
    world.others(0, 5);
    world.check_said(&[]);
    world.ask();
    let (_, snapshot, _) = world.asked.as_ref().unwrap();
    assert_eq!((snapshot.cluster().nodes[0].gpus, snapshot.cluster().nodes[0].others), (4, 2));
    world.answer(plan(&[(1, places)]));
    world.check_phase(1, Phase::Running);
    world.round(&[(1, &[(0, 1)])]);
    world.stopped(1);
    world.check_said(&[]);
    world.others(0, 3);
    world.round(&[(1, &[(0, 1)])]);
    world.check_said(&["start 1.2 on 0:1"]);
}

#[test]
fn nodes_that_make_no_sense_are_refused() {
    let mut world = World::of(minutely(), &[4]);
    let spec = |gpus| NodeSpec { gpu_type: GpuType::new("t4"), gpus };
    let join = |node, gpus| Input::NodeJoined(NodeId(node), spec(gpus));
    world.check_refused(join(0, 4), &Refused::KnownNode(NodeId(0)));
    let too_many = SnapshotError::TooManyGpus { node: NodeId(1), gpus: 70_000, most: 65_536 };
    world.check_refused(join(1, 70_000), &Refused::Cluster(too_many));
    world.check_refused(Input::NodeLost(NodeId(1)), &Refused::UnknownNode(NodeId(1)));
    let state = Input::NodeStateSet(NodeId(1), NodeState::Cordoned);
    world.check_refused(state, &Refused::UnknownNode(NodeId(1)));
    world.check_refused(Input::NodeUsedByOthers(NodeId(1), 1), &Refused::UnknownNode(NodeId(1)));
}
