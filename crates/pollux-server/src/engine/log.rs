//! A rank's output in files of bounded size.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::run::LogLimits;

/// Output that goes to `PATH`, and older output to `PATH.1`, `PATH.2` and so on.
///
/// It never fails: what cannot be written is counted, so that a full disk does not stop a worker that prints.
#[derive(Debug)]
pub(super) struct RotatingLog {
    path: PathBuf,
    file: Option<File>,
    size: u64,
    limits: LogLimits,
    lost: u64,
}

impl RotatingLog {
    /// Opens the log; goes on where it ended.
    pub(super) fn open(path: &Path, limits: LogLimits) -> Self {
        let limits = LogLimits { bytes: limits.bytes.max(1), files: limits.files.max(1) };
        let mut log = Self { path: path.to_owned(), file: None, size: 0, limits, lost: 0 };
        log.reopen();
        log
    }

    /// Bytes that could not be written.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Appends output; a new file begins after a line where that is possible.
    pub(super) fn append(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = usize::try_from(self.limits.bytes.saturating_sub(self.size)).unwrap_or(usize::MAX);
            let n = if bytes.len() <= room {
                bytes.len()
            } else if let Some(newline) = bytes[..room].iter().rposition(|byte| *byte == b'\n') {
                newline + 1
            } else if self.size > 0 {
                0
            } else {
                room
            };
            let (now, later) = bytes.split_at(n);
            self.write(now);
            bytes = later;
            if !bytes.is_empty() {
                self.rotate();
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.file.is_none() {
            self.reopen();
        }
        let written = match &mut self.file {
            Some(file) => file.write_all(bytes),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        let length = bytes.len() as u64;
        // Counted as written either way: the size decides when to begin a new file, and that must happen.
        self.size += length;
        if written.is_err() {
            self.lost += length;
        }
    }

    fn rotate(&mut self) {
        self.file = None;
        let name = |number: u32| match number {
            0 => self.path.clone(),
            _ => PathBuf::from(format!("{}.{number}", self.path.display())),
        };
        let last = self.limits.files - 1;
        let _ = fs::remove_file(name(last));
        for number in (0..last).rev() {
            let _ = fs::rename(name(number), name(number + 1));
        }
        self.reopen();
        self.size = 0;
    }

    fn reopen(&mut self) {
        self.file = OpenOptions::new().create(true).append(true).open(&self.path).ok();
        self.size = self.file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |meta| meta.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the pieces with these limits; the files then hold this, the newest first.
    fn check(bytes: u64, files: u32, pieces: &[&str], expected: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.log");
        let mut log = RotatingLog::open(&path, LogLimits { bytes, files });
        for piece in pieces {
            log.append(piece.as_bytes());
        }
        let found: Vec<String> = (0..9)
            .map(|n| if n == 0 { path.clone() } else { folder.path().join(format!("0.log.{n}")) })
            .filter_map(|path| fs::read_to_string(path).ok())
            .collect();
        assert_eq!(found, expected);
        assert_eq!(log.lost(), 0);
    }

    #[test]
    fn files_begin_with_lines_where_they_can() {
        check(8, 3, &["abc\n", "def\n", "ghi\n"], &["ghi\n", "abc\ndef\n"]);
        check(8, 3, &["abc\ndef\nghi\n"], &["ghi\n", "abc\ndef\n"]);
        check(8, 3, &["abc\n", "defghi\n"], &["defghi\n", "abc\n"]);
        check(4, 9, &["abcdefghij"], &["ij", "efgh", "abcd"]);
    }

    #[test]
    fn the_oldest_file_goes() {
        check(2, 2, &["a\n", "b\n", "c\n"], &["c\n", "b\n"]);
        check(2, 1, &["a\n", "b\n", "c\n"], &["c\n"]);
    }

    #[test]
    fn limits_of_nothing_still_keep_something() {
        check(0, 0, &["ab"], &["b"]);
    }

    #[test]
    fn what_cannot_be_written_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let limits = LogLimits { bytes: 8, files: 2 };
        let mut log = RotatingLog::open(&folder.path().join("nowhere/0.log"), limits);
        log.append(b"four");
        assert_eq!(log.lost(), 4);
    }
}
