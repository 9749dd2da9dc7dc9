//! Replicas that work together learn what one would learn alone.

mod common;

use common::{Job, check_continuous, check_same_losses, curve, folder, number};

/// The same fixed batch of 24 on one replica, on three, and on one in passes of at most 8.
fn check_same_curve(name: &str, more: &str) {
    let folder = folder(name);
    let run = |file: &str, n_replicas: u32, micro_max: u32| {
        let file = folder.join(file);
        let arguments = format!("--batch 24 --max-batch 24 --micro-max {micro_max} {more} --curve");
        let job = Job::new(&format!("{arguments} {}", file.display())).steps(120);
        let said = job.run(n_replicas);
        let rows = curve(&file);
        check_continuous(&rows);
        assert_eq!(rows.len(), 120);
        (rows, number(&said, "done: accuracy"))
    };
    let (alone, accuracy) = run("alone.csv", 1, 24);
    let (three, accuracy_of_three) = run("three.csv", 3, 24);
    let (passes, accuracy_of_passes) = run("passes.csv", 1, 8);
    assert!(three.iter().all(|row| row.replicas == 3));
    assert!(passes.iter().all(|row| row.passes >= 3));
    check_same_losses(&alone, &three);
    check_same_losses(&alone, &passes);
    assert!(accuracy > 0.8, "{accuracy}");
    assert!((accuracy - accuracy_of_three).abs() < 1e-9 && (accuracy - accuracy_of_passes).abs() < 1e-9);
}

#[test]
fn softmax_regression_is_the_same_however_it_is_dealt() {
    check_same_curve("softmax", "");
}

#[test]
fn a_network_is_the_same_however_it_is_dealt() {
    check_same_curve("network", "--hidden 16 --seed 5");
}

#[test]
fn alone_and_without_arguments_it_learns_digits() {
    let said = Job::default().run(1);
    assert!(number(&said, "done: accuracy") > 0.93, "{said}");
}

#[test]
fn an_accuracy_can_be_the_aim() {
    let said = Job::new("--target-accuracy 0.9").run(2);
    assert!(number(&said, "done: accuracy") >= 0.9, "{said}");
}

#[test]
fn what_does_not_fit_is_said() {
    let check = |job: Job, n_replicas, code, message: &str| {
        let ends = job.start(n_replicas).end();
        assert_eq!(ends[0].code, Some(code), "{ends:?}");
        assert!(ends[0].stderr.contains(message), "{ends:?}");
    };
    check(Job::new("--momentum 1.5"), 1, 2, "error: --momentum is 1.5; it must be at least 0 and below 1");
    check(Job::default().with("POLLUX_BATCH", r#"{"mode": "bounded"}"#), 1, 2, "needs `max`");
    check(Job::new("--batch 2 --max-batch 2"), 3, 1, "no batch keeps the limits on 3 replicas");
}
