//! Invariants of the repository that cargo cannot express.
//!
//! Every check is a function from data to [`Problem`]s; only this file and [`tree`] read the disk.

mod layers;
mod links;
mod mentions;
mod ring;
mod text;
mod tree;

use std::fmt;

use anyhow::{Result, bail};

use crate::metadata;

/// One thing to mend: where it is, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Problem {
    /// Path relative to the root.
    file: String,
    /// Counted from one; none when the whole file is meant.
    line: Option<usize>,
    message: String,
    severity: Severity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Severity {
    Error,
    /// Known and tolerated, but said each time.
    Warning,
}

impl Problem {
    fn in_file(file: &str, message: impl Into<String>) -> Problem {
        Problem { file: file.to_owned(), line: None, message: message.into(), severity: Severity::Error }
    }

    fn at_line(file: &str, line: usize, message: impl Into<String>) -> Problem {
        Problem { line: Some(line), ..Problem::in_file(file, message) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { file, line, message, severity } = self;
        f.write_str(match severity {
            Severity::Error => "error: ",
            Severity::Warning => "warning: ",
        })?;
        match line {
            Some(line) => write!(f, "{file}:{line}: {message}"),
            None => write!(f, "{file}: {message}"),
        }
    }
}

/// Runs every check and prints every problem before it fails.
pub(crate) fn run() -> Result<()> {
    let crates = metadata::load()?;
    let files = tree::load()?;

    let mut problems = layers::check_edges(&crates);
    problems.extend(ring::check_external(&crates));
    problems.extend(ring::check_lint_files(&crates, &files));
    problems.extend(files.iter().flat_map(text::check));
    problems.extend(mentions::check(&crates, &files));
    problems.extend(links::check(&files));

    for problem in &problems {
        eprintln!("{problem}");
    }
    let n_errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    if n_errors > 0 {
        bail!("tidy found {n_errors} problem{} to mend", if n_errors == 1 { "" } else { "s" });
    }
    println!("tidy: {} crates and {} files are in order", crates.len(), files.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_says_where_it_is() {
        assert_eq!(Problem::in_file("a.rs", "mend it").to_string(), "error: a.rs: mend it");
        let warning =
            Problem { severity: Severity::Warning, ..Problem::at_line("docs/b.md", 7, "look at it") };
        assert_eq!(warning.to_string(), "warning: docs/b.md:7: look at it");
    }
}
