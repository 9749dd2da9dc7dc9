//! Inputs of every kind, from the usual to the absurd.

use pollux_model::{Affine, BatchLimits, Compute, GlobalBatch, NoiseScale, PerfParams, Placement, StepTable};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

pub(crate) fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(7),
        ..ProptestConfig::default()
    }
}

/// Every kind of float: any bits, and those that break formulas.
pub(crate) fn any_float() -> impl Strategy<Value = f64> {
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
pub(crate) fn any_positive() -> impl Strategy<Value = f64> {
    (-300.0..300.0).prop_map(|power| libm::pow(10.0, power))
}

/// A cost: nothing, of the usual size, or of any size.
pub(crate) fn any_cost() -> impl Strategy<Value = f64> {
    prop_oneof![1 => Just(0.0), 2 => (-6.0..1.0).prop_map(|power| libm::pow(10.0, power)), 1 => any_positive()]
}

pub(crate) fn any_count() -> impl Strategy<Value = u32> {
    prop_oneof![3 => 0..70_u32, 1 => any::<u32>(), 1 => Just(u32::MAX)]
}

pub(crate) fn any_batch() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..5_000_u64, 1 => any::<u64>(), 1 => any::<u32>().prop_map(u64::from), 1 => Just(u64::MAX)]
}

pub(crate) fn any_placement() -> impl Strategy<Value = Placement> {
    (any_count(), any_count()).prop_filter_map("no placement", |(nodes, replicas)| {
        Placement::new(nodes.min(replicas).max(1), replicas)
    })
}

/// Parameters with any floats in them, most of them invalid.
pub(crate) fn any_params() -> impl Strategy<Value = PerfParams> {
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

pub(crate) fn any_compute(
    cost: BoxedStrategy<f64>,
    exponent: BoxedStrategy<f64>,
) -> impl Strategy<Value = Compute> {
    let linear = (cost.clone(), cost.clone()).prop_map(|(alpha, beta)| Compute::Linear { alpha, beta });
    let roofline = (cost.clone(), cost, exponent).prop_map(|(alpha, beta, delta)| Compute::Roofline {
        alpha,
        beta,
        delta,
    });
    prop_oneof![linear, roofline, any_table().prop_map(Compute::Table)]
}

pub(crate) fn any_table() -> impl Strategy<Value = StepTable> {
    prop::collection::btree_map(1..=u32::MAX, any_positive(), 1..8)
        .prop_map(|points| StepTable::new(points).expect("ascending and positive"))
}

/// Parameters that describe a step time, however odd.
pub(crate) fn valid_params() -> impl Strategy<Value = PerfParams> {
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

pub(crate) fn any_limits() -> impl Strategy<Value = BatchLimits> {
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

pub(crate) fn any_noise() -> impl Strategy<Value = NoiseScale> {
    prop_oneof![Just(0.0), Just(f64::INFINITY), any_positive(), 1.0..1e6]
        .prop_filter_map("no noise scale", NoiseScale::from_samples)
}
