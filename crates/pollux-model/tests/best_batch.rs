//! The best batch against brute force over every whole micro-batch and accumulation.
#![expect(clippy::print_stdout, reason = "figures for those who ask, with --nocapture")]

mod common;

use common::Dice;
use pollux_model::{
    Affine, BatchLimits, BatchPlan, Compute, GoodputModel, NoiseScale, PerfParams, Placement, StepTable,
};

fn random_compute(dice: &mut Dice) -> Compute {
    let alpha = if dice.chance(0.1) { 0.0 } else { dice.log_uniform(1e-4, 1.0) };
    let beta = dice.log_uniform(1e-6, 0.1);
    match dice.whole(0, 2) {
        0 => Compute::Linear { alpha, beta },
        1 => Compute::Roofline { alpha, beta, delta: 1.0 + 9.0 * dice.unit() },
        _ => {
            let mut micro_batch = 0;
            let points: Vec<_> = (0..dice.whole(1, 6))
                .map(|_| {
                    micro_batch += u32::try_from(dice.whole(1, 40)).unwrap();
                    (micro_batch, dice.log_uniform(1e-3, 1.0))
                })
                .collect();
            Compute::Table(StepTable::new(points).unwrap())
        }
    }
}

fn random_affine(dice: &mut Dice) -> Affine {
    if dice.chance(0.2) {
        return Affine::default();
    }
    Affine { alpha: dice.log_uniform(1e-4, 1.0), beta: dice.log_uniform(1e-5, 0.1) }
}

fn random_case(dice: &mut Dice) -> (GoodputModel, Placement) {
    let params = PerfParams {
        grad: random_compute(dice),
        sync_local: random_affine(dice),
        sync_node: random_affine(dice),
        gamma: if dice.chance(0.2) { 1.0 } else { 1.0 + 9.0 * dice.unit() },
        optimizer_step: if dice.chance(0.5) { 0.0 } else { dice.log_uniform(1e-4, 0.5) },
    };
    let noise = match dice.whole(0, 9) {
        0 => 0.0,
        1 => f64::INFINITY,
        _ => dice.log_uniform(1.0, 1e6),
    };
    let n_replicas = u32::try_from(dice.whole(1, 64)).unwrap();
    let placement = Placement::packed(n_replicas, 4).unwrap();
    let initial = dice.whole(1, 400);
    let max = if dice.chance(0.1) { initial } else { initial + dice.whole(0, 2_500) };
    let micro_min = u32::try_from(dice.whole(1, 16)).unwrap();
    let micro_max = micro_min + u32::try_from(dice.whole(0, 200)).unwrap();
    let mut limits = BatchLimits::new(initial, max, micro_min, micro_max).unwrap();
    if dice.chance(0.3) {
        limits = limits.with_max_accum_steps(u32::try_from(dice.whole(0, 3)).unwrap());
    }
    if dice.chance(0.2) {
        limits = limits.accumulating_alone();
    }
    (GoodputModel::new(params, NoiseScale::from_samples(noise).unwrap(), limits).unwrap(), placement)
}

/// The best goodput of all even plans within the limits.
fn brute_force(model: &GoodputModel, placement: Placement) -> Option<f64> {
    let limits = model.limits();
    let n_replicas = u64::from(placement.n_replicas());
    let mut best = None;
    let mut accum_steps = 0;
    while n_replicas * u64::from(limits.micro_min()) * (u64::from(accum_steps) + 1) <= limits.max().0 {
        for micro_batch in limits.micro_min()..=limits.micro_max() {
            let plan = BatchPlan::even(placement, micro_batch, accum_steps).unwrap();
            if limits.allows(placement, plan) {
                let goodput = model.goodput(placement, plan).useful_samples_per_sec();
                best = Some(best.map_or(goodput, |best: f64| best.max(goodput)));
            }
        }
        accum_steps += 1;
    }
    best
}

#[test]
fn no_plan_is_better_on_twenty_thousand_random_jobs() {
    let mut dice = Dice(1);
    let (mut worst, mut compared, mut split) = (0.0_f64, 0, 0);
    for case in 0..20_000 {
        let (model, placement) = random_case(&mut dice);
        let found = model.best_batch(placement);
        if let Some(plan) = found {
            assert!(
                model.limits().allows(placement, plan),
                "case {case}: {plan:?} breaks {:?}",
                model.limits()
            );
        }
        let Some(best) = brute_force(&model, placement) else {
            split += usize::from(found.is_some());
            continue;
        };
        let plan = found.unwrap_or_else(|| {
            panic!("case {case}: brute force finds a plan, the solver none: {model:?} on {placement:?}")
        });
        // Tables, and batches that must be split unevenly, promise the best of 64 accumulation counts.
        let limits = model.limits();
        let counts = limits.max().0 / (u64::from(placement.n_replicas()) * u64::from(limits.micro_min()));
        if counts > 64 && (limits.is_fixed() || matches!(model.params().grad, Compute::Table(_))) {
            continue;
        }
        let gap = 1.0 - model.goodput(placement, plan).useful_samples_per_sec() / best;
        assert!(
            gap <= 1e-12,
            "case {case}: {gap:e} below the optimum: {plan:?} for {model:?} on {placement:?}"
        );
        worst = worst.max(gap);
        compared += 1;
    }
    println!("compared {compared}, split evenly {split}, largest gap {worst:e}");
    assert!(compared > 10_000, "only {compared} cases have an optimum to compare with");
    assert!(split > 100, "only {split} cases exercise the split");
}

#[test]
fn a_fixed_batch_stays_exact_on_any_number_of_gpus() {
    let params = PerfParams {
        grad: Compute::Linear { alpha: 0.01, beta: 0.001 },
        sync_local: Affine { alpha: 0.01, beta: 0.0 },
        sync_node: Affine { alpha: 0.05, beta: 0.0 },
        gamma: 1.5,
        optimizer_step: 0.0,
    };
    let limits = BatchLimits::fixed(128, 4, 64).unwrap();
    let model = GoodputModel::new(params, NoiseScale::from_samples(500.0).unwrap(), limits).unwrap();
    for n_replicas in 1..=32 {
        let placement = Placement::packed(n_replicas, 8).unwrap();
        let plan = model.best_batch(placement).unwrap();
        assert_eq!(plan.global().0, 128);
        assert!(model.efficiency(plan).ratio() >= 1.0 - 1e-12);
    }
    let three = model.best_batch(Placement::new(1, 3).unwrap()).unwrap();
    assert_eq!((three.atomic_batch(), three.accum_steps()), (43, 0));
    assert_eq!(
        model.best_batch(Placement::packed(33, 8).unwrap()),
        None,
        "3 samples are below the smallest micro-batch"
    );
}
