//! A process that is killed at any moment loses nothing that it said was kept.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Folder, row};
use pollux_server::store::{NewRow, Store};

/// Set for the process that is killed: the store it appends to.
const STORE: &str = "POLLUX_TEST_STORE";

/// No test of its own: appends rows until it is killed, and says which are kept.
#[test]
fn appends_until_killed() {
    let Some(path) = std::env::var_os(STORE) else { return };
    let mut store = Store::open(Path::new(&path)).unwrap();
    let mut out = std::io::stdout();
    loop {
        let first = store.last_seq() + 1;
        let rows: Vec<NewRow> = (first..=first + first % 4).map(row).collect();
        store.append(&rows).unwrap();
        if first % 50 < 4 {
            store.snapshot(first, "state").unwrap();
        }
        writeln!(out, "kept {}", store.last_seq()).unwrap();
        out.flush().unwrap();
    }
}

/// Starts the process, kills it after so many words of it, and says which row it said last.
fn kill_after(path: &Path, words: usize) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "appends_until_killed", "--nocapture"])
        .env(STORE, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let number = |line: &String| line.strip_prefix("kept ").and_then(|number| number.parse::<u64>().ok());
    let mut last = said.by_ref().filter_map(|line| number(&line)).nth(words).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // What it said before it was gone counts too. A line that was cut short may name a smaller row, never a larger.
    last = said.filter_map(|line| number(&line)).fold(last, u64::max);
    last
}

#[test]
fn nothing_that_was_kept_is_lost() {
    let folder = Folder::new();
    let mut before = 0;
    for words in [0, 3, 17, 40, 101] {
        let acknowledged = kill_after(&folder.store(), words);
        let store = Store::open(&folder.store()).unwrap();
        assert!(
            before < acknowledged && acknowledged <= store.last_seq(),
            "{acknowledged} {}",
            store.last_seq()
        );
        let rows = store.rows(0, u32::MAX).unwrap();
        assert!(rows.iter().map(|row| row.seq).eq(1..=store.last_seq()), "a hole");
        let loaded = store.load().unwrap();
        let covered = loaded.snapshot.map_or(0, |snapshot| snapshot.seq);
        assert_eq!(covered + loaded.rows.len() as u64, store.last_seq());
        before = store.last_seq();
    }
}
