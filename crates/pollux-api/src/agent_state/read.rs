//! From the format to an agent's state: what the types of the format cannot refuse is refused here.

use std::collections::BTreeMap;

use pollux_agent::{
    AgentState, Exploring, MomentSums, NoiseState, Profile, ProfileEntry, ProfileKey, RunningMoments,
};
use pollux_model::{BatchPlan, GlobalBatch, GpuType, Placement, Timestamp};

use super::wire;
use crate::wire::{AtLeastOne, Plan, Problem, Read, Revision, within};

impl wire::State {
    pub(super) fn read(self) -> Read<AgentState> {
        let placement = self.placement.map(|placement| self::placement(placement.nodes, placement.replicas));
        let placement = within("placement", placement.transpose())?;
        let plan = self.plan.map(|plan| plan_on(&plan, placement)).transpose();
        let exploring = self.exploring.map(|exploring| exploring.read(placement)).transpose();
        let mut fits = BTreeMap::new();
        let mut fit_revisions = BTreeMap::new();
        for (name, fit) in self.fits {
            let gpu_type = GpuType::new(&name);
            if let Some(Revision(Some(revision))) = fit.revision {
                fit_revisions.insert(gpu_type.clone(), revision);
            }
            within("fits", within(&name, fit.check_known()))?;
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

/// A plan follows from the samples, the replicas and the passes: there is one way to deal them.
fn plan_on(plan: &Plan, placement: Option<Placement>) -> Read<BatchPlan> {
    plan.check_known()?;
    let &Plan { global, atomic_batch: AtLeastOne(atomic_batch), accum_steps, .. } = plan;
    let placement = placement.ok_or(Problem::NoPlacement)?;
    let plan = BatchPlan::split(GlobalBatch(global), placement, accum_steps);
    let problem = Problem::Plan { global, atomic_batch, accum_steps, replicas: placement.n_replicas() };
    Ok(plan.filter(|plan| plan.atomic_batch() == atomic_batch).ok_or(problem)?)
}

impl wire::Exploring {
    fn read(self, placement: Option<Placement>) -> Read<Exploring> {
        Ok(Exploring {
            plan: within("plan", plan_on(&self.plan, placement))?,
            before: within("before", plan_on(&self.before, placement))?,
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
