//! From the format to an agent's state: what the types of the format cannot refuse is refused here.

use std::collections::BTreeMap;

use pollux_agent::{
    AgentState, Exploring, GradientSpace, MomentSums, NoiseState, Profile, ProfileEntry, ProfileKey,
    RunningMoments,
};
use pollux_model::fit::{Coverage, Fit, Parameter, RelativeError};
use pollux_model::{
    Affine, BatchPlan, Compute, Estimator, GlobalBatch, GpuType, PerfParams, Placement, StepTable, Timestamp,
};

use super::error::{FieldError, Problem};
use super::wire::{self, AtLeastOne};

type Read<T> = Result<T, FieldError>;

/// A problem of the whole of a value; who knows where the value stands says so.
fn here(problem: Problem) -> FieldError {
    FieldError { path: String::new(), problem }
}

impl wire::State {
    pub(super) fn read(self) -> Read<AgentState> {
        let placement = self.placement.map(|placement| self::placement(placement.nodes, placement.replicas));
        let placement = placement.transpose().map_err(|error| error.within("placement"))?;
        let plan = self.plan.map(|plan| plan.read(placement)).transpose();
        let exploring = self.exploring.map(|exploring| exploring.read(placement)).transpose();
        let mut fits = BTreeMap::new();
        let mut fit_revisions = BTreeMap::new();
        for (name, fit) in self.fits {
            let gpu_type = GpuType::new(&name);
            if let Some(revision) = fit.revision {
                fit_revisions.insert(gpu_type.clone(), revision);
            }
            fits.insert(gpu_type, fit.read().map_err(|error| error.within(&name).within("fits"))?);
        }
        Ok(AgentState {
            profile: profile(self.profile).map_err(|error| error.within("profile"))?,
            noise: self.noise.read().map_err(|error| error.within("noise"))?,
            fits,
            fit_revisions,
            micro_max: self.micro_max.iter().map(|(name, most)| (GpuType::new(name), most.0)).collect(),
            plan: plan.map_err(|error| error.within("plan"))?,
            placement,
            gpu_type: self.gpu_type.map(|name| GpuType::new(&name)),
            steps_since_change: self.steps_since_change,
            exploring: exploring.map_err(|error| error.within("exploring"))?,
            learning_rate_factor: self.learning_rate_factor.0,
            progress: self.progress.0,
            samples: self.samples,
            most_replicas: self.most_replicas,
            last_report: self.last_report_us.map(Timestamp::from_micros),
        })
    }
}

fn placement(nodes: AtLeastOne, replicas: AtLeastOne) -> Read<Placement> {
    let problem = Problem::MoreNodesThanReplicas { nodes: nodes.0, replicas: replicas.0 };
    Placement::new(nodes.0, replicas.0).ok_or_else(|| here(problem))
}

impl wire::Plan {
    /// A plan follows from the samples, the replicas and the passes: there is one way to deal them.
    fn read(self, placement: Option<Placement>) -> Read<BatchPlan> {
        let placement = placement.ok_or_else(|| here(Problem::NoPlacement))?;
        let plan = BatchPlan::split(GlobalBatch(self.global), placement, self.accum_steps);
        plan.filter(|plan| plan.atomic_batch() == self.atomic_batch.0).ok_or_else(|| {
            here(Problem::Plan {
                global: self.global,
                atomic_batch: self.atomic_batch.0,
                accum_steps: self.accum_steps,
                replicas: placement.n_replicas(),
            })
        })
    }
}

impl wire::Exploring {
    fn read(self, placement: Option<Placement>) -> Read<Exploring> {
        Ok(Exploring {
            plan: self.plan.read(placement).map_err(|error| error.within("plan"))?,
            before: self.before.read(placement).map_err(|error| error.within("before"))?,
            steps_left: self.steps_left,
        })
    }
}

