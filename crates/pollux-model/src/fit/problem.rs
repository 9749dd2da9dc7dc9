//! The objective of a fit, with its derivatives.
//!
//! Root mean squared *log* error of both observed times, plus weak priors:
//!
//! ```text
//! R(ln T_grad) + R(ln T_last) + 1e-3 (γ - 1)² + 1e-2 [(β_n/α_n)² + (β_l/α_l)²]  (+ history)
//! ```
//!
//! With the plain loss this is the objective of the authors' artifact. The robust loss counts errors beyond
//! about a fifth linearly instead of by their square, so that a few outliers do not bend the curve.
//!
//! Times and costs enter by their logarithm, exponents as they are. Each root is majorised by a weighted sum
//! of squares (weight `1 / R`), so that one damped Gauss-Newton step serves both sums and the priors.

use super::Parameter;
use super::observation::Observation;
use crate::allocation::Regime;
use crate::compute::{EXPONENT_RANGE, StepTable};
use crate::math::{exp, ln};

/// Number of scalars; a vector holds them in the order of [`Parameter::ALL`].
pub(super) const N: usize = Parameter::ALL.len();
pub(super) type Vector = [f64; N];
pub(super) type Matrix = [[f64; N]; N];

pub(super) const ALPHA_GRAD: usize = Parameter::AlphaGrad as usize;
pub(super) const BETA_GRAD: usize = Parameter::BetaGrad as usize;
pub(super) const DELTA: usize = Parameter::DeltaGrad as usize;
pub(super) const ALPHA_LOCAL: usize = Parameter::AlphaLocal as usize;
pub(super) const BETA_LOCAL: usize = Parameter::BetaLocal as usize;
pub(super) const ALPHA_NODE: usize = Parameter::AlphaNode as usize;
pub(super) const BETA_NODE: usize = Parameter::BetaNode as usize;
pub(super) const GAMMA: usize = Parameter::Gamma as usize;
pub(super) const OPTIMIZER: usize = Parameter::OptimizerStep as usize;

/// The largest cost a fit considers, as a logarithm; keeps every exponential finite.
const LOG_MAX: f64 = 300.0;

/// Errors beyond this (in logarithms) count linearly under the robust loss: Huber's usual 1.345 times the
/// spread of the model's own error, which is up to 15 % on the T4 measurements of the paper.
const ROBUST_SCALE: f64 = 0.2;

/// Below this a root mean square counts as an exact fit: its gradient would be undefined.
const RMS_FLOOR: f64 = 1e-7;

/// The form of compute being fitted.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    Linear,
    Roofline,
    Table(StepTable),
}

/// A Gaussian prior on each parameter that earlier jobs determined: mean and spread of its logarithm (of
/// the exponents: of their value).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Prior {
    pub(super) of: [Option<(f64, f64)>; N],
    pub(super) strength: f64,
}

/// One observation, prepared.
struct Point {
    micro_batch: f64,
    log_micro_batch: f64,
    beyond_two: f64,
    regime: Regime,
    log_accum: f64,
    log_optim: f64,
    weight: f64,
    /// Log seconds of compute, where a table gives them.
    log_grad: f64,
}

/// What to minimise.
pub(super) struct Problem {
    points: Vec<Point>,
    pub(super) form: Form,
    pub(super) free: [bool; N],
    pub(super) low: Vector,
    pub(super) high: Vector,
    pub(super) prior: Option<Prior>,
    robust: bool,
    pub(super) optimizer_step: bool,
}

/// The objective at some point, and its local model.
#[derive(Clone)]
pub(super) struct Evaluation {
    pub(super) objective: f64,
    pub(super) gradient: Vector,
    pub(super) hessian: Matrix,
    /// Root mean squared log errors: of compute, and of the synchronising pass.
    pub(super) rms: [f64; 2],
}

/// Log errors of one observation and their derivatives.
struct Residuals {
    grad: f64,
    last: f64,
    d_grad: [f64; 3],
    d_last: Vector,
}

