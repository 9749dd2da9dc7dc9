//! Earlier jobs of the same application, as a prior for the next.

use super::candidate::BENT;
use super::problem::{ALPHA_GRAD, BETA_GRAD, DELTA, GAMMA, N, Prior, Vector};
use super::{Fit, Parameter};
use crate::compute::Compute;
use crate::math::ln;
use crate::perf::PerfParams;

/// How a finished job's fit is remembered.
#[derive(Clone, Debug, PartialEq)]
pub struct PastFit {
    /// Its parameters.
    pub params: PerfParams,
    /// Those its data did not determine; they teach nothing.
    pub undetermined: Vec<Parameter>,
}

impl From<&Fit> for PastFit {
    fn from(fit: &Fit) -> Self {
        Self { params: fit.params.clone(), undetermined: fit.undetermined.clone() }
    }
}

/// What earlier jobs of the same application, on the same GPU type, were like: mean and spread of each
/// parameter over the jobs that determined it.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    of: [Option<(f64, f64)>; N],
}

/// Jobs of one application differ by at least this much: in a cost's logarithm, and in an exponent.
const LEAST_SPREAD: (f64, f64) = (0.2, 0.3);

/// How strongly one observation's worth of history pulls; fades as observations come in.
const STRENGTH: f64 = 1e-2;

impl History {
    /// Gathers what past jobs determined; nothing if they determined nothing. Parameters that describe no
    /// step time teach nothing either.
    pub fn of<'a>(jobs: impl IntoIterator<Item = &'a PastFit>) -> Option<Self> {
        let mut values: [Vec<f64>; N] = Default::default();
        for job in jobs.into_iter().filter(|job| job.params.validate().is_ok()) {
            let theta = logs(&job.params);
            for (k, parameter) in Parameter::ALL.into_iter().enumerate() {
                if theta[k].is_finite() && !job.undetermined.contains(&parameter) {
                    values[k].push(theta[k]);
                }
            }
        }
        let of: [_; N] = std::array::from_fn(|k| {
            let least = if k == DELTA || k == GAMMA { LEAST_SPREAD.1 } else { LEAST_SPREAD.0 };
            mean_and_spread(&values[k]).map(|(mean, spread)| (mean, spread.max(least)))
        });
        of.iter().any(Option::is_some).then_some(Self { of })
    }

    /// The mean of a parameter, as a fit holds it.
    pub(super) fn mean(&self, k: usize) -> Option<f64> {
        self.of[k].map(|(mean, _)| mean)
    }

    pub(super) fn knows_compute(&self) -> bool {
        self.of[ALPHA_GRAD].is_some() && self.of[BETA_GRAD].is_some()
    }

    /// Whether compute bent visibly in earlier jobs.
    pub(super) fn prefers_roofline(&self) -> bool {
        self.mean(DELTA).is_some_and(|delta| delta > BENT)
    }

    pub(super) fn prior(&self, n_points: usize) -> Prior {
        Prior { of: self.of, strength: STRENGTH / n_points.max(1) as f64 }
    }
}

fn mean_and_spread(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
    (!values.is_empty()).then(|| (mean, variance.sqrt()))
}

/// The parameters as a fit holds them: costs by their logarithm, exponents as they are, what the form lacks
/// as NaN. A cost of zero is minus infinity.
pub(super) fn logs(params: &PerfParams) -> Vector {
    let (alpha, beta, delta) = match params.grad {
        Compute::Linear { alpha, beta } => (ln(alpha), ln(beta), 1.0),
        Compute::Roofline { alpha, beta, delta } => (ln(alpha), ln(beta), delta),
        Compute::Table(_) => (f64::NAN, f64::NAN, f64::NAN),
    };
    [
        alpha,
        beta,
        delta,
        ln(params.sync_local.alpha),
        ln(params.sync_local.beta),
        ln(params.sync_node.alpha),
        ln(params.sync_node.beta),
        params.gamma,
        ln(params.optimizer_step),
    ]
}
