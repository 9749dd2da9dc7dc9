//! The answers as a page.

use pollux_report::{Axis, Comparison, Measure, Page, Table, Value};

use super::{Answer, Ratio, Shift};
use crate::metrics::{Metrics, Spread};

/// A figure that is compared: heading, what, and what to multiply it by.
type Compared = (&'static str, fn(&Metrics) -> f64, f64);

/// The figures that are compared.
const FIGURES: [Compared; 5] = [
    ("average (h)", |run| run.avg_jct_secs, 1.0 / 3_600.0),
    ("99th percentile (h)", |run| run.p99_jct_secs, 1.0 / 3_600.0),
    ("makespan (h)", |run| run.makespan_secs, 1.0 / 3_600.0),
    ("GPUs held (%)", |run| run.utilisation, 100.0),
    ("unfair (%)", |run| run.unfair_share, 100.0),
];

/// A page on answers, the first of which is how things are. `setting` says what was asked, name by name.
pub fn page(answers: &[Answer], setting: &[(String, String)]) -> Page {
    let mut page = Page::new("What if?")
        .subtitle("The same simulated cluster with something changed.")
        .section("What was compared")
        .facts(setting.iter().map(|(name, text)| (name.clone(), text.as_str())));
    let Some(base) = answers.first() else { return page };
    let headings = std::iter::once("variant").chain(FIGURES.iter().map(|figure| figure.0));
    let mut table = Table::new("Means over seeds, and the change against the base", headings);
    for answer in answers {
        let cells = FIGURES.iter().map(|(_, figure, unit)| {
            let mean = unit * answer.spread(figure).mean;
            let change = answer.against(base, figure);
            if std::ptr::eq(answer, base) {
                format!("{mean:.2}")
            } else {
                format!("{mean:.2} ({})", said(change))
            }
        });
        table = table.row(std::iter::once(answer.name.clone()).chain(cells));
    }
    page = page.section("What changes").table(table);
    let values = |figure: fn(&Metrics) -> f64, unit: f64| {
        answers.iter().map(move |answer| {
            let Spread { mean, min, max, .. } = answer.spread(figure);
            Value::spread(unit * mean, unit * min, unit * max)
        })
    };
    let chart = FIGURES[..3].iter().fold(
        Comparison::new("Completion times", answers.iter().map(|answer| answer.name.clone())),
        |chart, (label, figure, unit)| {
            let axis = Axis::linear(*label).starting_at_zero();
            chart.with_measure(Measure::bars(axis, values(*figure, *unit)))
        },
    );
    let chart = chart.with_note("Means over seeds; whiskers from the least to the greatest.");
    page = page.figure("completion-times", chart, "Shorter is better.").section("For whom");
    for answer in &answers[1..] {
        let columns = ["jobs", "how many", "average before (h)", "after (h)", "change", "sooner", "later"];
        let mut table = Table::new(format!("{} against {}", answer.name, base.name), columns);
        for shift in answer.shifts(base) {
            table = table.row(cells(&shift));
        }
        page = page.table(table);
        let losers = answer.losers(base, 5);
        if answer.has_the_jobs_of(base) && !losers.is_empty() {
            let lines = losers.iter().map(|moved| {
                let [before, after] = moved.jct_secs.map(|secs| secs / 3_600.0);
                format!("`{}` of seed {}: {before:.2} h, then {after:.2} h", moved.job, moved.seed)
            });
            page = page.text("These lose most time:").list(lines);
        }
    }
    page.footer("Simulated: jobs train as their profiles say; a restart is a duration. Sooner and later: by more than 5 %.")
}

fn cells(shift: &Shift) -> [String; 7] {
    let [before, after] = shift.jct_secs.map(|secs| secs / 3_600.0);
    let part =
        |at: usize| shift.sooner_later.map_or("-".to_owned(), |parts| format!("{:.0} %", 100.0 * parts[at]));
    [
        shift.application.clone().unwrap_or_else(|| "all".to_owned()),
        shift.n_jobs.to_string(),
        format!("{before:.2}"),
        format!("{after:.2}"),
        format!("{:+.0} %", 100.0 * (after / before.max(1e-12) - 1.0)),
        part(0),
        part(1),
    ]
}

/// `+12 % ± 3`, or `+12 %` of a single seed.
fn said(ratio: Ratio) -> String {
    let change = 100.0 * (ratio.mean - 1.0);
    if ratio.half_width.is_finite() {
        format!("{change:+.0} % ± {:.0}", 100.0 * ratio.half_width)
    } else {
        format!("{change:+.0} %")
    }
}
