//! What can be chosen about the objective, as data.

use std::time::Duration;

use crate::policy::Cadence;

/// The objective and the effort, without which no plan can be judged or repeated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The exponent `p` of the mean of speed-ups: 1 is the sum, -1 the paper's default, -10 nearly max-min.
    pub fairness: f64,
    /// What a speed-up is measured against.
    pub fair_share: FairShare,
    /// How strongly short jobs are preferred to long ones: 0 not at all, 1 as weights by size have it
    /// (`docs/concepts/size-aware.md`).
    pub size: f64,
    /// What moving a job costs in its speed-up.
    pub restart_price: RestartPrice,
    /// How far a job may grow beyond what it has been seen on: a multiple of the most GPUs it has held.
    pub exploration: f64,
    /// Whether two jobs on several nodes each may share one.
    pub avoid_interference: bool,
    /// Added to every speed-up, and what a job without GPUs is valued at.
    pub floor: f64,
    /// Multiplies every speed-up before the floor is added.
    pub scale: f64,
    /// Whether a plan is also made when a job arrives or ends, [`Settings::APART`] after the one before at the earliest.
    pub on_events: bool,
    /// How long to search, and when that is enough.
    pub effort: Effort,
}

impl Settings {
    /// The paper's objective: harmonic mean, its restart price, growth by at most two.
    pub const PAPER: Self = Self {
        fairness: -1.0,
        fair_share: FairShare::Packed,
        size: 0.0,
        restart_price: RestartPrice::Paper,
        exploration: 2.0,
        avoid_interference: true,
        floor: 0.0,
        scale: 1.0,
        on_events: false,
        effort: Effort::DEFAULT,
    };

    /// The paper's objective with a horizon of two minutes for restarts and growth by at most four. Chosen in simulation, on
    /// workloads of 0.5, 1.5 and 2 times the paper's load (`docs/concepts/evaluation.md`).
    pub const TUNED: Self = Self {
        restart_price: RestartPrice::Horizon(Duration::from_mins(2)),
        exploration: 4.0,
        ..Self::PAPER
    };

    /// For jobs that differ in size, as measured in simulation (`docs/concepts/size-aware.md`): speed-ups against
    /// one GPU, a horizon of 200 s for restarts (the best with application history), growth by at most four.
    pub const SIZE_AWARE: Self = Self {
        fairness: 0.5,
        fair_share: FairShare::OneGpu,
        size: 1.0,
        restart_price: RestartPrice::Horizon(Duration::from_secs(200)),
        ..Self::TUNED
    };

    /// What `pollux` does unless told otherwise: weights by size at half their strength, and plans whenever a job arrives or
    /// ends. Chosen in simulation over loads (`docs/guides/choose-a-policy.md`).
    pub const BALANCED: Self = Self { size: 0.5, on_events: true, ..Self::SIZE_AWARE };

    /// What lies at least between two plans, that a busy cluster not be planned for all the time.
    pub const APART: Duration = Duration::from_secs(10);

    /// When plans are wanted: every minute, as in the paper, and on events where these settings say so.
    pub(crate) fn cadence(&self) -> Cadence {
        Cadence { every: Duration::from_mins(1), on_events: self.on_events.then_some(Self::APART) }
    }

    /// The objective as the authors' artifact codes it for nodes of `gpus_per_node` GPUs: one-node fair share (B3), first starts
    /// discounted (B6), and a floor that swamps the mean where jobs starve (B7).
    pub fn osdi21(gpus_per_node: u32) -> Self {
        Self {
            fair_share: FairShare::OneNode,
            restart_price: RestartPrice::Osdi21,
            floor: 0.001,
            scale: 1.0 / f64::from(gpus_per_node.max(1)),
            ..Self::PAPER
        }
    }
}

/// The allocation a speed-up is measured against: a job's part of the cluster, were it divided evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FairShare {
    /// On as few nodes as hold it.
    Packed,
    /// One GPU, however many jobs there are.
    OneGpu,
    /// As if on one node, however many GPUs that is; what the authors' artifact does (B3).
    OneNode,
}

/// What a restart costs: the factor by which the speed-up of a changed allocation is multiplied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RestartPrice {
    /// Nothing.
    Free,
    /// `max(T - R d, 0) / (T + d)`, `T` the age, `R` the restarts so far, `d` the cost of one; 1 for a job
    /// that never ran.
    Paper,
    /// The same, first starts included, as the authors' artifact has it (B6).
    Osdi21,
    /// `1 - d / min(H, remaining time)`: a restart must pay for itself within the horizon. `H` is never
    /// taken below three restarts.
    Horizon(Duration),
}

/// The search's budget. It counts work, not seconds, so that a plan is the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Units of work for each job (a unit is about one job tried in one place).
    pub per_job: u64,
    /// Units of work besides, so that small clusters are searched well.
    pub at_least: u64,
    /// A search ends this close to its bound (a fraction of the value).
    pub good_enough: f64,
    /// Where everybody can stay this close to the bound, nothing is searched.
    pub in_place: f64,
    /// Jobs in place move only if the value rises by more than this fraction.
    pub epsilon: f64,
}

impl Effort {
    /// The default, the same everywhere. Who stays is never farther from the best than `in_place`: a search that
    /// ends at `good_enough` and gains no more than `epsilon` began below their sum.
    pub const DEFAULT: Self =
        Self { per_job: 200, at_least: 20_000, good_enough: 5e-4, in_place: 8e-4, epsilon: 3e-4 };

    /// Units of work for so many jobs.
    pub fn budget(&self, n_jobs: usize) -> u64 {
        self.at_least.saturating_add(self.per_job.saturating_mul(n_jobs as u64))
    }
}
