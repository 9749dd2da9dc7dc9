//! What the advantage depends on: load, time between rounds, interference, exploration.

use std::time::Duration;

use pollux_report::{Axis, Figure, Panel, Series as Line, Style};

use super::findings::{Claim, Findings, Grid};
use super::lab::{Lab, LabError, Series, paired};
use super::neighbours;
use super::policies::{PAPER, hours, less};
use super::published::{self, Averages};
use crate::metrics::Metrics;
use crate::simulation::Options;

/// Seeds of the experiments with many settings: the first of the lab's.
const N_SEEDS: usize = 5;

pub(super) fn load(lab: &Lab) -> Result<Findings, LabError> {
    let names = [PAPER, "pollux", "tiresias", "optimus"];
    let mut findings = Findings::default();
    findings
        .text("More and fewer jobs in the same eight hours: 80, 160, 240 and 320 for loads from 0.5 to 2.");
    let columns = [
        "load",
        "pollux:paper (h)",
        "pollux (h)",
        "tiresias (h)",
        "optimus (h)",
        "published: pollux / tiresias / optimus (h)",
    ];
    let mut grid = Grid::new("Average completion time by load", columns);
    let mut lines: Vec<Vec<(f64, f64)>> = vec![Vec::new(); names.len()];
    let mut by_load = Vec::new();
    for (load, published) in published::LOADS {
        let series =
            lab.runs_with(&names, &format!("generate:load={load}"), &Options::default(), few(lab))?;
        for (line, series) in lines.iter_mut().zip(&series) {
            line.push((load, series.mean(jct) / 3_600.0));
        }
        let [ours, tiresias, optimus] = published.map(|secs| format!("{:.2}", secs / 3_600.0));
        let cell = |at: usize| hours(series[at].spread(jct));
        let beside = format!("{ours} / {tiresias} / {optimus}");
        grid.push([load.to_string(), cell(0), cell(1), cell(2), cell(3), beside]);
        by_load.push(series);
    }
    let axes = (Axis::linear("load"), Axis::linear("average completion time (h)").starting_at_zero());
    let panel = names.iter().zip(lines).fold(Panel::new("", axes.0, axes.1), |panel, (name, line)| {
        panel.with_series(Line::new(*name, line).with_style(Style::LineWithPoints))
    });
    findings.figure("load", Figure::new("Load").with_panel(panel), "Means over seeds.");
    findings.grid(grid);
    let advantage = |series: &[Series]| series[2].mean(jct).min(series[3].mean(jct)) / series[0].mean(jct);
    let [light, heavy] = [advantage(&by_load[0]), advantage(&by_load[3])];
    findings.claim(
        Claim::new(
            "the better baseline over Pollux, at half and at twice the load",
            "1.4 and 1.8",
            format!("{light:.1} and {heavy:.1}"),
            light > 1.1 && heavy > 1.25,
        )
        .otherwise("see the table: the advantage at one of the ends is smaller here"),
    );
    by_artifact(lab, &mut findings, "Load", &published::ARTIFACT_LOADS, |lab, load, policy| {
        lab.artifact_runs(policy, load, |_| {})
    })?;
    Ok(findings)
}

