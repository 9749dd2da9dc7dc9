//! Workloads as CSV, in the format of the authors' artifact.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::{Submission, Workload};
use crate::osdi21::file::{FileError, Problem, Row, Table};

const COLUMNS: &[&str] = &["name", "time", "application", "num_replicas", "batch_size"];
/// Columns that need not be there.
const WORK: &str = "work";
const GROUP: &str = "group";
const OPTIONAL: &[&str] = &[WORK, GROUP];

/// What a reader must know of an application to check a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known<'a> {
    /// Its name.
    pub name: &'a str,
    /// The smallest batch it may ask for.
    pub initial_batch: u64,
    /// The largest one.
    pub max_batch: u64,
}

/// What the jobs of a file are checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks<'a> {
    /// The applications they may train.
    pub known: &'a [Known<'a>],
    /// The most GPUs a job may ask for: those of the cluster, where some policy heeds requests. None for any number.
    pub most_gpus: Option<u32>,
}

impl<'a> Checks<'a> {
    /// Known applications, and any number of GPUs.
    pub fn known(known: &'a [Known<'a>]) -> Self {
        Self { known, most_gpus: None }
    }
}

/// Reads a workload whose jobs pass these checks.
pub fn read_workload(file: &Path, checks: Checks<'_>) -> Result<Workload, FileError> {
    workload(file, &Table::open_with(file, COLUMNS, OPTIONAL)?, checks)
}

/// The same of a file's content; `file` gives the name.
///
/// ```
/// use pollux_sim::workload::{Checks, Known, parse_workload};
///
/// let text = "name,time,application,num_replicas,batch_size\nbert-0,110,bert,4,96\n";
/// let known = [Known { name: "bert", initial_batch: 12, max_batch: 384 }];
/// let workload = parse_workload("busy.csv".as_ref(), text.as_bytes(), Checks::known(&known)).unwrap();
/// assert_eq!(workload.name, "busy");
/// assert_eq!((workload.jobs[0].at_secs, workload.jobs[0].gpus), (110, 4));
///
/// let small = Checks { most_gpus: Some(2), ..Checks::known(&known) };
/// let error = parse_workload("busy.csv".as_ref(), text.as_bytes(), small).unwrap_err().to_string();
/// assert_eq!(error, "busy.csv:2: column `num_replicas`: 4 GPUs are asked for, but the cluster has 2");
/// ```
pub fn parse_workload(file: &Path, bytes: &[u8], checks: Checks<'_>) -> Result<Workload, FileError> {
    workload(file, &Table::parse_with(file, bytes, COLUMNS, OPTIONAL)?, checks)
}

/// Writes a workload as [`read_workload`] reads it.
pub fn write_workload(workload: &Workload) -> String {
    let mut text = COLUMNS.join(",");
    let is_scaled = workload.jobs.iter().any(|job| job.work.is_some());
    let has_groups = workload.jobs.iter().any(|job| job.group.is_some());
    text.push_str(if is_scaled { ",work" } else { "" });
    text.push_str(if has_groups { ",group\n" } else { "\n" });
    for job in &workload.jobs {
        let Submission { name, at_secs, application, gpus, batch, work, group } = job;
        let (name, application) = (quoted(name), quoted(application));
        let work = match work {
            _ if !is_scaled => String::new(),
            None => ",".to_owned(),
            Some(work) => format!(",{work}"),
        };
        let group = group.as_deref().map(quoted).unwrap_or_default();
        let group = if has_groups { format!(",{group}") } else { String::new() };
        writeln!(text, "{name},{at_secs},{application},{gpus},{batch}{work}{group}")
            .expect("a string takes any text");
    }
    text
}

/// A field of CSV, in quotes where it must be.
pub(crate) fn quoted(field: &str) -> Cow<'_, str> {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\"")).into()
    } else {
        field.into()
    }
}

