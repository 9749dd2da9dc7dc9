//! From JSON to a job of a snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pollux_model::{
    Allocation, BatchLimits, GlobalBatch, GoodputModel, GpuType, JobCurves, JobId, NodeId, NoiseScale,
    Placement,
};
use pollux_policy::{Cluster, Freedom, GroupId, Job, Known, Learned, Priority, Request};

use super::error::Problem;
use super::read::{NamedList, by_type, count, count_from_one, gpu_type, only, positive, word};
use crate::fit_file::Problem as FieldProblem;
use crate::fit_file::node::Node;
use crate::fit_file::read::params;

const JOB: &[&str] = &[
    "name",
    "group",
    "priority",
    "weight",
    "min_gpus",
    "max_gpus",
    "gpu_types",
    "freedom",
    "holds",
    "age_s",
    "attained_gpu_s",
    "restarts",
    "restart_cost_s",
    "remaining_samples",
    "request_gpus",
    "most_gpus",
    "models",
    "comment",
];
/// The keys of a fit are taken as they are, so that one can be pasted; what is not needed here is passed over.
const MODEL: &[&str] =
    &["form", "params", "noise_scale", "batch", "undetermined", "fit", "coverage", "test", "comment"];
const BATCH: &[&str] =
    &["initial", "min", "max", "fixed", "micro_min", "micro_max", "max_accum_steps", "accumulate_alone"];

const PRIORITY: &str = "`low`, `normal` or `high`";
const FREEDOM: &str = "`elastic`, `non_preemptible`, `restarting` or `{\"rigid\": GPUS}`";
const SECONDS: &str = "a number of seconds from 0 to 1000000000";
const GPU_SECONDS: &str = "a number of GPU-seconds, zero or more";
const SAMPLES: &str = "a number of samples, zero or more";
const NOISE: &str = "a number of samples, zero or more, or `\"inf\"`";
const BATCH_SIZE: &str = "a whole number from 1 to 1000000000000";

/// Largest batch that can be told from a slip.
const MOST_SAMPLES: u64 = 1_000_000_000_000;

/// Seconds a restart takes unless given: what the Pollux paper measured.
pub(super) const RESTART_COST: Duration = Duration::from_secs(30);

/// Most entries of a goodput table: beyond it, values are worked out each time instead of once.
const MOST_ENTRIES: u32 = 8_192;

/// What a job may refer to.
pub(super) struct Surroundings<'a> {
    cluster: &'a Cluster,
    nodes: &'a NamedList,
    groups: &'a NamedList,
    /// GPUs of each type.
    totals: BTreeMap<&'a GpuType, u32>,
    gpus_per_node: u32,
}

impl<'a> Surroundings<'a> {
    pub(super) fn new(cluster: &'a Cluster, nodes: &'a NamedList, groups: &'a NamedList) -> Self {
        let mut totals = BTreeMap::<_, u32>::new();
        for node in &cluster.nodes {
            *totals.entry(&node.gpu_type).or_default() += node.gpus;
        }
        let gpus_per_node = cluster.nodes.iter().map(|node| node.gpus).max().unwrap_or(0);
        Self { cluster, nodes, groups, totals, gpus_per_node }
    }
}

pub(super) fn job(node: &Node<'_>, id: JobId, around: &Surroundings<'_>) -> Result<Job<Known>, Problem> {
    only(node, "a job", JOB)?;
    let get = |key: &str| node.get(key);
    let counted = |key: &str, default| get(key).map_or(Ok(default), |node| count(&node));
    let number = |key: &str, expected| get(key).map(|node| node.not_negative(expected)).transpose();

    let group = get("group").map(|node| around.groups.find(&node).map(GroupId)).transpose()?;
    let priorities = [("normal", Priority::Normal), ("low", Priority::Low), ("high", Priority::High)];
    let min_gpus = get("min_gpus").map_or(Ok(1), |node| count_from_one(&node))?;
    let max_gpus = get("max_gpus").map(|node| count_from_one(&node)).transpose()?;
    if let Some(max) = max_gpus.filter(|max| *max < min_gpus) {
        return Err(Problem::MinAboveMax { key: node.path_of("min_gpus"), min: min_gpus, max });
    }
    let mut types = BTreeSet::new();
    if let Some(listed) = get("gpu_types") {
        for item in listed.items("a list of GPU types")? {
            types.insert(gpu_type(&item)?);
        }
    }
    let holds = get("holds").map_or(Ok(Allocation::none()), |node| holds(&node, around))?;
    let freedom = get("freedom").map_or(Ok(Freedom::Elastic), |node| freedom(&node))?;
    if freedom == Freedom::Restarting && holds.is_empty() {
        return Err(Problem::RestartingNowhere { key: node.path_of("freedom") });
    }
    let held = holds.placement().map_or(0, Placement::n_replicas);
    let learned = Learned {
        curves: Arc::new(
            get("models").map_or(Ok(JobCurves::default()), |node| curves(&node, max_gpus, around))?,
        ),
        most_gpus: counted("most_gpus", held)?,
    };
    let request = get("request_gpus").map(|node| count_from_one(&node)).transpose()?;
    let request = request.map(|gpus| Request { gpus });
    Ok(Job {
        id,
        group,
        priority: word(get("priority").as_ref(), &priorities, PRIORITY)?,
        weight: get("weight").map_or(Ok(1.0), |node| positive(&node, "a positive number"))?,
        min_gpus,
        max_gpus,
        types,
        freedom,
        holds,
        age: get("age_s").map_or(Ok(Duration::ZERO), |node| seconds(&node))?,
        attained: number("attained_gpu_s", GPU_SECONDS)?.unwrap_or(0.0),
        restarts: counted("restarts", 0)?,
        restart_cost: get("restart_cost_s").map_or(Ok(RESTART_COST), |node| seconds(&node))?,
        knows: Known { learned, remaining: number("remaining_samples", SAMPLES)?, request, oracle: None },
    })
}

