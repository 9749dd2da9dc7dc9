//! The optimiser instances of the reference data: rounds that the authors' implementation planned, and what it
//! answered. `shared/research/reference-simulator.md` of the data says how they came about.
//!
//! One thing cannot be carried over: their search rounds batches up, past the largest batch allowed, and so
//! credits some placements with more than a job can have there. Ours keeps the limit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pollux_model::{
    Affine, Allocation, BatchLimits, Compute, GlobalBatch, GoodputModel, GpuType, GradientMoments, JobCurves,
    JobId, NodeId, NoiseScale, PerfParams,
};
use pollux_policy::{
    Cluster, Freedom, Job, Judgement, Known, Learned, Node, NodeState, Priority, Settings, Snapshot,
    Valuation,
};
use serde_json::Value;

use super::json::{count, number, small};
use super::{data, rounds};

/// One round, and what the reference made of it.
pub struct Reference {
    pub name: String,
    pub gpus_per_node: u32,
    pub snapshot: Snapshot<Known>,
    /// Goodput at each job's fair share, as the reference has it; none for jobs without a model.
    pub fair_goodputs: Vec<Option<f64>>,
    /// The coded fitness of what the jobs hold.
    pub current_fitness: f64,
    /// Its runs, and the best that simple improvement made of the last.
    pub answers: Vec<Answer>,
}

/// An allocation for every job.
pub struct Answer {
    /// `cold`, `warm1`, ... or `fixup`.
    pub label: String,
    pub allocations: Vec<Allocation>,
    /// The coded fitness on record.
    pub fitness: f64,
    /// How many jobs hold nothing.
    pub n_starved: u64,
    /// CPU seconds it took the reference, on a quiet machine where that is known.
    pub cpu_secs: Option<f64>,
}

impl Reference {
    /// The best coded fitness of any answer on record.
    pub fn best_fitness(&self) -> f64 {
        self.answers.iter().map(|answer| answer.fitness).fold(self.current_fitness, f64::max)
    }

    /// The objective as the artifact codes it. How far jobs have grown is in their largest number of GPUs.
    pub fn settings(&self) -> Settings {
        Settings { exploration: 1e6, ..Settings::osdi21(self.gpus_per_node) }
    }

    /// The one evaluator, on this round.
    pub fn valuation(&self) -> Valuation<'_> {
        Valuation::new(&self.snapshot, &self.settings(), &rounds::stakes(&self.snapshot))
    }

    /// The coded fitness of allocations, by our evaluator.
    pub fn fitness(&self, allocations: &[Allocation]) -> f64 {
        let judgement = rounds::judge(&self.snapshot, &self.settings(), allocations);
        coded_fitness(&judgement, allocations.len())
    }
}

/// The artifact's fitness: the harmonic mean over all jobs of `S f / (GPUs per node) + 0.001`; who holds nothing
/// counts 0.001. Of a judgement with [`Settings::osdi21`] and equal weights.
pub fn coded_fitness(judgement: &Judgement, n_jobs: usize) -> f64 {
    -(n_jobs as f64) / (judgement.sum + judgement.sum_of_starved)
}

/// All instances, by name; none, and said so, where there is no reference data.
pub fn instances() -> Option<Vec<Reference>> {
    let folder = data::reference_data()?.join("reference/instances");
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    paths.sort();
    let parsed = paths.iter().map(|path| {
        let text = std::fs::read_to_string(path).expect("an instance");
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        parse(name, &serde_json::from_str(&text).expect("instances are JSON"))
    });
    Some(parsed.collect())
}

