//! Rounds to plan, made of six measured applications and a seed: the same on every machine.
//!
//! A job is an application drawn as the authors' workloads draw them, at a random point of its training, with
//! its own parameters strayed by about 14 %. `testdata/applications.json` says where they come from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use pollux_model::{
    Affine, Allocation, BatchLimits, Compute, GoodputModel, GpuType, JobCurves, JobId, NodeId, NoiseScale,
    PerfParams,
};
use pollux_policy::{
    AnyPolicy, Cluster, Freedom, Group, GroupId, Job, Known, Learned, Node, NodeState, Plan, Priority,
    Snapshot, Terms,
};
use serde_json::Value;

use super::Dice;
use super::json::{count, number, small};

/// No job is asked about on more GPUs than this.
const MOST_GPUS: u32 = 256;

/// How far each parameter of a job strays from its application's, in the logarithm.
const STRAY: f64 = 0.14;

/// What a restart costs, as in the authors' simulator.
pub const RESTART_COST: Duration = Duration::from_secs(30);

/// GPU types, each with how much faster than the first it computes; gradients are exchanged as fast on all.
const TYPES: [(&str, f64); 3] = [("t4", 1.0), ("v100", 2.5), ("a100", 4.0)];

/// What to draw.
#[derive(Clone, Copy, Debug)]
pub struct Instance {
    pub nodes: u32,
    pub gpus_per_node: u32,
    pub jobs: u32,
    pub seed: u64,
    /// GPU types, up to three: node after node takes the next.
    pub types: usize,
    /// Queues below one that holds them all; with any, jobs belong to one each, and all have caps.
    pub groups: u32,
    /// Most GPUs a job has run on so far. By default so many that exploration holds nobody back.
    pub most_gpus: u32,
}

impl Default for Instance {
    fn default() -> Self {
        Self { nodes: 16, gpus_per_node: 4, jobs: 20, seed: 0, types: 1, groups: 0, most_gpus: 1 << 20 }
    }
}

/// Copies of one name, as a scheduler that knows its nodes would hand out.
static GPU_TYPES: LazyLock<Vec<(GpuType, f64)>> =
    LazyLock::new(|| TYPES.iter().map(|&(name, speed)| (GpuType::new(name), speed)).collect());

impl Instance {
    /// A plain one.
    pub fn new(nodes: u32, gpus_per_node: u32, jobs: u32, seed: u64) -> Self {
        Self { nodes, gpus_per_node, jobs, seed, ..Self::default() }
    }

    pub fn gpus(&self) -> u32 {
        self.nodes * self.gpus_per_node
    }

    /// All jobs are new: nobody holds anything.
    pub fn cold(&self) -> Snapshot<Known> {
        let mut draw = self.draw("cold");
        let jobs = (0..u64::from(self.jobs)).map(|id| draw.job(JobId(id))).collect();
        Snapshot::new(self.cluster(), jobs).expect("nothing is held, so nothing is held twice")
    }

    /// The round after `policy` planned the cold one: its plan in place, 5 % of the jobs gone and as many new
    /// ones there, 10 % with another curve, ages and restarts at random. No table is filled yet.
    pub fn warm(&self, policy: &dyn AnyPolicy) -> Snapshot<Known> {
        let cold = self.cold();
        let plan = policy.plan(&cold, &Terms::seeded(self.seed));
        let mut draw = self.draw("warm");
        let jobs = cold.jobs().iter().zip(&plan.jobs).enumerate().map(|(index, (job, answer))| {
            if draw.dice.chance(0.05) {
                return draw.job(JobId(u64::from(self.jobs) + index as u64));
            }
            let models = if draw.dice.chance(0.10) {
                let application = application_among(&draw.applications, job).clone();
                draw.models(&application)
            } else {
                models_of(job)
            };
            let mut job = with_models(job.clone(), models, self.gpus_per_node);
            let age = draw.dice.log_uniform(60.0, 100_000.0);
            job.age = Duration::from_secs_f64(age);
            // Now and then a restart takes place every minute, mostly far more seldom.
            let most = draw.dice.log_uniform(1.0, (age / 60.0).clamp(1.5, 50.0));
            job.restarts = (draw.dice.unit() * most) as u32;
            job.attained = answer.allocation.gpus() * age * draw.dice.unit();
            job.holds = answer.allocation.clone();
            job
        });
        let jobs = jobs.collect();
        Snapshot::new(self.cluster(), jobs).expect("a plan holds nothing twice").carrying(plan.carried)
    }

