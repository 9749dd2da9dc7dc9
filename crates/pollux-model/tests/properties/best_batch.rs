//! The best batch: found whatever the numbers, and monotone where it must be.

use pollux_model::{Affine, BatchLimits, Compute, GoodputModel, NoiseScale, PerfParams, Placement};
use proptest::prelude::*;

use crate::strategies::*;

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
