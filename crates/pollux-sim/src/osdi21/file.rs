//! CSV files by column name, with errors that say where.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::setting::did_you_mean;

/// A file that cannot be used: which, where in it, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct FileError {
    /// The file, as it was named to the reader.
    pub file: PathBuf,
    /// The line, from 1; 0 when it is about the whole file.
    pub line: u64,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// The file cannot be opened or read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// Bytes that are no CSV text.
    #[error("not CSV: {0}")]
    NotCsv(String),
    /// A column that must be there and is not.
    #[error("column `{column}` is missing from the header")]
    MissingColumn {
        /// Its name.
        column: &'static str,
    },
    /// A header with no rows below it.
    #[error("no rows after the header")]
    NoRows,
    /// A row that is longer or shorter than the header.
    #[error("{found} fields, but the header has {expected}")]
    FieldCount {
        /// Columns of the header.
        expected: usize,
        /// Fields of the row.
        found: usize,
    },
    /// A field that is not what its column holds.
    #[error("column `{column}`: {value:?} is not {expected}")]
    Value {
        /// The field's column.
        column: &'static str,
        /// What stands there.
        value: String,
        /// What should.
        expected: &'static str,
    },
    /// A value that must be greater than the one before it.
    #[error("column `{column}`: {value} comes after {previous}, but the column must ascend")]
    NotAscending {
        /// The column.
        column: &'static str,
        /// The value of this line.
        value: String,
        /// The value before it.
        previous: String,
    },
    /// Something that may stand once stands again.
    #[error("column `{column}`: {value} stands twice")]
    Twice {
        /// The column.
        column: &'static str,
        /// What stands twice.
        value: String,
    },
    /// A value that must not be less than the one before it.
    #[error("column `{column}`: {value} comes after {previous}; sort the rows by {column}")]
    Backwards {
        /// The column.
        column: &'static str,
        /// The value of this line.
        value: u64,
        /// The value before it.
        previous: u64,
    },
    /// A batch that its application cannot run.
    #[error("column `batch_size`: {batch} is outside {low} to {high}, what `{application}` can run")]
    BatchOutside {
        /// What stands there.
        batch: u64,
        /// The application.
        application: String,
        /// Its smallest batch.
        low: u64,
        /// Its largest one.
        high: u64,
    },
    /// More GPUs than there are.
    #[error("column `num_replicas`: {gpus} GPUs are asked for, but the cluster has {has}")]
    TooManyGpus {
        /// What stands there.
        gpus: u32,
        /// GPUs of the cluster.
        has: u32,
    },
    /// An application that nothing is known of.
    #[error("column `application`: no application named {value:?}{}", did_you_mean(.near.as_deref()))]
    UnknownApplication {
        /// What stands there.
        value: String,
        /// The known name nearest to it, if any is near.
        near: Option<String>,
    },
    /// A file whose first line shows no format of traces that we know.
    #[error(
        "no trace in a format we know; add `format=` with `philly`, `elasticflow`, `alibaba`, `gavel` or `shockwave`"
    )]
    UnknownFormat,
    /// A setting that asks for what traces of a format do not say.
    #[error("`{key}` asks for what traces of format `{format}` do not say; leave it out")]
    NotInFormat {
        /// The setting.
        key: &'static str,
        /// The format.
        format: &'static str,
    },
    /// A part of a trace without jobs.
    #[error("no job is in the part of the trace that is asked for; look at `first`, `days` and `cluster`")]
    NothingChosen,
    /// A file without lines.
    #[error("no lines")]
    NoLines,
    /// A line with tabs that is longer or shorter than its format.
    #[error("{found} fields with tabs between them, but there must be {expected}")]
    TabCount {
        /// Fields of the format.
        expected: usize,
        /// Fields of the line.
        found: usize,
    },
    /// Traces that contradict the limits of their application.
    #[error("{what} is {found}, but `{application}` has {expected}")]
    Contradiction {
        /// What was compared.
        what: &'static str,
        /// The application.
        application: &'static str,
        /// What the traces say.
        found: u64,
        /// What the limits say.
        expected: u64,
    },
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, problem } = self;
        match line {
            0 => write!(f, "{}: {problem}", file.display()),
            line => write!(f, "{}:{line}: {problem}", file.display()),
        }
    }
}

impl std::error::Error for FileError {}

/// A CSV file reduced to the columns that were asked for.
pub(crate) struct Table {
    file: PathBuf,
    columns: Vec<&'static str>,
    rows: Vec<(u64, Vec<String>)>,
}

