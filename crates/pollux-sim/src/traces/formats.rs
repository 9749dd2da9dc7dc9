//! What stands in the files of public traces.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::{TraceJob, calendar, gavel};
use crate::osdi21::file::{FileError, Problem, Row as Line, Table};

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Microsoft's Philly cluster, 2017, as the artifacts of Pollux and Sia flatten it.
    Philly,
    /// Microsoft's ITP clusters, 2021, published with ElasticFlow; and ElasticFlow's own traces.
    Elasticflow,
    /// Pods of Alibaba's GPU cluster, 2023, some of which have a part of a GPU.
    Alibaba,
    /// The traces of Gavel, in either of its two layouts.
    Gavel,
    /// The traces of Shockwave.
    Shockwave,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Philly, Self::Elasticflow, Self::Alibaba, Self::Gavel, Self::Shockwave];

    /// Its name in a setting.
    pub fn name(self) -> &'static str {
        match self {
            Self::Philly => "philly",
            Self::Elasticflow => "elasticflow",
            Self::Alibaba => "alibaba",
            Self::Gavel => "gavel",
            Self::Shockwave => "shockwave",
        }
    }

    /// Whether its times have a date; otherwise they are seconds from some beginning.
    pub fn has_dates(self) -> bool {
        self == Self::Philly
    }

    /// Whether it names the cluster of a job.
    pub fn has_clusters(self) -> bool {
        self == Self::Philly
    }
}

impl FromStr for Format {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|format| format.name() == text).ok_or(())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A line that is a job.
pub(super) struct Row {
    pub(super) job: TraceJob,
    pub(super) cluster: Option<String>,
}

/// A whole file.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) jobs: Vec<Row>,
    pub(super) skipped: Vec<(&'static str, usize)>,
}

impl Rows {
    pub(super) fn push(&mut self, job: TraceJob, cluster: Option<String>) {
        self.jobs.push(Row { job, cluster });
    }

    fn skip(&mut self, why: &'static str) {
        match self.skipped.iter_mut().find(|(known, _)| *known == why) {
            Some((_, n_lines)) => *n_lines += 1,
            None => self.skipped.push((why, 1)),
        }
    }
}

/// The format that the first line shows; none if it is no trace we know.
pub(super) fn recognise(bytes: &[u8]) -> Option<Format> {
    let first = bytes.split(|byte| *byte == b'\n').next()?;
    let first = std::str::from_utf8(first).ok()?.trim_end();
    let columns: Vec<&str> = first.split(',').map(str::trim).collect();
    let has = |column: &str| columns.contains(&column);
    if has("timestamp") && has("gpu_time") {
        Some(Format::Philly)
    } else if has("num_gpu") && has("duration") && SUBMITTED.iter().any(|column| has(column)) {
        Some(Format::Elasticflow)
    } else if has("num_gpu") && has("gpu_milli") {
        Some(Format::Alibaba)
    } else {
        gavel::recognise(first)
    }
}

pub(super) fn read(format: Format, file: &Path, bytes: &[u8]) -> Result<Rows, FileError> {
    match format {
        Format::Philly => philly(file, bytes),
        Format::Elasticflow => elasticflow(file, bytes),
        Format::Alibaba => alibaba(file, bytes),
        Format::Gavel | Format::Shockwave => gavel::read(format, file, bytes),
    }
}

fn philly(file: &Path, bytes: &[u8]) -> Result<Rows, FileError> {
    let columns = &["timestamp", "num_gpus", "gpu_time"];
    let mut rows = Rows::default();
    for line in Table::parse_with(file, bytes, columns, &["cluster"])?.rows() {
        let at_secs = calendar::secs_of_text(line.text("timestamp"));
        let at_secs = at_secs.ok_or_else(|| line.wrong("timestamp", "a time such as 2017-10-03 07:01:55"))?;
        let (gpus, gpu_secs) = (line.count("num_gpus")?, above_zero(&line, "gpu_time")?);
        let cluster = line.optional("cluster").map(str::to_owned);
        rows.push(TraceJob { line: line.number(), at_secs, gpus, gpu_secs, application: None }, cluster);
    }
    Ok(rows)
}

/// What the column of submission times is called: in the raw traces, and in ElasticFlow's own.
const SUBMITTED: [&str; 2] = ["submission_time", "submit_time"];

fn elasticflow(file: &Path, bytes: &[u8]) -> Result<Rows, FileError> {
    let optional = &["submission_time", "submit_time", "model_name"];
    let table = Table::parse_with(file, bytes, &["duration", "num_gpu"], optional)?;
    let mut rows = Rows::default();
    for line in table.rows() {
        let submitted = SUBMITTED.into_iter().find(|column| line.optional(column).is_some());
        let missing = Problem::MissingColumn { column: SUBMITTED[0] };
        let at_secs = secs(&line, submitted.ok_or_else(|| super::line(file, 1, missing))?)?;
        let gpus = line.count("num_gpu")?;
        let gpu_secs = above_zero(&line, "duration")? * f64::from(gpus);
        let application = line.optional("model_name").map(|model| match model {
            // What the paper's application of that name trains.
            "resnet50" => "imagenet".to_owned(),
            other => other.to_owned(),
        });
        rows.push(TraceJob { line: line.number(), at_secs, gpus, gpu_secs, application }, None);
    }
    Ok(rows)
}

/// Pods that never ran or have no GPU are left out. A pod with a part of a GPU asks for a whole one, and takes that part
/// of the GPU-time.
fn alibaba(file: &Path, bytes: &[u8]) -> Result<Rows, FileError> {
    let columns = &["num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time"];
    let mut rows = Rows::default();
    for line in Table::parse_with(file, bytes, columns, &[])?.rows() {
        if line.text("num_gpu") == "0" {
            rows.skip("pods without GPUs");
            continue;
        }
        if line.text("scheduled_time").is_empty() {
            rows.skip("pods that never ran");
            continue;
        }
        let gpus = line.count("num_gpu")?;
        let milli = line.count("gpu_milli")?;
        if milli > 1_000 {
            return Err(line.wrong("gpu_milli", "thousandths of a GPU, 1 to 1000"));
        }
        let (began, ended) = (secs(&line, "scheduled_time")?, secs(&line, "deletion_time")?);
        let ran = ended.checked_sub(began).filter(|ran| *ran > 0);
        let ran = ran.ok_or_else(|| line.wrong("deletion_time", "later than `scheduled_time`"))?;
        let gpu_secs = ran as f64 * f64::from(gpus) * f64::from(milli) / 1_000.0;
        let at_secs = secs(&line, "creation_time")?;
        rows.push(TraceJob { line: line.number(), at_secs, gpus, gpu_secs, application: None }, None);
    }
    Ok(rows)
}

fn above_zero(line: &Line<'_>, column: &'static str) -> Result<f64, FileError> {
    let amount = line.amount(column)?;
    if amount > 0.0 { Ok(amount) } else { Err(line.wrong(column, "a number above 0")) }
}

fn secs(line: &Line<'_>, column: &'static str) -> Result<u64, FileError> {
    line.text(column).parse().map_err(|_| line.wrong(column, "a whole number of seconds, 0 or more"))
}
