//! Which jobs arrive when: read from a file, or generated.
//!
//! | question | module |
//! | --- | --- |
//! | how is a workload read and written? | [`mod@file`] |
//! | what can be said of one to be generated? | [`recipe`] |
//! | how is it generated? | [`mod@generate`] |
//! | which jobs did a live scheduler have? | [`journal`] |
//! | how many GPUs does a user ask for? | [`requests`] |
//! | where do the figures come from? | [`philly`] |

pub mod file;
pub mod generate;
pub mod journal;
pub mod philly;
pub mod recipe;
pub mod requests;

pub use file::{Checks, Known, parse_workload, read_workload, write_workload};
pub use generate::{GenerateError, generate};
pub use journal::{JournalError, JournalJob, workload_of_journal};
pub use recipe::{Recipe, RecipeError, Requests};
pub use requests::Runtimes;

/// Jobs in the order of submission.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The stem of its file's name, or the text of its recipe.
    pub name: String,
    /// Its jobs; no two have the same name.
    pub jobs: Vec<Submission>,
}

/// One job of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    /// Its name, which no other job of the workload has.
    pub name: String,
    /// When it is submitted, in seconds from the start.
    pub at_secs: u64,
    /// What it trains.
    pub application: String,
    /// GPUs it asks for. Only policies that obey requests heed it.
    pub gpus: u32,
    /// Batch it asks for, of all GPUs together. Policies that adapt the batch do not heed it.
    pub batch: u64,
    /// How much longer it trains than its application's profile says: all its epochs are so many times as long. As
    /// the profile says if none.
    pub work: Option<f64>,
    /// The group of users it counts for, a team or a queue; none if it counts for itself.
    pub group: Option<String>,
}

impl Submission {
    /// The factor of its work: 1 if none is given.
    pub fn work_scale(&self) -> f64 {
        self.work.unwrap_or(1.0)
    }
}
