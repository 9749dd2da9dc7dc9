//! The store through its public door, on real files.

mod common;

use common::{Folder, row, size};
use pollux_api::rest::Role;
use pollux_server::store::{
    Compacted, EndedJob, Keep, Loaded, NewEvent, NewRow, Round, Snapshot, Store, StoreError, Token,
};

/// A store with rows 1 to `n`.
fn filled(folder: &Folder, n: u64) -> Store {
    let mut store = Store::open(&folder.store()).unwrap();
    let rows: Vec<NewRow> = (1..=n).map(row).collect();
    store.append(&rows).unwrap();
    store
}

fn seqs(loaded: &Loaded) -> Vec<u64> {
    loaded.rows.iter().map(|row| row.seq).collect()
}

#[test]
fn rows_are_there_again_in_order() {
    let folder = Folder::new();
    let mut store = filled(&folder, 2);
    store.append(&[NewRow { seq: 3, at: u64::MAX, input: "{\"ü\":1}", note: "", effects: "[1]" }]).unwrap();
    drop(store);
    let store = Store::open(&folder.store()).unwrap();
    let loaded = store.load().unwrap();
    assert_eq!((store.last_seq(), seqs(&loaded)), (3, vec![1, 2, 3]));
    let last = &loaded.rows[2];
    let text = [&last.input, &last.note, &last.effects].map(String::as_str);
    assert_eq!((last.at, text), (u64::MAX, ["{\"ü\":1}", "", "[1]"]));
    assert_eq!(loaded.snapshot, None);
}

#[test]
fn rows_that_do_not_follow_are_refused_and_nothing_is_kept() {
    let folder = Folder::new();
    let mut store = filled(&folder, 2);
    let refused = store.append(&[row(3), row(5)]).unwrap_err();
    assert_eq!(refused.to_string(), "row 5 of the journal does not follow row 3");
    assert_eq!(
        store.append(&[row(2)]).unwrap_err().to_string(),
        "row 2 of the journal does not follow row 2"
    );
    assert_eq!((store.last_seq(), seqs(&store.load().unwrap())), (2, vec![1, 2]));
    store.append(&[row(3)]).unwrap();
}

#[test]
fn loading_begins_with_the_latest_snapshot_and_three_are_kept() {
    let folder = Folder::new();
    let mut store = filled(&folder, 10);
    for seq in [2, 4, 6, 8] {
        store.snapshot(seq, &format!("state {seq}")).unwrap();
    }
    let loaded = store.load().unwrap();
    assert_eq!(loaded.snapshot, Some(Snapshot { seq: 8, state: "state 8".to_owned() }));
    assert_eq!(seqs(&loaded), [9, 10]);
    assert_eq!(store.snapshots().unwrap(), [4, 6, 8]);
    assert_eq!(seqs(&store.load_at(6).unwrap()), [7, 8, 9, 10]);
    assert!(matches!(store.load_at(2), Err(StoreError::NoSnapshot(2))));
    assert!(matches!(store.snapshot(11, ""), Err(StoreError::Ahead { seq: 11, last: 10 })));
}

fn keep(rows: u64) -> Keep {
    Keep { rows, events: 2, rounds: 1, jobs: 2, since: 100, now: 100 }
}

#[test]
fn only_rows_that_a_snapshot_covers_are_removed() {
    let folder = Folder::new();
    let mut store = filled(&folder, 10);
    assert_eq!(store.compact(&keep(0)).unwrap(), Compacted::default(), "all are needed");
    store.snapshot(4, "a").unwrap();
    store.snapshot(8, "b").unwrap();
    assert_eq!(store.compact(&keep(7)).unwrap().rows, 3, "seven are kept");
    assert_eq!(store.compact(&keep(0)).unwrap().rows, 1, "those after the oldest snapshot are kept");
    assert_eq!(seqs(&store.load_at(4).unwrap()), [5, 6, 7, 8, 9, 10]);
    assert_eq!(store.rows(0, 2).unwrap()[0].seq, 5);
    drop(store);
    assert_eq!(Store::open(&folder.store()).unwrap().last_seq(), 10);
}

#[test]
fn numbers_go_on_when_every_row_is_gone() {
    let folder = Folder::new();
    let mut store = filled(&folder, 5);
    store.snapshot(5, "all").unwrap();
    assert_eq!(store.compact(&keep(0)).unwrap().rows, 5);
    drop(store);
    let mut store = Store::open(&folder.store()).unwrap();
    store.append(&[row(6)]).unwrap();
    assert_eq!(seqs(&store.load().unwrap()), [6]);
}

