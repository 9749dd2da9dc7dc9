//! What a job is worth on a type of GPU that it has not run on.

mod common;

use std::collections::BTreeMap;

use common::reports::report_of;
use common::{World, adapting, minutely};
use pollux_core::{Input, JobSpec};
use pollux_model::{AgentReport, GpuType, JobId, Placement};

/// One node of T4 and one of A100; jobs 1, 2, .. of these applications run on a T4 each.
fn world(applications: &[&str]) -> World {
    let mut world = World::of(minutely(), &[4]);
    world.join(1, "a100", 4);
    let jobs = || (1..).zip(applications);
    for (job, application) in jobs() {
        let application = Some((*application).into()).filter(|_| !application.is_empty());
        world.submit(job, JobSpec { application, ..adapting() });
    }
    let places: Vec<(u64, &[(u32, u32)])> = jobs().map(|(job, _)| (job, &[(0, 1)][..])).collect();
    world.round(&places);
    for (job, _) in jobs() {
        world.train(job);
    }
    world
}

/// A report from one type, whose fit has so many seconds for each sample and nothing else that counts.
fn on_type(gpu_type: &str, secs_per_sample: f64) -> AgentReport {
    let mut report = report_of(1.0, secs_per_sample, 1);
    let mut fit = report.fits.remove(&GpuType::new("t4")).unwrap();
    fit.params = fit.params.scaled(1.0);
    if let pollux_model::Compute::Linear { alpha, .. } = &mut fit.params.grad {
        *alpha = 0.0;
    }
    report.fits = BTreeMap::from([(GpuType::new(gpu_type), fit)]);
    report
}

fn tell(world: &mut World, job: u64, reports: &[(&str, f64)]) {
    let mut report = on_type(reports[0].0, reports[0].1);
    for (gpu_type, secs) in &reports[1..] {
        report.fits.extend(on_type(gpu_type, *secs).fits);
    }
    world.tell(Input::JobReported(JobId(job), report));
}

/// How much faster the policy is shown a job on one A100 than on one T4, by its own curves.
fn shown_ratio(world: &World, job: u64) -> Option<f64> {
    let curves = &world.shown(job).unwrap().knows.learned.curves;
    let alone = |gpu_type| Some(curves.on(&GpuType::new(gpu_type))?.goodput(Placement::ALONE));
    Some((alone("a100")? / alone("t4")?).ratio())
}

#[track_caller]
fn check_speed(world: &World, expected: f64) {
    let (_, snapshot, _) = world.asked.as_ref().unwrap();
    let speed = |gpu_type| snapshot.cluster().speeds[&GpuType::new(gpu_type)];
    let found = speed("a100") / speed("t4");
    assert!((found / expected - 1.0).abs() < 1e-9, "{found}, not {expected}");
}

#[test] // Job 1 is four times as fast on an A100; job 2 of its application has seen T4 alone.
fn an_application_teaches_its_own_ratio() {
    let mut world = world(&["bert", "bert", "other"]);
    tell(&mut world, 1, &[("t4", 0.004), ("a100", 0.001)]);
    tell(&mut world, 2, &[("t4", 0.008)]);
    tell(&mut world, 3, &[("t4", 0.008)]);
    world.ask();
    assert!((shown_ratio(&world, 1).unwrap() - 4.0).abs() < 1e-9);
    // What is known of T4 is now the later report: 0.008 s against 0.001 s.
    assert!((shown_ratio(&world, 2).unwrap() - 8.0).abs() < 1e-9);
    assert_eq!(shown_ratio(&world, 3), None, "another application's curves are its own");
    check_speed(&world, 8.0);
}

#[test] // Twice, three times and eight times as fast.
fn others_are_taken_for_the_median() {
    let mut world = world(&["a", "b", "", "d"]);
    for (job, secs) in [(1, 0.001), (2, 0.002 / 3.0), (3, 0.000_25)] {
        tell(&mut world, job, &[("t4", 0.002), ("a100", secs)]);
    }
    tell(&mut world, 4, &[("t4", 0.002)]);
    world.ask();
    assert_eq!(shown_ratio(&world, 4), None);
    check_speed(&world, 3.0);
}

#[test]
fn before_anything_ran_on_both_the_data_sheet_counts() {
    let mut world = world(&["a"]);
    tell(&mut world, 1, &[("t4", 0.002)]);
    world.ask();
    check_speed(&world, 19.5 / 8.1);
}

#[test]
fn one_type_alone_has_no_speed() {
    let mut world = World::with_running(minutely(), &[4], &[(1, &[(0, 2)])]);
    world.ask();
    let (_, snapshot, _) = world.asked.as_ref().unwrap();
    assert!(snapshot.cluster().speeds.is_empty());
}
