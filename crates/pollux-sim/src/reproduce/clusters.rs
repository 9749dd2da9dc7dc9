//! Other clusters: several GPU types at once, rented nodes.

use std::path::Path;

use pollux_api::parse_policy;
use pollux_report::{Axis, Comparison, Figure, Measure, Panel, Series as Line, Style, Value};

use super::findings::{Claim, Findings, Grid};
use super::lab::{Lab, LabError, Series, paired};
use super::policies::{hours, less, percent, two};
use super::published;
use crate::autoscale::{self, Autoscaled, RivalBatch, autoscale_imagenet};
use crate::campaign::Contender;
use crate::cloud::{Cloud, parse_cloud};
use crate::cluster::ClusterShape;
use crate::metrics::{Metrics, Spread};
use crate::simulation::Options;

/// Sia's mixed cluster.
const MIXED: &str = "6x4:t4,3x8:rtx,2x8:a100";

/// The applications of Sia's first Philly workload (134, 12, 7, 4 and 3 of 160).
const SIA_MIX: &str = "mix=cifar10:134+deepspeech2:12+bert:7+imagenet:4+yolov3:3";

pub(super) fn mixed(lab: &Lab) -> Result<Findings, LabError> {
    let names = [
        "pollux",
        "pollux:tuned",
        "pollux-size-aware",
        "sia",
        "pollux-type-blind",
        "gavel",
        "gavel:objective=throughput",
    ];
    let options = Options { cluster: shape(MIXED)?, ..Options::default() };
    let series = lab.runs(&names, "generate", &options)?;
    let sia = &series[3];
    let mut findings = Findings::default();
    findings.text(format!(
        "64 GPUs of three types: {MIXED}, the cluster of the Sia paper. Sia is an integer program over configurations per \
         type, solved to optimality; Gavel shares time by linear programs and keeps users' GPUs and batches; type-blind \
         Pollux takes all GPUs for one type, as in 2021. Ratios are paired by seed, with 95 % intervals."
    ));
    findings.note(
        "Our Sia sees the same estimates for types a job has not run on as Pollux does; its own profiling of each type is \
         not modelled, and neither is the calibration of its simulator. All jobs of the paper's mix are there, NeuMF included; Sia \
         replaced those by CIFAR-10.",
    );
    let columns = ["policy", "average (h)", "against sia", "99th percentile (h)", "worst rho", "unfair"];
    let mut grid = Grid::new("Policies on mixed GPUs", columns);
    for one in &series {
        let (ratio, half) = paired(one, sia, jct);
        grid.push([
            format!("`{}`", one.policy),
            hours(one.spread(jct)),
            format!("{ratio:.3} ± {half:.3}"),
            hours(one.spread(|run| run.p99_jct_secs)),
            two(one.spread(|run| run.worst_rho)),
            percent(one.mean(|run| run.unfair_share)),
        ]);
    }
    findings.grid(grid);
    let values = series.iter().map(|one| {
        let Spread { mean, min, max, .. } = one.spread(jct);
        Value::spread(mean / 3_600.0, min / 3_600.0, max / 3_600.0)
    });
    let chart =
        Comparison::new("Average completion time on mixed GPUs", series.iter().map(|one| one.policy.clone()))
            .with_measure(Measure::bars(Axis::linear("average (h)").starting_at_zero(), values))
            .with_note("Means over seeds; whiskers from the least to the greatest.");
    findings.figure("mixed", chart, "Shorter is better.");
    let (ratio, half) = paired(&series[0], sia, jct);
    let rho = |one: &Series| one.mean(|run| run.worst_rho);
    findings.claim(
        Claim::new(
            "type-aware `pollux` against Sia: average completion time, and worst rho",
            "aim: 95 % interval below 1, worst rho no worse",
            format!("{ratio:.3} ± {half:.3}, worst rho {:.2} against {:.2}", rho(&series[0]), rho(sia)),
            ratio + half < 1.0 && rho(&series[0]) <= rho(sia),
        )
        .otherwise("see the table: of the settings compared not all meet both"),
    );
    margins(lab, &options, &mut findings)?;
    Ok(findings)
}