#[test] // 2,000 rows of a kilobyte are 2 MB; none of them is left.
fn room_is_given_back() {
    let folder = Folder::new();
    let mut store = filled(&folder, 2_000);
    store.snapshot(2_000, "").unwrap();
    let before = size(&folder.store()) + size(&folder.path("pollux.db-wal"));
    store.compact(&keep(0)).unwrap();
    let after = size(&folder.store()) + size(&folder.path("pollux.db-wal"));
    assert!(before > 2_000_000 && after < 200_000, "{before} {after}");
}

#[test]
fn events_are_numbered_for_good_and_bounded() {
    let folder = Folder::new();
    let mut store = Store::open(&folder.store()).unwrap();
    let event = |at, job| NewEvent { at, actor: "alice", job, kind: "submitted", text: "job 1" };
    let add = |store: &mut Store, at, job| store.write(|writer| writer.event(event(at, job))).unwrap();
    let numbers = [(50, None), (150, Some(1)), (160, Some(2)), (170, Some(1))]
        .map(|(at, job)| add(&mut store, at, job));
    assert_eq!(numbers, [1, 2, 3, 4]);
    let seqs = |store: &Store, after, job| -> Vec<u64> {
        store.events(after, job, 10).unwrap().iter().map(|event| event.seq).collect()
    };
    assert_eq!(seqs(&store, 0, Some(1)), [2, 4]);
    assert_eq!(seqs(&store, 2, None), [3, 4]);
    assert_eq!(store.compact(&keep(0)).unwrap().events, 2, "one is old, one beyond two");
    assert_eq!(seqs(&store, 0, None), [3, 4]);
    assert_eq!(store.compact(&Keep { events: 0, ..keep(0) }).unwrap().events, 2);
    assert_eq!(add(&mut store, 180, None), 5, "numbers are not used again");
    let last = store.events(0, None, 10).unwrap().remove(0);
    assert_eq!((last.at, last.actor.as_str(), last.job, last.text.as_str()), (180, "alice", None, "job 1"));
}

#[test]
fn rounds_and_ended_jobs_are_kept_and_bounded() {
    let folder = Folder::new();
    let mut store = Store::open(&folder.store()).unwrap();
    let round = |cycle| Round {
        cycle,
        at: 7,
        seed: u64::MAX,
        value: Some(1.5),
        bound: Some(f64::INFINITY),
        moved: 3,
        plan: "{}".to_owned(),
    };
    let job = |id, ended| EndedJob {
        id,
        name: "bert".to_owned(),
        owner: "alice".to_owned(),
        submitted: 1,
        ended,
        outcome: "finished".to_owned(),
        detail: "null".to_owned(),
    };
    let jobs = [job(u64::MAX, 400), job(1, 50), job(2, 200), job(3, 300)];
    store
        .write(|writer| {
            writer.round(&round(1))?;
            writer.round(&round(2))?;
            jobs.iter().try_for_each(|job| writer.ended_job(job))
        })
        .unwrap();
    assert_eq!(store.round(1).unwrap(), Some(round(1)));
    assert_eq!(store.ended_job(u64::MAX).unwrap().as_ref(), Some(&jobs[0]));
    assert_eq!(store.ended_jobs(2).unwrap(), [jobs[0].clone(), jobs[3].clone()]);
    let Compacted { rounds, jobs: n_jobs, .. } = store.compact(&keep(0)).unwrap();
    assert_eq!((rounds, n_jobs), (1, 2));
    assert_eq!((store.rounds(9).unwrap(), store.ended_job(2).unwrap()), (vec![round(2)], None));
}

#[test]
fn tokens_are_good_until_they_end_or_are_revoked() {
    let folder = Folder::new();
    let mut store = Store::open(&folder.store()).unwrap();
    let token = |n: u8, job, expires| Token {
        hash: [n; 32],
        role: Role::Submitter,
        owner: "bob".to_owned(),
        job,
        attempt: job.map(|_| 1),
        made: 5,
        expires,
    };
    let tokens = [token(1, None, None), token(2, None, Some(100)), token(3, Some(7), None)];
    store.write(|writer| tokens.iter().try_for_each(|token| writer.token(token))).unwrap();
    assert_eq!(store.token(&[2; 32], 99).unwrap().as_ref(), Some(&tokens[1]));
    assert_eq!(store.token(&[2; 32], 100).unwrap(), None);
    assert_eq!(store.token(&[9; 32], 0).unwrap(), None);
    assert_eq!(store.compact(&keep(0)).unwrap().tokens, 1);
    store.write(|writer| writer.revoke_of_job(7)).unwrap();
    assert_eq!(store.tokens().unwrap(), [tokens[0].clone()]);
    store.write(|writer| writer.revoke(&[1; 32])).unwrap();
    assert_eq!(store.tokens().unwrap(), []);
    for role in [Role::Viewer, Role::Submitter, Role::Admin, Role::Job] {
        assert_eq!(Role::of(role.word()), Some(role));
    }
}

