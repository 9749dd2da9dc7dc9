//! What holds for every cluster and every policy.

mod common;

use std::cell::Cell;

use common::Dice;
use common::check::{check, check_interference};
use common::random_snapshot::{Shape, draw};
use common::rounds::{allocations, holds, judge};
use pollux_model::{Allocation, JobId, NodeId};
use pollux_policy::{
    AnyPolicy, Certificate, FairShare, Known, Plan, Pollux, RestartPrice, Settings, Snapshot, Stopped, Terms,
    policies,
};

const N_SNAPSHOTS: u64 = 150;

/// Policies that are compared with ours and do not keep distributed jobs apart.
const MIXING: [&str; 6] = ["tiresias", "optimus", "fifo", "fair-share", "srtf", "gavel"];

/// Enough work to try everything once, little enough to try hundreds of clusters.
const LITTLE_WORK: u64 = 3_000;

fn snapshots(salt: u64) -> impl Iterator<Item = (u64, Snapshot<Known>)> {
    (0..N_SNAPSHOTS).map(move |seed| (seed, draw(&mut Dice(seed << 8 | salt), &Shape::ANY)))
}

fn little(seed: u64) -> Terms<'static> {
    Terms { work: Some(LITTLE_WORK), ..Terms::seeded(seed) }
}

fn check_all(policy: &dyn AnyPolicy, snapshot: &Snapshot<Known>, plan: &Plan, seed: u64) {
    let name = policy.about().name;
    let mixes = MIXING.contains(&name);
    let checked =
        check(snapshot, plan).and_then(|()| if mixes { Ok(()) } else { check_interference(snapshot, plan) });
    checked.unwrap_or_else(|wrong| panic!("{name}, {seed}: {wrong}\n{snapshot:#?}\n{plan:#?}"));
}

#[test]
fn every_plan_can_be_carried_out() {
    for (seed, snapshot) in snapshots(1) {
        for policy in policies() {
            check_all(&*policy, &snapshot, &policy.plan(&snapshot, &little(seed)), seed);
        }
    }
}

#[test]
fn plans_of_every_objective_can_be_carried_out() {
    for (seed, snapshot) in snapshots(2) {
        let policy = Pollux { settings: settings(&mut Dice(seed)) };
        check_all(&policy, &snapshot, &policy.plan(&snapshot, &little(seed)), seed);
    }
}

#[test]
fn the_same_seed_gives_the_same_plan() {
    for (seed, snapshot) in snapshots(3) {
        for policy in policies() {
            let first = policy.plan(&snapshot, &little(seed));
            assert_eq!(
                first,
                policy.plan(&snapshot.clone(), &little(seed)),
                "{}, {seed}",
                policy.about().name
            );
        }
    }
}

#[test]
fn a_plan_that_a_deadline_cut_can_be_repeated() {
    for (seed, snapshot) in snapshots(4) {
        for policy in policies() {
            let name = policy.about().name;
            let asked = Cell::new(0);
            let is_late = || {
                asked.set(asked.get() + 1);
                asked.get() > seed % 4
            };
            let cut = policy.plan(&snapshot, &Terms { deadline: Some(&is_late), ..Terms::seeded(seed) });
            check_all(&*policy, &snapshot, &cut, seed);
            if cut.work.stopped == Stopped::Deadline {
                let terms = Terms { work: Some(cut.work.units), ..Terms::seeded(seed) };
                let repeated = policy.plan(&snapshot, &terms);
                assert_eq!(cut.jobs, repeated.jobs, "{name}, {seed}");
                assert_eq!(cut.certificate, repeated.certificate, "{name}, {seed}");
            }
        }
    }
}

#[test]
fn certificates_say_what_the_plan_is_worth() {
    for (seed, snapshot) in snapshots(5) {
        let settings = settings(&mut Dice(seed));
        let plan = Pollux { settings }.plan(&snapshot, &little(seed));
        let Some(certificate) = plan.certificate else {
            panic!("{seed}: no certificate");
        };
        let Certificate { value, bound, starved, starved_bound, n_running } = certificate;
        let judgement = judge(&snapshot, &settings, &allocations(&plan));
        let context =
            || format!("{seed}: {certificate:?}, {judgement:?}, {settings:?}\n{snapshot:#?}\n{plan:#?}");
        assert!((value - judgement.value).abs() <= 1e-9 * value.abs().max(1e-9), "{}", context());
        assert!(value <= bound * (1.0 + 1e-9), "{}", context());
        assert!(starved_bound <= starved, "{}", context());
        // Jobs that could run nowhere are not starved.
        assert!(starved.total() <= judgement.starved.total(), "{}", context());
        let holding = plan.jobs.iter().filter(|answer| !answer.allocation.is_empty()).count();
        assert_eq!(n_running as usize, holding, "{}", context());
    }
}

