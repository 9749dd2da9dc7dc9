//! One form fitted to the data, and the choice between forms.

use std::collections::BTreeMap;

use super::history::logs;
use super::observation::Observation;
use super::problem::{
    ALPHA_GRAD, ALPHA_LOCAL, ALPHA_NODE, BETA_GRAD, BETA_LOCAL, BETA_NODE, DELTA, Evaluation, Form, GAMMA, N,
    OPTIMIZER, Problem, Vector,
};
use super::quality::Coverage;
use super::solver::{cholesky, minimise, solve};
use super::{FitRequest, Parameter};
use crate::compute::{Compute, StepTable};
use crate::math::{exp, ln};
use crate::perf::{Affine, PerfParams};

/// Which objective a form is fitted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Objective {
    /// The authors': squared errors, costs of at least 1e-8 s, no optimizer step.
    Paper,
    /// Ours: robust to outliers, costs down to a picosecond (a sample of an embedding model takes ten
    /// nanoseconds on an H200), and an optimizer step where one replica alone was seen.
    Product,
}

/// A parameter is undetermined if the data leave it uncertain by more than this: a factor of two for
/// costs, one and a half for exponents.
const UNCERTAIN: (f64, f64) = (0.7, 1.5);

/// Measurements repeat to no better than this, whatever the fit's own error says.
const LEAST_NOISE: f64 = 0.02;

/// An optimizer step that takes less than this share of the shortest pass is none.
const NEGLIGIBLE: f64 = 1e-4;

/// A roofline's exponent from which on its bend can be seen.
pub(super) const BENT: f64 = 1.2;

/// A model fitted in one form.
pub(super) struct Candidate {
    objective: Objective,
    problem: Problem,
    theta: Vector,
    at: Evaluation,
    /// Parameters whose value is a prior, not a measurement.
    assumed: [bool; N],
}

impl Candidate {
    pub(super) fn solve(
        request: &FitRequest<'_>,
        coverage: &Coverage,
        form: Form,
        objective: Objective,
    ) -> Self {
        let observations = request.observations;
        let history = request.history;
        let known = |k: usize| history.is_some_and(|history| history.mean(k).is_some());
        let (floor, optimizer_step) = match objective {
            Objective::Paper => (1e-8, false),
            Objective::Product => (1e-12, coverage.alone || known(OPTIMIZER)),
        };
        let mut problem =
            Problem::new(observations, form, floor, objective == Objective::Product, optimizer_step);
        let mut theta = guess(&problem, observations, coverage);
        let mut assumed = [false; N];
        let mut pin = |theta: &mut Vector, k: usize, value: f64| {
            assumed[k] = true;
            if !known(k) {
                problem.free[k] = false;
                theta[k] = value;
            }
        };
        let n_micro_batches = distinct_micro_batches(observations).len();
        if n_micro_batches == 1 && !history.is_some_and(super::History::knows_compute) {
            let mean = observations.iter().map(|o| o.accum_secs() / observations.len() as f64).sum::<f64>();
            pin(&mut theta, ALPHA_GRAD, ln(mean / 2.0));
            theta[BETA_GRAD] = ln(mean / 2.0 / f64::from(coverage.micro_batch.0));
        }
        if n_micro_batches < 3 {
            pin(&mut theta, DELTA, 1.0);
        }
        for (seen, alpha, beta) in
            [(coverage.one_node, ALPHA_LOCAL, BETA_LOCAL), (coverage.distributed, ALPHA_NODE, BETA_NODE)]
        {
            if seen.is_none() {
                pin(&mut theta, alpha, ln(floor));
            }
            if seen.is_none_or(|(_, most)| most <= 2) {
                pin(&mut theta, beta, ln(floor));
            }
        }
        if coverage.one_node.is_none() && coverage.distributed.is_none() {
            pin(&mut theta, GAMMA, 1.0);
        }
        if !coverage.alone {
            pin(&mut theta, OPTIMIZER, ln(floor));
        } else if optimizer_step && (coverage.one_node.is_some() || coverage.distributed.is_some()) {
            problem.free[OPTIMIZER] = false;
            theta[OPTIMIZER] = optimizer_alone(request, &problem.form);
        }
        let absent = match problem.form {
            Form::Linear => [false, false, true],
            Form::Roofline => [false, false, false],
            Form::Table(_) => [true, true, true],
        };
        for (k, absent) in absent.into_iter().enumerate() {
            problem.free[k] &= !absent;
        }
        problem.free[OPTIMIZER] &= optimizer_step;
        if n_micro_batches == 1 {
            (assumed[ALPHA_GRAD], assumed[BETA_GRAD]) = (true, true);
        }
        if let Some(history) = history {
            problem.prior = Some(history.prior(problem.n_points()));
            for (k, value) in theta.iter_mut().enumerate() {
                if problem.free[k] {
                    *value = history.mean(k).unwrap_or(*value);
                }
            }
        }
        if let Some(previous) = request.previous {
            let mut warm = theta;
            for (k, value) in logs(previous).into_iter().enumerate() {
                if problem.free[k] && value.is_finite() && value > problem.low[k] {
                    warm[k] = value;
                }
            }
            // A previous fit far from these data would only lead astray.
            let value = |theta| problem.evaluate(&problem.clamp(theta)).objective;
            if value(warm) < value(theta) {
                theta = warm;
            }
        }
        let (mut theta, at) = minimise(&problem, theta);
        let fastest = observations.iter().map(Observation::accum_secs).fold(f64::INFINITY, f64::min);
        if exp(theta[OPTIMIZER]) < NEGLIGIBLE * fastest {
            theta[OPTIMIZER] = problem.low[OPTIMIZER];
        }
        Self { objective, problem, theta, at, assumed }
    }

