//! Gavel and type-blind Pollux, rule by rule. The numbers can be done in one's head.

mod common;
#[allow(dead_code, reason = "the names are for scenarios")]
#[path = "decisions/models.rs"]
mod models;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::check::check;
use common::plain;
use common::rounds::in_place;
use pollux_model::{Allocation, GpuType, JobCurves, JobId, NodeId};
use pollux_policy::{
    AnyPolicy, Cluster, Gavel, Job, Known, Learned, Objective, Oracle, Plan, Request, Snapshot, Terms,
    TypeBlind,
};

/// Nodes 0, 1, .. of a type and with so many GPUs.
fn nodes(nodes: &[(&str, u32)]) -> Cluster {
    let nodes = (0..).zip(nodes).map(|(id, &(name, gpus))| plain::node(NodeId(id), name, gpus));
    Cluster { nodes: nodes.collect(), ..Cluster::default() }
}

/// A job that asks for so many GPUs and makes so many iterations a second on each type, on however many of them.
fn gauged(id: u64, gpus: u32, rates: &[(&str, f64)]) -> Job {
    let steps = |rate: f64| -> Arc<[f64]> { (0..8).map(|_| 1.0 / rate).collect() };
    let by_type: BTreeMap<GpuType, Arc<[f64]>> =
        rates.iter().map(|(name, rate)| (GpuType::new(name), steps(*rate))).collect();
    let oracle = Oracle { step_secs_by_type: Arc::new(by_type), max_gpus: 8, ..Oracle::default() };
    let knows = Known { request: Some(Request { gpus }), oracle: Some(oracle), ..Known::default() };
    Job { age: Duration::from_secs(1_000 - id), knows, ..plain::job(JobId(id)) }
}

fn snapshot(cluster: &Cluster, jobs: &[Job]) -> Snapshot {
    Snapshot::new(cluster.clone(), jobs.to_vec()).expect("a snapshot")
}

fn planned(policy: &dyn AnyPolicy, snapshot: &Snapshot) -> Plan {
    let plan = policy.plan(snapshot, &Terms::seeded(1));
    check(snapshot, &plan).unwrap_or_else(|wrong| panic!("{wrong}\n{plan:#?}"));
    plan
}

/// What becomes of each job: `keep 0=2 1=1`.
fn describe(plan: &Plan) -> Vec<String> {
    let line = |answer: &pollux_policy::JobPlan| {
        let places =
            answer.allocation.iter().map(|(node, share)| format!(" {}={}", node.0, share.n_replicas()));
        format!("{:?}", answer.decision).to_lowercase() + &places.collect::<String>()
    };
    plan.jobs.iter().map(line).collect()
}

fn check_plan(policy: &dyn AnyPolicy, snapshot: &Snapshot, expected: &[&str]) {
    assert_eq!(describe(&planned(policy, snapshot)), expected);
}

const FAIR: Gavel = Gavel { objective: Objective::Fairness };
const FAST: Gavel = Gavel { objective: Objective::Throughput };

#[test] // Two jobs and one GPU of each type: the first gains 4 - 1 on the A100, the second 2 - 1.
fn throughput_puts_each_where_it_adds_most() {
    let both = nodes(&[("t4", 1), ("a100", 1)]);
    let jobs = [gauged(1, 1, &[("t4", 1.0), ("a100", 4.0)]), gauged(2, 1, &[("t4", 1.0), ("a100", 2.0)])];
    check_plan(&FAST, &snapshot(&both, &jobs), &["place 1=1", "place 0=1"]);
    let turned = [jobs[1].clone(), jobs[0].clone()];
    check_plan(&FAST, &snapshot(&both, &turned), &["place 0=1", "place 1=1"]);
}

#[test] // Equal jobs have half of each type each: they change places from round to round.
fn fairness_takes_turns() {
    let both = nodes(&[("t4", 1), ("a100", 1)]);
    let equal = |id| gauged(id, 1, &[("t4", 1.0), ("a100", 4.0)]);
    let first = snapshot(&both, &[equal(1), equal(2)]);
    let plan = planned(&FAIR, &first);
    assert_eq!(describe(&plan), ["place 1=1", "place 0=1"]);
    let second = in_place(&first, &plan, Duration::from_mins(6));
    let plan = planned(&FAIR, &second);
    assert_eq!(describe(&plan), ["place 0=1", "place 1=1"]);
    let served = &plan.carried.served[&JobId(1)];
    assert_eq!(served.secs, BTreeMap::from([(GpuType::new("a100"), 360.0)]));
    // Both have had six minutes of each: the oldest goes first again.
    let third = in_place(&second, &plan, Duration::from_mins(6));
    check_plan(&FAIR, &third, &["place 1=1", "place 0=1"]);
}

