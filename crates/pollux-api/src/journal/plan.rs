//! Plans, and what they are made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use pollux_model::{Allocation, GpuShare, GpuType, JobId, NodeId};
use pollux_policy::{
    Against, Carried, Certificate, Decision, GroupId, JobPlan, Limit, Plan, Population, Reason, Served,
    Starved, Step, Stopped, Work,
};
use serde::{Deserialize, Serialize};

use super::stored::{Stored, stored_enum, stored_struct};
use crate::wire::{Problem, Read, within};

stored_struct! {
    Plan => PlanForm { jobs: Vec<JobPlan>, certificate: Option<Certificate>, work: Work, carried: Carried }
    JobPlan => JobPlanForm { job: JobId, decision: Decision, allocation: Allocation, reason: Reason }
    Certificate => CertificateForm {
        value: f64, bound: f64, starved: Starved, starved_bound: Starved, n_running: u32,
    }
    Starved => StarvedForm { high: u32, normal: u32, low: u32 }
    Work => WorkForm { units: u64, budget: u64, stopped: Stopped }
    Reason => ReasonForm {
        speedup: Option<f64>, against: Against, more: Option<Step>, fewer: Option<Step>, limit: Limit,
    }
    Step => StepForm { gpus: u32, speedup: f64, at_least: Option<f64>, worth: f64, at_most: f64 }
    Carried => CarriedForm {
        prices: BTreeMap<GpuType, f64>,
        population: Option<Arc<Population>>,
        queue: Vec<JobId>,
        served: BTreeMap<JobId, Served>,
    }
    Served => ServedForm { secs: BTreeMap<GpuType, f64>, last: Option<GpuType>, attained: f64 }
    Population => PopulationForm { jobs: Vec<JobId>, nodes: Vec<NodeId>, members: Vec<Vec<u32>> }
}

stored_enum! {
    Decision => DecisionForm { Keep, Place, Wait, Reject }
    Stopped => StoppedForm { Done, GoodEnough, Budget, Deadline }
    Against => AgainstForm { FairShare, OneGpu }
    Limit => LimitForm {
        Unstated,
        Price,
        NoGain,
        OwnMaximum,
        Exploration,
        NodeSize,
        RestartPrice,
        GroupCap { group = group: GroupId, gpu_type = gpu_type: GpuType },
        Reserved { group = group: GroupId, gpu_type = gpu_type: GpuType },
        Packing,
        Pinned,
        Restarting,
        Unprofiled,
        Starved,
        Impossible,
    }
}

/// What a job holds of a node: whole GPUs, or a part of one.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Share {
    Whole(u32),
    Part { thousandths: u32 },
}

impl Stored for Allocation {
    type Form = BTreeMap<String, Share>;

    fn write(&self) -> Self::Form {
        let share = |share: GpuShare| match u32::try_from(share.thousandths()) {
            Ok(thousandths) if !share.is_whole() => Share::Part { thousandths },
            _ => Share::Whole(share.n_replicas()),
        };
        self.iter().map(|(node, held)| (node.0.to_string(), share(held))).collect()
    }

    fn read(form: Self::Form) -> Read<Self> {
        let is_alone = form.len() == 1;
        let mut counts = BTreeMap::new();
        for (text, share) in form {
            let problem = |what: &str| Problem::Format(format!("`{text}`: {what}"));
            let node = text.parse().map(NodeId).map_err(|_| problem("not the number of a node"))?;
            match share {
                Share::Whole(count) if count > 0 => {
                    if counts.insert(node, count).is_some() {
                        return within(&text, Err(Problem::Repeated));
                    }
                }
                Share::Whole(_) => return Err(problem("no GPU at all").into()),
                Share::Part { thousandths } => {
                    let part = GpuShare::part_of_one(thousandths).filter(|_| is_alone);
                    let part = part.and_then(|part| Self::part_of_one(node, part));
                    return Ok(part.ok_or_else(|| problem("not a part of one GPU, and nothing else"))?);
                }
            }
        }
        Ok(Self::whole(counts))
    }
}