    /// The round after `plan` in which one more job has come and nothing else has changed. All others keep
    /// their tables as they are.
    pub fn one_more(&self, before: &Snapshot<Known>, plan: &Plan) -> Snapshot<Known> {
        let mut jobs = before.jobs().to_vec();
        for (job, answer) in jobs.iter_mut().zip(&plan.jobs) {
            let moved = job.holds != answer.allocation;
            job.restarts += u32::from(moved && job.has_run());
            job.age += Duration::from_mins(1);
            job.attained += 60.0 * answer.allocation.gpus();
            job.holds = answer.allocation.clone();
        }
        let next = jobs.iter().map(|job| job.id.0 + 1).max().unwrap_or(0);
        jobs.push(self.draw(&format!("job {next}")).job(JobId(next)));
        Snapshot::new(before.cluster().clone(), jobs)
            .expect("a plan holds nothing twice")
            .carrying(plan.carried.clone())
    }

    fn cluster(&self) -> Cluster {
        let types = self.gpu_types();
        let nodes = (0..self.nodes).map(|index| Node {
            id: NodeId(index),
            gpu_type: types[index as usize % types.len()].0.clone(),
            gpus: self.gpus_per_node,
            others: 0,
            state: NodeState::Ready,
        });
        Cluster { nodes: nodes.collect(), groups: self.queues(), speeds: types.into_iter().collect() }
    }

    fn gpu_types(&self) -> Vec<(GpuType, f64)> {
        let n_types = self.types.clamp(1, TYPES.len());
        GPU_TYPES[..n_types].to_vec()
    }

    /// One queue for all at nine tenths of the cluster, and leaves that share it out but may borrow.
    fn queues(&self) -> Vec<Group> {
        if self.groups == 0 {
            return Vec::new();
        }
        let types = self.gpu_types();
        let each_type = self.gpus() / u32::try_from(types.len()).expect("three at most");
        let of_all = |gpus: u32| types.iter().map(|(gpu_type, _)| (gpu_type.clone(), gpus.max(1))).collect();
        let all = Group {
            id: GroupId(0),
            parent: None,
            entitled: BTreeMap::new(),
            caps: of_all(each_type * 9 / 10),
        };
        let mut dice = Dice(self.seed ^ 0x0067_726f_7570);
        let leaves = (1..=self.groups).map(|id| {
            let part = each_type / self.groups;
            Group {
                id: GroupId(id),
                parent: Some(GroupId(0)),
                entitled: of_all(part),
                caps: of_all((f64::from(part) * (0.7 + 0.8 * dice.unit())) as u32),
            }
        });
        std::iter::once(all).chain(leaves).collect()
    }

    fn draw(&self, purpose: &str) -> Draw {
        let mut seed = Dice(self.seed).bits();
        for byte in purpose.bytes().map(u64::from).chain([u64::from(self.jobs), u64::from(self.gpus())]) {
            seed = Dice(seed ^ byte).bits();
        }
        Draw { dice: Dice(seed), applications: applications(), instance: *self }
    }
}

/// The same round with no entry of any table filled, as if all jobs had reported anew.
pub fn with_fresh_tables(snapshot: &Snapshot<Known>, gpus_per_node: u32) -> Snapshot<Known> {
    let fresh = |job: &Job| with_models(job.clone(), models_of(job), gpus_per_node);
    let jobs = snapshot.jobs().iter().map(fresh).collect();
    Snapshot::new(snapshot.cluster().clone(), jobs)
        .expect("the snapshot was one before")
        .carrying(snapshot.carried().clone())
}

/// One of the six, as derived from the authors' traces.
#[derive(Clone, Debug)]
pub struct Application {
    pub name: String,
    /// Jobs in a hundred.
    pub share: f64,
    pub limits: BatchLimits,
    pub params: PerfParams,
    /// For each batch size it was trained with: noise scales, from all its epochs.
    pub noise: Vec<Vec<NoiseScale>>,
}

/// The six applications.
pub fn applications() -> Vec<Application> {
    let table: Value =
        serde_json::from_str(include_str!("../../testdata/applications.json")).expect("the table is JSON");
    table["applications"].as_array().expect("a list").iter().map(Application::parse).collect()
}

impl Application {
    fn parse(value: &Value) -> Self {
        let affine =
            |key: &str| Affine { alpha: number(&value[key], "alpha"), beta: number(&value[key], "beta") };
        let grad = affine("grad");
        let limits = BatchLimits::new(
            count(value, "initial_batch"),
            count(value, "max_batch"),
            small(value, "micro_min"),
            small(value, "micro_max"),
        );
        let noise = value["noise_scales"].as_array().expect("a list").iter().map(|batch| {
            let samples = batch["samples"].as_array().expect("a list").iter();
            let scale = |value: &Value| NoiseScale::from_samples(value.as_f64().unwrap_or(f64::INFINITY));
            samples.map(|value| scale(value).expect("not negative")).collect()
        });
        Self {
            name: value["name"].as_str().expect("a name").to_owned(),
            share: number(value, "share"),
            limits: limits.expect("limits that allow a batch"),
            params: PerfParams {
                grad: Compute::Linear { alpha: grad.alpha, beta: grad.beta },
                sync_local: affine("sync_local"),
                sync_node: affine("sync_node"),
                gamma: number(value, "gamma"),
                optimizer_step: 0.0,
            },
            noise: noise.collect(),
        }
    }
}

