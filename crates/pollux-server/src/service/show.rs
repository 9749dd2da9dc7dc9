//! The state of the service as the API shows it.

use std::collections::BTreeMap;

use pollux_api::rest::{
    Attempt, Explained, JobShown, JobState, NodeShown, QueueShown, RoundShown, ServiceShown,
};
use pollux_api::{Names, explain};
use pollux_core::{CycleId, JobEdit, JobView, Outcome, Phase, StayReason};
use pollux_model::{Allocation, JobId, Placement, Timestamp};
use pollux_policy::{Decision, JobPlan, NodeState, Plan, Priority};

use super::book::{AttemptEntry, Book, Entry};
use super::clock::rfc3339;
use super::live::Live;

/// How much of a job is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// As in lists.
    Line,
    /// With its attempts and its file.
    All,
}

/// A job; none if it is not there.
pub fn job(live: &Live, id: JobId, detail: Detail) -> Option<JobShown> {
    let entry = live.book.job(id)?;
    let view = live.scheduler.job(id)?;
    let report = live.report(id);
    let placement = view.holds.placement();
    let gpu_type =
        view.holds.iter().next().and_then(|(node, _)| live.book.node(node)).map(|node| node.gpu_type.clone());
    let model = report.zip(gpu_type.as_deref()).and_then(|(report, gpu_type)| {
        let gpu_type = pollux_model::GpuType::new(gpu_type);
        let fit = report.fits.get(&gpu_type)?;
        let noise = report.noise.as_ref()?.acted;
        pollux_model::GoodputModel::new(fit.params.clone(), noise, report.limits_on(&gpu_type)).ok()
    });
    // Who does not tell its batch, as AdaptDL's client, chooses it by the same model.
    let likely = || model.as_ref().zip(placement).and_then(|(model, placement)| model.best_batch(placement));
    let plan = report.and_then(|report| report.plan).or_else(likely);
    let rates = model.as_ref().zip(placement).zip(plan).map(|((model, placement), plan)| {
        (model.throughput(placement, plan).samples_per_sec(), model.efficiency(plan).ratio())
    });
    let work = view.spec.work;
    let initial = report.map(|report| report.limits.initial().0 as f64);
    let progress = report.map(|report| report.progress);
    let is_all = detail == Detail::All;
    Some(JobShown {
        id: id.0,
        name: entry.name.clone(),
        owner: entry.owner.clone(),
        queue: view.spec.group.and_then(|group| live.book.queues().get(&group.0).cloned()),
        state: state(entry, view),
        priority: priority_word(view.spec.priority).to_owned(),
        gpus: placement.map_or(0, Placement::n_replicas),
        min_gpus: view.spec.min_gpus,
        max_gpus: view.spec.max_gpus,
        gpu_type,
        nodes: by_name(&live.book, view.holds),
        is_rigid: view.report.is_none() && !view.spec.adapts,
        is_emulated: live.facts.is_emulated,
        batch: plan.map(|plan| plan.global().0),
        micro_batch: plan.map(pollux_model::BatchPlan::atomic_batch),
        accumulation: plan.map(pollux_model::BatchPlan::accum_steps),
        lr_factor: report.map(|report| report.learning_rate_factor),
        throughput: rates.map(|(throughput, _)| throughput),
        efficiency: rates.map(|(_, efficiency)| efficiency),
        goodput: rates.map(|(throughput, efficiency)| throughput * efficiency),
        noise_scale: report.and_then(|report| report.noise.as_ref()).map(|noise| noise.acted.samples()),
        progress,
        progress_ratio: work.zip(initial).zip(progress).map(|((work, initial), done)| done * initial / work),
        restarts: view.restarts,
        failures: view.failures,
        submitted: rfc3339(view.submitted),
        started: entry.attempts.first().map(|attempt| moment(attempt.started_us)),
        ended: entry.ended_us.map(moment),
        reported: entry.reported_us.map(moment),
        reason: reason(live, id, entry, view),
        etag: etag(entry),
        attempts: if is_all {
            entry.attempts.iter().map(|one| attempt(&live.book, one)).collect()
        } else {
            Vec::new()
        },
        file: is_all.then(|| entry.file.clone()),
    })
}

/// What changes when a job is edited.
pub fn etag(entry: &Entry) -> String {
    format!("\"{}\"", entry.edits)
}

