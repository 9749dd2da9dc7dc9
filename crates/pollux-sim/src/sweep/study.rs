//! Many searches: every policy with every way to search and every seed, on several threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use super::report::Figures;
use super::{Search, Sweep, SweepError, search_on};
use crate::campaign::Contender;
use crate::profile::Profile;
use crate::simulation::Options;

/// Searches to be made.
pub struct Study {
    /// Who schedules.
    pub contenders: Vec<Contender>,
    /// How is searched.
    pub searches: Vec<Search>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// What is searched.
    pub sweep: Sweep,
    /// Profiles of the applications by name.
    pub profiles: BTreeMap<String, Arc<Profile>>,
    /// The cluster and all else; the seed is one of the seeds.
    pub options: Options,
}

/// What became of one search.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepRecord {
    /// The policy's label.
    pub policy: String,
    /// The way to search.
    pub search: Search,
    /// The seed.
    pub seed: u64,
    /// Its figures.
    pub figures: Figures,
}

/// The first search, in their order, that failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("policy `{policy}`, search `{search}`, seed {seed}: {source}")]
pub struct SweepFailed {
    /// The policy's label.
    pub policy: String,
    /// The way to search.
    pub search: Search,
    /// The seed.
    pub seed: u64,
    /// Why.
    pub source: Box<SweepError>,
}

impl Study {
    /// How many searches there are.
    pub fn n_runs(&self) -> usize {
        self.contenders.len() * self.searches.len() * self.seeds.len()
    }

    /// Makes all searches on so many threads: by policy, then by way, then by seed. Results are the same for any number
    /// of threads. `progress` is told after each search how many are done.
    pub fn execute(
        &self,
        n_threads: usize,
        mut progress: impl FnMut(usize),
    ) -> Result<Vec<SweepRecord>, SweepFailed> {
        let n_runs = self.n_runs();
        let next = AtomicUsize::new(0);
        let mut results = BTreeMap::new();
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..n_threads.clamp(1, n_runs.max(1)) {
                let (sender, next) = (sender.clone(), &next);
                scope.spawn(move || {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= n_runs {
                            break;
                        }
                        let result = self.run(index);
                        if result.is_err() {
                            // Later ones need not begin; earlier ones have begun.
                            next.store(n_runs, Ordering::Relaxed);
                        }
                        // The receiver stays until all senders are gone.
                        let _ = sender.send((index, result));
                    }
                });
            }
            drop(sender);
            for (n_done, (index, result)) in (1..).zip(receiver) {
                results.insert(index, result);
                progress(n_done);
            }
        });
        results.into_values().collect()
    }

    fn run(&self, index: usize) -> Result<SweepRecord, SweepFailed> {
        let (n_seeds, n_searches) = (self.seeds.len(), self.searches.len());
        let contender = &self.contenders[index / n_seeds / n_searches];
        let (policy, seed) = (contender.label.clone(), self.seeds[index % n_seeds]);
        let search = self.searches[index / n_seeds % n_searches];
        let options = Options { seed, ..self.options.clone() };
        match search_on(&self.sweep, search, &self.profiles, contender.policy.as_ref(), &options) {
            Ok(found) => Ok(SweepRecord { policy, search, seed, figures: found.figures() }),
            Err(error) => Err(SweepFailed { policy, search, seed, source: Box::new(error) }),
        }
    }
}
