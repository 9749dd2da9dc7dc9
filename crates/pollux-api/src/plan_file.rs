//! Who holds which GPUs and why, as JSON, version 1: written, not read.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pollux_model::{Allocation, GpuShare, Placement};
use pollux_policy::{Against, Certificate, Decision, JobPlan, Limit, Plan, Starved, Stopped};
use serde::Serialize;

use crate::explain;
use crate::names::Names;

/// The version of the JSON.
pub const VERSION: u64 = 1;

/// A plan, and what it takes to make it again.
#[derive(Clone, Copy, Debug)]
pub struct PlanFile<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Names of the snapshot's nodes, groups and jobs.
    pub names: &'a Names,
    /// The name of the policy that made it.
    pub policy: &'a str,
    /// The seed it was made with.
    pub seed: u64,
    /// The fairness it was made with, if that was chosen.
    pub fairness: Option<f64>,
}

impl PlanFile<'_> {
    /// The plan as JSON, with a newline at its end.
    pub fn to_json(&self) -> String {
        let plan = self.plan;
        let certificate = plan.certificate.as_ref();
        crate::json::pretty(&File {
            version: VERSION,
            policy: self.policy,
            seed: self.seed,
            fairness: self.fairness,
            value: certificate.map(|certificate| certificate.value),
            bound: certificate.map(|certificate| certificate.bound),
            gap: certificate.and_then(gap),
            n_running: certificate.map(|certificate| certificate.n_running),
            starved: certificate.map(|certificate| certificate.starved.into()),
            starved_bound: certificate.map(|certificate| certificate.starved_bound.into()),
            work: Work {
                units: plan.work.units,
                budget: plan.work.budget,
                stopped: stopped(plan.work.stopped),
            },
            prices: plan.carried.prices.iter().map(|(gpu_type, price)| (gpu_type.name(), *price)).collect(),
            jobs: plan.jobs.iter().map(|job| self::job(job, self.names)).collect(),
        })
    }
}

/// How far a plan's value is below its bound, as a fraction of the bound; nothing where no bound was found.
pub fn gap(certificate: &Certificate) -> Option<f64> {
    certificate.bound.is_finite().then(|| certificate.gap())
}

/// The word for what is to be done with a job: `keep`, `place`, `wait` or `reject`.
pub fn decision(decision: Decision) -> &'static str {
    match decision {
        Decision::Keep => "keep",
        Decision::Place => "place",
        Decision::Wait => "wait",
        Decision::Reject => "reject",
    }
}

/// The word for why a search ended: `done`, `good_enough`, `budget` or `deadline`.
pub fn stopped(stopped: Stopped) -> &'static str {
    match stopped {
        Stopped::Done => "done",
        Stopped::GoodEnough => "good_enough",
        Stopped::Budget => "budget",
        Stopped::Deadline => "deadline",
    }
}

/// Floats that are no numbers become null.
#[derive(Serialize)]
struct File<'a> {
    version: u64,
    policy: &'a str,
    seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fairness: Option<f64>,
    value: Option<f64>,
    bound: Option<f64>,
    gap: Option<f64>,
    n_running: Option<u32>,
    starved: Option<ByPriority>,
    starved_bound: Option<ByPriority>,
    work: Work,
    prices: BTreeMap<&'a str, f64>,
    jobs: Vec<Job<'a>>,
}

#[derive(Serialize)]
struct ByPriority {
    high: u32,
    normal: u32,
    low: u32,
}

impl From<Starved> for ByPriority {
    fn from(Starved { high, normal, low }: Starved) -> Self {
        Self { high, normal, low }
    }
}

#[derive(Serialize)]
struct Work {
    units: u64,
    budget: u64,
    stopped: &'static str,
}

#[derive(Serialize)]
struct Job<'a> {
    name: Cow<'a, str>,
    decision: &'static str,
    gpus: Amount,
    allocation: BTreeMap<Cow<'a, str>, Amount>,
    speedup: Option<f64>,
    speedup_against: &'static str,
    one_more: Option<Step>,
    one_fewer: Option<Step>,
    reason: Reason<'a>,
}

/// GPUs: a whole number, or a part of one.
#[derive(Serialize)]
#[serde(untagged)]
enum Amount {
    Whole(u32),
    Part(f64),
}

#[derive(Serialize)]
struct Step {
    gpus: u32,
    speedup: f64,
    at_least: Option<f64>,
    worth: f64,
    at_most: f64,
}

#[derive(Serialize)]
struct Reason<'a> {
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_type: Option<&'a str>,
    text: String,
}

fn job<'a>(job: &'a JobPlan, names: &'a Names) -> Job<'a> {
    let (group, gpu_type) = match &job.reason.limit {
        Limit::GroupCap { group, gpu_type } | Limit::Reserved { group, gpu_type } => {
            (Some(names.group(*group)), Some(gpu_type.name()))
        }
        _ => (None, None),
    };
    let step = |step: &pollux_policy::Step| {
        let pollux_policy::Step { gpus, speedup, at_least, worth, at_most } = *step;
        Step { gpus, speedup, at_least, worth, at_most }
    };
    Job {
        name: names.job(job.job),
        decision: decision(job.decision),
        gpus: total(&job.allocation),
        allocation: job.allocation.iter().map(|(node, share)| (names.node(node), amount(share))).collect(),
        speedup: job.reason.speedup,
        speedup_against: match job.reason.against {
            Against::FairShare => "fair_share",
            Against::OneGpu => "one_gpu",
        },
        one_more: job.reason.more.as_ref().map(step),
        one_fewer: job.reason.fewer.as_ref().map(step),
        reason: Reason {
            code: explain::code(&job.reason.limit),
            group,
            gpu_type,
            text: explain::sentence(job, names),
        },
    }
}

