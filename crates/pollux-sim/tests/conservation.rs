//! Laws that no run may break, whatever jobs, cluster and policy: recounted from the log alone.

mod common;

use std::collections::BTreeMap;

use common::{profiles, quick_policies, submission};
use pollux_model::{Allocation, GlobalBatch, GpuType, JobId, NodeId, Timestamp};
use pollux_policy::AnyPolicy;
use pollux_sim::simulation::{Options, SimulationError, simulate};
use pollux_sim::workload::{Submission, Workload};
use pollux_sim::{ClusterShape, JobOutcome, Run, What};
use proptest::prelude::*;

/// These give a job what its user asks for or nothing, so that they alone can fail to run it.
const OBEDIENT: [&str; 3] = ["tiresias", "fifo", "srtf"];

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
        let JobOutcome { gpu_secs, useful_gpu_secs, held_secs, restart_secs, .. } = *job;
        assert_eq!((&job.name, job.submitted.as_secs_f64()), (&asked.name, asked.at_secs as f64));
        assert!(
            job.jct_secs().unwrap() > 0.0 && job.jct_secs().unwrap() >= held_secs - 1e-6,
            "{policy}: {job:?}"
        );
        // The first start is a restart too: nobody trains without one.
        assert!(0.0 < restart_secs && restart_secs <= held_secs, "{policy}: {job:?}");
        assert!(held_secs <= gpu_secs * (1.0 + 1e-9), "{policy}: {job:?}");
        assert!(0.0 < useful_gpu_secs && useful_gpu_secs <= gpu_secs, "{policy}: {job:?}");
        assert!(job.rho.unwrap() > 0.0, "{policy}: {job:?}");
    }
}

/// Recounts who held what: no node is ever overfull, and what jobs held adds up to what their outcomes say.
fn check_log(policy: &str, run: &Run, options: &Options) {
    let mut free: BTreeMap<NodeId, u32> =
        (0..).map(NodeId).zip(options.cluster.nodes().map(|node| node.gpus)).collect();
    let mut holders: BTreeMap<JobId, (f64, Allocation)> = BTreeMap::new();
    let mut gpu_secs: BTreeMap<JobId, f64> = BTreeMap::new();
    let mut last = Timestamp::ZERO;
    for event in &run.log.events {
        assert!(last <= event.at, "{policy}: {event:?} after {last:?}");
        last = event.at;
        let (now, job) = (event.at.as_secs_f64(), event.job);
        match &event.what {
            What::Started { allocation, .. } => {
                for (node, share) in allocation.iter() {
                    let left = free.get_mut(&node).unwrap();
                    *left =
                        left.checked_sub(share.n_replicas()).unwrap_or_else(|| panic!("{policy}: {event:?}"));
                }
                let before = holders.insert(job, (now, allocation.clone()));
                assert!(before.is_none(), "{policy}: {event:?}, but holds {before:?}");
            }
            What::Stopped | What::Finished => {
                let (since, allocation) = holders.remove(&job).unwrap();
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
    for (job, (_, counted)) in run.jobs.iter().zip(gpu_secs) {
        assert!((job.gpu_secs - counted).abs() <= 1e-6 * counted, "{policy}: {job:?}, counted {counted}");
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
