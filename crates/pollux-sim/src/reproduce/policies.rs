//! Policies compared: tuned and realistic jobs, the fairness knob, finish-time fairness.

use pollux_report::{Axis, Comparison, Figure, Measure, Panel, Series as Line, Style, Value};

use super::findings::{Claim, Findings, Grid};
use super::lab::{Kept, Lab, LabError, Series, paired};
use super::published::{self, Testbed};
use crate::metrics::{Metrics, Spread};
use crate::simulation::Options;

/// The paper's settings, whatever the default is by now.
pub(super) const PAPER: &str = "pollux:paper";
const BASELINES: [&str; 2] = ["optimus", "tiresias"];

pub(super) fn tuned(lab: &Lab) -> Result<Findings, LabError> {
    let series = lab.runs(&[PAPER, "pollux", "optimus", "tiresias"], "generate", &Options::default())?;
    let mut findings = Findings::default();
    findings.text(
        "Every job asks for the number of GPUs and the batch that suit it best, as if its user had tried them all. \
         Optimus is told how much work is left. Pollux heeds none of it.",
    );
    compare(&mut findings, "policies-tuned", "Completion times with tuned jobs", &series, &published::TUNED);
    for (baseline, name) in [(2, "Optimus"), (3, "Tiresias")] {
        let default = paired(&series[1], &series[baseline], |run| run.avg_jct_secs).0;
        let (ratio, half) = paired(&series[0], &series[baseline], |run| run.avg_jct_secs);
        let published = published::TUNED[0].1[0] / published::TUNED[baseline - 1].1[0];
        findings.claim(
            Claim::new(
                &format!("average completion time, Pollux against {name} with tuned jobs"),
                &format!("{} (30 to 50 % less)", less(published)),
                format!("{} ± {:.0} % (the default: {})", less(ratio), 100.0 * half, less(default)),
                (0.45..=0.75).contains(&ratio),
            )
            .otherwise("our agents follow the noise scale with care, which costs 8 % of completion time in this world"),
        );
    }
    Ok(findings)
}

pub(super) fn realistic(lab: &Lab) -> Result<Findings, LabError> {
    let options = Options::default();
    let mut series = lab.runs(&[PAPER, "pollux"], "generate", &options)?;
    series.extend(lab.runs(&BASELINES, "generate:requests=realistic", &options)?);
    let mut findings = Findings::default();
    findings.text(
        "Jobs ask for as many GPUs as users of Microsoft's Philly cluster did, and for a batch that grows with them. \
         Pollux does not heed requests, so its runs are those with tuned jobs.",
    );
    let title = "Completion times with jobs as users configure them";
    compare(&mut findings, "policies-realistic", title, &series, &published::REALISTIC);
    for (baseline, name) in [(2, "Optimus"), (3, "Tiresias")] {
        let (ratio, half) = paired(&series[0], &series[baseline], |run| run.avg_jct_secs);
        let published = published::REALISTIC[0].1[0] / published::REALISTIC[baseline - 1].1[0];
        findings.claim(
            Claim::new(
                &format!("average completion time, Pollux against {name} with realistic jobs"),
                &format!("{} (about 60 % less)", less(published)),
                format!("{} ± {:.0} %", less(ratio), 100.0 * half),
                (0.25..=0.55).contains(&ratio),
            )
            .otherwise("users' requests in the generated workloads are not those of the paper's testbed"),
        );
    }
    Ok(findings)
}

pub(super) fn knob(lab: &Lab) -> Result<Findings, LabError> {
    let names = ["pollux:paper+fairness=1", PAPER, "pollux:paper+fairness=-10"];
    let series = lab.runs(&names, "generate", &Options::default())?;
    let mut findings = Findings::default();
    findings.text(
        "The knob p of the objective: 1 takes the plain mean of speed-ups, -1 is the paper's default, -10 comes near to \
         helping the worst-off alone.",
    );
    let columns = [
        "p",
        "average (h)",
        "99th percentile (h)",
        "makespan (h)",
        "worst rho",
        "unfair",
        "published: average / 99th / makespan (h)",
    ];
    let mut grid = Grid::new("The fairness knob", columns);
    for (series, (p, published)) in series.iter().zip(published::KNOB) {
        let [average, tail, end] = published;
        grid.push([
            p.to_string(),
            hours(series.spread(|run| run.avg_jct_secs)),
            hours(series.spread(|run| run.p99_jct_secs)),
            hours(series.spread(|run| run.makespan_secs)),
            format!("{:.2}", series.mean(|run| run.worst_rho)),
            percent(series.mean(|run| run.unfair_share)),
            format!("{average} / {tail} / {end}"),
        ]);
    }
    findings.grid(grid);
    let [free, paper, strict] = [0, 1, 2].map(|at| series[at].mean(|run| run.avg_jct_secs));
    findings.claim(
        Claim::new(
            "p = -1 has the lowest average of the three",
            "0.83, 0.76, 0.84 h",
            format!("{:.2}, {:.2}, {:.2} h", free / 3_600.0, paper / 3_600.0, strict / 3_600.0),
            paper <= free && paper <= strict,
        )
        .otherwise("the three lie within a few per cent of each other, in the paper too"),
    );
    Ok(findings)
}

