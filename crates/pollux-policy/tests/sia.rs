//! Sia: its program solved to the optimum that another solver finds, and its rules with numbers done in one's head.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers, in tests")]

mod common;
#[allow(dead_code, reason = "the names are for scenarios")]
#[path = "decisions/models.rs"]
mod models;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::Dice;
use common::check::{check, check_interference};
use common::plain;
use common::random_snapshot::{draw_model, faster};
use common::rounds::{edited, in_place, n_gpus};
use microlp::{ComparisonOp, OptimizationDirection, Problem};
use pollux_model::{Allocation, GpuType, JobCurves, JobId, NodeId};
use pollux_policy::sia::{Chosen, Column, Program};
use pollux_policy::{
    Cluster, Freedom, Job, JobPlan, Known, Learned, Limit, Policy, Sia, Snapshot, Stopped, Terms,
};

/// The cluster of Sia's evaluation: 6 x 4 T4, 3 x 8 RTX 2080 Ti, 2 x 8 A100.
fn published_cluster() -> Cluster {
    let kinds = [("t4", 4, 6), ("rtx", 8, 3), ("a100", 8, 2)];
    let nodes = kinds.into_iter().flat_map(|(name, gpus, n_nodes)| (0..n_nodes).map(move |_| (name, gpus)));
    let nodes = (0..).zip(nodes).map(|(id, (name, gpus))| plain::node(NodeId(id), name, gpus));
    let speeds = [("t4", 1.0), ("rtx", 1.9), ("a100", 4.5)].map(|(name, speed)| (GpuType::new(name), speed));
    Cluster { nodes: nodes.collect(), speeds: speeds.into(), ..Cluster::default() }
}

/// A job like those of the evaluation: faster on newer GPUs, by how much depends on the job.
fn arriving(dice: &mut Dice, id: u64) -> Job {
    let model = draw_model(dice);
    let speeds = [("t4", 1.0), ("rtx", dice.log_uniform(1.2, 2.5)), ("a100", dice.log_uniform(2.0, 8.0))];
    let seen = |dice: &mut Dice| dice.chance(0.8);
    let models: BTreeMap<GpuType, _> = speeds
        .into_iter()
        .filter(|(name, _)| *name == "t4" || seen(dice))
        .map(|(name, speed)| (GpuType::new(name), faster(&model, speed)))
        .collect();
    let mut curves = JobCurves::default();
    curves.update(models, 8, 24);
    let most_gpus = dice.one_of(&[1, 1, 2, 4, 8, 16]);
    let learned = Learned { curves: Arc::new(curves), most_gpus };
    let restart_cost = Duration::from_secs(dice.one_of(&[25, 30, 45, 120, 250]));
    let age = Duration::from_secs(dice.log_uniform(10.0, 20_000.0) as u64);
    let knows = Known { learned, ..Known::default() };
    Job { age, restart_cost, knows, ..plain::job(JobId(id)) }
}

/// The next minute: the plan is in place, jobs have seen what they hold, some end, some come, some are restarting.
fn next(dice: &mut Dice, sia: &Sia, snapshot: &Snapshot, n_jobs: u64, new_id: &mut u64) -> Snapshot {
    let plan = sia.plan(&snapshot.seen_with(), &Terms::seeded(1));
    check(snapshot, &plan).and_then(|()| check_interference(snapshot, &plan)).unwrap();
    edited(&in_place(snapshot, &plan, Duration::from_mins(1)), |jobs| {
        for (job, answer) in jobs.iter_mut().zip(&plan.jobs) {
            job.knows.learned.most_gpus = job.knows.learned.most_gpus.max(n_gpus(&job.holds));
            let is_new = answer.decision == pollux_policy::Decision::Place;
            job.freedom = if is_new && dice.chance(0.3) { Freedom::Restarting } else { Freedom::Elastic };
        }
        jobs.retain(|_| dice.chance(0.85));
        while (jobs.len() as u64) < n_jobs {
            jobs.push(arriving(dice, *new_id));
            *new_id += 1;
        }
    })
}

/// What another solver says the least cost is.
fn oracle(program: &Program) -> f64 {
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let mut rows = vec![Vec::new(); program.room.len()];
    for columns in &program.jobs {
        let waits = problem.add_binary_var(program.waiting);
        let mut one = vec![(waits, 1.0)];
        // What costs more than waiting can be left out; infinite costs have to be.
        for column in columns.iter().filter(|column| column.cost <= program.waiting) {
            let variable = problem.add_binary_var(column.cost);
            one.push((variable, 1.0));
            for &(row, amount) in &column.uses {
                rows[row].push((variable, f64::from(amount)));
            }
        }
        problem.add_constraint(one, ComparisonOp::Eq, 1.0);
    }
    for (row, room) in rows.into_iter().zip(&program.room) {
        problem.add_constraint(row, ComparisonOp::Le, f64::from(*room));
    }
    problem.solve().expect("solvable").into_solution().expect("solved").objective()
}

