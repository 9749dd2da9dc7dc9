//! From round to round: plans judged, plans put in place, snapshots edited.

use std::time::Duration;

use pollux_model::Allocation;
use pollux_policy::{Decision, Job, Judgement, Known, Plan, Settings, Snapshot, Stake, Valuation};

/// What an allocation is worth by these settings, to jobs that are weighed as Pollux weighs them.
pub fn judge(snapshot: &Snapshot<Known>, settings: &Settings, allocations: &[Allocation]) -> Judgement {
    Valuation::new(snapshot, settings, &stakes(snapshot)).judge(snapshot, allocations)
}

/// What Pollux's own mode adds to a job: its weight, and nothing about its end.
pub fn stakes(snapshot: &Snapshot<Known>) -> Vec<Stake> {
    snapshot.jobs().iter().map(|job| Stake { weight: job.weight, remaining_secs: None }).collect()
}

/// What each job gets.
pub fn allocations(plan: &Plan) -> Vec<Allocation> {
    plan.jobs.iter().map(|job| job.allocation.clone()).collect()
}

/// What each job holds.
pub fn holds(snapshot: &Snapshot<Known>) -> Vec<Allocation> {
    snapshot.jobs().iter().map(|job| job.holds.clone()).collect()
}

/// GPUs of an allocation.
pub fn n_gpus(allocation: &Allocation) -> u32 {
    allocation.placement().map_or(0, pollux_model::Placement::n_replicas)
}

/// The same round but for what `edit` does to its jobs.
pub fn edited(snapshot: &Snapshot<Known>, edit: impl FnOnce(&mut Vec<Job<Known>>)) -> Snapshot<Known> {
    let mut jobs = snapshot.jobs().to_vec();
    edit(&mut jobs);
    let edited = Snapshot::new(snapshot.cluster().clone(), jobs).expect("still a snapshot");
    edited.carrying(snapshot.carried().clone())
}

/// The next round: the plan is in place and some time has passed; the jobs have learned nothing new.
pub fn in_place(snapshot: &Snapshot<Known>, plan: &Plan, passed: Duration) -> Snapshot<Known> {
    let next = edited(snapshot, |jobs| {
        for (job, answer) in jobs.iter_mut().zip(&plan.jobs) {
            job.restarts += u32::from(answer.decision == Decision::Place && job.has_run());
            job.holds = answer.allocation.clone();
            job.attained += answer.allocation.gpus() * passed.as_secs_f64();
            job.age += passed;
        }
    });
    next.carrying(plan.carried.clone())
}
