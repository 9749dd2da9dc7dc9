//! A bounded Levenberg-Marquardt method for the fit's few parameters.

use super::problem::{Evaluation, Matrix, N, Problem, Vector};

/// Work is counted, not timed: the same answer everywhere.
const MAX_EVALUATIONS: u32 = 120;

/// No parameter moves further than this (in logarithms) in one step.
const LONGEST_STEP: f64 = 3.0;

/// Walks downhill from `start`, within bounds, over the free parameters.
pub(super) fn minimise(problem: &Problem, start: Vector) -> (Vector, Evaluation) {
    let mut theta = problem.clamp(start);
    let mut current = problem.evaluate(&theta);
    let mut damping = 1e-3;
    let mut small_gains = 0;
    for _ in 0..MAX_EVALUATIONS {
        let Some(step) = damped_step(problem, &theta, &current, damping) else {
            damping *= 10.0;
            if damping > 1e12 {
                break;
            }
            continue;
        };
        let trial = problem.clamp(std::array::from_fn(|k| theta[k] + step[k]));
        if (0..N).all(|k| trial[k].to_bits() == theta[k].to_bits()) {
            break;
        }
        let next = problem.evaluate(&trial);
        let gain = current.objective - next.objective;
        if gain > 0.0 {
            small_gains = if gain < problem.enough * current.objective { small_gains + 1 } else { 0 };
            (theta, current) = (trial, next);
            damping = (damping * 0.1).max(1e-12);
            if small_gains >= 2 {
                break;
            }
        } else {
            damping *= 6.0;
            if damping > 1e9 {
                break;
            }
        }
    }
    (theta, current)
}

/// Solves `(H + damping diag H) step = -gradient` over the free parameters, without those that a bound
/// stops.
fn damped_step(problem: &Problem, theta: &Vector, at: &Evaluation, damping: f64) -> Option<Vector> {
    let mut matrix = at.hessian;
    for (k, row) in matrix.iter_mut().enumerate() {
        row[k] += damping * row[k] + 1e-14;
    }
    let downhill = at.gradient.map(|slope| -slope);
    let stopped = |k: usize, direction: f64| {
        (theta[k] <= problem.low[k] && direction <= 0.0) || (theta[k] >= problem.high[k] && direction >= 0.0)
    };
    let mut active: [bool; N] = std::array::from_fn(|k| problem.free[k] && !stopped(k, downhill[k]));
    loop {
        let step = solve(&cholesky(&matrix, &active)?, &active, &downhill);
        if !step.iter().all(|value| value.is_finite()) {
            return None;
        }
        // A parameter at its bound may still be pushed outward by its neighbours: leave it out, solve again.
        let mut blocked = false;
        for k in 0..N {
            if active[k] && stopped(k, step[k]) {
                active[k] = false;
                blocked = true;
            }
        }
        if !blocked {
            return Some(step.map(|value| value.clamp(-LONGEST_STEP, LONGEST_STEP)));
        }
    }
}

/// The lower Cholesky factor of the active rows and columns; the others become the identity.
pub(super) fn cholesky(matrix: &Matrix, active: &[bool; N]) -> Option<Matrix> {
    let mut factor = [[0.0; N]; N];
    for i in 0..N {
        if !active[i] {
            factor[i][i] = 1.0;
            continue;
        }
        for j in 0..=i {
            if !active[j] {
                continue;
            }
            let mut sum = matrix[i][j];
            for k in 0..j {
                sum -= factor[i][k] * factor[j][k];
            }
            if i == j {
                if !(sum > 0.0 && sum.is_finite()) {
                    return None;
                }
                factor[i][i] = sum.sqrt();
            } else {
                factor[i][j] = sum / factor[j][j];
            }
        }
    }
    Some(factor)
}

/// Solves with the factor; inactive entries stay zero.
pub(super) fn solve(factor: &Matrix, active: &[bool; N], right: &Vector) -> Vector {
    let mut solution = [0.0; N];
    for i in 0..N {
        if active[i] {
            let mut sum = right[i];
            for k in 0..i {
                sum -= factor[i][k] * solution[k];
            }
            solution[i] = sum / factor[i][i];
        }
    }
    for i in (0..N).rev() {
        if active[i] {
            let mut sum = solution[i];
            for k in i + 1..N {
                sum -= factor[k][i] * solution[k];
            }
            solution[i] = sum / factor[i][i];
        }
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_solves_over_the_active_rows() {
        let mut matrix = [[0.0; N]; N];
        (matrix[0][0], matrix[2][0], matrix[2][2], matrix[1][1]) = (4.0, 2.0, 3.0, f64::NAN);
        let mut active = [false; N];
        (active[0], active[2]) = (true, true);
        let mut right = [0.0; N];
        (right[0], right[2]) = (8.0, 8.0);
        let solution = solve(&cholesky(&matrix, &active).unwrap(), &active, &right);
        assert!((solution[0] - 1.0).abs() < 1e-12 && (solution[2] - 2.0).abs() < 1e-12);
        assert!(solution[1].abs() < 1e-300);
        active[1] = true;
        assert!(cholesky(&matrix, &active).is_none());
    }
}
