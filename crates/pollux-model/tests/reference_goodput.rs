//! Throughput, efficiency and best batch against values of the authors' own implementation.
#![expect(clippy::print_stdout, reason = "figures for those who ask, with --nocapture")]

mod common;

use pollux_model::{
    Affine, BatchLimits, BatchPlan, Compute, GoodputModel, GradientMoments, PerfParams, Placement, osdi21,
};
use serde_json::Value;

struct Case {
    theirs: osdi21::Params,
    limits: osdi21::Limits,
    moments: GradientMoments,
    placement: Placement,
    choice: osdi21::Choice,
    throughput: f64,
    efficiency: f64,
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("`{key}` is missing"))
}

fn count(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("`{key}` is missing"))
}

fn parse(value: &Value) -> Case {
    let p: Vec<f64> = value["perf_params"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    Case {
        theirs: osdi21::Params {
            alpha_c: p[0],
            beta_c: p[1],
            alpha_n: p[2],
            beta_n: p[3],
            alpha_r: p[4],
            beta_r: p[5],
            gamma: p[6],
        },
        limits: osdi21::Limits {
            init: count(value, "init_batch_size"),
            max: count(value, "max_batch_size"),
            min_atomic: count(value, "min_atomic_bsz"),
            max_atomic: count(value, "max_atomic_bsz"),
        },
        moments: GradientMoments { sqr: number(value, "grad_sqr"), var: number(value, "grad_var") },
        placement: Placement::new(
            u32::try_from(count(value, "num_nodes")).unwrap(),
            u32::try_from(count(value, "num_replicas")).unwrap(),
        )
        .unwrap(),
        choice: osdi21::Choice {
            goodput: number(value, "goodput"),
            atomic_batch: count(value, "atomic_bsz"),
            accum_steps: count(value, "accum_steps"),
        },
        throughput: number(value, "throughput"),
        efficiency: number(value, "efficiency"),
    }
}

/// The product's form of the same parameters. It has no floors: one replica exchanges for exactly nothing.
fn product_params(theirs: &osdi21::Params) -> PerfParams {
    PerfParams {
        grad: Compute::Linear { alpha: theirs.alpha_c, beta: theirs.beta_c },
        sync_local: Affine { alpha: theirs.alpha_r, beta: theirs.beta_r },
        sync_node: Affine { alpha: theirs.alpha_n, beta: theirs.beta_n },
        gamma: theirs.gamma,
        optimizer_step: 0.0,
    }
}

fn relative(a: f64, b: f64) -> f64 {
    (a / b - 1.0).abs()
}

#[test]
fn every_case_agrees_with_the_reference_and_no_best_batch_is_worse() {
    let Some(file) = common::reference_json("goodput_cases.json") else { return };
    let cases: Vec<Case> = file["cases"].as_array().unwrap().iter().map(parse).collect();
    let (mut floors, mut zeros, mut within, mut better) = (0.0_f64, 0.0_f64, 0, 0);
    for case in &cases {
        let initial = case.limits.init;
        let noise = case.moments.noise_scale(pollux_model::GlobalBatch(initial)).unwrap();
        let (atomic, steps) = (case.choice.atomic_batch, case.choice.accum_steps);
        floors = floors.max(relative(
            case.theirs.throughput(case.placement, atomic as f64, steps as f64),
            case.throughput,
        ));

        let micro_min = u32::try_from(case.limits.min_atomic).unwrap();
        let micro_max = u32::try_from(case.limits.max_atomic).unwrap();
        let limits = BatchLimits::new(initial, case.limits.max, micro_min, micro_max).unwrap();
        let model = GoodputModel::new(product_params(&case.theirs), noise, limits).unwrap();
        let plan =
            BatchPlan::even(case.placement, u32::try_from(atomic).unwrap(), u32::try_from(steps).unwrap())
                .unwrap();
        floors = floors.max(relative(model.efficiency(plan).ratio(), case.efficiency));
        zeros =
            zeros.max(relative(model.throughput(case.placement, plan).samples_per_sec(), case.throughput));

        let again = case.theirs.optimize(case.placement, case.limits, noise.samples(), 50);
        assert_eq!((again.atomic_batch, again.accum_steps), (atomic, steps), "our port of their search");
        assert!(relative(again.goodput, case.choice.goodput) < 1e-9);

        let best = model.best_batch(case.placement);
        if let Some(best) = best {
            assert!(model.limits().allows(case.placement, best));
        }
        if plan.global() <= model.limits().max() {
            let ours = model.best_goodput(case.placement).useful_samples_per_sec();
            assert!(
                ours >= case.choice.goodput * (1.0 - 1e-9),
                "{ours} is below the reference's {}",
                case.choice.goodput
            );
            within += 1;
            better += usize::from(ours > case.choice.goodput * (1.0 + 1e-9));
        }
    }
    println!(
        "{} cases: largest relative difference {floors:.1e} with floors, {zeros:.1e} with exact zeros; \
         best goodput at least the reference's in all {within} cases within limits, above it in {better}",
        cases.len()
    );
    assert!(floors < 1e-9, "{floors:e}");
    assert!(zeros < 1e-6, "{zeros:e}");
}