pub(super) fn fairness(lab: &Lab) -> Result<Findings, LabError> {
    let series = lab.runs(&[PAPER, "pollux", "optimus", "tiresias"], "generate", &Options::default())?;
    let mut findings = Findings::default();
    findings.text(
        "Finish-time fairness (Themis): a job's completion time over that alone on its fair share of the cluster, with \
         the mean number of jobs in the system while it was there. Above 1 it would have been better off alone.",
    );
    let axes = (Axis::log10("finish-time fairness rho"), Axis::linear("part of the jobs").between(0.0, 1.0));
    let panel = series.iter().fold(Panel::new("", axes.0, axes.1), |panel, series| {
        panel.with_series(Line::new(&series.policy, cdf(series, |run| &run.rhos)).with_style(Style::Step))
    });
    let figure = Figure::new("Finish-time fairness").with_panel(panel);
    findings.figure("fairness", figure, "Jobs of all seeds together. Left of 1 is better off than alone.");
    let mut grid = Grid::new("Finish-time fairness", ["policy", "worst rho", "99th percentile", "above 1"]);
    for series in &series {
        let mut rhos: Vec<f64> = series.runs.iter().flat_map(|run| run.rhos.iter().copied()).collect();
        rhos.sort_by(f64::total_cmp);
        let tail = rhos.get(rhos.len() * 99 / 100).copied().unwrap_or(0.0);
        grid.push([
            format!("`{}`", series.policy),
            two(series.spread(|run| run.worst_rho)),
            format!("{tail:.2}"),
            percent(series.mean(|run| run.unfair_share)),
        ]);
    }
    findings.grid(grid);
    let worst = |at: usize| series[at].mean(|run| run.worst_rho);
    let ratio = worst(2).min(worst(3)) / worst(0);
    findings.claim(
        Claim::new(
            "worst rho of the better baseline over Pollux's",
            "1.5 to 5.4",
            format!("{ratio:.1}"),
            ratio >= 1.5,
        )
        .otherwise("see the table: the baselines' worst job is not as badly off here"),
    );
    Ok(findings)
}

/// Table and bars of policies beside published values, which are by position: ours twice, then the baselines.
fn compare(findings: &mut Findings, name: &str, title: &str, series: &[Series], published: &[Testbed; 3]) {
    let columns = [
        "policy",
        "average (h)",
        "99th percentile (h)",
        "makespan (h)",
        "published, testbed: average / 99th / makespan (h)",
    ];
    let mut grid = Grid::new(title, columns);
    for (index, series) in series.iter().enumerate() {
        let [average, tail, end] = published[index.saturating_sub(1)].1;
        grid.push([
            format!("`{}`", series.policy),
            hours(series.spread(|run| run.avg_jct_secs)),
            hours(series.spread(|run| run.p99_jct_secs)),
            hours(series.spread(|run| run.makespan_secs)),
            format!("{average} / {tail} / {end}"),
        ]);
    }
    findings.grid(grid);
    let value = |figure: fn(&Metrics) -> f64| {
        series.iter().map(move |series| {
            let Spread { mean, min, max, .. } = series.spread(figure);
            Value::spread(mean / 3_600.0, min / 3_600.0, max / 3_600.0)
        })
    };
    let axis = |label: &str| Axis::linear(label).starting_at_zero();
    let chart = Comparison::new(title, series.iter().map(|series| series.policy.clone()))
        .with_measure(Measure::bars(axis("average (h)"), value(|run| run.avg_jct_secs)))
        .with_measure(Measure::bars(axis("99th percentile (h)"), value(|run| run.p99_jct_secs)))
        .with_measure(Measure::bars(axis("makespan (h)"), value(|run| run.makespan_secs)))
        .with_note("Means over seeds; whiskers from the least to the greatest.");
    findings.figure(name, chart, "Shorter is better.");
}

/// A cumulative distribution of what each run has, all runs together.
pub(super) fn cdf(series: &Series, values: impl Fn(&Kept) -> &Vec<f64>) -> Vec<(f64, f64)> {
    let mut values: Vec<f64> = series.runs.iter().flat_map(|run| values(run).iter().copied()).collect();
    values.sort_by(f64::total_cmp);
    let n = values.len().max(1) as f64;
    values.into_iter().zip(1..).map(|(value, count)| (value, f64::from(count) / n)).collect()
}

/// Seconds as hours, with the standard deviation.
pub(super) fn hours(spread: Spread) -> String {
    let (mean, sd) = (spread.mean / 3_600.0, spread.sd / 3_600.0);
    if mean < 10.0 { format!("{mean:.2} ± {sd:.2}") } else { format!("{mean:.1} ± {sd:.1}") }
}

/// With the standard deviation.
pub(super) fn two(spread: Spread) -> String {
    format!("{:.2} ± {:.2}", spread.mean, spread.sd)
}

pub(super) fn percent(part: f64) -> String {
    format!("{:.0} %", 100.0 * part)
}

/// A ratio as how much less it is.
pub(super) fn less(ratio: f64) -> String {
    if ratio <= 1.0 {
        format!("{:.0} % less", 100.0 * (1.0 - ratio))
    } else {
        format!("{:.0} % more", 100.0 * (ratio - 1.0))
    }
}
