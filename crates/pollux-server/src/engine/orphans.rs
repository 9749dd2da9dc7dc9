//! Processes that nobody expects any more.

use super::environment::RUN_VARIABLE;
use super::process::{self, Process};
use super::run::RunId;

use rustix::process::Signal;

/// Kills every process of this state folder's runs that `is_orphan` says so of, and waits until all are gone.
///
/// Returns how many there were. It goes on until a look finds none, so that processes started meanwhile are found
/// too; one that even SIGKILL does not end (stuck in a driver) is waited for, since it still holds its GPU.
pub(super) async fn end(state: &str, is_orphan: impl Fn(RunId) -> bool) -> usize {
    let mut ended = 0;
    loop {
        let found: Vec<Process> = look()
            .await
            .into_iter()
            .filter(|(_, tag)| RunId::of_tag(state, tag).is_some_and(&is_orphan))
            .map(|(process, _)| process)
            .collect();
        if found.is_empty() {
            return ended;
        }
        // All are signalled before the first is waited for: a supervisor must not outlive its worker and judge it.
        let handles: Vec<_> = found.iter().filter_map(Process::open).collect();
        for process in &found {
            process.signal(Signal::KILL);
        }
        for handle in handles {
            if process::over(handle).await.is_ok() {
                ended += 1;
            }
        }
    }
}

/// Every marked process of the machine that can be read, with its mark.
async fn look() -> Vec<(Process, String)> {
    let look = tokio::task::spawn_blocking(|| process::with_variable(RUN_VARIABLE));
    look.await.unwrap_or_default()
}
