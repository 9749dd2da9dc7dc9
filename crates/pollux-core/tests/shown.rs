//! What a policy is shown, what is remembered of its answers, and groups.

mod common;

use std::time::Duration;

use common::reports::report_of;
use common::{World, adapting, minutely, on, plan};
use pollux_core::{Config, CycleId, Input, JobEdit, JobSpec, Refused};
use pollux_model::{GpuType, JobId, NodeId, Placement, Timestamp};
use pollux_policy::{Decision, Freedom, Group, GroupId, SnapshotError};

fn group(id: u32, parent: Option<u32>) -> Group {
    Group { id: GroupId(id), parent: parent.map(GroupId), entitled: [].into(), caps: [].into() }
}

fn of_application(name: &str) -> JobSpec {
    JobSpec { application: Some(name.into()), ..adapting() }
}

/// GPU-seconds that job 1 has held.
#[track_caller]
fn check_attained(world: &World, expected: f64) {
    let attained = world.shown(1).unwrap().attained;
    assert!((attained - expected).abs() < 1e-9, "{attained}, not {expected}");
}

/// Job 1 of `bert` reported, and job 2 of an application waits.
fn after_one_bert(history: bool, second: &str) -> World {
    let mut world = World::of(Config { history, ..minutely() }, &[4]);
    world.submit(1, of_application("bert"));
    world.round(&[(1, &[(0, 2)])]);
    world.train(1);
    world.tell(Input::JobReported(JobId(1), report_of(1.0, 0.001, 2)));
    world.finish(1);
    world.submit(2, of_application(second));
    world.ask();
    world
}

#[test] // Two GPUs from 0 s to 100 s, then three until 180 s.
fn age_and_service_are_counted() {
    let mut world = World::with_running(minutely(), &[4], &[(1, &[(0, 2)])]);
    world.ask();
    assert_eq!(world.shown(1).unwrap().age, Duration::from_mins(1));
    check_attained(&world, 2.0 * 60.0);
    world.answer(plan(&[(1, &[(0, 3)])]));
    world.secs = 100;
    world.stopped(1);
    world.secs = 180;
    world.tell(Input::Tick);
    check_attained(&world, 2.0 * 100.0 + 3.0 * 80.0);
}

#[test] // Four GPUs for 60 s, of which two stay for another 60 s.
fn service_is_counted_until_a_node_is_lost() {
    let mut world = World::with_running(minutely(), &[2, 2], &[(1, &[(0, 2), (1, 2)])]);
    world.secs = 60;
    world.lose(1);
    world.secs = 120;
    world.stopped(1);
    world.tell(Input::Tick);
    check_attained(&world, 4.0 * 60.0 + 2.0 * 60.0);
}

#[test]
fn a_job_on_its_way_is_shown_where_it_goes() {
    let mut world = World::with_running(minutely(), &[2, 2], &[(1, &[(0, 2)])]);
    world.round(&[(1, &[(1, 2)])]);
    for told in [World::stopped, |world: &mut World, _| world.check_said(&["stop 1.1", "start 1.2 on 1:2"])] {
        world.ask();
        let shown = world.shown(1).unwrap();
        assert_eq!((&shown.holds, shown.freedom), (&on(&[(1, 2)]), Freedom::Restarting));
        world.answer(plan(&[]));
        told(&mut world, 1);
    }
    world.train(1);
    world.ask();
    assert_eq!(world.shown(1).unwrap().freedom, Freedom::Elastic);
}

#[test]
fn a_job_that_is_leaving_is_shown_with_nothing_and_its_gpus_as_free() {
    let mut world = World::with_running(minutely(), &[2], &[(1, &[(0, 2)])]);
    world.round(&[(1, &[])]);
    world.ask();
    assert!(world.shown(1).unwrap().holds.is_empty());
    let (_, snapshot, _) = world.asked.as_ref().unwrap();
    assert_eq!(snapshot.cluster().nodes[0].others, 0);
}

#[test] // 1 000 useful samples of declared work, of which 100 a step are done; a wrong word leaves a little.
fn declared_work_shrinks_with_progress() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, JobSpec { work: Some(1_000.0), ..adapting() });
    let left = |world: &mut World| {
        world.ask();
        let left = world.shown(1).unwrap().knows.remaining;
        world.answer(plan(&[(1, &[(0, 1)])]));
        left
    };
    assert_eq!(left(&mut world), Some(1_000.0));
    world.report(1, 4.0);
    assert_eq!(left(&mut world), Some(600.0));
    world.report(1, 40.0);
    assert_eq!(left(&mut world), Some(1.0));
}

#[test]
fn what_a_job_reported_is_shown() {
    let mut world = World::with_running(minutely(), &[4], &[(1, &[(0, 2)])]);
    world.ask();
    let learned = &world.shown(1).unwrap().knows.learned;
    assert_eq!(learned.most_gpus, 2);
    let curve = learned.curves.on(&GpuType::new("t4")).unwrap();
    assert!(curve.goodput(Placement::ALONE) > pollux_model::Goodput::default());
}

#[test]
fn a_new_job_is_valued_by_earlier_ones_of_its_application() {
    let world = after_one_bert(true, "bert");
    let learned = &world.shown(2).unwrap().knows.learned;
    assert_eq!((learned.most_gpus, learned.curves.iter().count()), (2, 1));
    assert_eq!(world.scheduler.prior(JobId(2)).len(), 1);
}

