//! Fits on synthetic jobs whose truth is known: few and many observations, unequal weights, outliers, regimes
//! not seen, forms of compute, and a history that is wrong.
//!
//! Each bound is the figure measured when the test was written, given beside it, with room to spare.

mod common;

use common::Dice;
use pollux_model::fit::{ComputeChoice, Fit, FitRequest, History, Observation, Parameter, PastFit, fit};
use pollux_model::{Affine, Compute, PerfParams, Placement};

const MICRO_BATCHES: [u32; 7] = [4, 8, 16, 32, 64, 128, 256];

fn placement(n_nodes: u32, n_replicas: u32) -> Placement {
    Placement::new(n_nodes, n_replicas).unwrap()
}

fn placements() -> [Placement; 8] {
    [(1, 1), (1, 2), (1, 3), (1, 4), (2, 2), (2, 6), (2, 8), (4, 16)].map(|(n, k)| placement(n, k))
}

/// A job whose compute and exchange are of the same order, so that every parameter shows.
fn truth() -> PerfParams {
    PerfParams {
        grad: Compute::Linear { alpha: 0.05, beta: 0.002 },
        sync_local: Affine { alpha: 0.06, beta: 0.01 },
        sync_node: Affine { alpha: 0.15, beta: 0.01 },
        gamma: 1.6,
        optimizer_step: 0.02,
    }
}

/// The same kind of job, each of its costs up to twice as large or small.
fn varied(dice: &mut Dice) -> PerfParams {
    let mut vary = |of: Affine| Affine {
        alpha: of.alpha * dice.log_uniform(0.5, 2.0),
        beta: of.beta * dice.log_uniform(0.5, 2.0),
    };
    let usual = truth();
    let (sync_local, sync_node) = (vary(usual.sync_local), vary(usual.sync_node));
    let grad = vary(Affine { alpha: 0.05, beta: 0.002 });
    PerfParams {
        grad: Compute::Linear { alpha: grad.alpha, beta: grad.beta },
        sync_local,
        sync_node,
        gamma: 1.0 + 2.0 * dice.unit(),
        optimizer_step: usual.optimizer_step * dice.log_uniform(0.5, 2.0),
    }
}

/// One measurement; `noise` is the spread of its relative error.
fn observe(truth: &PerfParams, at: Placement, micro_batch: u32, noise: f64, dice: &mut Dice) -> Observation {
    let mut noisy = |secs: f64| secs * libm::exp(noise * dice.normal());
    let accum_secs = noisy(truth.grad.secs(f64::from(micro_batch)));
    let optim_secs = noisy(truth.last_micro_step_secs(at, micro_batch));
    Observation::new(at, micro_batch, accum_secs, optim_secs).unwrap()
}

/// Measurements of configurations drawn at random.
fn observations(truth: &PerfParams, count: usize, noise: f64, dice: &mut Dice) -> Vec<Observation> {
    let draw = |_| {
        let at = placements()[usize::try_from(dice.whole(0, 7)).unwrap()];
        let micro_batch = MICRO_BATCHES[usize::try_from(dice.whole(0, 6)).unwrap()];
        observe(truth, at, micro_batch, noise, dice)
    };
    (0..count).map(draw).collect()
}

fn fitted(observations: &[Observation]) -> Fit {
    fit(&FitRequest { observations, ..FitRequest::default() }).unwrap()
}