pub(super) fn rounds(lab: &Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    findings.text("How often the cluster is re-divided: the paper's default is a minute.");
    let columns =
        ["seconds between rounds", "average (h)", "against a minute", "published (h)", "against a minute"];
    let mut grid = Grid::new("Average completion time by time between rounds", columns);
    let mut line = Vec::new();
    let every = |secs| Options { round: Some(Duration::from_secs(secs)), ..Options::default() };
    let minute = lab.runs_with(&[PAPER], "generate", &every(60), few(lab))?;
    let mut last = 1.0;
    for (secs, published) in published::ROUNDS {
        let series = lab.runs_with(&[PAPER], "generate", &every(secs), few(lab))?;
        let ratio = paired(&series[0], &minute[0], jct).0;
        line.push((secs as f64 / 60.0, series[0].mean(jct) / 3_600.0));
        let reference = published / published::ROUNDS[1].1;
        grid.push([
            secs.to_string(),
            hours(series[0].spread(jct)),
            format!("{ratio:.2}"),
            format!("{:.2}", published / 3_600.0),
            format!("{reference:.2}"),
        ]);
        last = ratio;
    }
    let axes = (
        Axis::log2("minutes between rounds"),
        Axis::linear("average completion time (h)").starting_at_zero(),
    );
    let panel =
        Panel::new("", axes.0, axes.1).with_series(Line::new(PAPER, line).with_style(Style::LineWithPoints));
    findings.figure(
        "round-length",
        Figure::new("Time between rounds").with_panel(panel),
        "Means over seeds.",
    );
    findings.grid(grid);
    findings.claim(
        Claim::new(
            "average at 8 minutes between rounds against 1 minute",
            "1.22",
            format!("{last:.2}"),
            (1.05..1.45).contains(&last),
        )
        .otherwise("jobs here lose more or less by waiting for a round"),
    );
    by_artifact(
        lab,
        &mut findings,
        "Time between rounds",
        &published::ARTIFACT_ROUNDS,
        |lab, secs, policy| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole seconds")]
            lab.artifact_runs(policy, 1.0, |options| options.turn_secs = secs as u64)
        },
    )?;
    Ok(findings)
}

pub(super) fn interference(lab: &Lab) -> Result<Findings, LabError> {
    let open = "pollux:paper+interference=allow";
    let mut findings = Findings::default();
    findings.text(
        "Distributed jobs that share a node are slowed down by so much. Pollux avoids such neighbours by a constraint, \
         which can be lifted.",
    );
    let columns = ["slow-down", "avoided (h)", "allowed (h)", "allowed against avoided", "published"];
    let mut grid = Grid::new("Average completion time by interference", columns);
    let mut ratios = Vec::new();
    let mut lines = [Vec::new(), Vec::new()];
    for (slowdown, published) in published::INTERFERENCE {
        let options = Options { interference: slowdown, ..Options::default() };
        let series = lab.runs_with(&[PAPER, open], "generate", &options, few(lab))?;
        let ratio = paired(&series[1], &series[0], jct).0;
        grid.push([
            format!("{:.0} %", 100.0 * slowdown),
            hours(series[0].spread(jct)),
            hours(series[1].spread(jct)),
            format!("{ratio:.2}"),
            format!("{:.2}", published / published::AVOIDED),
        ]);
        for (line, series) in lines.iter_mut().zip(&series) {
            line.push((100.0 * slowdown, series.mean(jct) / 3_600.0));
        }
        ratios.push(ratio);
    }
    let axes =
        (Axis::linear("slow-down (%)"), Axis::linear("average completion time (h)").starting_at_zero());
    let [avoided, allowed] = lines;
    let panel = Panel::new("", axes.0, axes.1)
        .with_series(Line::new("neighbours avoided", avoided).with_style(Style::LineWithPoints))
        .with_series(Line::new("neighbours allowed", allowed).with_style(Style::LineWithPoints));
    findings.figure("interference", Figure::new("Interference").with_panel(panel), "Means over seeds.");
    findings.grid(grid);
    findings.claim(Claim::new(
        "allowing neighbours costs, at 0 %, 25 % and 50 % slow-down",
        "1.00, 1.15, 1.42",
        ratios.iter().map(|ratio| format!("{ratio:.2}")).collect::<Vec<_>>().join(", "),
        ratios[0] < 1.03 && ratios[2] > 1.03 && ratios[2] > ratios[1],
    ).otherwise(
        "our solver packs jobs onto fewer nodes than the genetic algorithm, so fewer of them meet, and our agents \
         measure the slow-down, so the policy moves away from it",
    ));
    neighbours::in_the_artifact(lab, &mut findings)?;
    Ok(findings)
}

