//! The policies that Pollux is compared with, rule by rule. The numbers can be done in one's head.

mod common;

use std::time::Duration;

use common::Dice;
use common::check::check;
use common::plain;
use common::random_snapshot::{Shape, draw};
use common::rounds::{allocations, holds, in_place};
use pollux_model::{Allocation, GpuType, JobId, NodeId};
use pollux_policy::{
    AnyPolicy, Carried, Cluster, EvenShare, Fifo, Freedom, Group, GroupId, Job, Known, Limit, NodeState,
    Optimus, Oracle, Plan, Request, ShortestFirst, Snapshot, Terms, Tiresias,
};

/// 16 GPU-hours.
const THRESHOLD: f64 = 57_600.0;

/// Nodes 0, 1, .. with so many GPUs.
fn nodes(gpus: &[u32]) -> Cluster {
    let nodes = (0..).zip(gpus).map(|(id, &gpus)| plain::node(NodeId(id), "gpu", gpus));
    Cluster { nodes: nodes.collect(), ..Cluster::default() }
}

/// A job that asks for so many GPUs. The lower its number the older it is.
fn asks(id: u64, gpus: u32) -> Job {
    let knows = Known { request: Some(Request { gpus }), ..Known::default() };
    Job { age: Duration::from_secs(1_000 - id), knows, ..plain::job(JobId(id)) }
}

/// A job whose iterations take so many seconds on 1, 2, .. GPUs.
fn foreseen(id: u64, remaining: f64, step_secs: &[f64]) -> Job {
    let max_gpus = u32::try_from(step_secs.len()).expect("few");
    let oracle = Oracle {
        remaining_iterations: remaining,
        step_secs: step_secs.into(),
        max_gpus,
        ..Oracle::default()
    };
    Job { knows: Known { oracle: Some(oracle), ..Known::default() }, ..asks(id, 1) }
}

fn holding(job: Job, counts: &[(u32, u32)]) -> Job {
    Job { holds: Allocation::whole(counts.iter().map(|&(node, gpus)| (NodeId(node), gpus))), ..job }
}

/// What becomes of each job: `keep 0=2 1=1` or `wait starved`.
fn describe(plan: &Plan) -> Vec<String> {
    let line = |answer: &pollux_policy::JobPlan| {
        let decision = format!("{:?}", answer.decision).to_lowercase();
        let places =
            answer.allocation.iter().map(|(node, share)| format!(" {}={}", node.0, share.n_replicas()));
        let limit = match &answer.reason.limit {
            Limit::Unstated => String::new(),
            Limit::GroupCap { group, .. } => format!(" cap{}", group.0),
            limit => format!(" {limit:?}").to_lowercase(),
        };
        decision + &places.collect::<String>() + &limit
    };
    plan.jobs.iter().map(line).collect()
}

fn plan_carrying(policy: &dyn AnyPolicy, cluster: &Cluster, jobs: &[Job], queue: &[u64]) -> Plan {
    let carried = Carried { queue: queue.iter().copied().map(JobId).collect(), ..Carried::default() };
    let snapshot = Snapshot::new(cluster.clone(), jobs.to_vec()).expect("a snapshot").carrying(carried);
    let plan = policy.plan(&snapshot, &Terms::seeded(1));
    check(&snapshot, &plan).unwrap_or_else(|wrong| panic!("{wrong}\n{plan:#?}"));
    assert!(plan.certificate.is_none());
    assert_eq!(plan.work.units, jobs.len() as u64);
    plan
}

fn check_plan(policy: &dyn AnyPolicy, cluster: &Cluster, jobs: &[Job], expected: &[&str]) {
    let plan = plan_carrying(policy, cluster, jobs, &[]);
    assert_eq!(describe(&plan), expected, "{}", policy.about().name);
}

/// What Tiresias makes of a second queue.
fn check_queue(jobs: &[Job], before: &[u64], after: &[u64], expected: &[&str]) {
    let plan = plan_carrying(&Tiresias::default(), &nodes(&[4]), jobs, before);
    assert_eq!(plan.carried.queue, after.iter().copied().map(JobId).collect::<Vec<_>>());
    assert_eq!(describe(&plan), expected);
}

#[test]
fn tiresias_demotes_at_sixteen_gpu_hours() {
    let old = |attained| Job { attained, ..holding(asks(1, 4), &[(0, 4)]) };
    check_queue(&[old(THRESHOLD - 1.0), asks(2, 4)], &[], &[], &["keep 0=4", "wait starved"]);
    check_queue(&[old(THRESHOLD), asks(2, 4)], &[], &[1], &["wait starved", "place 0=4"]);
}