/// Relative errors of predicted times, free of noise, at configurations no fit has seen; the median.
fn median_error(params: &PerfParams, truth: &PerfParams) -> f64 {
    let mut errors = Vec::new();
    for (n_nodes, n_replicas) in [(1, 1), (1, 2), (1, 3), (1, 4), (2, 4), (3, 10), (4, 12)] {
        for micro_batch in [6, 12, 24, 48, 96, 192] {
            let at = placement(n_nodes, n_replicas);
            let [predicted, expected] =
                [params, truth].map(|params| params.last_micro_step_secs(at, micro_batch));
            errors.push((predicted / expected - 1.0).abs());
        }
    }
    median(errors)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The median error over twenty jobs, each observed by `observe`.
fn median_over_jobs(mut observe: impl FnMut(&PerfParams, &mut Dice) -> Vec<Observation>) -> f64 {
    let mut dice = Dice(17);
    let errors = (0..20).map(|_| {
        let truth = varied(&mut dice);
        median_error(&fitted(&observe(&truth, &mut dice)).params, &truth)
    });
    median(errors.collect())
}

#[expect(clippy::print_stdout, reason = "figures for those who look")]
fn check_error(what: &str, error: f64, bound: f64) {
    println!("{what}: {:.2} %, bound {:.1} %", 100.0 * error, 100.0 * bound);
    assert!(error <= bound, "{what}: {error}");
}

#[test]
fn more_observations_predict_better() {
    // With 5 % of noise; measured 26 %, 12 %, 4.3 %, 1.0 % and 0.5 %.
    for (count, bound) in [(1, 0.45), (2, 0.25), (5, 0.1), (50, 0.02), (400, 0.01)] {
        let error = median_over_jobs(|truth, dice| observations(truth, count, 0.05, dice));
        check_error(&format!("{count} observations"), error, bound);
    }
}

#[test]
fn what_was_seen_is_predicted_however_little_it_was() {
    let mut dice = Dice(23);
    for count in [1, 2, 5] {
        for _ in 0..20 {
            let truth = varied(&mut dice);
            let fit = fitted(&observations(&truth, count, 0.0, &mut dice));
            // Measured 3.1 % at worst: without one GPU alone the optimizer's step is taken for exchange.
            assert!(fit.error.worst < 0.05, "{count}: {fit:?}");
        }
    }
}

#[test]
fn weights_of_six_orders_of_magnitude_count_as_they_should() {
    let spread = median_over_jobs(|truth, dice| {
        let weighted = |o: Observation| o.with_weight(dice.log_uniform(1e-3, 1e3)).unwrap();
        let plain = observations(truth, 200, 0.05, &mut Dice(1));
        plain.into_iter().map(weighted).collect()
    });
    // Measured 1.6 %: the heaviest few observations count for all.
    check_error("200 observations of any weight", spread, 0.035);

    // Half of the observations are three times too slow, and weigh a millionth.
    let mut dice = Dice(29);
    let truth = truth();
    let mut mixed = observations(&truth, 100, 0.02, &mut dice);
    for observation in mixed.iter_mut().skip(1).step_by(2) {
        let (accum, optim) = (3.0 * observation.accum_secs(), 3.0 * observation.optim_secs());
        let wrong = Observation::new(observation.placement(), observation.micro_batch(), accum, optim);
        *observation = wrong.unwrap().with_weight(1e-6).unwrap();
    }
    // Measured 0.4 %.
    check_error("wrong ones of little weight", median_error(&fitted(&mixed).params, &truth), 0.01);
}

/// Every tenth observation ten times too large or too small.
fn with_outliers(mut observations: Vec<Observation>, dice: &mut Dice) -> Vec<Observation> {
    for observation in observations.iter_mut().step_by(10) {
        let factor = if dice.chance(0.5) { 10.0 } else { 0.1 };
        let (accum, optim) = (factor * observation.accum_secs(), factor * observation.optim_secs());
        *observation =
            Observation::new(observation.placement(), observation.micro_batch(), accum, optim).unwrap();
    }
    observations
}

#[test]
fn gross_outliers_bend_the_curve_a_little() {
    // Measured 1.0 % and 1.9 %; 0.5 % and 1.0 %.
    for (count, clean_bound, bound) in [(50, 0.02, 0.04), (400, 0.01, 0.02)] {
        let clean = median_over_jobs(|truth, dice| observations(truth, count, 0.05, dice));
        let dirty = median_over_jobs(|truth, dice| {
            let clean = observations(truth, count, 0.05, dice);
            with_outliers(clean, dice)
        });
        check_error(&format!("{count} observations"), clean, clean_bound);
        check_error(&format!("{count} observations, a tenth of them outliers"), dirty, bound);
        assert!(clean < dirty);
    }
}

/// A fit to noise-free times of these placements, at all or some micro-batches.
fn fit_of(placements: &[(u32, u32)], micro_batches: &[u32]) -> Fit {
    let mut dice = Dice(1);
    let mut seen = Vec::new();
    for &(n_nodes, n_replicas) in placements {
        for &micro_batch in micro_batches {
            seen.push(observe(&truth(), placement(n_nodes, n_replicas), micro_batch, 0.0, &mut dice));
        }
    }
    fitted(&seen)
}

#[test]
fn one_measurement_leaves_the_papers_priors() {
    use Parameter::{AlphaGrad, AlphaLocal, AlphaNode, BetaGrad, BetaLocal, BetaNode, Gamma};
    let fit = fit_of(&[(1, 1)], &[32]);
    let Compute::Linear { alpha, beta } = fit.params.grad else { panic!("{:?}", fit.params.grad) };
    // 0.05 s + 32 times 0.002 s are 0.114 s; half of it counts as constant.
    assert!((alpha - 0.057).abs() < 1e-4 && (32.0 * beta - 0.057).abs() < 1e-4, "{alpha} {beta}");
    assert_eq!(fit.params.sync_local, Affine::default());
    assert_eq!(fit.params.sync_node, Affine::default());
    assert_eq!(fit.undetermined, [AlphaGrad, BetaGrad, AlphaLocal, BetaLocal, AlphaNode, BetaNode, Gamma]);
}

#[test]
fn exchange_not_seen_is_free() {
    use Parameter::{AlphaLocal, AlphaNode, BetaLocal, BetaNode, Gamma};
    let alone = fit_of(&[(1, 1)], &MICRO_BATCHES);
    assert_eq!((alone.params.sync_local, alone.params.sync_node), (Affine::default(), Affine::default()));
    assert_eq!(alone.undetermined, [AlphaLocal, BetaLocal, AlphaNode, BetaNode, Gamma]);

    let distributed = fit_of(&[(1, 1), (2, 2), (2, 8), (4, 16)], &MICRO_BATCHES);
    assert_eq!(distributed.params.sync_local, Affine::default());
    assert_eq!(distributed.undetermined, [AlphaLocal, BetaLocal]);
}

#[test]
fn several_nodes_cost_a_tenth_more_than_one_until_seen() {
    use Parameter::{AlphaNode, BetaLocal, BetaNode};
    let one_node = fit_of(&[(1, 1), (1, 2), (1, 4)], &MICRO_BATCHES);
    let (local, node) = (one_node.params.sync_local, one_node.params.sync_node);
    assert!(local.alpha > 0.05 && local.beta > 0.005, "{local:?}");
    assert!((node.alpha / local.alpha - 1.1).abs() < 1e-9 && (node.beta / local.beta - 1.1).abs() < 1e-9);
    assert_eq!(one_node.undetermined, [AlphaNode, BetaNode]);

    // Two GPUs do not show what a third one costs.
    let two = fit_of(&[(1, 1), (1, 2)], &MICRO_BATCHES);
    assert_eq!(two.params.sync_local.beta.to_bits(), 0);
    assert_eq!(two.undetermined, [BetaLocal, AlphaNode, BetaNode]);
}

#[test]
fn everything_seen_leaves_nothing_open() {
    let seen: Vec<(u32, u32)> = placements().iter().map(|at| (at.n_nodes(), at.n_replicas())).collect();
    let fit = fit_of(&seen, &MICRO_BATCHES);
    assert_eq!(fit.undetermined, []);
    check_error("all placements, no noise", median_error(&fit.params, &truth()), 0.01);
}

/// The form chosen for a job with these times of compute, from 3 % of noise.
fn chosen_form(secs: impl Fn(f64) -> f64) -> &'static str {
    let mut dice = Dice(31);
    let sizes = (8..=32).map(|quarters| libm::exp2(f64::from(quarters) / 4.0).round());
    let observe = |micro_batch: f64| {
        let mut noisy = |secs: f64| secs * libm::exp(0.03 * dice.normal());
        let (accum, optim) = (noisy(secs(micro_batch)), noisy(secs(micro_batch)));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 4 to 256")]
        Observation::new(Placement::ALONE, micro_batch as u32, accum, optim).unwrap()
    };
    fitted(&sizes.map(observe).collect::<Vec<_>>()).params.grad.form()
}

