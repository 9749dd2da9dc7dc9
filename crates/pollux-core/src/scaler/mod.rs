//! Cluster size as a decision beside the plan: which nodes to have, and which to give back.
//!
//! Nodes that can be had for money come in pools ([`Pool`]). Now and then the scheduler asks which sizes would suit the
//! jobs at hand ([`SizeQuestion`]); whoever answers only calls [`SizeQuestion::answer`]. Nodes are bought at once and
//! given back when nobody holds them: jobs are moved off first, so shrinking loses no work.

mod fleet;
mod outlook;
mod question;

use std::time::Duration;

use pollux_model::Timestamp;
pub use question::{PoolNow, SizeQuestion, Sizes};

pub use fleet::{Fleet, Stock, Way};

use crate::input::{NodeSpec, Refused};

/// A pool of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub u32);

/// Equal nodes that can be had and given back while the cluster runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Which pool.
    pub id: PoolId,
    /// What its nodes are like.
    pub node: NodeSpec,
    /// Price of a node for an hour, in any currency.
    pub price: f64,
    /// How long a node takes to be there, as expected.
    pub ready_after: Duration,
    /// How long a node is kept at least: what is paid for in any case.
    pub min_hold: Duration,
    /// Fewest nodes.
    pub least: u32,
    /// Most nodes.
    pub most: u32,
    /// Whether the provider may take nodes back, after a warning.
    pub spot: bool,
}

impl Pool {
    fn check(&self) -> Result<(), Refused> {
        let Self { id, least, most, .. } = *self;
        if self.node.gpus == 0 {
            return Err(Refused::NotPositive("gpus"));
        }
        if !(self.price >= 0.0 && self.price.is_finite()) {
            return Err(Refused::BadPrice(id));
        }
        if least > most {
            return Err(Refused::LeastAboveMost { pool: id, least, most });
        }
        Ok(())
    }

    /// When an order for nodes is given up: three times as long as expected, and ten minutes at least.
    fn overdue(&self, asked: Timestamp) -> Timestamp {
        asked + self.ready_after.saturating_mul(3).max(Duration::from_mins(10))
    }
}

/// How the size of the cluster is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaler {
    /// What a size is judged by.
    pub rule: ScaleRule,
    /// How long the size must have been wrong before it is changed; jobs that cannot run at all do not wait.
    pub patience: Duration,
}

impl Scaler {
    /// By goodput, within 0.35 to 0.65 (the band of AdaptDL's scheduler), after 15 minutes (the artifact's 15 turns).
    pub const GOODPUT: Self =
        Self { rule: ScaleRule::Goodput { low: 0.35, high: 0.65 }, patience: Duration::from_mins(15) };

    /// By throughput, down to a scaling efficiency of 0.1 (the default in the code of Or et al.).
    pub const THROUGHPUT: Self =
        Self { rule: ScaleRule::Throughput { worth: 0.1 }, patience: Duration::from_mins(15) };
}

/// What a size is judged by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScaleRule {
    /// The paper's: the utility of the cluster, the sum of speed-ups (goodput against one GPU of the same type) over the
    /// number of GPUs, stays between `low` and `high`. Beyond them the size nearest to their middle is sought.
    Goodput {
        /// Below it there are too many nodes.
        low: f64,
        /// Above it there are too few.
        high: f64,
    },
    /// Beyond the paper: the sizes at which work is cheapest when an hour of a job's time has a price too, that is the least
    /// of (price of all nodes + `job_hour` for each job) over the sum of speed-ups by goodput.
    Cost {
        /// What an hour of a job's time is worth, in the currency of prices.
        job_hour: f64,
    },
    /// After Or et al. (MLSys 2020), for comparison: nodes are added as long as throughput, whatever it is worth to
    /// training, grows by at least this part of what a node yields on average.
    Throughput {
        /// The least scaling efficiency of what is added: 1 is a linear speed-up.
        worth: f64,
    },
}

/// Which question about sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SizeId(pub u64);

/// Why a node is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It is not needed; it may still be kept after all.
    Spare,
    /// Its release was asked for.
    Released,
    /// Its provider takes it back then.
    Reclaimed(Timestamp),
}