#[test]
fn tiresias_serves_the_demoted_in_the_order_of_their_demotion() {
    let demoted = |id| Job { attained: THRESHOLD, ..asks(id, 4) };
    let three = [demoted(1), demoted(2), demoted(3)];
    // 9 has ended; 2 was demoted just now.
    check_queue(&three, &[9, 3, 1], &[3, 1, 2], &["wait starved", "wait starved", "place 0=4"]);
    // Several at once: in the order of their arrival.
    check_queue(&three, &[], &[1, 2, 3], &["place 0=4", "wait starved", "wait starved"]);
    // Nobody comes back from the second queue.
    check_queue(&[asks(1, 4), asks(2, 4)], &[1], &[1], &["wait starved", "place 0=4"]);
}

#[test]
fn tiresias_takes_the_lower_id_of_jobs_that_came_together() {
    let together = [5, 3].map(|id| Job { age: Duration::from_secs(7), ..asks(id, 4) });
    check_queue(&together, &[], &[], &["wait starved", "place 0=4"]);
}

#[test]
fn tiresias_fills_up_with_later_jobs_and_suspends_who_no_longer_fits() {
    let running = holding(asks(2, 2), &[(0, 2)]);
    check_queue(&[asks(1, 3), running, asks(3, 1)], &[], &[], &["place 0=3", "wait starved", "place 0=1"]);
}

#[test]
fn tiresias_places_on_the_emptiest_nodes_and_moves_nobody() {
    let tiresias = Tiresias::default();
    let spread = holding(asks(1, 2), &[(0, 1), (1, 1)]);
    check_plan(&tiresias, &nodes(&[4, 4]), &[spread, asks(2, 2)], &["keep 0=1 1=1", "place 0=2"]);
    // Node 1 has most; then node 0 has 3 and node 1 has 2.
    let jobs = [holding(asks(1, 1), &[(0, 1)]), asks(2, 2), asks(3, 4)];
    check_plan(&tiresias, &nodes(&[4, 4]), &jobs, &["keep 0=1", "place 1=2", "place 0=3 1=1"]);
    // Small jobs break up the nodes.
    check_plan(&tiresias, &nodes(&[2, 2]), &[asks(1, 1), asks(2, 1)], &["place 0=1", "place 1=1"]);
}

/// Twice as fast with every GPU.
const HALVING: [f64; 4] = [8.0, 4.0, 2.0, 1.0];

#[test]
fn optimus_gives_one_gpu_each_in_the_order_of_submission() {
    let jobs = [foreseen(3, 1.0, &HALVING), foreseen(1, 1.0, &HALVING), foreseen(2, 1.0, &HALVING)];
    check_plan(&Optimus, &nodes(&[2]), &jobs, &["wait starved", "place 0=1", "place 0=1"]);
}

#[test] // The first gains 4, then 1, then 0.1; the second 2 (3 - 1.5) = 3, then 2 (1.5 - 0.75) = 1.5.
fn optimus_gives_the_next_gpu_where_it_saves_most() {
    let jobs = [foreseen(1, 1.0, &[8.0, 4.0, 3.0, 2.9]), foreseen(2, 2.0, &[3.0, 1.5, 0.75])];
    check_plan(&Optimus, &nodes(&[3]), &jobs, &["place 0=2", "place 0=1"]);
    check_plan(&Optimus, &nodes(&[4]), &jobs, &["place 0=2", "place 0=2"]);
    check_plan(&Optimus, &nodes(&[5]), &jobs, &["place 0=2", "place 0=3"]);
    check_plan(&Optimus, &nodes(&[9]), &jobs, &["place 0=4", "place 0=3"]);
}

#[test]
fn optimus_gives_to_the_first_submitted_of_equals() {
    let jobs = [foreseen(2, 1.0, &HALVING), foreseen(1, 1.0, &HALVING)];
    check_plan(&Optimus, &nodes(&[3]), &jobs, &["place 0=1", "place 0=2"]);
}

