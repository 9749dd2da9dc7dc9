//! The state of the service: the scheduler, the book of jobs, and what is yet to be written and done.

use std::collections::{BTreeMap, BTreeSet};

use pollux_api::journal::{effects_to_json, input_to_json};
use pollux_core::{Effect, Generation, Input, Outcome, Phase, Refused, Scheduler};
use pollux_model::{AgentReport, JobId, Timestamp};

use super::book::Book;
use super::clock::Clock;
use super::events::{self, Event};
use super::health::Devices;
use super::note::Note;
use super::show;

/// Reports older than this are journalled with whatever happens next; younger ones wait for the round.
const REPORTS_WAIT: std::time::Duration = std::time::Duration::from_secs(1);

/// Everything that decides, on one thread.
pub struct Live {
    pub(crate) scheduler: Scheduler,
    pub(crate) book: Book,
    clock: Clock,
    /// The latest row.
    seq: u64,
    /// What the next commit writes.
    pub(super) draft: Draft,
    /// What is to be done once that is written.
    pub(super) asked: Vec<Effect>,
    /// GPUs that the engine is to leave alone, or may use again, once that is written.
    pub(super) slots: Vec<(String, u32, bool)>,
    pub(super) devices: Devices,
    /// Wishes to be woken.
    wakes: BTreeSet<Timestamp>,
    /// Reports that are not journalled yet.
    reports: BTreeMap<JobId, AgentReport>,
    flushed: Timestamp,
    /// Starts that are to save their state as soon as they ask what to do.
    pub(super) to_save: BTreeSet<(JobId, Generation)>,
    /// Starts that are being ended because they did not begin to train in time.
    pub(super) overdue: BTreeSet<(JobId, Generation)>,
    pub(super) policy: String,
    /// Rounds that are being planned: the seed of each, and since when.
    seeds: BTreeMap<u64, (u64, Timestamp)>,
    pub(super) counted: Counted,
    pub(crate) facts: Facts,
}

/// What does not change while the service runs.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Whether the cluster is emulated.
    pub is_emulated: bool,
    /// Its shape.
    pub cluster: String,
    /// When this process began.
    pub up_since: Timestamp,
    /// What is wrong, and what to do.
    pub warnings: Vec<String>,
    /// How often agents may report.
    pub report_every_s: f64,
    /// The greatest number of a job that left a folder.
    pub latest_folder: u64,
    /// The folder of all runs.
    pub runs: std::path::PathBuf,
}

/// What a commit writes.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) rows: Vec<DraftRow>,
    pub(super) events: Vec<Event>,
    pub(super) rounds: Vec<pollux_api::rest::RoundShown>,
    pub(super) ended: Vec<pollux_api::rest::JobShown>,
}

/// A row of the journal, as text.
#[derive(Debug)]
pub(super) struct DraftRow {
    pub(super) seq: u64,
    pub(super) at: u64,
    pub(super) input: String,
    pub(super) note: String,
    pub(super) effects: String,
}

/// What is counted while the service runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    pub(super) rounds: u64,
    pub(super) round_secs: f64,
    pub(super) ended: BTreeMap<&'static str, u64>,
}

impl Draft {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many things it has, of all kinds: grows with whatever happens.
    pub(super) fn len(&self) -> usize {
        self.rows.len() + self.events.len() + self.rounds.len() + self.ended.len()
    }
}

