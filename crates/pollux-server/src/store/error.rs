//! What can go wrong with the store, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why the store cannot do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has it open.
    #[error("`{}` is in use{}: one scheduler at a time; stop that one first", path.display(), by(*holder))]
    Locked {
        /// The store.
        path: PathBuf,
        /// The process, as far as it said.
        holder: Option<u32>,
    },
    /// A later build wrote it.
    #[error(
        "`{}` has store version {found}, this build knows up to {known}: use the build that wrote it or a later one, or \
         restore a backup from before the upgrade", path.display()
    )]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The latest version known here.
        known: i64,
    },
    /// It does not hold together.
    #[error("`{}` is damaged ({detail}): keep it aside, and restore the latest backup in its place", path.display())]
    Corrupt {
        /// The store.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// No room is left. Nothing was written; reading goes on, and so does writing once there is room.
    #[error("no room is left for `{}`: free some disk space, or keep fewer rows of the journal", path.display())]
    Full {
        /// The store.
        path: PathBuf,
    },
    /// A row that does not follow the latest.
    #[error("row {found} of the journal does not follow row {last}")]
    Gap {
        /// The latest row.
        last: u64,
        /// The row given.
        found: u64,
    },
    /// A snapshot after a row that is not there.
    #[error("a snapshot after row {seq} of the journal, which ends with row {last}")]
    Ahead {
        /// The row given.
        seq: u64,
        /// The latest row.
        last: u64,
    },
    /// No such snapshot.
    #[error("there is no snapshot after row {0}")]
    NoSnapshot(u64),
    /// A backup is never written over a file.
    #[error("`{}` is there already: name another file for the backup", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("`{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Anything else SQLite says.
    #[error("`{}`: {source}", path.display())]
    Sqlite {
        /// The store.
        path: PathBuf,
        /// What it says.
        source: rusqlite::Error,
    },
}

fn by(holder: Option<u32>) -> String {
    holder.map_or(String::new(), |pid| format!(" by process {pid}"))
}

/// A shared-memory file that could not grow: `SQLITE_IOERR_SHMSIZE`, which a full disk leads to.
const NO_SHARED_MEMORY: i32 = 4_874;
/// A file that ends in the middle of a page: `SQLITE_IOERR_SHORT_READ`.
const CUT_SHORT: i32 = 522;

impl From<rusqlite::Error> for StoreError {
    /// The path is filled in where it is known.
    fn from(error: rusqlite::Error) -> Self {
        let path = PathBuf::new();
        let failure = match &error {
            rusqlite::Error::SqliteFailure(failure, _) => Some(*failure),
            _ => None,
        };
        // Statements are constant and write what they read: whatever else is found there was put there by damage.
        let is_strange = matches!(
            error,
            rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::Utf8Error(..)
                | rusqlite::Error::SqlInputError { .. }
        );
        if is_strange {
            return Self::Corrupt { path, detail: error.to_string() };
        }
        match failure.map(|failure| (failure.code, failure.extended_code)) {
            Some((ErrorCode::DiskFull, _) | (_, NO_SHARED_MEMORY)) => Self::Full { path },
            Some((ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _) | (_, CUT_SHORT)) => {
                Self::Corrupt { path, detail: error.to_string() }
            }
            _ => Self::Sqlite { path, source: error },
        }
    }
}

impl StoreError {
    /// The same about this file, where none is named yet.
    pub(super) fn of(mut self, store: &Path) -> Self {
        match &mut self {
            Self::Full { path } | Self::Corrupt { path, .. } | Self::Sqlite { path, .. }
                if path.as_os_str().is_empty() =>
            {
                store.clone_into(path);
            }
            _ => {}
        }
        self
    }

    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        if source.kind() == io::ErrorKind::StorageFull {
            Self::Full { path }
        } else {
            Self::Io { path, source }
        }
    }
}