#[test]
fn optimus_stops_where_nobody_gains() {
    // Three would be faster by far, but two are slower than one.
    check_plan(&Optimus, &nodes(&[8]), &[foreseen(1, 9.0, &[1.0, 1.5, 0.1])], &["place 0=1"]);
    check_plan(&Optimus, &nodes(&[8]), &[foreseen(1, 0.0, &HALVING)], &["place 0=1"]);
    check_plan(&Optimus, &nodes(&[8]), &[asks(1, 4)], &["place 0=1"]);
    let limited = |max_gpus| {
        let mut job = foreseen(1, 1.0, &HALVING);
        job.knows.oracle.as_mut().expect("foreseen").max_gpus = max_gpus;
        job
    };
    check_plan(&Optimus, &nodes(&[8]), &[limited(3)], &["place 0=3"]);
    check_plan(&Optimus, &nodes(&[8]), &[Job { max_gpus: Some(2), ..limited(3) }], &["place 0=2"]);
    check_plan(&Optimus, &nodes(&[8]), &[Job { min_gpus: 4, ..limited(3) }], &["place 0=4"]);
}

#[test]
fn optimus_keeps_whose_count_is_the_same_and_places_small_jobs_first() {
    let one = holding(foreseen(1, 1.0, &HALVING[..1]), &[(1, 1)]);
    let (three, two) = (foreseen(2, 1.0, &HALVING[..3]), foreseen(3, 1.0, &HALVING[..2]));
    let jobs = [one.clone(), three.clone(), two.clone()];
    check_plan(&Optimus, &nodes(&[4, 4]), &jobs, &["keep 1=1", "place 1=3", "place 0=2"]);
    // A restart costs nothing in its eyes.
    let jobs = [one, holding(three, &[(0, 2)]), two];
    check_plan(&Optimus, &nodes(&[4, 4]), &jobs, &["keep 1=1", "place 1=3", "place 0=2"]);
}

#[test]
fn fifo_lets_nobody_overtake() {
    let jobs = [asks(3, 1), asks(2, 2), asks(1, 3)];
    check_plan(&Fifo, &nodes(&[4]), &jobs, &["wait starved", "wait starved", "place 0=3"]);
    // Who runs stays, however young.
    let jobs = [asks(1, 4), holding(asks(2, 1), &[(0, 1)])];
    check_plan(&Fifo, &nodes(&[4]), &jobs, &["wait starved", "keep 0=1"]);
    // Who can never run holds up nobody.
    check_plan(&Fifo, &nodes(&[4]), &[asks(1, 5), asks(2, 1)], &["wait impossible", "place 0=1"]);
}

#[test]
fn fifo_packs() {
    let jobs = [asks(1, 2), asks(2, 5), asks(3, 3)];
    check_plan(&Fifo, &nodes(&[4, 4, 2]), &jobs, &["place 2=2", "place 0=4 1=1", "place 1=3"]);
    check_plan(&Fifo, &nodes(&[4, 2, 4]), &[asks(1, 6)], &["place 0=4 1=2"]);
    check_plan(&Fifo, &nodes(&[4, 2, 4]), &[asks(1, 4)], &["place 0=4"]);
}

/// Two nodes of 2 T4 each and one of 3 A100.
fn two_types() -> Cluster {
    let nodes = [("t4", 2), ("t4", 2), ("a100", 3)];
    let nodes = (0..).zip(nodes).map(|(id, (name, gpus))| plain::node(NodeId(id), name, gpus));
    Cluster { nodes: nodes.collect(), ..Cluster::default() }
}

fn only_on(job: Job, name: &str) -> Job {
    Job { types: [GpuType::new(name)].into(), ..job }
}

#[test]
fn fifo_waits_for_one_type_without_holding_up_another() {
    let jobs = [only_on(asks(1, 2), "a100"), only_on(asks(2, 2), "a100"), asks(3, 1), asks(4, 3)];
    let expected = ["place 2=2", "wait starved", "place 0=1", "place 0=1 1=2"];
    check_plan(&Fifo, &two_types(), &jobs, &expected);
}

#[test]
fn a_job_runs_on_one_type() {
    let policies: [&dyn AnyPolicy; 3] = [&Tiresias::default(), &Fifo, &ShortestFirst];
    for policy in policies {
        check_plan(policy, &two_types(), &[asks(1, 4), asks(2, 4)], &["place 0=2 1=2", "wait starved"]);
        check_plan(policy, &two_types(), &[asks(1, 5)], &["wait impossible"]);
        check_plan(policy, &two_types(), &[only_on(asks(1, 1), "a100")], &["place 2=1"]);
    }
    check_plan(&EvenShare, &two_types(), &[asks(1, 1)], &["place 0=2 1=2"]);
    check_plan(&EvenShare, &two_types(), &[asks(1, 1), asks(2, 1)], &["place 0=2 1=2", "place 2=3"]);
    let steps = [8.0, 4.0, 2.0, 1.0, 0.5, 0.25];
    check_plan(&Optimus, &two_types(), &[foreseen(1, 1.0, &steps)], &["place 0=2 1=2"]);
}