fn parse(name: &str, file: &Value) -> Reference {
    let gpus_per_node = small(file, "gpus_per_node");
    let gpu_type = GpuType::new("t4");
    let nodes = (0..small(file, "num_nodes")).map(|id| Node {
        id: NodeId(id),
        gpu_type: gpu_type.clone(),
        gpus: gpus_per_node,
        others: 0,
        state: NodeState::Ready,
    });
    let cluster = Cluster { nodes: nodes.collect(), ..Cluster::default() };
    let listed = file["jobs"].as_array().expect("a list of jobs");
    let restart_cost = Duration::from_secs(count(file, "restart_delay_s"));
    let jobs = listed.iter().enumerate().map(|(index, value)| {
        let mut curves = JobCurves::default();
        curves.update(
            BTreeMap::from([(gpu_type.clone(), model(value))]),
            gpus_per_node,
            small(value, "max_replicas"),
        );
        Job {
            id: JobId(index as u64),
            group: None,
            priority: Priority::Normal,
            weight: 1.0,
            min_gpus: small(value, "min_replicas").max(1),
            max_gpus: Some(small(value, "max_replicas")),
            types: BTreeSet::new(),
            freedom: Freedom::Elastic,
            holds: allocation(&value["current_allocation"]),
            age: Duration::from_secs(count(value, "age_s")),
            attained: number(value, "attained_service_gpu_s"),
            restarts: small(value, "num_restarts"),
            restart_cost,
            knows: Known {
                learned: Learned { curves: Arc::new(curves), most_gpus: small(value, "max_replicas") },
                ..Known::default()
            },
        }
    });
    let snapshot = Snapshot::new(cluster, jobs.collect()).expect("an instance holds nothing twice");
    let names: Vec<&str> = listed.iter().map(|value| value["name"].as_str().expect("a name")).collect();
    let reference = &file["reference"];
    let runs = reference["runs"].as_array().expect("a list of runs").iter();
    let runs = runs.map(|run| answer(run, run["label"].as_str().expect("a label"), &names));
    Reference {
        name: name.to_owned(),
        gpus_per_node,
        snapshot,
        fair_goodputs: listed.iter().map(|value| value["fair_share_goodput"].as_f64()).collect(),
        current_fitness: number(&reference["current_allocation_score"], "fitness_coded"),
        answers: runs.chain([answer(&reference["fixup"], "fixup", &names)]).collect(),
    }
}

fn answer(value: &Value, label: &str, names: &[&str]) -> Answer {
    Answer {
        label: label.to_owned(),
        allocations: names.iter().map(|name| allocation(&value["allocation"][name])).collect(),
        fitness: number(value, "fitness_coded"),
        n_starved: count(value, "n_unallocated"),
        cpu_secs: value["cpu_s_quiet_machine"].as_f64().or(value["cpu_s"].as_f64()),
    }
}

/// GPUs by node; none where the job is not listed.
fn allocation(value: &Value) -> Allocation {
    let counts = value.as_object().into_iter().flatten();
    Allocation::whole(counts.map(|(node, gpus)| {
        let gpus = gpus.as_u64().and_then(|gpus| u32::try_from(gpus).ok());
        (NodeId(node.parse().expect("a node's number")), gpus.expect("a small count"))
    }))
}

fn model(value: &Value) -> GoodputModel {
    let params = &value["perf_params"];
    if params.is_null() {
        return proportional();
    }
    let initial = count(value, "init_batch_size");
    let limits = BatchLimits::new(
        initial,
        count(value, "max_batch_size"),
        small(value, "min_local_bsz"),
        small(value, "max_local_bsz"),
    );
    let mut limits = limits.expect("limits that allow a batch").accumulating_alone();
    if value["accumulation"] == false {
        limits = limits.with_max_accum_steps(0);
    }
    let moments = &value["grad_params"];
    let moments = GradientMoments { sqr: number(moments, "sqr"), var: number(moments, "var") };
    let affine =
        |alpha: &str, beta: &str| Affine { alpha: number(params, alpha), beta: number(params, beta) };
    let grad = affine("alpha_c", "beta_c");
    let params = PerfParams {
        grad: Compute::Linear { alpha: grad.alpha, beta: grad.beta },
        sync_local: affine("alpha_r", "beta_r"),
        sync_node: affine("alpha_n", "beta_n"),
        gamma: number(params, "gamma"),
        optimizer_step: 0.0,
    };
    let noise = moments.noise_scale(GlobalBatch(initial)).expect("moments of a gradient");
    GoodputModel::new(params, noise, limits).expect("parameters within their bounds")
}

/// A job without a model: the reference takes its speed-up to be its replicas over those of a fair share.
fn proportional() -> GoodputModel {
    let nothing = Affine { alpha: 0.0, beta: 0.0 };
    let params = PerfParams {
        grad: Compute::Linear { alpha: 0.0, beta: 1.0 },
        sync_local: nothing,
        sync_node: nothing,
        gamma: 1.0,
        optimizer_step: 0.0,
    };
    let noise = NoiseScale::from_samples(f64::INFINITY).expect("not negative");
    let limits = BatchLimits::new(1, 1 << 16, 1, 1).expect("limits that allow a batch");
    GoodputModel::new(params, noise, limits).expect("parameters within their bounds")
}