fn freedom(node: &Node<'_>) -> Result<Freedom, Problem> {
    if node.value.is_object() {
        only(node, "a job's freedom", &["rigid"])?;
        return Ok(Freedom::Rigid { gpus: count_from_one(&node.require("rigid")?)? });
    }
    let words = [
        ("elastic", Freedom::Elastic),
        ("non_preemptible", Freedom::NonPreemptible),
        ("restarting", Freedom::Restarting),
    ];
    Ok(word(Some(node), &words, FREEDOM)?)
}

fn holds(node: &Node<'_>, around: &Surroundings<'_>) -> Result<Allocation, Problem> {
    let mut counts = Vec::new();
    let mut on: Option<&GpuType> = None;
    for name in node.object()?.keys() {
        let position = around.nodes.position(&node.path, name)?;
        counts.push((NodeId(position), count_from_one(&node.require(name)?)?));
        let gpu_type = &around.cluster.nodes[position as usize].gpu_type;
        if let Some(other) = on.replace(gpu_type).filter(|other| *other != gpu_type) {
            let types = (other.name().to_owned(), gpu_type.name().to_owned());
            return Err(Problem::MixedTypes { key: node.path.clone(), types });
        }
    }
    Ok(Allocation::whole(counts))
}

/// Times are kept to the microsecond: what is written is read back as it was.
fn seconds(node: &Node<'_>) -> Result<Duration, FieldProblem> {
    let secs = node.value.as_f64().filter(|secs| (0.0..=1e9).contains(secs));
    let secs = secs.ok_or_else(|| node.problem(SECONDS))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1e15")]
    let micros = (secs * 1e6).round() as u64;
    Ok(Duration::from_micros(micros))
}

fn curves(node: &Node<'_>, max_gpus: Option<u32>, around: &Surroundings<'_>) -> Result<JobCurves, Problem> {
    let mut models = BTreeMap::new();
    let types = by_type(Some(node), |_| Ok(()))?;
    for gpu_type in types.into_keys() {
        let model = model(&node.require(gpu_type.name())?)?;
        models.insert(gpu_type, model);
    }
    // As much as the cluster has, the job may hold and its batches could be dealt to.
    let useful = |(gpu_type, model): (&GpuType, &GoodputModel)| {
        around.totals.get(gpu_type).map_or(0, |total| model.limits().max_replicas().min(*total))
    };
    let most = models.iter().map(useful).max().unwrap_or(0);
    let most = most.min(max_gpus.unwrap_or(u32::MAX)).min(MOST_ENTRIES);
    let mut curves = JobCurves::default();
    curves.update(models, around.gpus_per_node, most);
    Ok(curves)
}

fn model(node: &Node<'_>) -> Result<GoodputModel, Problem> {
    only(node, "a model", MODEL)?;
    let params = params(node)?;
    let noise_node = node.require("noise_scale")?;
    let noise = match noise_node.value.as_str() {
        Some("inf") => Some(f64::INFINITY),
        _ => noise_node.value.as_f64(),
    };
    let noise = noise.and_then(NoiseScale::from_samples).ok_or_else(|| noise_node.problem(NOISE))?;
    let limits = batch(&node.require("batch")?)?;
    let key = node.path_of("params");
    GoodputModel::new(params, noise, limits).map_err(|cause| FieldProblem::Params { key, cause }.into())
}

fn batch(node: &Node<'_>) -> Result<BatchLimits, Problem> {
    only(node, "batch limits", BATCH)?;
    let samples = |node: &Node<'_>| {
        let samples = node.value.as_u64().filter(|samples| (1..=MOST_SAMPLES).contains(samples));
        samples.ok_or_else(|| node.problem(BATCH_SIZE))
    };
    let given = |key: &str| node.get(key).map(|node| samples(&node)).transpose();
    let initial = samples(&node.require("initial")?)?;
    let fixed = given("fixed")?;
    for other in ["min", "max"] {
        if fixed.is_some() && node.get(other).is_some() {
            return Err(Problem::Exclusive { key: node.path_of("fixed"), other });
        }
    }
    let (min_key, min) = match fixed {
        Some(fixed) => ("fixed", fixed),
        None => ("min", given("min")?.unwrap_or(initial)),
    };
    let default = initial.saturating_mul(BatchLimits::DEFAULT_GROWTH).max(min);
    let max = fixed.map_or_else(|| given("max").map(|max| max.unwrap_or(default)), Ok)?;
    let order = |key: &str, low, high, high_is| {
        let key = node.path_of(key);
        if low <= high { Ok(()) } else { Err(Problem::BatchOrder { key, low, high, high_is }) }
    };
    order("initial", initial, min, if min_key == "min" { "`min`" } else { "`fixed`" })?;
    order("min", min, max, "`max`")?;
    let micro_min = node.get("micro_min").map_or(Ok(1), |node| count_from_one(&node))?;
    let micro_max = count_from_one(&node.require("micro_max")?)?;
    let limits = |cause| Problem::Limits { key: node.path.clone(), cause };
    let mut limits = BatchLimits::new(initial, max, micro_min, micro_max).map_err(limits)?;
    limits = limits.within(GlobalBatch(min), limits.max()).unwrap_or(limits);
    if let Some(steps) = node.get("max_accum_steps") {
        limits = limits.with_max_accum_steps(count(&steps)?);
    }
    if node.get("accumulate_alone").map_or(Ok(false), |node| node.flag())? {
        limits = limits.accumulating_alone();
    }
    Ok(limits)
}
