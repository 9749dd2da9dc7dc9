//! From a snapshot to JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use pollux_model::{BatchLimits, GoodputModel, GpuType};
use pollux_policy::{Freedom, Job as PolicyJob, Known, NodeState, Priority};
use serde::Serialize;

use super::{NamedSnapshot, VERSION};
use crate::fit_file::write::Params;
use crate::names::Names;

type ByType<'a, T> = BTreeMap<&'a str, T>;

#[derive(Serialize)]
struct File<'a> {
    version: u64,
    nodes: Vec<Node<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    gpu_speeds: ByType<'a, f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<Group<'a>>,
    jobs: Vec<Job<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    prices: ByType<'a, f64>,
}

#[derive(Serialize)]
struct Node<'a> {
    name: Cow<'a, str>,
    gpu_type: &'a str,
    gpus: u32,
    used_by_others: u32,
    state: &'static str,
}

#[derive(Serialize)]
struct Group<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    entitled: ByType<'a, u32>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    caps: ByType<'a, u32>,
}

#[derive(Serialize)]
struct Job<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<Cow<'a, str>>,
    priority: &'static str,
    weight: f64,
    min_gpus: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_gpus: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gpu_types: Vec<&'a str>,
    freedom: FreedomWord,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    holds: BTreeMap<Cow<'a, str>, u32>,
    age_s: f64,
    attained_gpu_s: f64,
    restarts: u32,
    restart_cost_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_samples: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_gpus: Option<u32>,
    most_gpus: u32,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    models: ByType<'a, Model<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum FreedomWord {
    Elastic,
    NonPreemptible,
    Restarting,
    Rigid(u32),
}

#[derive(Serialize)]
struct Model<'a> {
    form: &'static str,
    params: Params<'a>,
    noise_scale: Noise,
    batch: Batch,
}

/// JSON has no infinity.
#[derive(Serialize)]
#[serde(untagged)]
enum Noise {
    Samples(f64),
    Word(&'static str),
}

#[derive(Serialize)]
struct Batch {
    initial: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fixed: Option<u64>,
    micro_min: u32,
    micro_max: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_accum_steps: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    accumulate_alone: bool,
}

pub(super) fn to_json(named: &NamedSnapshot) -> String {
    let NamedSnapshot { snapshot, names } = named;
    let cluster = snapshot.cluster();
    crate::json::pretty(&File {
        version: VERSION,
        nodes: cluster.nodes.iter().map(|node| self::node(node, names)).collect(),
        gpu_speeds: by_name(&cluster.speeds),
        groups: cluster.groups.iter().map(|group| self::group(group, names)).collect(),
        jobs: snapshot.jobs().iter().map(|job| self::job(job, names)).collect(),
        prices: by_name(&snapshot.carried().prices),
    })
}

fn by_name<T: Copy>(values: &BTreeMap<GpuType, T>) -> ByType<'_, T> {
    values.iter().map(|(gpu_type, value)| (gpu_type.name(), *value)).collect()
}

fn node<'a>(node: &'a pollux_policy::Node, names: &'a Names) -> Node<'a> {
    let state = match node.state {
        NodeState::Ready => "ready",
        NodeState::Cordoned => "cordoned",
        NodeState::Draining => "draining",
    };
    let (gpu_type, gpus) = (node.gpu_type.name(), node.gpus);
    Node { name: names.node(node.id), gpu_type, gpus, used_by_others: node.others, state }
}

fn group<'a>(group: &'a pollux_policy::Group, names: &'a Names) -> Group<'a> {
    Group {
        name: names.group(group.id),
        parent: group.parent.map(|parent| names.group(parent)),
        entitled: by_name(&group.entitled),
        caps: by_name(&group.caps),
    }
}

fn job<'a>(job: &'a PolicyJob<Known>, names: &'a Names) -> Job<'a> {
    Job {
        name: names.job(job.id),
        group: job.group.map(|group| names.group(group)),
        priority: match job.priority {
            Priority::Low => "low",
            Priority::Normal => "normal",
            Priority::High => "high",
        },
        weight: job.weight,
        min_gpus: job.min_gpus,
        max_gpus: job.max_gpus,
        gpu_types: job.types.iter().map(GpuType::name).collect(),
        freedom: match job.freedom {
            Freedom::Elastic => FreedomWord::Elastic,
            Freedom::NonPreemptible => FreedomWord::NonPreemptible,
            Freedom::Restarting => FreedomWord::Restarting,
            Freedom::Rigid { gpus } => FreedomWord::Rigid(gpus),
        },
        holds: job.holds.iter().map(|(node, share)| (names.node(node), share.n_replicas())).collect(),
        age_s: seconds(job.age),
        attained_gpu_s: job.attained,
        restarts: job.restarts,
        restart_cost_s: seconds(job.restart_cost),
        remaining_samples: job.knows.remaining,
        request_gpus: job.knows.request.map(|request| request.gpus),
        most_gpus: job.knows.learned.most_gpus,
        models: job
            .knows
            .learned
            .curves
            .iter()
            .map(|(name, curve)| (name.name(), model(curve.model())))
            .collect(),
    }
}

fn seconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e6
}

fn model(model: &GoodputModel) -> Model<'_> {
    let noise = model.noise().samples();
    Model {
        form: model.params().grad.form(),
        params: model.params().into(),
        noise_scale: if noise.is_finite() { Noise::Samples(noise) } else { Noise::Word("inf") },
        batch: batch(model.limits()),
    }
}

fn batch(limits: &BatchLimits) -> Batch {
    let (initial, min, max) = (limits.initial().0, limits.min().0, limits.max().0);
    let fixed = limits.is_fixed();
    Batch {
        initial,
        min: (!fixed && min != initial).then_some(min),
        max: (!fixed).then_some(max),
        fixed: fixed.then_some(max),
        micro_min: limits.micro_min(),
        micro_max: limits.micro_max(),
        max_accum_steps: (limits.max_accum_steps() != u32::MAX).then_some(limits.max_accum_steps()),
        accumulate_alone: limits.accumulates_alone(),
    }
}
