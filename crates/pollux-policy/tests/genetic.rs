//! The authors' genetic algorithm, as they describe it and as they code it: what it carries from round to round,
//! its oddities, and how close it comes to the original.
#![allow(clippy::print_stderr, reason = "the tests say what they measured")]

mod common;

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use common::check::{check, check_interference};
use common::random_snapshot::{Shape, draw};
use common::rounds::{allocations, edited, in_place, judge, n_gpus};
use common::{Dice, plain, reference};
use pollux_model::{Allocation, JobId, NodeId};
use pollux_policy::{
    AnyPolicy as _, Carried, Cluster, Decision, Freedom, Genetic, Job, Known, Limit, Node, NodeState, Plan,
    Population, Snapshot, Stopped, Terms, Variant,
};

/// Enough to breed with, little enough to try hundreds of clusters.
fn small(genetic: Genetic) -> Genetic {
    Genetic { population: 12, generations: 6, ..genetic }
}

fn both() -> [Genetic; 2] {
    [Genetic::paper(), Genetic::osdi21()]
}

/// A plan that can be carried out, and comes out the same again.
fn plan(genetic: &Genetic, snapshot: &Snapshot<Known>, seed: u64) -> Plan {
    let name = genetic.about().name;
    let plan = genetic.plan(snapshot, &Terms::seeded(seed));
    check(snapshot, &plan)
        .and_then(|()| check_interference(snapshot, &plan))
        .unwrap_or_else(|wrong| panic!("{name}, {seed}: {wrong}\n{snapshot:#?}\n{plan:#?}"));
    assert_eq!(plan, genetic.plan(snapshot, &Terms::seeded(seed)), "{name}, {seed}");
    plan
}

#[test]
fn round_after_round_can_be_carried_out() {
    let mut n_carried = 0;
    for seed in 0..400 {
        let mut dice = Dice(seed << 8 | 0x6a);
        let first = draw(&mut dice, &Shape::ANY);
        for genetic in both().map(small) {
            let second = in_place(&first, &plan(&genetic, &first, seed), Duration::from_mins(1));
            let third = in_place(&second, &plan(&genetic, &second, seed + 1), Duration::from_mins(1));
            let third = after_departures(&third, &mut dice);
            plan(&genetic, &third, seed + 2);
            n_carried += u32::from(third.carried().population.is_some());
        }
    }
    assert!(n_carried >= 600, "only {n_carried} rounds had a population to begin with");
}

/// The round after a job and a node have left, and others have come, if there were any.
fn after_departures(snapshot: &Snapshot<Known>, dice: &mut Dice) -> Snapshot<Known> {
    let (mut cluster, mut jobs) = (snapshot.cluster().clone(), snapshot.jobs().to_vec());
    if !cluster.nodes.is_empty() {
        let index = dice.index(cluster.nodes.len());
        let gone = cluster.nodes[index].id;
        cluster.nodes[index].id = NodeId(1);
        for job in &mut jobs {
            let rest = job.holds.iter().filter(|(node, _)| *node != gone);
            job.holds = Allocation::whole(rest.map(|(node, share)| (node, share.n_replicas())));
        }
        jobs.retain(|job| job.freedom != Freedom::Restarting || !job.holds.is_empty());
    }
    if !jobs.is_empty() {
        let index = dice.index(jobs.len());
        jobs[index] = Job { holds: Allocation::none(), freedom: Freedom::Elastic, ..jobs[index].clone() };
        jobs[index].id = JobId(0);
    }
    Snapshot::new(cluster, jobs).expect("less is held than before").carrying(snapshot.carried().clone())
}

#[test]
fn a_plan_that_a_deadline_cut_says_so_and_can_be_repeated() {
    let snapshot = draw(&mut Dice(7), &Shape::MIDDLING);
    for genetic in both().map(small) {
        let whole = plan(&genetic, &snapshot, 1);
        assert_eq!(whole.work.stopped, Stopped::Budget);
        for generations in 0..4 {
            let asked = Cell::new(0);
            let is_late = || asked.replace(asked.get() + 1) == generations;
            let cut = genetic.plan(&snapshot, &Terms { deadline: Some(&is_late), ..Terms::seeded(1) });
            assert_eq!(cut.work.stopped, Stopped::Deadline);
            assert_eq!(cut.work.budget, whole.work.budget);
            assert!(cut.work.units < whole.work.units, "{} units of {}", cut.work.units, whole.work.units);
            let again = genetic.plan(&snapshot, &Terms { work: Some(cut.work.units), ..Terms::seeded(1) });
            assert_eq!(again.work.units, cut.work.units);
            assert_eq!((again.jobs, again.carried), (cut.jobs, cut.carried));
        }
    }
}

