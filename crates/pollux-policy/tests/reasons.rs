//! Reasons agree with solving again: a job is made to hold one GPU more or fewer, and the others are asked anew.
#![allow(clippy::print_stderr, reason = "the tests say what they measured")]

mod common;

use common::Dice;
use common::random_snapshot::{Shape, draw};
use common::rounds::{edited, n_gpus};
use pollux_policy::{AnyPolicy, Certificate, Freedom, Known, Plan, Pollux, Settings, Snapshot, Step, Terms};

const N_SNAPSHOTS: u64 = 60;

/// How many steps must be bracketed from both sides.
const LEAST_SHARE: f64 = 0.6;

/// Fewer comparisons than this prove nothing.
const LEAST_COMPARED: u32 = 150;

#[derive(Default)]
struct Tally {
    compared: u32,
    bracketed: u32,
    incomparable: u32,
}

#[test]
fn one_more_gpu_is_worth_what_solving_again_finds() {
    compare(|plan, job| plan.jobs[job].reason.more);
}

#[test]
fn one_gpu_fewer_is_worth_what_solving_again_finds() {
    compare(|plan, job| plan.jobs[job].reason.fewer);
}

fn compare(step: impl Fn(&Plan, usize) -> Option<Step>) {
    let policy = Pollux { settings: Settings::PAPER };
    let mut tally = Tally::default();
    for seed in 0..N_SNAPSHOTS {
        let snapshot = draw(&mut Dice(seed), &Shape::MIDDLING);
        let plan = policy.plan(&snapshot, &Terms::seeded(seed));
        let certificate = plan.certificate.unwrap_or_else(|| panic!("{seed}: no certificate"));
        for job in 0..snapshot.jobs().len() {
            let Some(step) = step(&plan, job) else { continue };
            let may_change = snapshot.jobs()[job].freedom == Freedom::Elastic && step.gpus > 0;
            match may_change.then(|| forced(&policy, &snapshot, job, step.gpus, seed)).flatten() {
                Some(forced) if forced.starved == certificate.starved => {
                    tally.add(&certificate, step, &forced, seed);
                }
                _ => tally.incomparable += 1,
            }
        }
    }
    let Tally { compared, bracketed, incomparable } = tally;
    let share = f64::from(bracketed) / f64::from(compared.max(1));
    eprintln!(
        "{compared} steps agree, {bracketed} of them from both sides ({:.1} %), {incomparable} incomparable",
        100.0 * share
    );
    assert!(compared >= LEAST_COMPARED, "only {compared} steps could be compared");
    assert!(share >= LEAST_SHARE, "only {share} of the steps have a lower bound");
}

impl Tally {
    fn add(&mut self, plan: &Certificate, step: Step, forced: &Certificate, seed: u64) {
        let change = forced.value - plan.value;
        let context = || format!("{seed}: the value changed by {change}, yet {step:?}; {plan:?}, {forced:?}");
        assert!(change <= step.at_most + 1e-9, "{}", context());
        assert!(step.worth <= step.at_most, "{}", context());
        self.compared += 1;
        if let Some(at_least) = step.at_least {
            // What solving again could have found; it stops where its own bound is near enough.
            let missed = forced.bound - forced.value;
            assert!(change >= at_least - missed - 1e-9, "{}", context());
            assert!(at_least <= step.worth, "{}", context());
            self.bracketed += 1;
        }
    }
}

/// What the cluster is worth if a job holds this many GPUs; none if it does not, since it may stay as it is.
fn forced(
    policy: &Pollux,
    snapshot: &Snapshot<Known>,
    job: usize,
    gpus: u32,
    seed: u64,
) -> Option<Certificate> {
    let snapshot = edited(snapshot, |jobs| {
        jobs[job].min_gpus = gpus;
        jobs[job].max_gpus = Some(gpus);
    });
    let plan = policy.plan(&snapshot, &Terms::seeded(seed));
    plan.certificate.filter(|_| n_gpus(&plan.jobs[job].allocation) == gpus)
}
