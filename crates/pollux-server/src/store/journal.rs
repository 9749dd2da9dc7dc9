//! Rows of the journal, and snapshots of what they led to.

use rusqlite::{Connection, OptionalExtension, params};

use super::{Store, StoreError, Writer, signed, unsigned};

/// Snapshots that are kept: should the latest turn out to be of no use, there are others.
pub(super) const SNAPSHOTS: u32 = 3;

/// A row to be appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewRow<'a> {
    /// Its number: one more than the latest.
    pub seq: u64,
    /// When, in microseconds.
    pub at: u64,
    /// What happened.
    pub input: &'a str,
    /// What the service says of it.
    pub note: &'a str,
    /// What came of it.
    pub effects: &'a str,
}

/// A row of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its number.
    pub seq: u64,
    /// When, in microseconds.
    pub at: u64,
    /// What happened.
    pub input: String,
    /// What the service says of it.
    pub note: String,
    /// What came of it.
    pub effects: String,
}

/// All that was remembered after a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The row.
    pub seq: u64,
    /// The state.
    pub state: String,
}

/// What a service begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// A snapshot, if there is any.
    pub snapshot: Option<Snapshot>,
    /// All rows after it, without a gap.
    pub rows: Vec<Row>,
}

impl Writer<'_> {
    /// Appends rows.
    ///
    /// # Errors
    ///
    /// Rows that do not follow the latest without a gap.
    pub fn append(&mut self, rows: &[NewRow<'_>]) -> Result<(), StoreError> {
        let mut insert =
            self.transaction.prepare_cached("INSERT INTO journal VALUES (?1, ?2, ?3, ?4, ?5)")?;
        for &NewRow { seq, at, input, note, effects } in rows {
            if Some(seq) != self.last.checked_add(1) {
                return Err(StoreError::Gap { last: self.last, found: seq });
            }
            insert.execute(params![signed(seq), signed(at), input, note, effects])?;
            self.last = seq;
        }
        Ok(())
    }

    /// Keeps all that is remembered after row `seq`.
    ///
    /// # Errors
    ///
    /// A row that is not there.
    pub fn snapshot(&mut self, seq: u64, state: &str) -> Result<(), StoreError> {
        if seq > self.last {
            return Err(StoreError::Ahead { seq, last: self.last });
        }
        self.transaction
            .execute("INSERT OR REPLACE INTO snapshots VALUES (?1, ?2)", params![signed(seq), state])?;
        self.transaction.execute(
            "DELETE FROM snapshots WHERE seq NOT IN (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT ?1)",
            [SNAPSHOTS],
        )?;
        Ok(())
    }
}

impl Store {
    /// The latest snapshot, and the rows after it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] if a row is missing.
    pub fn load(&self) -> Result<Loaded, StoreError> {
        self.read(|connection| {
            let snapshot = snapshots(connection)?.last().map(|seq| snapshot(connection, *seq)).transpose()?;
            loaded(connection, snapshot.flatten())
        })
    }

    /// An older snapshot, and the rows after it: for when the latest is of no use.
    ///
    /// # Errors
    ///
    /// A snapshot that is not there, and those of [`Store::load`].
    pub fn load_at(&self, seq: u64) -> Result<Loaded, StoreError> {
        self.read(|connection| {
            let snapshot = snapshot(connection, seq)?.ok_or(StoreError::NoSnapshot(seq))?;
            loaded(connection, Some(snapshot))
        })
    }

    /// The rows after which there are snapshots, the latest last.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn snapshots(&self) -> Result<Vec<u64>, StoreError> {
        self.read(snapshots)
    }

    /// At most `most` rows of the journal from number `first` on, whether or not a snapshot covers them.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn rows(&self, first: u64, most: u32) -> Result<Vec<Row>, StoreError> {
        self.read(|connection| rows(connection, first, i64::from(most)))
    }
}

fn snapshots(connection: &Connection) -> Result<Vec<u64>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT seq FROM snapshots ORDER BY seq")?;
    let seqs = statement.query_map([], |row| row.get(0).map(unsigned))?.collect::<Result<_, _>>()?;
    Ok(seqs)
}

fn snapshot(connection: &Connection, seq: u64) -> Result<Option<Snapshot>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT state FROM snapshots WHERE seq = ?1")?;
    let state = statement.query_row([signed(seq)], |row| row.get(0)).optional()?;
    Ok(state.map(|state| Snapshot { seq, state }))
}

fn rows(connection: &Connection, first: u64, most: i64) -> Result<Vec<Row>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT seq, at, input, note, effects FROM journal WHERE seq >= ?1 ORDER BY seq LIMIT ?2",
    )?;
    let rows = statement.query_map([signed(first), most], |row| {
        Ok(Row {
            seq: row.get(0).map(unsigned)?,
            at: row.get(1).map(unsigned)?,
            input: row.get(2)?,
            note: row.get(3)?,
            effects: row.get(4)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn loaded(connection: &Connection, snapshot: Option<Snapshot>) -> Result<Loaded, StoreError> {
    let first = snapshot.as_ref().map_or(0, |snapshot| snapshot.seq) + 1;
    // Negative: no limit.
    let rows = rows(connection, first, -1)?;
    let missing = (first..).zip(&rows).find(|(expected, row)| row.seq != *expected);
    match missing {
        Some((expected, _)) => {
            let detail = format!("row {expected} of the journal is missing");
            Err(StoreError::Corrupt { path: std::path::PathBuf::new(), detail })
        }
        None => Ok(Loaded { snapshot, rows }),
    }
}