// Examples: nodes 0 to 2 with four GPUs each, jobs that nobody would tell apart, and one member carried over.
// Without a generation bred, the plan is what becomes of it.

const A: JobId = JobId(10);
const B: JobId = JobId(11);
const C: JobId = JobId(12);

fn nodes(ids: impl IntoIterator<Item = u32>) -> Vec<Node> {
    ids.into_iter().map(|id| plain::node(NodeId(id), "t4", 4)).collect()
}

/// A job that holds nothing, with the GPU-seconds by which the artifact orders them.
fn job(id: JobId, attained: f64) -> Job {
    Job { attained, ..plain::profiled(id, &["t4"], 8) }
}

fn round(nodes: Vec<Node>, jobs: Vec<Job>) -> Snapshot<Known> {
    Snapshot::new(Cluster { nodes, ..Cluster::default() }, jobs).expect("nothing is held")
}

fn carrying(snapshot: Snapshot<Known>, jobs: &[JobId], member: &[[u32; 3]]) -> Snapshot<Known> {
    let population = Population {
        jobs: jobs.to_vec(),
        nodes: (0..3).map(NodeId).collect(),
        members: vec![member.concat()],
    };
    snapshot.carrying(Carried { population: Some(Arc::new(population)), ..Carried::default() })
}

/// GPUs by node for these jobs, nothing bred: of the present allocation and the member carried over, the better.
fn unbred(variant: Variant, snapshot: &Snapshot<Known>, jobs: &[JobId], seed: u64) -> Vec<Vec<(u32, u32)>> {
    let genetic = match variant {
        Variant::Paper => Genetic { population: 2, generations: 0, ..Genetic::paper() },
        Variant::Osdi21 => Genetic { generations: 1, ..Genetic::osdi21() },
    };
    let plan = plan(&genetic, snapshot, seed);
    let of = |id: &JobId| plan.jobs.iter().find(|answer| answer.job == *id).expect("an answer");
    let counts = |allocation: &Allocation| {
        allocation.iter().map(|(node, share)| (node.0, share.n_replicas())).collect::<Vec<_>>()
    };
    jobs.iter().map(|id| counts(&of(id).allocation)).collect()
}

#[test] // B1: job A had three GPUs and job B one; since then A has attained more service than B.
fn the_artifact_gives_jobs_that_changed_places_each_others_gpus_and_the_paper_does_not() {
    let overtaken = round(nodes(0..3), vec![job(B, 1.0), job(A, 3.0)]);
    let overtaken = carrying(overtaken, &[A, B], &[[3, 0, 0], [1, 0, 0]]);
    assert_eq!(unbred(Variant::Osdi21, &overtaken, &[A, B], 1), [[(0, 1)], [(0, 3)]]);
    assert_eq!(unbred(Variant::Paper, &overtaken, &[A, B], 1), [[(0, 3)], [(0, 1)]]);

    let in_order = round(nodes(0..3), vec![job(B, 3.0), job(A, 1.0)]);
    let in_order = carrying(in_order, &[A, B], &[[3, 0, 0], [1, 0, 0]]);
    assert_eq!(unbred(Variant::Osdi21, &in_order, &[A, B], 1), [[(0, 3)], [(0, 1)]]);
}

#[test] // B2: A and B interfere on nodes 0 and 1, C is on node 0 alone.
fn the_artifact_clears_bystanders_with_interference_and_the_paper_does_not() {
    let snapshot = round(nodes(0..3), vec![job(A, 1.0), job(B, 2.0), job(C, 3.0)]);
    let snapshot = carrying(snapshot, &[A, B, C], &[[1, 1, 0], [1, 1, 0], [2, 0, 0]]);
    for seed in 0..10 {
        let cleared = unbred(Variant::Osdi21, &snapshot, &[A, B, C], seed);
        assert_eq!(cleared, [vec![(0, 1), (1, 1)], vec![], vec![]]);
        let parted = unbred(Variant::Paper, &snapshot, &[A, B, C], seed);
        assert_eq!(parted[2], [(0, 2)], "{seed}: C interferes with nobody");
        assert!(!parted[0].is_empty() && !parted[1].is_empty(), "{seed}: {parted:?}");
    }
}