/// How far type-blind Pollux and Gavel lie behind Sia, by load, with the mix of Sia's paper.
fn margins(lab: &Lab, options: &Options, findings: &mut Findings) -> Result<(), LabError> {
    findings.text(
        "Their margins depend on the load. Sia's authors replaced NeuMF by CIFAR-10 and let their simulator train 1.2 to 1.8 \
         times slower than profiles say, so their cluster is fuller than ours at the same number of jobs. Below is their \
         mix at one, two and three times the jobs: at twice, our Sia takes about as long as theirs.",
    );
    let names = ["sia", "pollux-type-blind", "gavel"];
    let columns = ["jobs an hour", "sia, average (h)", "type-blind over sia", "gavel over sia"];
    let mut grid = Grid::new("Margins over Sia by load", columns);
    let n_seeds = lab.seeds().len().min(3);
    let mut at_twice = [f64::NAN; 3];
    for load in [1_u32, 2, 3] {
        let recipe = format!("generate:load={load},{SIA_MIX}");
        let series = lab.runs_with(&names, &recipe, options, &lab.seeds()[..n_seeds])?;
        let hours = series[0].mean(jct) / 3_600.0;
        let [blind, gavel] = [&series[1], &series[2]].map(|one| paired(one, &series[0], jct).0);
        if load == 2 {
            at_twice = [hours, blind, gavel];
        }
        grid.push([
            (20 * load).to_string(),
            format!("{hours:.2}"),
            format!("{blind:.2}"),
            format!("{gavel:.2}"),
        ]);
    }
    for (jobs, [sia, blind, gavel]) in published::MIXED_LOADS {
        let ratios = [blind, gavel].map(|hours| format!("{:.2}", hours / sia));
        let [blind, gavel] = ratios;
        grid.push([format!("published, {jobs}"), format!("{sia:.2}"), blind, gavel]);
    }
    findings.grid(grid);
    let [hours, blind, gavel] = at_twice;
    let margins = published::MIXED.map(|(_, hours)| hours / published::MIXED[0].1);
    findings.claim(
        Claim::new(
            "type-blind Pollux and Gavel against Sia, at the load at which our Sia takes about as long as theirs",
            &format!("{:.1} and {:.1} (Sia: {:.1} h)", margins[1], margins[2], published::MIXED[0].1),
            format!("{blind:.2} and {gavel:.2} (Sia: {hours:.2} h)"),
            blind > 1.3 && gavel > 2.0,
        )
        .otherwise(
            "same order, smaller margins, which grow with the load as the published ones do. Our type-blind Pollux plans \
             with an exact solver and a curve for the type it holds; theirs with a genetic algorithm and one curve for all",
        ),
    );
    Ok(())
}

/// Up to 16 nodes of 4 T4; an hour of the job's time is worth as much as seven node-hours where that counts.
const CLOUD: &str = r#"{"version": 1, "scaler": SCALER, "pools": [{"name": "t4", "gpu_type": "t4", "gpus": 4,
    "nodes": {"min": 0, "max": 16}, "price_per_hour": 4, "ready_s": 120, "min_hold_s": 60}]}"#;

