//! Learning the step-time model from observations.

mod observation;
mod quality;

pub use observation::{InvalidObservation, Observation};
pub use quality::{Coverage, Extrapolation, RelativeError};

use crate::perf::PerfParams;

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

/// Earlier jobs of the same application.
#[derive(Clone, Debug, PartialEq)]
pub struct History;

/// A fitted model, and how far to trust it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The parameters.
    pub params: PerfParams,
    /// Parameters the data do not determine: they are priors or guesses.
    pub undetermined: Vec<Parameter>,
    /// The value that was minimised.
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

/// Fits the step-time model.
pub fn fit(_request: &FitRequest<'_>) -> Result<Fit, FitError> {
    Err(FitError::NoObservations)
}