pub(super) fn exploration(lab: &Lab) -> Result<Findings, LabError> {
    let known = Options { history: true, ..Options::default() };
    let mut findings = Findings::default();
    findings.text(
        "A new job knows nothing of its speed on several GPUs: it begins on one, and what was not seen is assumed to cost \
         nothing, so that it tries. Here it may instead build on what earlier jobs of its application learned.",
    );
    let columns = ["policy", "from nothing (h)", "with history (h)", "short jobs gain", "all jobs gain"];
    let mut grid = Grid::new("What exploring costs", columns);
    let mut gains = Vec::new();
    for policy in [PAPER, "pollux"] {
        let new = lab.runs_with(&[policy], "generate", &Options::default(), few(lab))?;
        let seeded = lab.runs_with(&[policy], "generate", &known, few(lab))?;
        let short = mean_of(&seeded[0], &SHORT) / mean_of(&new[0], &SHORT);
        let all = paired(&seeded[0], &new[0], jct).0;
        let [from_nothing, with_history] = [&new[0], &seeded[0]].map(|series| hours(series.spread(jct)));
        grid.push([format!("`{policy}`"), from_nothing, with_history, less(short), less(all)]);
        gains.push(short);
    }
    findings.grid(grid);
    findings.claim(
        Claim::new(
            "completion time of short jobs (CIFAR-10, NCF) that know their throughput at once",
            "2 to 5 % less (from memory of the paper)",
            less(gains[0]),
            (0.85..1.0).contains(&gains[0]),
        )
        .otherwise("earlier jobs' knowledge is a prior here, not the truth; it can mislead for a while"),
    );
    Ok(findings)
}

/// The applications whose jobs are short.
const SHORT: [&str; 2] = ["cifar10", "ncf"];

fn mean_of(series: &Series, applications: &[&str]) -> f64 {
    let jobs = series.runs.iter().flat_map(|run| &run.jcts);
    let jcts: Vec<f64> =
        jobs.filter(|(name, _)| applications.contains(&name.as_str())).map(|(_, secs)| *secs).collect();
    jcts.iter().sum::<f64>() / jcts.len().max(1) as f64
}

fn jct(run: &Metrics) -> f64 {
    run.avg_jct_secs
}

fn few(lab: &Lab) -> &[u64] {
    &lab.seeds()[..lab.seeds().len().min(N_SEEDS)]
}

/// The same in the artifact's world, where its data are given: each average beside the published one.
fn by_artifact(
    lab: &Lab,
    findings: &mut Findings,
    what: &str,
    published: &[Averages],
    runs: impl Fn(&Lab, f64, &str) -> Result<Option<Series>, LabError>,
) -> Result<(), LabError> {
    let caption = format!("{what}, in the artifact's world: workloads 1, 2 and 4");
    let mut grid = Grid::new(&caption, ["setting", "policy", "average (s)", "published (s)", "off by"]);
    let mut worst = 0.0_f64;
    for (setting, policy, averages) in published {
        let name = if *policy == "pollux" { "pollux:osdi21" } else { policy };
        let Some(series) = runs(lab, *setting, name)? else { return Ok(()) };
        let (ours, theirs) = (series.mean(jct), averages.iter().sum::<f64>() / 3.0);
        let off = ours / theirs - 1.0;
        worst = worst.max(off.abs());
        grid.push([
            setting.to_string(),
            format!("`{}`", series.policy),
            format!("{ours:.0}"),
            format!("{theirs:.0}"),
            format!("{:+.1} %", 100.0 * off),
        ]);
    }
    findings.grid(grid);
    findings.claim(
        Claim::new(
            &format!("{what}: every average in the artifact's world"),
            "within 5 %",
            format!("worst {:.1} % off", 100.0 * worst),
            worst <= 0.05,
        )
        .otherwise("see the table"),
    );
    Ok(())
}
