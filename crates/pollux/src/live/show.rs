//! Tables for people, and the same for programs.

use pollux_api::rest::{JobShown, JobState};
use serde::Serialize;
use serde_json::Value;

use super::args::Form;
use super::failure::LiveFailure;
use crate::output::Output;
use crate::text::table;

/// Prints rows in the form that was asked for.
pub(crate) fn rows<T: Serialize>(
    form: Form,
    all: &[T],
    header: &[&str],
    row: impl Fn(&T) -> Vec<String>,
    name: impl Fn(&T) -> String,
) -> Result<Output, LiveFailure> {
    let data = match form {
        Form::Table => {
            let rows: Vec<Vec<String>> = all.iter().map(row).collect();
            table(header, &rows)
        }
        Form::Csv => csv(header, all.iter().map(row)),
        Form::Name => all.iter().map(|one| name(one) + "\n").collect(),
        Form::Json | Form::Yaml => programs(form, &all)?,
    };
    Ok(Output { data, ..Output::default() })
}

/// Prints one thing in the form that was asked for; `text` is for people.
pub(crate) fn one<T: Serialize>(
    form: Form,
    value: &T,
    text: impl FnOnce() -> String,
) -> Result<Output, LiveFailure> {
    let data = match form {
        Form::Json | Form::Yaml => programs(form, value)?,
        Form::Table | Form::Csv | Form::Name => text(),
    };
    Ok(Output { data, ..Output::default() })
}

fn programs<T: Serialize>(form: Form, value: &T) -> Result<String, LiveFailure> {
    let value: Value = serde_json::to_value(value).map_err(|error| LiveFailure::failed(error.to_string()))?;
    let text = match form {
        Form::Yaml => {
            serde_saphyr::to_string(&value).map_err(|error| LiveFailure::failed(error.to_string()))?
        }
        _ => serde_json::to_string_pretty(&value).map_err(|error| LiveFailure::failed(error.to_string()))?,
    };
    Ok(if text.ends_with('\n') { text } else { text + "\n" })
}

fn csv(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let quoted = |cell: &str| {
        if cell.contains([',', '"', '\n']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.to_owned()
        }
    };
    let line =
        |cells: Vec<String>| cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\n";
    let head = line(header.iter().map(|name| name.to_lowercase().replace(' ', "_")).collect());
    head + &rows.map(line).collect::<String>()
}

/// The columns of a list of jobs.
pub(crate) const JOB_COLUMNS: [&str; 10] =
    ["JOB", "STATE", "GPUS", "NODES", "BATCH", "LR", "GOODPUT", "PROGRESS", "RESTARTS", "AGE"];

/// A job in a list.
pub(crate) fn job_row(job: &JobShown) -> Vec<String> {
    let dash = || "-".to_owned();
    let progress = match (job.progress_ratio, job.progress) {
        _ if job.state == JobState::Finished => "100 %".to_owned(),
        (Some(ratio), _) => format!("{:.0} %", 100.0 * ratio.clamp(0.0, 1.0)),
        (None, Some(steps)) => format!("{steps:.0} steps"),
        (None, None) => dash(),
    };
    vec![
        job.name.clone(),
        job.state.word().to_owned(),
        job.gpus.to_string(),
        if job.nodes.is_empty() { dash() } else { places(job) },
        job.batch.map_or_else(dash, |batch| batch.to_string()),
        job.lr_factor.map_or_else(dash, |factor| format!("x{factor:.2}")),
        job.goodput.map_or_else(dash, |goodput| format!("{}/s", short(goodput))),
        progress,
        job.restarts.to_string(),
        age(&job.submitted, job.ended.as_deref()),
    ]
}

/// Where a job is: `node-0=4 node-1=2`.
pub(crate) fn places(job: &JobShown) -> String {
    job.nodes.iter().map(|(node, gpus)| format!("{node}={gpus}")).collect::<Vec<_>>().join(" ")
}

/// A number with few digits: 1.9k.
pub(crate) fn short(number: f64) -> String {
    match number {
        n if n >= 1e6 => format!("{:.1}M", n / 1e6),
        n if n >= 1e4 => format!("{:.0}k", n / 1e3),
        n if n >= 1e3 => format!("{:.1}k", n / 1e3),
        n if n >= 10.0 => format!("{n:.0}"),
        n => format!("{n:.2}"),
    }
}

/// How long ago a moment is, or how long it was until an end.
pub(crate) fn age(from: &str, until: Option<&str>) -> String {
    let moment = |text: &str| text.parse::<jiff::Timestamp>().ok();
    let end = until.and_then(moment).unwrap_or_else(jiff::Timestamp::now);
    let secs = moment(from).map_or(0, |from| end.as_second() - from.as_second()).max(0);
    match secs {
        0..120 => format!("{secs}s"),
        120..7_200 => format!("{}m", secs / 60),
        7_200..172_800 => format!("{}h", secs / 3_600),
        _ => format!("{}d", secs / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let at = |text| age("2026-01-01T00:00:00Z", Some(text));
        assert_eq!(at("2026-01-01T00:01:59Z"), "119s");
        assert_eq!(at("2026-01-01T00:10:00Z"), "10m");
        assert_eq!(at("2026-01-03T00:00:00Z"), "2d");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.5, 42.0, 1_900.0, 25_000.0, 3.2e6].map(short), ["0.50", "42", "1.9k", "25k", "3.2M"]);
    }

    #[test]
    fn cells_with_commas_are_quoted() {
        let rows = vec![vec!["a,b".to_owned(), "say \"x\"".to_owned()]];
        assert_eq!(csv(&["ONE", "TWO X"], rows.into_iter()), "one,two_x\n\"a,b\",\"say \"\"x\"\"\"\n");
    }
}
