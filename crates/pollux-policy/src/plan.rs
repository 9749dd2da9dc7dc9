//! What a policy answers.

use pollux_model::{Allocation, GpuType, JobId};

use crate::snapshot::{Carried, GroupId, Priority};

/// Who holds what, how good that is, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// One answer for each job, in the order of the snapshot.
    pub jobs: Vec<JobPlan>,
    /// How close to the best this is; none for policies without an objective.
    pub certificate: Option<Certificate>,
    /// What it took.
    pub work: Work,
    /// What the next round's snapshot should hold of this one.
    pub carried: Carried,
}

/// The answer for one job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPlan {
    /// Which job.
    pub job: JobId,
    /// What is to be done with it.
    pub decision: Decision,
    /// What it holds.
    pub allocation: Allocation,
    /// Why.
    pub reason: Reason,
}

/// What is to be done with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It stays as it is.
    Keep,
    /// It starts, or restarts with other GPUs.
    Place,
    /// It holds nothing for now.
    Wait,
    /// It will not be served; for policies that promise deadlines.
    Reject,
}

/// How good a plan is, and how good any plan could be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Certificate {
    /// The power mean of the speed-ups of the jobs that hold something.
    pub value: f64,
    /// No plan with as many starved jobs has a higher mean. (Where jobs of different weights starve, means over
    /// different jobs do not compare; then this is the mean this plan would have, were its sum over all jobs,
    /// with the price of leaving heavy ones waiting, as high as any plan's can be.)
    pub bound: f64,
    /// Jobs that hold nothing.
    pub starved: Starved,
    /// No plan starves fewer.
    pub starved_bound: Starved,
    /// Jobs that hold something.
    pub n_running: u32,
}

impl Certificate {
    /// How far below the bound the value is, as a fraction of the bound: from 0 to 1. A bound that bounds
    /// nothing (infinite, or no number) leaves all of it open.
    pub fn gap(&self) -> f64 {
        if self.bound <= self.value || self.bound <= 0.0 {
            return 0.0;
        }
        let gap = (self.bound - self.value) / self.bound;
        if gap.is_nan() { 1.0 } else { gap.clamp(0.0, 1.0) }
    }
}

/// Starved jobs, by priority. Ordered by the highest priority first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Starved {
    /// Of high priority.
    pub high: u32,
    /// Of normal priority.
    pub normal: u32,
    /// Of low priority.
    pub low: u32,
}

impl Starved {
    /// All together.
    pub fn total(self) -> u32 {
        self.high + self.normal + self.low
    }

    /// The count of one priority.
    pub fn of(&mut self, priority: Priority) -> &mut u32 {
        match priority {
            Priority::High => &mut self.high,
            Priority::Normal => &mut self.normal,
            Priority::Low => &mut self.low,
        }
    }
}

/// What a plan took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Units of work done in the search.
    pub units: u64,
    /// Units of work that were allowed.
    pub budget: u64,
    /// Why the search ended.
    pub stopped: Stopped,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Nothing to search.
    Done,
    /// The plan was good enough.
    GoodEnough,
    /// The budget was spent.
    Budget,
    /// The caller's deadline passed; the same budget in units repeats the plan.
    Deadline,
}

/// Why a job holds what it holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reason {
    /// Speed-up, restart not counted.
    pub speedup: Option<f64>,
    /// What speed-ups are measured against.
    pub against: Against,
    /// What it would be with one GPU more.
    pub more: Option<Step>,
    /// What it would be with one GPU fewer.
    pub fewer: Option<Step>,
    /// What keeps it from more.
    pub limit: Limit,
}

/// What a speed-up is measured against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Against {
    /// The job's part of the cluster, were it divided evenly.
    #[default]
    FairShare,
    /// One GPU.
    OneGpu,
}

/// The next larger or smaller allocation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// GPUs it would hold.
    pub gpus: u32,
    /// Its speed-up then, restart not counted.
    pub speedup: f64,
    /// What the cluster's value would change by at least, since a simple exchange with its neighbours achieves
    /// it; none if no such exchange was found.
    pub at_least: Option<f64>,
    /// What it would change by at the prices others pay: an estimate between the two.
    pub worth: f64,
    /// What it would change by at most, whatever everybody else did; proven by the prices.
    pub at_most: f64,
}

/// What keeps a job from holding more, or anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Limit {
    /// This policy gives no reasons.
    #[default]
    Unstated,
    /// Others make more of the GPUs.
    Price,
    /// More GPUs would not make it faster.
    NoGain,
    /// The most GPUs its user allows, or its batch limits.
    OwnMaximum,
    /// It grows step by step, and has not been seen on more.
    Exploration,
    /// Its nodes are full, and on several it would be slower.
    NodeSize,
    /// The restart would cost more than it gains.
    RestartPrice,
    /// A group may not hold more.
    GroupCap {
        /// Which group.
        group: GroupId,
        /// Of which type.
        gpu_type: GpuType,
    },
    /// The rest is kept for a group that is entitled to it.
    Reserved {
        /// Which group.
        group: GroupId,
        /// Of which type.
        gpu_type: GpuType,
    },
    /// More would pay, but no free place of that shape was found.
    Packing,
    /// It may not be moved.
    Pinned,
    /// It is restarting.
    Restarting,
    /// It has not reported yet: it runs on what it asked for until it does.
    Unprofiled,
    /// Not enough GPUs for all, and others came first.
    Starved,
    /// Nowhere in this cluster could it run.
    Impossible,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_gap(value: f64, bound: f64, gap: f64) {
        let (starved, n_running) = (Starved::default(), 1);
        let certificate = Certificate { value, bound, starved, starved_bound: starved, n_running };
        assert!((certificate.gap() - gap).abs() < 1e-12, "{certificate:?}: {}", certificate.gap());
    }

    #[test]
    fn a_gap_is_a_part_of_the_bound() {
        check_gap(3.0, 4.0, 0.25);
        check_gap(4.0, 4.0, 0.0);
        check_gap(0.0, 4.0, 1.0);
        // The last bits of a sum.
        check_gap(4.000_000_001, 4.0, 0.0);
        // Nobody runs.
        check_gap(0.0, 0.0, 0.0);
    }

    #[test]
    fn a_bound_on_nothing_closes_no_gap() {
        check_gap(3.0, f64::INFINITY, 1.0);
        check_gap(3.0, f64::NAN, 1.0);
        check_gap(f64::NAN, 4.0, 1.0);
        check_gap(f64::INFINITY, f64::INFINITY, 0.0);
    }
}
