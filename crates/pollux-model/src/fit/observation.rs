//! What a fit learns from: measured times of a configuration.

use crate::allocation::Placement;

/// Times of one configuration, as measured: one distinct (placement, micro-batch) seen once or many times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    placement: Placement,
    micro_batch: u32,
    accum_secs: f64,
    optim_secs: f64,
    weight: f64,
}

impl Observation {
    /// `accum_secs`: forward and backward pass of a micro-batch that does not synchronise. `optim_secs`:
    /// the pass that does, exchange and optimizer step included. The weight is 1.
    pub fn new(
        placement: Placement,
        micro_batch: u32,
        accum_secs: f64,
        optim_secs: f64,
    ) -> Result<Self, InvalidObservation> {
        if micro_batch == 0 {
            return Err(InvalidObservation::ZeroMicroBatch);
        }
        for (what, secs) in [("accumulation", accum_secs), ("optimizer step", optim_secs)] {
            if !(secs > 0.0 && secs.is_finite()) {
                return Err(InvalidObservation::NotATime { what, secs });
            }
        }
        Ok(Self { placement, micro_batch, accum_secs, optim_secs, weight: 1.0 })
    }

    /// The same, counting `weight` times as much as others of weight 1.
    pub fn with_weight(self, weight: f64) -> Result<Self, InvalidObservation> {
        if weight > 0.0 && weight.is_finite() {
            Ok(Self { weight, ..self })
        } else {
            Err(InvalidObservation::NotAWeight { weight })
        }
    }

    /// Where it was measured.
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// Samples of one pass on one GPU.
    pub fn micro_batch(&self) -> u32 {
        self.micro_batch
    }

    /// Seconds of a pass that does not synchronise.
    pub fn accum_secs(&self) -> f64 {
        self.accum_secs
    }

    /// Seconds of the pass that synchronises, with the optimizer's step.
    pub fn optim_secs(&self) -> f64 {
        self.optim_secs
    }

    /// How much it counts.
    pub fn weight(&self) -> f64 {
        self.weight
    }
}

/// Numbers that are no measurement.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum InvalidObservation {
    /// A pass over nothing.
    #[error("the micro-batch must be at least 1")]
    ZeroMicroBatch,
    /// A time that is none.
    #[error("the {what} time must be positive and finite, not {secs}")]
    NotATime {
        /// Which of the two.
        what: &'static str,
        /// What was given.
        secs: f64,
    },
    /// A weight that is none.
    #[error("the weight must be positive and finite, not {weight}")]
    NotAWeight {
        /// What was given.
        weight: f64,
    },
}
