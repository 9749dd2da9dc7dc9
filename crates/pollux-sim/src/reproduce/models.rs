//! How well the two models of goodput describe what was measured: step times, and what a larger batch is worth.

use pollux_model::fit::{ComputeChoice, FitRequest, Observation, RelativeError, fit};
use pollux_model::{GlobalBatch, GpuType, NoiseScale, Placement};
use pollux_report::{Axis, Figure, Panel, Series as Line, Style};

use super::findings::{Claim, Findings, Grid};
use super::lab::{Lab, LabError};
use super::published;
use crate::profile::Profile;

/// The paper's GPUs.
const T4: &str = "t4";

pub(super) fn throughput(lab: &Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    findings.text(
        "The seven parameters of the throughput model are fitted to the step times of each application's profile, all \
         placements and micro-batches together; the error is the mean of |predicted / measured - 1|. `auto` lets the data \
         choose the form of the compute time.",
    );
    let columns = ["application", "one GPU", "one node", "several nodes", "all", "worst", "all, `auto`"];
    let mut grid = Grid::new("Mean error of predicted step times, T4", columns);
    let mut worst_mean = 0.0_f64;
    for profile in lab.profiles().values() {
        let seen = observations(profile)?;
        let model = |compute| {
            fit(&FitRequest { observations: &seen, compute, ..FitRequest::default() })
                .map_err(|error| LabError::Data(format!("{}: {error}", profile.name())))
        };
        let (paper, auto) = (model(ComputeChoice::Linear)?.params, model(ComputeChoice::Auto)?.params);
        let error = |of: &[Observation]| RelativeError::of(&paper, of);
        let among = |is_in: fn(Placement) -> bool| {
            let of: Vec<Observation> = seen.iter().copied().filter(|seen| is_in(seen.placement())).collect();
            error(&of).map_or("-".to_owned(), |error| percent(error.mean))
        };
        let all = error(&seen).map_or((0.0, 0.0), |error| (error.mean, error.worst));
        let by_auto = RelativeError::of(&auto, &seen).map_or(0.0, |error| error.mean);
        worst_mean = worst_mean.max(all.0);
        grid.push([
            profile.name().to_owned(),
            among(|placement| placement.n_replicas() == 1),
            among(|placement| placement.n_nodes() == 1 && placement.n_replicas() > 1),
            among(|placement| placement.n_nodes() > 1),
            percent(all.0),
            percent(all.1),
            percent(by_auto),
        ]);
    }
    findings.grid(grid);
    findings.claim(
        Claim::new(
            "mean error of the throughput model, worst application",
            &format!("at most {:.0} %", 100.0 * published::MODEL_ERROR),
            percent(worst_mean),
            worst_mean <= published::MODEL_ERROR,
        )
        .otherwise("the profile of that application holds placements that the model describes less well"),
    );
    findings.figure(
        "throughput-model",
        throughput_figure(lab)?,
        "Points: measured. Lines: the fitted model.",
    );
    Ok(findings)
}

/// Samples a second by number of GPUs at each application's largest common micro-batch.
fn throughput_figure(lab: &Lab) -> Result<Figure, LabError> {
    let mut figure = Figure::new("Throughput, measured and predicted");
    for profile in lab.profiles().values() {
        let seen = observations(profile)?;
        let request =
            FitRequest { observations: &seen, compute: ComputeChoice::Linear, ..FitRequest::default() };
        let fitted = fit(&request).map_err(|error| LabError::Data(format!("{}: {error}", profile.name())))?;
        let micro = profile.limits().micro_max().min(micro_of(profile));
        let gpus = [1, 2, 3, 4, 8, 12, 16];
        let most = profile.max_gpus(&GpuType::new(T4));
        let points = gpus.into_iter().filter(|gpus| *gpus <= most);
        let points: Vec<(Placement, u32)> =
            points.filter_map(|gpus| Some((Placement::packed(gpus, 4)?, gpus))).collect();
        let rate = |gpus: u32, secs: f64| (f64::from(gpus), f64::from(gpus * micro) / secs);
        let measured = points.iter().filter_map(|(placement, gpus)| {
            let time = profile.step_time(&GpuType::new(T4), *placement, micro)?;
            Some(rate(*gpus, time.step_secs))
        });
        let predicted =
            points.iter().map(|(at, gpus)| rate(*gpus, fitted.params.last_micro_step_secs(*at, micro)));
        let axes = (Axis::log2("GPUs"), Axis::linear("samples/s").starting_at_zero());
        let panel = Panel::new(format!("{}, {micro} a GPU", profile.name()), axes.0, axes.1)
            .with_series(Line::new("measured", measured).with_style(Style::Points))
            .with_series(Line::new("predicted", predicted));
        figure = figure.with_panel(panel);
    }
    Ok(figure)
}