fn check_optimal(program: &Program, context: &str) -> Chosen {
    let chosen = program.solve(&Terms::default());
    let judged =
        program.judge(&chosen.columns).unwrap_or_else(|| panic!("{context}: no room for {chosen:?}"));
    assert!((judged - chosen.cost).abs() < 1e-9, "{context}: {judged}, not {chosen:?}");
    assert_eq!(chosen.work.stopped, Stopped::Done, "{context}: {chosen:?}");
    let optimum = oracle(program);
    assert!((chosen.cost - optimum).abs() < 1e-6, "{context}: {} instead of {optimum}", chosen.cost);
    assert!((chosen.bound - optimum).abs() < 1e-6, "{context}: bound {}", chosen.bound);
    chosen
}

#[test]
fn a_hundred_rounds_are_solved_to_the_optimum_of_another_solver() {
    let (mut n_rounds, mut most_units, mut n_chosen) = (0, 0, 0);
    for seed in 0..12 {
        let mut dice = Dice(seed);
        let n_jobs = 4 + seed * 36 / 11;
        let mut new_id = n_jobs;
        let jobs = (0..n_jobs).map(|id| arriving(&mut dice, id)).collect();
        let mut snapshot = Snapshot::new(published_cluster(), jobs).expect("a snapshot");
        let sia = Sia { is_rounded: seed % 4 == 3, ..Sia::default() };
        for round in 0..10 {
            let program = sia.program(&snapshot.seen_with());
            let chosen = check_optimal(&program, &format!("seed {seed}, round {round}"));
            n_rounds += 1;
            most_units = most_units.max(chosen.work.units);
            n_chosen += chosen.columns.iter().flatten().count();
            snapshot = next(&mut dice, &sia, &snapshot, n_jobs, &mut new_id);
        }
    }
    assert_eq!(n_rounds, 120);
    assert!(n_chosen > 1_000, "{n_chosen} jobs placed: the rounds are too easy to say anything");
    assert!(most_units < 20_000_000, "{most_units} units");
}

#[test]
fn knapsacks_of_odd_sizes_are_solved_to_the_optimum_of_another_solver() {
    for seed in 0..60 {
        let mut dice = Dice(1_000 + seed);
        let n_rows = dice.whole(1, 4) as usize;
        let room: Vec<u32> = (0..n_rows).map(|_| dice.whole(1, 30) as u32).collect();
        let column = |dice: &mut Dice| {
            let first = dice.index(n_rows);
            let mut uses = vec![(first, dice.whole(1, 9) as u32)];
            if first + 1 < n_rows && dice.chance(0.3) {
                uses.push((n_rows - 1, dice.whole(1, 5) as u32));
            }
            Column { cost: dice.unit() * 1.2, uses }
        };
        let n_jobs = dice.whole(1, 12);
        let jobs = (0..n_jobs).map(|_| (0..dice.whole(0, 8)).map(|_| column(&mut dice)).collect()).collect();
        check_optimal(&Program { jobs, waiting: 1.1, room }, &format!("seed {seed}"));
    }
}

/// Nodes 0, 1, .. of a type and with so many GPUs.
fn nodes(nodes: &[(&str, u32)]) -> Cluster {
    let nodes = (0..).zip(nodes).map(|(id, &(name, gpus))| plain::node(NodeId(id), name, gpus));
    Cluster { nodes: nodes.collect(), ..Cluster::default() }
}

/// A job that was seen on so many GPUs, with a model by its name on each type at a speed.
fn seen_on(id: u64, most_gpus: u32, on: &[(&str, &str, f64)]) -> Job {
    let models = on.iter().map(|(gpu_type, name, speed)| {
        (GpuType::new(gpu_type), models::model(name, *speed).expect("a model of this name"))
    });
    let mut curves = JobCurves::default();
    curves.update(models.collect(), 8, 64);
    let learned = Learned { curves: Arc::new(curves), most_gpus };
    Job { knows: Known { learned, ..Known::default() }, ..plain::job(JobId(id)) }
}

fn linear(id: u64, most_gpus: u32) -> Job {
    seen_on(id, most_gpus, &[("t4", "linear", 1.0)])
}

