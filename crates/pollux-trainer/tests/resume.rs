//! A job that is stopped goes on where it was, on any number of replicas.

mod common;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use common::{Job, check_continuous, check_same_losses, curve, folder, number};
use nix::sys::signal::Signal;

fn job(folder: &Path) -> Job {
    let curve = folder.join("curve.csv");
    Job::new(&format!("--batch 24 --max-batch 24 --curve {}", curve.display()))
        .with("POLLUX_CHECKPOINT_PATH", folder.join("saved").display())
}

/// The same work in one go and alone.
fn check_as_uninterrupted(folder: &Path, steps: u64, accuracy: f64) {
    let file = folder.join("whole.csv");
    let whole = Job::new(&format!("--batch 24 --max-batch 24 --curve {}", file.display())).steps(steps);
    let said = whole.run(1);
    let (interrupted, whole) = (curve(&folder.join("curve.csv")), curve(&file));
    check_continuous(&interrupted);
    check_same_losses(&interrupted, &whole);
    assert!((number(&said, "done: accuracy") - accuracy).abs() < 1e-9);
}

#[test]
fn a_job_goes_on_with_other_replicas_and_loses_no_sample() {
    let folder = folder("resize");
    let mut steps = 0;
    for n_replicas in [2, 1] {
        let mut workers = job(&folder).steps(1_000_000_000).start(n_replicas);
        workers.0[0].wait_for("step ");
        workers.signal_all(Signal::SIGTERM);
        let ends = workers.end();
        assert!(ends.iter().all(|end| end.code == Some(143)), "{ends:?}");
        let left = number(&ends[0].stdout, "left: step");
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let left = left as u64;
        assert!(left > steps);
        steps = left;
    }
    let said = job(&folder).steps(steps + 50).run(3);
    assert!(said.contains(&format!("resumed: step {steps}, progress {steps}.0")), "{said}");
    assert!(said.contains(&format!("after {} steps", steps + 50)), "{said}");
    check_as_uninterrupted(&folder, steps + 50, number(&said, "done: accuracy"));
    assert_eq!(std::fs::read_dir(folder.join("saved")).unwrap().count(), 2, "the newest two are kept");
}

#[test]
fn one_replica_that_is_asked_takes_all_along() {
    let folder = folder("one-asked");
    let mut workers = job(&folder).steps(1_000_000_000).start(3);
    workers.0[0].wait_for("begun");
    workers.0[2].signal(Signal::SIGTERM);
    let ends = workers.end();
    assert!(ends.iter().all(|end| end.code == Some(143)), "{ends:?}");
    assert_eq!(std::fs::read_dir(folder.join("saved")).unwrap().count(), 1);
}

#[test]
fn a_replica_that_is_lost_costs_no_sample() {
    let folder = folder("lost");
    let mut workers = job(&folder).steps(1_000_000_000).start(2);
    workers.0[0].wait_for("step ");
    workers.0[1].signal(Signal::SIGKILL);
    let ends = workers.end();
    assert_eq!(ends[0].code, Some(1), "{ends:?}");
    assert!(ends[0].stderr.contains("lost rank 1"), "{ends:?}");
    let steps = curve(&folder.join("curve.csv")).len() as u64;
    let said = job(&folder).steps(steps + 10).run(1);
    check_as_uninterrupted(&folder, steps + 10, number(&said, "done: accuracy"));
}

#[test]
fn a_torn_checkpoint_is_passed_over() {
    let folder = folder("torn");
    job(&folder).steps(30).run(1);
    job(&folder).steps(60).run(2);
    let newest = folder.join(format!("saved/{:020}.checkpoint", 60 * 24));
    let whole = std::fs::read(&newest).unwrap();
    std::fs::write(&newest, &whole[..whole.len() / 2]).unwrap();
    let ends = job(&folder).steps(40).start(1).end();
    assert_eq!(ends[0].code, Some(0), "{ends:?}");
    assert!(ends[0].stderr.contains("is not used: torn"), "{ends:?}");
    assert!(ends[0].stdout.contains("resumed: step 30, progress 30.0"), "{ends:?}");
}

#[test]
fn without_a_whole_checkpoint_nothing_begins_anew_by_itself() {
    let folder = folder("all-torn");
    job(&folder).steps(30).run(1);
    let file = folder.join(format!("saved/{:020}.checkpoint", 30 * 24));
    let mut damaged = std::fs::read(&file).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&file, damaged).unwrap();
    let ends = job(&folder).steps(40).start(1).end();
    assert_eq!(ends[0].code, Some(1), "{ends:?}");
    assert!(ends[0].stderr.contains("is whole (torn"), "{ends:?}");
    assert!(ends[0].stderr.contains("remove them to begin anew"), "{ends:?}");
}

#[test]
fn a_checkpoint_of_other_training_is_refused() {
    let folder = folder("other");
    job(&folder).steps(10).run(1);
    let other = Job::new("--hidden 4").with("POLLUX_CHECKPOINT_PATH", folder.join("saved").display());
    let ends = other.start(1).end();
    assert_eq!(ends[0].code, Some(1));
    assert!(ends[0].stderr.contains("made with --hidden 0, not 4"), "{ends:?}");
}

#[test]
fn a_second_signal_kills() {
    let profile = folder("second").join("slow.json");
    std::fs::write(&profile, common::profile(1_000.0, 0.0)).unwrap();
    let job = Job::default().with("POLLUX_EMULATED", 1).with("POLLUX_EMULATED_PROFILE", profile.display());
    let mut workers = job.with("POLLUX_GPU_TYPE", "t4").start(2);
    workers.0[0].wait_for("begun");
    // The replicas have met, so rank 1 looks at the end of its step, in a quarter of an hour: one signal changes nothing.
    let status = loop {
        workers.0[1].signal(Signal::SIGTERM);
        if let Some(status) = workers.0[1].child.try_wait().unwrap() {
            break status;
        }
    };
    assert_eq!(status.signal(), Some(15));
}
