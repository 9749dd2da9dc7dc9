//! The state as the store has it.

use pollux_api::journal::{self, JournalEffect};
use pollux_core::{Config, Effect, Input, Phase, Scheduler};
use pollux_model::{JobId, Timestamp};
use serde::{Deserialize, Serialize};

use super::book::Book;
use super::clock::Clock;
use super::live::{Facts, Live, job_of};
use super::note::Note;
use super::replay::Replayed;
use crate::store::{Loaded, Row, Store, StoreError};

/// A snapshot's text.
#[derive(Serialize, Deserialize)]
struct Saved {
    config: String,
    scheduler: String,
    book: Book,
}

/// A state that was read.
pub(super) struct Resumed {
    pub(super) scheduler: Scheduler,
    pub(super) book: Book,
    pub(super) seq: u64,
    /// When the latest row was written.
    pub(super) latest: Timestamp,
    /// Rows whose effects differ from what this program does: how many, and the first.
    pub(super) differing: Option<(u64, u64)>,
}

/// Reads the newest snapshot and what was journalled after it.
pub(super) fn resume(store: &Store) -> Result<Resumed, StoreError> {
    read(store, store.load()?)
}

fn read(store: &Store, loaded: Loaded) -> Result<Resumed, StoreError> {
    let damaged = |what: &str, seq: u64, why: &dyn std::fmt::Display| StoreError::Corrupt {
        path: store.path().to_owned(),
        detail: format!("{what} {seq}: {why}"),
    };
    let mut state = match loaded.snapshot {
        None => Resumed::nothing(),
        Some(snapshot) => {
            let seq = snapshot.seq;
            let saved: Saved =
                serde_json::from_str(&snapshot.state).map_err(|error| damaged("snapshot", seq, &error))?;
            let state = journal::state_from_json(&saved.scheduler)
                .map_err(|error| damaged("snapshot", seq, &error))?;
            let latest = state.now;
            let config =
                journal::config_from_json(&saved.config).map_err(|error| damaged("snapshot", seq, &error))?;
            let scheduler =
                Scheduler::restore(config, state).map_err(|error| damaged("snapshot", seq, &error))?;
            Resumed { scheduler, book: saved.book, seq, latest, differing: None }
        }
    };
    for row in loaded.rows {
        state.take(&row).map_err(|why| damaged("row", row.seq, &why))?;
    }
    Ok(state)
}

/// The state before the oldest row that is kept: that of a snapshot, or nothing.
pub(super) fn resume_before(store: &Store) -> Result<(Resumed, Replayed), StoreError> {
    let oldest = store.rows(0, 1)?.first().map_or(1, |row| row.seq);
    if oldest <= 1 {
        return Ok((Resumed::nothing(), Replayed::default()));
    }
    let after = store.snapshots()?.into_iter().filter(|seq| *seq + 1 >= oldest).min();
    let after = after.ok_or(StoreError::NoSnapshot(oldest - 1))?;
    let mut loaded = store.load_at(after)?;
    loaded.rows.clear();
    Ok((read(store, loaded)?, Replayed { after, ..Replayed::default() }))
}

impl Resumed {
    /// Before anything happened.
    pub(super) fn nothing() -> Self {
        let (scheduler, book) = (Scheduler::new(Config::default()), Book::default());
        Self { scheduler, book, seq: 0, latest: Timestamp::ZERO, differing: None }
    }

    /// Takes in a row, and says what it leads to.
    pub(super) fn take(&mut self, row: &Row) -> Result<Vec<Effect>, String> {
        let at = Timestamp::from_micros(row.at);
        let input = journal::input_from_json(&row.input).map_err(|error| error.to_string())?;
        let note: Note = serde_json::from_str(&row.note).map_err(|error| error.to_string())?;
        let recorded = journal::effects_from_json(&row.effects).map_err(|error| error.to_string())?;
        if let Note::Began { config, .. } = &note {
            self.scheduler.reconfigure(journal::config_from_json(config).map_err(|error| error.to_string())?);
        }
        // What was taken in then is taken in now, unless the program has changed.
        let effects = self.scheduler.handle(at, input.clone()).map_err(|error| error.to_string())?;
        if effects.iter().map(JournalEffect::from).ne(recorded) {
            let (n_rows, first) = self.differing.unwrap_or((0, row.seq));
            self.differing = Some((n_rows + 1, first));
        }
        self.book.apply(at, &input, &note, &effects);
        self.note_end(at, &input);
        (self.seq, self.latest) = (row.seq, at);
        Ok(effects)
    }

    fn note_end(&mut self, at: Timestamp, input: &Input) {
        if let Some(job) = job_of(input)
            && let Some(view) = self.scheduler.job(job)
            && matches!(view.phase, Phase::Ended(_))
        {
            self.book.end(job, at);
        }
    }

    pub(super) fn live(self, policy: String, facts: Facts) -> Live {
        let (clock, behind) = Clock::starting(self.latest);
        let mut facts = facts;
        let mut book = self.book;
        facts.up_since = clock.now();
        // A new job must not find the checkpoint of another in its folder.
        let lost = JobId(facts.latest_folder);
        if book.next_job() <= lost {
            facts.warnings.push(format!(
                "the journal ends before job {}, which left files here: its last part is missing (pollux.db-wal, or an older backup \
                 was restored); jobs from {} to {} are not known",
                lost.0,
                book.next_job().0,
                lost.0
            ));
            book.pass_over(lost);
        }
        if let Some(behind) = behind {
            facts.warnings.push(format!(
                "the machine's clock is {} s behind the journal; time goes on from where the journal ends",
                behind.as_secs()
            ));
        }
        if let Some((n_rows, first)) = self.differing {
            facts.warnings.push(format!(
                "{n_rows} decisions of the journal, from row {first} on, were made otherwise than this version would"
            ));
        }
        Live::resumed(self.scheduler, book, self.seq, policy, clock, facts)
    }
}

impl Live {
    /// The state as a snapshot's text.
    pub(super) fn saved(&self) -> String {
        let scheduler = journal::state_to_json(&self.scheduler.state());
        let config = journal::config_to_json(self.scheduler.config());
        serde_json::to_string(&Saved { config, scheduler, book: self.book.clone() }).unwrap_or_default()
    }

    /// Goes back to what the store has.
    pub(super) fn reload(&mut self, store: &Store) -> Result<(), StoreError> {
        let config = *self.scheduler.config();
        let (policy, facts) = (self.policy.clone(), self.facts.clone());
        let devices = std::mem::take(&mut self.devices);
        *self = resume(store)?.live(policy, facts);
        self.devices = devices;
        // Plans that are on their way are of a state that is not.
        self.begin(config);
        Ok(())
    }

    /// Says that a service began, and how it goes about its rounds.
    pub(super) fn begin(&mut self, config: Config) {
        self.scheduler.reconfigure(config);
        let note = Note::Began { config: journal::config_to_json(&config), policy: self.policy.clone() };
        // Never refused.
        let _ = self.tell(Input::ShellRestarted, note);
    }
}
