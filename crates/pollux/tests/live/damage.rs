//! What happens to the files and the clock of a live scheduler: damage, a full disk, a clock that jumps.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::scheduler::{Scheduler, text};

/// A scheduler that did some things and was stopped. Its journal, all in one file.
fn with_a_journal(scheduler: &Scheduler) -> Vec<u8> {
    for number in 0..6 {
        let name = format!("job-{number}");
        scheduler.ok(&["submit", "--name", &name, "--", "true"]);
    }
    scheduler.ok(&["queue", "set", "vision", "--cap", "t4=2"]);
    scheduler.ok(&["wait", "--timeout", "60"]);
    scheduler.ok(&["down"]);
    fs::read(database(scheduler)).unwrap()
}

fn database(scheduler: &Scheduler) -> PathBuf {
    scheduler.folder().join("pollux.db")
}

/// Puts these bytes in the place of the journal.
fn put(scheduler: &Scheduler, bytes: &[u8]) {
    for end in ["-wal", "-shm"] {
        let _ = fs::remove_file(scheduler.folder().join(format!("pollux.db{end}")));
    }
    fs::write(database(scheduler), bytes).unwrap();
}

/// It does not start, says so much, and has changed nothing.
#[track_caller]
fn check_refused(scheduler: &Scheduler, bytes: &[u8], says: &str) {
    put(scheduler, bytes);
    let output = scheduler.try_start();
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains(says) && !said.contains("panicked"), "{said}");
    assert!(fs::read(database(scheduler)).unwrap() == bytes, "the file was changed");
}

#[test]
fn a_damaged_journal_is_refused_and_left_alone() {
    let scheduler = Scheduler::up("1x2:t4");
    let good = with_a_journal(&scheduler);
    let advice = "is damaged";
    let page = 4096;
    assert!(good.len() > 8 * page && good.starts_with(b"SQLite format 3"), "{}", good.len());
    let flipped = |from: usize, n_bytes: usize| {
        let mut bytes = good.clone();
        bytes[from..from + n_bytes].iter_mut().for_each(|byte| *byte ^= 0xff);
        bytes
    };
    check_refused(&scheduler, &flipped(0, 16), advice);
    check_refused(&scheduler, &flipped(16, 2), advice);
    check_refused(&scheduler, &flipped(100, 8), advice);
    check_refused(&scheduler, &flipped(page, 8), advice);
    check_refused(&scheduler, &good[..good.len() / 2], advice);
    check_refused(&scheduler, &good[..good.len() - page], advice);
    check_refused(&scheduler, &good[..50], advice);
    check_refused(&scheduler, b"no database at all, but long enough to be one", advice);
    let mut newer = good.clone();
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    check_refused(&scheduler, &newer, "has store version 99, this build knows up to");
    // What was kept aside is as good as before.
    put(&scheduler, &good);
    scheduler.start();
    let names = scheduler.ok(&["list", "--all", "-o", "name"]);
    assert_eq!(names, "job-0\njob-1\njob-2\njob-3\njob-4\njob-5\n");
}

#[test] // Bytes anywhere: it is read or refused, and neither panics nor writes. Also where SQLite sees no damage.
fn a_journal_with_any_bytes_changed_is_read_or_refused() {
    let scheduler = Scheduler::up("1x2:t4");
    let good = with_a_journal(&scheduler);
    let copy = scheduler.folder().join("copy.db");
    let (mut state, mut n_refused) = (7_u64, 0);
    for round in 0..150 {
        let mut bytes = good.clone();
        for _ in 0..=round % 4 {
            // Knuth's MMIX generator: the same places on every machine.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let place = usize::try_from(state >> 33).unwrap() % bytes.len();
            bytes[place] ^= 1 << (state % 8);
        }
        let _ = fs::remove_file(&copy);
        fs::write(&copy, &bytes).unwrap();
        let output = scheduler.run(&["replay", "copy.db"]);
        let said = text(&output.stderr);
        assert!(!said.contains("panicked"), "{round}: {said}");
        if !output.status.success() {
            n_refused += 1;
            // A number that was changed within a row is a decision that differs.
            let told = ["is damaged", "has store version", "differ from the journal"];
            let is_told = told.iter().any(|told| said.contains(told));
            assert!(is_told, "{round}: {said}");
        }
    }
    assert!(n_refused > 10, "{n_refused}");
}

#[test] // What was written ahead is gone: it says so, and no new job takes the number or the folder of an old one.
fn a_journal_whose_end_is_missing_is_told_and_no_number_is_used_twice() {
    let scheduler = Scheduler::up("1x2:t4");
    let early = with_a_journal(&scheduler);
    scheduler.start();
    scheduler.ok(&["submit", "--name", "late", "--", "true"]);
    scheduler.ok(&["wait", "late", "--timeout", "60"]);
    let late = scheduler.json(&["describe", "late"])["id"].as_u64().unwrap();
    scheduler.kill();
    put(&scheduler, &early);
    scheduler.start();
    let status = scheduler.ok(&["status"]);
    assert!(status.contains("warning: the journal ends before job"), "{status}");
    scheduler.check_refused(&["describe", "late"], 3, "there is no job `late`");
    scheduler.ok(&["submit", "--name", "new", "--", "true"]);
    assert_eq!(scheduler.json(&["describe", "new"])["id"], late + 1);
    // The warning is about what was found, and goes when everything is known.
    scheduler.ok(&["down"]);
    scheduler.start();
    assert!(!scheduler.ok(&["status"]).contains("the journal ends before"));
}

/// Set for the process that has a disk of its own: where it is.
const DISK: &str = "POLLUX_TEST_DISK";

/// What the shell ends with if nothing could be mounted.
const NOT_ALLOWED: i32 = 77;

