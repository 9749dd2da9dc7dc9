//! Runs on several threads, in an order that no thread can change.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use super::{Campaign, Cell, Record, WorldError};
use crate::metrics::Metrics;
use crate::outcome::Run;

/// The first run, in their order, that failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("policy `{policy}`, workload `{workload}`, seed {seed}: {source}")]
pub struct RunFailed {
    /// The policy's label.
    pub policy: String,
    /// The workload's label.
    pub workload: String,
    /// The seed.
    pub seed: u64,
    /// Why.
    pub source: Box<WorldError>,
}

impl Campaign {
    /// Makes all runs on so many threads, and returns for each its figures and what `keep` made of it.
    ///
    /// `progress` is told after each run how many are done. Results are in the order of [`Campaign::cells`] and the same
    /// for any number of threads, but for the time spent. After a failure no later run is begun; the failure reported
    /// is that of the first run in order.
    pub fn execute<T: Send>(
        &self,
        n_threads: usize,
        mut progress: impl FnMut(usize),
        keep: impl Fn(&Cell<'_>, &Run) -> T + Sync,
    ) -> Result<Vec<(Record, T)>, RunFailed> {
        let n_runs = self.n_runs();
        let next = AtomicUsize::new(0);
        let first_failed = AtomicUsize::new(usize::MAX);
        let mut results: Vec<Option<(Record, T)>> = (0..n_runs).map(|_| None).collect();
        let mut failures: Vec<(usize, RunFailed)> = Vec::new();
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..n_threads.clamp(1, n_runs.max(1)) {
                let (sender, next, first_failed, keep) = (sender.clone(), &next, &first_failed, &keep);
                scope.spawn(move || {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= n_runs || index > first_failed.load(Ordering::Relaxed) {
                            break;
                        }
                        let result = self.run(&self.cell(index), keep);
                        if result.is_err() {
                            first_failed.fetch_min(index, Ordering::Relaxed);
                        }
                        // The receiver stays until all senders are gone.
                        let _ = sender.send((index, result));
                    }
                });
            }
            drop(sender);
            for (n_done, (index, result)) in (1..).zip(receiver) {
                match result {
                    Ok(result) => results[index] = Some(result),
                    Err(failed) => failures.push((index, failed)),
                }
                progress(n_done);
            }
        });
        match failures.into_iter().min_by_key(|(index, _)| *index) {
            Some((_, failed)) => Err(failed),
            None => Ok(results.into_iter().flatten().collect()),
        }
    }

    fn run<T>(&self, cell: &Cell<'_>, keep: impl Fn(&Cell<'_>, &Run) -> T) -> Result<(Record, T), RunFailed> {
        let began = Instant::now();
        let (policy, workload) = (cell.policy.to_owned(), cell.workload.to_owned());
        match self.world.simulate(cell.jobs, self.policy(cell), cell.seed) {
            Ok(run) => {
                let wall_secs = began.elapsed().as_secs_f64();
                let metrics = Metrics::of(&run);
                let n_jobs = run.jobs.len();
                let record = Record { policy, workload, seed: cell.seed, n_jobs, metrics, wall_secs };
                Ok((record, keep(cell, &run)))
            }
            Err(error) => Err(RunFailed { policy, workload, seed: cell.seed, source: Box::new(error) }),
        }
    }
}