impl Problem {
    /// `floor` is the least cost considered; `optimizer_step` whether the model has one.
    pub(super) fn new(
        observations: &[Observation],
        form: Form,
        floor: f64,
        robust: bool,
        optimizer_step: bool,
    ) -> Self {
        let heaviest = observations.iter().map(Observation::weight).fold(0.0, f64::max);
        let scaled = |observation: &Observation| (observation.weight() / heaviest).max(1e-12);
        let total: f64 = observations.iter().map(scaled).sum();
        let points = observations
            .iter()
            .map(|observation| {
                let micro_batch = f64::from(observation.micro_batch());
                Point {
                    micro_batch,
                    log_micro_batch: ln(micro_batch),
                    beyond_two: f64::from(observation.placement().n_replicas().saturating_sub(2)),
                    regime: observation.placement().regime(),
                    log_accum: ln(observation.accum_secs()),
                    log_optim: ln(observation.optim_secs()),
                    weight: scaled(observation) / total,
                    log_grad: match &form {
                        // Between two of the smallest floats there are can lie nothing.
                        Form::Table(table) => ln(table.secs(micro_batch).max(f64::MIN_POSITIVE)),
                        _ => 0.0,
                    },
                }
            })
            .collect();
        let mut low = [ln(floor); N];
        let mut high = [LOG_MAX; N];
        for exponent in [DELTA, GAMMA] {
            (low[exponent], high[exponent]) = EXPONENT_RANGE;
        }
        Self { points, form, free: [true; N], low, high, prior: None, robust, optimizer_step }
    }

    pub(super) fn n_points(&self) -> usize {
        self.points.len()
    }

    pub(super) fn clamp(&self, theta: Vector) -> Vector {
        std::array::from_fn(|k| theta[k].clamp(self.low[k], self.high[k]))
    }

    pub(super) fn evaluate(&self, theta: &Vector) -> Evaluation {
        let costs = Costs::new(theta);
        let mut sums = [(0.0, [0.0; N], [[0.0; N]; N]), (0.0, [0.0; N], [[0.0; N]; N])];
        for point in &self.points {
            let residuals = self.residuals(theta, &costs, point);
            let (loss, weight) = self.loss(residuals.grad);
            sums[0].0 += point.weight * loss;
            let mut d_grad = [0.0; N];
            d_grad[..3].copy_from_slice(&residuals.d_grad);
            accumulate(&mut sums[0], point.weight * weight, residuals.grad, &d_grad, 3);
            let (loss, weight) = self.loss(residuals.last);
            sums[1].0 += point.weight * loss;
            accumulate(&mut sums[1], point.weight * weight, residuals.last, &residuals.d_last, N);
        }
        let rms = [sums[0].0.sqrt(), sums[1].0.sqrt()];
        let mut total =
            Evaluation { objective: rms[0] + rms[1], gradient: [0.0; N], hessian: [[0.0; N]; N], rms };
        for (root, (_, gradient, hessian)) in rms.iter().zip(&sums) {
            let scale = 1.0 / root.max(RMS_FLOOR);
            for i in 0..N {
                total.gradient[i] += scale * gradient[i];
                for j in 0..=i {
                    total.hessian[i][j] += scale * hessian[i][j];
                }
            }
        }
        self.add_priors(theta, &mut total);
        total
    }

    /// Squared (or robust) error and the weight its linearisation carries.
    fn loss(&self, residual: f64) -> (f64, f64) {
        if self.robust {
            let relative = residual / ROBUST_SCALE;
            let root = (1.0 + relative * relative).sqrt();
            (2.0 * ROBUST_SCALE * ROBUST_SCALE * (root - 1.0), 1.0 / root)
        } else {
            (residual * residual, 1.0)
        }
    }

