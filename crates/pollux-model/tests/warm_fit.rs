//! A previous fit saves work and changes no answer.

use pollux_model::fit::{FitRequest, Observation, fit};
use pollux_model::{Affine, Compute, PerfParams, Placement};

const LINEAR: Compute = Compute::Linear { alpha: 0.05, beta: 0.002 };
const ROOFLINE: Compute = Compute::Roofline { alpha: 0.1, beta: 0.002, delta: 6.0 };

fn job(grad: Compute) -> PerfParams {
    PerfParams {
        grad,
        sync_local: Affine { alpha: 0.03, beta: 0.002 },
        sync_node: Affine { alpha: 0.1, beta: 0.004 },
        gamma: 1.5,
        optimizer_step: 0.01,
    }
}

/// The job at six micro-batches on each of five placements, with errors of up to 2 % either way.
fn observations(job: &PerfParams) -> Vec<Observation> {
    let placements = [(1, 1), (1, 2), (1, 4), (2, 8), (4, 16)].map(|(n, k)| Placement::new(n, k).unwrap());
    let of = |placement: Placement, micro_batch: u32| {
        let error = 0.99 + 0.01 * f64::from((micro_batch / 8 + placement.n_replicas()) % 4);
        let accum_secs = error * job.grad.secs(f64::from(micro_batch));
        let optim_secs = error * job.last_micro_step_secs(placement, micro_batch);
        Observation::new(placement, micro_batch, accum_secs, optim_secs).unwrap()
    };
    let sizes = [8, 16, 32, 64, 128, 256];
    placements.into_iter().flat_map(|placement| sizes.map(|size| of(placement, size))).collect()
}

fn check_warm(truth: Compute, previous: Compute) {
    let (form, truth, previous) = (truth.form(), job(truth), job(previous));
    let observations = observations(&truth);
    let cold = FitRequest { observations: &observations, ..FitRequest::default() };
    let warm = FitRequest { previous: Some(&previous), ..cold };
    let [cold, warm] = [cold, warm].map(|request| fit(&request).unwrap());
    assert_eq!(warm.params.grad.form(), form);
    assert_eq!(cold.params.grad.form(), form);
    for observation in &observations {
        let [cold, warm] = [&cold, &warm]
            .map(|fit| fit.params.last_micro_step_secs(observation.placement(), observation.micro_batch()));
        assert!((warm / cold - 1.0).abs() < 0.005, "{observation:?}: {cold} and {warm}");
    }
}

#[test]
fn the_form_follows_the_data_whatever_it_was() {
    check_warm(LINEAR, LINEAR);
    check_warm(LINEAR, ROOFLINE);
    check_warm(ROOFLINE, LINEAR);
    check_warm(ROOFLINE, ROOFLINE);
}
