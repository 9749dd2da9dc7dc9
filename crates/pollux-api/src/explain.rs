//! A plan's reasons as sentences, and as codes for programs.

use std::borrow::Cow;
use std::fmt::Write as _;

use pollux_model::{Allocation, Placement};
use pollux_policy::{Against, Decision, JobPlan, Limit, Step};

use crate::names::Names;

/// The code of what keeps a job from more: one stable word for each kind of limit.
pub fn code(limit: &Limit) -> &'static str {
    match limit {
        Limit::Unstated => "unstated",
        Limit::Price => "price",
        Limit::NoGain => "no_gain",
        Limit::OwnMaximum => "own_maximum",
        Limit::Exploration => "exploration",
        Limit::NodeSize => "node_size",
        Limit::RestartPrice => "restart_price",
        Limit::GroupCap { .. } => "group_cap",
        Limit::Reserved { .. } => "reserved",
        Limit::Packing => "packing",
        Limit::Pinned => "pinned",
        Limit::Restarting => "restarting",
        Limit::Unprofiled => "unprofiled",
        Limit::Starved => "starved",
        Limit::Impossible => "impossible",
    }
}

/// What a job holds and why, in one sentence.
///
/// ```
/// use pollux_api::{Names, explain};
/// use pollux_model::{Allocation, JobId, NodeId};
/// use pollux_policy::{Against, Decision, JobPlan, Limit, Reason, Step};
///
/// let step = |gpus, speedup| Some(Step { gpus, speedup, at_least: None, worth: -0.1, at_most: 0.0 });
/// let bert = JobPlan {
///     job: JobId(0),
///     decision: Decision::Keep,
///     allocation: Allocation::whole([(NodeId(0), 4), (NodeId(1), 4)]),
///     reason: Reason {
///         speedup: Some(6.1),
///         more: step(9, 6.4),
///         fewer: step(7, 5.2),
///         limit: Limit::Price,
///         ..Reason::default()
///     },
/// };
/// let names = Names { jobs: [(JobId(0), "bert".to_owned())].into(), ..Names::default() };
/// assert_eq!(
///     explain::sentence(&bert, &names),
///     "bert keeps 8 GPUs on 2 nodes, at 6.10 times the speed of its fair share; \
///      one more would make it 6.40 and cost others more than that; one fewer would make it 5.20."
/// );
/// ```
pub fn sentence(job: &JobPlan, names: &Names) -> String {
    let name = names.job(job.job);
    match job.allocation.placement() {
        Some(placement) => holding(job, &name, placement, names),
        None => waiting(job, &name, names),
    }
}

fn holding(job: &JobPlan, name: &str, placement: Placement, names: &Names) -> String {
    let verb = match job.decision {
        Decision::Keep => "keeps",
        Decision::Place => "gets",
        Decision::Wait | Decision::Reject => "holds",
    };
    let mut clauses = vec![format!("{name} {verb} {}", what(&job.allocation, placement, names))];
    if let Some(speedup) = job.reason.speedup {
        let _ = write!(clauses[0], ", at {speedup:.2} times the speed of {}", reference(job));
    }
    let held = placement.n_replicas();
    clauses.extend(limit_of_more(job, held, names));
    // What it would be without any GPU needs no telling.
    if let Some(fewer) = job.reason.fewer.filter(|fewer| fewer.gpus > 0) {
        clauses.push(would_be(fewer, held));
    }
    clauses.join("; ") + "."
}

fn reference(job: &JobPlan) -> &'static str {
    match job.reason.against {
        Against::FairShare => "its fair share",
        Against::OneGpu => "one GPU",
    }
}

/// `8 GPUs on 2 nodes`.
fn what(allocation: &Allocation, placement: Placement, names: &Names) -> String {
    let place: Cow<'_, str> = match allocation.iter().next() {
        Some((node, _)) if placement.n_nodes() == 1 => names.node(node),
        _ => format!("{} nodes", placement.n_nodes()).into(),
    };
    let gpus = match placement.n_replicas() {
        1 if allocation.gpus() < 1.0 => format!("{:.2} of a GPU", allocation.gpus()),
        1 => "1 GPU".to_owned(),
        several => format!("{several} GPUs"),
    };
    format!("{gpus} on {place}")
}

/// `one more would make it 6.40`.
fn would_be(step: Step, held: u32) -> String {
    let Step { gpus, speedup, .. } = step;
    let change = match (gpus.abs_diff(held), gpus > held) {
        (1, true) => "one more".to_owned(),
        (1, false) => "one fewer".to_owned(),
        (by, true) => format!("{by} more"),
        (by, false) => format!("{by} fewer"),
    };
    format!("{change} would make it {speedup:.2}")
}

