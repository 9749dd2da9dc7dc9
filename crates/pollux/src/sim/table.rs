//! The figures of all policies as tables for people.

use std::fmt::Write as _;

use pollux_sim::Spread;
use pollux_sim::campaign::{Record, Summary, World, summarise};

use super::seeds::Seeds;
use crate::text::{self, Align, Table, significant};

/// Workloads that are named one by one.
const NAMED_WORKLOADS: usize = 3;

/// Two tables, a third where things go wrong, and a line on what was simulated.
pub(super) fn render(records: &[Record], seeds: Seeds, world: &World, traces: &str) -> String {
    let summaries = summarise(records);
    let several = seeds.numbers().len() > 1;
    let mut text = times(&summaries, several);
    text += "\n";
    text += &uses(&summaries, several);
    if world.faults().is_any() {
        text += "\n";
        text += &faults(&summaries, several);
    }
    if summaries.iter().any(|summary| summary.metrics.cost.is_some()) {
        text += "\n";
        text += &costs(&summaries, several);
    }
    let _ = writeln!(text, "\n{}", about(records, seeds, world, traces));
    if several {
        text += "± is the standard deviation over seeds.\n";
    }
    text
}

/// When jobs were done, and whether that was fair.
fn times(summaries: &[Summary], several: bool) -> String {
    let mut table = Table::new([
        ("POLICY", Align::Left),
        ("AVG JCT (h)", Align::Right),
        ("MEDIAN (h)", Align::Right),
        ("P99 (h)", Align::Right),
        ("MAKESPAN (h)", Align::Right),
        ("WORST RHO", Align::Right),
        ("UNFAIR (%)", Align::Right),
    ]);
    for Summary { policy, metrics, .. } in summaries {
        let hours = |secs: Spread| figure(secs, 1.0 / 3_600.0, several);
        table.push([
            policy.clone(),
            hours(metrics.avg_jct_secs),
            hours(metrics.p50_jct_secs),
            hours(metrics.p99_jct_secs),
            hours(metrics.makespan_secs),
            figure(metrics.worst_rho, 1.0, several),
            percent(metrics.unfair_share, several),
        ]);
    }
    table.render()
}

/// What became of the GPUs, and what it took to find out.
fn uses(summaries: &[Summary], several: bool) -> String {
    let mut table = Table::new([
        ("POLICY", Align::Left),
        ("RESTARTS/JOB", Align::Right),
        ("KEPT FOR (min)", Align::Right),
        ("LOST (%)", Align::Right),
        ("GPU-HOURS", Align::Right),
        ("HELD (%)", Align::Right),
        ("USEFUL (%)", Align::Right),
        ("TIME SPENT (s)", Align::Right),
    ]);
    for Summary { policy, metrics, wall_secs, .. } in summaries {
        table.push([
            policy.clone(),
            fixed(metrics.restarts_per_job, 2, several),
            figure(metrics.minutes_between_reallocations, 1.0, several),
            percent(metrics.lost_share, several),
            figure(metrics.gpu_secs, 1.0 / 3_600.0, several),
            percent(metrics.utilisation, several),
            percent(metrics.useful_share, several),
            significant(wall_secs.mean, 2),
        ]);
    }
    table.render()
}

/// What went wrong, and what it cost.
fn faults(summaries: &[Summary], several: bool) -> String {
    let mut table = Table::new([
        ("POLICY", Align::Left),
        ("FAILURES", Align::Right),
        ("REDONE (GPU-h)", Align::Right),
        ("REDONE (%)", Align::Right),
    ]);
    for Summary { policy, metrics, .. } in summaries {
        let redone = if metrics.gpu_secs.mean > 0.0 {
            100.0 * metrics.redone_gpu_secs.mean / metrics.gpu_secs.mean
        } else {
            0.0
        };
        table.push([
            policy.clone(),
            figure(metrics.failures, 1.0, several),
            figure(metrics.redone_gpu_secs, 1.0 / 3_600.0, several),
            format!("{redone:.1}"),
        ]);
    }
    table.render()
}

/// What rented nodes cost.
fn costs(summaries: &[Summary], several: bool) -> String {
    let columns = [("POLICY", Align::Left), ("COST", Align::Right), ("NODE-HOURS", Align::Right)];
    let mut table = Table::new(columns);
    for Summary { policy, metrics, .. } in summaries {
        let shown = |spread: Option<Spread>| {
            spread.map_or_else(|| "-".to_owned(), |spread| figure(spread, 1.0, several))
        };
        table.push([policy.clone(), shown(metrics.cost), shown(metrics.node_hours)]);
    }
    table.render()
}

/// `160 jobs on 16x4:t4 (64 GPUs), workload `generate`, built-in profiles, seeds 1 to 5.`
pub(super) fn about(records: &[Record], seeds: Seeds, world: &World, traces: &str) -> String {
    let counts = || records.iter().map(|record| u32::try_from(record.n_jobs).unwrap_or(u32::MAX));
    let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
    let jobs = format!("{} job{}", text::range((least, most)), if most == 1 { "" } else { "s" });
    let mut workloads: Vec<&str> = Vec::new();
    for record in records {
        if !workloads.contains(&record.workload.as_str()) {
            workloads.push(&record.workload);
        }
    }
    let workloads = match workloads.as_slice() {
        several if several.len() > NAMED_WORKLOADS => format!("each of {} workloads", several.len()),
        [one] => format!("workload {one}"),
        few => format!("workloads {}", few.join(", ")),
    };
    let cluster = world.cluster();
    let gpus = text::count(cluster.gpus() as usize, "GPU");
    let faults = world.faults();
    let faults = if faults.is_any() { format!(" Faults: {faults}.") } else { String::new() };
    let up_to = if records.iter().any(|record| record.metrics.cost.is_some()) { "up to " } else { "" };
    format!("{jobs} of {workloads} on {up_to}{cluster} ({gpus}), {traces}, {seeds}.{faults}")
}

/// `1.23`, or `1.23 ±0.05`.
pub(super) fn figure(spread: Spread, unit: f64, several: bool) -> String {
    let mean = significant(unit * spread.mean, 3);
    let decimals = mean.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    with_deviation(mean, unit * spread.sd, decimals, several)
}

/// `12.3`, or `12.3 ±0.5`, of a hundred.
pub(super) fn percent(spread: Spread, several: bool) -> String {
    fixed(Spread { mean: 100.0 * spread.mean, sd: 100.0 * spread.sd, ..spread }, 1, several)
}

/// With so many digits after the point.
pub(super) fn fixed(spread: Spread, decimals: usize, several: bool) -> String {
    with_deviation(format!("{:.decimals$}", spread.mean), spread.sd, decimals, several)
}

fn with_deviation(mean: String, sd: f64, decimals: usize, several: bool) -> String {
    if several { format!("{mean} ±{sd:.decimals$}") } else { mean }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mean: f64, sd: f64, alone: &str, several: &str) {
        let spread = Spread { mean, sd, min: 0.0, max: 0.0 };
        assert_eq!(
            (figure(spread, 1.0, false), figure(spread, 1.0, true)),
            (alone.to_owned(), several.to_owned())
        );
    }

    #[test]
    fn deviations_are_as_fine_as_their_means() {
        check(0.8571, 0.0213, "0.857", "0.857 ±0.021");
        check(12.34, 0.56, "12.3", "12.3 ±0.6");
        check(1_033.4, 12.7, "1033", "1033 ±13");
        check(0.0, 0.0, "0", "0 ±0");
        assert_eq!(percent(Spread { mean: 0.1234, sd: 0.004, min: 0.0, max: 0.0 }, true), "12.3 ±0.4");
    }
}
