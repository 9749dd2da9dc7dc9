//! Old runs are removed, so that their logs do not fill the disk.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::perform::expected;
use super::run::Service;
use crate::engine::RunId;
use crate::engine::folder::RunFolder;

/// How long and how much of ended runs is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepRuns {
    /// Longest.
    pub longest: Duration,
    /// Most bytes, of all of them together.
    pub most_bytes: u64,
}

/// How often it is looked.
const LOOK_EVERY: Duration = Duration::from_hours(1);

/// Removes what is too old or too much, now and every hour.
pub(super) async fn remove_old_runs(runs: PathBuf, keep: KeepRuns, service: Service) {
    loop {
        let Ok(current) = service.ask(|live| expected(live)).await else { return };
        let current = current.into_iter().map(|(job, start)| RunId::new(job, start)).collect();
        let runs = runs.clone();
        // What cannot be removed is tried again.
        let _ = tokio::task::spawn_blocking(move || sweep(&runs, &current, keep, SystemTime::now())).await;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Removes runs that are not current, the oldest first. Says how many.
fn sweep(runs: &Path, current: &BTreeSet<RunId>, keep: KeepRuns, now: SystemTime) -> usize {
    let ended = RunFolder::list(runs).into_iter().filter(|run| !current.contains(run) && is_over(runs, *run));
    let mut found: Vec<(SystemTime, PathBuf)> = ended
        .filter_map(|run| {
            let path = RunFolder::of(runs, run).path().to_owned();
            // The last file that was made: how it ended.
            let changed = path.metadata().and_then(|meta| meta.modified()).ok()?;
            Some((changed, path))
        })
        .collect();
    found.sort();
    let mut bytes = 0;
    let mut n_removed = 0;
    for (changed, path) in found.into_iter().rev() {
        bytes += size(&path);
        let age = now.duration_since(changed).unwrap_or_default();
        if (age > keep.longest || bytes > keep.most_bytes) && std::fs::remove_dir_all(&path).is_ok() {
            n_removed += 1;
        }
    }
    n_removed
}

/// Whether every process of a run is known to have ended. A run that began a moment ago is not over.
fn is_over(runs: &Path, run: RunId) -> bool {
    let folder = RunFolder::of(runs, run);
    let is_over = |rank| matches!(folder.exit(rank), Ok(Some(_)));
    folder.spec().map_or(true, |spec| (0..).take(spec.ranks.len()).all(is_over))
}

fn size(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|meta| meta.len()).sum()
}

#[cfg(test)]
mod tests {
    use pollux_core::Generation;
    use pollux_model::JobId;

    use super::*;

    /// Runs 1 to 4 of job 7, of 100 bytes each; the fourth is current.
    fn check(longest_s: u64, most_bytes: u64, kept: &[u32]) {
        let folder = tempfile::tempdir().expect("a folder");
        let run = |start| RunId::new(JobId(7), Generation(start));
        for start in 1..=4 {
            let path = RunFolder::of(folder.path(), run(start)).path().to_owned();
            std::fs::create_dir(&path).expect("a folder");
            std::fs::write(path.join("0.log"), [b'x'; 100]).expect("a file");
        }
        let keep = KeepRuns { longest: Duration::from_secs(longest_s), most_bytes };
        let later = SystemTime::now() + Duration::from_mins(1);
        let n_removed = sweep(folder.path(), &BTreeSet::from([run(4)]), keep, later);
        let left: Vec<u32> = RunFolder::list(folder.path()).iter().map(|run| run.generation.0).collect();
        assert_eq!((left.as_slice(), n_removed), (kept, 4 - kept.len()));
    }

    #[test]
    fn old_runs_and_too_many_are_removed() {
        check(3_600, 1_000, &[1, 2, 3, 4]);
        check(3_600, 250, &[2, 3, 4]);
        check(3_600, 0, &[4]);
        check(30, 1_000, &[4]);
    }
}
