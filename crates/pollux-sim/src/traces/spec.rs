//! Which part of which trace, and how it is written on a command line.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::calendar;
use super::formats::Format;
use crate::setting::{Known, SettingError, quoted};

/// A trace to be read.
///
/// Written `trace:FILE`, or with settings after the file; a file with a comma in its name cannot be written so.
///
/// ```
/// use pollux_sim::traces::{First, TraceSpec, Work};
///
/// let spec: TraceSpec = "trace:data/philly.csv,first=2017-10-03,days=7,work=profile".parse().unwrap();
/// assert_eq!(spec.first, Some(First::Date { year: 2017, month: 10, day: 3 }));
/// assert_eq!((spec.days, spec.work), (Some(7.0), Work::Profile));
/// assert_eq!(spec.label(), "trace:philly.csv,first=2017-10-03,days=7,work=profile");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpec {
    /// The file.
    pub file: PathBuf,
    /// Its format; recognised by its first line if none.
    pub format: Option<Format>,
    /// Where to begin; at the first job if none.
    pub first: Option<First>,
    /// Days from there; all if none.
    pub days: Option<f64>,
    /// The most jobs; all if none.
    pub jobs: Option<usize>,
    /// The cluster whose jobs are meant, where the trace has several; all if none.
    pub cluster: Option<String>,
    /// How much work a job has.
    pub work: Work,
}

/// Where to begin in a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum First {
    /// At midnight of a date.
    Date {
        /// The year.
        year: u32,
        /// The month, from 1.
        month: u32,
        /// The day, from 1.
        day: u32,
    },
    /// So many days after the first job.
    Day(f64),
}

/// How much work the jobs of a trace have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// The GPU-time that the trace says.
    #[default]
    Trace,
    /// What the application's profile says, as in the paper: the trace counts for its class alone.
    Profile,
}

const WORD: &str = "trace:";
const KEYS: [&str; 6] = ["format", "first", "days", "jobs", "cluster", "work"];
static KNOWN: Known = Known { what: "setting of a trace", keys: &KEYS };
const MOST_DAYS: f64 = 36_500.0;

/// Text that says no trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceSpecError {
    /// No file.
    #[error("{text:?} names no trace; write `trace:FILE` or `trace:FILE,KEY=VALUE`, keys are {}", quoted(&KEYS, ", "))]
    NoFile {
        /// The text.
        text: String,
    },
    /// A setting that is none.
    #[error(transparent)]
    Setting(#[from] SettingError),
}

impl TraceSpec {
    /// Whether a text is meant to name a trace.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(WORD)
    }

    /// A whole file, with the work that it says.
    pub fn whole(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            format: None,
            first: None,
            days: None,
            jobs: None,
            cluster: None,
            work: Work::Trace,
        }
    }

    /// As it is written, but for the folder of its file.
    pub fn label(&self) -> String {
        let name = self.file.file_name().unwrap_or_default();
        format!("{WORD}{}{}", name.to_string_lossy(), self.settings())
    }

    fn settings(&self) -> String {
        let settings = [
            self.format.map(|format| format!("format={format}")),
            self.first.map(|first| format!("first={first}")),
            self.days.map(|days| format!("days={days}")),
            self.jobs.map(|jobs| format!("jobs={jobs}")),
            self.cluster.as_ref().map(|cluster| format!("cluster={cluster}")),
            (self.work == Work::Profile).then(|| "work=profile".to_owned()),
        ];
        settings.into_iter().flatten().flat_map(|setting| [",".to_owned(), setting]).collect()
    }

    fn set(&mut self, key: &'static str, value: &str) -> Result<(), SettingError> {
        let wrong = |expected| SettingError::Value { key, value: value.to_owned(), expected };
        let days = |low: f64| value.parse().ok().filter(|days: &f64| (low..=MOST_DAYS).contains(days));
        match key {
            "format" => {
                let known = "`philly`, `elasticflow`, `alibaba`, `gavel` or `shockwave`";
                self.format = Some(value.parse().map_err(|()| wrong(known))?);
            }
            "first" => {
                let date =
                    || calendar::date(value).map(|(year, month, day)| First::Date { year, month, day });
                let first = days(0.0).map(First::Day).or_else(date);
                let expected = "a date such as 2017-10-03, or days after the first job";
                self.first = Some(first.ok_or_else(|| wrong(expected))?);
            }
            "days" => {
                let days = days(0.0).filter(|days| *days > 0.0);
                self.days = Some(days.ok_or_else(|| wrong("more than 0 and at most 36500"))?);
            }
            "jobs" => {
                let jobs = value.parse().ok().filter(|jobs| *jobs > 0);
                self.jobs = Some(jobs.ok_or_else(|| wrong("a whole number, 1 or more"))?);
            }
            "cluster" => {
                let name = Some(value.to_owned()).filter(|name| !name.is_empty());
                self.cluster = Some(name.ok_or_else(|| wrong("the name of a cluster"))?);
            }
            _ => {
                self.work = match value {
                    "trace" => Work::Trace,
                    "profile" => Work::Profile,
                    _ => return Err(wrong("`trace` or `profile`")),
                };
            }
        }
        Ok(())
    }
}