/// Any objective.
fn settings(dice: &mut Dice) -> Settings {
    if dice.chance(0.1) {
        return Settings::osdi21(4);
    }
    let hour = std::time::Duration::from_hours(1);
    Settings {
        fairness: dice.one_of(&[-1.0, -1.0, 1.0, 0.5, 0.0, -0.5, -5.0]),
        fair_share: dice.one_of(&[FairShare::Packed, FairShare::OneNode]),
        restart_price: dice.one_of(&[RestartPrice::Paper, RestartPrice::Free, RestartPrice::Horizon(hour)]),
        exploration: dice.one_of(&[1.0, 2.0, 1e9]),
        ..Settings::PAPER
    }
}

#[test]
fn names_change_no_value() {
    for (seed, snapshot) in snapshots(6) {
        let mut dice = Dice(seed);
        let settings = settings(&mut dice);
        let plan = Pollux { settings }.plan(&snapshot, &little(seed));
        let names = Names::draw(&mut dice, &snapshot);
        let renamed = names.rename(&snapshot);
        for allocations in [holds(&snapshot), allocations(&plan)] {
            let before = judge(&snapshot, &settings, &allocations);
            let allocations: Vec<_> =
                names.jobs.iter().map(|&job| names.allocation(&allocations[job])).collect();
            let after = judge(&renamed, &settings, &allocations);
            assert_eq!(before.starved, after.starved, "{seed}");
            for (before, after) in [(before.value, after.value), (before.sum, after.sum)] {
                // The order of a sum shows in its last bits.
                assert!((before - after).abs() <= 1e-12 * before.abs(), "{seed}: {before} became {after}");
            }
        }
    }
}

/// Other orders and ids.
struct Names {
    /// The order of the jobs.
    jobs: Vec<usize>,
    /// The order of the nodes.
    nodes: Vec<usize>,
    /// New ids by old ones.
    ids: Vec<(NodeId, NodeId)>,
}

impl Names {
    fn draw(dice: &mut Dice, snapshot: &Snapshot<Known>) -> Self {
        let mut order = |n: usize| -> Vec<usize> {
            let mut keyed: Vec<(u64, usize)> = (0..n).map(|index| (dice.bits(), index)).collect();
            keyed.sort_unstable();
            keyed.into_iter().map(|(_, index)| index).collect()
        };
        let nodes = &snapshot.cluster().nodes;
        let (jobs, order_of_nodes, ids) =
            (order(snapshot.jobs().len()), order(nodes.len()), order(nodes.len()));
        let ids = nodes.iter().zip(ids).map(|(node, id)| (node.id, NodeId(u32::try_from(id).expect("few"))));
        Self { jobs, ids: ids.collect(), nodes: order_of_nodes }
    }

    fn node(&self, id: NodeId) -> NodeId {
        self.ids.iter().find(|(old, _)| *old == id).expect("a node of the snapshot").1
    }

    fn allocation(&self, allocation: &Allocation) -> Allocation {
        Allocation::whole(allocation.iter().map(|(node, share)| (self.node(node), share.n_replicas())))
    }

    fn rename(&self, snapshot: &Snapshot<Known>) -> Snapshot<Known> {
        let mut cluster = snapshot.cluster().clone();
        cluster.nodes = self.nodes.iter().map(|&index| snapshot.cluster().nodes[index].clone()).collect();
        for node in &mut cluster.nodes {
            node.id = self.node(node.id);
        }
        let mut jobs = Vec::new();
        for &index in &self.jobs {
            let mut job = snapshot.jobs()[index].clone();
            job.id = JobId(jobs.len() as u64);
            job.holds = self.allocation(&job.holds);
            jobs.push(job);
        }
        Snapshot::new(cluster, jobs).expect("the same but for names")
    }
}
