//! Fits: sound whatever was observed, and independent of order and start.

use pollux_model::fit::{
    ComputeChoice, Coverage, Fit, FitRequest, History, Observation, Parameter, PastFit, RelativeError, fit,
};
use pollux_model::{Affine, Compute, PerfParams, Placement};
use proptest::prelude::*;

use crate::common::Dice;
use crate::strategies::*;

fn any_observation() -> impl Strategy<Value = Observation> {
    let usual = || (-3.0..0.0).prop_map(|power| libm::pow(10.0, power));
    let time = || prop_oneof![2 => usual(), 1 => any_positive()];
    let micro_batch = prop_oneof![3 => 1..40_u32, 1 => 1..=u32::MAX];
    (any_placement(), micro_batch, time(), time(), any_positive()).prop_map(
        |(placement, micro_batch, accum, optim, weight)| {
            let observation = Observation::new(placement, micro_batch, accum, optim).expect("positive times");
            observation.with_weight(weight).expect("a positive weight")
        },
    )
}

fn any_choice() -> impl Strategy<Value = ComputeChoice> {
    prop::sample::select(vec![ComputeChoice::Auto, ComputeChoice::Linear, ComputeChoice::Roofline])
}

fn check_sound(fit: &Fit) -> Result<(), TestCaseError> {
    prop_assert_eq!(fit.params.validate(), Ok(()));
    prop_assert!(fit.params.last_micro_step_secs(Placement::ALONE, 1).is_finite());
    prop_assert!(fit.objective >= 0.0 && fit.objective.is_finite(), "objective {}", fit.objective);
    prop_assert!(fit.error.mean >= 0.0 && fit.error.worst >= 0.0, "{:?}", fit.error);
    Ok(())
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn any_observations_have_a_fit(
        observations in prop::collection::vec(any_observation(), 0..24),
        compute in any_choice(),
        previous in prop::option::of(any_params()),
        past in prop::collection::vec(any_params(), 0..3),
        open in prop::sample::subsequence(Parameter::ALL.to_vec(), 0..9),
    ) {
        let jobs: Vec<_> = past.into_iter().map(|params| PastFit { params, undetermined: open.clone() }).collect();
        let history = History::of(&jobs);
        let request = FitRequest {
            observations: &observations,
            compute,
            previous: previous.as_ref(),
            history: history.as_ref(),
        };
        let result = fit(&request);
        prop_assert_eq!(result.is_err(), observations.is_empty());
        let Ok(result) = result else { return Ok(()) };
        check_sound(&result)?;
        prop_assert_eq!(&fit(&request).expect("there are observations"), &result, "the same twice");
        for observation in &observations {
            prop_assert_eq!(result.coverage.extrapolations(observation.placement(), observation.micro_batch()), []);
        }
        // And its own fit serves as the past of the next.
        let again = History::of(&[PastFit::from(&result)]);
        let next = FitRequest { previous: Some(&result.params), history: again.as_ref(), ..request };
        check_sound(&fit(&next).expect("there are observations"))?;
    }

    #[test]
    fn any_parameters_have_an_error(params in any_params(), observations in prop::collection::vec(any_observation(), 0..4)) {
        prop_assert_eq!(RelativeError::of(&params, &observations).is_none(), observations.is_empty());
        prop_assert_eq!(Coverage::of(&observations).is_none(), observations.is_empty());
    }
}

