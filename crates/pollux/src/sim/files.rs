//! The folder in which a campaign is kept.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pollux_report::Page;
use pollux_sim::Run;
use pollux_sim::campaign::{Campaign, Cell, jobs_csv, timeline_csv};

use super::failure::SimFailure;
use crate::failure::Failure;

/// The name of the report in the folder.
pub(super) const REPORT: &str = "report.html";

/// A folder with a folder for each run.
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the folder, if no two runs would share a place in it.
    pub(super) fn create(path: &Path, campaign: &Campaign) -> Result<Self, Failure> {
        told_apart("policies", campaign.cells().map(|cell| cell.policy))?;
        told_apart("workloads", campaign.cells().map(|cell| cell.workload))?;
        create(path)?;
        Ok(Self { path: path.to_owned() })
    }

    /// Where the results of all runs go.
    pub(super) fn results(&self) -> PathBuf {
        self.path.join("results.json")
    }

    /// Keeps the report, and the numbers behind its figures beside it.
    pub(super) fn report(&self, page: &Page) -> Result<(), Failure> {
        create(&self.path.join("data"))?;
        for (name, text) in page.files().chain([(REPORT.to_owned(), page.to_html())]) {
            let path = self.path.join(name);
            fs::write(&path, text).map_err(|source| Failure::Write { path, source })?;
        }
        Ok(())
    }

    /// Keeps a run.
    pub(super) fn keep(&self, cell: &Cell<'_>, run: &Run) -> Result<(), Failure> {
        let of_run = format!("{}-seed{}", plain(cell.workload), cell.seed);
        let folder = self.path.join(plain(cell.policy)).join(of_run);
        create(&folder)?;
        for (name, text) in [("jobs.csv", jobs_csv(run)), ("timeline.csv", timeline_csv(run))] {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|source| Failure::Write { path, source })?;
        }
        if !run.log.bill.is_empty() {
            let path = folder.join("cluster.csv");
            fs::write(&path, run.log.bill.to_csv()).map_err(|source| Failure::Write { path, source })?;
        }
        Ok(())
    }
}

fn create(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|source| Failure::Write { path: path.to_owned(), source })
}

/// A name for a folder: everything but letters, digits, `-`, `.`, `+` and `=` becomes `_`.
fn plain(label: &str) -> String {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() || "-.+=".contains(letter) { letter } else { '_' }
    };
    let name: String = label.chars().map(plain).collect();
    // A name of points alone would be another folder.
    if name.chars().all(|letter| letter == '.') { format!("_{name}") } else { name }
}

fn told_apart<'a>(what: &'static str, labels: impl Iterator<Item = &'a str>) -> Result<(), SimFailure> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for label in labels {
        // Some file systems take large and small letters for the same.
        let first = seen.entry(plain(label).to_lowercase()).or_insert(label);
        if *first != label {
            let (first, second) = ((*first).to_owned(), label.to_owned());
            return Err(SimFailure::SharedFolder { what, first, second, name: plain(label) });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_become_plain_names() {
        assert_eq!(plain("pollux:tuned+fairness=-1"), "pollux_tuned+fairness=-1");
        assert_eq!(plain("generate:jobs=4,hours=1"), "generate_jobs=4_hours=1");
        assert_eq!(plain("a/b c"), "a_b_c");
        assert_eq!(plain(".."), "_..");
    }

    #[test]
    fn no_two_share_a_folder() {
        assert!(told_apart("workloads", ["a b", "a b", "c"].into_iter()).is_ok());
        let error = told_apart("workloads", ["a b", "A_b"].into_iter()).unwrap_err().to_string();
        assert_eq!(error, "workloads `a b` and `A_b` would share the folder `A_b`");
    }
}