impl Live {
    /// As a journal left it.
    pub(super) fn resumed(
        scheduler: Scheduler,
        book: Book,
        seq: u64,
        policy: String,
        clock: Clock,
        facts: Facts,
    ) -> Self {
        Self {
            scheduler,
            book,
            clock,
            seq,
            draft: Draft::default(),
            asked: Vec::new(),
            slots: Vec::new(),
            devices: Devices::default(),
            wakes: BTreeSet::new(),
            reports: BTreeMap::new(),
            flushed: Timestamp::ZERO,
            to_save: BTreeSet::new(),
            overdue: BTreeSet::new(),
            policy,
            seeds: BTreeMap::new(),
            counted: Counted::default(),
            facts,
        }
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The latest row of the journal.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Tells the scheduler what happened, with a row for the journal. What is refused changed nothing.
    #[expect(clippy::needless_pass_by_value, reason = "made where it is told, and of no use afterwards")]
    pub fn tell(&mut self, input: Input, note: Note) -> Result<(), Refused> {
        let now = self.now();
        let may_plan =
            !matches!(input, Input::JobReported(..) | Input::JobTraining(..) | Input::PlanReady(..));
        if matches!(input, Input::Tick) || may_plan && now - self.flushed >= REPORTS_WAIT {
            self.flush_reports();
        }
        self.tell_at(now, &input, &note)
    }

    fn tell_at(&mut self, now: Timestamp, input: &Input, note: &Note) -> Result<(), Refused> {
        let before = job_of(input).map(|job| (job, self.phase(job)));
        let effects = self.scheduler.handle(now, input.clone())?;
        self.seq += 1;
        self.book.apply(now, input, note, &effects);
        self.draft.events.extend(events::told(self, now, input, note, &effects));
        if let Input::PlanReady(cycle, plan) = input {
            let (seed, asked) = self.seeds.remove(&cycle.0).unwrap_or((0, now));
            self.counted.rounds += 1;
            self.counted.round_secs += (now - asked).as_secs_f64();
            self.draft.rounds.push(show::round(&self.book.names(), now, *cycle, seed, plan));
        }
        for effect in &effects {
            match effect {
                Effect::WakeAt(at) => {
                    self.wakes.insert(*at);
                }
                Effect::Solve { cycle, seed, .. } => {
                    self.seeds.insert(cycle.0, (seed.0, now));
                }
                _ => {}
            }
        }
        if let Some((job, was)) = before
            && let Some(Phase::Ended(outcome)) = self.phase(job)
            && !matches!(was, Some(Phase::Ended(_)))
        {
            self.ended(now, job, outcome);
        }
        self.draft.rows.push(DraftRow {
            seq: self.seq,
            at: now.as_micros(),
            input: input_to_json(input),
            note: serde_json::to_string(note).unwrap_or_default(),
            effects: effects_to_json(&effects),
        });
        self.asked.extend(effects);
        Ok(())
    }

    /// Keeps what a job's agent says until the next round. The first word of a job is journalled at once: it makes it movable.
    pub fn hear(&mut self, job: JobId, report: AgentReport) -> Result<(), Refused> {
        let view = self.scheduler.job(job).ok_or(Refused::UnknownJob(job))?;
        if matches!(view.phase, Phase::Ended(_)) {
            return Err(Refused::Ended(job));
        }
        if view.report.is_none() {
            return self.tell(Input::JobReported(job, report), Note::Nothing);
        }
        self.reports.insert(job, report);
        Ok(())
    }

    /// What a job said last, journalled or not.
    pub(crate) fn report(&self, job: JobId) -> Option<&AgentReport> {
        self.reports.get(&job).or_else(|| self.scheduler.job(job)?.report)
    }

    fn flush_reports(&mut self) {
        self.flushed = self.now();
        for (job, report) in std::mem::take(&mut self.reports) {
            // A job that has ended meanwhile has nothing more to say.
            let _ = self.tell_at(self.flushed, &Input::JobReported(job, report), &Note::Nothing);
        }
    }

    /// Wakes the scheduler if it is time. Says when the next time is.
    pub(super) fn wake(&mut self) -> Option<Timestamp> {
        let now = self.now();
        if self.wakes.first().is_some_and(|at| *at <= now) {
            self.wakes.retain(|at| *at > now);
            // A tick is never refused.
            let _ = self.tell(Input::Tick, Note::Nothing);
        }
        self.wakes.first().copied()
    }

    fn ended(&mut self, now: Timestamp, job: JobId, outcome: Outcome) {
        self.reports.remove(&job);
        self.book.end(job, now);
        let word = match outcome {
            Outcome::Finished => "finished",
            Outcome::Failed => "failed",
            Outcome::Cancelled => "cancelled",
        };
        *self.counted.ended.entry(word).or_default() += 1;
        self.draft.events.push(events::ended(self, now, job, outcome));
        if let Some(shown) = show::job(self, job, show::Detail::All) {
            self.draft.ended.push(shown);
        }
    }

    pub(super) fn phase(&self, job: JobId) -> Option<Phase> {
        self.scheduler.job(job).map(|view| view.phase)
    }
}

/// The job an input is about.
pub(super) fn job_of(input: &Input) -> Option<JobId> {
    match input {
        Input::JobSubmitted(job, _)
        | Input::JobEdited(job, _)
        | Input::JobCancelled(job)
        | Input::JobReported(job, _)
        | Input::JobTraining(job, _)
        | Input::JobStopped(job, _)
        | Input::JobFinished(job, _)
        | Input::JobFailed(job, _)
        | Input::JobGivenUp(job, _) => Some(*job),
        _ => None,
    }
}