    fn residuals(&self, theta: &Vector, costs: &Costs, point: &Point) -> Residuals {
        let (log_grad, d_grad) = match self.form {
            Form::Table(_) => (point.log_grad, [0.0; 3]),
            Form::Linear => {
                let grad = costs.alpha_grad + costs.beta_grad * point.micro_batch;
                let share = costs.alpha_grad / grad;
                (ln(grad), [share, 1.0 - share, 0.0])
            }
            Form::Roofline => {
                let norm =
                    LogNorm::of(theta[ALPHA_GRAD], theta[BETA_GRAD] + point.log_micro_batch, theta[DELTA]);
                (norm.value, [norm.share, 1.0 - norm.share, norm.d_exponent])
            }
        };
        let mut d_last = [0.0; N];
        let mut log_last = log_grad;
        let mut of_grad = 1.0;
        let sync = match point.regime {
            Regime::Alone => None,
            Regime::OneNode => Some((ALPHA_LOCAL, BETA_LOCAL, costs.alpha_local, costs.beta_local)),
            Regime::Distributed => Some((ALPHA_NODE, BETA_NODE, costs.alpha_node, costs.beta_node)),
        };
        if let Some((alpha_at, beta_at, alpha, beta)) = sync {
            let sync = alpha + beta * point.beyond_two;
            let norm = LogNorm::of(log_grad, ln(sync), theta[GAMMA]);
            log_last = norm.value;
            of_grad = norm.share;
            let of_alpha = alpha / sync;
            d_last[alpha_at] = (1.0 - norm.share) * of_alpha;
            d_last[beta_at] = (1.0 - norm.share) * (1.0 - of_alpha);
            d_last[GAMMA] = norm.d_exponent;
        }
        for k in 0..3 {
            d_last[k] = of_grad * d_grad[k];
        }
        if self.optimizer_step {
            let before = exp(log_last);
            let all = before + costs.optimizer;
            let of_before = before / all;
            for derivative in &mut d_last {
                *derivative *= of_before;
            }
            d_last[OPTIMIZER] = 1.0 - of_before;
            log_last = ln(all);
        }
        Residuals { grad: log_grad - point.log_accum, last: log_last - point.log_optim, d_grad, d_last }
    }

    fn add_priors(&self, theta: &Vector, total: &mut Evaluation) {
        let mut square = |k: usize, weight: f64, distance: f64| {
            total.objective += weight * distance * distance;
            total.gradient[k] += 2.0 * weight * distance;
            total.hessian[k][k] += 2.0 * weight;
        };
        square(GAMMA, 1e-3, theta[GAMMA] - 1.0);
        if self.form == Form::Roofline {
            square(DELTA, 1e-6, theta[DELTA] - 1.0);
        }
        if let Some(prior) = &self.prior {
            for (k, of) in prior.of.iter().enumerate() {
                if let (Some((mean, spread)), true) = (of, self.free[k]) {
                    square(k, prior.strength / (spread * spread), theta[k] - mean);
                }
            }
        }
        for (alpha, beta) in [(ALPHA_LOCAL, BETA_LOCAL), (ALPHA_NODE, BETA_NODE)] {
            // Kept finite: a slope e^30 times the offset is as bad as any.
            let ratio = exp((theta[beta] - theta[alpha]).min(30.0));
            let penalty = 1e-2 * ratio * ratio;
            total.objective += penalty;
            total.gradient[alpha] -= 2.0 * penalty;
            total.gradient[beta] += 2.0 * penalty;
            total.hessian[alpha][alpha] += 2.0 * penalty;
            total.hessian[beta][beta] += 2.0 * penalty;
            total.hessian[beta.max(alpha)][beta.min(alpha)] -= 2.0 * penalty;
        }
    }

