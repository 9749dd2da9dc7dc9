//! The cluster grows and shrinks with what its jobs can use.

mod common;

use std::time::Duration;

use common::{World, adapting, asking, minutely, reports};
use pollux_core::{Config, Input, NodeSpec, Pool, PoolId, Refused, Scaler, SizeId, Sizes};
use pollux_model::{Affine, AgentReport, BatchLimits, Compute, GpuType, JobId, NodeId, NoiseScale};
use pollux_policy::{AnyPolicy, Pollux, Terms};

/// Nodes of 4 T4 that are there after two minutes.
fn pool(id: u32, least: u32, most: u32) -> Pool {
    Pool {
        id: PoolId(id),
        node: NodeSpec { gpu_type: GpuType::new("t4"), gpus: 4 },
        price: 4.0,
        ready_after: Duration::from_mins(2),
        min_hold: Duration::ZERO,
        least,
        most,
        spot: false,
    }
}

/// 400 samples of 1 ms each, and 25 ms of exchange between nodes: on one node the speed-up is linear, and `K` GPUs of
/// several have a utility of `16 / (16 + K)`. Larger batches are worth nothing.
fn report(most_batch: u64, most_gpus: u32) -> AgentReport {
    let mut report = reports::report_of(1.0, 0.001, most_gpus);
    for fit in report.fits.values_mut() {
        fit.params.grad = Compute::Linear { alpha: 0.0, beta: 0.001 };
        fit.params.sync_local = Affine { alpha: 0.0, beta: 0.0 };
        fit.params.sync_node = Affine { alpha: 0.025, beta: 0.0 };
    }
    report.limits = BatchLimits::new(400, most_batch, 1, 400).unwrap();
    if let Some(noise) = &mut report.noise {
        noise.acted = NoiseScale::from_samples(0.0).unwrap();
    }
    report
}

fn config(scaler: Scaler) -> Config {
    Config { scaler: Some(scaler), ..minutely() }
}

/// Some nodes of the pool, numbered from 0.
fn world_of(scaler: Scaler, pool: Pool, n_nodes: u32) -> World {
    let mut world = World::of(config(scaler), &[]);
    let id = pool.id;
    world.tell(Input::PoolsSet(vec![Pool { least: 0, ..pool.clone() }]));
    for node in 0..n_nodes {
        world.tell(Input::PoolNodeJoined(NodeId(node), id));
    }
    world.tell(Input::PoolsSet(vec![pool]));
    world.forget();
    world
}

/// The question about sizes, if there is one, is answered as it should be.
fn answer_sizes(world: &mut World) -> Option<Sizes> {
    let (id, question) = world.sizing.take()?;
    let sizes = question.answer(&Pollux::default());
    world.tell(Input::SizeReady(id, sizes.clone()));
    Some(sizes)
}

/// A whole round with real answers: sizes and plan; who is stopped leaves, who starts trains.
fn live(world: &mut World) -> Vec<String> {
    world.ask();
    answer_sizes(world);
    let (_, snapshot, seed) = world.asked.as_ref().unwrap();
    let plan = AnyPolicy::plan(&Pollux::default(), snapshot, &Terms { seed: *seed, ..Terms::default() });
    world.answer(plan);
    settle(world)
}

/// Does what was asked for, until nothing is; says what it was.
fn settle(world: &mut World) -> Vec<String> {
    let mut said = Vec::new();
    loop {
        let news = world.take_said();
        if news.is_empty() {
            return said;
        }
        for line in &news {
            let words: Vec<&str> = line.split([' ', '.']).collect();
            let number = |at: usize| words[at].parse::<u32>().unwrap();
            match words[0] {
                "stop" => world.stopped(number(1).into()),
                "start" => world.train(number(1).into()),
                "release" => world.lose(number(1)),
                _ => {}
            }
        }
        said.extend(news);
    }
}

/// Rounds until so many seconds have passed.
fn live_until(world: &mut World, secs: u64) -> Vec<String> {
    let mut said = Vec::new();
    while world.secs < secs {
        said.extend(live(world));
    }
    said
}

/// A job that runs on the first nodes of the pool, all of their GPUs, and has reported.
fn training(scaler: Scaler, pool: Pool, n_nodes: u32, n_used: u32) -> World {
    let mut world = world_of(scaler, pool, n_nodes);
    world.submit(1, adapting());
    let places: Vec<(u32, u32)> = (0..n_used).map(|node| (node, 4)).collect();
    world.round(&[(1, &places)]);
    world.train(1);
    world.tell(Input::JobReported(JobId(1), report(400, 4 * n_used)));
    world.forget();
    world
}

#[test]
fn a_pool_has_its_fewest_nodes_before_any_job_comes() {
    let mut world = World::of(config(Scaler::GOODPUT), &[]);
    world.tell(Input::PoolsSet(vec![pool(0, 2, 8)]));
    world.check_said(&["grow 0 by 2"]);
    world.tell(Input::PoolNodeJoined(NodeId(7), PoolId(0)));
    world.check_said(&[]);
}

