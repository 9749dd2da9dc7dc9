//! The answers as a page.

use pollux_report::{Axis, Comparison, Measure, Page, Table, Value};

use super::{Answer, Ratio, Shift};
use crate::metrics::{Metrics, Spread};
use crate::report::significant;

/// A figure that is compared: heading, what, and what to multiply it by.
type Compared = (&'static str, fn(&Metrics) -> f64, f64);

/// Times, whose changes are told in percent of what they were.
const TIMES: [Compared; 3] = [
    ("average JCT (h)", |run| run.avg_jct_secs, 1.0 / 3_600.0),
    ("99th percentile (h)", |run| run.p99_jct_secs, 1.0 / 3_600.0),
    ("makespan (h)", |run| run.makespan_secs, 1.0 / 3_600.0),
];

/// Parts of a whole, whose changes are told in points.
const PARTS: [Compared; 2] = [
    ("GPUs held (%, points)", |run| run.utilisation, 100.0),
    ("unfair (%, points)", |run| run.unfair_share, 100.0),
];

/// A page on answers, the first of which is how things are. `setting` says what was asked, name by name.
pub fn page(answers: &[Answer], setting: &[(String, String)]) -> Page {
    let mut page = Page::new("What if?")
        .subtitle("The same simulated cluster with something changed, and for whom that matters.")
        .section("What was compared")
        .facts(setting.iter().map(|(name, text)| (name.clone(), text.as_str())));
    let Some(base) = answers.first() else { return page };
    page = page.section("What changes").table(changes(answers, base)).text(explanation(base));
    let values = |figure: fn(&Metrics) -> f64, unit: f64| {
        answers.iter().map(move |answer| {
            let Spread { mean, min, max, .. } = answer.spread(figure);
            Value::spread(unit * mean, unit * min, unit * max)
        })
    };
    let chart = TIMES.iter().fold(
        Comparison::new("Completion times", answers.iter().map(|answer| answer.name.clone())),
        |chart, (label, figure, unit)| {
            let axis = Axis::linear(*label).starting_at_zero();
            chart.with_measure(Measure::bars(axis, values(*figure, *unit)))
        },
    );
    let chart = if base.runs.len() > 1 {
        chart.with_note("Means over seeds; whiskers from the least to the greatest.")
    } else {
        chart
    };
    page = page.figure("completion-times", chart, "Shorter is better.").section("For whom");
    for answer in &answers[1..] {
        let of = if base.by_group { "group" } else { "application" };
        let columns = [of, "jobs", "average JCT before (h)", "after (h)", "change", "sooner", "later"];
        let mut table = Table::new(format!("{} against {}", answer.name, base.name), columns);
        for shift in answer.shifts(base) {
            table = table.row(cells(&shift));
        }
        page = page.table(table);
        let losers = answer.losers(base, 5);
        if !answer.has_the_jobs_of(base) {
            page = page.text("This change makes other jobs: they cannot be compared one by one.");
        } else if !losers.is_empty() {
            // A number and its unit stay on one line.
            let lines = losers.iter().map(|moved| {
                let [before, after] = moved.jct_secs.map(|secs| significant(secs / 3_600.0));
                format!("`{}` of seed {}: {before}\u{a0}h, then {after}\u{a0}h", moved.job, moved.seed)
            });
            page = page.text("These lose most time:").list(lines);
        }
    }
    page.footer(
        "Simulated: jobs train as their profiles say, and a restart is a duration. Sooner and later are the parts of the \
         jobs that are done more than 5 % sooner or later.",
    )
}

/// A row for each answer.
fn changes(answers: &[Answer], base: &Answer) -> Table {
    let headings = TIMES.iter().chain(&PARTS).map(|figure| figure.0);
    let headings = std::iter::once("variant").chain(headings);
    let mut table = Table::new("Each variant, and in brackets its change against the base", headings);
    for answer in answers {
        let is_base = std::ptr::eq(answer, base);
        let change = |text: String| if is_base { String::new() } else { format!(" ({text})") };
        let times = TIMES.iter().map(|(_, figure, unit)| {
            let mean = significant(unit * answer.spread(figure).mean);
            mean + &change(said(answer.against(base, figure)))
        });
        let parts = PARTS.iter().map(|(_, figure, unit)| {
            let [before, after] = [base, answer].map(|answer| unit * answer.spread(figure).mean);
            format!("{after:.1}") + &change(signed(after - before, 1))
        });
        table = table.row(std::iter::once(answer.name.clone()).chain(times).chain(parts));
    }
    table
}

fn explanation(base: &Answer) -> String {
    let interval = if base.runs.len() > 1 {
        " Figures are means over seeds. Changes of times are paired by seed: ± is half the width of the 95 % interval, and \
         a change smaller than that may be chance."
    } else {
        " There is one seed: small changes may be chance."
    };
    format!(
        "JCT is a job's time from submission to completion, makespan the time until the last one is done. A job is treated \
         unfairly if it takes longer than alone on its fair share of the cluster.{interval}"
    )
}

fn cells(shift: &Shift) -> [String; 7] {
    let [before, after] = shift.jct_secs.map(|secs| secs / 3_600.0);
    let part =
        |at: usize| shift.sooner_later.map_or("-".to_owned(), |parts| format!("{:.0} %", 100.0 * parts[at]));
    [
        shift.of.clone().unwrap_or_else(|| "all".to_owned()),
        shift.n_jobs.to_string(),
        significant(before),
        significant(after),
        format!("{} %", signed(100.0 * (after / before.max(1e-12) - 1.0), 0)),
        part(0),
        part(1),
    ]
}

/// `+12 % ± 3`, or `+12 %` of a single seed.
fn said(ratio: Ratio) -> String {
    let change = signed(100.0 * (ratio.mean - 1.0), 0);
    if ratio.half_width.is_finite() {
        format!("{change} % ± {:.0}", 100.0 * ratio.half_width)
    } else {
        format!("{change} %")
    }
}

/// With its sign and so many digits; what rounds to nothing has no minus.
fn signed(number: f64, digits: usize) -> String {
    let text = format!("{number:+.digits$}");
    if text.trim_start_matches('-').chars().all(|letter| "0.".contains(letter)) {
        text.replace('-', "+")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_minus() {
        assert_eq!(signed(-0.3, 0), "+0");
        assert_eq!((signed(-0.04, 1), signed(-0.06, 1)), ("+0.0".to_owned(), "-0.1".to_owned()));
        assert_eq!((signed(-0.6, 0), signed(12.4, 0)), ("-1".to_owned(), "+12".to_owned()));
    }
}
