//! Processes that nobody expects any more.

use std::sync::Arc;
use std::time::Instant;

use rustix::process::Signal;
use tokio::sync::Mutex;

use super::environment::RUN_VARIABLE;
use super::process::{self, Process};
use super::run::RunId;

/// Kills every process of this state folder's runs that `is_orphan` says so of, and waits until all are gone.
///
/// Returns how many there were. It goes on until a look finds none, so that processes started meanwhile are found
/// too; one that even SIGKILL does not end (stuck in a driver) is waited for, since it still holds its GPU.
pub(super) async fn end(state: &str, is_orphan: impl Fn(RunId) -> bool) -> usize {
    let mut ended = 0;
    loop {
        let seen = look().await;
        let is_ours = |tag: &str| RunId::of_tag(state, tag).is_some_and(&is_orphan);
        let found: Vec<&Process> =
            seen.iter().filter(|(_, tag)| is_ours(tag)).map(|(process, _)| process).collect();
        if found.is_empty() {
            return ended;
        }
        // All are signalled before the first is waited for: a supervisor must not outlive its worker and judge it.
        let handles: Vec<_> = found.iter().filter_map(|process| process.open()).collect();
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

/// Every marked process of the machine that can be read, with its mark, as of some moment after the call.
///
/// Many runs may end at once, and a look at all processes takes long where there are many: whoever waited while another looked
/// shares what the next one sees.
async fn look() -> Arc<Vec<(Process, String)>> {
    static LATEST: Mutex<Option<Look>> = Mutex::const_new(None);
    let asked = Instant::now();
    let mut latest = LATEST.lock().await;
    if let Some(look) = latest.as_ref().filter(|look| look.began >= asked) {
        return Arc::clone(&look.found);
    }
    let began = Instant::now();
    let looking = tokio::task::spawn_blocking(|| process::with_variable(RUN_VARIABLE));
    let found = Arc::new(looking.await.unwrap_or_default());
    *latest = Some(Look { began, found: Arc::clone(&found) });
    found
}

/// What was seen, and since when it is so.
struct Look {
    began: Instant,
    found: Arc<Vec<(Process, String)>>,
}
