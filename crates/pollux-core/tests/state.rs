//! A scheduler's state: saved and restored it goes on, and what none can have been in is refused.

mod common;

use common::{World, adapting, minutely, on, plan, reports};
use pollux_core::{Generation, Input, InvalidState, JobRecord, Phase, PoolId, Scheduler, State};
use pollux_model::{AgentReport, Allocation, GpuType, JobId, NodeId, NoiseScale, Timestamp};
use pollux_policy::GroupId;

/// A round after which job 1 trains on two GPUs of a node of four, and job 2 waits.
fn world() -> World {
    let mut world = World::of(minutely(), &[4]);
    for job in [1, 2] {
        world.tell(Input::JobSubmitted(JobId(job), adapting()));
    }
    world.secs = 60;
    world.tell(Input::Tick);
    let (cycle, ..) = world.asked.take().unwrap();
    world.tell(Input::PlanReady(cycle, plan(&[(1, &[(0, 2)]), (2, &[])])));
    world.tell(Input::JobTraining(JobId(1), Generation(1)));
    world
}

fn noisy(samples: f64) -> AgentReport {
    let mut report = reports::report(1.0);
    report.noise.as_mut().unwrap().acted = NoiseScale::from_samples(samples).unwrap();
    report
}

fn restored(scheduler: &Scheduler) -> Scheduler {
    Scheduler::restore(minutely(), scheduler.state()).unwrap()
}

/// Reports are taken in, with a restart before each; the job is then valued by a model of this noise.
fn check_noise(reported: &[f64], expected: f64) {
    let mut scheduler = world().scheduler;
    for &samples in reported {
        scheduler = restored(&scheduler);
        let input = Input::JobReported(JobId(1), noisy(samples));
        scheduler.handle(Timestamp::from_secs(70), input).unwrap();
    }
    let state = restored(&scheduler).state();
    let model = &state.jobs[&JobId(1)].curves.models[&GpuType::new("t4")];
    assert!((model.noise().samples() - expected).abs() < 1e-12, "{reported:?}: {model:?}");
}

#[test] // Within 3 % of the first; the fourth is not.
fn tables_outlive_small_changes_of_noise_over_restarts() {
    check_noise(&[1_000.0, 1_020.0, 1_029.0], 1_000.0);
    check_noise(&[1_000.0, 1_020.0, 1_029.0, 1_040.0], 1_040.0);
}

#[test]
fn what_is_held_stays_held() {
    let world = world();
    let scheduler = restored(&world.scheduler);
    assert_eq!(scheduler.held_on(NodeId(0)), Some(2));
    assert_eq!(scheduler.job(JobId(1)).unwrap().phase, Phase::Running);
    assert_eq!(format!("{scheduler:?}"), format!("{:?}", world.scheduler));
}

fn check_refused(spoil: impl FnOnce(&mut State), expected: &str) {
    let mut state = world().scheduler.state();
    spoil(&mut state);
    let refused = Scheduler::restore(minutely(), state).unwrap_err();
    assert_eq!(refused.to_string(), expected);
}

/// Spoils the record of job 1.
fn check_job(part: &'static str, spoil: impl FnOnce(&mut JobRecord)) {
    let job = JobId(1);
    let expected = InvalidState::Job { job, part }.to_string();
    check_refused(|state| spoil(state.jobs.get_mut(&job).unwrap()), &expected);
}

#[test]
fn a_job_that_contradicts_the_rest_is_refused() {
    check_job("held", |job| job.held = Allocation::none());
    check_job("held", |job| job.phase = Phase::Waiting);
    check_job("held", |job| job.wanted = on(&[(0, 3)]));
    check_job("held", |job| (job.held, job.wanted) = (on(&[(0, 5)]), on(&[(0, 5)])));
    check_job("held", |job| (job.held, job.wanted) = (on(&[(7, 1)]), on(&[(7, 1)])));
    check_job("attained", |job| job.attained = f64::NAN);
    check_job("progress_at_failure", |job| job.progress_at_failure = f64::NAN);
    check_job("generation", |job| job.lost_in = Generation(2));
    check_job("generation", |job| job.generation = Generation(u32::MAX));
    check_job("spec.group", |job| job.spec.group = Some(GroupId(3)));
    check_refused(
        |state| state.jobs.get_mut(&JobId(2)).unwrap().spec.min_gpus = 0,
        "job JobId(2) of the saved state: `min_gpus` must be a positive number",
    );
}

#[test]
fn a_whole_that_contradicts_itself_is_refused() {
    let part = |part: &'static str| InvalidState::Part { part }.to_string();
    check_refused(|state| _ = state.unsettled.insert(JobId(9)), &part("unsettled"));
    check_refused(|state| state.ended.latest.push_back(JobId(1)), &part("ended.latest"));
    check_refused(|state| _ = state.ended.forgotten.insert(0, 5), &part("ended.forgotten"));
    check_refused(|state| state.ended.forgotten.extend([(10, 20), (15, 30)]), &part("ended.forgotten"));
    check_refused(|state| state.rounds.latest.0 = u64::MAX, &part("rounds.latest"));
    check_refused(
        |state| state.rounds.awaited = Some((pollux_core::CycleId(9), Timestamp::ZERO)),
        &part("rounds.awaited"),
    );
    check_refused(
        |state| state.nodes.get_mut(&NodeId(0)).unwrap().of_pool = Some((PoolId(1), Timestamp::ZERO)),
        "node NodeId(0) of the saved state is of a pool that is not there",
    );
    check_refused(
        |state| state.nodes.get_mut(&NodeId(0)).unwrap().spec.gpus = 1 << 20,
        "the saved state makes no snapshot: node NodeId(0) has 1048576 GPUs; at most 65536 can be",
    );
}