    pub(super) fn objective(&self) -> f64 {
        self.at.objective
    }

    /// Bayesian information criterion over both kinds of time, errors under a per cent counted as one.
    fn score(&self) -> f64 {
        let n_points = self.problem.n_points() as f64;
        let fit: f64 = self.at.rms.iter().map(|rms| n_points * ln(rms * rms + 1e-4)).sum();
        let n_free = self.problem.free.iter().filter(|&&free| free).count();
        fit + n_free as f64 * ln(2.0 * n_points)
    }

    /// Whether a linear fit becomes better when its line is bent a little.
    fn would_bend(&self) -> bool {
        self.problem.evaluate_as(&Form::Roofline, &self.theta).gradient[DELTA] < 0.0
    }

    /// The parameters, with exact zeros for costs at their lower bound.
    pub(super) fn params(&self, coverage: &Coverage) -> PerfParams {
        let cost = |k: usize| {
            let at_floor = self.theta[k] <= self.problem.low[k] + 1e-6;
            if at_floor { 0.0 } else { exp(self.theta[k]) }
        };
        let grad = match &self.problem.form {
            Form::Table(table) => Compute::Table(table.clone()),
            Form::Linear => Compute::Linear { alpha: cost(ALPHA_GRAD), beta: cost(BETA_GRAD) },
            Form::Roofline => {
                Compute::Roofline { alpha: cost(ALPHA_GRAD), beta: cost(BETA_GRAD), delta: self.theta[DELTA] }
            }
        };
        // Both parts at the floor: compute too fast to measure. The floor itself keeps it a time.
        let grad = if grad.is_valid() {
            grad
        } else {
            Compute::Linear { alpha: exp(self.theta[ALPHA_GRAD]), beta: exp(self.theta[BETA_GRAD]) }
        };
        let sync_local = Affine { alpha: cost(ALPHA_LOCAL), beta: cost(BETA_LOCAL) };
        let mut sync_node = Affine { alpha: cost(ALPHA_NODE), beta: cost(BETA_NODE) };
        if coverage.distributed.is_none() && !self.problem.free[ALPHA_NODE] {
            sync_node.alpha = sync_node.alpha.max(1.1 * sync_local.alpha);
            sync_node.beta = sync_node.beta.max(1.1 * sync_local.beta);
        }
        let optimizer_step = if self.problem.optimizer_step { cost(OPTIMIZER) } else { 0.0 };
        PerfParams { grad, sync_local, sync_node, gamma: self.theta[GAMMA], optimizer_step }
    }