fn amount(share: GpuShare) -> Amount {
    if share.is_whole() { Amount::Whole(share.n_replicas()) } else { Amount::Part(share.gpus()) }
}

fn total(allocation: &Allocation) -> Amount {
    if allocation.iter().all(|(_, share)| share.is_whole()) {
        Amount::Whole(allocation.placement().map_or(0, Placement::n_replicas))
    } else {
        Amount::Part(allocation.gpus())
    }
}

#[cfg(test)]
mod tests {
    use pollux_model::{GpuType, JobId, NodeId};
    use pollux_policy::{Carried, GroupId};
    use serde_json::{Value, json};

    use super::*;

    fn plan(certificate: Option<Certificate>) -> Plan {
        let limit = Limit::GroupCap { group: GroupId(0), gpu_type: GpuType::new("a100") };
        let more = Some(pollux_policy::Step {
            gpus: 7,
            speedup: 1.75,
            at_least: Some(-0.5),
            worth: -0.25,
            at_most: 0.5,
        });
        let reason =
            pollux_policy::Reason { speedup: Some(1.5), more, limit, ..pollux_policy::Reason::default() };
        let bert = JobPlan {
            job: JobId(0),
            decision: Decision::Place,
            allocation: Allocation::whole([(NodeId(0), 4), (NodeId(1), 2)]),
            reason,
        };
        let half = Allocation::part_of_one(NodeId(1), GpuShare::part_of_one(500).unwrap()).unwrap();
        let sharing = JobPlan {
            job: JobId(1),
            decision: Decision::Keep,
            allocation: half,
            reason: pollux_policy::Reason::default(),
        };
        Plan {
            jobs: vec![bert, sharing],
            certificate,
            work: pollux_policy::Work { units: 10, budget: 20, stopped: Stopped::GoodEnough },
            carried: Carried { prices: [(GpuType::new("a100"), 0.25)].into(), ..Carried::default() },
        }
    }

    fn written(certificate: Option<Certificate>, fairness: Option<f64>) -> Value {
        let names = Names {
            nodes: [(NodeId(0), "a".to_owned()), (NodeId(1), "b".to_owned())].into(),
            groups: [(GroupId(0), "nlp".to_owned())].into(),
            jobs: [(JobId(0), "bert".to_owned()), (JobId(1), "tiny".to_owned())].into(),
        };
        let plan = plan(certificate);
        let file = PlanFile { plan: &plan, names: &names, policy: "pollux", seed: 7, fairness };
        serde_json::from_str(&file.to_json()).unwrap()
    }

    fn certificate(bound: f64) -> Certificate {
        let starved = Starved { low: 2, ..Starved::default() };
        Certificate { value: 1.5, bound, starved, starved_bound: Starved::default(), n_running: 2 }
    }

    #[test]
    fn a_plan_is_written_as_documented() {
        let none = Value::Null;
        assert_eq!(
            written(Some(certificate(2.0)), Some(-1.0)),
            json!({
                "version": 1, "policy": "pollux", "seed": 7, "fairness": -1.0,
                "value": 1.5, "bound": 2.0, "gap": 0.25, "n_running": 2,
                "starved": {"high": 0, "normal": 0, "low": 2},
                "starved_bound": {"high": 0, "normal": 0, "low": 0},
                "work": {"units": 10, "budget": 20, "stopped": "good_enough"},
                "prices": {"a100": 0.25},
                "jobs": [
                    {
                        "name": "bert", "decision": "place", "gpus": 6, "allocation": {"a": 4, "b": 2},
                        "speedup": 1.5, "speedup_against": "fair_share",
                        "one_more": {
                            "gpus": 7, "speedup": 1.75, "at_least": -0.5, "worth": -0.25, "at_most": 0.5
                        },
                        "one_fewer": none,
                        "reason": {
                            "code": "group_cap", "group": "nlp", "gpu_type": "a100",
                            "text": "bert gets 6 GPUs on 2 nodes, at 1.50 times the speed of its fair share; one more \
                                     would make it 1.75, but group nlp may hold no more GPUs of type a100.",
                        },
                    },
                    {
                        "name": "tiny", "decision": "keep", "gpus": 0.5, "allocation": {"b": 0.5},
                        "speedup": none, "speedup_against": "fair_share", "one_more": none, "one_fewer": none,
                        "reason": {"code": "unstated", "text": "tiny keeps 0.50 of a GPU on b."},
                    },
                ],
            })
        );
    }

    #[test]
    fn what_is_not_known_is_null() {
        let plan = written(None, None);
        assert_eq!([&plan["value"], &plan["gap"], &plan["starved"]], [&Value::Null; 3]);
        assert!(plan.get("fairness").is_none());
        let unbounded = written(Some(certificate(f64::INFINITY)), None);
        assert_eq!([&unbounded["bound"], &unbounded["gap"]], [&Value::Null; 2]);
        assert_eq!(unbounded["value"], 1.5);
    }
}