#[test]
fn who_would_exceed_a_cap_waits() {
    let mut cluster = nodes(&[8]);
    let cap = |id, gpus, parent: Option<u32>| Group {
        id: GroupId(id),
        parent: parent.map(GroupId),
        entitled: [].into(),
        caps: [(GpuType::new("gpu"), gpus)].into(),
    };
    cluster.groups = vec![cap(1, 4, None), cap(2, 6, Some(1))];
    let of = |job: Job, group| Job { group: Some(GroupId(group)), ..job };
    let jobs = [of(asks(1, 3), 1), of(asks(2, 2), 2), of(asks(3, 1), 1), asks(4, 1), of(asks(5, 5), 2)];
    let policies: [&dyn AnyPolicy; 2] = [&Tiresias::default(), &ShortestFirst];
    for policy in policies {
        let expected = ["place 0=3", "wait cap1", "place 0=1", "place 0=1", "wait impossible"];
        check_plan(policy, &cluster, &jobs, &expected);
    }
    // The third may not overtake the second, which is of the same group; the fourth is of none.
    let expected = ["place 0=3", "wait cap1", "wait cap1", "place 0=1", "wait impossible"];
    check_plan(&Fifo, &cluster, &jobs, &expected);
    let shared = [of(asks(1, 1), 1), of(asks(2, 1), 2), asks(3, 1)];
    check_plan(&EvenShare, &cluster, &shared, &["place 0=2", "place 0=2", "place 0=4"]);
}

#[test]
fn shares_are_even_and_the_oldest_get_what_is_left_over() {
    let jobs = [asks(2, 9), asks(3, 9), asks(1, 9)];
    check_plan(&EvenShare, &nodes(&[3, 3, 2]), &jobs, &["place 1=3", "place 2=2", "place 0=3"]);
    check_plan(&EvenShare, &nodes(&[2]), &jobs, &["place 0=1", "wait starved", "place 0=1"]);
    let limited = [Job { max_gpus: Some(1), ..asks(1, 9) }, Job { min_gpus: 5, ..asks(2, 9) }, asks(3, 9)];
    check_plan(&EvenShare, &nodes(&[8]), &limited, &["place 0=1", "place 0=5", "place 0=2"]);
}

#[test]
fn who_has_its_even_share_stays() {
    let jobs = [holding(asks(1, 9), &[(0, 1), (1, 1)]), holding(asks(2, 9), &[(0, 2)]), asks(3, 9)];
    check_plan(&EvenShare, &nodes(&[3, 3]), &jobs, &["keep 0=1 1=1", "keep 0=2", "place 1=2"]);
    let jobs = [holding(asks(1, 9), &[(0, 3)]), holding(asks(2, 9), &[(1, 1)])];
    check_plan(&EvenShare, &nodes(&[3, 3]), &jobs, &["keep 0=3", "place 1=3"]);
}

#[test] // On 2 GPUs: 10, 20 and 5 seconds.
fn the_shortest_goes_first() {
    let job = |id, remaining| {
        let mut job = foreseen(id, remaining, &[9.0, 1.0]);
        job.knows.request = Some(Request { gpus: 2 });
        job
    };
    let jobs = [job(1, 10.0), holding(job(2, 20.0), &[(0, 2)]), job(3, 5.0)];
    check_plan(&ShortestFirst, &nodes(&[2, 3]), &jobs, &["place 1=2", "wait starved", "place 0=2"]);
    check_plan(&ShortestFirst, &nodes(&[2, 4]), &jobs, &["place 1=2", "keep 0=2", "place 1=2"]);
    // The next is tried in place of one that does not fit.
    let large = Job { min_gpus: 4, ..job(4, 1.0) };
    check_plan(&ShortestFirst, &nodes(&[3]), &[large, job(5, 2.0)], &["wait impossible", "place 0=2"]);
}

#[test]
fn declared_work_counts_where_nobody_foresees() {
    let declares = |id, samples| {
        let profiled = plain::profiled(JobId(id), &["gpu"], 8);
        let knows = Known { remaining: Some(samples), request: Some(Request { gpus: 4 }), ..profiled.knows };
        Job { knows, ..asks(id, 4) }
    };
    let unknown = asks(1, 4);
    let jobs = [unknown.clone(), declares(2, 2e6), declares(3, 1e6)];
    check_plan(&ShortestFirst, &nodes(&[4]), &jobs, &["wait starved", "wait starved", "place 0=4"]);
    check_plan(&ShortestFirst, &nodes(&[8]), &jobs, &["wait starved", "place 0=4", "place 0=4"]);
    // Work without a rate is no time.
    let unreported = Job { knows: Known { remaining: Some(1.0), ..asks(1, 4).knows }, ..asks(2, 4) };
    check_plan(&ShortestFirst, &nodes(&[4]), &[unreported, unknown], &["wait starved", "place 0=4"]);
}

