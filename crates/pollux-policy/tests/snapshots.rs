//! Snapshots that are none are refused with a reason; empty and hopeless ones get the obvious answer.

mod common;

use std::time::Duration;

use common::check::check;
use common::plain;
use pollux_model::{Allocation, GpuShare, GpuType, JobId, NodeId};
use pollux_policy::{
    AnyPolicy, Cluster, Decision, Freedom, Group, GroupId, Job, Node, NodeState, Plan, Pollux, Settings,
    Snapshot, SnapshotError, Terms, policies,
};

const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);
const GROUP: GroupId = GroupId(7);
const OTHER: GroupId = GroupId(8);
const JOB: JobId = JobId(3);

/// One node of four T4 and one of four A100, in no groups.
fn cluster() -> Cluster {
    Cluster { nodes: vec![plain::node(A, "t4", 4), plain::node(B, "a100", 4)], ..Cluster::default() }
}

fn group(id: GroupId, parent: Option<GroupId>) -> Group {
    Group { id, parent, entitled: [].into(), caps: [].into() }
}

/// A job that holds nothing and of which nothing is known.
fn job() -> Job {
    plain::job(JOB)
}

/// A job that reported.
fn profiled() -> Job {
    plain::profiled(JOB, &["t4", "a100"], 1)
}

fn refuses(cluster: Cluster, jobs: Vec<Job>, expected: &SnapshotError) {
    match Snapshot::new(cluster, jobs) {
        Err(error) => {
            assert_eq!(error, *expected);
            assert!(error.to_string().len() > 10, "{error}");
        }
        Ok(snapshot) => panic!("not {expected:?}, but {snapshot:?}"),
    }
}

fn refuses_job(edit: impl FnOnce(&mut Job), expected: &SnapshotError) {
    let mut job = job();
    edit(&mut job);
    refuses(cluster(), vec![job], expected);
}

fn refuses_cluster(edit: impl FnOnce(&mut Cluster), expected: &SnapshotError) {
    let mut cluster = cluster();
    edit(&mut cluster);
    refuses(cluster, vec![job()], expected);
}

#[test]
fn ids_are_unique() {
    refuses_cluster(|cluster| cluster.nodes[1].id = A, &SnapshotError::DuplicateNode(A));
    refuses(cluster(), vec![job(), job()], &SnapshotError::DuplicateJob(JOB));
    let twice = vec![group(GROUP, None), group(GROUP, None)];
    refuses_cluster(|cluster| cluster.groups = twice, &SnapshotError::DuplicateGroup(GROUP));
}

#[test]
fn what_is_referred_to_exists() {
    let gone = NodeId(9);
    refuses_job(
        |job| job.holds = Allocation::whole([(gone, 1)]),
        &SnapshotError::UnknownNode { job: JOB, node: gone },
    );
    refuses_job(|job| job.group = Some(GROUP), &SnapshotError::UnknownGroup(GROUP));
    let orphan = vec![group(GROUP, Some(OTHER))];
    refuses_cluster(|cluster| cluster.groups = orphan, &SnapshotError::UnknownGroup(OTHER));
}

#[test]
fn groups_are_a_forest() {
    let own_parent = vec![group(GROUP, Some(GROUP))];
    refuses_cluster(|cluster| cluster.groups = own_parent, &SnapshotError::CyclicGroups(GROUP));
    let circle = vec![group(GROUP, Some(OTHER)), group(OTHER, Some(GROUP))];
    refuses_cluster(|cluster| cluster.groups = circle, &SnapshotError::CyclicGroups(GROUP));
    // Named is who is on the loop, not who leads to it.
    let lasso = vec![group(GROUP, Some(OTHER)), group(OTHER, Some(OTHER))];
    refuses_cluster(|cluster| cluster.groups = lasso, &SnapshotError::CyclicGroups(OTHER));
}

#[test]
fn no_node_holds_more_than_it_has() {
    let overfull = |held, others| SnapshotError::Overfull { node: A, gpus: 4, held, others };
    refuses_job(|job| job.holds = Allocation::whole([(A, 5)]), &overfull(5, 0));
    refuses_cluster(|cluster| cluster.nodes[0].others = 5, &overfull(0, 5));
    let mut cluster = cluster();
    cluster.nodes[0].others = 2;
    let holding = |id| Job { id, holds: Allocation::whole([(A, 2)]), ..job() };
    refuses(cluster, vec![holding(JobId(1)), holding(JobId(2))], &overfull(4, 2));
}

#[test]
fn what_a_job_holds_is_whole_and_of_one_type() {
    refuses_job(|job| job.holds = Allocation::whole([(A, 1), (B, 1)]), &SnapshotError::MixedTypes(JOB));
    let half = GpuShare::part_of_one(500).and_then(|half| Allocation::part_of_one(A, half)).expect("a half");
    refuses_job(|job| job.holds = half, &SnapshotError::PartOfGpu(JOB));
    refuses_job(|job| job.freedom = Freedom::Restarting, &SnapshotError::RestartingNowhere(JOB));
}

#[test]
fn numbers_are_numbers() {
    let not_positive = |what| SnapshotError::NotPositive { job: JOB, what };
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        refuses_job(|job| job.weight = weight, &not_positive("its weight"));
    }
    refuses_job(|job| job.min_gpus = 0, &not_positive("its fewest GPUs"));
    for attained in [-1.0, f64::NAN, f64::INFINITY] {
        refuses_job(|job| job.attained = attained, &not_positive("the GPU-seconds it has held"));
    }
    refuses_job(|job| job.freedom = Freedom::Rigid { gpus: 0 }, &not_positive("the GPUs it asks for"));
    refuses_job(
        |job| (job.min_gpus, job.max_gpus) = (3, Some(2)),
        &SnapshotError::MinAboveMax { job: JOB, min: 3, max: 2 },
    );
    for speed in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let t4 = GpuType::new("t4");
        refuses_cluster(
            |cluster| _ = cluster.speeds.insert(t4.clone(), speed),
            &SnapshotError::BadSpeed(t4.clone()),
        );
    }
}

