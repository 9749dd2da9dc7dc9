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

/// An optimizer step below this share of a pass, as a logarithm, is not worth computing: a billionth.
const LOG_NOTHING: f64 = -20.0;

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
    /// Which of the distinct micro-batches.
    size: usize,
    /// Which of the distinct placements.
    shape: usize,
    log_accum: f64,
    log_optim: f64,
    weight: f64,
}

/// A micro-batch; many observations share it.
struct Size {
    micro_batch: f64,
    log_micro_batch: f64,
    /// Log seconds of compute, where a table gives them.
    log_table: f64,
}

/// A placement, as far as it matters: its regime, and its replicas beyond two.
type Shape = (Regime, u32);

/// Log seconds of the exchange on a placement, and the share of its constant part.
struct Sync {
    log_secs: f64,
    of_alpha: f64,
    /// Which of [`LAST`] it depends on.
    of: usize,
}

/// Log seconds of compute, and their derivatives by its parameters.
struct Grad {
    log_secs: f64,
    derivative: [f64; GRAD.len()],
}

/// What to minimise.
pub(super) struct Problem {
    points: Vec<Point>,
    sizes: Vec<Size>,
    shapes: Vec<Shape>,
    pub(super) form: Form,
    pub(super) free: [bool; N],
    pub(super) low: Vector,
    pub(super) high: Vector,
    pub(super) prior: Option<Prior>,
    robust: bool,
    pub(super) optimizer_step: bool,
    /// A step that improves the objective by less than this fraction, twice over, ends the search.
    pub(super) enough: f64,
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

/// The parameters of compute.
const GRAD: [usize; 3] = [ALPHA_GRAD, BETA_GRAD, DELTA];

/// The parameters that the synchronising pass depends on: within a node, and across nodes. Fewer than all, and
/// most of a fit's time goes into products of their derivatives.
const LAST: [[usize; 7]; 2] = [
    [ALPHA_GRAD, BETA_GRAD, DELTA, ALPHA_LOCAL, BETA_LOCAL, GAMMA, OPTIMIZER],
    [ALPHA_GRAD, BETA_GRAD, DELTA, ALPHA_NODE, BETA_NODE, GAMMA, OPTIMIZER],
];

/// Log errors of one observation, and the derivatives of its synchronising pass.
struct Residuals {
    grad: f64,
    last: f64,
    d_last: [f64; LAST[0].len()],
    /// Which of [`LAST`] they are by.
    of: usize,
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
        let mut micro_batches: Vec<u32> = observations.iter().map(Observation::micro_batch).collect();
        micro_batches.sort_unstable();
        micro_batches.dedup();
        let shape = |o: &Observation| (o.placement().regime(), o.placement().n_replicas().saturating_sub(2));
        let mut shapes: Vec<Shape> = observations.iter().map(shape).collect();
        shapes.sort_unstable();
        shapes.dedup();
        let points = observations
            .iter()
            .map(|observation| Point {
                size: micro_batches.partition_point(|&size| size < observation.micro_batch()),
                shape: shapes.partition_point(|&other| other < shape(observation)),
                log_accum: ln(observation.accum_secs()),
                log_optim: ln(observation.optim_secs()),
                weight: scaled(observation) / total,
            })
            .collect();
        let sizes = micro_batches.into_iter().map(f64::from).map(|micro_batch| Size {
            micro_batch,
            log_micro_batch: ln(micro_batch),
            log_table: match &form {
                // Between two of the smallest floats there are can lie nothing.
                Form::Table(table) => ln(table.secs(micro_batch).max(f64::MIN_POSITIVE)),
                _ => 0.0,
            },
        });
        let sizes = sizes.collect();
        // The paper's objective is compared with others' minimisers; ours is only as good as measurements are.
        let enough = if robust { 1e-4 } else { 1e-6 };
        let mut low = [ln(floor); N];
        let mut high = [LOG_MAX; N];
        for exponent in [DELTA, GAMMA] {
            (low[exponent], high[exponent]) = EXPONENT_RANGE;
        }
        Self {
            points,
            sizes,
            shapes,
            form,
            free: [true; N],
            low,
            high,
            prior: None,
            robust,
            optimizer_step,
            enough,
        }
    }

    pub(super) fn n_points(&self) -> usize {
        self.points.len()
    }

    pub(super) fn clamp(&self, theta: Vector) -> Vector {
        std::array::from_fn(|k| theta[k].clamp(self.low[k], self.high[k]))
    }

    pub(super) fn evaluate(&self, theta: &Vector) -> Evaluation {
        self.evaluate_as(&self.form, theta)
    }

