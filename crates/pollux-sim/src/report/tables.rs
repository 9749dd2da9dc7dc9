//! The figures of all policies, as on the command line.

use pollux_report::{Axis, Comparison, Measure, Table, Text, Value};

use super::HOUR;
use crate::campaign::Summary;
use crate::metrics::{Metrics, Spread};

/// When jobs were done, and whether that was fair. `several` adds the standard deviation over seeds.
pub fn times_table(summaries: &[Summary], several: bool) -> Table {
    let columns = [
        "policy",
        "average JCT (h)",
        "median (h)",
        "99th percentile (h)",
        "makespan (h)",
        "worst rho",
        "unfair (%)",
    ];
    let empty = Table::new("When jobs were done, and whether that was fair", columns);
    summaries.iter().fold(empty, |table, Summary { policy, metrics, .. }| {
        let hours = |secs: Spread| figure(secs, 1.0 / HOUR, several);
        let cells = [
            hours(metrics.avg_jct_secs),
            hours(metrics.p50_jct_secs),
            hours(metrics.p99_jct_secs),
            hours(metrics.makespan_secs),
            figure(metrics.worst_rho, 1.0, several),
            percent(metrics.unfair_share, several),
        ];
        table.row(std::iter::once(name(policy)).chain(cells.into_iter().map(Text::from)))
    })
}

/// What became of the GPUs.
pub fn uses_table(summaries: &[Summary], several: bool) -> Table {
    let columns =
        ["policy", "restarts per job", "kept for (min)", "lost (%)", "GPU-hours", "held (%)", "useful (%)"];
    let empty = Table::new("What became of the GPUs", columns);
    summaries.iter().fold(empty, |table, Summary { policy, metrics, .. }| {
        let cells = [
            fixed(metrics.restarts_per_job, 2, several),
            figure(metrics.minutes_between_reallocations, 1.0, several),
            percent(metrics.lost_share, several),
            figure(metrics.gpu_secs, 1.0 / HOUR, several),
            percent(metrics.utilisation, several),
            percent(metrics.useful_share, several),
        ];
        table.row(std::iter::once(name(policy)).chain(cells.into_iter().map(Text::from)))
    })
}

/// What went wrong, and what it cost.
pub fn faults_table(summaries: &[Summary], several: bool) -> Table {
    let columns = ["policy", "failures of jobs", "GPU-hours done again", "part of all (%)"];
    let empty = Table::new("What went wrong", columns);
    summaries.iter().fold(empty, |table, Summary { policy, metrics, .. }| {
        let part = 100.0 * metrics.redone_gpu_secs.mean / metrics.gpu_secs.mean.max(f64::MIN_POSITIVE);
        let cells = [
            figure(metrics.failures, 1.0, several),
            figure(metrics.redone_gpu_secs, 1.0 / HOUR, several),
            format!("{part:.1}"),
        ];
        table.row(std::iter::once(name(policy)).chain(cells.into_iter().map(Text::from)))
    })
}

/// What rented nodes cost.
pub fn costs_table(summaries: &[Summary], several: bool) -> Table {
    let empty = Table::new("What rented nodes cost", ["policy", "cost", "node-hours", "cost of a node-hour"]);
    summaries.iter().fold(empty, |table, Summary { policy, metrics, .. }| {
        let shown =
            |spread: Option<Spread>| spread.map_or("–".to_owned(), |spread| figure(spread, 1.0, several));
        let price = metrics.cost.zip(metrics.node_hours).filter(|(_, hours)| hours.mean > 0.0);
        let price = price.map_or("–".to_owned(), |(cost, hours)| significant(cost.mean / hours.mean));
        let cells = [shown(metrics.cost), shown(metrics.node_hours), price];
        table.row(std::iter::once(name(policy)).chain(cells.into_iter().map(Text::from)))
    })
}

/// The main figures as bars, with a whisker of one standard deviation over seeds to either side.
pub fn summary_figure(summaries: &[Summary]) -> Comparison {
    let values = |spread: fn(&Metrics<Spread>) -> Spread, unit: f64| {
        let value = move |summary: &Summary| {
            let Spread { mean, sd, .. } = spread(&summary.metrics);
            Value::spread(unit * mean, unit * (mean - sd).max(0.0), unit * (mean + sd))
        };
        summaries.iter().map(value).collect::<Vec<_>>()
    };
    let measure = |label: &str, spread: fn(&Metrics<Spread>) -> Spread, unit: f64| {
        Measure::bars(Axis::linear(label), values(spread, unit))
    };
    let rows = summaries.iter().map(|summary| summary.policy.as_str());
    Comparison::new("The policies side by side", rows)
        .with_measure(measure("average JCT (h)", |metrics| metrics.avg_jct_secs, 1.0 / HOUR))
        .with_measure(measure("99th percentile (h)", |metrics| metrics.p99_jct_secs, 1.0 / HOUR))
        .with_measure(measure("makespan (h)", |metrics| metrics.makespan_secs, 1.0 / HOUR))
        .with_measure(measure("useful (% of the GPUs)", |metrics| metrics.useful_share, 100.0))
}

/// A name that its user chose.
pub(super) fn name(label: &str) -> Text {
    Text::default().plain(label)
}

/// `1.23`, or `1.23 ±0.05`.
fn figure(spread: Spread, unit: f64, several: bool) -> String {
    let mean = significant(unit * spread.mean);
    let decimals = mean.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    with_deviation(mean, unit * spread.sd, decimals, several)
}

/// `12.3`, or `12.3 ±0.5`, of a hundred.
fn percent(spread: Spread, several: bool) -> String {
    fixed(Spread { mean: 100.0 * spread.mean, sd: 100.0 * spread.sd, ..spread }, 1, several)
}

/// With so many digits after the point.
fn fixed(spread: Spread, decimals: usize, several: bool) -> String {
    with_deviation(format!("{:.decimals$}", spread.mean), spread.sd, decimals, several)
}

fn with_deviation(mean: String, sd: f64, decimals: usize, several: bool) -> String {
    if several { format!("{mean} ±{sd:.decimals$}") } else { mean }
}

/// Three digits that count: `0.0213`, `12.3`, `1234`.
pub(crate) fn significant(number: f64) -> String {
    let scientific = format!("{number:.2e}");
    let exponent: Option<i32> = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok());
    match exponent {
        _ if number == 0.0 => "0".to_owned(),
        Some(exponent @ -6..=8) => format!("{number:.0$}", usize::try_from(2 - exponent).unwrap_or(0)),
        _ => scientific,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_as_fine_as_their_means() {
        let spread = |mean, sd| Spread { mean, sd, min: 0.0, max: 0.0 };
        assert_eq!(figure(spread(0.8571, 0.0213), 1.0, false), "0.857");
        assert_eq!(figure(spread(0.8571, 0.0213), 1.0, true), "0.857 ±0.021");
        assert_eq!(figure(spread(1_033.4, 12.7), 1.0, true), "1033 ±13");
        assert_eq!(figure(spread(0.0, 0.0), 1.0, false), "0");
        assert_eq!(percent(spread(0.1234, 0.004), true), "12.3 ±0.4");
    }
}