/// The application whose batch limits a job has; no two have the same.
pub fn application_among<'a>(applications: &'a [Application], job: &Job) -> &'a Application {
    let (_, curve) = job.knows.learned.curves.iter().next().expect("every drawn job has a model");
    let limits = curve.model().limits();
    applications.iter().find(|application| application.limits == *limits).expect("one of the six")
}

/// Draws jobs.
struct Draw {
    dice: Dice,
    applications: Vec<Application>,
    instance: Instance,
}

impl Draw {
    fn job(&mut self, id: JobId) -> Job {
        let total: f64 = self.applications.iter().map(|application| application.share).sum();
        let mut left = self.dice.unit() * total;
        let drawn = self.applications.iter().position(|application| {
            left -= application.share;
            left < 0.0
        });
        let application = self.applications[drawn.unwrap_or(0)].clone();
        let groups = u64::from(self.instance.groups);
        let group = (groups > 0).then(|| GroupId(self.dice.whole(1, groups) as u32));
        let job = Job {
            id,
            group,
            priority: Priority::Normal,
            weight: 1.0,
            min_gpus: 1,
            max_gpus: Some(application.limits.max_replicas().min(MOST_GPUS)),
            types: BTreeSet::new(),
            freedom: Freedom::Elastic,
            holds: Allocation::none(),
            age: Duration::from_secs(self.dice.whole(0, 600)),
            attained: 0.0,
            restarts: 0,
            restart_cost: RESTART_COST,
            knows: Known {
                learned: Learned { curves: Arc::default(), most_gpus: self.instance.most_gpus },
                ..Known::default()
            },
        };
        let models = self.models(&application);
        with_models(job, models, self.instance.gpus_per_node)
    }

    /// A model for each GPU type; where there are several, some jobs have run on one of them only.
    fn models(&mut self, application: &Application) -> BTreeMap<GpuType, GoodputModel> {
        let batch = &application.noise[self.dice.index(application.noise.len())];
        let noise = batch[self.dice.index(batch.len())];
        let params = self.strayed(&application.params);
        let types = self.instance.gpu_types();
        let only = (types.len() > 1 && self.dice.chance(0.3)).then(|| self.dice.index(types.len()));
        let mut models = BTreeMap::new();
        for (index, (gpu_type, speed)) in types.into_iter().enumerate() {
            let mut params = params.clone();
            if let (Compute::Linear { alpha, beta }, true) = (&mut params.grad, index > 0) {
                let speed = speed * libm::exp(STRAY * self.dice.normal());
                *alpha /= speed;
                *beta /= speed;
            }
            if only.is_none_or(|only| only == index) {
                let model = GoodputModel::new(params, noise, application.limits);
                models.insert(gpu_type, model.expect("parameters that stray stay positive"));
            }
        }
        models
    }

    fn strayed(&mut self, params: &PerfParams) -> PerfParams {
        let mut stray = |value: f64| value * libm::exp(STRAY * self.dice.normal());
        let Compute::Linear { alpha, beta } = params.grad else {
            unreachable!("the table has no other form")
        };
        let mut affine = |term: Affine| Affine { alpha: stray(term.alpha), beta: stray(term.beta) };
        let grad = affine(Affine { alpha, beta });
        let (sync_local, sync_node) = (affine(params.sync_local), affine(params.sync_node));
        let gamma = (1.0 + stray(params.gamma - 1.0)).clamp(1.0, 10.0);
        let grad = Compute::Linear { alpha: grad.alpha, beta: grad.beta };
        PerfParams { grad, sync_local, sync_node, gamma, optimizer_step: 0.0 }
    }
}

/// The job with these models, its tables empty.
fn with_models(mut job: Job, models: BTreeMap<GpuType, GoodputModel>, gpus_per_node: u32) -> Job {
    let mut curves = JobCurves::default();
    curves.update(models, gpus_per_node, job.max_gpus.unwrap_or(MOST_GPUS));
    job.knows.learned.curves = Arc::new(curves);
    job
}

fn models_of(job: &Job) -> BTreeMap<GpuType, GoodputModel> {
    job.knows
        .learned
        .curves
        .iter()
        .map(|(gpu_type, curve)| (gpu_type.clone(), curve.model().clone()))
        .collect()
}
