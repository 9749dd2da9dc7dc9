//! Public traces of clusters: who asked for how many GPUs when, and how long it took.
//!
//! Their jobs are anonymous. A seeded mapping makes a workload of them: each gets an application of about its size.
//!
//! | question | module |
//! | --- | --- |
//! | which part of which file? | [`spec`] |
//! | what stands in a file? | [`mod@formats`], [`gavel`] |
//! | which application does a job train, how much of it? | [`map`] |
//! | when was 2017-10-03? | `calendar` |

mod calendar;
pub mod formats;
pub mod gavel;
pub mod map;
pub mod spec;

use std::path::Path;

pub use formats::Format;
pub use map::workload_of;
pub use spec::{First, TraceSpec, TraceSpecError, Work};

use crate::osdi21::file::{FileError, Problem};

/// The part of a trace that was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// What was asked for.
    pub spec: TraceSpec,
    /// The format, as named or recognised.
    pub format: Format,
    /// Its jobs, by time.
    pub jobs: Vec<TraceJob>,
    /// Lines of the whole file that are no jobs for us: why, and how many.
    pub skipped: Vec<(&'static str, usize)>,
}

/// A job of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceJob {
    /// Its line in the file, from 1. It stands for the job in the mapping, so that choosing other parts of a trace
    /// changes no job.
    pub line: u64,
    /// When it was submitted, in seconds: from the start of what was chosen.
    pub at_secs: u64,
    /// GPUs it asked for.
    pub gpus: u32,
    /// GPU-seconds it took on them.
    pub gpu_secs: f64,
    /// The application it trained, where the trace says so.
    pub application: Option<String>,
}

impl Trace {
    /// What was left out of the file, for people; none if nothing was.
    pub fn note(&self) -> Option<String> {
        let parts: Vec<String> =
            self.skipped.iter().map(|(why, n_lines)| format!("{n_lines} {why}")).collect();
        let file = self.spec.file.display();
        (!parts.is_empty()).then(|| format!("{file}: left out {}", parts.join(", ")))
    }
}

/// Reads the part of a trace that was asked for.
pub fn read_trace(spec: &TraceSpec) -> Result<Trace, FileError> {
    let fail = |error: std::io::Error| whole(&spec.file, Problem::Unreadable(error.to_string()));
    parse_trace(spec, &std::fs::read(&spec.file).map_err(fail)?)
}

/// The same of a file's content.
///
/// ```
/// use pollux_sim::traces::{TraceSpec, parse_trace};
///
/// let text = "timestamp,duration,num_gpus,gpu_time,cluster\n\
///     2017-10-03 00:00:30,60,2,120,a\n2017-10-03 00:00:10,5,1,5,b\n";
/// let spec: TraceSpec = "trace:philly.csv,first=2017-10-03".parse().unwrap();
/// let trace = parse_trace(&spec, text.as_bytes()).unwrap();
/// let jobs: Vec<_> = trace.jobs.iter().map(|job| (job.at_secs, job.gpus, job.gpu_secs)).collect();
/// assert_eq!(jobs, [(10, 1, 5.0), (30, 2, 120.0)]);
/// ```
pub fn parse_trace(spec: &TraceSpec, bytes: &[u8]) -> Result<Trace, FileError> {
    let file = &spec.file;
    let format = match spec.format {
        Some(format) => format,
        None => formats::recognise(bytes).ok_or_else(|| line(file, 1, Problem::UnknownFormat))?,
    };
    let read = formats::read(format, file, bytes)?;
    let jobs = choose(spec, format, read.jobs)?;
    Ok(Trace { spec: spec.clone(), format, jobs, skipped: read.skipped })
}

/// The jobs of the cluster, days and number that were asked for, with times from their beginning.
fn choose(spec: &TraceSpec, format: Format, rows: Vec<formats::Row>) -> Result<Vec<TraceJob>, FileError> {
    let file = &spec.file;
    let refused = |key, format: Format| whole(file, Problem::NotInFormat { key, format: format.name() });
    let mut rows = rows;
    if let Some(cluster) = &spec.cluster {
        if !format.has_clusters() {
            return Err(refused("cluster", format));
        }
        rows.retain(|row| row.cluster.as_deref() == Some(cluster.as_str()));
    }
    rows.sort_by_key(|row| (row.job.at_secs, row.job.line));
    let origin = rows.first().map_or(0, |row| row.job.at_secs);
    let begin = match spec.first {
        None => origin,
        Some(First::Day(days)) => origin.saturating_add(secs_of(days)),
        Some(First::Date { .. }) if !format.has_dates() => return Err(refused("first", format)),
        Some(First::Date { year, month, day }) => {
            calendar::secs_of_date(year, month, day).unwrap_or(u64::MAX)
        }
    };
    let end = spec.days.map_or(u64::MAX, |days| begin.saturating_add(secs_of(days)));
    let in_time = rows.into_iter().filter(|row| (begin..end).contains(&row.job.at_secs));
    let jobs: Vec<TraceJob> = in_time
        .take(spec.jobs.unwrap_or(usize::MAX))
        .map(|row| TraceJob { at_secs: row.job.at_secs - begin, ..row.job })
        .collect();
    if jobs.is_empty() {
        return Err(whole(file, Problem::NothingChosen));
    }
    Ok(jobs)
}

fn secs_of(days: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
    let secs = (days * 86_400.0).round() as u64;
    secs
}

fn whole(file: &Path, problem: Problem) -> FileError {
    line(file, 0, problem)
}

fn line(file: &Path, line: u64, problem: Problem) -> FileError {
    FileError { file: file.to_owned(), line, problem }
}
