//! Which settings should be the default: completion times, tails, makespan and fairness together, over loads.

use pollux_report::{Axis, Figure, Panel, Series as Line, Style};

use super::findings::{Claim, Findings, Grid};
use super::lab::{Lab, LabError, Series, paired};
use super::policies::{PAPER, less, percent};
use crate::metrics::Metrics;
use crate::simulation::Options;

/// The contenders: the paper's settings first, then fair ones with better prices, then those that weigh jobs by size.
const CONTENDERS: [&str; 4] = [PAPER, "pollux:tuned", "pollux", "pollux-size-aware"];
const LOADS: [f64; 4] = [0.5, 1.0, 1.5, 2.0];

pub(super) fn defaults(lab: &Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    findings.text(
        "The paper's settings, fair settings with better prices of restarts and exploration, and settings that weigh \
         jobs by their size, over loads. Ratios are against `pollux:paper`, paired by seed.",
    );
    let columns = ["load", "policy", "average", "99th percentile", "makespan", "worst rho", "unfair"];
    let mut grid = Grid::new("Settings compared, against the paper's", columns);
    let mut points: Vec<Vec<(f64, f64)>> = vec![Vec::new(); CONTENDERS.len()];
    let mut sums = [(0.0, 0.0, 0.0); CONTENDERS.len()];
    for load in LOADS {
        let recipe = format!("generate:load={load}");
        let seeds = &lab.seeds()[..lab.seeds().len().min(5)];
        let series = lab.runs_with(&CONTENDERS, &recipe, &Options::default(), seeds)?;
        for (at, one) in series.iter().enumerate() {
            let ratio = |figure: fn(&Metrics) -> f64| paired(one, &series[0], figure).0;
            let (average, makespan) = (ratio(|run| run.avg_jct_secs), ratio(|run| run.makespan_secs));
            let unfair = one.mean(|run| run.unfair_share);
            points[at].push((100.0 * unfair, average));
            sums[at].0 += average / LOADS.len() as f64;
            sums[at].1 += makespan / LOADS.len() as f64;
            sums[at].2 += unfair / LOADS.len() as f64;
            grid.push([
                load.to_string(),
                format!("`{}`", one.policy),
                format!("{average:.3}"),
                format!("{:.3}", ratio(|run| run.p99_jct_secs)),
                format!("{makespan:.3}"),
                format!("{:.2}", worst(one)),
                percent(unfair),
            ]);
        }
    }
    findings.grid(grid);
    let axes = (
        Axis::linear("jobs worse off than alone (%)").starting_at_zero(),
        Axis::linear("average completion time against the paper's settings"),
    );
    let panel =
        CONTENDERS.iter().zip(points).fold(Panel::new("", axes.0, axes.1), |panel, (name, points)| {
            panel.with_series(Line::new(*name, points).with_style(Style::Points))
        });
    let caption = "A point for each load. Low and to the left is better.";
    findings.figure("defaults", Figure::new("Fast, fair, or both").with_panel(panel), caption);
    let default = CONTENDERS.iter().position(|name| *name == "pollux").unwrap_or(0);
    let [paper, ours] = [sums[0], sums[default]];
    findings.claim(
        Claim::new(
            "the default against the paper's settings, mean over loads: average, makespan, unfair jobs",
            "aim: 10 % less, no more, half as many",
            format!("{}, {}, {} against {}", less(ours.0), less(ours.1), percent(ours.2), percent(paper.2)),
            ours.0 <= 0.9 && ours.1 <= 1.01 && ours.2 <= 0.5 * paper.2,
        )
        .otherwise(
            "makespan: long jobs wait for short ones, so the last of them ends a little later; docs/guides/choose-a-policy.md has what else was tried",
        ),
    );
    Ok(findings)
}

fn worst(series: &Series) -> f64 {
    series.mean(|run| run.worst_rho)
}