fn rivals() -> [Box<dyn AnyPolicy>; 5] {
    [
        Box::new(Tiresias::default()),
        Box::new(Optimus),
        Box::new(Fifo),
        Box::new(EvenShare),
        Box::new(ShortestFirst),
    ]
}

#[test]
fn nobody_moves_who_may_not_be_moved() {
    for policy in rivals() {
        let stays = Job { freedom: Freedom::NonPreemptible, ..holding(asks(3, 1), &[(0, 3)]) };
        let restarting = Job { freedom: Freedom::Restarting, ..holding(asks(4, 1), &[(1, 1)]) };
        let rigid = Job { freedom: Freedom::Rigid { gpus: 2 }, ..asks(1, 1) };
        let jobs = [rigid, asks(2, 1), stays, restarting];
        let expected = ["wait impossible", "place 0=1", "keep 0=3 pinned", "keep 1=1 restarting"];
        let mut cluster = nodes(&[4, 4]);
        // Only one GPU is left, on node 0.
        cluster.nodes[1].others = 3;
        let room_for_one = plan_carrying(&*policy, &cluster, &jobs[1..], &[]);
        assert_eq!(describe(&room_for_one), expected[1..], "{}", policy.about().name);
        cluster.nodes[0].state = NodeState::Draining;
        cluster.nodes[1].state = NodeState::Cordoned;
        let closed = plan_carrying(&*policy, &cluster, &jobs, &[]);
        let expected = ["wait impossible", "wait impossible", "keep 0=3 pinned", "keep 1=1 restarting"];
        assert_eq!(describe(&closed), expected, "{}", policy.about().name);
    }
}

#[test]
fn who_can_leaves_a_draining_node_and_stays_on_a_cordoned_one() {
    for policy in rivals() {
        let jobs =
            [0, 1].map(|node| Job { max_gpus: Some(2), ..holding(asks(u64::from(node), 2), &[(node, 2)]) });
        let jobs = jobs.map(|job| Job { min_gpus: 2, ..job });
        let mut cluster = nodes(&[4, 4, 4]);
        cluster.nodes[0].state = NodeState::Draining;
        cluster.nodes[1].state = NodeState::Cordoned;
        check_plan(&*policy, &cluster, &jobs, &["place 2=2", "keep 1=2"]);
    }
}

#[test]
fn rigid_jobs_get_what_they_ask_for() {
    for policy in rivals() {
        let rigid = Job { freedom: Freedom::Rigid { gpus: 3 }, ..asks(1, 1) };
        check_plan(&*policy, &nodes(&[4, 2]), &[rigid], &["place 0=3"]);
    }
}

#[test]
fn requests_are_kept_within_limits() {
    let policies: [&dyn AnyPolicy; 3] = [&Tiresias::default(), &Fifo, &ShortestFirst];
    for policy in policies {
        let within = Job { min_gpus: 2, max_gpus: Some(3), ..asks(1, 1) };
        check_plan(policy, &nodes(&[8]), std::slice::from_ref(&within), &["place 0=2"]);
        let knows = Known { request: Some(Request { gpus: 5 }), ..Known::default() };
        check_plan(policy, &nodes(&[8]), &[Job { knows, ..within.clone() }], &["place 0=3"]);
        check_plan(policy, &nodes(&[8]), &[Job { knows: Known::default(), ..within }], &["place 0=2"]);
    }
}

#[test]
fn a_plan_in_place_is_left_alone() {
    for seed in 0..100 {
        let snapshot = draw(&mut Dice(seed), &Shape::MIDDLING);
        for policy in rivals() {
            let name = policy.about().name;
            let plan = policy.plan(&snapshot, &Terms::seeded(seed));
            let next = in_place(&snapshot, &plan, Duration::ZERO);
            assert_eq!(allocations(&plan), holds(&next));
            let again = policy.plan(&next, &Terms::seeded(seed));
            assert_eq!(allocations(&plan), allocations(&again), "{name}, {seed}\n{snapshot:#?}");
            assert_eq!(plan.carried, again.carried, "{name}, {seed}");
        }
    }
}
