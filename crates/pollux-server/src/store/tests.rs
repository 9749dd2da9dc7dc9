//! What cannot be brought about through the public door: old and new versions, a disk that is full.

use std::path::PathBuf;

use rusqlite::{Connection, params};

use super::schema::{STEPS, latest};
use super::*;

/// A store of this test alone, which goes with it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("pollux-store-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn store(&self) -> PathBuf {
        self.0.join("pollux.db")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_store_of_version_1_is_brought_up_to_date() {
    let place = Place::new("version-1");
    let old = Connection::open(place.store()).unwrap();
    old.execute_batch(STEPS[0]).unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    old.execute("INSERT INTO journal VALUES (1, 5, '\"tick\"', 'null', '[]')", []).unwrap();
    old.execute("INSERT INTO submissions VALUES ('key', 7, 5)", []).unwrap();
    drop(old);

    let mut store = Store::open(&place.store()).unwrap();
    let version: i64 = store.connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!((version, latest()), (3, 3));
    let indexes: u32 = store
        .connection
        .query_row(
            "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name LIKE '%\\_by\\_%' ESCAPE '\\'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(indexes, 4);
    assert_eq!(store.load().unwrap().rows.len(), 1);
    store.append(&[NewRow { seq: 2, at: 6, input: "", note: "", effects: "" }]).unwrap();
}

#[test]
fn a_store_of_a_later_build_is_left_alone() {
    let place = Place::new("later");
    drop(Store::open(&place.store()).unwrap());
    let later = Connection::open(place.store()).unwrap();
    later.pragma_update(None, "user_version", 9).unwrap();
    drop(later);
    let refused = Store::open(&place.store()).unwrap_err();
    let advice = "has store version 9, this build knows up to 3: use the build that wrote it or a later one, or restore a \
                  backup from before the upgrade";
    assert!(refused.to_string().ends_with(advice), "{refused}");
}

#[test]
fn commits_are_synchronised() {
    let place = Place::new("pragmas");
    let store = Store::open(&place.store()).unwrap();
    let pragma = |name: &str| -> String {
        store
            .connection
            .query_row(&format!("SELECT {name} FROM pragma_{name}"), [], |row| {
                row.get::<_, rusqlite::types::Value>(0)
            })
            .map(|value| format!("{value:?}"))
            .unwrap()
    };
    assert_eq!(pragma("journal_mode"), "Text(\"wal\")");
    assert_eq!(pragma("synchronous"), "Integer(2)");
}

#[test] // Pages of 4 KiB: no room for a row of 1 MB, and then there is.
fn a_full_disk_is_said_and_passes() {
    let place = Place::new("full");
    let mut store = Store::open(&place.store()).unwrap();
    store.append(&[NewRow { seq: 1, at: 0, input: "a", note: "", effects: "" }]).unwrap();
    let limit = |store: &Store, pages: u32| {
        store.connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap();
    };
    limit(&store, 64);
    let large = "x".repeat(1_000_000);
    let rows = [
        NewRow { seq: 2, at: 0, input: "small", note: "", effects: "" },
        NewRow { seq: 3, at: 0, input: &large, note: "", effects: "" },
    ];
    let refused = store.append(&rows).unwrap_err();
    assert!(matches!(&refused, StoreError::Full { path } if *path == place.store()), "{refused}");
    // Nothing was written, and reading goes on.
    assert_eq!((store.last_seq(), store.load().unwrap().rows.len()), (1, 1));
    store.append(&rows[..1]).unwrap();
    limit(&store, 1 << 20);
    store.append(&rows[1..]).unwrap();
    assert_eq!(store.load().unwrap().rows.len(), 3);
}

#[test]
fn a_hole_in_the_journal_is_damage() {
    let place = Place::new("hole");
    let mut store = Store::open(&place.store()).unwrap();
    let row = |seq| NewRow { seq, at: 0, input: "", note: "", effects: "" };
    store.append(&[row(1), row(2), row(3)]).unwrap();
    store.connection.execute("DELETE FROM journal WHERE seq = ?1", params![2]).unwrap();
    let refused = store.load().unwrap_err();
    assert!(refused.to_string().contains("(row 2 of the journal is missing)"), "{refused}");
}

#[cfg(unix)]
#[test]
fn nobody_else_may_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new("private");
    let _store = Store::open(&place.store()).unwrap();
    for file in ["pollux.db", "pollux.db-wal", "pollux.db.lock"] {
        let mode = fs::metadata(place.0.join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file}: {mode:o}");
    }
}
