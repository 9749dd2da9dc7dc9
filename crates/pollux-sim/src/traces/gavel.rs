//! The traces of Gavel and Shockwave: no header, fields with tabs between them.

use std::path::Path;

use super::formats::{Format, Rows};
use super::{TraceJob, line};
use crate::osdi21::file::{FileError, Problem};

/// Steps that one V100 makes in a second, by job type as Gavel writes it.
///
/// Source: Gavel (OSDI'20), stanford-futuredata/gavel, `simulation_throughputs.json`, MIT; four digits of each.
pub const V100_STEPS: [(&str, f64); 26] = [
    ("A3C", 7.176),
    ("CycleGAN", 4.426),
    ("LM (batch size 5)", 109.2),
    ("LM (batch size 10)", 81.65),
    ("LM (batch size 20)", 64.74),
    ("LM (batch size 40)", 45.24),
    ("LM (batch size 80)", 28.24),
    ("Recommendation (batch size 512)", 23.32),
    ("Recommendation (batch size 1024)", 13.28),
    ("Recommendation (batch size 2048)", 7.470),
    ("Recommendation (batch size 4096)", 3.906),
    ("Recommendation (batch size 8192)", 2.842),
    ("ResNet-18 (batch size 16)", 32.35),
    ("ResNet-18 (batch size 32)", 29.95),
    ("ResNet-18 (batch size 64)", 24.09),
    ("ResNet-18 (batch size 128)", 17.99),
    ("ResNet-18 (batch size 256)", 10.30),
    ("ResNet-50 (batch size 16)", 11.40),
    ("ResNet-50 (batch size 32)", 7.787),
    ("ResNet-50 (batch size 64)", 4.395),
    ("ResNet-50 (batch size 128)", 2.497),
    ("Transformer (batch size 16)", 11.06),
    ("Transformer (batch size 32)", 10.62),
    ("Transformer (batch size 64)", 8.618),
    ("Transformer (batch size 128)", 5.446),
    ("Transformer (batch size 256)", 1.595),
];

/// Where the fields of a layout are, from 0.
struct Layout {
    n_fields: usize,
    steps: usize,
    gpus: usize,
    at: usize,
    /// Seconds it took, where that is said.
    duration: Option<usize>,
}

const OLD_GAVEL: Layout = Layout { n_fields: 7, steps: 4, gpus: 6, at: 5, duration: None };
const GAVEL: Layout = Layout { n_fields: 10, steps: 5, gpus: 6, at: 9, duration: None };
const SHOCKWAVE: Layout = Layout { n_fields: 12, steps: 5, gpus: 6, at: 11, duration: Some(10) };

pub(super) fn recognise(first: &str) -> Option<Format> {
    match first.split('\t').count() {
        7 | 10 => Some(Format::Gavel),
        12 => Some(Format::Shockwave),
        _ => None,
    }
}

/// GPU-time is the duration on all GPUs, or the steps at the pace of one V100.
pub(super) fn read(format: Format, file: &Path, bytes: &[u8]) -> Result<Rows, FileError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let n_lines = before.split(|byte| *byte == b'\n').skip(1).count() as u64;
        line(file, n_lines + 1, Problem::NotCsv("not UTF-8 text".to_owned()))
    })?;
    let mut rows = Rows::default();
    for (number, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        let fields: Vec<&str> = text.split('\t').map(str::trim).collect();
        let fail = |problem| line(file, number, problem);
        let layout = match (format, fields.len()) {
            (Format::Shockwave, _) => SHOCKWAVE,
            (_, 7) => OLD_GAVEL,
            _ => GAVEL,
        };
        if fields.len() != layout.n_fields {
            return Err(fail(Problem::TabCount { expected: layout.n_fields, found: fields.len() }));
        }
        let wrong = |column, field: usize, expected| {
            fail(Problem::Value { column, value: fields[field].to_owned(), expected })
        };
        let whole = |column, field: usize| {
            let count = fields[field].parse().ok().filter(|count: &u32| *count > 0);
            count.ok_or_else(|| wrong(column, field, "a whole number, 1 or more"))
        };
        let secs = |column, field: usize| {
            let secs = fields[field].parse().ok().filter(|secs: &f64| (0.0..=1e12).contains(secs));
            secs.ok_or_else(|| wrong(column, field, "a number of seconds, 0 or more"))
        };
        let gpus = whole("scale_factor", layout.gpus)?;
        let gpu_secs = if let Some(field) = layout.duration {
            let took = secs("duration", field)?;
            if took <= 0.0 {
                return Err(wrong("duration", field, "a number above 0"));
            }
            took * f64::from(gpus)
        } else {
            let known = V100_STEPS.iter().find(|(job_type, _)| *job_type == fields[0]);
            let (_, pace) = known.ok_or_else(|| wrong("job_type", 0, "a job type of Gavel"))?;
            f64::from(whole("total_steps", layout.steps)?) / pace
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1e12")]
        let at_secs = secs("arrival_time", layout.at)? as u64;
        let application = application(fields[0]).map(str::to_owned);
        rows.push(TraceJob { line: number, at_secs, gpus, gpu_secs, application }, None);
    }
    if rows.jobs.is_empty() {
        return Err(line(file, 1, Problem::NoLines));
    }
    Ok(rows)
}

/// The application of the paper that trains the same network on the same data.
fn application(job_type: &str) -> Option<&'static str> {
    match job_type.split(' ').next() {
        Some("ResNet-18") => Some("cifar10"),
        Some("ResNet-50") => Some("imagenet"),
        _ => None,
    }
}
