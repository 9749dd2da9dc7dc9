//! Plans with any numbers in them are kept.

use std::sync::Arc;
use std::time::Duration;

use pollux_api::journal;
use pollux_core::{Config, CycleId, Input, ScaleRule, Scaler};
use pollux_model::{Allocation, GpuShare, GpuType, JobId, NodeId};
use pollux_policy::{
    Against, Cadence, Carried, Certificate, Decision, GroupId, JobPlan, Limit, Plan, Population, Reason,
    Seed, Served, Starved, Step, Stopped, Work,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{cases, check_input};

/// Any float; of those that are no number, the one there is.
fn float() -> impl Strategy<Value = f64> {
    let odd =
        select(vec![f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.0, -0.0, f64::MIN_POSITIVE, f64::MAX]);
    prop_oneof![4 => prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL, 1 => odd]
}

fn gpu_type() -> impl Strategy<Value = GpuType> {
    "\\PC{0,6}".prop_map(|name| GpuType::new(&name))
}

fn allocation() -> impl Strategy<Value = Allocation> {
    let whole = vec((any::<u32>(), any::<u32>()), 0..4)
        .prop_map(|counts| Allocation::whole(counts.into_iter().map(|(node, count)| (NodeId(node), count))));
    let part = (any::<u32>(), 1_u32..1_000).prop_map(|(node, thousandths)| {
        Allocation::part_of_one(NodeId(node), GpuShare::part_of_one(thousandths).unwrap()).unwrap()
    });
    prop_oneof![4 => whole, 1 => part]
}

fn limit() -> impl Strategy<Value = Limit> {
    let bare = vec![
        Limit::Unstated,
        Limit::Price,
        Limit::NoGain,
        Limit::OwnMaximum,
        Limit::Exploration,
        Limit::NodeSize,
        Limit::RestartPrice,
        Limit::Packing,
        Limit::Pinned,
        Limit::Restarting,
        Limit::Unprofiled,
        Limit::Starved,
        Limit::Impossible,
    ];
    let group = || (any::<u32>().prop_map(GroupId), gpu_type());
    prop_oneof![
        select(bare),
        group().prop_map(|(group, gpu_type)| Limit::GroupCap { group, gpu_type }),
        group().prop_map(|(group, gpu_type)| Limit::Reserved { group, gpu_type }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    (any::<u32>(), float(), option::of(float()), float(), float()).prop_map(
        |(gpus, speedup, at_least, worth, at_most)| Step { gpus, speedup, at_least, worth, at_most },
    )
}

fn job_plan() -> impl Strategy<Value = JobPlan> {
    let decision = select(vec![Decision::Keep, Decision::Place, Decision::Wait, Decision::Reject]);
    let against = select(vec![Against::FairShare, Against::OneGpu]);
    let reason = (option::of(float()), against, option::of(step()), option::of(step()), limit())
        .prop_map(|(speedup, against, more, fewer, limit)| Reason { speedup, against, more, fewer, limit });
    (any::<u64>(), decision, allocation(), reason).prop_map(|(job, decision, allocation, reason)| JobPlan {
        job: JobId(job),
        decision,
        allocation,
        reason,
    })
}

fn starved() -> impl Strategy<Value = Starved> {
    any::<[u32; 3]>().prop_map(|[high, normal, low]| Starved { high, normal, low })
}

fn certificate() -> impl Strategy<Value = Certificate> {
    (float(), float(), starved(), starved(), any::<u32>()).prop_map(
        |(value, bound, starved, starved_bound, n_running)| Certificate {
            value,
            bound,
            starved,
            starved_bound,
            n_running,
        },
    )
}

fn carried() -> impl Strategy<Value = Carried> {
    let population = (vec(any::<u64>(), 0..3), vec(any::<u32>(), 0..3), vec(vec(any::<u32>(), 0..3), 0..3))
        .prop_map(|(jobs, nodes, members)| {
            let jobs = jobs.into_iter().map(JobId).collect();
            Arc::new(Population { jobs, nodes: nodes.into_iter().map(NodeId).collect(), members })
        });
    let served = (btree_map(gpu_type(), float(), 0..3), option::of(gpu_type()), float())
        .prop_map(|(secs, last, attained)| Served { secs, last, attained });
    let queue = vec(any::<u64>().prop_map(JobId), 0..4);
    let served = btree_map(any::<u64>().prop_map(JobId), served, 0..3);
    (btree_map(gpu_type(), float(), 0..3), option::of(population), queue, served)
        .prop_map(|(prices, population, queue, served)| Carried { prices, population, queue, served })
}

fn plan() -> impl Strategy<Value = Plan> {
    let stopped = select(vec![Stopped::Done, Stopped::GoodEnough, Stopped::Budget, Stopped::Deadline]);
    let work = (any::<u64>(), any::<u64>(), stopped).prop_map(|(units, budget, stopped)| Work {
        units,
        budget,
        stopped,
    });
    (vec(job_plan(), 0..4), option::of(certificate()), work, carried())
        .prop_map(|(jobs, certificate, work, carried)| Plan { jobs, certificate, work, carried })
}

fn duration() -> impl Strategy<Value = Duration> {
    (any::<u64>(), 0_u32..1_000_000_000).prop_map(|(secs, nanos)| Duration::new(secs, nanos))
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn every_plan_is_kept(plan in plan(), cycle: u64) {
        let json = journal::plan_to_json(&plan);
        let again = journal::plan_from_json(&json).unwrap();
        // This text tells any two floats apart, but those that are no number.
        prop_assert_eq!(format!("{again:?}"), format!("{plan:?}"));
        prop_assert_eq!(journal::plan_to_json(&again), json);
        check_input(&Input::PlanReady(CycleId(cycle), plan));
    }

    #[test]
    fn every_config_is_kept(
        every in duration(),
        on_events in option::of(duration()),
        waits in (duration(), duration(), duration()),
        seed: u64,
        history: bool,
        remember_ended: usize,
        scaler in option::of((float(), 0..3, duration())),
    ) {
        let rule = |number, which| match which {
            0 => ScaleRule::Goodput { low: number, high: -number },
            1 => ScaleRule::Cost { job_hour: number },
            _ => ScaleRule::Throughput { worth: number },
        };
        let config = Config {
            cadence: Cadence { every, on_events },
            seed: Seed(seed),
            restart_cost: waits.0,
            history,
            back_off: waits.1,
            longest_back_off: waits.2,
            remember_ended,
            scaler: scaler.map(|(number, which, patience)| Scaler { rule: rule(number, which), patience }),
        };
        let again = journal::config_from_json(&journal::config_to_json(&config)).unwrap();
        prop_assert_eq!(format!("{again:?}"), format!("{config:?}"));
    }
}
