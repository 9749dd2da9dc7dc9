//! Every number is kept.

use pollux_api::agent_state;
use pollux_model::fit::{Coverage, Fit, Parameter, RelativeError};
use pollux_model::{Affine, Compute, GpuType, PerfParams, StepTable, Timestamp};
use proptest::prelude::*;

use super::world::bits;
use super::{config, full, read};

fn not_negative() -> impl Strategy<Value = f64> {
    prop::num::f64::POSITIVE | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO
}

fn finite() -> impl Strategy<Value = f64> {
    prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO
}

fn fit(compute: Compute, numbers: &[f64], objective: f64) -> Fit {
    let affine =
        |from: usize| Affine { alpha: numbers[from].abs() / 2.0, beta: numbers[from + 1].abs() / 2.0 };
    Fit {
        params: PerfParams {
            grad: compute,
            sync_local: affine(0),
            sync_node: affine(2),
            gamma: 1.0 + 1.0 / 3.0,
            optimizer_step: numbers[4].abs(),
        },
        undetermined: Parameter::ALL.to_vec(),
        objective,
        error: RelativeError { mean: numbers[5].abs(), worst: f64::INFINITY },
        coverage: Coverage {
            micro_batch: (1, u32::MAX),
            alone: true,
            one_node: None,
            distributed: Some((2, 9)),
        },
    }
}

proptest! {
    #![proptest_config(config(1_000))]

    #[test]
    fn every_float_is_kept(
        numbers in prop::collection::vec(finite(), 16),
        positive in prop::collection::vec(prop::num::f64::POSITIVE | prop::num::f64::SUBNORMAL, 3),
        logs in prop::collection::vec(-745.2..710.0, 6),
        progress in not_negative(),
        counts: (u64, u64, u64),
        name in "\\PC{0,8}|[\\x00-\\x1f\"\\\\]{1,4}",
    ) {
        let mut state = full();
        let positive: Vec<f64> = positive.into_iter().map(f64::abs).collect();
        state.progress = progress.abs();
        (state.samples, state.steps_since_change) = (counts.0, counts.1);
        state.last_report = Some(Timestamp::from_micros(counts.2));
        state.learning_rate_factor = positive[0];
        state.noise.acted = Some(positive[1]);
        (state.noise.block.sqr, state.noise.block.trace) = (numbers[6], numbers[7]);
        (state.noise.held_back.sqr, state.noise.held_back.scale) = (numbers[8], numbers[9].abs());
        (state.noise.running.sqr, state.noise.running.trace) = (numbers[10], -0.0);
        let entry = state.profile.entries.values_mut().next().unwrap();
        (entry.log_compute, entry.log_optim) = (logs[0], logs[1]);
        entry.first = vec![(logs[2], logs[3]), (logs[4], logs[5])];
        entry.deviation = numbers[11].abs();
        let gpu_type = GpuType::new(&name);
        let table = StepTable::new([(1, positive[2]), (u32::MAX, 1.0)]).unwrap();
        state.fits.insert(gpu_type.clone(), fit(Compute::Table(table), &numbers, numbers[12]));
        state.fit_revisions.insert(gpu_type.clone(), counts.1);
        let linear = Compute::Linear { alpha: numbers[13].abs() / 2.0, beta: positive[2] / 2.0 };
        prop_assume!(linear.is_valid());
        state.fits.insert(GpuType::new("linear"), fit(linear, &numbers, f64::INFINITY));
        state.micro_max.insert(gpu_type, 1);

        let again = read(&agent_state::to_json(&state));
        prop_assert_eq!(bits(&again), bits(&state));
        prop_assert_eq!(again, state);
    }
}
