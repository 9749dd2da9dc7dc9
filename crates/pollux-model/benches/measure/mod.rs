//! What the benchmarks share: their one option, and figures with their spread.

use std::fmt;

/// Whether the short form was asked for. What cargo passes besides (`--bench`) is of no interest.
pub(crate) fn is_quick() -> bool {
    std::env::args().any(|argument| argument == "--quick")
}

/// Median and range of repeated measurements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// Of at least one value.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Self { median, least: values[0], most: values[values.len() - 1] }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let precision = f.precision().unwrap_or(1);
        let Self { median, least, most } = self;
        let text = format!("{median:.precision$} ({least:.precision$} to {most:.precision$})");
        match f.width() {
            Some(width) => write!(f, "{text:<width$}"),
            None => f.write_str(&text),
        }
    }
}

/// How a figure stands to what the project promises.
#[allow(dead_code, reason = "not every benchmark has a promise to keep")]
pub(crate) fn verdict(kept: bool) -> &'static str {
    if kept { "kept" } else { "MISSED" }
}
