//! What outlives the service: one SQLite file with one writer.
//!
//! What was [appended](Store::append) is there after any crash, of the process or of the machine: transactions are
//! written ahead and synchronised before the call returns. The texts of rows, snapshots and plans are opaque here;
//! `pollux_api::journal` reads and writes them.

mod error;
mod journal;
mod lock;
mod records;
mod schema;
#[cfg(test)]
mod tests;
mod upkeep;

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use error::StoreError;
pub use journal::{Loaded, NewRow, Row, Snapshot};
use lock::Lock;
pub use records::{EndedJob, Event, NewEvent, Round, Token, TokenHash};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
pub use upkeep::{Compacted, Keep};

/// The store, open for this process alone.
///
/// ```
/// use pollux_server::store::{NewRow, Store};
///
/// let folder = std::env::temp_dir().join(format!("pollux-store-example-{}", std::process::id()));
/// std::fs::create_dir_all(&folder)?;
/// let mut store = Store::open(&folder.join("pollux.db"))?;
/// store.append(&[NewRow { seq: 1, at: 0, input: "\"tick\"", note: "null", effects: "[]" }])?;
/// assert_eq!(store.load()?.rows.len(), 1);
/// # drop(store);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    /// The number of the latest row.
    last: u64,
    _lock: Lock,
}

impl Store {
    /// Opens the file, or makes it. An older one is brought up to date, in one transaction.
    ///
    /// # Errors
    ///
    /// A file that another process has open, that a later build wrote, or that is damaged; each says what to do.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let lock = Lock::take(path)?;
        let at = |source| StoreError::Io { path: path.to_owned(), source };
        // Tokens and names are nobody else's business; the files beside it are made with the same permissions.
        private_file(path).map_err(at)?;
        let connection = connect(path)?;
        let last = schema::prepare(&connection, path).map_err(|error| error.of(path))?;
        Ok(Self { connection, path: path.to_owned(), last, _lock: lock })
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the latest row; 0 if there is none.
    pub fn last_seq(&self) -> u64 {
        self.last
    }

    /// Writes several things in one transaction: all of them are kept, or none. When this returns, they are on the disk.
    ///
    /// # Errors
    ///
    /// Those of `write`, and [`StoreError::Full`] where no room is left; then nothing was written, and reading goes on.
    pub fn write<T>(
        &mut self,
        write: impl FnOnce(&mut Writer<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let path = &self.path;
        let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = begun.map_err(|error| StoreError::from(error).of(path))?;
        let mut writer = Writer { transaction, last: self.last };
        let written = write(&mut writer).map_err(|error| error.of(path))?;
        let Writer { transaction, last } = writer;
        transaction.commit().map_err(|error| StoreError::from(error).of(path))?;
        self.last = last;
        Ok(written)
    }

    /// Appends rows to the journal, all or none.
    ///
    /// # Errors
    ///
    /// Rows that do not follow the latest without a gap, and those of [`Store::write`].
    pub fn append(&mut self, rows: &[NewRow<'_>]) -> Result<(), StoreError> {
        self.write(|writer| writer.append(rows))
    }

    /// Keeps all that is remembered after row `seq`; of older snapshots the last ones stay.
    ///
    /// # Errors
    ///
    /// A row that is not there, and those of [`Store::write`].
    pub fn snapshot(&mut self, seq: u64, state: &str) -> Result<(), StoreError> {
        self.write(|writer| writer.snapshot(seq, state))
    }

    fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        read(&self.connection).map_err(|error| error.of(&self.path))
    }
}

/// An open transaction.
#[derive(Debug)]
pub struct Writer<'a> {
    transaction: Transaction<'a>,
    last: u64,
}

/// One connection, of which every commit is on the disk.
fn connect(path: &Path) -> Result<Connection, StoreError> {
    let open = || -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        // Whoever reads the file besides us, for a backup or out of curiosity, may hold it for a moment.
        connection.busy_timeout(Duration::from_secs(5))?;
        // Counts for a new file alone, and must come before anything is written to it. Others are not touched before they
        // are known to be whole.
        let kept: i64 = connection.query_row("PRAGMA auto_vacuum", [], |row| row.get(0))?;
        if kept == 0 {
            connection.pragma_update(None, "auto_vacuum", "incremental")?;
        }
        connection.query_row("PRAGMA journal_mode = wal", [], |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "full")?;
        Ok(connection)
    };
    open().map_err(|error| StoreError::from(error).of(path))
}

/// Makes the file, if it is not there, for its owner alone.
fn private_file(path: &Path) -> std::io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Numbers as SQLite has them, with a sign. Those of rows and times are far below the end of either range; ids are
/// chosen by others, and come back as they went.
fn signed(number: u64) -> i64 {
    number.cast_signed()
}

fn unsigned(number: i64) -> u64 {
    number.cast_unsigned()
}
