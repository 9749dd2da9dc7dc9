//! Keeping the store small, and copies of it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Params};

use super::lock::Lock;
use super::{Store, StoreError, Writer, schema, signed};

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Rows of the journal, the latest. Those after the oldest snapshot stay in any case.
    pub rows: u64,
    /// Events, the latest.
    pub events: u64,
    /// Rounds, the latest.
    pub rounds: u64,
    /// Jobs that are over, the latest.
    pub jobs: u64,
    /// Events and ended jobs before this time go, in microseconds.
    pub since: u64,
    /// Tokens that ended before this time go, in microseconds.
    pub now: u64,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Rows of the journal.
    pub rows: usize,
    /// Events.
    pub events: usize,
    /// Rounds.
    pub rounds: usize,
    /// Jobs that are over.
    pub jobs: usize,
    /// Tokens.
    pub tokens: usize,
}

impl Store {
    /// Removes what need not be kept, and gives room back to the disk.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub fn compact(&mut self, keep: &Keep) -> Result<Compacted, StoreError> {
        let compacted = self.write(|writer| writer.compact(keep))?;
        self.read(|connection| {
            run_through(connection, "PRAGMA incremental_vacuum")?;
            run_through(connection, "PRAGMA wal_checkpoint(truncate)")
        })?;
        Ok(compacted)
    }

    /// Writes a copy of everything as it is now, to a file that is not there yet: half a copy is never seen under that
    /// name. The store goes on meanwhile for whoever reads it.
    ///
    /// # Errors
    ///
    /// A file that is there, or cannot be written; [`StoreError::Full`] if there is no room for it.
    pub fn backup(&self, to: &Path) -> Result<(), StoreError> {
        if to.exists() {
            return Err(StoreError::Exists { path: to.to_owned() });
        }
        let part = beside(to, ".part");
        let _ = fs::remove_file(&part);
        let text = part.to_str().ok_or_else(|| {
            StoreError::io(
                to,
                std::io::Error::new(std::io::ErrorKind::InvalidFilename, "not a name in UTF-8"),
            )
        })?;
        let copied = self.connection.execute("VACUUM INTO ?1", [text]);
        copied.map_err(|error| StoreError::from(error).of(&part))?;
        settle(&part, to)
    }

    /// Puts a backup in the place of the store, which nobody may have open. What was there is lost: keep it aside before.
    ///
    /// # Errors
    ///
    /// A store in use, and a backup that is damaged or of a later build; then the store stays as it was.
    pub fn restore(backup: &Path, to: &Path) -> Result<(), StoreError> {
        let _lock = Lock::take(to)?;
        let part = beside(to, ".part");
        fs::copy(backup, &part).map_err(|error| StoreError::io(backup, error))?;
        let check = || {
            let connection = Connection::open(&part)?;
            schema::prepare(&connection, backup).map(drop)
        };
        if let Err(error) = check().map_err(|error: StoreError| error.of(backup)) {
            let _ = fs::remove_file(&part);
            return Err(error);
        }
        // What was written ahead belongs to the old file, and would spoil the new one.
        for end in ["-wal", "-shm"] {
            let old = beside(to, end);
            match fs::remove_file(&old) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(StoreError::io(&old, error));
                }
                _ => {}
            }
        }
        settle(&part, to)
    }
}

impl Writer<'_> {
    fn compact(&mut self, keep: &Keep) -> Result<Compacted, StoreError> {
        let kept_from = self.last.saturating_sub(keep.rows);
        let of_events = "DELETE FROM events WHERE at < ?1
            OR seq NOT IN (SELECT seq FROM events ORDER BY seq DESC LIMIT ?2)";
        let of_jobs = "DELETE FROM jobs WHERE ended < ?1
            OR id NOT IN (SELECT id FROM jobs ORDER BY ended DESC, id DESC LIMIT ?2)";
        let of_rounds = "DELETE FROM rounds
            WHERE cycle NOT IN (SELECT cycle FROM rounds ORDER BY cycle DESC LIMIT ?1)";
        // Without a snapshot every row is needed.
        let of_rows = "DELETE FROM journal
            WHERE seq <= ?1 AND seq <= (SELECT min(seq) FROM snapshots)";
        let since = signed(keep.since);
        Ok(Compacted {
            rows: self.remove(of_rows, [signed(kept_from)])?,
            events: self.remove(of_events, [since, limit(keep.events)])?,
            rounds: self.remove(of_rounds, [limit(keep.rounds)])?,
            jobs: self.remove(of_jobs, [since, limit(keep.jobs)])?,
            tokens: self.remove("DELETE FROM tokens WHERE expires <= ?1", [signed(keep.now)])?,
        })
    }

    fn remove(&mut self, sql: &str, values: impl Params) -> Result<usize, StoreError> {
        Ok(self.transaction.execute(sql, values)?)
    }
}

/// A number of rows; a negative one would be none at all.
fn limit(most: u64) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

/// Runs what answers with rows that nobody needs.
fn run_through(connection: &Connection, sql: &str) -> Result<(), StoreError> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// A finished file gets its name, for good.
fn settle(part: &Path, to: &Path) -> Result<(), StoreError> {
    let renamed = File::open(part).and_then(|file| file.sync_all()).and_then(|()| fs::rename(part, to));
    renamed.map_err(|error| StoreError::io(to, error))?;
    // The name is on the disk once its folder is.
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| StoreError::io(to, error))
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}