impl wire::Noise {
    fn read(self) -> Read<NoiseState> {
        Ok(NoiseState {
            estimator: match self.estimator {
                wire::Estimator::Pairs => Estimator::Pairs,
                wire::Estimator::Differences => Estimator::Differences,
            },
            space: match self.space {
                wire::Space::Plain => GradientSpace::Plain,
                wire::Space::Preconditioned => GradientSpace::Preconditioned,
            },
            block: self.block.read(),
            held_back: self.held_back.read(),
            running: self.running.read().map_err(|error| error.within("running"))?,
            acted: self.acted.map(|acted| acted.0),
            steps_known: self.steps_known.0,
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
            return Err(FieldError::at("weight", Problem::NoWeight { n_blocks: self.n_blocks }));
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
        let (key, entry) = entry.read().map_err(|error| error.within_item(index))?;
        if entries.insert(key, entry).is_some() {
            return Err(here(Problem::Repeated).within_item(index));
        }
    }
    Ok(Profile { entries })
}

impl wire::ProfileEntry {
    fn read(self) -> Read<(ProfileKey, ProfileEntry)> {
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
        let errors = [
            ("mean_relative_error", self.mean_relative_error),
            ("worst_relative_error", self.worst_relative_error),
        ];
        if let Some((key, error)) = errors.into_iter().find(|(_, error)| *error < 0.0) {
            let (found, expected) = (error.to_string(), "a number, zero or more".to_owned());
            return Err(FieldError::at(key, Problem::Value { found, expected }));
        }
        Ok(Fit {
            params: self.params.read(&self.form).map_err(|error| error.within("params"))?,
            undetermined: undetermined(&self.undetermined).map_err(|error| error.within("undetermined"))?,
            objective: self.objective,
            error: RelativeError { mean: self.mean_relative_error, worst: self.worst_relative_error },
            coverage: self.coverage.read().map_err(|error| error.within("coverage"))?,
        })
    }
}

fn undetermined(names: &[String]) -> Read<Vec<Parameter>> {
    let parameter = |(index, name): (usize, &String)| {
        let found = Parameter::ALL.into_iter().find(|parameter| parameter.name() == name);
        found.ok_or_else(|| {
            let (found, expected) = (name.clone(), "the name of a parameter".to_owned());
            here(Problem::Value { found, expected }).within_item(index)
        })
    };
    names.iter().enumerate().map(parameter).collect()
}

impl wire::Params {
    fn read(self, form: &wire::Form) -> Read<PerfParams> {
        let missing = |key: &'static str| move || FieldError::at(key, Problem::Missing);
        let unknown = |key, is_there: bool| {
            if is_there { Err(FieldError::at(key, Problem::Unknown)) } else { Ok(()) }
        };
        if matches!(form, wire::Form::Table) {
            unknown("alpha_grad", self.alpha_grad.is_some())?;
            unknown("beta_grad", self.beta_grad.is_some())?;
        } else {
            unknown("table", self.table.is_some())?;
        }
        if !matches!(form, wire::Form::Roofline) {
            unknown("delta_grad", self.delta_grad.is_some())?;
        }
        let alpha = || Ok(self.alpha_grad.ok_or_else(missing("alpha_grad"))?.0);
        let beta = || Ok(self.beta_grad.ok_or_else(missing("beta_grad"))?.0);
        let grad = match form {
            wire::Form::Linear => Compute::Linear { alpha: alpha()?, beta: beta()? },
            wire::Form::Roofline => {
                let delta = self.delta_grad.ok_or_else(missing("delta_grad"))?;
                Compute::Roofline { alpha: alpha()?, beta: beta()?, delta }
            }
            wire::Form::Table => {
                let points = self.table.ok_or_else(missing("table"))?;
                let table =
                    StepTable::new(points.into_iter().map(|(micro_batch, secs)| (micro_batch.0, secs.0)));
                Compute::Table(table.map_err(|cause| FieldError::at("table", Problem::Table(cause)))?)
            }
        };
        let params = PerfParams {
            grad,
            sync_local: Affine { alpha: self.alpha_local.0, beta: self.beta_local.0 },
            sync_node: Affine { alpha: self.alpha_node.0, beta: self.beta_node.0 },
            gamma: self.gamma,
            optimizer_step: self.optimizer_step.0,
        };
        params.validate().map_err(|cause| here(Problem::Params(cause)))?;
        Ok(params)
    }
}

impl wire::Coverage {
    fn read(self) -> Read<Coverage> {
        let range = |key: &'static str| {
            move |(AtLeastOne(low), AtLeastOne(high))| {
                let range = (low <= high).then_some((low, high));
                range.ok_or_else(|| FieldError::at(key, Problem::EmptyRange { low, high }))
            }
        };
        Ok(Coverage {
            micro_batch: range("micro_batch")(self.micro_batch)?,
            alone: self.alone,
            one_node: self.one_node.map(range("one_node")).transpose()?,
            distributed: self.distributed.map(range("distributed")).transpose()?,
        })
    }
}
