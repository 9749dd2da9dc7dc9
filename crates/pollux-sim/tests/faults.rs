//! What each kind of fault does to a run, and what it does not.

mod common;

use common::{profiles, quick_policies, submission};
use pollux_policy::{AnyPolicy, Fifo, Pollux, Settings};
use pollux_sim::faults::{Befalls, NodeEvent};
use pollux_sim::simulation::{Options, SimulationError, simulate};
use pollux_sim::workload::Workload;
use pollux_sim::{Run, What};

/// Medium and small jobs on a cluster that is too small for all of them.
fn crowd() -> Workload {
    let job = |index: usize| {
        let application = ["bert", "cifar10", "ncf"][index % 3];
        submission(index, 300 * index as u64, application, [3, 2, 1][index % 3])
    };
    Workload { name: "crowd".to_owned(), jobs: (0..9).map(job).collect() }
}

/// One job of an hour or so on one GPU.
fn alone() -> Workload {
    Workload { name: "alone".to_owned(), jobs: vec![submission(0, 0, "bert", 1)] }
}

fn options(cluster: &str, faults: &str, seed: u64) -> Options {
    let faults =
        if faults.is_empty() { pollux_sim::faults::Faults::default() } else { faults.parse().unwrap() };
    Options { cluster: cluster.parse().unwrap(), faults, seed, ..Options::default() }
}

fn run(policy: &dyn AnyPolicy, workload: &Workload, cluster: &str, faults: &str, seed: u64) -> Run {
    let run = simulate(workload, &profiles(), policy, &options(cluster, faults, seed));
    run.unwrap_or_else(|error| panic!("{}, {faults}: {error}", policy.about().name))
}

fn failures(run: &Run) -> u32 {
    run.jobs.iter().map(|job| job.failures).sum()
}

fn redone(run: &Run) -> f64 {
    run.jobs.iter().map(|job| job.redone_gpu_secs).sum()
}

fn makespan(run: &Run) -> f64 {
    run.jobs.iter().filter_map(|job| job.completed).max().unwrap().as_secs_f64()
}

/// Everything that is known of a run but its rounds.
fn kept(run: &Run) -> String {
    format!("{:?}", run.jobs) + &run.log.to_csv(|_| "")
}

#[test]
fn every_job_comes_back_from_a_lost_node() {
    for policy in quick_policies() {
        let run = run(policy.as_ref(), &crowd(), "4x4:t4", "mtbf=4h,repair=30m,checkpoint=5m", 1);
        let name = policy.about().name;
        assert!(run.jobs.iter().all(|job| job.completed.is_some()), "{name}");
        assert!(failures(&run) > 0 && redone(&run) > 0.0, "{name}: {} failures", failures(&run));
    }
}

#[test] // The nodes' fates are the same as long as both runs last.
fn all_policies_meet_the_same_faults() {
    let faults = "mtbf=4h,repair=30m,reclaim=0.1,straggler=0.5";
    let of = |policy: &dyn AnyPolicy| run(policy, &crowd(), "4x4:t4", faults, 3);
    let first = of(&Fifo);
    for policy in quick_policies() {
        let other = of(policy.as_ref());
        let until = makespan(&first).min(makespan(&other));
        let before = |run: &Run| -> Vec<NodeEvent> {
            run.log.nodes.iter().copied().filter(|event| event.at.as_secs_f64() < until).collect()
        };
        assert!(before(&first).len() > 5);
        assert_eq!(before(&first), before(&other), "{}", policy.about().name);
    }
}

#[test] // A start takes 30 s, its first report 30 s more, and the next round comes within six minutes, Gavel's.
fn who_is_warned_in_time_loses_no_work() {
    for policy in quick_policies() {
        let name = policy.about().name;
        let run = run(policy.as_ref(), &crowd(), "4x4:t4", "reclaim=0.5,warning=7m,repair=10m", 2);
        let lost = run.log.nodes.iter().filter(|event| event.what == Befalls::Lost).count();
        assert!(lost > 3, "{name}: {lost} nodes were taken away");
        assert!(redone(&run) <= 0.0, "{name}: {} GPU-seconds lost", redone(&run));
    }
}

#[test]
fn who_is_warned_too_late_loses_work() {
    let run = run(&Fifo, &crowd(), "4x4:t4", "reclaim=0.5,warning=0s,repair=10m", 2);
    assert!(redone(&run) > 0.0 && failures(&run) > 0);
}

#[test] // On the only node, each loss costs the repair and what was not saved: at most 60 s a time.
fn checkpoints_limit_what_is_lost() {
    let of = |checkpoint: &str| {
        let faults = format!("mtbf=30m,repair=5m,checkpoint={checkpoint}");
        run(&Fifo, &alone(), "1x1:t4", &faults, 5)
    };
    let (often, seldom) = (of("1m"), of("20m"));
    let job = &often.jobs[0];
    assert!(job.failures > 1 && job.redone_gpu_secs <= 60.0 * f64::from(job.failures) + 1e-3, "{job:?}");
    assert!(redone(&seldom) > 3.0 * redone(&often), "{} {}", redone(&seldom), redone(&often));
    assert!(makespan(&seldom) > makespan(&often));
}

#[test] // It never gets as far as its first checkpoint.
fn a_job_that_always_dies_before_it_saves_is_named() {
    let options = options("1x1:t4", "mtbf=5m,repair=1m,checkpoint=5h", 1);
    let error = simulate(&alone(), &profiles(), &Fifo, &options).unwrap_err();
    assert_eq!(error, SimulationError::Hopeless(vec!["bert-0".to_owned()]));
}

#[test] // Three of ten starts: a job is tried until it runs, and waits longer each time.
fn nobody_is_given_up_because_starts_fail() {
    for policy in quick_policies() {
        let name = policy.about().name;
        let run = run(policy.as_ref(), &crowd(), "4x4:t4", "restart-failure=0.3", 4);
        assert!(run.jobs.iter().all(|job| job.completed.is_some()), "{name}");
        assert!(failures(&run) > 0 && redone(&run) <= 0.0, "{name}");
        let failed = run.log.events.iter().filter(|event| matches!(event.what, What::Failed)).count();
        assert_eq!(failed, failures(&run) as usize, "{name}");
    }
}

#[test] // From its first minute or so on the node does half as much.
fn a_slow_node_slows_its_jobs() {
    let of = |faults: &str| makespan(&run(&Fifo, &alone(), "1x1:t4", faults, 1));
    let factor = of("straggler=60,slowdown=0.5,slow-for=100d") / of("");
    assert!((1.9..2.0).contains(&factor), "{factor}");
}

#[test] // Who believes what users declare plans otherwise; who does not, does not.
fn misjudged_work_matters_to_those_who_ask_for_it_alone() {
    let of = |policy: &dyn AnyPolicy, faults: &str| kept(&run(policy, &crowd(), "2x4:t4", faults, 1));
    for policy in quick_policies() {
        let name = policy.about().name;
        let differs = of(policy.as_ref(), "work-error=2") != of(policy.as_ref(), "");
        let believes = ["pollux", "pollux-size-aware", "srtf"].contains(&name);
        assert!(!differs || believes, "{name}");
        assert!(differs || name != "pollux-size-aware", "{name}");
    }
}

#[test]
fn what_is_off_changes_nothing() {
    let policy = Pollux { settings: Settings::TUNED };
    let of = |faults: &str| kept(&run(&policy, &crowd(), "4x4:t4", faults, 1));
    assert_eq!(of(""), of("reclaim=0,straggler=0,restart-failure=0,work-error=0"));
}