#[test] // Three jobs for two GPUs: who has had least comes first.
fn who_waited_comes_first() {
    let two = nodes(&[("t4", 2)]);
    let jobs: Vec<Job> = (1..4).map(|id| gauged(id, 1, &[("t4", 1.0)])).collect();
    let first = snapshot(&two, &jobs);
    let plan = planned(&FAIR, &first);
    assert_eq!(describe(&plan), ["place 0=1", "place 0=1", "wait"]);
    let second = in_place(&first, &plan, Duration::from_mins(6));
    check_plan(&FAIR, &second, &["keep 0=1", "wait", "place 0=1"]);
}

#[test]
fn users_get_what_they_ask_for_or_nothing() {
    let types = nodes(&[("t4", 4), ("a100", 2)]);
    let rates = [("t4", 1.0), ("a100", 4.0)];
    check_plan(&FAIR, &snapshot(&types, &[gauged(1, 3, &rates)]), &["place 0=3"]);
    check_plan(&FAIR, &snapshot(&types, &[gauged(1, 5, &rates)]), &["wait"]);
    // It was never measured on a T4, so it cannot run there.
    check_plan(&FAIR, &snapshot(&types, &[gauged(1, 2, &rates[1..])]), &["place 1=2"]);
    check_plan(&FAIR, &snapshot(&types, &[gauged(1, 4, &rates[1..])]), &["wait"]);
    assert_eq!(AnyPolicy::cadence(&FAIR).every, Duration::from_mins(6));
}

/// A job seen on eight GPUs, with a linear model on each type at a speed.
fn linear(id: u64, on: &[(&str, f64)]) -> Job {
    let models = on.iter().map(|(name, speed)| {
        (GpuType::new(name), models::model("linear", *speed).expect("a model of this name"))
    });
    let mut curves = JobCurves::default();
    curves.update(models.collect(), 8, 64);
    let learned = Learned { curves: Arc::new(curves), most_gpus: 8 };
    Job { knows: Known { learned, ..Known::default() }, ..plain::job(JobId(id)) }
}

#[test]
fn who_is_blind_to_types_keeps_the_one_with_most_compute() {
    let blind = TypeBlind::default();
    let job = linear(1, &[("t4", 1.0), ("a100", 4.0)]);
    let types = nodes(&[("t4", 4), ("a100", 2)]);
    // All six GPUs in its eyes; four of them are of one type.
    check_plan(&blind, &snapshot(&types, std::slice::from_ref(&job)), &["place 0=4"]);
    // Two A100 are as much as eight T4, if the cluster says so.
    let told = Cluster { speeds: [(GpuType::new("a100"), 4.0)].into(), ..types.clone() };
    check_plan(&blind, &snapshot(&told, std::slice::from_ref(&job)), &["place 1=2"]);
    let only = Job { types: [GpuType::new("t4")].into(), ..job.clone() };
    check_plan(&blind, &snapshot(&told, &[only]), &["place 0=4"]);
    // Too few of either.
    check_plan(&blind, &snapshot(&types, &[Job { min_gpus: 5, ..job }]), &["wait"]);
}

#[test] // Each is better off on the other's GPUs, which it cannot see.
fn who_is_blind_to_types_changes_nothing_that_looks_even() {
    let types = nodes(&[("t4", 2), ("a100", 2)]);
    let on = |job: Job, node| Job { holds: Allocation::whole([(NodeId(node), 2)]), ..job };
    let much = on(linear(1, &[("t4", 1.0), ("a100", 4.0)]), 0);
    let little = on(linear(2, &[("t4", 1.0), ("a100", 1.1)]), 1);
    check_plan(&TypeBlind::default(), &snapshot(&types, &[much, little]), &["keep 0=2", "keep 1=2"]);
}