/// What each policy answers; every answer can be carried out.
fn plans(cluster: Cluster, jobs: Vec<Job>) -> Vec<(&'static str, Plan)> {
    let snapshot = Snapshot::new(cluster, jobs).expect("a snapshot");
    let plan = |policy: Box<dyn AnyPolicy>| {
        let plan = policy.plan(&snapshot, &Terms::seeded(1));
        let name = policy.about().name;
        check(&snapshot, &plan).unwrap_or_else(|wrong| panic!("{name}: {wrong}\n{plan:#?}"));
        if let Some(certificate) = plan.certificate {
            let numbers = [certificate.value, certificate.gap()];
            assert!(numbers.iter().all(|number| number.is_finite()), "{name}: {certificate:?}");
        }
        (name, plan)
    };
    policies().into_iter().map(plan).collect()
}

fn all_wait(cluster: Cluster, jobs: Vec<Job>) {
    for (name, plan) in plans(cluster, jobs) {
        for answer in &plan.jobs {
            assert!(matches!(answer.decision, Decision::Wait | Decision::Reject), "{name}: {answer:?}");
        }
    }
}

#[test]
fn nothing_asked_nothing_answered() {
    all_wait(Cluster::default(), Vec::new());
    all_wait(cluster(), Vec::new());
}

#[test]
fn without_gpus_everyone_waits() {
    all_wait(Cluster::default(), vec![job(), Job { id: JobId(4), ..profiled() }]);
    for edit in [
        (|node: &mut Node| node.gpus = 0) as fn(&mut Node),
        |node| node.others = node.gpus,
        |node| node.state = NodeState::Cordoned,
        |node| node.state = NodeState::Draining,
    ] {
        let mut cluster = cluster();
        cluster.nodes.iter_mut().for_each(edit);
        all_wait(cluster, vec![job(), Job { id: JobId(4), ..profiled() }]);
    }
}

#[test]
fn who_fits_nowhere_waits() {
    for base in [job(), profiled()] {
        let types = [GpuType::new("tpu")].into();
        all_wait(cluster(), vec![Job { types, ..base.clone() }]);
        all_wait(cluster(), vec![Job { min_gpus: 9, ..base.clone() }]);
        all_wait(cluster(), vec![Job { min_gpus: u32::MAX, ..base.clone() }]);
        all_wait(cluster(), vec![Job { freedom: Freedom::Rigid { gpus: 5 }, ..base.clone() }]);
        all_wait(cluster(), vec![Job { freedom: Freedom::Rigid { gpus: u32::MAX }, ..base.clone() }]);
        let mut capped = cluster();
        let caps = capped.nodes.iter().map(|node| (node.gpu_type.clone(), 0)).collect();
        capped.groups = vec![Group { caps, ..group(GROUP, None) }];
        all_wait(capped, vec![Job { group: Some(GROUP), ..base }]);
    }
}

/// Policies need not answer well, but they must answer.
#[test]
fn absurd_numbers_break_nothing() {
    let absurd: [fn(&mut Job); 9] = [
        |job| job.weight = 1e300,
        |job| job.weight = 1e-300,
        |job| job.age = Duration::MAX,
        |job| job.age = Duration::ZERO,
        |job| job.restart_cost = Duration::MAX,
        |job| job.restarts = u32::MAX,
        |job| job.attained = 1e300,
        |job| job.max_gpus = Some(u32::MAX),
        |job| job.knows.learned.most_gpus = u32::MAX,
    ];
    for edit in absurd {
        for holds in [Allocation::none(), Allocation::whole([(A, 2)])] {
            let mut odd = Job { holds, ..profiled() };
            edit(&mut odd);
            let mut cluster = cluster();
            plans(cluster.clone(), vec![odd.clone(), Job { id: JobId(4), ..profiled() }]);
            cluster.speeds = [(GpuType::new("t4"), 1e300), (GpuType::new("a100"), 1e-300)].into();
            plans(cluster, vec![odd]);
        }
    }
}

#[test]
fn absurd_settings_break_nothing() {
    let paper = Settings::PAPER;
    let jobs = vec![profiled(), Job { id: JobId(4), holds: Allocation::whole([(A, 2)]), ..profiled() }];
    let snapshot = Snapshot::new(cluster(), jobs).expect("a snapshot");
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, 0.0, -1.0] {
        for settings in [
            Settings { fairness: odd, ..paper },
            Settings { exploration: odd, ..paper },
            Settings { floor: odd, ..paper },
            Settings { scale: odd, ..paper },
        ] {
            let plan = Pollux { settings }.plan(&snapshot, &Terms::seeded(1));
            check(&snapshot, &plan).unwrap_or_else(|wrong| panic!("{settings:?}: {wrong}"));
        }
    }
}

/// More GPUs than can be counted: an error or a plan, no panic.
#[test]
fn too_many_gpus_to_count_break_nothing() {
    let mut cluster = cluster();
    for node in &mut cluster.nodes {
        node.gpu_type = GpuType::new("t4");
        node.gpus = u32::MAX;
    }
    let Ok(snapshot) = Snapshot::new(cluster, vec![job()]) else { return };
    for policy in policies() {
        let plan = policy.plan(&snapshot, &Terms::seeded(1));
        check(&snapshot, &plan).unwrap_or_else(|wrong| panic!("{}: {wrong}", policy.about().name));
    }
}