    /// Parameters of this form that the data leave open.
    pub(super) fn undetermined(&self, coverage: &Coverage) -> Vec<Parameter> {
        let noise = self.at.rms.map(|rms| rms.max(LEAST_NOISE));
        let mut information = self.problem.information(&self.theta, noise);
        for (k, row) in information.iter_mut().enumerate() {
            // As good as no prior at all, but enough to invert.
            row[k] += 1e-6;
        }
        let factor = cholesky(&information, &self.problem.free);
        let uncertain = |k: usize| {
            let Some(factor) = &factor else { return true };
            let mut unit = [0.0; N];
            unit[k] = 1.0;
            let variance = solve(factor, &self.problem.free, &unit)[k];
            let limit = if k == DELTA || k == GAMMA { UNCERTAIN.1 } else { UNCERTAIN.0 };
            variance.sqrt() > limit
        };
        let at_floor = |k: usize| k != DELTA && k != GAMMA && self.theta[k] <= self.problem.low[k] + 1e-6;
        let part_of_form = |k: usize| match (&self.problem.form, k) {
            (Form::Table(_), ALPHA_GRAD | BETA_GRAD | DELTA) | (Form::Linear, DELTA) => false,
            // The paper has none; and where others are fitted too it was measured on its own.
            (_, OPTIMIZER) => {
                self.objective == Objective::Product && (self.problem.free[OPTIMIZER] || !coverage.alone)
            }
            _ => true,
        };
        (0..N)
            .filter(|&k| part_of_form(k))
            .filter(|&k| self.assumed[k] || (!at_floor(k) && uncertain(k)))
            .map(|k| Parameter::ALL[k])
            .collect()
    }
}

/// The optimizer's step as one replica alone shows it. Among many replicas the exchange would hide it.
fn optimizer_alone(request: &FitRequest<'_>, form: &Form) -> f64 {
    let alone: Vec<Observation> =
        request.observations.iter().filter(|o| o.placement().n_replicas() == 1).copied().collect();
    let request = FitRequest { observations: &alone, ..*request };
    let coverage = Coverage::of(&alone).expect("one replica alone was observed");
    let form = if distinct_micro_batches(&alone).len() < 3 { Form::Linear } else { form.clone() };
    Candidate::solve(&request, &coverage, form, Objective::Product).theta[OPTIMIZER]
}

/// The form the data choose: the roofline must earn its extra parameter, a table must beat both at predicting
/// micro-batches it has not seen.
pub(super) fn choose(request: &FitRequest<'_>, coverage: &Coverage) -> Candidate {
    let observations = request.observations;
    let fit = |form| Candidate::solve(request, coverage, form, Objective::Product);
    let micro_batches = distinct_micro_batches(observations);
    let known_bend = request.history.is_some_and(super::History::prefers_roofline);
    if micro_batches.len() < 3 {
        return fit(if known_bend { Form::Roofline } else { Form::Linear });
    }
    let best = best_formula(request, &fit);
    match measured_table(observations, &micro_batches) {
        Some((table, error)) if best.at.rms[0] > 0.1 && error < 0.7 * best.at.rms[0] => {
            fit(Form::Table(table))
        }
        _ => best,
    }
}

/// The linear form or the roofline, where there are enough micro-batches to tell them apart. The roofline holds the
/// linear form within it, as an exponent of 1, so that often one of the two fits says all.
fn best_formula(request: &FitRequest<'_>, fit: &impl Fn(Form) -> Candidate) -> Candidate {
    let was_bent = request.previous.is_some_and(|previous| matches!(previous.grad, Compute::Roofline { .. }));
    let mut bent = None;
    if was_bent {
        let roofline = fit(Form::Roofline);
        if roofline.theta[DELTA] > BENT {
            return roofline;
        }
        bent = Some(roofline);
    }
    let linear = fit(Form::Linear);
    if bent.is_none() && !linear.would_bend() {
        return linear;
    }
    let roofline = bent.unwrap_or_else(|| fit(Form::Roofline));
    if roofline.score() < linear.score() { roofline } else { linear }
}

