//! Jobs that are over are remembered for a while, and never taken for new ones.

mod common;

use common::{World, adapting, minutely};
use pollux_core::{Config, Input, Outcome, Phase, Refused};
use pollux_model::{JobId, Timestamp};

/// Jobs 1 to 4 came and were cancelled in that order; two are remembered.
fn world() -> World {
    let mut world = World::of(Config { remember_ended: 2, ..minutely() }, &[4]);
    for id in 1..=4 {
        world.scheduler.handle(Timestamp::ZERO, Input::JobSubmitted(JobId(id), adapting())).unwrap();
        world.scheduler.handle(Timestamp::ZERO, Input::JobCancelled(JobId(id))).unwrap();
    }
    world
}

#[test]
fn the_latest_are_remembered() {
    let world = world();
    let phase = |id| world.scheduler.job(JobId(id)).map(|job| job.phase);
    let cancelled = Some(Phase::Ended(Outcome::Cancelled));
    assert_eq!([1, 2, 3, 4, 5].map(phase), [None, None, cancelled, cancelled, None]);
}

#[test] // Who was forgotten is still over, and its number is taken.
fn late_words_are_refused_as_before() {
    let mut world = world();
    for id in 1..=4 {
        let id = JobId(id);
        world.check_refused(Input::JobReported(id, common::reports::report(1.0)), &Refused::Ended(id));
        world.check_refused(Input::JobSubmitted(id, adapting()), &Refused::KnownJob(id));
    }
    world.check_refused(Input::JobCancelled(JobId(5)), &Refused::UnknownJob(JobId(5)));
}
