//! Measured step times as CSV: one row per configuration.
//!
//! Columns, in any order: `nodes`, `replicas`, `local_bsz` (samples of one micro-batch on one GPU),
//! `accum_time_s` (a pass that does not synchronise), `optim_time_s` (the pass that does, with the
//! optimizer's step), and if wanted `gpu_type` and `weight`. Blank lines and lines that begin with `#` are
//! skipped.

mod error;
mod row;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use pollux_model::GpuType;
use pollux_model::fit::Observation;

pub use error::{Expected, ObservationsError, Problem};
pub use row::Column;

use row::Header;

/// Reads observations, by GPU type; all under [`GpuType::default`] if the file does not name types.
///
/// `file` is the name that errors give the input.
///
/// ```
/// use pollux_api::observations;
/// use pollux_model::GpuType;
///
/// let csv = b"nodes,replicas,local_bsz,accum_time_s,optim_time_s\n1,4,128,0.05,-0.3\n";
/// let error = observations::read("times.csv", csv).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "times.csv:2: column `optim_time_s`: `-0.3` is not a positive number of seconds"
/// );
///
/// let csv = b"nodes,replicas,local_bsz,accum_time_s,optim_time_s\n1,4,128,0.05,0.06\n";
/// let observations = observations::read("times.csv", csv).unwrap();
/// assert_eq!(observations[&GpuType::default()][0].micro_batch(), 128);
/// ```
///
/// # Errors
///
/// The first line that is wrong, with its column where it is one alone.
pub fn read(file: &str, bytes: &[u8]) -> Result<BTreeMap<GpuType, Vec<Observation>>, ObservationsError> {
    parse(bytes).map_err(|(line, problem)| ObservationsError { file: file.to_owned(), line, problem })
}

/// A problem and its line.
type Located = (usize, Problem);

fn parse(bytes: &[u8]) -> Result<BTreeMap<GpuType, Vec<Observation>>, Located> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        (bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count(), Problem::NotUtf8)
    })?;
    let mut records = Records::new(text);
    let (header_line, header) = records.next().ok_or((1, Problem::Empty))?;
    let header = Header::parse(&header).map_err(|problem| (header_line, problem))?;

    let mut observations = BTreeMap::<GpuType, Vec<Observation>>::new();
    for (line, record) in records {
        let (gpu_type, observation) = header.row(&record).map_err(|problem| (line, problem))?;
        observations.entry(gpu_type).or_default().push(observation);
    }
    if observations.is_empty() {
        return Err((header_line, Problem::NoRows));
    }
    Ok(observations)
}

/// The records of a text, with the line of the text each begins on.
struct Records {
    reader: csv::Reader<std::io::Cursor<String>>,
    /// The line in the file of each line that is neither blank nor a comment.
    line_numbers: Vec<usize>,
}

impl Records {
    fn new(text: &str) -> Self {
        // The reader could skip comments and blank lines itself, but counts lines before it does so.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
        let (mut kept, mut line_numbers) = (String::with_capacity(text.len()), Vec::new());
        for (number, line) in (1..).zip(text.split('\n')) {
            if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
                kept.push_str(line);
                kept.push('\n');
                line_numbers.push(number);
            }
        }
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(std::io::Cursor::new(kept));
        Self { reader, line_numbers }
    }
}

impl Iterator for Records {
    type Item = (usize, csv::StringRecord);

    fn next(&mut self) -> Option<Self::Item> {
        let mut record = csv::StringRecord::new();
        // Text in memory, of any number of fields: reading it cannot fail.
        if !self.reader.read_record(&mut record).unwrap_or(false) {
            return None;
        }
        let nth = record.position().map_or(1, csv::Position::line).max(1);
        let index = usize::try_from(nth).unwrap_or(usize::MAX) - 1;
        let line = self.line_numbers.get(index).or(self.line_numbers.last()).copied().unwrap_or(1);
        Some((line, record))
    }
}