/// No test of its own: fills its disk under a scheduler, and goes on when there is room.
#[test]
fn on_a_small_disk() {
    let Some(disk) = std::env::var_os(DISK) else { return };
    let scheduler = Scheduler::up("1x2:t4");
    scheduler.ok(&["submit", "--name", "before", "--", "sleep", "600"]);
    scheduler.until("before", |job| job["state"] == "running");
    let filler = Path::new(&disk).join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    while file.write_all(&[1; 512]).is_ok() {}
    drop(file);
    // What fits into the room that is left is taken; then nothing is, and what was said stands.
    let mut taken = vec!["before".to_owned()];
    let refused = loop {
        assert!(taken.len() < 2_000, "the disk is never full");
        let name = format!("job-{}", taken.len());
        let output = scheduler.run(&["submit", "--name", &name, "--gpus", "2", "--", "sleep", "600"]);
        if !output.status.success() {
            break text(&output.stderr);
        }
        taken.push(name);
    };
    assert!(refused.contains("no room is left") && refused.contains("make room on the disk"), "{refused}");
    assert!(scheduler.call("GET", "/readyz", None, None).status == 507);
    let names = |scheduler: &Scheduler| scheduler.ok(&["list", "--all", "-o", "name"]);
    assert_eq!(names(&scheduler).lines().collect::<Vec<_>>(), taken);
    assert_eq!(scheduler.json(&["describe", "before"])["state"], "running");
    fs::remove_file(&filler).unwrap();
    while !scheduler.run(&["submit", "--name", "after", "--", "sleep", "600"]).status.success() {}
    taken.push("after".to_owned());
    scheduler.kill();
    scheduler.start();
    assert_eq!(names(&scheduler).lines().collect::<Vec<_>>(), taken);
    assert_eq!(scheduler.json(&["describe", "before"])["attempts"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_full_disk_is_said_and_passes() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o size=3m none \"${DISK}\" || exit {NOT_ALLOWED}
         TMPDIR=\"${DISK}\" exec \"$0\" --exact damage::on_a_small_disk --nocapture"
    );
    // A mount of its own name space: nobody else sees it, and it goes with the process.
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .env(DISK, folder.path())
        .output();
    match output {
        Ok(output) if output.status.success() => {
            assert!(text(&output.stdout).contains("1 passed"), "{}", text(&output.stdout));
        }
        Ok(output) if output.status.code() != Some(NOT_ALLOWED) && !output.stdout.is_empty() => {
            panic!("{}{}", text(&output.stdout), text(&output.stderr))
        }
        Ok(output) => not_checked("a full disk", text(&output.stderr).trim()),
        Err(error) => not_checked("a full disk", &error.to_string()),
    }
}

/// The library that makes a process believe in another time, if it is installed.
fn faketime() -> Option<PathBuf> {
    let places = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    let all = places.map(|place| Path::new(place).join("faketime/libfaketimeMT.so.1"));
    all.into_iter().find(|path| path.exists())
}

#[test]
fn a_clock_that_jumps_changes_nothing_that_is_known() {
    let Some(library) = faketime() else {
        return not_checked("a clock that jumps", "install `faketime`");
    };
    let mut scheduler = Scheduler::down("1x2:t4");
    let offset = scheduler.folder().join("offset");
    let set = |shift: &str| fs::write(&offset, shift).unwrap();
    set("+0");
    scheduler.with_env("LD_PRELOAD", library.to_str().unwrap());
    scheduler.with_env("FAKETIME_TIMESTAMP_FILE", offset.to_str().unwrap());
    scheduler.with_env("FAKETIME_NO_CACHE", "1");
    scheduler.with_env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    scheduler.start();
    scheduler.ok(&["submit", "--name", "long", "--", "sleep", "600"]);
    scheduler.until("long", |job| job["state"] == "running");
    // While it runs: a day ahead, then two days back. Time goes on as if nothing had been.
    for shift in ["+1d", "-1d"] {
        set(shift);
        let name = if shift == "+1d" { "ahead" } else { "back" };
        scheduler.ok(&["submit", "--name", name, "--", "true"]);
        assert_eq!(scheduler.ok(&["wait", name, "--timeout", "60"]), format!("{name}: finished\n"));
    }
    let at = |job: &str| scheduler.json(&["describe", job])["submitted"].as_str().unwrap().to_owned();
    assert!(at("long") < at("ahead") && at("ahead") < at("back"), "{} {}", at("ahead"), at("back"));
    assert!(!scheduler.ok(&["status"]).contains("warning"));
    // Over a restart: an hour ahead is believed, and when it is set back time goes on from where the journal ends.
    let restart = |shift: &str| {
        scheduler.kill();
        set(shift);
        scheduler.start();
    };
    restart("+1h");
    scheduler.ok(&["submit", "--name", "later", "--", "true"]);
    assert_eq!(scheduler.ok(&["wait", "later", "--timeout", "60"]), "later: finished\n");
    restart("+0");
    let status = scheduler.ok(&["status"]);
    assert!(status.contains("behind the journal; time goes on from where the journal ends"), "{status}");
    scheduler.ok(&["submit", "--name", "last", "--", "true"]);
    assert_eq!(scheduler.ok(&["wait", "last", "--timeout", "60"]), "last: finished\n");
    assert!(at("back") < at("later") && at("later") < at("last"), "{} {}", at("later"), at("last"));
    let long = scheduler.json(&["describe", "long"]);
    assert_eq!((&long["state"], &long["restarts"]), (&"running".into(), &0.into()));
}

/// Says loudly that something was not checked, and why.
fn not_checked(what: &str, why: &str) {
    // Where nobody listens there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "NOT CHECKED: {what} ({why})");
}
