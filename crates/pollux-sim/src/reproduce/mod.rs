//! The paper's evaluation, made again: every table and figure that a simulator can show, ours beside the published values.
//!
//! An experiment is data: a name, where it stands in the paper, and what it does in a [`Lab`]. It finds words, tables,
//! charts and [`Claim`]s: published comparisons with whether they hold here.
//!
//! | question | module |
//! | --- | --- |
//! | which experiments are there? | [`EXPERIMENTS`] |
//! | how are runs made? | [`Lab`], each once |
//! | what was published? | `published` |
//! | tuned and realistic jobs, the fairness knob, finish-time fairness | `policies` |
//! | load, time between rounds, interference, exploration | `sensitivity` |
//! | interference under the authors' genetic algorithm, in their own world | `neighbours` |
//! | errors of the two models | `models` |
//! | mixed GPUs, rented nodes | `clusters` |
//! | newer GPUs | `generations` |
//! | hyper-parameter search | `search` |
//! | which settings should be the default | `defaults` |
//! | the authors' workloads in their own world | [`Artifact`] |

mod artifact;
mod clusters;
mod defaults;
mod findings;
mod generations;
mod lab;
mod models;
mod neighbours;
mod policies;
mod published;
mod report;
mod search;
mod sensitivity;

pub use artifact::Artifact;
pub use findings::{Claim, Findings, Grid};
pub(crate) use lab::student_t;
pub use lab::{Kept, Lab, LabError, Series, paired};
pub use report::{findings_json, page};

/// An experiment of the paper, or one that its critics asked for.
#[derive(Clone, Copy)]
pub struct Experiment {
    /// What it is chosen by.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Where it stands in the paper, or who asked for it.
    pub after: &'static str,
    conduct: fn(&Lab) -> Result<Findings, LabError>,
}

/// All experiments, in the order of the report.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "tuned",
        title: "Policies with tuned jobs",
        after: "OSDI'21, section 5.2, table 2",
        conduct: policies::tuned,
    },
    Experiment {
        name: "realistic",
        title: "Policies with realistic jobs",
        after: "OSDI'21, section 5.2, table 2",
        conduct: policies::realistic,
    },
    Experiment {
        name: "knob",
        title: "The fairness knob",
        after: "OSDI'21, section 5.2, table 2",
        conduct: policies::knob,
    },
    Experiment {
        name: "fairness",
        title: "Finish-time fairness",
        after: "OSDI'21, section 5.2",
        conduct: policies::fairness,
    },
    Experiment { name: "load", title: "Load", after: "OSDI'21, section 5.3", conduct: sensitivity::load },
    Experiment {
        name: "rounds",
        title: "Time between rounds",
        after: "OSDI'21, section 5.3",
        conduct: sensitivity::rounds,
    },
    Experiment {
        name: "interference",
        title: "Interference",
        after: "OSDI'21, section 5.3",
        conduct: sensitivity::interference,
    },
    Experiment {
        name: "exploration",
        title: "What exploring costs",
        after: "OSDI'21, section 5.3",
        conduct: sensitivity::exploration,
    },
    Experiment {
        name: "autoscaling",
        title: "Auto-scaling of one ImageNet job",
        after: "OSDI'21, section 5.3",
        conduct: clusters::autoscaling,
    },
    Experiment {
        name: "search",
        title: "Hyper-parameter search",
        after: "OSDI'21, section 5.3",
        conduct: search::search,
    },
    Experiment {
        name: "throughput-model",
        title: "The throughput model",
        after: "OSDI'21, section 3.2",
        conduct: models::throughput,
    },
    Experiment {
        name: "efficiency-model",
        title: "The efficiency model",
        after: "OSDI'21, section 3.1",
        conduct: models::efficiency,
    },
    Experiment {
        name: "mixed",
        title: "Several GPU types at once",
        after: "Sia, SOSP'23, table 3",
        conduct: clusters::mixed,
    },
    Experiment {
        name: "hardware",
        title: "Newer GPUs",
        after: "the paper's critics",
        conduct: generations::hardware,
    },
    Experiment {
        name: "defaults",
        title: "Which settings should be the default",
        after: "our own question",
        conduct: defaults::defaults,
    },
];

impl Experiment {
    /// The experiment of a name.
    pub fn find(name: &str) -> Option<&'static Self> {
        EXPERIMENTS.iter().find(|experiment| experiment.name == name)
    }

    /// Makes it.
    pub fn conduct(&self, lab: &Lab) -> Result<Findings, LabError> {
        (self.conduct)(lab)
    }
}

impl std::fmt::Debug for Experiment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Experiment").field("name", &self.name).finish_non_exhaustive()
    }
}
