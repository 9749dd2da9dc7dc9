//! Derives `testdata/applications.json`, of which the test instances are made, from the authors' traces.
//!
//! `cargo run -p pollux-policy --example derive_applications > crates/pollux-policy/testdata/applications.json`
//!
//! Nothing but this needs the traces: step times become seven fitted parameters, gradient statistics a few
//! noise scales for each batch size.
#![expect(clippy::print_stdout, reason = "the result goes to standard output")]

#[path = "../../pollux-model/tests/common/mod.rs"]
mod common;

use std::path::Path;

use pollux_model::fit::{ComputeChoice, FitRequest, fit};
use pollux_model::{Affine, Compute, GlobalBatch, GradientMoments};
use serde_json::{Value, json};

/// An application as its authors ran it. Batch limits are those of the artifact's simulator: the smallest and
/// the largest batch it was trained with, and the micro-batches measured (for yolov3 up to 8, as coded there).
struct Application {
    name: &'static str,
    share: u32,
    micro: (u32, u32),
}

/// In the order of the shares: the authors' generator draws the smallest jobs from the first two.
const APPLICATIONS: [Application; 6] = [
    Application { name: "cifar10", share: 36, micro: (32, 1_024) },
    Application { name: "ncf", share: 36, micro: (32, 32_768) },
    Application { name: "deepspeech2", share: 10, micro: (10, 80) },
    Application { name: "bert", share: 10, micro: (4, 12) },
    Application { name: "yolov3", share: 6, micro: (4, 8) },
    Application { name: "imagenet", share: 2, micro: (20, 200) },
];

/// Noise scales kept for each batch size, at most: evenly spaced ones of all epochs', in ascending order.
const KEPT: usize = 20;

fn main() {
    let data = common::reference_data().expect("the traces of the artifact");
    let traces = data.join("pollux-osdi21/traces");
    let applications: Vec<Value> =
        APPLICATIONS.iter().map(|application| derive(application, &traces)).collect();
    let table = json!({
        "source": "petuum/adaptdl, branch osdi21-artifact, simulator/traces, commit \
                   c793c7089bd307462686339d29707925c461f9a9, Apache-2.0; parameters fitted to all of \
                   placements.csv and scalability.csv, noise scales from validation-*.csv",
        "derived_by": "cargo run -p pollux-policy --example derive_applications",
        "units": "seconds; samples; share in percent; a noise scale of null is infinite",
        "applications": applications,
    });
    println!("{}", indented(&table));
}

fn derive(application: &Application, traces: &Path) -> Value {
    let name = application.name;
    let observations = common::t4_observations(name).expect("the traces are there");
    let request =
        FitRequest { observations: &observations, compute: ComputeChoice::Linear, ..FitRequest::default() };
    let fit = fit(&request).expect("there are observations");
    let Compute::Linear { alpha, beta } = fit.params.grad else {
        unreachable!("the linear form was asked for")
    };
    let affine = |term: Affine| json!({ "alpha": rounded(term.alpha, 6), "beta": rounded(term.beta, 6) });
    let batches = validated_batches(&traces.join(name));
    let (initial, max) = (batches[0].0, batches[batches.len() - 1].0);
    let noise_scales: Vec<Value> = batches
        .iter()
        .map(|(batch, moments)| json!({ "batch": batch, "samples": noise_scales(moments, initial) }))
        .collect();
    json!({
        "name": name,
        "share": application.share,
        "initial_batch": initial,
        "max_batch": max,
        "micro_min": application.micro.0,
        "micro_max": application.micro.1,
        "grad": affine(Affine { alpha, beta }),
        "sync_local": affine(fit.params.sync_local),
        "sync_node": affine(fit.params.sync_node),
        "gamma": rounded(fit.params.gamma, 6),
        "fit_objective": rounded(fit.objective, 3),
        "noise_scales": noise_scales,
    })
}

/// The batch sizes one application was trained with, ascending, and each epoch's gradient statistics.
fn validated_batches(folder: &Path) -> Vec<(u64, Vec<GradientMoments>)> {
    let mut batches = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of traces") {
        let path = entry.expect("a file").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let Some(batch) = stem.strip_prefix("validation-") else { continue };
        let text = std::fs::read_to_string(&path).expect("a trace of the artifact");
        let epochs = text.lines().skip(1).map(|line| {
            let fields: Vec<f64> = line.split(',').map(|field| field.parse().expect("a number")).collect();
            GradientMoments { sqr: fields[3], var: fields[4] }
        });
        batches.push((batch.parse().expect("a batch size"), epochs.collect()));
    }
    batches.sort_by_key(|(batch, _)| *batch);
    batches
}

/// At most [`KEPT`] noise scales that stand for all epochs'.
fn noise_scales(epochs: &[GradientMoments], initial: u64) -> Vec<Option<f64>> {
    let of =
        |moments: &GradientMoments| moments.noise_scale(GlobalBatch(initial)).expect("moments").samples();
    let mut all: Vec<f64> = epochs.iter().map(of).collect();
    all.sort_by(f64::total_cmp);
    let kept = all.len().min(KEPT);
    let middle = |part: usize| all[(2 * part + 1) * all.len() / (2 * kept)];
    (0..kept).map(middle).map(|samples| samples.is_finite().then(|| rounded(samples, 4))).collect()
}

/// A number with so many significant digits.
fn rounded(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits - 1).parse().expect("a number, as it was just written")
}

/// Indented by level, but lists of numbers on one line.
fn indented(table: &Value) -> String {
    let mut text = String::new();
    let mut in_list = false;
    for line in serde_json::to_string_pretty(table).expect("a table of numbers").lines() {
        let content = line.trim_start();
        let starts = content.ends_with('[') && content.starts_with("\"samples\"");
        if in_list {
            text.push_str(content);
            if content.ends_with(',') {
                text.push(' ');
            }
        } else {
            text.push_str(line);
        }
        in_list = (in_list || starts) && !content.starts_with(']');
        if !in_list {
            text.push('\n');
        }
    }
    text.truncate(text.trim_end().len());
    text
}