#[test] // Job B and node 0 have left, job 13 and node 3 have come.
fn what_is_carried_over_outlives_jobs_and_nodes_that_left() {
    let left = round(nodes([3, 2, 1]), vec![job(JobId(13), 0.0), job(A, 1.0), job(C, 2.0)]);
    let left = carrying(left, &[A, B, C], &[[1, 2, 0], [3, 2, 1], [0, 0, 3]]);
    for variant in [Variant::Paper, Variant::Osdi21] {
        let found = unbred(variant, &left, &[A, C, JobId(13)], 1);
        assert_eq!(found, [vec![(1, 2)], vec![(2, 3)], vec![]], "{variant:?}");
    }
}

#[test]
fn what_is_carried_over_may_be_of_no_use_at_all() {
    let snapshot = round(nodes(0..3), vec![job(A, 1.0)]);
    let with = |members: Vec<Vec<u32>>, jobs: Vec<JobId>| {
        let population = Population { jobs, nodes: vec![NodeId(0)], members };
        let carried = Carried { population: Some(Arc::new(population)), ..Carried::default() };
        snapshot.clone().carrying(carried)
    };
    for useless in [
        with(Vec::new(), Vec::new()),
        with(vec![vec![4; 7], vec![]], vec![A]),
        with(vec![vec![u32::MAX]], vec![A]),
        with(vec![vec![1]], vec![B]),
    ] {
        for genetic in both().map(small) {
            let plan = plan(&genetic, &useless, 1);
            assert_eq!(plan.jobs[0].decision, Decision::Place, "{:?}", genetic.variant);
        }
    }
}

#[test]
fn more_gpus_than_can_be_counted_break_nothing() {
    let mut nodes = nodes(0..3);
    for node in &mut nodes {
        node.gpus = 1 << 16;
    }
    let rigid = Job { freedom: Freedom::Rigid { gpus: u32::MAX }, ..plain::job(C) };
    let snapshot = round(nodes, vec![job(A, 1.0), Job { min_gpus: u32::MAX, ..plain::job(B) }, rigid]);
    for genetic in both().map(small) {
        assert_eq!(plan(&genetic, &snapshot, 1).jobs[0].decision, Decision::Place);
    }
}

#[test]
fn what_a_round_carries_over_is_its_own() {
    let snapshot = draw(&mut Dice(8), &Shape::MIDDLING);
    for genetic in both().map(small) {
        let plan = plan(&genetic, &snapshot, 1);
        let population = plan.carried.population.as_deref().expect("there was something to breed");
        let (n_jobs, n_nodes) = (population.jobs.len(), population.nodes.len());
        assert_eq!((n_jobs, n_nodes), (snapshot.jobs().len(), snapshot.cluster().nodes.len()));
        let most = genetic.population as usize;
        assert!((1..=most).contains(&population.members.len()), "{} members", population.members.len());
        // The first one is the plan.
        for answer in &plan.jobs {
            let row = population.jobs.iter().position(|id| *id == answer.job).expect("a row of its own");
            let cells = &population.members[0][row * n_nodes..(row + 1) * n_nodes];
            let at = population.nodes.iter().copied().zip(cells.iter().copied());
            assert_eq!(Allocation::whole(at), answer.allocation);
        }
    }
}

#[test]
fn more_generations_never_end_worse() {
    let mut n_better = 0;
    for seed in 0..30 {
        let shape = if seed % 2 == 0 { Shape::MIDDLING } else { Shape::ANY };
        // In sums of unequal weights the starved count too.
        let snapshot = edited(&draw(&mut Dice(seed << 8 | 0x6b), &shape), |jobs| {
            for job in jobs {
                job.weight = 1.0;
            }
        });
        let mut last = None;
        for generations in [0, 1, 3, 10, 30] {
            let genetic = Genetic { population: 12, generations, ..Genetic::paper() };
            let plan = genetic.plan(&snapshot, &Terms::seeded(seed));
            let found = judge(&snapshot, &genetic.settings, &allocations(&plan));
            if let Some((starved, value)) = last {
                let is_no_worse = found.starved < starved
                    || (found.starved == starved && found.value >= value * (1.0 - 1e-12));
                assert!(is_no_worse, "{seed}: from {value} with {starved:?} to {found:?}");
                n_better += u32::from(found.starved < starved || found.value > value);
            }
            last = Some((found.starved, found.value));
        }
    }
    assert!(n_better >= 50, "breeding has helped {n_better} times only");
}

