//! Whether a plan can be carried out, from the plan and the snapshot alone.

use std::collections::BTreeMap;

use pollux_model::{Allocation, GpuShare, GpuType, NodeId};
use pollux_policy::{Decision, Freedom, Group, Job, JobPlan, Known, Node, NodeState, Plan, Snapshot};

/// Checks everything that every plan must keep; says what is wrong.
pub fn check(snapshot: &Snapshot<Known>, plan: &Plan) -> Result<(), String> {
    let jobs = snapshot.jobs();
    let ids = |ids: &mut dyn Iterator<Item = u64>| ids.collect::<Vec<_>>();
    let asked = ids(&mut jobs.iter().map(|job| job.id.0));
    let answered = ids(&mut plan.jobs.iter().map(|answer| answer.job.0));
    ensure(asked == answered, || format!("answers for {answered:?}, not {asked:?}"))?;
    let nodes: BTreeMap<NodeId, &Node> =
        snapshot.cluster().nodes.iter().map(|node| (node.id, node)).collect();
    for (job, answer) in jobs.iter().zip(&plan.jobs) {
        check_decision(job, answer)
            .and_then(|()| check_places(job, &answer.allocation, &nodes))
            .and_then(|()| check_limits(job, &answer.allocation))
            .map_err(|wrong| format!("job {:?}: {wrong}", job.id))?;
    }
    for node in nodes.values() {
        let held: f64 =
            plan.jobs.iter().filter_map(|answer| answer.allocation.on(node.id)).map(GpuShare::gpus).sum();
        let room = f64::from(node.gpus - node.others);
        ensure(held <= room + 1e-9, || format!("{held} of {room} GPUs of {:?} are held", node.id))?;
    }
    check_caps(snapshot, plan, &nodes)
}

/// No two jobs on several nodes share one, unless neither may be moved.
pub fn check_interference(snapshot: &Snapshot<Known>, plan: &Plan) -> Result<(), String> {
    for node in &snapshot.cluster().nodes {
        let there: Vec<&Job<Known>> = spread_on(snapshot, plan, node.id).collect();
        let only_pinned = there.iter().all(|job| job.is_pinned());
        ensure(there.len() < 2 || only_pinned, || {
            format!("{} distributed jobs on {:?}", there.len(), node.id)
        })?;
    }
    Ok(())
}

fn spread_on<'a>(
    snapshot: &'a Snapshot<Known>,
    plan: &'a Plan,
    node: NodeId,
) -> impl Iterator<Item = &'a Job<Known>> {
    let answers = snapshot.jobs().iter().zip(&plan.jobs);
    let spread = answers.filter(move |(_, answer)| {
        answer.allocation.on(node).is_some() && answer.allocation.iter().count() > 1
    });
    spread.map(|(job, _)| job)
}

fn ensure(is_fine: bool, wrong: impl FnOnce() -> String) -> Result<(), String> {
    if is_fine { Ok(()) } else { Err(wrong()) }
}

/// What is decided is what the allocation says, and pinned jobs stay.
fn check_decision(job: &Job<Known>, answer: &JobPlan) -> Result<(), String> {
    let stays = answer.allocation == job.holds;
    let fits = match answer.decision {
        Decision::Keep => stays && !job.holds.is_empty(),
        Decision::Place => !stays && !answer.allocation.is_empty(),
        Decision::Wait | Decision::Reject => answer.allocation.is_empty(),
    };
    let what = || format!("{:?} from {:?} to {:?}", answer.decision, job.holds, answer.allocation);
    ensure(fits, what)?;
    ensure(!job.is_pinned() || stays, || format!("pinned, yet {}", what()))
}

/// New GPUs are on open nodes, of one type, which the job may use; who can leave a draining node does.
fn check_places(
    job: &Job<Known>,
    allocation: &Allocation,
    nodes: &BTreeMap<NodeId, &Node>,
) -> Result<(), String> {
    let mut gpu_type: Option<&GpuType> = None;
    for (id, _) in allocation.iter() {
        let node = *nodes.get(&id).ok_or_else(|| format!("{id:?} is not there"))?;
        if *allocation != job.holds {
            ensure(node.state == NodeState::Ready, || format!("{id:?} is {:?}", node.state))?;
            let may = job.types.is_empty() || job.types.contains(&node.gpu_type);
            ensure(may, || format!("may not use {}", node.gpu_type))?;
        }
        ensure(node.state != NodeState::Draining || job.is_pinned(), || format!("stays on draining {id:?}"))?;
        let other = gpu_type.replace(&node.gpu_type);
        ensure(other.is_none_or(|other| *other == node.gpu_type), || "GPUs of two types".to_owned())?;
    }
    Ok(())
}

/// As many GPUs as the job can use. Who may not be moved, or has not reported yet, stays as it is.
fn check_limits(job: &Job<Known>, allocation: &Allocation) -> Result<(), String> {
    let Some(placement) = allocation.placement() else { return Ok(()) };
    let is_left_alone = job.is_pinned() || job.knows.learned.curves.iter().next().is_none();
    if *allocation == job.holds && is_left_alone {
        return Ok(());
    }
    let (least, most) = match job.freedom {
        Freedom::Rigid { gpus } => (gpus, gpus),
        _ => (job.min_gpus, job.max_gpus.unwrap_or(u32::MAX)),
    };
    let gpus = placement.n_replicas();
    ensure((least..=most).contains(&gpus), || format!("{gpus} GPUs, not {least} to {most}"))
}

/// No group holds more than its caps, unless by what may not be moved alone.
fn check_caps(
    snapshot: &Snapshot<Known>,
    plan: &Plan,
    nodes: &BTreeMap<NodeId, &Node>,
) -> Result<(), String> {
    let groups = &snapshot.cluster().groups;
    for group in groups {
        for (gpu_type, &cap) in &group.caps {
            let (mut held, mut may_move) = (0.0, false);
            for (job, answer) in snapshot.jobs().iter().zip(&plan.jobs) {
                let of_type = answer.allocation.iter().filter(|(id, _)| nodes[id].gpu_type == *gpu_type);
                let gpus: f64 = of_type.map(|(_, share)| share.gpus()).sum();
                if gpus > 0.0 && is_in(groups, job, group) {
                    held += gpus;
                    may_move |= !job.is_pinned();
                }
            }
            ensure(held <= f64::from(cap) + 1e-9 || !may_move, || {
                format!("{:?} holds {held} {gpu_type}, its cap is {cap}", group.id)
            })?;
        }
    }
    Ok(())
}

/// Whether a job counts for a group: its own or one above.
fn is_in(groups: &[Group], job: &Job<Known>, group: &Group) -> bool {
    let mut at = job.group;
    while let Some(id) = at {
        if id == group.id {
            return true;
        }
        at = groups.iter().find(|group| group.id == id).and_then(|group| group.parent);
    }
    false
}
