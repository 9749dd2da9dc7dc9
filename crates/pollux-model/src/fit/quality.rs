//! How good a fit is: its error, what the data covered, and what lies outside.

use std::fmt;

use super::observation::Observation;
use crate::allocation::{Placement, Regime};
use crate::perf::PerfParams;

/// Relative error of predicted times of the synchronising pass (`optim_secs`) over some observations,
/// each counted once whatever its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RelativeError {
    /// The mean of `|predicted / observed - 1|`.
    pub mean: f64,
    /// The largest.
    pub worst: f64,
}

impl RelativeError {
    /// The error of `params` on `observations`; nothing without observations.
    pub fn of(params: &PerfParams, observations: &[Observation]) -> Option<Self> {
        let (mut sum, mut worst) = (0.0, 0.0_f64);
        for observation in observations {
            let predicted = params.last_micro_step_secs(observation.placement(), observation.micro_batch());
            let error = (predicted / observation.optim_secs() - 1.0).abs();
            sum += error;
            worst = worst.max(error);
        }
        (!observations.is_empty()).then(|| Self { mean: sum / observations.len() as f64, worst })
    }
}

/// The configurations a fit has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Smallest and largest micro-batch.
    pub micro_batch: (u32, u32),
    /// Whether one replica alone was seen.
    pub alone: bool,
    /// Fewest and most replicas seen on one node, of two or more.
    pub one_node: Option<(u32, u32)>,
    /// Fewest and most replicas seen on several nodes.
    pub distributed: Option<(u32, u32)>,
}

impl Coverage {
    /// What `observations` cover; nothing without observations.
    pub fn of(observations: &[Observation]) -> Option<Self> {
        let micro_batches = || observations.iter().map(Observation::micro_batch);
        let range = |regime: Regime| {
            let seen = || {
                let replicas = observations.iter().map(Observation::placement);
                replicas.filter(move |p| p.regime() == regime).map(Placement::n_replicas)
            };
            Some((seen().min()?, seen().max()?))
        };
        Some(Self {
            micro_batch: (micro_batches().min()?, micro_batches().max()?),
            alone: range(Regime::Alone).is_some(),
            one_node: range(Regime::OneNode),
            distributed: range(Regime::Distributed),
        })
    }

    /// In what ways predicting this configuration goes beyond what was seen; empty if it does not.
    pub fn extrapolations(&self, placement: Placement, micro_batch: u32) -> Vec<Extrapolation> {
        let mut found = Vec::new();
        let seen = match placement.regime() {
            Regime::Alone => self.alone.then_some((1, 1)),
            Regime::OneNode => self.one_node,
            Regime::Distributed => self.distributed,
        };
        match seen {
            None => found.push(Extrapolation::UnseenRegime(placement.regime())),
            Some((_, most)) if placement.n_replicas() > most => {
                found.push(Extrapolation::MoreReplicas { regime: placement.regime(), most });
            }
            Some((fewest, _)) if placement.n_replicas() < fewest => {
                found.push(Extrapolation::FewerReplicas { regime: placement.regime(), fewest });
            }
            Some(_) => {}
        }
        let (smallest, largest) = self.micro_batch;
        if micro_batch > largest {
            found.push(Extrapolation::LargerMicroBatch { largest });
        } else if micro_batch < smallest {
            found.push(Extrapolation::SmallerMicroBatch { smallest });
        }
        found
    }
}

/// One way in which a prediction goes beyond the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extrapolation {
    /// No placement of this kind was seen; its exchange is a guess.
    UnseenRegime(Regime),
    /// More replicas than were seen in this regime.
    MoreReplicas {
        /// The regime.
        regime: Regime,
        /// The most seen.
        most: u32,
    },
    /// Fewer replicas than were seen in this regime.
    FewerReplicas {
        /// The regime.
        regime: Regime,
        /// The fewest seen.
        fewest: u32,
    },
    /// A larger micro-batch than any seen.
    LargerMicroBatch {
        /// The largest seen.
        largest: u32,
    },
    /// A smaller micro-batch than any seen.
    SmallerMicroBatch {
        /// The smallest seen.
        smallest: u32,
    },
}

impl fmt::Display for Extrapolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnseenRegime(Regime::Alone) => write!(f, "one GPU alone was not observed"),
            Self::UnseenRegime(Regime::OneNode) => write!(f, "several GPUs of one node were not observed"),
            Self::UnseenRegime(Regime::Distributed) => write!(f, "several nodes were not observed"),
            Self::MoreReplicas { regime, most } => {
                write!(f, "more than {most} GPUs were not observed{}", on(*regime))
            }
            Self::FewerReplicas { regime, fewest } => {
                write!(f, "fewer than {fewest} GPUs were not observed{}", on(*regime))
            }
            Self::LargerMicroBatch { largest } => {
                write!(f, "micro-batches above {largest} were not observed")
            }
            Self::SmallerMicroBatch { smallest } => {
                write!(f, "micro-batches below {smallest} were not observed")
            }
        }
    }
}

fn on(regime: Regime) -> &'static str {
    match regime {
        Regime::Alone => "",
        Regime::OneNode => " on one node",
        Regime::Distributed => " on several nodes",
    }
}
