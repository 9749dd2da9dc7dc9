//! Small questions about the state.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use pollux_api::job_file::JobFile;
use pollux_core::{Generation, Phase};
use pollux_model::{GpuType, JobId, NodeId, Placement, Timestamp};

use super::events::Event;
use super::live::Live;
use super::show;

/// Figures for metrics.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Plans made.
    pub rounds: u64,
    /// Time they took, in seconds.
    pub round_secs: f64,
    /// Mean speed-up of the latest.
    pub value: Option<f64>,
    /// How far it may be from the best.
    pub gap: Option<f64>,
    /// Rows of the journal.
    pub rows: u64,
    /// Jobs that ended since the service began, by outcome.
    pub ended: BTreeMap<&'static str, u64>,
}

impl Live {
    /// All jobs that are remembered, the oldest first.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.book.jobs().map(|(id, _)| id)
    }

    /// Jobs that have not ended.
    pub fn active(&self) -> impl Iterator<Item = JobId> {
        self.scheduler.active().map(|(id, _)| id)
    }

    /// A job by name or number.
    pub fn find(&self, job: &str) -> Option<JobId> {
        self.book.find(job)
    }

    /// Names of all jobs.
    pub fn names(&self) -> Vec<String> {
        self.book.jobs().map(|(_, entry)| entry.name.clone()).collect()
    }

    /// Names of all jobs by number.
    pub fn all_names(&self) -> BTreeMap<u64, String> {
        self.book.jobs().map(|(id, entry)| (id.0, entry.name.clone())).collect()
    }

    /// Who submitted a job.
    pub fn owner(&self, job: JobId) -> Option<String> {
        self.book.job(job).map(|entry| entry.owner.clone())
    }

    /// What changes when a job is edited.
    pub fn etag(&self, job: JobId) -> Option<String> {
        self.book.job(job).map(show::etag)
    }

    /// Where a job is in its life, and which start it is at.
    pub fn now_of(&self, job: JobId) -> Option<(Phase, Generation)> {
        self.scheduler.job(job).map(|view| (view.phase, view.generation))
    }

    /// Has a job told to save its state when it next asks what to do. Says why not.
    pub fn ask_checkpoint(&mut self, job: JobId, actor: &str) -> Result<(), String> {
        let view =
            self.scheduler.job(job).filter(|view| view.phase == Phase::Running && view.report.is_some());
        let Some(view) = view else {
            return Err("only a job that runs and reports can be asked to save its state".to_owned());
        };
        self.to_save.insert((job, view.generation));
        let name = self.book.job(job).map_or_else(String::new, |entry| entry.name.clone());
        let text = format!("{name} is asked to save its state");
        let (at, actor) = (self.now(), actor.to_owned());
        self.note(Event { at, actor, job: Some((job, name)), kind: "checkpoint", text });
        Ok(())
    }

    /// Whether a start is to save its state; said once.
    pub fn take_checkpoint(&mut self, job: JobId, attempt: u32) -> bool {
        self.to_save.remove(&(job, Generation(attempt)))
    }

    /// Names of queues by number.
    pub fn queues(&self) -> &BTreeMap<u32, String> {
        self.book.queues()
    }

    /// A node by name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.book.nodes().find(|(_, node)| node.name == name).map(|(id, _)| id)
    }

    /// Whether the cluster is emulated.
    pub fn is_emulated(&self) -> bool {
        self.facts.is_emulated
    }

    /// How often agents may report, in seconds.
    pub fn report_every_s(&self) -> f64 {
        self.facts.report_every_s
    }

    /// Time between asking a job to leave and ending it.
    pub fn grace(&self, job: JobId) -> Duration {
        self.file(job).map_or(Duration::from_secs(30), |file| file.checkpoint.grace)
    }

    pub(super) fn file(&self, job: JobId) -> Option<JobFile> {
        self.book.job(job).and_then(|entry| JobFile::from_json(&entry.file).ok())
    }

    /// The type of the GPUs a job holds.
    pub fn gpu_type(&self, job: JobId) -> GpuType {
        let held = self.scheduler.job(job).and_then(|view| view.holds.iter().next());
        let node = held.and_then(|(node, _)| self.book.node(node));
        node.map_or_else(GpuType::default, |node| GpuType::new(&node.gpu_type))
    }

    /// Replicas of a job's start, if it is the present one.
    pub fn replicas(&self, job: JobId, attempt: u32) -> Option<u32> {
        let view = self.scheduler.job(job).filter(|view| view.generation.0 == attempt)?;
        view.holds.placement().map(Placement::n_replicas)
    }

    /// The number of a job's latest start.
    pub fn latest_attempt(&self, job: JobId) -> Option<u32> {
        self.book.job(job)?.attempts.last().map(|attempt| attempt.attempt)
    }

    /// Where the files of a start are.
    pub fn run_folder(&self, job: JobId, attempt: u32) -> PathBuf {
        self.facts.runs.join(format!("{}.{attempt}", job.0))
    }

    /// Whether a start has ended.
    pub fn is_over(&self, job: JobId, attempt: u32) -> bool {
        let entry = self.book.job(job);
        let attempt = entry.and_then(|entry| entry.attempts.iter().rev().find(|one| one.attempt == attempt));
        attempt.is_none_or(|attempt| attempt.ended_us.is_some())
    }

    /// Figures for metrics.
    pub fn counts(&self) -> Counts {
        let certificate = self.scheduler.certificate();
        Counts {
            rounds: self.counted.rounds,
            round_secs: self.counted.round_secs,
            value: certificate.map(|certificate| certificate.value),
            gap: certificate.map(pollux_policy::Certificate::gap),
            rows: self.seq(),
            ended: self.counted.ended.clone(),
        }
    }

    /// Adds a line to the log of events.
    pub(super) fn note(&mut self, event: Event) {
        self.draft.events.push(event);
    }

    /// Starts that made no step within their deadline, and are not being ended for it yet.
    pub(super) fn overdue_now(&self) -> Vec<(JobId, Generation)> {
        let now = self.now();
        let starting = self.scheduler.active().filter(|(_, view)| view.phase == Phase::Starting);
        let late = starting.filter(|(id, view)| {
            let began =
                self.book.job(*id).and_then(|entry| entry.attempts.last()).map(|attempt| attempt.started_us);
            let deadline = self.file(*id).map(|file| file.restart.start_deadline);
            let is_late = began
                .zip(deadline)
                .is_some_and(|(began, deadline)| Timestamp::from_micros(began) + deadline < now);
            is_late && !self.overdue.contains(&(*id, view.generation))
        });
        late.map(|(id, view)| (id, view.generation)).collect()
    }
}
