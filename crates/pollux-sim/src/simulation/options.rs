//! What can be chosen about a simulated world.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::cloud::Cloud;
use crate::cluster::ClusterShape;
use crate::faults::Faults;
use crate::log::Kept;

/// The world around the scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The nodes; of a rented cluster all that it may have.
    pub cluster: ClusterShape,
    /// Where nodes are rented, if they are.
    pub cloud: Option<Cloud>,
    /// Time between rounds; the policy's own if none.
    pub round: Option<Duration>,
    /// Time between the reports of an agent; the agent's own if none.
    pub report_every: Option<Duration>,
    /// Whether a job is done when its own agent has counted all its work, as `pollux-trainer` is, instead of when its
    /// profile says: agents follow the noise at a bounded rate, and count less than there was while it rises.
    pub agents_count: bool,
    /// What a restart costs.
    pub restart: RestartCost,
    /// The part of its speed that a distributed job loses beside another on one of its nodes: from 0 to less than 1.
    pub interference: f64,
    /// Spread of what agents measure around the truth, relative: 0.1 is 10 % for each step and gradient.
    pub noise: f64,
    /// Whether jobs take the largest batch their GPUs hold in one pass, whatever it is worth to training, as those do
    /// that know of throughput alone; for comparison.
    pub blind_batch: bool,
    /// How much the speed-up of an application's jobs counts; 1 for those that are not named.
    pub weights: BTreeMap<String, f64>,
    /// How much the speed-up of each job of a group counts, times that of its application; 1 for those that are not named.
    pub group_weights: BTreeMap<String, f64>,
    /// Whether new jobs build on what earlier ones of their application learned.
    pub history: bool,
    /// What goes wrong.
    pub faults: Faults,
    /// What is kept of what happens.
    pub log: Kept,
    /// The source of all chance.
    pub seed: u64,
}

impl Default for Options {
    /// The paper's cluster, 30 s for a restart, no interference, no noise, no faults.
    fn default() -> Self {
        Self {
            cluster: ClusterShape::default(),
            cloud: None,
            round: None,
            report_every: None,
            agents_count: false,
            restart: RestartCost::default(),
            interference: 0.0,
            noise: 0.0,
            blind_batch: false,
            weights: BTreeMap::new(),
            group_weights: BTreeMap::new(),
            history: false,
            faults: Faults::default(),
            log: Kept::default(),
            seed: 0,
        }
    }
}

/// What a restart costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RestartCost {
    /// The same for all.
    Fixed(Duration),
    /// What each application's profile says.
    PerApplication,
}

impl Default for RestartCost {
    /// The paper's average.
    fn default() -> Self {
        Self::Fixed(Duration::from_secs(30))
    }
}

/// Text that is no restart cost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no restart cost; write seconds, as in 30 or 12.5, or `application` for what each profile says"
)]
pub struct RestartCostError(String);

impl FromStr for RestartCost {
    type Err = RestartCostError;

    fn from_str(text: &str) -> Result<Self, RestartCostError> {
        if text == "application" {
            return Ok(Self::PerApplication);
        }
        let secs = text.strip_suffix('s').unwrap_or(text).parse().ok();
        let secs = secs.filter(|secs: &f64| (0.0..=86_400.0).contains(secs));
        let cost = secs.ok_or_else(|| RestartCostError(text.to_owned()))?;
        Ok(Self::Fixed(Duration::from_secs_f64(cost)))
    }
}

impl fmt::Display for RestartCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(cost) => write!(f, "{}", cost.as_secs_f64()),
            Self::PerApplication => f.write_str("application"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_seconds_or_the_profiles() {
        let fixed = |millis| Ok(RestartCost::Fixed(Duration::from_millis(millis)));
        assert_eq!("30".parse(), fixed(30_000));
        assert_eq!("12.5s".parse(), fixed(12_500));
        assert_eq!("application".parse(), Ok(RestartCost::PerApplication));
        for text in ["", "-1", "nan", "1e9", "30 s", "app"] {
            assert!(text.parse::<RestartCost>().is_err(), "{text}");
        }
    }
}