pub(super) fn autoscaling(lab: &Lab) -> Result<Findings, LabError> {
    let policy = contender("pollux:paper")?.policy;
    let rules = [
        ("the band of AdaptDL (0.35 to 0.65)", r#"{"rule": "goodput", "patience_s": 300}"#),
        ("cost, an hour worth seven nodes", r#"{"rule": "cost", "job_hour": 28, "patience_s": 300}"#),
    ];
    let mut findings = Findings::default();
    findings.text(
        "One ImageNet job alone on rented nodes, up to 16 of 4 T4, there two minutes after they are ordered. Sizes by \
         goodput, in two ways, beside sizes by throughput after Or et al. (MLSys 2020), whose batch is the largest that \
         fits. The paper's rule holds the utility of the cluster in a band; `cost` is our own: the size at which work is \
         cheapest when an hour of the job's time has a price too. That price was chosen by looking at this very job.",
    );
    let mut grid =
        Grid::new("One ImageNet job", ["sizes by", "completion (h)", "node-hours", "saved", "slower"]);
    let mut lines: Vec<(String, Autoscaled)> = Vec::new();
    let mut outcomes = Vec::new();
    for (name, rule) in rules {
        let cloud = cloud(rule)?;
        let both = autoscale_imagenet(&cloud, RivalBatch::Throughput, lab.profiles(), policy.as_ref(), 1)
            .map_err(|error| LabError::Data(error.to_string()))?;
        if lines.is_empty() {
            grid.push(row("throughput", &both.throughput, None));
            lines.push(("throughput".to_owned(), both.throughput.clone()));
        }
        grid.push(row(name, &both.goodput, Some((both.saved(), both.slower()))));
        outcomes.push((name, both.saved(), both.slower()));
        lines.push((name.to_owned(), both.goodput));
    }
    findings.grid(grid);
    let panel = |title: &str, label: &str, of: fn(&autoscale::Moment) -> f64| {
        let axes = (Axis::linear("hours"), Axis::linear(label).starting_at_zero());
        lines.iter().fold(Panel::new(title, axes.0, axes.1), |panel, (name, run)| {
            let points = with_gaps(run.series.iter().map(|moment| (moment.secs / 3_600.0, of(moment))));
            panel.with_series(Line::new(name.as_str(), points).with_style(Style::Step))
        })
    };
    let figure = Figure::new("Auto-scaling of one ImageNet job")
        .with_panel(panel("Size of the cluster", "nodes", |moment| f64::from(moment.nodes)))
        .with_panel(panel("What a sample is worth", "efficiency", |moment| moment.efficiency));
    findings.figure(
        "autoscaling",
        figure,
        "Goodput buys nodes as larger batches become worth having. Gaps in efficiency are restarts.",
    );
    let (saved, slower) = published::AUTOSCALING;
    let said = |(name, saved, slower): &(&str, f64, f64)| {
        format!("{} cheaper, {} ({name})", percent(*saved), less(1.0 + slower).replace("more", "longer"))
    };
    findings.claim(
        Claim::new(
            "sizes by goodput against sizes by throughput",
            &format!("{} cheaper, {} longer", percent(saved), percent(slower)),
            outcomes.iter().map(said).collect::<Vec<_>>().join("; "),
            outcomes.iter().any(|(_, saved, slower)| *saved >= 0.15 && *slower <= 0.1),
        )
        .otherwise(
            "a band of utility alone buys too few nodes in mid-training; see docs/concepts/evaluation.md",
        ),
    );
    Ok(findings)
}

/// Points of a line that holds each value until the next; where it is nothing there is a gap.
fn with_gaps(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut line: Vec<(f64, f64)> = Vec::new();
    for (x, y) in points {
        if y > 0.0 {
            line.push((x, y));
        } else if let Some((_, before)) = line.last().copied().filter(|(_, before)| before.is_finite()) {
            line.extend([(x, before), (x, f64::NAN)]);
        }
    }
    line
}

fn row(name: &str, of: &Autoscaled, against: Option<(f64, f64)>) -> [String; 5] {
    let cells = against.map(|(saved, slower)| [percent(saved), format!("{:+.0} %", 100.0 * slower)]);
    let [saved, slower] = cells.unwrap_or_else(|| ["-".to_owned(), "-".to_owned()]);
    [name.to_owned(), format!("{:.2}", of.jct_secs / 3_600.0), format!("{:.1}", of.node_hours), saved, slower]
}

fn cloud(scaler: &str) -> Result<Cloud, LabError> {
    let parsed = parse_cloud(Path::new("built-in cluster"), &CLOUD.replace("SCALER", scaler));
    parsed.map_err(|error| LabError::Data(error.to_string()))
}

pub(super) fn shape(text: &str) -> Result<ClusterShape, LabError> {
    text.parse().map_err(|error: crate::ShapeError| LabError::Data(error.to_string()))
}

pub(super) fn contender(policy: &str) -> Result<Contender, LabError> {
    let parsed =
        parse_policy(policy).map_err(|error| LabError::Policy(policy.to_owned(), error.to_string()))?;
    Ok(Contender { label: policy.to_owned(), policy: parsed })
}

fn jct(run: &Metrics) -> f64 {
    run.avg_jct_secs
}
