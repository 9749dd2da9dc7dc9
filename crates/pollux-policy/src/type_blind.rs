//! Pollux as it was published: all GPUs are one type.

use std::collections::BTreeMap;
use std::sync::Arc;

use pollux_model::{Allocation, GpuType, JobCurves, NodeId};

use crate::plan::{Decision, JobPlan, Limit, Plan, Reason};
use crate::policy::{About, AnyPolicy, Policy, Terms};
use crate::pollux::Pollux;
use crate::settings::Settings;
use crate::snapshot::{Carried, Cluster, Freedom, Group, GroupId, Job, Known, Learned, Node, Snapshot};

/// [`Pollux`] that cannot tell GPU types apart, as the system of the paper.
///
/// It plans as if all GPUs were of one type, with one curve for each job: what its agent learned on the type it holds, else
/// on the first type it was seen on several GPUs of, else on the first of all. A job cannot span types, so where it was
/// given several it keeps the one with most compute there (GPUs times speed), which is how Sia's authors repaired Pollux for
/// their comparison; who is left with fewer GPUs than it runs on, or with what it or its groups may not have, waits.
#[derive(Clone, Copy, Debug)]
pub struct TypeBlind {
    /// The objective and the effort.
    pub settings: Settings,
}

impl Default for TypeBlind {
    fn default() -> Self {
        Self { settings: Settings::PAPER }
    }
}

impl Policy for TypeBlind {
    type Knows = Learned;

    fn about(&self) -> About {
        About {
            name: "pollux-type-blind",
            summary: "pollux that takes all GPUs for one type; a job given several keeps that with most compute",
            source: "Qiao et al., OSDI 2021; repair: Jayaram Subramanya et al., SOSP 2023",
            adapts_batch: true,
        }
    }

    fn plan(&self, snapshot: &Snapshot<Learned>, terms: &Terms<'_>) -> Plan {
        let Some(blind) = blinded(snapshot) else { return unchanged(snapshot) };
        let plan = AnyPolicy::plan(&Pollux { settings: self.settings }, &blind, terms);
        let mut caps = Caps::new(snapshot.cluster());
        for job in snapshot.jobs().iter().filter(|job| job.is_pinned()) {
            caps.admit(snapshot.cluster(), job, &job.holds);
        }
        let answers = snapshot.jobs().iter().zip(plan.jobs);
        let jobs =
            answers.map(|(job, answer)| repaired(snapshot.cluster(), &mut caps, job, answer)).collect();
        // What the blind plan proves does not hold for the repaired one.
        Plan { jobs, certificate: None, ..plan }
    }
}

/// The same round as it looks to who cannot tell types apart. None never happens: what was a snapshot stays one.
fn blinded(snapshot: &Snapshot<Learned>) -> Option<Snapshot<Known>> {
    let cluster = snapshot.cluster();
    let nodes: Vec<Node> =
        cluster.nodes.iter().map(|node| Node { gpu_type: GpuType::default(), ..node.clone() }).collect();
    let largest = nodes.iter().map(|node| node.gpus).max().unwrap_or(1);
    let total = nodes.iter().fold(0_u32, |sum, node| sum.saturating_add(node.gpus));
    let job = |job: &Job<Learned>| {
        let mut curves = JobCurves::default();
        let model = curve_type(cluster, job)
            .and_then(|on| job.knows.curves.on(&on))
            .map(|curve| curve.model().clone());
        curves.update(model.map(|model| (GpuType::default(), model)).into_iter().collect(), largest, total);
        let learned = Learned { curves: Arc::new(curves), most_gpus: job.knows.most_gpus };
        let seen = job.seen_with(Known { learned, ..Known::default() });
        Job { group: None, types: [].into(), ..seen }
    };
    let jobs = snapshot.jobs().iter().map(job).collect();
    let blind = Snapshot::new(Cluster { nodes, ..Cluster::default() }, jobs).ok()?;
    Some(blind.carrying(snapshot.carried().clone()))
}

/// The type whose curve stands for all.
fn curve_type(cluster: &Cluster, job: &Job<Learned>) -> Option<GpuType> {
    let curves = &job.knows.curves;
    let on = job
        .holds
        .iter()
        .next()
        .and_then(|(node, _)| type_of(cluster, node))
        .filter(|on| curves.on(on).is_some());
    let has_exchanged = |(_, curve): &(&GpuType, &pollux_model::GoodputCurve)| {
        let params = curve.model().params();
        [params.sync_local, params.sync_node].iter().any(|exchange| exchange.alpha + exchange.beta > 0.0)
    };
    let first =
        || curves.iter().find(has_exchanged).or_else(|| curves.iter().next()).map(|(on, _)| on.clone());
    on.cloned().or_else(first)
}