#[test]
fn a_new_job_of_another_application_is_unknown() {
    for world in [after_one_bert(true, "resnet"), after_one_bert(false, "bert")] {
        let learned = &world.shown(2).unwrap().knows.learned;
        assert_eq!((learned.most_gpus, learned.curves.iter().count()), (0, 0));
        assert!(world.scheduler.prior(JobId(2)).is_empty());
    }
}

#[test]
fn a_job_is_no_prior_of_its_own() {
    let mut world = after_one_bert(true, "resnet");
    world.answer(plan(&[(2, &[(0, 2)])]));
    world.report(2, 1.0);
    assert!(world.scheduler.prior(JobId(2)).is_empty());
    assert!(world.scheduler.prior(JobId(9)).is_empty(), "nobody has no prior");
}

#[test]
fn an_explanation_has_the_time_and_number_of_its_round() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, adapting());
    world.round(&[]);
    assert!(world.job(1).explanation.is_none(), "the plan says nothing of it");
    world.ask();
    world.secs = 75;
    world.answer(plan(&[(1, &[(0, 2)])]));
    let explanation = world.job(1).explanation.unwrap();
    assert_eq!((explanation.cycle, explanation.at), (CycleId(2), Timestamp::from_secs(60)));
    assert_eq!((explanation.decision, &explanation.allocation), (Decision::Place, &on(&[(0, 2)])));
}

#[test]
fn what_a_policy_carries_is_shown_to_it_again() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, adapting());
    world.ask();
    let mut with_queue = plan(&[]);
    with_queue.carried.queue = vec![JobId(1)];
    world.answer(with_queue);
    world.ask();
    let (_, snapshot, _) = world.asked.as_ref().unwrap();
    assert_eq!(snapshot.carried().queue, [JobId(1)]);
}

#[test]
fn groups_are_shown_and_those_in_use_cannot_go() {
    let mut world = World::of(minutely(), &[4]);
    world.tell(Input::GroupsSet(vec![group(1, None), group(2, Some(1))]));
    world.submit(1, JobSpec { group: Some(GroupId(2)), ..adapting() });
    world.ask();
    let (_, snapshot, _) = world.asked.as_ref().unwrap();
    assert_eq!(snapshot.cluster().groups.len(), 2);
    assert_eq!(world.shown(1).unwrap().group, Some(GroupId(2)));
    let unknown = Refused::Cluster(SnapshotError::UnknownGroup(GroupId(2)));
    world.check_refused(Input::GroupsSet(vec![group(1, None)]), &unknown);
    world.cancel(1);
    world.tell(Input::GroupsSet(vec![group(1, None)]));
}

#[test]
fn groups_that_contradict_each_other_are_refused() {
    let mut world = World::of(minutely(), &[4]);
    let refused = |error| Refused::Cluster(error);
    let twice = Input::GroupsSet(vec![group(1, None), group(1, None)]);
    world.check_refused(twice, &refused(SnapshotError::DuplicateGroup(GroupId(1))));
    let orphan = Input::GroupsSet(vec![group(1, Some(2))]);
    world.check_refused(orphan, &refused(SnapshotError::UnknownGroup(GroupId(2))));
    let circle = Input::GroupsSet(vec![group(1, Some(1))]);
    world.check_refused(circle, &refused(SnapshotError::CyclicGroups(GroupId(1))));
    let nowhere = Input::JobSubmitted(JobId(1), JobSpec { group: Some(GroupId(5)), ..adapting() });
    world.check_refused(nowhere, &refused(SnapshotError::UnknownGroup(GroupId(5))));
}

#[test]
fn jobs_that_make_no_sense_are_refused() {
    let mut world = World::of(minutely(), &[4]);
    world.submit(1, adapting());
    let submit = |job, spec| Input::JobSubmitted(JobId(job), spec);
    world.check_refused(submit(1, adapting()), &Refused::KnownJob(JobId(1)));
    let wrong = [
        (JobSpec { weight: 0.0, ..adapting() }, Refused::NotPositive("weight")),
        (JobSpec { weight: f64::NAN, ..adapting() }, Refused::NotPositive("weight")),
        (JobSpec { min_gpus: 0, ..adapting() }, Refused::NotPositive("min_gpus")),
        (common::asking(0), Refused::NotPositive("request")),
        (JobSpec { work: Some(f64::INFINITY), ..adapting() }, Refused::NotPositive("work")),
        (JobSpec { min_gpus: 3, max_gpus: Some(2), ..adapting() }, Refused::MinAboveMax { min: 3, max: 2 }),
    ];
    for (spec, refused) in wrong {
        world.check_refused(submit(2, spec), &refused);
    }
    let edit = |job, edit| Input::JobEdited(JobId(job), edit);
    let light = JobEdit { weight: Some(-1.0), suspended: Some(true), ..JobEdit::default() };
    world.check_refused(edit(1, light), &Refused::NotPositive("weight"));
    let narrow = JobEdit { min_gpus: Some(5), max_gpus: Some(Some(4)), ..JobEdit::default() };
    world.check_refused(edit(1, narrow), &Refused::MinAboveMax { min: 5, max: 4 });
    let unknown = Refused::UnknownJob(JobId(9));
    world.check_refused(edit(9, JobEdit::default()), &unknown);
    let generation = pollux_core::Generation(1);
    world.check_refused(Input::JobTraining(JobId(9), generation), &unknown);
    world.check_refused(Input::JobStopped(JobId(9), generation), &unknown);
    world.check_refused(Input::JobFinished(JobId(9), generation), &unknown);
    world.check_refused(Input::JobFailed(JobId(9), generation), &unknown);
    assert_eq!(world.scheduler.held_on(NodeId(9)), None);
}
