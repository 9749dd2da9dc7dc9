//! What holds for every input: nothing panics or hangs, whatever the numbers, and the model keeps its laws.
//!
//! Inputs are drawn from a fixed seed, so that a failure repeats.

mod common;

use std::time::Duration;

use common::Dice;
use pollux_model::fit::{
    ComputeChoice, Coverage, Fit, FitRequest, History, Observation, Parameter, PastFit, RelativeError, fit,
};
use pollux_model::{
    Affine, Allocation, BatchLimits, BatchPlan, Compute, Efficiency, GlobalBatch, Goodput, GoodputModel,
    GpuShare, GradientMoments, NodeId, NoiseScale, PerfParams, Placement, StepTable, Throughput, Timestamp,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(7),
        ..ProptestConfig::default()
    }
}

/// Every kind of float: any bits, and those that break formulas.
fn any_float() -> impl Strategy<Value = f64> {
    let awkward = prop::sample::select(vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::MIN_POSITIVE,
        5e-324,
        f64::MAX,
        f64::MIN,
        f64::EPSILON,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ]);
    prop_oneof![2 => prop::num::f64::ANY, 1 => awkward, 1 => 0.0..10.0]
}

/// A positive number of any size.
fn any_positive() -> impl Strategy<Value = f64> {
    (-300.0..300.0).prop_map(|power| libm::pow(10.0, power))
}

/// A cost: nothing, of the usual size, or of any size.
fn any_cost() -> impl Strategy<Value = f64> {
    prop_oneof![1 => Just(0.0), 2 => (-6.0..1.0).prop_map(|power| libm::pow(10.0, power)), 1 => any_positive()]
}

fn any_count() -> impl Strategy<Value = u32> {
    prop_oneof![3 => 0..70_u32, 1 => any::<u32>(), 1 => Just(u32::MAX)]
}

fn any_batch() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..5_000_u64, 1 => any::<u64>(), 1 => any::<u32>().prop_map(u64::from), 1 => Just(u64::MAX)]
}

fn any_placement() -> impl Strategy<Value = Placement> {
    (any_count(), any_count()).prop_filter_map("no placement", |(nodes, replicas)| {
        Placement::new(nodes.min(replicas).max(1), replicas)
    })
}

/// Parameters with any floats in them, most of them invalid.
fn any_params() -> impl Strategy<Value = PerfParams> {
    let affine = || (any_float(), any_float()).prop_map(|(alpha, beta)| Affine { alpha, beta });
    (any_compute(any_float().boxed(), any_float().boxed()), affine(), affine(), any_float(), any_float())
        .prop_map(|(grad, sync_local, sync_node, gamma, optimizer_step)| PerfParams {
            grad,
            sync_local,
            sync_node,
            gamma,
            optimizer_step,
        })
}

fn any_compute(cost: BoxedStrategy<f64>, exponent: BoxedStrategy<f64>) -> impl Strategy<Value = Compute> {
    let linear = (cost.clone(), cost.clone()).prop_map(|(alpha, beta)| Compute::Linear { alpha, beta });
    let roofline = (cost.clone(), cost, exponent).prop_map(|(alpha, beta, delta)| Compute::Roofline {
        alpha,
        beta,
        delta,
    });
    prop_oneof![linear, roofline, any_table().prop_map(Compute::Table)]
}

fn any_table() -> impl Strategy<Value = StepTable> {
    prop::collection::btree_map(1..=u32::MAX, any_positive(), 1..8)
        .prop_map(|points| StepTable::new(points).expect("ascending and positive"))
}

/// Parameters that describe a step time, however odd.
fn valid_params() -> impl Strategy<Value = PerfParams> {
    let exponent = || prop_oneof![Just(1.0), Just(10.0), 1.0..10.0];
    let affine = || (any_cost(), any_cost()).prop_map(|(alpha, beta)| Affine { alpha, beta });
    (any_compute(any_cost().boxed(), exponent().boxed()), affine(), affine(), exponent(), any_cost())
        .prop_map(|(grad, sync_local, sync_node, gamma, optimizer_step)| PerfParams {
            grad,
            sync_local,
            sync_node,
            gamma,
            optimizer_step,
        })
        .prop_filter("compute takes time", |params| params.validate().is_ok())
}