fn workload(file: &Path, table: &Table, checks: Checks<'_>) -> Result<Workload, FileError> {
    let mut names = BTreeSet::new();
    let mut jobs: Vec<Submission> = Vec::new();
    for row in table.rows() {
        let job = submission(&row, checks)?;
        if !names.insert(job.name.clone()) {
            return Err(row.error(Problem::Twice { column: "name", value: job.name }));
        }
        if let Some(last) = jobs.last().filter(|last| last.at_secs > job.at_secs) {
            return Err(row.error(Problem::Backwards {
                column: "time",
                value: job.at_secs,
                previous: last.at_secs,
            }));
        }
        jobs.push(job);
    }
    let name = file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    Ok(Workload { name, jobs })
}

fn submission(row: &Row<'_>, checks: Checks<'_>) -> Result<Submission, FileError> {
    let Checks { known, most_gpus } = checks;
    let name = row.text("name");
    if name.is_empty() {
        return Err(row.wrong("name", "a name"));
    }
    let application = row.text("application");
    let limits = known.iter().find(|known| known.name == application).ok_or_else(|| {
        let near = pollux_api::nearest(application, known.iter().map(|known| known.name));
        row.error(Problem::UnknownApplication {
            value: application.to_owned(),
            near: near.map(str::to_owned),
        })
    })?;
    let time = row.text("time").parse();
    let at_secs = time.map_err(|_| row.wrong("time", "a whole number of seconds, 0 or more"))?;
    let gpus = row.count("num_replicas")?;
    if let Some(has) = most_gpus.filter(|&most| gpus > most) {
        return Err(row.error(Problem::TooManyGpus { gpus, has }));
    }
    let batch = row.text("batch_size").parse().ok().filter(|&batch| batch > 0);
    let batch = batch.ok_or_else(|| row.wrong("batch_size", "a whole number, 1 or more"))?;
    if !(limits.initial_batch..=limits.max_batch).contains(&batch) {
        return Err(row.error(Problem::BatchOutside {
            batch,
            application: application.to_owned(),
            low: limits.initial_batch,
            high: limits.max_batch,
        }));
    }
    let work = match row.optional(WORK) {
        None | Some("") => None,
        Some(text) => {
            let work = text.parse().ok().filter(|work: &f64| *work > 0.0 && work.is_finite());
            Some(work.ok_or_else(|| row.wrong(WORK, "a number above 0, or nothing"))?)
        }
    };
    let group = row.optional(GROUP).filter(|group| !group.is_empty()).map(str::to_owned);
    let (name, application) = (name.to_owned(), application.to_owned());
    Ok(Submission { name, at_secs, application, gpus, batch, work, group })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: &str = "name,time,application,num_replicas,batch_size";

    const KNOWN: [Known<'static>; 2] = [
        Known { name: "bert", initial_batch: 12, max_batch: 384 },
        Known { name: "ncf", initial_batch: 256, max_batch: 32_768 },
    ];

    fn parse(text: &str) -> Result<Workload, FileError> {
        parse_workload(Path::new("w.csv"), text.as_bytes(), Checks::known(&KNOWN))
    }

    #[test] // Two jobs may arrive in the same second; other columns may stand between.
    fn jobs_come_in_order() {
        let text = "time,name,category,application,num_replicas,batch_size\n\
            0,ncf-0,small,ncf,1,32768\n60,bert-1,medium,bert,4,96\n60,ncf-2,small,ncf,2,256\n";
        let jobs = parse(text).unwrap().jobs;
        let seen: Vec<_> =
            jobs.iter().map(|job| (job.name.as_str(), job.at_secs, job.gpus, job.batch)).collect();
        assert_eq!(seen, [("ncf-0", 0, 1, 32_768), ("bert-1", 60, 4, 96), ("ncf-2", 60, 2, 256)]);
        assert_eq!(jobs[1].application, "bert");
    }

    fn check(row: &str, expected: &str) {
        let error = parse(&format!("{HEADER}\nncf-0,10,ncf,1,256\n{row}\n")).unwrap_err().to_string();
        assert_eq!(error, format!("w.csv:3: {expected}"));
    }

    #[test]
    fn errors_name_file_line_and_column() {
        check("a,9,ncf,1,256", "column `time`: 9 comes after 10; sort the rows by time");
        check("a,-1,ncf,1,256", "column `time`: \"-1\" is not a whole number of seconds, 0 or more");
        check("a,1.5,ncf,1,256", "column `time`: \"1.5\" is not a whole number of seconds, 0 or more");
        check("a,10,brt,1,256", "column `application`: no application named \"brt\"; did you mean `bert`?");
        check("a,10,gpt,1,256", "column `application`: no application named \"gpt\"");
        check("ncf-0,10,ncf,1,256", "column `name`: ncf-0 stands twice");
        check(",10,ncf,1,256", "column `name`: \"\" is not a name");
        check("a,10,ncf,0,256", "column `num_replicas`: \"0\" is not a whole number, 1 or more");
        check("a,10,ncf,1,0", "column `batch_size`: \"0\" is not a whole number, 1 or more");
        check("a,10,ncf,1,x", "column `batch_size`: \"x\" is not a whole number, 1 or more");
        let outside =
            |batch| format!("column `batch_size`: {batch} is outside 256 to 32768, what `ncf` can run");
        check("a,10,ncf,1,255", &outside(255));
        check("a,10,ncf,1,32769", &outside(32_769));
        check("a,10,ncf,1", "4 fields, but the header has 5");
    }

    #[test] // 5 GPUs of 4 are too many, unless nobody counts.
    fn nobody_asks_for_more_than_there_is() {
        let text = format!("{HEADER}\nncf-0,10,ncf,4,256\n\nncf-1,10,ncf,5,256\n");
        let of = |most_gpus| {
            let checks = Checks { most_gpus, ..Checks::known(&KNOWN) };
            parse_workload(Path::new("w.csv"), text.as_bytes(), checks).map(|workload| workload.jobs.len())
        };
        assert_eq!((of(None), of(Some(5))), (Ok(2), Ok(2)));
        let error = of(Some(4)).unwrap_err().to_string();
        assert_eq!(error, "w.csv:4: column `num_replicas`: 5 GPUs are asked for, but the cluster has 4");
    }

    #[test]
    fn errors_of_the_whole_file_name_it() {
        let error = parse("name,time,num_replicas,batch_size\na,1,1,256\n").unwrap_err();
        assert_eq!(error.to_string(), "w.csv:1: column `application` is missing from the header");
        let error = parse(HEADER).unwrap_err();
        assert_eq!(error.to_string(), "w.csv:1: no rows after the header");
        let error = read_workload(Path::new("nowhere/w.csv"), Checks::known(&KNOWN)).unwrap_err();
        assert!(error.to_string().starts_with("nowhere/w.csv: cannot be read: "), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(rows in prop::collection::vec(("[ -~\n]{0,8}", 0_u64..100, 1_u32..9, prop::option::of(1e-6..1e6_f64), prop::option::of("[a-z][ -~]{0,4}[a-z]")), 1..9)) {
            let mut at_secs = 0;
            let jobs = rows.into_iter().enumerate().map(|(index, (name, after_secs, gpus, work, group))| {
                at_secs += after_secs;
                let name = format!("{index}{name}.");
                Submission { name, at_secs, application: "ncf".into(), gpus, batch: 256 * u64::from(gpus), work, group }
            });
            let workload = Workload { name: "w".into(), jobs: jobs.collect() };
            prop_assert_eq!(parse(&write_workload(&workload)), Ok(workload));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "(name,time,application,num_replicas,batch_size\n)?[ -~\n\"]{0,60}") {
            let _ = parse(&text);
        }
    }
}
