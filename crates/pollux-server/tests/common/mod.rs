//! Folders that go with the test.
#![allow(dead_code, unreachable_pub, reason = "each test uses its own part")]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use pollux_server::store::NewRow;

/// A folder of this test alone.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("pollux-store-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn store(&self) -> PathBuf {
        self.path("pollux.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A row of a kilobyte.
pub fn row(seq: u64) -> NewRow<'static> {
    static NOTE: LazyLock<String> = LazyLock::new(|| "n".repeat(1_000));
    NewRow { seq, at: seq * 10, input: "\"tick\"", note: &NOTE, effects: "[]" }
}

/// Bytes of a file.
pub fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.len())
}