    /// The same for another formula of compute.
    pub(super) fn evaluate_as(&self, form: &Form, theta: &Vector) -> Evaluation {
        let costs = Costs::new(theta);
        let (grads, syncs) = (self.grads(form, theta, &costs), self.syncs(&costs));
        let (mut of_grad, mut of_last) = (Sums::<3>::ZERO, [Sums::<7>::ZERO; 2]);
        let mut losses = [0.0; 2];
        for point in &self.points {
            let grad = &grads[point.size];
            let sync = &syncs[point.shape];
            let residuals = self.residuals(theta, grad, sync.as_ref(), point);
            let (loss, weight) = self.loss(residuals.grad);
            losses[0] += point.weight * loss;
            of_grad.add(point.weight * weight, residuals.grad, &grad.derivative);
            let (loss, weight) = self.loss(residuals.last);
            losses[1] += point.weight * loss;
            of_last[residuals.of].add(point.weight * weight, residuals.last, &residuals.d_last);
        }
        let rms = losses.map(f64::sqrt);
        let mut total =
            Evaluation { objective: rms[0] + rms[1], gradient: [0.0; N], hessian: [[0.0; N]; N], rms };
        let scale = rms.map(|rms| 1.0 / rms.max(RMS_FLOOR));
        of_grad.spread(scale[0], GRAD, &mut total.gradient, &mut total.hessian);
        for (sums, at) in of_last.iter().zip(LAST) {
            sums.spread(scale[1], at, &mut total.gradient, &mut total.hessian);
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

    /// Compute of each distinct micro-batch.
    fn grads(&self, form: &Form, theta: &Vector, costs: &Costs) -> Vec<Grad> {
        let grad = |size: &Size| match form {
            Form::Table(_) => Grad { log_secs: size.log_table, derivative: [0.0; 3] },
            Form::Linear => {
                let secs = costs.alpha_grad + costs.beta_grad * size.micro_batch;
                let share = costs.alpha_grad / secs;
                Grad { log_secs: ln(secs), derivative: [share, 1.0 - share, 0.0] }
            }
            Form::Roofline => {
                let norm =
                    LogNorm::of(theta[ALPHA_GRAD], theta[BETA_GRAD] + size.log_micro_batch, theta[DELTA]);
                Grad { log_secs: norm.value, derivative: [norm.share, 1.0 - norm.share, norm.d_exponent] }
            }
        };
        self.sizes.iter().map(grad).collect()
    }

    /// The exchange on each distinct placement.
    fn syncs(&self, costs: &Costs) -> Vec<Option<Sync>> {
        let sync = |&(regime, beyond_two): &Shape| {
            let (of, alpha, beta) = match regime {
                Regime::Alone => return None,
                Regime::OneNode => (0, costs.alpha_local, costs.beta_local),
                Regime::Distributed => (1, costs.alpha_node, costs.beta_node),
            };
            let secs = alpha + beta * f64::from(beyond_two);
            Some(Sync { log_secs: ln(secs), of_alpha: alpha / secs, of })
        };
        self.shapes.iter().map(sync).collect()
    }

    fn residuals(&self, theta: &Vector, grad: &Grad, sync: Option<&Sync>, point: &Point) -> Residuals {
        let [alpha, beta, delta] = grad.derivative;
        let (mut of, mut log_last) = (0, grad.log_secs);
        let mut d_last = [alpha, beta, delta, 0.0, 0.0, 0.0, 0.0];
        if let Some(sync) = sync {
            let norm = LogNorm::of(log_last, sync.log_secs, theta[GAMMA]);
            (of, log_last) = (sync.of, norm.value);
            let of_sync = 1.0 - norm.share;
            d_last = [
                norm.share * alpha,
                norm.share * beta,
                norm.share * delta,
                of_sync * sync.of_alpha,
                of_sync * (1.0 - sync.of_alpha),
                norm.d_exponent,
                0.0,
            ];
        }
        let log_ratio = theta[OPTIMIZER] - log_last;
        if self.optimizer_step && log_ratio > LOG_NOTHING {
            let ratio = exp(log_ratio);
            let of_before = 1.0 / (1.0 + ratio);
            d_last = d_last.map(|derivative| of_before * derivative);
            d_last[6] = 1.0 - of_before;
            log_last += libm::log1p(ratio);
        }
        Residuals { grad: grad.log_secs - point.log_accum, last: log_last - point.log_optim, d_last, of }
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
        let (grads, syncs) = (self.grads(&self.form, theta, &costs), self.syncs(&costs));
        let (mut of_grad, mut of_last) = (Sums::<3>::ZERO, [Sums::<7>::ZERO; 2]);
        for point in &self.points {
            let grad = &grads[point.size];
            let sync = &syncs[point.shape];
            let residuals = self.residuals(theta, grad, sync.as_ref(), point);
            let weight = point.weight * self.points.len() as f64;
            of_grad.add(weight / (noise[0] * noise[0]), 0.0, &grad.derivative);
            of_last[residuals.of].add(weight / (noise[1] * noise[1]), 0.0, &residuals.d_last);
        }
        let (mut gradient, mut information) = ([0.0; N], [[0.0; N]; N]);
        of_grad.spread(1.0, GRAD, &mut gradient, &mut information);
        for (sums, at) in of_last.iter().zip(LAST) {
            sums.spread(1.0, at, &mut gradient, &mut information);
        }
        information
    }
}

/// Gradient and (lower) Hessian by some of the parameters.
struct Sums<const K: usize> {
    gradient: [f64; K],
    hessian: [[f64; K]; K],
}

impl<const K: usize> Sums<K> {
    const ZERO: Self = Self { gradient: [0.0; K], hessian: [[0.0; K]; K] };

    /// Adds one weighted residual.
    fn add(&mut self, weight: f64, residual: f64, derivative: &[f64; K]) {
        for i in 0..K {
            let scaled = weight * derivative[i];
            self.gradient[i] += scaled * residual;
            for j in 0..=i {
                self.hessian[i][j] += scaled * derivative[j];
            }
        }
    }

    /// Adds all, so many times, to those by all parameters; `at` says where, in ascending order.
    fn spread(&self, scale: f64, at: [usize; K], gradient: &mut Vector, hessian: &mut Matrix) {
        for i in 0..K {
            gradient[at[i]] += scale * self.gradient[i];
            for j in 0..=i {
                hessian[at[i]][at[j]] += scale * self.hessian[i][j];
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