fn any_limits() -> impl Strategy<Value = BatchLimits> {
    let options = (any_count(), any::<bool>(), any::<bool>(), any::<bool>(), any_batch());
    (any_batch(), any_batch(), any_count(), any_count(), options).prop_filter_map(
        "no limits",
        |(a, b, c, d, (accum_steps, capped, alone, fixed, low))| {
            let initial = a.min(b).max(1);
            let max = if fixed { initial } else { a.max(b) };
            let mut limits = BatchLimits::new(initial, max, c.min(d).max(1), c.max(d)).ok()?;
            if capped {
                limits = limits.with_max_accum_steps(accum_steps);
            }
            if alone {
                limits = limits.accumulating_alone();
            }
            limits.within(GlobalBatch(low), GlobalBatch(u64::MAX)).or(Some(limits))
        },
    )
}

fn any_noise() -> impl Strategy<Value = NoiseScale> {
    prop_oneof![Just(0.0), Just(f64::INFINITY), any_positive(), 1.0..1e6]
        .prop_filter_map("no noise scale", NoiseScale::from_samples)
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn quantities_are_never_negative_nor_nan(a in any_float(), b in any_float()) {
        let (throughput, efficiency) = (Throughput::new(a), Efficiency::new(b));
        prop_assert!(throughput.samples_per_sec() >= 0.0 && efficiency.ratio() >= 0.0);
        prop_assert!((throughput * efficiency).useful_samples_per_sec() >= 0.0);
        prop_assert!((Goodput::new(a) / Goodput::new(b)).ratio() >= 0.0);
    }

    #[test]
    fn time_stops_at_its_ends(a in any::<u64>(), b in any::<u64>(), secs in any::<u64>(), nanos in 0..1_000_000_000_u32) {
        let (first, second) = (Timestamp::from_micros(a.min(b)), Timestamp::from_micros(a.max(b)));
        prop_assert_eq!(first + (second - first), second);
        prop_assert_eq!(first - second, Duration::ZERO);
        let mut later = first;
        later += Duration::new(secs, nanos);
        prop_assert!(later >= first && later.as_secs_f64() >= 0.0);
        prop_assert!(Timestamp::from_secs(secs).as_micros() >= secs);
    }

    #[test]
    fn allocations_add_up(
        counts in prop::collection::vec((any::<u32>(), any_count()), 0..6),
        thousandths in any_count(),
        per_node in any_count(),
    ) {
        let allocation = Allocation::whole(counts.iter().map(|&(node, count)| (NodeId(node), count)));
        prop_assert_eq!(allocation.is_empty(), allocation.placement().is_none());
        prop_assert!(allocation.gpus() >= allocation.iter().count() as f64);
        for (node, share) in allocation.iter() {
            prop_assert_eq!(allocation.on(node), Some(share));
            prop_assert!(share.is_whole() && share.n_replicas() >= 1);
        }
        if let Some(share) = GpuShare::part_of_one(thousandths) {
            let part = Allocation::part_of_one(NodeId(0), share).expect("a part is no whole GPU");
            prop_assert_eq!(part.placement(), Some(Placement::ALONE));
        }
        if let Some(placement) = Placement::packed(thousandths, per_node) {
            prop_assert!(placement.n_nodes() <= placement.n_replicas());
        }
    }

    #[test]
    fn batch_plans_deal_every_sample(
        global in any_batch(),
        placement in any_placement(),
        (atomic, steps, rank, step) in (any_count(), any_count(), any::<u32>(), any::<u32>()),
        limits in any_limits(),
    ) {
        let plans = [BatchPlan::even(placement, atomic, steps), BatchPlan::split(GlobalBatch(global), placement, steps)];
        for plan in plans.into_iter().flatten() {
            let _ = limits.allows(placement, plan);
            let largest = plan.micro_batch(placement, 0, 0);
            let any = plan.micro_batch(placement, rank, step);
            prop_assert!(plan.smallest_micro_batch(placement) <= any && any <= largest);
            prop_assert!(plan.replica_share(placement, rank) >= any);
            prop_assert!(plan.gradient_weight(placement, rank) > 0.0);
        }
        if let Some(plan) = plans[1] {
            prop_assert_eq!(plan.global(), GlobalBatch(global));
            prop_assert_eq!(u64::from(plan.atomic_batch()), plan.micro_batch(placement, 0, 0));
        }
        prop_assert_eq!(BatchLimits::fixed(global, atomic, steps).is_ok(), global > 0 && atomic > 0 && steps >= atomic);
        prop_assert_eq!(limits.with_micro_max(atomic).is_ok(), atomic >= limits.micro_min());
        let _ = limits.max_replicas();
    }

    #[test]
    fn tables_take_times_and_nothing_else(points in prop::collection::vec((any_count(), any_float()), 0..6), at in any_float()) {
        if let Ok(table) = StepTable::new(points.iter().copied()) {
            prop_assert!(table.points().iter().all(|&(_, secs)| secs > 0.0 && secs.is_finite()));
            let _ = table.secs(at);
        }
    }

    #[test]
    fn observations_are_refused_or_sound(
        placement in any_placement(),
        micro_batch in any_count(),
        (accum, optim, weight) in (any_float(), any_float(), any_float()),
    ) {
        let is_positive = |value: f64| value > 0.0 && value.is_finite();
        let observation = Observation::new(placement, micro_batch, accum, optim);
        prop_assert_eq!(observation.is_ok(), micro_batch > 0 && is_positive(accum) && is_positive(optim));
        if let Ok(observation) = observation {
            prop_assert_eq!(observation.with_weight(weight).is_ok(), is_positive(weight));
        }
    }

    #[test]
    fn any_parameters_can_be_asked(params in any_params(), placement in any_placement(), atomic in 1..u32::MAX, steps in any_count()) {
        let plan = BatchPlan::even(placement, atomic, steps).expect("not empty");
        let secs = [params.step_secs(placement, plan), params.last_micro_step_secs(placement, atomic)];
        prop_assert!(params.throughput(placement, plan).samples_per_sec() >= 0.0);
        if params.validate().is_ok() {
            prop_assert!(!secs.iter().any(|&secs| secs < 0.0), "{secs:?}");
        }
        let _ = (params.sync_secs(placement), params.grad.form(), params.grad.is_valid());
    }

    #[test]
    fn noise_makes_efficiency_and_gain(sqr in any_float(), var in any_float(), a in any_batch(), b in any_batch()) {
        let _ = GradientMoments { sqr, var }.noise_scale(GlobalBatch(a));
        let _ = NoiseScale::from_samples(var).map(|noise| noise.gain(GlobalBatch(a), GlobalBatch(b)));
        let (initial, batch) = (a.min(b).max(1), a.max(b).max(1));
        for noise in [NoiseScale::from_samples(sqr), GradientMoments { sqr, var }.noise_scale(GlobalBatch(initial))] {
            let Some(noise) = noise else { continue };
            let efficiency = noise.efficiency(GlobalBatch(initial), GlobalBatch(batch)).ratio();
            prop_assert!(efficiency > 0.0 && efficiency <= 1.0, "{efficiency}");
            let gain = noise.gain(GlobalBatch(initial), GlobalBatch(batch));
            let ratio = batch as f64 / initial as f64;
            prop_assert!(gain >= 1.0 - 1e-12 && gain <= ratio * (1.0 + 1e-12), "{gain} of {ratio}");
        }
    }
}

