//! Where experiments are made: runs by name, each made once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::artifact::Artifact;
use super::clusters::contender;
use crate::campaign::{Campaign, CampaignError, RunFailed, Source, World};
use crate::interference::part_beside_others;
use crate::metrics::{Metrics, Spread};
use crate::outcome::Run;
use crate::profile::Profile;
use crate::simulation::Options;
use crate::workload::{Recipe, RecipeError, Workload};

/// The workbench of all experiments: profiles, seeds, threads, and runs that were made before.
pub struct Lab {
    profiles: BTreeMap<String, Arc<Profile>>,
    seeds: Vec<u64>,
    threads: usize,
    artifact: Option<Artifact>,
    /// By everything that makes a run what it is.
    made: Mutex<BTreeMap<String, Arc<Kept>>>,
}

/// What an experiment keeps of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// Its figures.
    pub metrics: Metrics,
    /// Applications and completion times in seconds of the jobs that completed, in their order.
    pub jcts: Vec<(String, f64)>,
    /// Finish-time fairness of the jobs.
    pub rhos: Vec<f64>,
    /// Of the time of distributed jobs, the part beside another on one of their nodes.
    pub beside_others: f64,
}

/// Runs of one policy, one for each seed or workload.
#[derive(Clone, Debug)]
pub struct Series {
    /// The policy as it was written.
    pub policy: String,
    /// In the order of the seeds, or of the workloads.
    pub runs: Vec<Arc<Kept>>,
}

/// An experiment that cannot be made.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LabError {
    /// A policy that does not exist.
    #[error("policy `{0}`: {1}")]
    Policy(String, String),
    /// A recipe that is none.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// Runs that cannot be planned.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// A run that failed.
    #[error(transparent)]
    Run(#[from] RunFailed),
    /// Data that a fit or a table needs and that are not there.
    #[error("{0}")]
    Data(String),
}

impl Series {
    /// A figure's spread over the runs.
    pub fn spread(&self, figure: impl Fn(&Metrics) -> f64) -> Spread {
        Spread::of(self.runs.iter().map(|run| figure(&run.metrics)))
    }

    /// A figure's mean over the runs.
    pub fn mean(&self, figure: impl Fn(&Metrics) -> f64) -> f64 {
        self.spread(figure).mean
    }
}

impl Lab {
    /// A lab with these profiles, seeds and threads; in the artifact's world too, where its data are given.
    pub fn new(
        profiles: impl IntoIterator<Item = Arc<Profile>>,
        seeds: Vec<u64>,
        threads: usize,
        artifact: Option<Artifact>,
    ) -> Self {
        let profiles = profiles.into_iter().map(|profile| (profile.name().to_owned(), profile)).collect();
        Self { profiles, seeds, threads, artifact, made: Mutex::default() }
    }

    /// The seeds that comparisons are made over.
    pub fn seeds(&self) -> &[u64] {
        &self.seeds
    }

    /// The profiles by name.
    pub fn profiles(&self) -> &BTreeMap<String, Arc<Profile>> {
        &self.profiles
    }

    /// Runs at a time.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The authors' data, where they are given.
    pub fn artifact(&self) -> Option<&Artifact> {
        self.artifact.as_ref()
    }

    /// Each policy on a generated workload for each seed, in our own world.
    pub fn runs(&self, policies: &[&str], recipe: &str, options: &Options) -> Result<Vec<Series>, LabError> {
        self.runs_with(policies, recipe, options, &self.seeds)
    }

    /// The same for other seeds.
    pub fn runs_with(
        &self,
        policies: &[&str],
        recipe: &str,
        options: &Options,
        seeds: &[u64],
    ) -> Result<Vec<Series>, LabError> {
        let source = Source::Generated(recipe.parse::<Recipe>()?);
        let world = World::Profiles { profiles: self.profiles.clone(), options: options.clone() };
        self.conduct(policies, &[source], seeds, &world)
    }

    /// Each policy on each of these workloads, with the first seed.
    pub fn runs_of(
        &self,
        policies: &[&str],
        workloads: Vec<Workload>,
        world: &World,
    ) -> Result<Vec<Series>, LabError> {
        let sources: Vec<Source> = workloads.into_iter().map(Source::Fixed).collect();
        self.conduct(policies, &sources, &[1], world)
    }

    fn conduct(
        &self,
        policies: &[&str],
        sources: &[Source],
        seeds: &[u64],
        world: &World,
    ) -> Result<Vec<Series>, LabError> {
        let surroundings = match world {
            World::Profiles { options, .. } => format!("{options:?}"),
            World::Osdi21 { options, .. } => format!("{options:?}"),
        };
        let key =
            |policy: &str, workload: &str, seed: u64| format!("{policy} {workload} {seed} {surroundings}");
        let labels: Vec<String> = sources.iter().map(Source::label).collect();
        let cells = || labels.iter().flat_map(|label| seeds.iter().map(move |seed| (label, *seed)));
        let made = |policy: &str| {
            let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            cells()
                .map(|(label, seed)| made.get(&key(policy, label, seed)).cloned())
                .collect::<Option<Vec<_>>>()
        };
        let missing = policies.iter().filter(|policy| made(policy).is_none());
        let contenders = missing.map(|policy| contender(policy)).collect::<Result<Vec<_>, _>>()?;
        if !contenders.is_empty() {
            let campaign = Campaign::new(contenders, sources, seeds, world.clone())?;
            let results = campaign.execute(self.threads, |_| {}, |_, run| Kept::of(run))?;
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            for (record, kept) in results {
                made.insert(key(&record.policy, &record.workload, record.seed), Arc::new(kept));
            }
        }
        let series =
            |policy: &&str| Series { policy: (*policy).to_owned(), runs: made(policy).unwrap_or_default() };
        Ok(policies.iter().map(series).collect())
    }
}

impl Kept {
    fn of(run: &Run) -> Self {
        Self {
            metrics: Metrics::of(run),
            jcts: run
                .jobs
                .iter()
                .filter_map(|job| Some((job.application.clone(), job.jct_secs()?)))
                .collect(),
            rhos: run.jobs.iter().filter_map(|job| job.rho).collect(),
            beside_others: part_beside_others(&run.log).unwrap_or(0.0),
        }
    }
}

/// The ratio of two series, run by run: its mean, and half the width of its 95 % interval (Student's t).
pub fn paired(ours: &Series, theirs: &Series, figure: impl Fn(&Metrics) -> f64) -> (f64, f64) {
    let ratios = ours.runs.iter().zip(&theirs.runs);
    let ratios = Spread::of(ratios.map(|(a, b)| figure(&a.metrics) / figure(&b.metrics).max(1e-12)));
    let n = ours.runs.len().min(theirs.runs.len());
    (ratios.mean, student_t(n) * ratios.sd / libm::sqrt(n.max(1) as f64))
}

/// The two-sided 95 % quantile of Student's t for a mean of so many values.
pub(crate) fn student_t(n: usize) -> f64 {
    const QUANTILES: [f64; 15] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145,
        2.131,
    ];
    match n {
        0 | 1 => f64::INFINITY,
        n => QUANTILES.get(n - 2).copied().unwrap_or(2.131),
    }
}