    /// What the observations alone say about the parameters: the information matrix for residuals with a
    /// spread of at least `noise`.
    pub(super) fn information(&self, theta: &Vector, noise: [f64; 2]) -> Matrix {
        let costs = Costs::new(theta);
        let mut information = (0.0, [0.0; N], [[0.0; N]; N]);
        for point in &self.points {
            let residuals = self.residuals(theta, &costs, point);
            let weight = point.weight * self.points.len() as f64;
            let mut d_grad = [0.0; N];
            d_grad[..3].copy_from_slice(&residuals.d_grad);
            accumulate(&mut information, weight / (noise[0] * noise[0]), 0.0, &d_grad, 3);
            accumulate(&mut information, weight / (noise[1] * noise[1]), 0.0, &residuals.d_last, N);
        }
        information.2
    }
}

/// Adds one weighted residual to gradient and (lower) Hessian.
fn accumulate(sum: &mut (f64, Vector, Matrix), weight: f64, residual: f64, derivative: &Vector, used: usize) {
    for i in 0..used {
        if derivative[i] != 0.0 {
            let scaled = weight * derivative[i];
            sum.1[i] += scaled * residual;
            for j in 0..=i {
                sum.2[i][j] += scaled * derivative[j];
            }
        }
    }
}

/// Costs in seconds, once per evaluation.
struct Costs {
    alpha_grad: f64,
    beta_grad: f64,
    alpha_local: f64,
    beta_local: f64,
    alpha_node: f64,
    beta_node: f64,
    optimizer: f64,
}

impl Costs {
    fn new(theta: &Vector) -> Self {
        Self {
            alpha_grad: exp(theta[ALPHA_GRAD]),
            beta_grad: exp(theta[BETA_GRAD]),
            alpha_local: exp(theta[ALPHA_LOCAL]),
            beta_local: exp(theta[BETA_LOCAL]),
            alpha_node: exp(theta[ALPHA_NODE]),
            beta_node: exp(theta[BETA_NODE]),
            optimizer: exp(theta[OPTIMIZER]),
        }
    }
}

/// Logarithm of `(a^p + b^p)^(1/p)` from the logarithms of `a` and `b`.
struct LogNorm {
    value: f64,
    /// Derivative by `ln a`; that by `ln b` is the rest.
    share: f64,
    d_exponent: f64,
}

impl LogNorm {
    fn of(log_a: f64, log_b: f64, exponent: f64) -> Self {
        let larger = log_a.max(log_b);
        let ratio = exp(-exponent * (log_a - log_b).abs());
        let value = larger + libm::log1p(ratio) / exponent;
        let of_larger = 1.0 / (1.0 + ratio);
        let share = if log_a >= log_b { of_larger } else { 1.0 - of_larger };
        let d_exponent = (share * (log_a - value) + (1.0 - share) * (log_b - value)) / exponent;
        Self { value, share, d_exponent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::Placement;

    /// A few observations of each regime, not on any curve.
    fn observations() -> Vec<Observation> {
        [(1, 1, 8, 0.11, 0.12), (1, 1, 32, 0.2, 0.22), (1, 4, 16, 0.15, 0.3), (3, 9, 64, 0.31, 0.9)]
            .map(|(nodes, replicas, micro_batch, accum, optim)| {
                Observation::new(Placement::new(nodes, replicas).unwrap(), micro_batch, accum, optim).unwrap()
            })
            .to_vec()
    }

    #[test]
    fn gradients_match_finite_differences() {
        for form in [Form::Linear, Form::Roofline] {
            for robust in [false, true] {
                let mut problem = Problem::new(&observations(), form.clone(), 1e-12, robust, true);
                problem.prior = Some(Prior { of: [Some((-2.0, 0.3)); N], strength: 1e-2 });
                let theta = [-2.4, -5.0, 2.5, -3.0, -4.5, -1.0, -3.5, 1.7, -5.0];
                let at = problem.evaluate(&theta);
                for k in 0..N {
                    let (mut left, mut right) = (theta, theta);
                    left[k] -= 1e-6;
                    right[k] += 1e-6;
                    let difference =
                        (problem.evaluate(&right).objective - problem.evaluate(&left).objective) / 2e-6;
                    assert!((at.gradient[k] - difference).abs() < 1e-6, "{form:?} {k}: {difference}");
                }
            }
        }
    }
}