proptest! {
    #![proptest_config(config(8_000))]

    #[test]
    fn the_best_batch_is_found_and_keeps_the_limits(
        params in valid_params(),
        noise in any_noise(),
        limits in any_limits(),
        placement in any_placement(),
    ) {
        let model = GoodputModel::new(params, noise, limits).expect("valid parameters");
        let Some(plan) = model.best_batch(placement) else { return Ok(()) };
        prop_assert!(limits.allows(placement, plan), "{:?} breaks {:?}", plan, limits);
        let (goodput, throughput) = (model.goodput(placement, plan), model.throughput(placement, plan));
        prop_assert!(goodput.useful_samples_per_sec() <= throughput.samples_per_sec());
        prop_assert!(model.efficiency(plan).ratio() > 0.0 && model.efficiency(plan).ratio() <= 1.0);
    }
}

/// Jobs of the usual kind, whose best batch is exact: compute by formula, limits of a few thousand samples.
fn usual_model() -> impl Strategy<Value = (GoodputModel, Placement)> {
    let cost = || (-4.0..0.0).prop_map(|power| libm::pow(10.0, power));
    let affine = move || (cost(), cost()).prop_map(|(alpha, beta)| Affine { alpha, beta: 0.1 * beta });
    let compute = (cost(), cost(), 1.0..10.0, any::<bool>()).prop_map(|(alpha, beta, delta, bent)| {
        let beta = 0.1 * beta;
        if bent { Compute::Roofline { alpha, beta, delta } } else { Compute::Linear { alpha, beta } }
    });
    let params = (compute, affine(), affine(), 1.0..10.0).prop_map(|(grad, sync_local, sync_node, gamma)| {
        PerfParams { grad, sync_local, sync_node, gamma, optimizer_step: 0.0 }
    });
    // Some leave room for a few batches only.
    let growth = prop_oneof![1 => 0..10_u64, 2 => 0..3_000_u64];
    let limits = (1..400_u64, growth, 1..16_u32, 0..200_u32, prop::option::of(0..4_u32)).prop_map(
        |(initial, growth, micro_min, micro_range, accum_steps)| {
            let limits = BatchLimits::new(initial, initial + growth, micro_min, micro_min + micro_range);
            let limits = limits.expect("not empty");
            accum_steps.map_or(limits, |steps| limits.with_max_accum_steps(steps))
        },
    );
    (params, any_noise(), limits, 1..=64_u32).prop_map(|(params, noise, limits, n_replicas)| {
        let placement = Placement::packed(n_replicas, 4).expect("at least one");
        (GoodputModel::new(params, noise, limits).expect("valid"), placement)
    })
}

