//! What the benchmarks share: their one option, and figures with their spread.

use std::fmt;

/// Whether the short form was asked for. What cargo passes besides (`--bench`) is of no interest.
pub(crate) fn is_quick() -> bool {
    std::env::args().any(|argument| argument == "--quick")
}

/// CPU seconds this thread has used: what else the machine does is not in them. Elapsed time where the system
/// does not say.
#[allow(dead_code, reason = "not every benchmark needs it")]
pub(crate) fn cpu_secs() -> f64 {
    // Linux brings the figure up to date when it switches tasks: offer it the chance.
    std::thread::yield_now();
    let nanos = std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    nanos.map_or_else(elapsed_secs, |nanos| nanos as f64 / 1e9)
}

#[allow(dead_code, reason = "not every benchmark needs it")]
fn elapsed_secs() -> f64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_secs_f64()
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
