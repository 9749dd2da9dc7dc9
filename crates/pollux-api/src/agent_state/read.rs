//! From the format to an agent's state: what the types of the format cannot refuse is refused here.

use std::collections::BTreeMap;

use pollux_agent::{
    AgentState, Exploring, MomentSums, NoiseState, Profile, ProfileEntry, ProfileKey, RunningMoments,
};
use pollux_model::fit::{Coverage, Fit, Parameter, RelativeError};
use pollux_model::{
    Affine, BatchPlan, Compute, GlobalBatch, GpuType, PerfParams, Placement, StepTable, Timestamp,
};

use super::error::{FieldError, Problem, within};
use super::wire::{self, AtLeastOne};

type Read<T> = Result<T, FieldError>;

impl wire::State {
    pub(super) fn read(self) -> Read<AgentState> {
        let placement = self.placement.map(|placement| self::placement(placement.nodes, placement.replicas));
        let placement = within("placement", placement.transpose())?;
        let plan = self.plan.map(|plan| plan.read(placement)).transpose();
        let exploring = self.exploring.map(|exploring| exploring.read(placement)).transpose();
        let mut fits = BTreeMap::new();
        let mut fit_revisions = BTreeMap::new();
        for (name, fit) in self.fits {
            let gpu_type = GpuType::new(&name);
            if let Some(revision) = fit.revision {
                fit_revisions.insert(gpu_type.clone(), revision);
            }
            fits.insert(gpu_type, within("fits", within(&name, fit.read()))?);
        }
        Ok(AgentState {
            profile: within("profile", profile(self.profile))?,
            noise: within("noise", self.noise.read())?,
            fits,
            fit_revisions,
            micro_max: self.micro_max.iter().map(|(name, most)| (GpuType::new(name), most.0)).collect(),
            plan: within("plan", plan)?,
            placement,
            gpu_type: self.gpu_type.map(|name| GpuType::new(&name)),
            steps_since_change: self.steps_since_change,
            exploring: within("exploring", exploring)?,
            learning_rate_factor: self.learning_rate_factor.0,
            progress: self.progress.0,
            samples: self.samples,
            most_replicas: self.most_replicas,
            last_report: self.last_report_us.map(Timestamp::from_micros),
        })
    }
}

fn placement(nodes: AtLeastOne, replicas: AtLeastOne) -> Result<Placement, Problem> {
    let problem = Problem::MoreNodesThanReplicas { nodes: nodes.0, replicas: replicas.0 };
    Placement::new(nodes.0, replicas.0).ok_or(problem)
}

impl wire::Plan {
    /// A plan follows from the samples, the replicas and the passes: there is one way to deal them.
    fn read(self, placement: Option<Placement>) -> Result<BatchPlan, Problem> {
        let Self { global, atomic_batch: AtLeastOne(atomic_batch), accum_steps } = self;
        let placement = placement.ok_or(Problem::NoPlacement)?;
        let plan = BatchPlan::split(GlobalBatch(global), placement, accum_steps);
        let problem = Problem::Plan { global, atomic_batch, accum_steps, replicas: placement.n_replicas() };
        plan.filter(|plan| plan.atomic_batch() == atomic_batch).ok_or(problem)
    }
}

impl wire::Exploring {
    fn read(self, placement: Option<Placement>) -> Read<Exploring> {
        Ok(Exploring {
            plan: within("plan", self.plan.read(placement))?,
            before: within("before", self.before.read(placement))?,
            steps_left: self.steps_left,
        })
    }
}

impl wire::Noise {
    fn read(self) -> Read<NoiseState> {
        Ok(NoiseState {
            estimator: self.estimator,
            space: self.space,
            block: self.block.read(),
            held_back: self.held_back.read(),
            running: within("running", self.running.read())?,
            acted: self.acted.map(|acted| acted.0),
            n_measured: self.n_measured.0,
            n_implausible: self.n_implausible.0,
        })
    }
}

impl wire::Sums {
    fn read(self) -> MomentSums {
        MomentSums {
            n_measured: self.n_measured.0,
            n_steps: self.n_steps,
            scale: self.scale.0,
            sqr: self.sqr,
            trace: self.trace,
        }
    }
}

impl wire::Running {
    fn read(self) -> Read<RunningMoments> {
        // The mean is a quotient of this.
        if self.n_blocks > 0 && self.weight.0 <= 0.0 {
            return within("weight", Err(Problem::NoWeight { n_blocks: self.n_blocks }));
        }
        Ok(RunningMoments {
            sqr: self.sqr,
            trace: self.trace,
            sqr_deviation: self.sqr_deviation.0,
            weight: self.weight.0,
            deviation_weight: self.deviation_weight.0,
            n_blocks: self.n_blocks,
        })
    }
}

