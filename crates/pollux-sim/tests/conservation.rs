//! Laws that no run may break, whatever jobs, cluster and policy: recounted from the log alone.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use common::{profiles, quick_policies, submission};
use pollux_model::{Allocation, GlobalBatch, GpuType, JobId, NodeId, Timestamp};
use pollux_policy::AnyPolicy;
use pollux_sim::faults::{Befalls, Faults};
use pollux_sim::simulation::{Options, SimulationError, simulate};
use pollux_sim::workload::{Submission, Workload};
use pollux_sim::{ClusterShape, JobOutcome, Run, What};
use proptest::prelude::*;

/// These give a job what its user asks for or nothing, so that they alone can fail to run it.
const OBEDIENT: [&str; 4] = ["tiresias", "fifo", "srtf", "gavel"];

/// What a restart takes.
const RESTART_SECS: f64 = 30.0;

/// Small jobs, close together, some of which ask for more than there is.
fn workloads() -> impl Strategy<Value = Workload> {
    let job = (0_u64..900, prop::sample::select(vec!["ncf", "cifar10"]), 1_u32..=18);
    prop::collection::vec(job, 3..=12).prop_map(|mut jobs| {
        jobs.sort_unstable();
        let rows = jobs.into_iter().enumerate();
        let jobs = rows.map(|(index, (at_secs, application, gpus))| {
            // Most users ask for little.
            submission(index, at_secs, application, if index % 3 == 0 { gpus } else { gpus.div_ceil(5) })
        });
        Workload { name: "random".to_owned(), jobs: jobs.collect() }
    })
}

fn options() -> impl Strategy<Value = Options> {
    let chance = (prop_oneof![Just(0.0), 0.0..0.3_f64], prop_oneof![Just(0.0), 0.0..0.6_f64]);
    (1_u32..=4, 1_u32..=4, chance, any::<bool>(), any::<u64>()).prop_map(
        |(n_nodes, gpus, (noise, interference), history, seed)| {
            let cluster = ClusterShape::uniform(n_nodes, gpus, &GpuType::new("t4"));
            Options { cluster, noise, interference, history, seed, ..Options::default() }
        },
    )
}

/// Nodes that fail, are taken away and grow slow far more often than anywhere, and starts that fail.
fn faults() -> impl Strategy<Value = Faults> {
    let nodes = (prop::option::of(3_600_u64..20_000), 0_u64..1_800, 60_u64..1_200);
    let taken = (prop_oneof![Just(0.0), 0.1..1.0_f64], 0_u64..600);
    let slow = (prop_oneof![Just(0.0), 0.1..3.0_f64], 0.0..0.9_f64, 60_u64..3_600);
    let chances = (prop_oneof![Just(0.0), 0.0..0.5_f64], 0.0..1.0_f64);
    (nodes, taken, slow, chances).prop_map(|((mtbf, repair, checkpoint), taken, slow, chances)| Faults {
        mtbf: mtbf.map(Duration::from_secs),
        repair: Duration::from_secs(repair),
        reclaims_per_hour: taken.0,
        warning: Duration::from_secs(taken.1),
        restart_failure: chances.0,
        stragglers_per_hour: slow.0,
        slowdown: slow.1,
        slow_for: Duration::from_secs(slow.2),
        work_error: chances.1,
        checkpoint: Duration::from_secs(checkpoint),
    })
}

/// The names of the jobs that ask for more than there is, and could use it.
fn too_large(workload: &Workload, options: &Options) -> Vec<String> {
    let profiles = profiles();
    let most = |job: &Submission| {
        let profile = &profiles[&job.application];
        let limits = profile.limits().within(GlobalBatch(job.batch), GlobalBatch(job.batch)).unwrap();
        profile.max_gpus(&GpuType::new("t4")).min(limits.max_replicas())
    };
    let is_too_large = |job: &&Submission| job.gpus.min(most(job)) > options.cluster.gpus();
    workload.jobs.iter().filter(is_too_large).map(|job| job.name.clone()).collect()
}

/// Every policy ends, with all jobs done or with those named that cannot run; and what it did adds up.
fn check_policy(policy: &dyn AnyPolicy, workload: &Workload, options: &Options) {
    let name = policy.about().name;
    let never = if OBEDIENT.contains(&name) { too_large(workload, options) } else { Vec::new() };
    match simulate(workload, &profiles(), policy, options) {
        Ok(run) => {
            assert!(never.is_empty(), "{name} ran {never:?}");
            check_jobs(name, workload, &run);
            check_log(name, &run, options);
        }
        Err(error) => assert_eq!(error, SimulationError::NeverRun(never), "{name}"),
    }
}