/// Where a job is in its life, in the API's words.
pub fn state(entry: &Entry, view: JobView<'_>) -> JobState {
    match view.phase {
        Phase::Waiting if entry.paused => JobState::Paused,
        Phase::Waiting => JobState::Pending,
        Phase::Starting => JobState::Starting,
        Phase::Running => JobState::Running,
        Phase::Stopping => JobState::Stopping,
        Phase::Ended(Outcome::Finished) => JobState::Finished,
        Phase::Ended(Outcome::Failed) => JobState::Failed,
        Phase::Ended(Outcome::Cancelled) => JobState::Cancelled,
    }
}

fn reason(live: &Live, id: JobId, entry: &Entry, view: JobView<'_>) -> String {
    let last = entry.attempts.last();
    match state(entry, view) {
        JobState::Paused => "paused by its user".to_owned(),
        JobState::Finished => "done".to_owned(),
        JobState::Cancelled => "cancelled".to_owned(),
        JobState::Failed => last.and_then(|last| last.how.clone()).unwrap_or_else(|| "failed".to_owned()),
        _ => explained(live, id)
            .text
            .into_iter()
            .next()
            .unwrap_or_else(|| "waits for the next round".to_owned()),
    }
}

/// Why a job holds what it holds.
pub fn explained(live: &Live, id: JobId) -> Explained {
    let Some(view) = live.scheduler.job(id) else { return Explained::nothing(&live.book.names().job(id)) };
    let nothing = Allocation::none();
    let decided = view.explanation.map_or(&nothing, |explanation| &explanation.allocation);
    let names = live.book.names_about(id, decided);
    let mut told = Explained::nothing(&names.job(id));
    if let Some(explanation) = view.explanation {
        let plan = JobPlan {
            job: id,
            decision: explanation.decision,
            allocation: explanation.allocation.clone(),
            reason: explanation.reason.clone(),
        };
        told.round = Some(explanation.cycle.0);
        told.at = Some(rfc3339(explanation.at));
        told.decision = Some(decision_word(plan.decision).to_owned());
        told.gpus = plan.allocation.placement().map_or(0, Placement::n_replicas);
        told.speedup = plan.reason.speedup;
        told.text.push(explain::sentence(&plan, &names));
    }
    if view.report.is_none() && !view.spec.adapts && !view.holds.is_empty() {
        told.text.push(format!(
            "{} has never reported, so a restart could destroy it: it stays where it is until it ends.",
            names.job(id)
        ));
    }
    if let Some(stay) = view.stay {
        let why = match stay.why {
            StayReason::MinRuntime => "its minimum run time is not over",
            StayReason::ResizeBudget => "it was moved as often within an hour as its user allows",
        };
        told.text.push(format!("It is left where it is until {}: {why}.", rfc3339(stay.until)));
    }
    if view.failures > 0 {
        told.text.push(format!("It has died {} times since it last made progress.", view.failures));
    }
    told
}

/// A round, from its plan.
pub fn round(names: &Names, at: Timestamp, cycle: CycleId, seed: u64, plan: &Plan) -> RoundShown {
    let changed = plan.jobs.iter().filter(|job| job.decision != Decision::Keep);
    RoundShown {
        round: cycle.0,
        at: rfc3339(at),
        seed,
        value: plan.certificate.map(|certificate| certificate.value),
        bound: plan.certificate.map(|certificate| certificate.bound),
        gap: plan.certificate.map(|certificate| certificate.gap()),
        jobs: u32::try_from(plan.jobs.len()).unwrap_or(u32::MAX),
        changes: changed.map(|job| explain::sentence(job, names)).collect(),
    }
}

/// All nodes.
pub fn nodes(live: &Live) -> Vec<NodeShown> {
    let mut jobs: BTreeMap<u32, BTreeMap<String, u32>> = BTreeMap::new();
    for (id, view) in live.scheduler.active() {
        let name = live.book.job(id).map_or_else(String::new, |entry| entry.name.clone());
        for (node, share) in view.holds.iter() {
            jobs.entry(node.0).or_default().insert(name.clone(), share.n_replicas());
        }
    }
    let shown = live.book.nodes().map(|(id, node)| NodeShown {
        name: node.name.clone(),
        gpu_type: node.gpu_type.clone(),
        gpus: node.gpus,
        held: live.scheduler.held_on(id).unwrap_or(0),
        unhealthy: u32::try_from(node.out.len()).unwrap_or(u32::MAX),
        state: node.state.clone(),
        jobs: jobs.remove(&id.0).unwrap_or_default(),
        is_emulated: live.facts.is_emulated,
        devices: live.devices_of(&node.name, &node.out),
    });
    shown.collect()
}

