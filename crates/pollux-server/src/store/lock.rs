//! One process at a time.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::{StoreError, private_file};

/// A process that was killed may hold its lock for a moment more: whoever comes at once to take its place waits this long.
const DYING: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A file beside the store, locked for as long as this lives, with the number of our process in it. The lock goes with
/// the process, however that ends.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    pub(super) fn take(store: &Path) -> Result<Self, StoreError> {
        let path = path(store);
        let failed = |source| StoreError::io(&path, source);
        let mut file = private_file(&path).map_err(failed)?;
        let began = Instant::now();
        let locked = loop {
            match file.try_lock() {
                Err(TryLockError::WouldBlock) if began.elapsed() < DYING => thread::sleep(LOOK_EVERY),
                locked => break locked,
            }
        };
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let holder = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(StoreError::Locked { path: store.to_owned(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let name = |mut file: &File| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        // The number is for people: on a full disk the lock holds without it.
        let _ = name(&file);
        Ok(Self { _file: file })
    }
}

/// The lock's file, for all names of one store.
fn path(store: &Path) -> PathBuf {
    let store = fs::canonicalize(store).unwrap_or_else(|_| store.to_owned());
    let mut name = store.into_os_string();
    name.push(".lock");
    name.into()
}