fn type_of(cluster: &Cluster, id: NodeId) -> Option<&GpuType> {
    cluster.nodes.iter().find(|node| node.id == id).map(|node| &node.gpu_type)
}

/// What is left of an answer on the type with most compute.
fn repaired(cluster: &Cluster, caps: &mut Caps, job: &Job<Learned>, answer: JobPlan) -> JobPlan {
    if job.is_pinned() {
        return answer;
    }
    let mut compute = BTreeMap::<&GpuType, f64>::new();
    for (node, share) in answer.allocation.iter() {
        if let Some(on) = type_of(cluster, node) {
            *compute.entry(on).or_default() += share.gpus() * cluster.speeds.get(on).copied().unwrap_or(1.0);
        }
    }
    let may_use = |on: &GpuType| job.types.is_empty() || job.types.contains(on);
    let usable = compute.iter().filter(|(on, _)| may_use(on));
    // The first of equals.
    let best = usable.reduce(|best, other| if other.1 > best.1 { other } else { best }).map(|(on, _)| *on);
    let kept = answer.allocation.iter().filter(|(node, _)| best.is_some() && type_of(cluster, *node) == best);
    let allocation = Allocation::whole(kept.map(|(node, share)| (node, share.n_replicas())));
    let least = match job.freedom {
        Freedom::Rigid { gpus } => gpus,
        _ => job.min_gpus,
    };
    let is_enough = allocation.placement().is_some_and(|placement| placement.n_replicas() >= least);
    let is_same = allocation == answer.allocation;
    if answer.allocation.is_empty() || (is_enough && caps.admit(cluster, job, &allocation)) {
        let decision = match (allocation.is_empty(), allocation == job.holds) {
            (true, _) => Decision::Wait,
            (_, true) => Decision::Keep,
            _ => Decision::Place,
        };
        let reason = if is_same { answer.reason } else { packing() };
        return JobPlan { decision, allocation, reason, ..answer };
    }
    JobPlan { decision: Decision::Wait, allocation: Allocation::none(), reason: packing(), ..answer }
}

fn packing() -> Reason {
    Reason { limit: Limit::Packing, ..Reason::default() }
}

/// What groups may still hold of each type, since a blind plan does not know.
struct Caps<'a> {
    groups: &'a [Group],
    left: BTreeMap<(GroupId, GpuType), u32>,
}

impl<'a> Caps<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        let caps = cluster
            .groups
            .iter()
            .flat_map(|group| group.caps.iter().map(|(on, &cap)| ((group.id, on.clone()), cap)));
        Self { groups: &cluster.groups, left: caps.collect() }
    }

    /// Counts an allocation, if the job's groups may hold it; those of pinned jobs in any case.
    fn admit(&mut self, cluster: &Cluster, job: &Job<Learned>, allocation: &Allocation) -> bool {
        let Some(on) = allocation.iter().next().and_then(|(node, _)| type_of(cluster, node)) else {
            return true;
        };
        let gpus = allocation.placement().map_or(0, pollux_model::Placement::n_replicas);
        let mut at = job.group;
        let mut counted = Vec::new();
        while let Some(id) = at {
            counted.push((id, on.clone()));
            at = self.groups.iter().find(|group| group.id == id).and_then(|group| group.parent);
        }
        let fits = counted.iter().all(|key| self.left.get(key).is_none_or(|left| *left >= gpus));
        if fits || job.is_pinned() {
            for key in counted {
                if let Some(left) = self.left.get_mut(&key) {
                    *left = left.saturating_sub(gpus);
                }
            }
        }
        fits
    }
}

/// Everybody stays.
fn unchanged(snapshot: &Snapshot<Learned>) -> Plan {
    let answer = |job: &Job<Learned>| JobPlan {
        job: job.id,
        decision: if job.holds.is_empty() { Decision::Wait } else { Decision::Keep },
        allocation: job.holds.clone(),
        reason: Reason::default(),
    };
    let work = crate::plan::Work { units: 0, budget: 0, stopped: crate::plan::Stopped::Done };
    Plan {
        jobs: snapshot.jobs().iter().map(answer).collect(),
        certificate: None,
        work,
        carried: Carried::default(),
    }
}
