//! Fits against values of the authors' own implementation.
#![expect(clippy::print_stdout, reason = "figures for those who ask, with --nocapture")]
#![expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers, in tests")]

mod common;

use pollux_model::Placement;
use pollux_model::fit::{ComputeChoice, FitRequest, Observation, fit};

/// Observations and the objective SciPy reached.
fn cases() -> Option<Vec<(Vec<Observation>, f64)>> {
    let file = common::reference_json("fit_cases.json")?;
    let cases = file["cases"].as_array().unwrap().iter().map(|case| {
        let observations = &case["observations"];
        let column = |name: &str| -> Vec<f64> {
            observations[name].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
        };
        let (nodes, replicas, micro) = (column("num_nodes"), column("num_replicas"), column("atomic_bsz"));
        let (accum, optim) = (column("accum_step_time"), column("optim_step_time"));
        let observations = (0..nodes.len())
            .map(|i| {
                let placement = Placement::new(nodes[i] as u32, replicas[i] as u32).unwrap();
                Observation::new(placement, micro[i] as u32, accum[i], optim[i]).unwrap()
            })
            .collect();
        (observations, case["minimizer_objective"].as_f64().unwrap())
    });
    Some(cases.collect())
}

#[test]
fn the_linear_fit_is_as_good_as_scipys() {
    let Some(cases) = cases() else { return };
    let (mut as_good, mut better, mut worst) = (0, 0, f64::NEG_INFINITY);
    for (index, (observations, reference)) in cases.iter().enumerate() {
        let request = FitRequest { observations, compute: ComputeChoice::Linear, ..FitRequest::default() };
        let ours = fit(&request).unwrap();
        let over = ours.objective / reference - 1.0;
        worst = worst.max(over);
        if ours.objective > reference + 1e-4 {
            println!(
                "case {index}, {} observations: {} against {reference}",
                observations.len(),
                ours.objective
            );
        }
        as_good += usize::from(ours.objective <= reference + 1e-4);
        better += usize::from(ours.objective < reference - 1e-4);

        let again = fit(&FitRequest { previous: Some(&ours.params), ..request }).unwrap();
        assert!(again.objective <= ours.objective + 1e-4, "case {index}: a warm start ends no worse");
    }
    println!(
        "{as_good} of {} as good, {better} better; at worst {:.4} % above SciPy's",
        cases.len(),
        100.0 * worst
    );
    assert!(as_good * 100 >= 95 * cases.len());
    assert!(worst <= 0.01, "{worst}");
}
