//! One seed gives one run, to the byte; another seed gives another where chance plays.
#![allow(clippy::print_stderr, reason = "what was not compared is said")]

mod common;

use common::{profiles, quick_policies, reference, submission};
use pollux_policy::{AnyPolicy, Fifo, Genetic, Pollux, Settings};
use pollux_sim::campaign::{World, jobs_csv, timeline_csv};
use pollux_sim::faults::Faults;
use pollux_sim::osdi21::{self, Limits};
use pollux_sim::simulation::Options;
use pollux_sim::workload::{Checks, Workload, read_workload};
use pollux_sim::{JobOutcome, RoundStats};

/// Everything that is known of a run: its log and jobs as text, and the figures before they were rounded.
fn kept(
    world: &World,
    jobs: &Workload,
    policy: &dyn AnyPolicy,
    seed: u64,
) -> (String, Vec<JobOutcome>, RoundStats) {
    let run = world.simulate(jobs, policy, seed).unwrap_or_else(|error| panic!("{error}"));
    (timeline_csv(&run) + &jobs_csv(&run), run.jobs, run.rounds)
}

/// Two applications on a cluster in which they must share, and disturb each other.
fn crowd() -> Workload {
    let job = |index: usize| {
        let application = if index.is_multiple_of(3) { "ncf" } else { "cifar10" };
        submission(index, 200 * index as u64, application, [1, 2, 3, 4][index % 4])
    };
    Workload { name: "crowd".to_owned(), jobs: (0..7).map(job).collect() }
}

fn world(noise: f64) -> World {
    world_with(noise, Faults::default())
}

fn world_with(noise: f64, faults: Faults) -> World {
    let cluster = "3x2:t4".parse().unwrap();
    let options = Options { cluster, noise, interference: 0.3, history: true, faults, ..Options::default() };
    World::Profiles { profiles: profiles(), options }
}

/// The same where everything goes wrong that can.
fn faulty() -> World {
    let faults =
        "mtbf=2h,repair=20m,reclaim=0.3,restart-failure=0.2,straggler=1,work-error=0.5,checkpoint=5m";
    world_with(0.2, faults.parse().unwrap())
}

#[test]
fn one_seed_gives_one_run() {
    let jobs = crowd();
    for world in [world(0.2), faulty()] {
        for policy in quick_policies() {
            let first = kept(&world, &jobs, policy.as_ref(), 7);
            assert_eq!(kept(&world, &jobs, policy.as_ref(), 7), first, "{}", policy.about().name);
        }
    }
}

#[test] // Agents measure otherwise, so the log is another. Where nothing is random the seed is nothing.
fn another_seed_gives_another_run_where_chance_plays() {
    let (jobs, pollux) = (crowd(), Pollux { settings: Settings::TUNED });
    assert_ne!(kept(&world(0.2), &jobs, &pollux, 1).0, kept(&world(0.2), &jobs, &pollux, 2).0);
    assert_eq!(kept(&world(0.0), &jobs, &Fifo, 1), kept(&world(0.0), &jobs, &Fifo, 2));
    assert_ne!(kept(&faulty(), &jobs, &Fifo, 1).0, kept(&faulty(), &jobs, &Fifo, 2).0);
}

#[test] // In the artifact's world measurements are exact: what is left to chance is the policy's search.
fn the_artifacts_world_is_repeated_too() {
    let Some(reference) = reference() else { return };
    let named = reference.applications.iter();
    let applications =
        named.map(|application| (application.limits().name.to_owned(), application.clone())).collect();
    let options = osdi21::Options {
        cluster: "4x4:t4".parse().unwrap(),
        interference: 0.3,
        history: true,
        ..osdi21::Options::default()
    };
    let world = World::Osdi21 { applications, options };
    let file = reference.data.join("pollux-osdi21/workloads/workload-1.csv");
    let mut jobs = read_workload(&file, Checks::known(&Limits::known())).unwrap();
    jobs.jobs.retain(|job| ["ncf", "cifar10", "bert"].contains(&job.application.as_str()) && job.gpus <= 16);
    jobs.jobs.truncate(12);
    for policy in quick_policies() {
        let first = kept(&world, &jobs, policy.as_ref(), 7);
        assert_eq!(kept(&world, &jobs, policy.as_ref(), 7), first, "{}", policy.about().name);
    }
    let genetic = Genetic::osdi21();
    assert_ne!(kept(&world, &jobs, &genetic, 7).0, kept(&world, &jobs, &genetic, 8).0);
    eprintln!("{} jobs in the artifact's world, twice under each policy", jobs.jobs.len());
}