fn check_jobs(policy: &str, workload: &Workload, run: &Run) {
    assert_eq!(run.jobs.len(), workload.jobs.len());
    let makespan = run.jobs.iter().filter_map(|job| job.completed).max().unwrap().as_secs_f64();
    let gpu_secs: f64 = run.jobs.iter().map(|job| job.gpu_secs).sum();
    assert!(gpu_secs <= f64::from(run.gpus) * makespan * (1.0 + 1e-9), "{policy}: {gpu_secs} GPU-seconds");
    for (job, asked) in run.jobs.iter().zip(&workload.jobs) {
        let JobOutcome { gpu_secs, useful_gpu_secs, held_secs, restart_secs, redone_gpu_secs, .. } = *job;
        assert_eq!((&job.name, job.submitted.as_secs_f64()), (&asked.name, asked.at_secs as f64));
        assert!(
            job.jct_secs().unwrap() > 0.0 && job.jct_secs().unwrap() >= held_secs - 1e-6,
            "{policy}: {job:?}"
        );
        // The first start is a restart too: nobody trains without one.
        assert!(0.0 < restart_secs && restart_secs <= held_secs, "{policy}: {job:?}");
        assert!(held_secs <= gpu_secs * (1.0 + 1e-9), "{policy}: {job:?}");
        let spent = useful_gpu_secs + redone_gpu_secs;
        assert!(0.0 < useful_gpu_secs && spent <= gpu_secs * (1.0 + 1e-9), "{policy}: {job:?}");
        assert!(job.rho.unwrap() > 0.0, "{policy}: {job:?}");
    }
}

/// Recounts who held what: no node is ever overfull, nobody comes to one that is away, and what jobs held and lost adds
/// up to what their outcomes say.
fn check_log(policy: &str, run: &Run, options: &Options) {
    let mut free: BTreeMap<NodeId, u32> =
        (0..).map(NodeId).zip(options.cluster.nodes().map(|node| node.gpus)).collect();
    let mut holders: BTreeMap<JobId, (f64, Allocation)> = BTreeMap::new();
    let mut gpu_secs: BTreeMap<JobId, f64> = BTreeMap::new();
    let mut last = Timestamp::ZERO;
    let mut befell = run.log.nodes.iter().peekable();
    let mut away = BTreeSet::new();
    let mut deaths: BTreeMap<JobId, (u32, f64)> = BTreeMap::new();
    for event in &run.log.events {
        assert!(last <= event.at, "{policy}: {event:?} after {last:?}");
        last = event.at;
        while let Some(befell) = befell.next_if(|befell| befell.at <= event.at) {
            match befell.what {
                Befalls::Warned | Befalls::Lost => away.insert(befell.node),
                Befalls::Back => away.remove(&befell.node),
                Befalls::Slow | Befalls::Steady => false,
            };
        }
        let (now, job) = (event.at.as_secs_f64(), event.job);
        match &event.what {
            What::Started { allocation, .. } => {
                for (node, share) in allocation.iter() {
                    assert!(!away.contains(&node), "{policy}: {event:?}");
                    let left = free.get_mut(&node).unwrap();
                    *left =
                        left.checked_sub(share.n_replicas()).unwrap_or_else(|| panic!("{policy}: {event:?}"));
                }
                let before = holders.insert(job, (now, allocation.clone()));
                assert!(before.is_none(), "{policy}: {event:?}, but holds {before:?}");
            }
            What::Stopped | What::Failed | What::Finished => {
                let (since, allocation) = holders.remove(&job).unwrap();
                if matches!(event.what, What::Failed) {
                    // No more is lost than was trained since this start, or since the latest checkpoint.
                    let trained = (now - since - RESTART_SECS).max(0.0);
                    let most = trained.min(options.faults.checkpoint.as_secs_f64()) * allocation.gpus();
                    let (n_deaths, lost) = deaths.entry(job).or_default();
                    (*n_deaths, *lost) = (*n_deaths + 1, *lost + most);
                }
                *gpu_secs.entry(job).or_default() += (now - since) * allocation.gpus();
                for (node, share) in allocation.iter() {
                    *free.get_mut(&node).unwrap() += share.n_replicas();
                }
            }
            What::Training | What::Batch { .. } => assert!(holders.contains_key(&job), "{policy}: {event:?}"),
            What::Submitted => assert!(!gpu_secs.contains_key(&job) && !holders.contains_key(&job)),
        }
    }
    assert!(holders.is_empty() && free.values().sum::<u32>() == run.gpus, "{policy}: {holders:?}");
    for (job, (id, counted)) in run.jobs.iter().zip(gpu_secs) {
        assert!((job.gpu_secs - counted).abs() <= 1e-6 * counted, "{policy}: {job:?}, counted {counted}");
        let (n_deaths, most) = deaths.remove(&id).unwrap_or_default();
        assert_eq!(job.failures, n_deaths, "{policy}: {job:?}");
        assert!(job.redone_gpu_secs <= most + 1e-3, "{policy}: {job:?}, at most {most}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_policy_keeps_the_laws(workload in workloads(), options in options()) {
        for policy in quick_policies() {
            check_policy(policy.as_ref(), &workload, &options);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_policy_keeps_the_laws_when_things_go_wrong(
        workload in workloads(),
        options in options(),
        faults in faults(),
    ) {
        let options = Options { faults, ..options };
        for policy in quick_policies() {
            check_policy(policy.as_ref(), &workload, &options);
        }
    }
}
