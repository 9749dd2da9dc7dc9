//! A provider warns that a node will be taken back.

mod common;

use std::time::Duration;

use common::{World, adapting, asking, minutely, plan};
use pollux_core::{Input, JobSpec, NodeSpec, Phase, Pool, PoolId, Refused};
use pollux_model::{GpuType, NodeId, Timestamp};

/// Node 0 will be gone two minutes from now.
fn warn(world: &mut World) {
    let deadline = Timestamp::from_secs(world.secs + 120);
    world.tell(Input::NodeReclaimed(NodeId(0), deadline));
}

/// Time passes, and those who wished to be woken are.
fn wait(world: &mut World, secs: u64) {
    let end = world.secs + secs;
    while let Some(next) = world.wakes.iter().copied().filter(|at| (world.secs + 1..=end).contains(at)).min()
    {
        world.secs = next;
        world.tell(Input::Tick);
    }
    world.secs = end;
}

#[test]
fn a_plan_is_asked_for_at_once_and_moves_who_is_there() {
    let mut world = World::with_running(minutely(), &[2, 2], &[(1, &[(0, 2)])]);
    world.secs += 7;
    warn(&mut world);
    assert!(world.asked.is_some(), "the next round would come too late");
    world.answer(plan(&[(1, &[(1, 2)])]));
    world.check_said(&["stop 1.1"]);
    world.stopped(1);
    world.check_said(&["start 1.2 on 1:2"]);
    world.lose(0);
    world.check_phase(1, Phase::Starting);
}

#[test]
fn a_warning_while_a_plan_is_awaited_asks_for_another() {
    let mut world = World::with_running(minutely(), &[2, 2], &[(1, &[(0, 2)])]);
    world.submit(2, adapting());
    world.ask();
    warn(&mut world);
    world.answer(plan(&[(1, &[(0, 2)]), (2, &[(0, 2)])]));
    world.check_said(&[]);
    assert!(world.asked.is_some());
}

#[test]
fn nobody_comes_to_a_node_that_will_be_gone() {
    let mut world = World::of(minutely(), &[2]);
    world.submit(1, adapting());
    warn(&mut world);
    world.answer(plan(&[(1, &[(0, 2)])]));
    world.check_said(&[]);
}

/// A job of this kind is on the node, and no plan moves it.
fn left_alone(spec: JobSpec, reports: bool) -> World {
    let mut world = World::of(minutely(), &[2, 2]);
    world.submit(1, spec);
    world.round(&[(1, &[(0, 1)])]);
    world.train(1);
    if reports {
        world.report(1, 1.0);
    }
    world.forget();
    warn(&mut world);
    world.answer(plan(&[(1, &[(0, 1)])]));
    wait(&mut world, 89);
    world.check_said(&[]);
    world
}

#[test] // A restart is taken to cost 30 s: the last call comes 90 s after the warning.
fn who_may_not_be_moved_is_stopped_in_time_to_save_its_state() {
    let mut world = left_alone(JobSpec { preemptible: false, ..adapting() }, true);
    wait(&mut world, 1);
    world.check_said(&["stop 1.1"]);
    world.stopped(1);
    world.lose(0);
    world.check_phase(1, Phase::Waiting);
}

#[test]
fn who_never_reported_stays_to_the_end() {
    let mut world = left_alone(asking(1), false);
    wait(&mut world, 31);
    world.check_said(&[]);
    world.check_phase(1, Phase::Running);
}

#[test]
fn a_node_of_a_pool_is_replaced() {
    let mut world = World::of(minutely(), &[]);
    let node = NodeSpec { gpu_type: GpuType::new("t4"), gpus: 4 };
    let (ready_after, min_hold) = (Duration::from_mins(2), Duration::ZERO);
    let (id, price) = (PoolId(0), 1.0);
    let spot = Pool { id, node, price, ready_after, min_hold, least: 0, most: 4, spot: true };
    world.tell(Input::PoolsSet(vec![spot]));
    world.tell(Input::PoolNodeJoined(NodeId(0), id));
    world.tell(Input::PoolNodeJoined(NodeId(1), id));
    warn(&mut world);
    world.check_said(&["grow 0 by 1"]);
    world.lose(0);
    world.check_said(&[]);
}

#[test]
fn only_nodes_that_are_there_can_be_taken_back() {
    let mut world = World::of(minutely(), &[2]);
    let gone = Input::NodeReclaimed(NodeId(4), Timestamp::ZERO);
    world.check_refused(gone, &Refused::UnknownNode(NodeId(4)));
}
