//! The tables, and the steps that made them.

use std::path::Path;

use rusqlite::Connection;

use super::{StoreError, unsigned};

/// Each step takes a store from the version before to its own, counted from 1. A step that was released is never changed.
pub(super) const STEPS: [&str; 3] = [
    "
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE journal (
        seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, input TEXT NOT NULL, note TEXT NOT NULL, effects TEXT NOT NULL
    ) STRICT;
    CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, state TEXT NOT NULL) STRICT;
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, actor TEXT NOT NULL, job INTEGER,
        kind TEXT NOT NULL, text TEXT NOT NULL
    ) STRICT;
    CREATE TABLE rounds (
        cycle INTEGER PRIMARY KEY, at INTEGER NOT NULL, seed INTEGER NOT NULL, value REAL, bound REAL,
        moved INTEGER NOT NULL, plan TEXT NOT NULL
    ) STRICT;
    CREATE TABLE jobs (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL, owner TEXT NOT NULL, submitted INTEGER NOT NULL,
        ended INTEGER NOT NULL, outcome TEXT NOT NULL, detail TEXT NOT NULL
    ) STRICT;
    CREATE TABLE tokens (
        hash BLOB PRIMARY KEY, role TEXT NOT NULL, owner TEXT NOT NULL, job INTEGER, attempt INTEGER,
        made INTEGER NOT NULL, expires INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE submissions (key TEXT PRIMARY KEY, job INTEGER NOT NULL, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    ",
    "
    CREATE INDEX events_by_job ON events (job) WHERE job IS NOT NULL;
    CREATE INDEX events_by_time ON events (at);
    CREATE INDEX jobs_by_end ON jobs (ended);
    CREATE INDEX tokens_by_job ON tokens (job) WHERE job IS NOT NULL;
    CREATE INDEX submissions_by_time ON submissions (at);
    ",
    // The book of jobs remembers callers' names for their submissions.
    "DROP TABLE submissions;",
];

/// The version this build writes.
pub(super) fn latest() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

/// Checks the file and brings it up to date; says which row is the latest.
pub(super) fn prepare(connection: &Connection, path: &Path) -> Result<u64, StoreError> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = latest();
    if found > known {
        return Err(StoreError::Newer { path: path.to_owned(), found, known });
    }
    check(connection)?;
    migrate(connection, found)?;
    let last: i64 = connection.query_row(
        "SELECT max(ifnull((SELECT max(seq) FROM journal), 0), ifnull((SELECT max(seq) FROM snapshots), 0))",
        [],
        |row| row.get(0),
    )?;
    Ok(unsigned(last))
}

/// Looks for damage.
pub(super) fn check(connection: &Connection) -> Result<(), StoreError> {
    let said: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if said == "ok" {
        return Ok(());
    }
    let detail = said.lines().collect::<Vec<_>>().join(" ");
    Err(StoreError::Corrupt { path: std::path::PathBuf::new(), detail })
}

/// All missing steps at once: a crash leaves the old version or the new one.
fn migrate(connection: &Connection, found: i64) -> Result<(), StoreError> {
    let done = usize::try_from(found).unwrap_or(0);
    if done == STEPS.len() {
        return Ok(());
    }
    let transaction = connection.unchecked_transaction()?;
    for step in &STEPS[done..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", latest())?;
    transaction.commit()?;
    Ok(())
}