#[test]
fn what_concerns_the_whole_is_kept_by_key() {
    let folder = Folder::new();
    let mut store = Store::open(&folder.store()).unwrap();
    store.write(|writer| writer.meta("cluster", "a").and_then(|()| writer.meta("cluster", "b"))).unwrap();
    drop(store);
    let store = Store::open(&folder.store()).unwrap();
    assert_eq!((store.meta("cluster").unwrap().as_deref(), store.meta("other").unwrap()), (Some("b"), None));
}

#[test]
fn all_of_a_transaction_is_kept_or_nothing() {
    let folder = Folder::new();
    let mut store = filled(&folder, 1);
    let failed = store.write(|writer| {
        writer.append(&[row(2)])?;
        writer.meta("key", "1")?;
        writer.append(&[row(9)])
    });
    assert!(matches!(failed, Err(StoreError::Gap { last: 2, found: 9 })));
    assert_eq!((store.last_seq(), store.meta("key").unwrap()), (1, None));
}

#[test]
fn one_opens_it_at_a_time() {
    let folder = Folder::new();
    let store = filled(&folder, 1);
    let refused = Store::open(&folder.store()).unwrap_err();
    let expected =
        format!("is in use by process {}: one scheduler at a time; stop that one first", std::process::id());
    assert!(refused.to_string().ends_with(&expected), "{refused}");
    drop(store);
    Store::open(&folder.store()).unwrap();
}

#[test]
fn a_backup_restores_what_was_there() {
    let folder = Folder::new();
    let backup = folder.path("backup.db");
    let mut store = filled(&folder, 5);
    store.backup(&backup).unwrap();
    assert!(matches!(store.backup(&backup), Err(StoreError::Exists { .. })));
    store.append(&[row(6)]).unwrap();
    assert!(matches!(Store::restore(&backup, &folder.store()), Err(StoreError::Locked { .. })));
    // As after a crash: what was written ahead is still beside it.
    let wal = folder.path("pollux.db-wal");
    let ahead = std::fs::read(&wal).unwrap();
    drop(store);
    std::fs::write(&wal, ahead).unwrap();
    Store::restore(&backup, &folder.store()).unwrap();
    let mut store = Store::open(&folder.store()).unwrap();
    assert_eq!(seqs(&store.load().unwrap()), [1, 2, 3, 4, 5]);
    store.append(&[row(6)]).unwrap();
}

#[test]
fn a_damaged_backup_leaves_the_store_as_it_was() {
    let folder = Folder::new();
    let backup = folder.path("backup.db");
    drop(filled(&folder, 5));
    std::fs::write(&backup, "no store at all, but long enough to be taken for one".repeat(100)).unwrap();
    let refused = Store::restore(&backup, &folder.store()).unwrap_err();
    assert!(matches!(&refused, StoreError::Corrupt { path, .. } if *path == backup), "{refused}");
    assert_eq!(Store::open(&folder.store()).unwrap().last_seq(), 5);
}

/// Spoils bytes of a closed store of 2,000 rows; whoever opens it is told.
fn check_damage(spoil: impl FnOnce(&mut Vec<u8>)) {
    let folder = Folder::new();
    drop(filled(&folder, 2_000));
    let mut bytes = std::fs::read(folder.store()).unwrap();
    spoil(&mut bytes);
    std::fs::write(folder.store(), bytes).unwrap();
    let refused = Store::open(&folder.store()).unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
    let advice = "): keep it aside, and restore the latest backup in its place";
    assert!(refused.to_string().ends_with(advice) && refused.to_string().contains("pollux.db"), "{refused}");
}

#[test]
fn damage_is_noticed() {
    check_damage(|bytes| bytes[..16].fill(b'x'));
    check_damage(|bytes| bytes[100_000..900_000].fill(0xff));
    check_damage(|bytes| bytes.truncate(1_000_000));
}