#[test]
fn the_first_job_gets_a_node_which_is_ordered_once() {
    let mut world = world_of(Scaler::GOODPUT, pool(0, 0, 8), 0);
    world.submit(1, adapting());
    assert_eq!(live(&mut world), ["grow 0 by 1"]);
    assert_eq!(live(&mut world), [""; 0]);
    assert_eq!(live(&mut world), [""; 0]);
    world.tell(Input::PoolNodeJoined(NodeId(0), PoolId(0)));
    assert_eq!(live(&mut world), ["start 1.1 on 0:1"]);
}

#[test] // Four GPUs of one node are used well: their utility is above the band for 15 minutes.
fn a_cluster_that_is_too_small_grows_after_a_while() {
    let mut world = training(Scaler::GOODPUT, pool(0, 1, 8), 1, 1);
    assert_eq!(live_until(&mut world, 15 * 60), [""; 0]);
    assert_eq!(live(&mut world), ["grow 0 by 1"]);
}

#[test] // 32 GPUs have a utility of a third, 16 one of a half, which is the middle of the band.
fn a_cluster_that_is_too_large_empties_nodes_and_then_gives_them_back() {
    let mut world = training(Scaler::GOODPUT, pool(0, 1, 8), 8, 8);
    let all: Vec<(u32, u32)> = (0..8).map(|node| (node, 4)).collect();
    while world.sizing.is_none() {
        assert!(world.secs < 3_600);
        world.round(&[(1, &all)]);
        world.check_said(&[]);
    }
    let sizes = answer_sizes(&mut world).unwrap();
    assert_eq!(sizes, Sizes::from([(PoolId(0), 4)]));
    // The job is still there: no node is given back before it has left.
    world.check_said(&[]);
    world.ask();
    let (_, snapshot, seed) = world.asked.as_ref().unwrap();
    let plan = AnyPolicy::plan(&Pollux::default(), snapshot, &Terms { seed: *seed, ..Terms::default() });
    world.answer(plan);
    world.check_said(&["stop 1.1"]);
    world.stopped(1);
    world.check_said(&["start 1.2 on 0:4 1:4 2:4 3:4", "release 4", "release 5", "release 6", "release 7"]);
}

#[test] // 12 GPUs are in the band; 4 and 32 are not, and come to its middle.
fn it_does_not_flap() {
    let mut gpus = Vec::new();
    for n_nodes in [1, 3, 8] {
        let mut world = training(Scaler::GOODPUT, pool(0, 1, 8), n_nodes, n_nodes);
        let mut next = 100;
        let mut latest = 0;
        while world.secs < 6 * 3_600 {
            for line in live(&mut world) {
                if line.starts_with("grow") || line.starts_with("release") {
                    latest = world.secs;
                }
                if let Some(count) = line.strip_prefix("grow 0 by ") {
                    for _ in 0..count.parse().unwrap() {
                        world.tell(Input::PoolNodeJoined(NodeId(next), PoolId(0)));
                        next += 1;
                    }
                }
                let most = world.job(1).holds.placement().map_or(1, pollux_model::Placement::n_replicas);
                let most = most.max(world.job(1).report.unwrap().most_replicas);
                world.tell(Input::JobReported(JobId(1), report(400, most)));
            }
        }
        assert!(latest < 2 * 3_600, "the last change came after {latest} s");
        gpus.push(world.job(1).holds.gpus());
    }
    assert_eq!(gpus, [16.0, 12.0, 16.0]);
}

#[test]
fn what_is_paid_for_is_kept() {
    let hour = Pool { min_hold: Duration::from_hours(1), ..pool(0, 1, 8) };
    let mut world = training(Scaler::GOODPUT, hour, 6, 1);
    let releases = |said: Vec<String>| said.iter().filter(|line| line.starts_with("release")).count();
    assert_eq!(releases(live_until(&mut world, 3_540)), 0);
    assert_eq!(releases(live_until(&mut world, 2 * 3_600)), 4);
}

#[test] // 3 jobs hold a GPU of each of the first nodes: 3 of 16, far below the band.
fn nobody_is_moved_who_never_reported() {
    let mut world = world_of(Scaler::GOODPUT, pool(0, 0, 8), 4);
    for job in 0..3 {
        world.submit(job, asking(1));
    }
    world.round(&[(0, &[(0, 1)]), (1, &[(1, 1)]), (2, &[(2, 1)])]);
    settle(&mut world);
    assert_eq!(live_until(&mut world, 4 * 3_600), ["release 3"]);
}

