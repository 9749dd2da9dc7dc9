//! A disk that is really full: a tiny one of our own, where a process may mount one for itself.

mod common;

use std::io::Write;
use std::path::Path;
use std::process::Command;

use common::{Folder, row};
use pollux_server::store::{Store, StoreError};

/// Set for the process that has a disk of 2 MiB: where it is.
const DISK: &str = "POLLUX_TEST_DISK";

/// What the shell ends with if nothing could be mounted.
const NOT_ALLOWED: i32 = 77;

fn is_full<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Full { .. }))
}

/// No test of its own: fills its disk, and goes on when there is room.
#[test]
fn on_a_small_disk() {
    let Some(disk) = std::env::var_os(DISK) else { return };
    let disk = Path::new(&disk);
    let filler = disk.join("filler");
    std::fs::write(&filler, vec![1; 1 << 20]).unwrap();
    let mut store = Store::open(&disk.join("pollux.db")).unwrap();
    let refused = loop {
        if let Err(refused) = store.append(&[row(store.last_seq() + 1)]) {
            break refused;
        }
    };
    assert!(matches!(refused, StoreError::Full { .. }), "{refused}");
    let kept = store.last_seq();
    assert!(kept > 10 && is_full(&store.append(&[row(kept + 1)])));
    // Reading goes on, and half a backup is not taken for one.
    assert_eq!(store.load().unwrap().rows.len() as u64, kept);
    assert!(is_full(&store.backup(&disk.join("backup.db"))) && !disk.join("backup.db").exists());
    std::fs::remove_file(filler).unwrap();
    store.append(&[row(kept + 1)]).unwrap();
    drop(store);
    assert_eq!(Store::open(&disk.join("pollux.db")).unwrap().load().unwrap().rows.len() as u64, kept + 1);
}

#[test]
fn a_full_disk_is_said_and_passes() {
    let folder = Folder::new();
    let script = format!(
        "mount -t tmpfs -o size=2m none \"${DISK}\" || exit {NOT_ALLOWED}
         exec \"$0\" --exact on_a_small_disk --nocapture"
    );
    // A mount of its own name space: nobody else sees it, and it goes with the process.
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .env(DISK, folder.path(""))
        .output();
    let said = match output {
        Ok(output) if output.status.success() => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(said.contains("1 passed"), "{said}");
            return;
        }
        Ok(output) if output.status.code() != Some(NOT_ALLOWED) && !output.stdout.is_empty() => {
            panic!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    writeln!(
        std::io::stderr(),
        "NOT CHECKED: a disk that is really full ({said}); a limit of pages stood in for it"
    )
    .unwrap();
}