/// Why a job that holds something does not hold more.
fn limit_of_more(job: &JobPlan, held: u32, names: &Names) -> Option<String> {
    let more = job.reason.more.map(|step| would_be(step, held));
    let but = |why: &str| match &more {
        Some(more) => format!("{more}, but {why}"),
        None => why.to_owned(),
    };
    Some(match &job.reason.limit {
        Limit::Unstated => return more,
        Limit::Price => match &more {
            Some(more) => format!("{more} and cost others more than that"),
            None => "others make more of any further GPUs".to_owned(),
        },
        Limit::NoGain => match &more {
            Some(more) => format!("{more}, which is no faster"),
            None => "more GPUs would not make it faster".to_owned(),
        },
        Limit::OwnMaximum => but("it may not hold more by its own maximum or its batch limits"),
        Limit::Exploration => but("it grows step by step and has not run on more yet"),
        Limit::NodeSize => match &more {
            Some(more) => format!("its nodes are full, and {more}, spread over several"),
            None => "its nodes are full, and spread over several it would be slower".to_owned(),
        },
        Limit::RestartPrice => but("a restart would cost more than it gains"),
        Limit::GroupCap { group, gpu_type } => {
            but(&format!("group {} may hold no more GPUs of type {gpu_type}", names.group(*group)))
        }
        Limit::Reserved { group, gpu_type } => {
            but(&format!("the remaining GPUs of type {gpu_type} are kept for group {}", names.group(*group)))
        }
        Limit::Packing => but("no free place of that shape was found"),
        Limit::Pinned => "it may not be moved".to_owned(),
        Limit::Restarting => "it is restarting and stays as it is until that is done".to_owned(),
        Limit::Unprofiled => "it has not reported yet and runs on what it asked for until it does".to_owned(),
        Limit::Starved => but("there are not enough GPUs for all, and others come first"),
        Limit::Impossible => "it could run nowhere else in this cluster".to_owned(),
    })
}