impl Table {
    pub(crate) fn open(file: &Path, columns: &'static [&'static str]) -> Result<Self, FileError> {
        Self::open_with(file, columns, &[])
    }

    /// The same, with columns that need not be there.
    pub(crate) fn open_with(
        file: &Path,
        columns: &'static [&'static str],
        optional: &'static [&'static str],
    ) -> Result<Self, FileError> {
        let bytes = std::fs::read(file).map_err(|error| FileError {
            file: file.to_owned(),
            line: 0,
            problem: Problem::Unreadable(error.to_string()),
        })?;
        Self::parse_with(file, &bytes, columns, optional)
    }

    /// Columns may come in any order and among others; optional ones need not be there.
    pub(crate) fn parse_with(
        file: &Path,
        bytes: &[u8],
        columns: &'static [&'static str],
        optional: &'static [&'static str],
    ) -> Result<Self, FileError> {
        let fail = |line: u64, problem: Problem| FileError { file: file.to_owned(), line, problem };
        let not_csv = |error: &csv::Error| {
            fail(error.position().map_or(0, csv::Position::line), Problem::NotCsv(error.to_string()))
        };
        let mut reader = csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(bytes);
        let header = reader.headers().map_err(|error| not_csv(&error))?.clone();
        let mut indices = Vec::with_capacity(columns.len());
        for column in columns {
            let index = header.iter().position(|name| name == *column);
            indices.push(index.ok_or_else(|| fail(1, Problem::MissingColumn { column }))?);
        }
        let mut columns = columns.to_vec();
        for column in optional {
            if let Some(index) = header.iter().position(|name| name == *column) {
                columns.push(column);
                indices.push(index);
            }
        }
        let mut rows = Vec::new();
        let mut lines = Lines { bytes, n_read: 0, line: 1 };
        for record in reader.records() {
            let record = record.map_err(|error| not_csv(&error))?;
            let line = lines.at(record.position().map_or(0, csv::Position::byte));
            if record.len() != header.len() {
                return Err(fail(line, Problem::FieldCount { expected: header.len(), found: record.len() }));
            }
            rows.push((line, indices.iter().map(|&index| record[index].to_owned()).collect()));
        }
        if rows.is_empty() {
            return Err(fail(1, Problem::NoRows));
        }
        Ok(Self { file: file.to_owned(), columns, rows })
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|(line, fields)| Row { table: self, line: *line, fields })
    }
}

/// Counts lines on the way through a file. The reader of CSV itself says where it was before it skipped blank ones.
struct Lines<'a> {
    bytes: &'a [u8],
    n_read: usize,
    line: u64,
}

impl Lines<'_> {
    /// The line, from 1, of what comes next from `byte` on. Calls ascend.
    fn at(&mut self, byte: u64) -> u64 {
        let byte = usize::try_from(byte).unwrap_or(usize::MAX);
        while let Some(&next) = self.bytes.get(self.n_read)
            && (self.n_read < byte || matches!(next, b'\r' | b'\n'))
        {
            self.line += u64::from(next == b'\n');
            self.n_read += 1;
        }
        self.line
    }
}

/// One line of a [`Table`].
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    table: &'a Table,
    line: u64,
    fields: &'a [String],
}

impl<'a> Row<'a> {
    pub(crate) fn error(&self, problem: Problem) -> FileError {
        FileError { file: self.table.file.clone(), line: self.line, problem }
    }

    /// Its line in the file, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.line
    }

    /// A column that [`Table::open`] was given.
    pub(crate) fn text(&self, column: &'static str) -> &'a str {
        let index = self.table.columns.iter().position(|name| *name == column);
        &self.fields[index.expect("only columns that were asked for are read")]
    }

    /// A column that need not be there.
    pub(crate) fn optional(&self, column: &'static str) -> Option<&'a str> {
        let index = self.table.columns.iter().position(|name| *name == column)?;
        Some(&self.fields[index])
    }

    pub(crate) fn wrong(&self, column: &'static str, expected: &'static str) -> FileError {
        self.error(Problem::Value { column, value: self.text(column).to_owned(), expected })
    }

    /// A whole number from 1.
    pub(crate) fn count(&self, column: &'static str) -> Result<u32, FileError> {
        let value = self.text(column).parse().ok().filter(|&count| count > 0);
        value.ok_or_else(|| self.wrong(column, "a whole number, 1 or more"))
    }

    /// A finite number, 0 or more.
    pub(crate) fn amount(&self, column: &'static str) -> Result<f64, FileError> {
        let value = self.text(column).parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0);
        value.ok_or_else(|| self.wrong(column, "a number, 0 or more"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Table, FileError> {
        Table::parse_with(Path::new("jobs.csv"), text.as_bytes(), &["gpus", "share"], &[])
    }

    #[test]
    fn columns_are_found_by_name() {
        let table = parse("share,name,gpus\r\n0.5,a,3\r\n\r\n1.5, b, 4").unwrap();
        let rows: Vec<(u32, f64, u64)> = table
            .rows()
            .map(|row| (row.count("gpus").unwrap(), row.amount("share").unwrap(), row.line))
            .collect();
        assert_eq!(rows, [(3, 0.5, 2), (4, 1.5, 4)]);
    }

    #[test]
    fn errors_name_file_line_and_column() {
        let message = |text: &str| match parse(text) {
            Err(error) => error.to_string(),
            Ok(table) => table
                .rows()
                .find_map(|row| row.count("gpus").err().or(row.amount("share").err()))
                .map_or_else(String::new, |error| error.to_string()),
        };
        assert_eq!(message("gpus\n1\n"), "jobs.csv:1: column `share` is missing from the header");
        assert_eq!(message("gpus,share\n"), "jobs.csv:1: no rows after the header");
        assert_eq!(message("gpus,share\n1,2\n1\n"), "jobs.csv:3: 1 fields, but the header has 2");
        let count = "jobs.csv:2: column `gpus`: \"0\" is not a whole number, 1 or more";
        assert_eq!(message("gpus,share\n0,2\n"), count);
        let amount = "jobs.csv:2: column `share`: \"NaN\" is not a number, 0 or more";
        assert_eq!(message("gpus,share\n1,NaN\n"), amount);
        assert!(message("gpus,share\n1,-1\n").starts_with("jobs.csv:2: column `share`: \"-1\""));
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let error = Table::parse_with(Path::new("x"), b"gpus,share\n1,\xff\n", &["gpus", "share"], &[]);
        let error = error.err().unwrap();
        assert_eq!(error.line, 2);
        assert!(matches!(error.problem, Problem::NotCsv(_)));
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = Table::open(Path::new("nowhere/a.csv"), &["gpus"]).err().unwrap();
        assert!(error.to_string().starts_with("nowhere/a.csv: cannot be read: "), "{error}");
    }
}