#[test]
fn the_data_choose_the_form() {
    assert_eq!(chosen_form(|m| 0.05 + 0.002 * m), "linear");
    assert_eq!(chosen_form(|m| (0.002 * m).max(0.1)), "roofline");
    // Twice as slow with every third doubling, then back: no formula follows that.
    let saw_tooth = |m: f64| {
        let tooth = libm::fmod(libm::log2(m), 3.0) / 3.0;
        (0.05 + 0.002 * m) * (1.0 + 2.0 * tooth.min(1.0 - tooth))
    };
    assert_eq!(chosen_form(saw_tooth), "table");
}

#[test]
fn a_wrong_history_yields_to_observations() {
    let mut dice = Dice(37);
    let truth = truth();
    // Earlier jobs were three times as slow in all respects.
    let slow = |of: Affine| Affine { alpha: 3.0 * of.alpha, beta: 3.0 * of.beta };
    let other = PerfParams {
        grad: Compute::Linear { alpha: 0.15, beta: 0.006 },
        sync_local: slow(truth.sync_local),
        sync_node: slow(truth.sync_node),
        ..truth.clone()
    };
    let past: Vec<PastFit> =
        (0..4).map(|_| PastFit::from(&fitted(&observations(&other, 100, 0.05, &mut dice)))).collect();
    let history = History::of(&past).unwrap();
    let error = |count: usize, dice: &mut Dice| {
        let seen = observations(&truth, count, 0.05, dice);
        let request = FitRequest { observations: &seen, history: Some(&history), ..FitRequest::default() };
        median_error(&fit(&request).unwrap().params, &truth)
    };
    // Measured 1.6 % and 0.3 %.
    check_error("wrong history and 50 observations", error(50, &mut dice), 0.035);
    check_error("wrong history and 400 observations", error(400, &mut dice), 0.01);
}

#[test]
fn the_papers_form_is_kept_when_asked_for() {
    let seen = observations(&truth(), 100, 0.05, &mut Dice(41));
    let request = FitRequest { observations: &seen, compute: ComputeChoice::Linear, ..FitRequest::default() };
    let fit = fit(&request).unwrap();
    assert_eq!(fit.params.grad.form(), "linear");
    assert_eq!(fit.params.optimizer_step.to_bits(), 0);
}

#[test]
fn what_a_form_does_not_have_it_does_not_leave_open() {
    let seen: Vec<Observation> = [(1, 2), (1, 4), (2, 8)]
        .map(|(n, k)| observe(&truth(), placement(n, k), 16, 0.0, &mut Dice(1)))
        .to_vec();
    for (compute, open) in [(ComputeChoice::Linear, false), (ComputeChoice::Auto, true)] {
        let fit = fit(&FitRequest { observations: &seen, compute, ..FitRequest::default() }).unwrap();
        assert_eq!(fit.undetermined.contains(&Parameter::OptimizerStep), open, "{compute:?}");
        assert!(!fit.undetermined.contains(&Parameter::DeltaGrad), "{compute:?}");
    }
}