fn holding(job: Job, counts: &[(u32, u32)]) -> Job {
    Job { holds: Allocation::whole(counts.iter().map(|&(node, gpus)| (NodeId(node), gpus))), ..job }
}

/// What becomes of each job: `keep 0=2 1=1` or `wait starved`.
fn check_plan(cluster: &Cluster, jobs: &[Job], expected: &[&str]) {
    let snapshot = Snapshot::new(cluster.clone(), jobs.to_vec()).expect("a snapshot");
    let plan = Sia::default().plan(&snapshot.seen_with(), &Terms::seeded(1));
    check(&snapshot, &plan).and_then(|()| check_interference(&snapshot, &plan)).unwrap();
    let line = |answer: &JobPlan| {
        let decision = format!("{:?}", answer.decision).to_lowercase();
        let places =
            answer.allocation.iter().map(|(node, share)| format!(" {}={}", node.0, share.n_replicas()));
        let limit = match &answer.reason.limit {
            Limit::Unstated => String::new(),
            limit => format!(" {limit:?}").to_lowercase(),
        };
        decision + &places.collect::<String>() + &limit
    };
    assert_eq!(plan.jobs.iter().map(line).collect::<Vec<_>>(), expected);
    let certificate = plan.certificate.expect("Sia has an objective");
    assert!(certificate.gap() < 1e-9, "{certificate:?}");
}

#[test]
fn a_job_starts_on_one_gpu_and_at_most_doubles() {
    let two = nodes(&[("t4", 4), ("t4", 4)]);
    check_plan(&two, &[linear(1, 0)], &["place 0=1"]);
    check_plan(&two, &[linear(1, 1)], &["place 0=2"]);
    check_plan(&two, &[linear(1, 3)], &["place 0=4"]);
    check_plan(&two, &[linear(1, 4)], &["place 0=4 1=4"]);
    check_plan(&two, &[Job { max_gpus: Some(7), ..linear(1, 9) }], &["place 0=4"]);
    check_plan(&two, &[Job { min_gpus: 3, ..linear(1, 0) }], &["place 0=4"]);
    check_plan(&two, &[Job { min_gpus: 3, max_gpus: Some(3), ..linear(1, 0) }], &["place 0=3"]);
    // Nothing is known of it.
    check_plan(&two, &[plain::job(JobId(1))], &["place 0=1"]);
}

#[test] // 4 GPUs: 2 + 2 costs 0.71 + 0.71, 4 + 0 costs 0.5 + 1.1.
fn gpus_are_shared_in_powers_of_two() {
    let one = nodes(&[("t4", 4)]);
    check_plan(&one, &[linear(1, 4), linear(2, 4)], &["place 0=2", "place 0=2"]);
    // Waiting costs 1.1, so that two may wait for a third: 1 + 1 + 0.71 is more than 1.1 + 1.1 + 0.5.
    let flat = |id| seen_on(id, 4, &[("t4", "flat", 1.0)]);
    check_plan(&one, &[flat(1), flat(2), linear(3, 4)], &["wait starved", "wait starved", "place 0=4"]);
    check_plan(&one, &[flat(1), flat(2), linear(3, 1)], &["place 0=1", "place 0=1", "place 0=2"]);
    // Node sizes that are no power of two: 4 + 2.
    check_plan(&nodes(&[("t4", 6)]), &[linear(1, 8), linear(2, 8)], &["place 0=2", "place 0=4"]);
}

#[test] // On the A100: 4^-0.5 + 1 = 1.5 against 1.2^-0.5 + 1 = 1.91.
fn each_job_goes_to_the_type_that_suits_it() {
    let both = nodes(&[("t4", 1), ("a100", 1)]);
    let job = |id, speed| seen_on(id, 0, &[("t4", "linear", 1.0), ("a100", "linear", speed)]);
    check_plan(&both, &[job(1, 1.2), job(2, 4.0)], &["place 0=1", "place 1=1"]);
    check_plan(&both, &[job(1, 4.0), job(2, 1.2)], &["place 1=1", "place 0=1"]);
    let only_t4 = Job { types: [GpuType::new("t4")].into(), ..job(1, 4.0) };
    check_plan(&both, &[only_t4], &["place 0=1"]);
}

#[test] // Staying costs 2^-0.5 = 0.71. At 60 s after one restart of 30 s: r = 30 / 90, (4 / 3)^-0.5 = 0.87.
fn a_restart_must_be_worth_it() {
    let one = nodes(&[("t4", 4)]);
    let aged = |age| Job { age: Duration::from_secs(age), restarts: 1, ..holding(linear(1, 2), &[(0, 2)]) };
    check_plan(&one, &[aged(60)], &["keep 0=2"]);
    // r = 970 / 1030: 3.77^-0.5 = 0.52.
    check_plan(&one, &[aged(1_000)], &["place 0=4"]);
    // Not in its first seconds.
    check_plan(&one, &[aged(29)], &["place 0=4"]);
}

