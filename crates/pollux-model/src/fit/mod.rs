//! Learning the step-time model from observations.

mod candidate;
mod history;
mod observation;
mod problem;
mod quality;
mod solver;

pub use history::{History, PastFit};
pub use observation::{InvalidObservation, Observation};
pub use quality::{Coverage, Extrapolation, RelativeError};

use crate::perf::PerfParams;
use candidate::{Candidate, Objective};
use problem::Form;

/// Which form of compute to fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ComputeChoice {
    /// The data choose between the linear form, the roofline and a table.
    #[default]
    Auto,
    /// The paper's own model and objective: linear, no optimizer step.
    Linear,
    /// The roofline, whatever the data say.
    Roofline,
}

/// One scalar of the step-time model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Parameter {
    /// Compute, constant part.
    AlphaGrad,
    /// Compute, per sample.
    BetaGrad,
    /// Bend of the roofline.
    DeltaGrad,
    /// Exchange within a node, constant part.
    AlphaLocal,
    /// Exchange within a node, per replica beyond two.
    BetaLocal,
    /// Exchange across nodes, constant part.
    AlphaNode,
    /// Exchange across nodes, per replica beyond two.
    BetaNode,
    /// Overlap.
    Gamma,
    /// The optimizer's step.
    OptimizerStep,
}

impl Parameter {
    /// All of them, in the order of the paper.
    pub const ALL: [Self; 9] = [
        Self::AlphaGrad,
        Self::BetaGrad,
        Self::DeltaGrad,
        Self::AlphaLocal,
        Self::BetaLocal,
        Self::AlphaNode,
        Self::BetaNode,
        Self::Gamma,
        Self::OptimizerStep,
    ];

    /// Its name in formats and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::AlphaGrad => "alpha_grad",
            Self::BetaGrad => "beta_grad",
            Self::DeltaGrad => "delta_grad",
            Self::AlphaLocal => "alpha_local",
            Self::BetaLocal => "beta_local",
            Self::AlphaNode => "alpha_node",
            Self::BetaNode => "beta_node",
            Self::Gamma => "gamma",
            Self::OptimizerStep => "optimizer_step",
        }
    }
}

/// What to fit, and what is known beforehand.
#[derive(Clone, Copy, Debug, Default)]
pub struct FitRequest<'a> {
    /// The measurements.
    pub observations: &'a [Observation],
    /// The form of compute.
    pub compute: ComputeChoice,
    /// The previous fit of the same job: where to start.
    pub previous: Option<&'a PerfParams>,
    /// What earlier jobs of the same application were like.
    pub history: Option<&'a History>,
}

/// A fitted model, and how far to trust it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The parameters.
    pub params: PerfParams,
    /// Parameters the data do not determine: they are priors or guesses.
    pub undetermined: Vec<Parameter>,
    /// The value that was minimised; comparable between fits of one [`ComputeChoice`] and the same data.
    pub objective: f64,
    /// Error on the observations fitted.
    pub error: RelativeError,
    /// What was observed.
    pub coverage: Coverage,
}

/// Why there is no fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// Nothing to learn from.
    #[error("a fit needs at least one observation")]
    NoObservations,
}

/// Fits the step-time model to observations.
///
/// Bounded, deterministic, and never at a loss: with few observations it rests on priors and says which
/// parameters they are. What no observation speaks of costs nothing, so that jobs explore: the exchange of a
/// regime not yet seen is zero, except that several nodes are taken to be a tenth dearer than one, and half of
/// the compute is constant while only one micro-batch was seen (both from the paper). With a [`History`] of
/// earlier jobs, their figures take the place of these guesses.
///
/// ```
/// use pollux_model::Placement;
/// use pollux_model::fit::{FitRequest, Observation, fit};
///
/// let observations = [(8, 0.05), (16, 0.09), (32, 0.17)]
///     .map(|(micro_batch, secs)| Observation::new(Placement::ALONE, micro_batch, secs, secs).unwrap());
/// let fit = fit(&FitRequest { observations: &observations, ..FitRequest::default() }).unwrap();
/// let predicted = fit.params.last_micro_step_secs(Placement::ALONE, 24);
/// assert!((predicted / 0.13 - 1.0).abs() < 0.01);
/// ```
pub fn fit(request: &FitRequest<'_>) -> Result<Fit, FitError> {
    let observations = &in_order(request.observations);
    let request = &FitRequest { observations, ..*request };
    let coverage = Coverage::of(observations).ok_or(FitError::NoObservations)?;
    let candidate = match request.compute {
        ComputeChoice::Linear => Candidate::solve(request, &coverage, Form::Linear, Objective::Paper),
        ComputeChoice::Roofline => Candidate::solve(request, &coverage, Form::Roofline, Objective::Product),
        ComputeChoice::Auto => candidate::choose(request, &coverage),
    };
    let params = candidate.params(&coverage);
    let error = RelativeError::of(&params, observations).ok_or(FitError::NoObservations)?;
    let undetermined = candidate.undetermined(&coverage);
    Ok(Fit { params, undetermined, objective: candidate.objective(), error, coverage })
}

/// The observations in an order of their own: sums round differently from one order to the next, and where the
/// objective is flat that would show.
fn in_order(observations: &[Observation]) -> Vec<Observation> {
    let mut observations = observations.to_vec();
    // Times and weights are positive: their bits are ordered as they are.
    observations.sort_unstable_by_key(|o| {
        let [accum, optim, weight] = [o.accum_secs(), o.optim_secs(), o.weight()].map(f64::to_bits);
        (o.placement(), o.micro_batch(), accum, optim, weight)
    });
    observations
}