/// A micro-batch that one GPU was measured with, in the middle of the range.
fn micro_of(profile: &Profile) -> u32 {
    let times = profile.step_times(&GpuType::new(T4));
    let alone = times.and_then(|times| times.shapes().find(|shape| shape.placement() == Placement::ALONE));
    let points = alone.map_or(&[][..], |shape| shape.points());
    points.get(points.len() / 2).map_or(1, |(micro, _)| *micro)
}

#[expect(clippy::unnecessary_wraps, reason = "as all experiments")]
pub(super) fn efficiency(lab: &Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    findings.text(
        "What a sample is worth at a larger batch, predicted from the noise scale measured at the initial batch, beside \
         the same from the noise scale measured at that larger batch, over all epochs. The noise scale depends \
         somewhat on the batch it is measured at, which is why an agent keeps measuring instead of extrapolating.",
    );
    let columns = ["application", "initial batch", "twice", "4 times", "16 times"];
    let mut grid = Grid::new("Mean difference of predicted and measured efficiency", columns);
    let mut worst_near = 0.0_f64;
    let mut figure = Figure::new("Efficiency over training");
    for profile in lab.profiles().values() {
        let (initial, most) = (profile.limits().initial().0, profile.limits().max().0);
        let errors = [2, 4, 16].map(|scale| {
            let batch = initial * scale;
            (batch <= most).then(|| mean_difference(profile, batch)).flatten()
        });
        worst_near = worst_near.max(errors[0].unwrap_or(0.0));
        let [twice, four, sixteen] = errors.map(|error| error.map_or("-".to_owned(), percent));
        grid.push([profile.name().to_owned(), initial.to_string(), twice, four, sixteen]);
        let training = profile.training();
        let axes = (Axis::linear("part of training"), Axis::linear("efficiency").between(0.0, 1.0));
        let mut panel = Panel::new(profile.name(), axes.0, axes.1);
        for scale in [2, 4, 16].into_iter().filter(|scale| initial * scale <= most) {
            let points = (0..training.n_epochs()).map(|epoch| {
                let efficiency = training.gain(epoch, initial * scale, initial) / scale as f64;
                (training.epoch_end(epoch) / training.work(), efficiency)
            });
            panel = panel.with_series(Line::new(format!("{scale} times the batch"), points));
        }
        figure = figure.with_panel(panel);
    }
    findings.grid(grid);
    findings.figure(
        "efficiency",
        figure,
        "What a sample is worth at larger batches rises as training goes on.",
    );
    findings.claim(
        Claim::new(
            "efficiency at twice the batch as predicted from the initial one, worst application",
            "close agreement (shown as a figure)",
            format!("{} off on average", percent(worst_near)),
            worst_near <= 0.1,
        )
        .otherwise("the noise scale of that application changes much with the batch"),
    );
    Ok(findings)
}

/// The mean over epochs of how far the efficiency predicted from the initial batch is off.
fn mean_difference(profile: &Profile, batch: u64) -> Option<f64> {
    let (training, initial) = (profile.training(), profile.limits().initial());
    let mut sum = 0.0;
    for epoch in 0..training.n_epochs() {
        let at_initial = NoiseScale::from_samples(training.noise_scale(epoch, initial.0))?;
        let predicted = at_initial.gain(initial, GlobalBatch(batch));
        sum += (predicted / training.gain(epoch, batch, initial.0) - 1.0).abs();
    }
    Some(sum / training.n_epochs() as f64)
}

fn observations(profile: &Profile) -> Result<Vec<Observation>, LabError> {
    let none = || LabError::Data(format!("the profile of `{}` has no step times on {T4}", profile.name()));
    let times = profile.step_times(&GpuType::new(T4)).ok_or_else(none)?;
    let points =
        times.shapes().flat_map(|shape| shape.points().iter().map(|point| (shape.placement(), *point)));
    let seen = points.map(|(placement, (micro, time))| {
        let compute = time.step_secs - time.sync_secs;
        Observation::new(placement, micro, compute, time.step_secs)
    });
    seen.collect::<Result<_, _>>().map_err(|error| LabError::Data(format!("{}: {error}", profile.name())))
}

fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}