/// Why a job holds nothing.
fn waiting(job: &JobPlan, name: &str, names: &Names) -> String {
    let verb = if job.decision == Decision::Reject { "is turned away" } else { "waits" };
    let why: Cow<'_, str> = match &job.reason.limit {
        Limit::Unstated => "".into(),
        Limit::Price => "others make more of the GPUs".into(),
        Limit::NoGain => "no GPUs it could get would speed it up".into(),
        Limit::OwnMaximum => "its own maximum or its batch limits leave it no GPUs".into(),
        Limit::Exploration => "it has not run yet, and there is no room for a first try".into(),
        Limit::NodeSize => "no node has room for it, and spread over several it would be slower".into(),
        Limit::RestartPrice => "a restart would cost more than it gains".into(),
        Limit::GroupCap { group, gpu_type } => {
            format!("group {} may hold no more GPUs of type {gpu_type}", names.group(*group)).into()
        }
        Limit::Reserved { group, gpu_type } => {
            format!("the remaining GPUs of type {gpu_type} are kept for group {}", names.group(*group)).into()
        }
        Limit::Packing => "GPUs are free, but no place of a shape that it can use was found".into(),
        Limit::Pinned => "it may not be moved, and it holds nothing".into(),
        Limit::Restarting => "it is restarting".into(),
        Limit::Unprofiled => "it has not reported yet, and what it asks for is not free".into(),
        Limit::Starved => "there are not enough GPUs for all, and others come first".into(),
        Limit::Impossible => "nowhere in this cluster could it run".into(),
    };
    let mut sentence = format!("{name} {verb}");
    if !why.is_empty() {
        let _ = write!(sentence, ": {why}");
    }
    if let Some(Step { gpus, speedup, .. }) = job.reason.more {
        let gpus = if gpus == 1 { "1 GPU".to_owned() } else { format!("{gpus} GPUs") };
        let _ =
            write!(sentence, "; {gpus} would run it at {speedup:.2} times the speed of {}", reference(job));
    }
    sentence + "."
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pollux_model::{GpuShare, GpuType, JobId, NodeId};
    use pollux_policy::{GroupId, Reason};

    use super::*;

    fn limits() -> Vec<Limit> {
        vec![
            Limit::Unstated,
            Limit::Price,
            Limit::NoGain,
            Limit::OwnMaximum,
            Limit::Exploration,
            Limit::NodeSize,
            Limit::RestartPrice,
            Limit::GroupCap { group: GroupId(0), gpu_type: GpuType::new("a100") },
            Limit::Reserved { group: GroupId(0), gpu_type: GpuType::new("a100") },
            Limit::Packing,
            Limit::Pinned,
            Limit::Restarting,
            Limit::Unprofiled,
            Limit::Starved,
            Limit::Impossible,
        ]
    }

    fn names() -> Names {
        Names {
            nodes: [(NodeId(0), "rack-0".to_owned())].into(),
            groups: [(GroupId(0), "vision".to_owned())].into(),
            jobs: [(JobId(0), "bert".to_owned())].into(),
        }
    }

    fn step(gpus: u32, speedup: f64) -> Step {
        Step { gpus, speedup, at_least: None, worth: 0.0, at_most: 0.0 }
    }

    fn check(allocation: Allocation, decision: Decision, reason: Reason, expected: &str) {
        let job = JobPlan { job: JobId(0), decision, allocation, reason };
        assert_eq!(sentence(&job, &names()), expected);
    }

    fn four() -> Allocation {
        Allocation::whole([(NodeId(0), 4)])
    }

    #[test]
    fn sentences_say_what_is_known() {
        let bare = Reason::default();
        check(four(), Decision::Keep, bare.clone(), "bert keeps 4 GPUs on rack-0.");
        check(Allocation::none(), Decision::Wait, bare.clone(), "bert waits.");
        check(Allocation::none(), Decision::Reject, bare.clone(), "bert is turned away.");
        let one = Allocation::whole([(NodeId(0), 1)]);
        let last = Reason { fewer: Some(step(0, 0.0)), ..bare.clone() };
        check(one, Decision::Place, last, "bert gets 1 GPU on rack-0.");
        let half = Allocation::part_of_one(NodeId(0), GpuShare::part_of_one(500).unwrap()).unwrap();
        check(half, Decision::Place, bare.clone(), "bert gets 0.50 of a GPU on rack-0.");
        let steps =
            Reason { speedup: Some(2.0), more: Some(step(8, 3.0)), fewer: Some(step(2, 1.25)), ..bare };
        let expected = "bert keeps 4 GPUs on rack-0, at 2.00 times the speed of its fair share; 4 more would make it \
                        3.00; 2 fewer would make it 1.25.";
        check(four(), Decision::Keep, steps, expected);
    }

    #[test]
    fn limits_that_bind_are_named() {
        let reason = |limit| Reason { more: Some(step(5, 1.5)), limit, ..Reason::default() };
        let check = |limit, clause: &str| {
            check(four(), Decision::Keep, reason(limit), &format!("bert keeps 4 GPUs on rack-0; {clause}."));
        };
        check(Limit::Price, "one more would make it 1.50 and cost others more than that");
        check(
            Limit::RestartPrice,
            "one more would make it 1.50, but a restart would cost more than it gains",
        );
        let cap = Limit::GroupCap { group: GroupId(0), gpu_type: GpuType::new("a100") };
        check(cap, "one more would make it 1.50, but group vision may hold no more GPUs of type a100");
        check(Limit::Pinned, "it may not be moved");
    }

    #[test]
    fn a_job_that_waits_is_told_what_it_waits_for() {
        let reason = Reason { more: Some(step(2, 1.3)), limit: Limit::Starved, ..Reason::default() };
        let expected = "bert waits: there are not enough GPUs for all, and others come first; 2 GPUs would run it at \
                        1.30 times the speed of its fair share.";
        check(Allocation::none(), Decision::Wait, reason, expected);
    }

    #[test]
    fn every_limit_has_a_code_and_sentences_of_its_own() {
        let codes: BTreeSet<_> = limits().iter().map(code).collect();
        assert_eq!(codes.len(), limits().len());
        for more in [None, Some(step(5, 1.5))] {
            for allocation in [four(), Allocation::none()] {
                let say = |limit| {
                    let reason = Reason { more, limit, ..Reason::default() };
                    let (job, decision) = (JobId(0), Decision::Keep);
                    sentence(&JobPlan { job, decision, allocation: allocation.clone(), reason }, &names())
                };
                let said: BTreeSet<_> = limits().into_iter().map(say).collect();
                assert_eq!(said.len(), limits().len(), "{said:?}");
                assert!(said.iter().all(|text| text.starts_with("bert ") && text.ends_with('.')), "{said:?}");
            }
        }
    }
}