fn best_goodput(params: &PerfParams, noise: NoiseScale, limits: BatchLimits, placement: Placement) -> f64 {
    let model = GoodputModel::new(params.clone(), noise, limits).expect("valid");
    model.best_goodput(placement).useful_samples_per_sec()
}

proptest! {
    #![proptest_config(config(8_000))]

    #[test]
    fn a_relaxed_limit_never_costs_goodput((model, placement) in usual_model(), more in 1..500_u32) {
        let (limits, noise) = (*model.limits(), model.noise());
        let (initial, max) = (limits.initial().0, limits.max().0);
        let (micro_min, micro_max) = (limits.micro_min(), limits.micro_max());
        let with = |max: u64, micro_min: u32, micro_max: u32, steps: u32| {
            BatchLimits::new(initial, max, micro_min, micro_max).expect("wider").with_max_accum_steps(steps)
        };
        let steps = limits.max_accum_steps();
        let strict = best_goodput(model.params(), noise, limits, placement);
        for relaxed in [
            with(max + u64::from(more), micro_min, micro_max, steps),
            with(max, micro_min.saturating_sub(more).max(1), micro_max, steps),
            with(max, micro_min, micro_max + more, steps),
            with(max, micro_min, micro_max, steps.saturating_add(more)),
        ] {
            let goodput = best_goodput(model.params(), noise, relaxed, placement);
            prop_assert!(goodput >= strict * (1.0 - 1e-12), "{goodput} with {relaxed:?}, {strict} with {limits:?}");
        }
    }

    #[test]
    fn cheaper_exchange_never_costs_goodput((model, placement) in usual_model(), factor in 0.0..1.0) {
        let cheaper = |sync: Affine| Affine { alpha: sync.alpha * factor, beta: sync.beta * factor };
        let params = model.params();
        let faster = PerfParams {
            sync_local: cheaper(params.sync_local),
            sync_node: cheaper(params.sync_node),
            ..params.clone()
        };
        let dear = best_goodput(params, model.noise(), *model.limits(), placement);
        let cheap = best_goodput(&faster, model.noise(), *model.limits(), placement);
        prop_assert!(cheap >= dear * (1.0 - 1e-12), "{cheap} with the cheaper exchange, {dear} without");
    }
}

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