/// Mean log compute time and total weight by micro-batch.
fn distinct_micro_batches(observations: &[Observation]) -> BTreeMap<u32, (f64, f64)> {
    let mut by_micro_batch = BTreeMap::<u32, (f64, f64)>::new();
    for observation in observations {
        let (mean, weight) = by_micro_batch.entry(observation.micro_batch()).or_default();
        *weight += observation.weight();
        *mean += (ln(observation.accum_secs()) - *mean) * (observation.weight() / *weight).min(1.0);
    }
    by_micro_batch
}

/// A table through the data, and its log error on micro-batches left out of it one by one.
fn measured_table(
    observations: &[Observation],
    micro_batches: &BTreeMap<u32, (f64, f64)>,
) -> Option<(StepTable, f64)> {
    if !(5..=64).contains(&micro_batches.len()) {
        return None;
    }
    let points: Vec<(u32, f64)> = micro_batches.iter().map(|(&m, &(mean, _))| (m, exp(mean))).collect();
    let (mut sum, mut count) = (0.0, 0.0);
    for left_out in 1..points.len() - 1 {
        let others = StepTable::new([points[left_out - 1], points[left_out + 1]]).ok()?;
        let micro_batch = points[left_out].0;
        let predicted = ln(others.secs(f64::from(micro_batch)));
        for observation in observations.iter().filter(|o| o.micro_batch() == micro_batch) {
            let error = predicted - ln(observation.accum_secs());
            sum += error * error;
            count += 1.0;
        }
    }
    Some((StepTable::new(points).ok()?, (sum / count).sqrt()))
}

/// Where to start without a previous fit: straight lines through the data.
fn guess(problem: &Problem, observations: &[Observation], coverage: &Coverage) -> Vector {
    let mean_log = |filter: &dyn Fn(&Observation) -> bool, value: &dyn Fn(&Observation) -> f64| {
        let (mut sum, mut count) = (0.0, 0.0);
        for observation in observations.iter().filter(|o| filter(o)) {
            sum += ln(value(observation).max(1e-12));
            count += 1.0;
        }
        if count > 0.0 { sum / count } else { ln(1e-12) }
    };
    let (smallest, largest) = coverage.micro_batch;
    let at_smallest = exp(mean_log(&|o| o.micro_batch() == smallest, &Observation::accum_secs));
    let at_largest = exp(mean_log(&|o| o.micro_batch() == largest, &Observation::accum_secs));
    let slope = (at_largest - at_smallest) / f64::from(largest - smallest).max(1.0);
    let (alpha, beta) = match problem.form {
        Form::Roofline => (at_smallest, at_largest / f64::from(largest)),
        _ if slope > 0.0 => ((at_smallest - slope * f64::from(smallest)).max(0.1 * at_smallest), slope),
        _ => (0.9 * at_smallest, 0.1 * at_smallest / f64::from(largest)),
    };
    let exchange = |regime: crate::Regime| {
        mean_log(&|o| o.placement().regime() == regime, &|o| {
            (o.optim_secs() - o.accum_secs()).max(1e-3 * o.optim_secs())
        })
    };
    let (local, node) = (exchange(crate::Regime::OneNode), exchange(crate::Regime::Distributed));
    let mut theta = [0.0; N];
    theta[ALPHA_GRAD] = ln(alpha.max(1e-12));
    theta[BETA_GRAD] = ln(beta.max(1e-12));
    theta[DELTA] = if problem.form == Form::Roofline { 3.0 } else { 1.0 };
    (theta[ALPHA_LOCAL], theta[BETA_LOCAL]) = (local, local - 3.0);
    (theta[ALPHA_NODE], theta[BETA_NODE]) = (node, node - 3.0);
    theta[GAMMA] = 1.5;
    theta[OPTIMIZER] = exchange(crate::Regime::Alone);
    theta
}