#[test] // Node 0 is drained and node 2 takes nobody new; node 1 has three GPUs to spare.
fn pinned_jobs_stay_and_rigid_ones_get_what_they_ask_for() {
    let on = |at: &[(u32, u32)]| Allocation::whole(at.iter().map(|&(node, gpus)| (NodeId(node), gpus)));
    let holding = |id, freedom, at| Job { holds: on(at), freedom, ..job(JobId(id), 60.0) };
    let jobs = vec![
        holding(1, Freedom::Elastic, &[(2, 1)]),
        holding(2, Freedom::Rigid { gpus: 2 }, &[(0, 1), (1, 1)]),
        holding(3, Freedom::NonPreemptible, &[(0, 1)]),
        holding(4, Freedom::Restarting, &[(0, 1)]),
        Job { freedom: Freedom::Rigid { gpus: 3 }, ..plain::job(JobId(5)) },
        Job { freedom: Freedom::Rigid { gpus: 9 }, ..plain::job(JobId(6)) },
        Job { freedom: Freedom::NonPreemptible, ..job(JobId(7), 0.0) },
    ];
    let mut nodes = nodes(0..3);
    nodes[0].state = NodeState::Draining;
    nodes[2].state = NodeState::Cordoned;
    let snapshot = round(nodes, jobs);
    for genetic in both() {
        let genetic = Genetic { generations: 20, ..genetic };
        for seed in 0..3 {
            let plan = plan(&genetic, &snapshot, seed);
            let context = || format!("{:?}, {seed}: {plan:#?}", genetic.variant);
            let answer = |id: usize| &plan.jobs[id - 1];
            for (id, limit) in [(2, Limit::Pinned), (3, Limit::Pinned), (4, Limit::Restarting)] {
                assert_eq!(answer(id).decision, Decision::Keep, "{}", context());
                assert_eq!(answer(id).reason.limit, limit, "{}", context());
            }
            assert_eq!(answer(6).reason.limit, Limit::Impossible, "{}", context());
            // Of the two that wait, either gets what is left on node 1: all three, or some.
            assert!([0, 3].contains(&n_gpus(&answer(5).allocation)), "{}", context());
            let waiting = [5, 7].map(|id| answer(id).decision == Decision::Wait);
            assert_eq!(waiting.iter().filter(|waits| **waits).count(), 1, "{}", context());
            assert_eq!(answer(1).allocation, on(&[(2, 1)]), "{}", context());
        }
    }
}

/// How far a mean over seeds may be from the reference's fitness, which is that of one seed. Measured: 0.04 % and
/// 1.1 %.
const APART: [(&str, f64); 2] = [("n16x4-j10-s1", 0.01), ("n16x4-j40-s1", 0.04)];

#[test]
fn the_artifact_bred_by_us_is_as_fit_as_bred_by_its_authors() {
    for instance in reference::instances().into_iter().flatten() {
        let Some((name, apart)) = APART.into_iter().find(|(name, _)| *name == instance.name) else {
            continue;
        };
        let genetic = Genetic { settings: instance.settings(), ..Genetic::osdi21() };
        let (mut cold, mut warm) = (0.0, 0.0);
        for seed in 0..4 {
            let plan = genetic.plan(&instance.snapshot, &Terms::seeded(seed));
            cold += instance.fitness(&allocations(&plan)) / 4.0;
            let again = instance.snapshot.clone().carrying(plan.carried);
            warm += instance.fitness(&allocations(&genetic.plan(&again, &Terms::seeded(seed + 4)))) / 4.0;
        }
        for (label, ours) in [("cold", cold), ("warm1", warm)] {
            let answer =
                instance.answers.iter().find(|answer| answer.label == label).expect("a run of theirs");
            // By one evaluator: what is on record credits some answers with batches nobody may run.
            let theirs = instance.fitness(&answer.allocations);
            let difference = ours / theirs - 1.0;
            eprintln!(
                "{name} {label}: fitness {ours:.6}, the authors' {theirs:.6}, {:+.2} %",
                100.0 * difference
            );
            assert!(difference.abs() <= apart, "{name} {label}: {ours} against {theirs}");
        }
    }
}
