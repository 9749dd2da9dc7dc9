//! Everything an agent remembers, as plain data: it is saved with the job's checkpoints.

use std::collections::BTreeMap;

use pollux_model::fit::Fit;
use pollux_model::{BatchPlan, GpuType, Placement, Timestamp};

use crate::noise::NoiseState;
use crate::profile::Profile;

/// An experiment under way: a batch tried for its timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exploring {
    /// The batch tried.
    pub plan: BatchPlan,
    /// The batch to go back to.
    pub before: BatchPlan,
    /// Steps still wanted.
    pub steps_left: u32,
}

/// What an agent remembers. An agent restored from it goes on bit for bit.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentState {
    /// Step times.
    pub profile: Profile,
    /// Gradient noise.
    pub noise: NoiseState,
    /// Fitted step times, per GPU type.
    pub fits: BTreeMap<GpuType, Fit>,
    /// A fingerprint of what each fit was made from, to tell when there is more to learn.
    pub fit_revisions: BTreeMap<GpuType, u64>,
    /// Largest micro-batches found to fit in memory.
    pub micro_max: BTreeMap<GpuType, u32>,
    /// The batch in use.
    pub plan: Option<BatchPlan>,
    /// The GPUs in use.
    pub placement: Option<Placement>,
    /// Their type.
    pub gpu_type: Option<GpuType>,
    /// Steps since batch or placement last changed.
    pub steps_since_change: u64,
    /// An experiment under way.
    pub exploring: Option<Exploring>,
    /// What the learning rate is multiplied by.
    pub learning_rate_factor: f64,
    /// Work done, in steps at the initial batch size.
    pub progress: f64,
    /// Samples processed.
    pub samples: u64,
    /// Most replicas the job has run on.
    pub most_replicas: u32,
    /// When the last report was made.
    pub last_report: Option<Timestamp>,
}

impl Default for AgentState {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            noise: NoiseState::default(),
            fits: BTreeMap::new(),
            fit_revisions: BTreeMap::new(),
            micro_max: BTreeMap::new(),
            plan: None,
            placement: None,
            gpu_type: None,
            steps_since_change: 0,
            exploring: None,
            learning_rate_factor: 1.0,
            progress: 0.0,
            samples: 0,
            most_replicas: 0,
            last_report: None,
        }
    }
}

/// A saved state no agent can have written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{part}` of the saved agent state is not a number an agent could have written")]
pub struct InvalidState {
    /// The part that is wrong.
    pub part: &'static str,
}

impl AgentState {
    /// Refuses numbers that would poison everything after: NaN, infinities, negative counts of work.
    pub(crate) fn validate(&self) -> Result<(), InvalidState> {
        let noise = &self.noise;
        let sums = |sums: &crate::noise::MomentSums| [sums.scale, sums.sqr, sums.trace];
        let running = &noise.running;
        let noise_fine = sums(&noise.block)
            .into_iter()
            .chain(sums(&noise.held_back))
            .chain([running.sqr, running.trace, running.sqr_deviation])
            .all(f64::is_finite)
            && (0.0..=1.0).contains(&running.weight)
            && (0.0..=1.0).contains(&running.deviation_weight)
            && noise.acted.is_none_or(|acted| acted > 0.0 && acted.is_finite());
        let profile_fine = self.profile.entries.values().all(|entry| {
            entry.log_compute.is_finite()
                && entry.log_optim.is_finite()
                && entry.deviation >= 0.0
                && entry.deviation.is_finite()
                && entry.first.iter().all(|(compute, optim)| compute.is_finite() && optim.is_finite())
        });
        let part = if !noise_fine {
            "noise"
        } else if !profile_fine {
            "profile"
        } else if self.fits.values().any(|fit| fit.params.validate().is_err()) {
            "fits"
        } else if !(self.learning_rate_factor > 0.0 && self.learning_rate_factor.is_finite()) {
            "learning_rate_factor"
        } else if !(self.progress >= 0.0 && self.progress.is_finite()) {
            "progress"
        } else {
            return Ok(());
        };
        Err(InvalidState { part })
    }
}