#[test]
fn an_order_that_fails_is_given_again_later_and_later() {
    let mut world = world_of(Scaler::GOODPUT, pool(0, 1, 8), 0);
    world.tell(Input::PoolsSet(vec![pool(0, 1, 8)]));
    for (wait, at) in [(10, 0), (20, 10), (40, 30)] {
        world.secs = at;
        world.forget();
        world.tell(Input::GrowFailed(PoolId(0), 1));
        world.check_said(&[]);
        world.secs = at + wait - 1;
        world.tell(Input::Tick);
        world.check_said(&[]);
        assert!(world.wakes.contains(&(at + wait)), "{:?}", world.wakes);
        world.secs = at + wait;
        world.tell(Input::Tick);
        world.check_said(&["grow 0 by 1"]);
    }
}

#[test]
fn an_order_of_which_nothing_is_heard_is_given_up() {
    let mut world = world_of(Scaler::GOODPUT, pool(0, 1, 8), 0);
    world.tell(Input::PoolsSet(vec![pool(0, 1, 8)]));
    world.forget();
    world.secs = 599;
    world.tell(Input::Tick);
    world.check_said(&[]);
    world.secs = 600;
    world.tell(Input::Tick);
    world.secs = 610;
    world.tell(Input::Tick);
    world.check_said(&["grow 0 by 1"]);
}

#[test]
fn nodes_without_jobs_go_after_a_while() {
    let mut world = training(Scaler::GOODPUT, pool(0, 1, 8), 3, 1);
    world.finish(1);
    let end = world.secs + 15 * 60;
    while world.secs < end {
        world.check_said(&[]);
        let next = world.wakes.iter().copied().filter(|at| *at > world.secs).min();
        world.secs = next.expect("nobody wishes to be woken");
        world.tell(Input::Tick);
    }
    world.check_said(&["release 1", "release 2"]);
}

/// How many nodes of each pool are to be had for a job on a node of pool 0.
fn sizes_of(scaler: Scaler, pools: Vec<Pool>, report: AgentReport) -> Vec<u32> {
    let patience = Duration::from_mins(1);
    let mut world = World::of(config(Scaler { patience, ..scaler }), &[]);
    world.tell(Input::PoolsSet(pools));
    world.tell(Input::PoolNodeJoined(NodeId(0), PoolId(0)));
    world.submit(1, adapting());
    world.round(&[(1, &[(0, 4)])]);
    world.train(1);
    // What was asked before anything was known does not matter.
    let early = world.sizing.take();
    world.tell(Input::JobReported(JobId(1), report));
    if let Some((id, _)) = early {
        world.tell(Input::SizeReady(id, Sizes::new()));
    }
    while world.sizing.is_none() {
        assert!(world.secs < 3_600);
        world.round(&[(1, &[(0, 4)])]);
    }
    answer_sizes(&mut world).unwrap().into_values().collect()
}

#[test] // With batches of 6400 eight nodes yield 6400 samples in 0.225 s, which are worth no more than 400.
fn throughput_alone_buys_more() {
    let sizes = |scaler| sizes_of(scaler, vec![pool(0, 1, 8)], report(6_400, 16));
    assert_eq!(sizes(Scaler::GOODPUT), [4]);
    assert_eq!(sizes(Scaler::THROUGHPUT), [8]);
}

#[test] // Four nodes in all are right.
fn the_cheapest_pool_is_filled_first_and_spot_before_others() {
    let with = |price, spot| Pool { price, spot, ..pool(1, 0, 4) };
    let both = |other| sizes_of(Scaler::GOODPUT, vec![pool(0, 0, 4), other], report(400, 16));
    assert_eq!(both(with(5.0, false)), [4, 0]);
    assert_eq!(both(with(3.0, false)), [1, 3]);
    assert_eq!(both(with(4.0, true)), [1, 3]);
    assert_eq!(both(Pool { most: 2, ..with(3.0, false) }), [2, 2]);
}

#[test]
fn pools_that_make_no_sense_are_refused() {
    let mut world = world_of(Scaler::GOODPUT, pool(0, 0, 8), 1);
    let id = PoolId(0);
    let set = Input::PoolsSet;
    world.check_refused(set(vec![]), &Refused::PoolInUse(id));
    world.check_refused(set(vec![pool(0, 0, 8), pool(0, 0, 8)]), &Refused::PoolInUse(id));
    world.check_refused(set(vec![Pool { price: f64::NAN, ..pool(0, 0, 8) }]), &Refused::BadPrice(id));
    let (least, most) = (3, 2);
    world.check_refused(set(vec![pool(0, 3, 2)]), &Refused::LeastAboveMost { pool: id, least, most });
    let other = PoolId(9);
    world.check_refused(Input::PoolNodeJoined(NodeId(5), other), &Refused::UnknownPool(other));
    world.check_refused(Input::PoolNodeJoined(NodeId(0), id), &Refused::KnownNode(NodeId(0)));
    world.check_refused(Input::GrowFailed(other, 1), &Refused::UnknownPool(other));
    let nobody_asked = Refused::UnknownQuestion(SizeId(3));
    world.check_refused(Input::SizeReady(SizeId(3), Sizes::new()), &nobody_asked);
}
