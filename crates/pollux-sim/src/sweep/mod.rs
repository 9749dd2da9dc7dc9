//! Hyper-parameter search as a workload: trials are jobs, and how they fare decides which come next and which are given up.
//!
//! Schedulers, agents and step times are those of any simulation. Accuracies are not measured anywhere: they follow a
//! formula and a seed ([`Curves`]).
//!
//! | question | module |
//! | --- | --- |
//! | what is searched? | [`SPACE`], [`Dimension`] |
//! | how accurate is a trial after each epoch? | [`Curves`] |
//! | where to try next? | [`Search`], [`Searcher`], [`tpe`] |
//! | when is a trial given up? | [`stopping`] |
//! | how does a search go through a cluster? | [`search_on`] |
//! | what of many searches, by policies, ways and seeds? | [`Study`] |
//! | what became of them? | [`rows`], [`pairs`], [`sweep_json`] |

mod curve;
mod report;
mod search;
mod space;
pub mod stopping;
mod study;
pub mod tpe;
mod trials;

use std::collections::BTreeMap;
use std::sync::Arc;

use pollux_policy::AnyPolicy;

pub use curve::Curves;
pub use report::{Figures, Pair, Row, SWEEP_VERSION, pairs, rows, sweep_json};
pub use search::{Search, SearchError, Searcher};
pub use space::{Dimension, Point, SPACE, Scale};
pub use study::{Study, SweepFailed, SweepRecord};
pub use trials::{Found, Trial};

use crate::cluster::ClusterShape;
use crate::profile::{PackedOn, Profile};
use crate::simulation::{Options, SimulationError, simulate_guided};
use crate::workload::{Runtimes as _, Workload};
use trials::Searching;

/// A search to be made, but for the way it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// How many trials there are; at least one.
    pub n_trials: usize,
    /// How many of them are submitted at a time; at least one.
    pub at_once: usize,
    /// What each trains.
    pub application: String,
    /// GPUs that each asks for. Policies that choose do not heed it.
    pub gpus: u32,
    /// Batch that each asks for; the fastest one on its GPUs if none. Policies that adapt the batch do not heed it.
    pub batch: Option<u64>,
    /// Whether trials below the median of earlier ones are given up, besides those that the search gives up.
    pub median: bool,
}

impl Default for Sweep {
    /// The paper's: 100 trials of ResNet18 on CIFAR-10 with 4 GPUs each. That 4 run at a time follows from its figures: 100
    /// trials of 34 min in 14 h.
    fn default() -> Self {
        let application = "cifar10".to_owned();
        Self { n_trials: 100, at_once: 4, application, gpus: 4, batch: None, median: false }
    }
}

/// A search that cannot be had.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SweepError {
    /// No profile of the application.
    #[error("there is no profile of application `{application}`; there are {}", .known.join(", "))]
    NoProfile {
        /// What trials are to train.
        application: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A request that the application cannot be trained with.
    #[error("`{application}` cannot train on {gpus} GPUs of {cluster}{}", .batch.map_or_else(String::new, |batch| format!(" with a batch of {batch}")))]
    Impossible {
        /// What trials are to train.
        application: String,
        /// GPUs of each.
        gpus: u32,
        /// The batch, if one was given.
        batch: Option<u64>,
        /// The cluster.
        cluster: String,
    },
    /// The simulation failed.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
}

impl Sweep {
    /// The profile of its application, and the batch that each trial asks for: the given one, or of the smallest batch
    /// and its doubles the one that completes first.
    pub fn request<'p>(
        &self,
        profiles: &'p BTreeMap<String, Arc<Profile>>,
        cluster: &ClusterShape,
    ) -> Result<(&'p Arc<Profile>, u64), SweepError> {
        let Self { application, gpus, batch, .. } = self;
        let profile = profiles.get(application).ok_or_else(|| SweepError::NoProfile {
            application: application.clone(),
            known: profiles.keys().cloned().collect(),
        })?;
        let secs = |batch: u64| {
            let packed = PackedOn::cluster(profile, cluster)?;
            if *gpus <= packed.max_gpus() { packed.run_secs(*gpus, batch) } else { None }
        };
        let limits = profile.limits();
        let doubles = std::iter::successors(Some(limits.initial().0), |batch| batch.checked_mul(2));
        let tried: Vec<u64> = match batch {
            Some(batch) => vec![*batch],
            None => doubles.take_while(|batch| *batch <= limits.max().0).collect(),
        };
        let timed = tried.into_iter().filter_map(|batch| Some((secs(batch)?, batch)));
        let best = timed.reduce(|best, next| if next.0 < best.0 { next } else { best });
        let impossible = || SweepError::Impossible {
            application: application.clone(),
            gpus: *gpus,
            batch: *batch,
            cluster: cluster.to_string(),
        };
        best.map(|(_, batch)| (profile, batch)).ok_or_else(impossible)
    }
}

/// Makes a search on a simulated cluster. The seed of the options is that of all chance, that of the search included.
///
/// ```
/// use std::collections::BTreeMap;
/// use pollux_policy::Fifo;
/// use pollux_sim::profile::builtin;
/// use pollux_sim::simulation::Options;
/// use pollux_sim::sweep::{Search, Sweep, search_on};
///
/// let profiles: BTreeMap<_, _> = builtin().into_iter().map(|p| (p.name().to_owned(), p)).collect();
/// let sweep = Sweep { n_trials: 5, ..Sweep::default() };
/// let found = search_on(&sweep, Search::Random, &profiles, &Fifo, &Options::default()).unwrap();
/// assert_eq!(found.trials.len(), 5);
/// assert!(found.figures().best > 0.5);
/// ```
pub fn search_on(
    sweep: &Sweep,
    search: Search,
    profiles: &BTreeMap<String, Arc<Profile>>,
    policy: &dyn AnyPolicy,
    options: &Options,
) -> Result<Found, SweepError> {
    let (profile, batch) = sweep.request(profiles, &options.cluster)?;
    let mut trials = Searching::new(sweep, search, batch, options.seed, profile.training().n_epochs());
    let workload = Workload { name: "sweep".to_owned(), jobs: trials.first() };
    let run = simulate_guided(&workload, profiles, policy, options, &mut trials)?;
    Ok(trials.found(&run))
}
