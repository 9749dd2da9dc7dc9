//! Sees one run through: from the start of its ranks until no process of it is left.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::cgroup::Cgroup;
use super::folder::{ExitRecord, RunFolder};
use super::how::{self, End, How};
use super::launch::{self, Launched};
use super::local::{EngineEvent, Inner};
use super::orphans;
use super::run::RunSpec;

/// Beyond the grace, how long a supervisor may take before it is killed itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// A run and what is needed to see it through.
pub(super) struct Watched {
    pub(super) spec: RunSpec,
    pub(super) folder: RunFolder,
    /// Supervisors started just now, by rank.
    pub(super) launched: Vec<Option<Launched>>,
    /// Becomes true when the run is asked to stop.
    pub(super) leaving: watch::Receiver<bool>,
}

/// Watches a run until it is over, frees its GPUs and says so.
pub(super) async fn see_through(inner: Arc<Inner>, watched: Watched) {
    let run = watched.spec.run;
    let folder = watched.folder.clone();
    let exits = ends(&inner, watched).await;
    let how = conclude(&inner.config.state, run, &folder, &exits).await;
    inner.forget(run);
    inner.say(EngineEvent::Ended { run, how });
}

/// The last step of every run: ends what is left of it, then judges it.
pub(super) async fn conclude(
    state: &str,
    run: super::run::RunId,
    folder: &RunFolder,
    exits: &[ExitRecord],
) -> How {
    // A supervisor that was killed could not clear its control group, which also holds who has shed the mark.
    groups(folder, exits.len()).for_each(|group| group.kill());
    orphans::end(state, |other| other == run).await;
    groups(folder, exits.len()).for_each(|group| group.remove());
    how::judge(exits, folder.stop().ok().flatten().as_ref())
}

/// The control groups of a run's ranks.
pub(super) fn groups(folder: &RunFolder, n_ranks: usize) -> impl Iterator<Item = Cgroup> {
    let paths = (0..).take(n_ranks).filter_map(|rank| folder.pid(rank).ok().flatten()?.cgroup);
    paths.map(Cgroup::at)
}

/// Waits for all ranks. When one ends otherwise than with 0 the others are asked to leave.
async fn ends(inner: &Inner, mut watched: Watched) -> Vec<ExitRecord> {
    let n_ranks = watched.spec.ranks.len();
    let grace = Duration::from_millis(watched.spec.told.grace_ms);
    let mut exits: Vec<Option<ExitRecord>> = vec![None; n_ranks];
    let mut ending = JoinSet::new();
    let mut coming = JoinSet::new();
    for (rank, launched) in (0..).zip(watched.launched) {
        let (handle, ready) = launched.map(Launched::split).unzip();
        let folder = watched.folder.clone();
        ending.spawn(async move { (rank, launch::end(&folder, rank, handle).await) });
        let folder = watched.folder.clone();
        coming.spawn(async move { launch::up(&folder, rank, ready).await });
    }

    let mut n_up = 0;
    let mut without_limits = None;
    let mut kill_at: Option<Instant> = None;
    loop {
        tokio::select! {
            // In this order, so that a run that comes up and ends at once is reported so.
            biased;
            Some(up) = coming.join_next() => {
                let Ok(Some(record)) = up else { continue };
                n_up += 1;
                without_limits = without_limits.or(record.without_limits);
                if n_up == n_ranks {
                    inner.say(EngineEvent::Up { run: watched.spec.run, without_limits: without_limits.take() });
                }
            }
            ended = ending.join_next() => {
                let Some(ended) = ended else { break };
                let Ok((rank, exit)) = ended else { continue };
                let fine = exit.end == End::Code(0);
                exits[usize::try_from(rank).unwrap_or(usize::MAX)] = Some(exit);
                if !fine && kill_at.is_none() && !ending.is_empty() {
                    ask_all(&watched.folder, n_ranks).await;
                    kill_at = Some(Instant::now() + grace + PATIENCE);
                }
            }
            Ok(()) = watched.leaving.changed(), if kill_at.is_none() => {
                kill_at = Some(Instant::now() + grace + PATIENCE);
            }
            () = tokio::time::sleep_until(kill_at.unwrap_or_else(Instant::now)), if kill_at.is_some() => {
                // The supervisors do not do their duty: stopped, or stuck on a dead disk.
                for rank in (0..).take(n_ranks) {
                    launch::kill(&watched.folder, rank);
                }
                kill_at = Some(Instant::now() + PATIENCE);
            }
        }
    }
    exits.into_iter().flatten().collect()
}

/// Asks every rank of a run to leave.
pub(super) async fn ask_all(folder: &RunFolder, n_ranks: usize) {
    let folder = folder.clone();
    let asking = tokio::task::spawn_blocking(move || {
        for rank in (0..).take(n_ranks) {
            launch::ask(&folder, rank);
        }
    });
    // It cannot fail but by a panic of the thread; the backstop is time.
    let _ = asking.await;
}