impl FromStr for TraceSpec {
    type Err = TraceSpecError;

    fn from_str(text: &str) -> Result<Self, TraceSpecError> {
        let mut parts = text.strip_prefix(WORD).unwrap_or("").split(',');
        let file = parts.next().filter(|file| !file.is_empty());
        let file = file.ok_or_else(|| TraceSpecError::NoFile { text: text.to_owned() })?;
        let mut spec = Self::whole(file);
        KNOWN.read(parts, |key, value| spec.set(key, value))?;
        Ok(spec)
    }
}

impl fmt::Display for TraceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{WORD}{}{}", self.file.display(), self.settings())
    }
}

impl fmt::Display for First {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Date { year, month, day } => write!(f, "{year:04}-{month:02}-{day:02}"),
            Self::Day(days) => write!(f, "{days}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(text.parse::<TraceSpec>().unwrap_err().to_string(), expected);
    }

    #[test]
    fn errors_say_what_can_be_written() {
        const KEYS: &str = "`format`, `first`, `days`, `jobs`, `cluster`, `work`";
        check(
            "trace:",
            &format!(
                "\"trace:\" names no trace; write `trace:FILE` or `trace:FILE,KEY=VALUE`, keys are {KEYS}"
            ),
        );
        check(
            "trace:a,7",
            &format!("\"7\" is no setting of a trace; write `KEY=VALUE,KEY=VALUE`, keys are {KEYS}"),
        );
        check(
            "trace:a,day=7",
            &format!("no setting of a trace named \"day\" among {KEYS}; did you mean `days`?"),
        );
        check("trace:a,days=7,days=8", "`days` stands twice; leave one out");
        check(
            "trace:a,format=csv",
            "`format`: \"csv\" is not `philly`, `elasticflow`, `alibaba`, `gavel` or `shockwave`",
        );
        check(
            "trace:a,first=2017-13-01",
            "`first`: \"2017-13-01\" is not a date such as 2017-10-03, or days after the first job",
        );
        check("trace:a,days=0", "`days`: \"0\" is not more than 0 and at most 36500");
        check("trace:a,jobs=0", "`jobs`: \"0\" is not a whole number, 1 or more");
        check("trace:a,cluster=", "`cluster`: \"\" is not the name of a cluster");
        check("trace:a,work=half", "`work`: \"half\" is not `trace` or `profile`");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            days in prop::option::of(0.1..300.0_f64), jobs in prop::option::of(1_usize..1_000), day in 0.0..9.0_f64,
            is_date: bool, is_profile: bool,
        ) {
            let first = if is_date { First::Date { year: 2017, month: 10, day: 3 } } else { First::Day(day) };
            let work = if is_profile { Work::Profile } else { Work::Trace };
            let spec = TraceSpec { first: Some(first), days, jobs, work, ..TraceSpec::whole("a/b.csv") };
            prop_assert_eq!(spec.to_string().parse(), Ok(spec));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "trace:[ -~]{0,40}") {
            let _ = text.parse::<TraceSpec>();
        }
    }
}