/// A job like those of the paper, measured in up to forty configurations with 5 % of noise.
fn measured_job(seed: u64) -> Vec<Observation> {
    let mut dice = Dice(seed);
    let alpha = dice.log_uniform(0.005, 0.3);
    let beta = alpha * dice.log_uniform(0.005, 0.2);
    let grad = if dice.chance(0.5) {
        Compute::Linear { alpha, beta }
    } else {
        Compute::Roofline { alpha, beta, delta: 2.0 + 4.0 * dice.unit() }
    };
    let mut sync =
        || Affine { alpha: alpha * dice.log_uniform(0.1, 3.0), beta: alpha * dice.log_uniform(0.001, 0.05) };
    let (sync_local, sync_node) = (sync(), sync());
    let truth = PerfParams {
        grad,
        sync_local,
        sync_node,
        gamma: dice.log_uniform(1.0, 3.0),
        optimizer_step: 0.1 * alpha * dice.unit(),
    };
    let n_observations = dice.whole(1, 40);
    let observe = |_| {
        let placement = Placement::packed(1 << dice.whole(0, 5), 4).expect("at least one");
        let micro_batch = 1 << dice.whole(1, 8);
        let mut noisy = |secs: f64| secs * libm::exp(0.05 * dice.normal());
        let accum_secs = noisy(truth.grad.secs(f64::from(micro_batch)));
        let optim_secs = noisy(truth.last_micro_step_secs(placement, micro_batch));
        Observation::new(placement, micro_batch, accum_secs, optim_secs).expect("a measurement")
    };
    (0..n_observations).map(observe).collect()
}

/// The largest relative difference of predicted times, over configurations that do not extrapolate.
fn difference(a: &Fit, b: &Fit) -> f64 {
    let mut largest = 0.0_f64;
    for n_replicas in [1, 2, 4, 8, 32] {
        let placement = Placement::packed(n_replicas, 4).expect("at least one");
        for micro_batch in [2, 10, 64, 256] {
            if a.coverage.extrapolations(placement, micro_batch).is_empty() {
                let [a, b] = [a, b].map(|fit| fit.params.last_micro_step_secs(placement, micro_batch));
                largest = largest.max((a / b - 1.0).abs());
            }
        }
    }
    largest
}

proptest! {
    #![proptest_config(config(1_000))]

    #[test]
    fn the_order_of_observations_does_not_matter(seed in any::<u64>(), compute in any_choice()) {
        let mut observations = measured_job(seed);
        let request = FitRequest { observations: &observations, compute, ..FitRequest::default() };
        let one = fit(&request).expect("there are observations");
        let mut dice = Dice(seed ^ 1);
        for index in (1..observations.len()).rev() {
            observations.swap(index, usize::try_from(dice.whole(0, index as u64)).expect("an index"));
        }
        let request = FitRequest { observations: &observations, compute, ..FitRequest::default() };
        let other = fit(&request).expect("there are observations");
        prop_assert_eq!(one, other);
    }

    #[test]
    fn a_warm_start_ends_where_a_cold_one_does(seed in any::<u64>(), compute in any_choice()) {
        let observations = measured_job(seed);
        // The previous fit saw all but the last few observations.
        let seen = observations.len().div_ceil(2);
        let request = FitRequest { observations: &observations[..seen], compute, ..FitRequest::default() };
        let previous = fit(&request).expect("there are observations").params;
        let request = FitRequest { observations: &observations, ..request };
        let cold = fit(&request).expect("there are observations");
        let warm = fit(&FitRequest { previous: Some(&previous), ..request }).expect("there are observations");
        let form = |fit: &Fit| fit.params.grad.form();
        let is_equal = (cold.objective - warm.objective).abs() <= 1e-7 * cold.objective;
        if observations.len() >= 10 && is_equal && form(&cold) == form(&warm) {
            let difference = difference(&cold, &warm);
            prop_assert!(difference <= 0.01, "{difference:e}: {cold:?} and {warm:?}");
        }
    }

    #[test]
    fn a_previous_fit_far_off_does_not_lead_astray(
        seed in any::<u64>(),
        compute in any_choice(),
        previous in valid_params(),
    ) {
        let observations = measured_job(seed);
        let request = FitRequest { observations: &observations, compute, ..FitRequest::default() };
        let cold = fit(&request).expect("there are observations").objective;
        let misled = FitRequest { previous: Some(&previous), ..request };
        let warm = fit(&misled).expect("there are observations").objective;
        prop_assert!(warm <= cold + 2e-3, "{warm} instead of {cold}");
    }
}