/// All queues.
pub fn queues(live: &Live) -> Vec<QueueShown> {
    let by_type = |gpus: &BTreeMap<pollux_model::GpuType, u32>| {
        gpus.iter().map(|(gpu_type, gpus)| (gpu_type.name().to_owned(), *gpus)).collect()
    };
    let shown = live.scheduler.groups().iter().map(|group| {
        let of = |view: &JobView<'_>| view.spec.group == Some(group.id);
        let jobs = || live.scheduler.active().filter(|(_, view)| of(view));
        QueueShown {
            name: live.book.queues().get(&group.id.0).cloned().unwrap_or_default(),
            parent: group.parent.and_then(|parent| live.book.queues().get(&parent.0).cloned()),
            entitled: by_type(&group.entitled),
            caps: by_type(&group.caps),
            held: jobs().filter_map(|(_, view)| view.holds.placement()).map(Placement::n_replicas).sum(),
            jobs: u32::try_from(jobs().count()).unwrap_or(u32::MAX),
        }
    });
    shown.collect()
}

/// The service itself.
pub fn service(live: &Live) -> ServiceShown {
    let mut jobs = BTreeMap::new();
    for (id, entry) in live.book.jobs() {
        if let Some(view) = live.scheduler.job(id) {
            *jobs.entry(state(entry, view).word().to_owned()).or_insert(0) += 1;
        }
    }
    let nodes = nodes(live);
    ServiceShown {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        api: pollux_api::rest::VERSION,
        policy: live.policy.clone(),
        is_emulated: live.facts.is_emulated,
        cluster: live.facts.cluster.clone(),
        gpus: nodes.iter().map(|node| node.gpus).sum(),
        held: nodes.iter().map(|node| node.held).sum(),
        jobs,
        rounds: live.scheduler.latest_round().0,
        up_since: rfc3339(live.facts.up_since),
        warnings: live.facts.warnings.clone(),
    }
}

fn attempt(book: &Book, entry: &AttemptEntry) -> Attempt {
    let name = |id: u32| {
        book.node(pollux_model::NodeId(id)).map_or_else(|| format!("node-{id}"), |node| node.name.clone())
    };
    Attempt {
        attempt: entry.attempt,
        nodes: entry.nodes.iter().map(|(id, gpus)| (name(*id), *gpus)).collect(),
        started: moment(entry.started_us),
        training: entry.training_us.map(moment),
        asked: entry.asked_us.map(moment),
        ended: entry.ended_us.map(moment),
        how: entry.how.clone(),
    }
}

/// GPUs by the names of their nodes.
pub fn by_name(book: &Book, allocation: &Allocation) -> BTreeMap<String, u32> {
    let name = |id| book.node(id).map_or_else(|| "gone".to_owned(), |node| node.name.clone());
    allocation.iter().map(|(id, share)| (name(id), share.n_replicas())).collect()
}

/// The same on one line: `node-0=4 node-1=2`.
pub fn places(book: &Book, allocation: &Allocation) -> String {
    let places = by_name(book, allocation);
    places.iter().map(|(node, gpus)| format!("{node}={gpus}")).collect::<Vec<_>>().join(" ")
}

/// What is changed about a job, on one line.
pub fn edit(edit: &JobEdit) -> String {
    let mut parts = Vec::new();
    parts.extend(edit.priority.map(|priority| format!("priority {}", priority_word(priority))));
    parts.extend(edit.weight.map(|weight| format!("weight {weight}")));
    parts.extend(edit.min_gpus.map(|gpus| format!("at least {gpus} GPUs")));
    parts.extend(edit.max_gpus.map(|gpus| {
        gpus.map_or_else(|| "no limit of GPUs".to_owned(), |gpus| format!("at most {gpus} GPUs"))
    }));
    parts.join(", ")
}

/// A node's state in a word.
pub fn state_word(state: NodeState) -> &'static str {
    match state {
        NodeState::Ready => "ready",
        NodeState::Cordoned => "cordoned",
        NodeState::Draining => "draining",
    }
}

/// A priority in a word.
pub fn priority_word(priority: Priority) -> &'static str {
    match priority {
        Priority::Low => "low",
        Priority::Normal => "normal",
        Priority::High => "high",
    }
}

fn decision_word(decision: Decision) -> &'static str {
    match decision {
        Decision::Keep => "keep",
        Decision::Place => "place",
        Decision::Wait => "wait",
        Decision::Reject => "reject",
    }
}

fn moment(micros: u64) -> String {
    rfc3339(Timestamp::from_micros(micros))
}
