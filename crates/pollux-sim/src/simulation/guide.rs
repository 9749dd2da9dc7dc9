//! Who watches jobs train, and submits and gives up jobs while a simulation runs.

use pollux_model::Timestamp;

use crate::workload::Submission;

/// Decides on jobs by what becomes of them.
pub trait Guide {
    /// The job at `index` of the workload passed the end of an epoch, or is done. Jobs that are submitted in answer come
    /// after all others, in the order of the orders.
    fn passed(&mut self, now: Timestamp, index: usize, milestone: Milestone) -> Vec<Order>;
}

/// What a job has behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Milestone {
    /// So many epochs, and others are to come.
    Epochs(usize),
    /// All of them.
    Done,
}

/// What is to be done at once.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// A new job; its time of submission is set to the present, rounded up to a second.
    Submit(Submission),
    /// The job at this place of the workload is wanted no more. What it held is free at once; one that has ended stays
    /// as it is.
    GiveUp(usize),
}
