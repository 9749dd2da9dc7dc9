//! The instances the policies are tested and measured on are what they claim to be.

mod common;

use std::collections::BTreeMap;

use common::instances::{Instance, application_among, applications, with_fresh_tables};
use pollux_model::{GpuType, Placement};
use pollux_policy::{Job, Snapshot, policies};

fn shown(snapshot: &Snapshot) -> String {
    format!("{:?} {:?}", snapshot.cluster(), snapshot.jobs())
}

#[test]
fn one_seed_one_instance() {
    let instance = Instance { types: 2, groups: 2, ..Instance::new(4, 8, 10, 7) };
    assert_eq!(shown(&instance.cold()), shown(&instance.cold()));
    let policy = &*policies()[0];
    assert_eq!(shown(&instance.warm(policy)), shown(&instance.warm(policy)));
    assert_ne!(shown(&instance.cold()), shown(&Instance { seed: 8, ..instance }.cold()));
}

#[test]
fn applications_are_drawn_in_their_shares() {
    let snapshot = Instance::new(64, 8, 4_000, 1).cold();
    let applications = applications();
    let mut counts = BTreeMap::<String, u32>::new();
    for job in snapshot.jobs() {
        *counts.entry(application_among(&applications, job).name.clone()).or_default() += 1;
    }
    let expected =
        [("bert", 10), ("cifar10", 36), ("deepspeech2", 10), ("imagenet", 2), ("ncf", 36), ("yolov3", 6)];
    for (name, percent) in expected {
        let drawn = f64::from(counts[name]) / 40.0;
        assert!((drawn - f64::from(percent)).abs() < 2.5, "{name}: {drawn} %");
    }
}

#[test]
fn jobs_grow_to_what_their_batches_allow_and_no_further_than_256() {
    let applications = applications();
    let most = |job: &Job| (application_among(&applications, job).name.clone(), job.max_gpus.unwrap());
    let mut found: Vec<_> = Instance::new(4, 4, 400, 3).cold().jobs().iter().map(most).collect();
    found.sort();
    found.dedup();
    let expected = [
        ("bert", 96),
        ("cifar10", 128),
        ("deepspeech2", 64),
        ("imagenet", 256),
        ("ncf", 256),
        ("yolov3", 128),
    ];
    assert_eq!(found, expected.map(|(name, gpus)| (name.to_owned(), gpus)));
}

#[test]
fn a_warm_round_follows_a_cold_one() {
    let instance = Instance::new(16, 4, 1_000, 5);
    let (cold, warm) = (instance.cold(), instance.warm(&*policies()[0]));
    let goodput = |job: &Job| {
        job.knows.learned.curves.on(&GpuType::new("t4")).unwrap().model().best_goodput(Placement::ALONE)
    };
    let pairs = || cold.jobs().iter().zip(warm.jobs());
    let new = pairs().filter(|(before, now)| before.id != now.id).count();
    let changed =
        pairs().filter(|(before, now)| before.id == now.id && goodput(before) != goodput(now)).count();
    assert!((20..=80).contains(&new), "{new} of 1000 new");
    assert!((60..=140).contains(&changed), "{changed} of 1000 changed");
    let one_more = instance.one_more(&cold, &policies()[0].plan(&cold, &pollux_policy::Terms::default()));
    assert_eq!(one_more.jobs().len(), 1_001);
}

#[test]
fn tables_start_empty() {
    let filled = |snapshot: &Snapshot| -> usize {
        let curves = snapshot.jobs().iter().flat_map(|job| job.knows.learned.curves.iter());
        curves.map(|(_, curve)| curve.n_filled()).sum()
    };
    let instance = Instance::new(4, 4, 8, 2);
    let cold = instance.cold();
    for job in cold.jobs() {
        job.knows.learned.curves.on(&GpuType::new("t4")).unwrap().goodput(Placement::ALONE);
    }
    assert_eq!(filled(&cold), 8);
    assert_eq!(filled(&with_fresh_tables(&cold, 4)), 0);
    assert_eq!(filled(&instance.warm(&*policies()[0])), 0);
}
