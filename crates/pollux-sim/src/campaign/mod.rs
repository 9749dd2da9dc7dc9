//! Many runs: every policy on every workload with every seed, on several threads.
//!
//! | question | module |
//! | --- | --- |
//! | where do jobs run: in the artifact's world or among profiles? | [`World`] |
//! | what became of all runs? | [`Record`], [`Summary`], [`results_json`] |
//! | what is kept of one? | [`jobs_csv`], [`timeline_csv`] |

mod execute;
mod files;
mod results;
mod world;

use std::collections::BTreeSet;

use pollux_model::JobId;
use pollux_policy::AnyPolicy;

pub use execute::RunFailed;
pub use files::{jobs_csv, timeline_csv};
pub use results::{Record, Summary, VERSION, results_json, summarise};
pub use world::{World, WorldError};

use crate::log::Kept;
use crate::traces::Trace;
use crate::workload::{GenerateError, Recipe, Submission, Workload};

/// A policy and what its runs are called by.
pub struct Contender {
    /// The text it was chosen by.
    pub label: String,
    /// The policy.
    pub policy: Box<dyn AnyPolicy>,
}

impl Contender {
    /// Whether it may give jobs what their users ask for. Whoever adapts the batch does not heed requests.
    pub fn heeds_requests(&self) -> bool {
        !self.policy.about().adapts_batch
    }
}

/// Where the jobs of a run come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// The same jobs whatever the seed, which is then the policy's alone.
    Fixed(Workload),
    /// Other jobs for each seed.
    Generated(Recipe),
    /// Jobs of a trace; which applications they train differs by seed.
    Traced(Trace),
}

impl Source {
    /// What its runs are called by.
    pub fn label(&self) -> String {
        match self {
            Self::Fixed(workload) => workload.name.clone(),
            Self::Generated(recipe) => recipe.to_string(),
            Self::Traced(trace) => trace.spec.label(),
        }
    }
}

/// Runs to be made: policies by workloads by seeds.
pub struct Campaign {
    contenders: Vec<Contender>,
    /// Labels of the sources and the jobs of each by seed.
    workloads: Vec<(String, Vec<Workload>)>,
    seeds: Vec<u64>,
    world: World,
}

/// One run to be made.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'a> {
    /// Its place among all runs: by policy, then by workload, then by seed.
    pub index: usize,
    /// The policy's label.
    pub policy: &'a str,
    /// The workload's label.
    pub workload: &'a str,
    /// The seed.
    pub seed: u64,
    /// The jobs.
    pub jobs: &'a Workload,
}

/// Runs that cannot be planned.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CampaignError {
    /// Two policies or workloads of one label, whose runs could not be told apart.
    #[error("{what} `{label}` stands twice; its runs could not be told apart")]
    Twice {
        /// `policy` or `workload`.
        what: &'static str,
        /// The label.
        label: String,
    },
    /// A job that asks for more than there is, under a policy that may give jobs what they ask for.
    #[error("workload `{workload}`: job `{job}` asks for {gpus} GPUs, but {cluster} has {has}")]
    TooLarge {
        /// The workload.
        workload: String,
        /// The job.
        job: String,
        /// GPUs it asks for.
        gpus: u32,
        /// The cluster.
        cluster: String,
        /// GPUs it has.
        has: u32,
    },
    /// A workload that cannot be generated.
    #[error("workload `{label}`: {source}")]
    Generate {
        /// The recipe.
        label: String,
        /// Why not.
        source: GenerateError,
    },
}

impl Campaign {
    /// Every policy on every workload with every seed; workloads are generated here.
    pub fn new(
        contenders: Vec<Contender>,
        sources: &[Source],
        seeds: &[u64],
        world: World,
    ) -> Result<Self, CampaignError> {
        let labels: Vec<String> = sources.iter().map(Source::label).collect();
        once("policy", contenders.iter().map(|contender| contender.label.as_str()))?;
        once("workload", labels.iter().map(String::as_str))?;
        let mut workloads = Vec::with_capacity(sources.len());
        for (source, label) in sources.iter().zip(labels) {
            let jobs = |&seed: &u64| match source {
                Source::Fixed(workload) => Ok(workload.clone()),
                Source::Generated(recipe) => world.generate(recipe, seed),
                Source::Traced(trace) => world.map_trace(trace, seed),
            };
            let by_seed: Result<Vec<Workload>, GenerateError> = seeds.iter().map(jobs).collect();
            match by_seed {
                Ok(by_seed) => workloads.push((label, by_seed)),
                Err(source) => return Err(CampaignError::Generate { label, source }),
            }
        }
        if contenders.iter().any(Contender::heeds_requests) {
            for (label, by_seed) in &workloads {
                by_seed.iter().try_for_each(|workload| fits(label, workload, &world))?;
            }
        }
        Ok(Self { contenders, workloads, seeds: seeds.to_vec(), world })
    }

    /// The same, with everything that happens to this job kept in each run's log.
    #[must_use]
    pub fn telling(mut self, job: JobId) -> Self {
        let kept = self.world.kept();
        self.world.keep(Kept { story: Some(job), ..kept });
        self
    }

    /// How many runs there are.
    pub fn n_runs(&self) -> usize {
        self.contenders.len() * self.workloads.len() * self.seeds.len()
    }

    /// The world they take place in.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// All runs, in their order.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        (0..self.n_runs()).map(|index| self.cell(index))
    }

    fn cell(&self, index: usize) -> Cell<'_> {
        let (n_seeds, n_workloads) = (self.seeds.len(), self.workloads.len());
        let (label, by_seed) = &self.workloads[index / n_seeds % n_workloads];
        Cell {
            index,
            policy: &self.contenders[index / n_seeds / n_workloads].label,
            workload: label,
            seed: self.seeds[index % n_seeds],
            jobs: &by_seed[index % n_seeds],
        }
    }

    fn policy(&self, cell: &Cell<'_>) -> &dyn AnyPolicy {
        self.contenders[cell.index / self.seeds.len() / self.workloads.len()].policy.as_ref()
    }
}

fn fits(label: &str, workload: &Workload, world: &World) -> Result<(), CampaignError> {
    let cluster = world.cluster();
    let has = cluster.gpus();
    match workload.jobs.iter().find(|job| job.gpus > has) {
        None => Ok(()),
        Some(Submission { name, gpus, .. }) => {
            let (workload, job, gpus) = (label.to_owned(), name.clone(), *gpus);
            Err(CampaignError::TooLarge { workload, job, gpus, cluster: cluster.to_string(), has })
        }
    }
}

fn once<'a>(what: &'static str, labels: impl Iterator<Item = &'a str>) -> Result<(), CampaignError> {
    let mut seen = BTreeSet::new();
    for label in labels {
        if !seen.insert(label) {
            return Err(CampaignError::Twice { what, label: label.to_owned() });
        }
    }
    Ok(())
}