fn profile(wire: Vec<wire::ProfileEntry>) -> Read<Profile> {
    let mut entries = BTreeMap::new();
    for (index, entry) in wire.into_iter().enumerate() {
        let item = format!("[{index}]");
        let (key, entry) = within(&item, entry.read())?;
        if entries.insert(key, entry).is_some() {
            return within(&item, Err(Problem::Repeated));
        }
    }
    Ok(Profile { entries })
}

impl wire::ProfileEntry {
    fn read(self) -> Result<(ProfileKey, ProfileEntry), Problem> {
        let placement = placement(self.nodes, self.replicas)?;
        let key =
            ProfileKey { gpu_type: GpuType::new(&self.gpu_type), placement, micro_batch: self.micro_batch.0 };
        let entry = ProfileEntry {
            n_steps: self.n_steps.0,
            first: self.first.into_iter().map(|(compute, optim)| (compute.0, optim.0)).collect(),
            log_compute: self.log_compute.0,
            log_optim: self.log_optim.0,
            deviation: self.deviation.0,
        };
        Ok((key, entry))
    }
}

impl wire::Fit {
    fn read(self) -> Read<Fit> {
        Ok(Fit {
            params: within("params", self.params.read(&self.form))?,
            undetermined: within("undetermined", undetermined(self.undetermined))?,
            objective: self.objective,
            error: RelativeError {
                mean: within("mean_relative_error", not_negative(self.mean_relative_error))?,
                worst: within("worst_relative_error", not_negative(self.worst_relative_error))?,
            },
            coverage: within("coverage", self.coverage.read())?,
        })
    }
}

fn not_negative(number: f64) -> Result<f64, Problem> {
    if number < 0.0 { Err(Problem::Negative(number)) } else { Ok(number) }
}

fn undetermined(names: Vec<String>) -> Read<Vec<Parameter>> {
    let parameter = |(index, name)| {
        let found = Parameter::ALL.into_iter().find(|parameter| parameter.name() == name);
        within(&format!("[{index}]"), found.ok_or(Problem::Parameter(name)))
    };
    names.into_iter().enumerate().map(parameter).collect()
}

impl wire::Params {
    fn read(self, form: &wire::Form) -> Read<PerfParams> {
        let grad = match form {
            wire::Form::Linear => {
                absent("table", self.table.as_ref())?;
                absent("delta_grad", self.delta_grad)?;
                let alpha = present("alpha_grad", self.alpha_grad)?.0;
                Compute::Linear { alpha, beta: present("beta_grad", self.beta_grad)?.0 }
            }
            wire::Form::Roofline => {
                absent("table", self.table.as_ref())?;
                let alpha = present("alpha_grad", self.alpha_grad)?.0;
                let beta = present("beta_grad", self.beta_grad)?.0;
                Compute::Roofline { alpha, beta, delta: present("delta_grad", self.delta_grad)? }
            }
            wire::Form::Table => {
                absent("alpha_grad", self.alpha_grad)?;
                absent("beta_grad", self.beta_grad)?;
                absent("delta_grad", self.delta_grad)?;
                let points = present("table", self.table)?.into_iter();
                let table = StepTable::new(points.map(|(micro_batch, secs)| (micro_batch.0, secs.0)));
                Compute::Table(within("table", table.map_err(Problem::Table))?)
            }
        };
        let params = PerfParams {
            grad,
            sync_local: Affine { alpha: self.alpha_local.0, beta: self.beta_local.0 },
            sync_node: Affine { alpha: self.alpha_node.0, beta: self.beta_node.0 },
            gamma: self.gamma,
            optimizer_step: self.optimizer_step.0,
        };
        params.validate().map_err(Problem::Params)?;
        Ok(params)
    }
}

fn present<T>(key: &str, parameter: Option<T>) -> Read<T> {
    within(key, parameter.ok_or(Problem::Missing))
}

fn absent<T>(key: &str, parameter: Option<T>) -> Read<()> {
    within(key, parameter.map_or(Ok(()), |_| Err(Problem::Unknown)))
}

impl wire::Coverage {
    fn read(self) -> Read<Coverage> {
        Ok(Coverage {
            micro_batch: within("micro_batch", range(self.micro_batch))?,
            alone: self.alone,
            one_node: within("one_node", self.one_node.map(range).transpose())?,
            distributed: within("distributed", self.distributed.map(range).transpose())?,
        })
    }
}

fn range((AtLeastOne(low), AtLeastOne(high)): (AtLeastOne, AtLeastOne)) -> Result<(u32, u32), Problem> {
    if low <= high { Ok((low, high)) } else { Err(Problem::EmptyRange { low, high }) }
}
