//! Who holds which GPU, seen from outside, again and again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::processes::{Kind, Seen, marked};

const LOOK_EVERY: Duration = Duration::from_millis(30);

/// Looks until it is asked what it saw.
pub(crate) struct Watch {
    enough: Arc<AtomicBool>,
    thread: JoinHandle<Observed>,
}

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) looks: u64,
    /// Most GPUs that were held at once.
    pub(crate) most_held: usize,
    /// What must never be, in words.
    pub(crate) wrong: Vec<String>,
}

impl Watch {
    pub(crate) fn begin(mark: String) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&enough);
        let thread = thread::spawn(move || {
            let mut observed = Observed::default();
            while !ended.load(Ordering::Relaxed) {
                observed.look(&mark);
                thread::sleep(LOOK_EVERY);
            }
            observed
        });
        Self { enough, thread }
    }

    pub(crate) fn end(self) -> Observed {
        self.enough.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

impl Observed {
    fn look(&mut self, mark: &str) {
        let seen = marked(mark);
        let mut holders: BTreeMap<String, &Seen> = BTreeMap::new();
        for worker in seen.iter().filter(|seen| seen.kind() == Kind::Worker) {
            for (what, may_share) in claims(worker) {
                let Some(other) = holders.insert(what.clone(), worker) else { continue };
                let is_same_run = run(other) == run(worker);
                // Processes are looked at one after the other: who came later was there together with who came before
                // only if the latter still is.
                if !(may_share && is_same_run) && other.is_alive() && worker.is_alive() {
                    self.wrong.push(format!(
                        "{what} is held twice: by run {} (process {}) and run {} (process {})",
                        run(other),
                        other.pid,
                        run(worker),
                        worker.pid
                    ));
                }
            }
        }
        self.looks += 1;
        self.most_held = self.most_held.max(holders.keys().filter(|what| what.starts_with("GPU")).count());
    }
}

/// What a worker has, and whether other workers of its run may have it too: its GPUs, its rank, and the right to train its job.
fn claims(worker: &Seen) -> Vec<(String, bool)> {
    let text = |name: &str| worker.variable(name).unwrap_or_default();
    let node = text("POLLUX_NODE");
    let gpus = text("CUDA_VISIBLE_DEVICES").split(',').map(|gpu| (format!("GPU {gpu} of {node}"), true));
    let job = (format!("job {}", text("POLLUX_JOB_ID")), true);
    let rank = (format!("rank {}", text("POLLUX_RUN")), false);
    gpus.chain([job, rank]).collect()
}

/// `STATE/JOB.GENERATION`.
fn run(worker: &Seen) -> &str {
    let tag = worker.variable("POLLUX_RUN").unwrap_or_default();
    tag.rsplit_once('.').map_or(tag, |(run, _)| run)
}
