//! Which jobs arrive when: the files in `workloads*/`.

use std::collections::BTreeSet;
use std::path::Path;

use super::application::{APPLICATIONS, Limits};
use super::file::{FileError, Problem, Table};

const COLUMNS: &[&str] = &["name", "time", "application", "num_replicas", "batch_size"];

/// One job of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Its name, which no other job of the workload has.
    pub name: String,
    /// When it is submitted, in seconds from the start.
    pub at_secs: u64,
    /// What it trains.
    pub limits: &'static Limits,
    /// GPUs it asks for. Tiresias alone heeds that.
    pub n_replicas: u32,
    /// Batch it asks for. Policies that adapt the batch do not heed that.
    pub batch: u32,
}

/// Reads a workload, in the order of submission.
pub fn read_workload(file: &Path) -> Result<Vec<Submission>, FileError> {
    submissions(&Table::open(file, COLUMNS)?)
}

/// The same of a file's content; `file` is for messages.
///
/// ```
/// use pollux_sim::osdi21::workload::parse_workload;
///
/// let text = "name,time,application,num_replicas,batch_size\nbert-0,110,bert,4,96\n";
/// let jobs = parse_workload("workload.csv".as_ref(), text.as_bytes()).unwrap();
/// assert_eq!((jobs[0].at_secs, jobs[0].limits.n_epochs), (110, 2));
/// ```
pub fn parse_workload(file: &Path, bytes: &[u8]) -> Result<Vec<Submission>, FileError> {
    submissions(&Table::parse(file, bytes, COLUMNS)?)
}

fn submissions(table: &Table) -> Result<Vec<Submission>, FileError> {
    let mut names = BTreeSet::new();
    let mut submissions: Vec<Submission> = Vec::new();
    for row in table.rows() {
        let name = row.text("name");
        if name.is_empty() {
            return Err(row.wrong("name", "a name"));
        }
        if !names.insert(name) {
            return Err(row.error(Problem::Twice { column: "name", value: name.to_owned() }));
        }
        let application = row.text("application");
        let limits = Limits::named(application).ok_or_else(|| {
            let known = APPLICATIONS.iter().map(|limits| limits.name);
            let near = pollux_api::nearest(application, known);
            row.error(Problem::UnknownApplication { value: application.to_owned(), near })
        })?;
        let at_secs = row
            .text("time")
            .parse()
            .map_err(|_| row.wrong("time", "a whole number of seconds, 0 or more"))?;
        if let Some(last) = submissions.last().filter(|last| last.at_secs > at_secs) {
            return Err(row.error(Problem::NotAscending {
                column: "time",
                value: at_secs.to_string(),
                previous: last.at_secs.to_string(),
            }));
        }
        let batch = row.count("batch_size")?;
        if !(limits.init_batch..=limits.max_batch).contains(&batch) {
            return Err(row.wrong("batch_size", "a batch the application was trained with"));
        }
        let n_replicas = row.count("num_replicas")?;
        submissions.push(Submission { name: name.to_owned(), at_secs, limits, n_replicas, batch });
    }
    Ok(submissions)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "name,time,application,num_replicas,batch_size";

    fn parse(text: &str) -> Result<Vec<Submission>, FileError> {
        parse_workload(Path::new("w.csv"), text.as_bytes())
    }

    #[test]
    fn jobs_come_in_order() {
        let jobs =
            parse(&format!("{HEADER}\nncf-0,0,ncf,1,32768\nbert-1,60,bert,4,96\nncf-2,60,ncf,2,256\n"));
        let jobs = jobs.unwrap();
        let seen: Vec<_> =
            jobs.iter().map(|job| (job.name.as_str(), job.at_secs, job.n_replicas, job.batch)).collect();
        assert_eq!(seen, [("ncf-0", 0, 1, 32_768), ("bert-1", 60, 4, 96), ("ncf-2", 60, 2, 256)]);
    }

    fn check(row: &str, expected: &str) {
        let error = parse(&format!("{HEADER}\nncf-0,10,ncf,1,256\n{row}\n")).unwrap_err().to_string();
        assert_eq!(error, format!("w.csv:3: {expected}"));
    }

    #[test]
    fn errors_name_file_line_and_column() {
        check("a,9,ncf,1,256", "column `time`: 9 comes after 10, but the column must ascend");
        check("a,-1,ncf,1,256", "column `time`: \"-1\" is not a whole number of seconds, 0 or more");
        check("a,10,brt,1,256", "column `application`: no application named \"brt\"; did you mean `bert`?");
        check("a,10,gpt,1,256", "column `application`: no application named \"gpt\"");
        check("ncf-0,10,ncf,1,256", "column `name`: ncf-0 stands twice");
        check(",10,ncf,1,256", "column `name`: \"\" is not a name");
        check("a,10,ncf,0,256", "column `num_replicas`: \"0\" is not a whole number, 1 or more");
        check("a,10,ncf,1,x", "column `batch_size`: \"x\" is not a whole number, 1 or more");
        check(
            "a,10,ncf,1,255",
            "column `batch_size`: \"255\" is not a batch the application was trained with",
        );
        check("a,10,ncf,1", "4 fields, but the header has 5");
    }

    #[test]
    fn a_missing_column_is_named() {
        let error = parse("name,time,num_replicas,batch_size\na,1,1,256\n").unwrap_err();
        assert_eq!(error.to_string(), "w.csv:1: column `application` is missing from the header");
    }
}