#[test]
fn who_may_not_be_moved_stays() {
    let two = nodes(&[("t4", 4), ("t4", 4)]);
    let restarting = |job| Job { freedom: Freedom::Restarting, ..job };
    let pinned = restarting(holding(linear(1, 1), &[(0, 1)]));
    // 7 GPUs are left, in whole nodes: one. Two on whole nodes would need two.
    check_plan(&two, &[pinned.clone(), linear(2, 8)], &["keep 0=1 restarting", "place 1=4"]);
    // 1 + 1 and 3 + 3 GPUs: nobody can have four of them.
    let other = restarting(holding(linear(3, 1), &[(1, 1)]));
    let expected = ["keep 0=1 restarting", "place 0=2", "keep 1=1 restarting"];
    check_plan(&two, &[pinned, linear(2, 8), other], &expected);
    // A rigid job has one column.
    let rigid = Job { freedom: Freedom::Rigid { gpus: 3 }, ..plain::job(JobId(1)) };
    check_plan(&two, &[rigid.clone(), linear(2, 4)], &["place 0=3", "place 1=4"]);
    check_plan(&two, &[Job { freedom: Freedom::Rigid { gpus: 9 }, ..rigid }], &["wait impossible"]);
}

#[test]
fn who_is_in_the_way_of_whole_nodes_is_moved() {
    let two = nodes(&[("t4", 2), ("t4", 2)]);
    let flat = |id, node| holding(seen_on(id, 1, &[("t4", "flat", 1.0)]), &[(node, 1)]);
    check_plan(&two, &[flat(1, 0), flat(2, 1), linear(3, 1)], &["place 1=1", "keep 1=1", "place 0=2"]);
    // Nothing is in the way.
    check_plan(&two, &[flat(1, 0), flat(2, 0), linear(3, 1)], &["keep 0=1", "keep 0=1", "place 1=2"]);
}

/// Costs of a job's configurations, type by type, as multiples of goodput.
fn check_values(cluster: &Cluster, job: Job, expected: &[f64]) {
    let snapshot = Snapshot::new(cluster.clone(), vec![job]).expect("a snapshot");
    let program = Sia::default().program(&snapshot.seen_with());
    let values: Vec<f64> = program.jobs[0].iter().map(|column| 1.0 / (column.cost * column.cost)).collect();
    let is_close = values.iter().zip(expected).all(|(value, expected)| (value - expected).abs() < 1e-9);
    assert!(values.len() == expected.len() && is_close, "{values:?}, not {expected:?}");
}

#[test] // Two nodes: 5/6 of linear. Types by name: the A100 first.
fn what_one_gpu_of_a_type_does_not_tell_another_type_does() {
    let four = nodes(&[("t4", 1), ("t4", 1), ("a100", 1), ("a100", 1)]);
    let seen_both = [("t4", "near", 1.0), ("a100", "linear", 4.0)];
    check_values(&four, seen_on(1, 2, &seen_both), &[4.0, 4.0 * 5.0 / 3.0, 1.0, 5.0 / 3.0]);
    // Never seen on an A100: three times as fast, they say.
    let speeds = [("t4", 1.0), ("a100", 3.0)].map(|(name, speed)| (GpuType::new(name), speed));
    let told = Cluster { speeds: speeds.into(), ..four.clone() };
    check_values(&told, seen_on(1, 2, &seen_both[..1]), &[3.0, 5.0, 1.0, 5.0 / 3.0]);
    // A rigid job counts by its GPUs on the slowest type.
    let rigid = Job { freedom: Freedom::Rigid { gpus: 2 }, ..plain::job(JobId(1)) };
    check_values(&told, rigid, &[6.0, 2.0]);
}

#[test]
fn costs_can_be_rounded_as_the_artifact_does() {
    let snapshot = Snapshot::new(nodes(&[("t4", 4)]), vec![seen_on(1, 1, &[("t4", "saturating", 1.0)])]);
    let program = Sia { is_rounded: true, ..Sia::default() }.program(&snapshot.expect("one").seen_with());
    // 1 and 4/3: 0.866.
    let costs: Vec<f64> = program.jobs[0].iter().map(|column| column.cost).collect();
    assert_eq!(costs, [1.0, 0.87]);
}
