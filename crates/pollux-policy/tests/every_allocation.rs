//! Certificates against every allocation of tiny clusters: from the snapshot to the certified value, with nothing
//! of the solver in between.
#![allow(clippy::print_stderr, reason = "the tests say what they measured")]

mod common;

use common::Dice;
use common::check::{check, check_interference};
use common::random_snapshot::{Shape, draw};
use common::rounds::{allocations, n_gpus, stakes};
use pollux_model::Allocation;
use pollux_policy::{
    AnyPolicy, Certificate, Decision, Job, JobPlan, Judgement, Known, Plan, Pollux, Reason, Settings,
    Snapshot, Source, Starved, Terms, Valuation,
};

const N_SNAPSHOTS: u64 = 300;

#[test]
fn no_allocation_is_better_than_certified_and_few_are_better_than_planned() {
    let mut gaps = 0.0;
    for seed in 0..N_SNAPSHOTS {
        let mut dice = Dice(seed);
        let snapshot = among_equals(&draw(&mut dice, &Shape::TINY));
        let settings = Settings {
            fairness: dice.one_of(&[-1.0, -1.0, 0.0, 1.0]),
            exploration: dice.one_of(&[1.0, 2.0, 1e9]),
            ..Settings::PAPER
        };
        gaps += check_certificate(&snapshot, &settings, seed);
    }
    let gap = gaps / N_SNAPSHOTS as f64;
    eprintln!("mean gap to the best allocation {:.4} %", 100.0 * gap);
    assert!(gap <= 0.01, "mean gap {gap}");
}

/// Who comes first is a matter of the policy, not of what can be carried out: nobody is entitled to anything, and
/// all weigh the same, since means over other jobs do not compare.
fn among_equals(snapshot: &Snapshot<Known>) -> Snapshot<Known> {
    let mut cluster = snapshot.cluster().clone();
    for group in &mut cluster.groups {
        group.entitled.clear();
    }
    let jobs = snapshot.jobs().iter().map(|job| Job { weight: 1.0, ..job.clone() }).collect();
    Snapshot::new(cluster, jobs).expect("still a snapshot")
}

/// How far below the best allocation the plan is, as a fraction; all of it if it starves more than it must.
fn check_certificate(snapshot: &Snapshot<Known>, settings: &Settings, seed: u64) -> f64 {
    let plan = Pollux { settings: *settings }.plan(snapshot, &Terms::seeded(seed));
    let certificate = plan.certificate.unwrap_or_else(|| panic!("{seed}: no certificate"));
    let Certificate { bound, starved, starved_bound, .. } = certificate;
    let valuation = Valuation::new(snapshot, settings, &stakes(snapshot));
    let planned = valuation.judge(snapshot, &allocations(&plan));
    // Jobs that can run nowhere are judged as starved, but no plan is to blame.
    let excused = minus(planned.starved, starved);
    let options: Vec<Vec<Allocation>> =
        (0..snapshot.jobs().len()).map(|job| options(snapshot, &valuation, job)).collect();
    let mut best = planned;
    each_combination(&options, &mut Vec::new(), &mut |allocations| {
        let candidate = plan_of(snapshot, allocations, &plan);
        if check(snapshot, &candidate).and_then(|()| check_interference(snapshot, &candidate)).is_err() {
            return;
        }
        let judgement = valuation.judge(snapshot, allocations);
        let context =
            || format!("{seed}: {certificate:?}, yet {judgement:?}: {allocations:?}\n{snapshot:#?}");
        assert!(plus(starved_bound, excused) <= judgement.starved, "{}", context());
        if judgement.starved == planned.starved {
            assert!(judgement.value <= bound * (1.0 + 1e-9), "{}", context());
        }
        if judgement.starved < best.starved
            || (judgement.starved == best.starved && all(&judgement) > all(&best))
        {
            best = judgement;
        }
    });
    match best.starved < planned.starved {
        true => 1.0,
        false if best.value > 0.0 => (1.0 - planned.value / best.value).max(0.0),
        false => 0.0,
    }
}

/// What is maximised among allocations that starve equally many.
fn all(judgement: &Judgement) -> f64 {
    judgement.sum + judgement.sum_of_starved
}

/// Nothing, what it holds, and all GPUs that the job's limits and exploration allow, whatever the others do.
fn options(snapshot: &Snapshot<Known>, valuation: &Valuation<'_>, index: usize) -> Vec<Allocation> {
    let job = &snapshot.jobs()[index];
    let nodes = &snapshot.cluster().nodes;
    let mut options = vec![Allocation::none()];
    for (pool, about) in valuation.pools().iter().enumerate() {
        let Some(source) = &valuation.jobs()[index].pools[pool] else { continue };
        let mut partial = vec![Vec::new()];
        for node in nodes.iter().filter(|node| node.gpu_type == about.gpu_type) {
            let with = |at: &Vec<_>| -> Vec<Vec<_>> {
                (0..=node.gpus).map(|gpus| at.iter().copied().chain([(node.id, gpus)]).collect()).collect()
            };
            partial = partial.iter().flat_map(with).collect();
        }
        options.extend(partial.into_iter().map(Allocation::whole).filter(|allocation| {
            allocation.placement().is_some_and(|placement| {
                (source.min..=source.max).contains(&placement.n_replicas())
                    && valuation.jobs()[index].speedup(pool, placement) > 0.0
            })
        }));
    }
    if may_stay(snapshot, valuation, index) && !options.contains(&job.holds) {
        options.push(job.holds.clone());
    }
    options
}

/// Whether a job may keep what it holds: its user's limits count, exploration takes nothing away.
fn may_stay(snapshot: &Snapshot<Known>, valuation: &Valuation<'_>, index: usize) -> bool {
    let job = &snapshot.jobs()[index];
    let within = |source: &Source<'_>| {
        (source.min..=source.max_explored.max(source.max)).contains(&n_gpus(&job.holds))
    };
    // The models of one job have the same batch limits on every type.
    let value = &valuation.jobs()[index];
    job.is_pinned() || !value.is_profiled() || value.pools.iter().flatten().any(within)
}

fn each_combination(
    options: &[Vec<Allocation>],
    chosen: &mut Vec<Allocation>,
    visit: &mut dyn FnMut(&[Allocation]),
) {
    let Some(own) = options.get(chosen.len()) else { return visit(chosen) };
    for option in own {
        chosen.push(option.clone());
        each_combination(options, chosen, visit);
        chosen.pop();
    }
}

/// A plan that gives each job this.
fn plan_of(snapshot: &Snapshot<Known>, allocations: &[Allocation], like: &Plan) -> Plan {
    let answer = |(job, allocation): (&Job<Known>, &Allocation)| JobPlan {
        job: job.id,
        decision: match allocation {
            nothing if nothing.is_empty() => Decision::Wait,
            same if *same == job.holds => Decision::Keep,
            _ => Decision::Place,
        },
        allocation: allocation.clone(),
        reason: Reason::default(),
    };
    Plan { jobs: snapshot.jobs().iter().zip(allocations).map(answer).collect(), ..like.clone() }
}

fn plus(a: Starved, b: Starved) -> Starved {
    Starved { high: a.high + b.high, normal: a.normal + b.normal, low: a.low + b.low }
}

fn minus(a: Starved, b: Starved) -> Starved {
    let less = |a: u32, b: u32| a.checked_sub(b).expect("who is starved is judged as starved");
    Starved { high: less(a.high, b.high), normal: less(a.normal, b.normal), low: less(a.low, b.low) }
}
