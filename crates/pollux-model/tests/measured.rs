//! Fits on measured step times: newer GPUs, all placements of the paper's six applications, history.
#![expect(clippy::print_stdout, reason = "figures for those who ask, with --nocapture")]

mod common;

use std::collections::BTreeMap;

use common::{APPLICATIONS, Dice, t4_observations};
use pollux_model::fit::{ComputeChoice, Fit, FitRequest, History, Observation, PastFit, RelativeError, fit};
use pollux_model::{PerfParams, Placement};

fn fitted(observations: &[Observation], compute: ComputeChoice) -> Fit {
    fit(&FitRequest { observations, compute, ..FitRequest::default() }).unwrap()
}

fn mean_error(params: &PerfParams, observations: &[Observation]) -> f64 {
    RelativeError::of(params, observations).unwrap().mean
}

/// Every second observation to learn from and the others to be judged on, both ways round.
fn halves(observations: &[Observation]) -> [(Vec<Observation>, Vec<Observation>); 2] {
    let part = |from: usize| observations.iter().skip(from).step_by(2).copied().collect::<Vec<_>>();
    [(part(0), part(1)), (part(1), part(0))]
}

fn h200() -> Option<BTreeMap<String, Vec<Observation>>> {
    let path = common::reference_data()?.join("h200/sweep.csv");
    let text = std::fs::read_to_string(path).unwrap();
    let mut models = BTreeMap::<String, Vec<Observation>>::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let observation = Observation::new(
            Placement::ALONE,
            fields[2].parse().unwrap(),
            fields[3].parse().unwrap(),
            fields[4].parse().unwrap(),
        );
        models.entry(fields[0].into()).or_default().push(observation.unwrap());
    }
    Some(models)
}

#[test]
fn on_an_h200_batch_sizes_kept_out_are_predicted_within_six_per_cent() {
    let Some(models) = h200() else { return };
    assert_eq!(models.len(), 4);
    for (model, observations) in models {
        for (learn, kept_out) in halves(&observations) {
            let [auto, linear] = [ComputeChoice::Auto, ComputeChoice::Linear].map(|c| fitted(&learn, c));
            let error = RelativeError::of(&auto.params, &kept_out).unwrap();
            println!(
                "{model} from {} sizes: {} {:.1} % (worst {:.1} %), linear {:.1} %",
                learn.len(),
                auto.params.grad.form(),
                100.0 * error.mean,
                100.0 * error.worst,
                100.0 * mean_error(&linear.params, &kept_out)
            );
            assert!(error.mean <= 0.06, "{model}: {error:?} by {:?}", auto.params);
        }
    }
}

/// Measured after every setting of the fit was fixed; see `examples/h200/README.md`.
#[test]
fn on_models_never_used_for_choosing_settings_the_free_choice_beats_the_papers_form() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/h200");
    for model in ["gpt2-small", "lstm", "mobilenet", "vit-small"] {
        let text = std::fs::read_to_string(folder.join(model).with_extension("csv")).unwrap();
        let rows = text.lines().filter(|line| line.starts_with("1,1,"));
        let observations: Vec<Observation> = rows
            .map(|row| {
                let fields: Vec<&str> = row.split(',').collect();
                let secs = |index: usize| -> f64 { fields[index].parse().unwrap() };
                Observation::new(Placement::ALONE, fields[2].parse().unwrap(), secs(3), secs(4)).unwrap()
            })
            .collect();
        assert!(observations.len() >= 16);
        for (learn, kept_out) in halves(&observations) {
            let [auto, linear] = [ComputeChoice::Auto, ComputeChoice::Linear]
                .map(|choice| mean_error(&fitted(&learn, choice).params, &kept_out));
            println!("{model}: {:.1} % free choice, {:.1} % linear", 100.0 * auto, 100.0 * linear);
            assert!(auto < linear && auto < 0.09, "{model}: {auto} against {linear}");
        }
    }
}

#[test]
fn on_t4s_the_free_choice_is_no_worse_than_the_papers_form() {
    for application in APPLICATIONS {
        let Some(observations) = t4_observations(application) else { return };
        let [auto, linear] = [ComputeChoice::Auto, ComputeChoice::Linear].map(|c| fitted(&observations, c));
        println!(
            "{application}, {} observations over all placements: {} {:.1} % (worst {:.0} %), the paper's form \
             {:.1} %, the paper's bound 10 %",
            observations.len(),
            auto.params.grad.form(),
            100.0 * auto.error.mean,
            100.0 * auto.error.worst,
            100.0 * linear.error.mean,
        );
        assert!(auto.error.mean <= 1.02 * linear.error.mean, "{application}");

        // And on placements kept out of the fit.
        for (learn, kept_out) in halves(&observations) {
            let [auto, linear] = [ComputeChoice::Auto, ComputeChoice::Linear]
                .map(|choice| mean_error(&fitted(&learn, choice).params, &kept_out));
            assert!(auto <= 1.02 * linear, "{application}: {auto} against {linear}");
        }
    }
}

/// A job like those measured, on a machine `speed` times as slow, with 5 % of noise.
fn job(observations: &[Observation], speed: f64, dice: &mut Dice) -> Vec<Observation> {
    let vary = |o: &Observation| {
        let factor = speed * libm::exp(0.05 * dice.normal());
        Observation::new(o.placement(), o.micro_batch(), o.accum_secs() * factor, o.optim_secs() * factor)
    };
    observations.iter().map(vary).collect::<Result<_, _>>().unwrap()
}

#[test]
fn history_halves_the_error_of_a_first_prediction() {
    let mut dice = Dice(3);
    for application in APPLICATIONS {
        let Some(observations) = t4_observations(application) else { return };
        // Earlier jobs saw a tenth of every second configuration each; the new job is judged on the others.
        let past: Vec<PastFit> = (0..4)
            .map(|_| {
                let speed = libm::exp(0.1 * dice.normal());
                let seen: Vec<_> =
                    observations.iter().step_by(2).filter(|_| dice.chance(0.1)).copied().collect();
                PastFit::from(&fitted(&job(&seen, speed, &mut dice), ComputeChoice::Auto))
            })
            .collect();
        let history = History::of(&past).unwrap();
        let speed = libm::exp(0.1 * dice.normal());
        let mine = job(&observations, speed, &mut dice);
        let first = mine.iter().find(|o| o.placement() == Placement::ALONE).copied().unwrap();
        let judged: Vec<_> = mine.iter().skip(1).step_by(2).copied().collect();

        let request = FitRequest { observations: &[first], ..FitRequest::default() };
        let without = mean_error(&fit(&request).unwrap().params, &judged);
        let with = fit(&FitRequest { history: Some(&history), ..request }).unwrap();
        let error = mean_error(&with.params, &judged);
        println!("{application}: {:.1} % with history, {:.1} % without", 100.0 * error, 100.0 * without);
        assert!(error <= 0.5 * without, "{application}: {error} against {without}");
    }
}
