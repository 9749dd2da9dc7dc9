//! The table of simplices that the OSDI'21 job model interpolates with; SciPy makes it.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::python::Python;
use crate::shell;

/// Where the table is left, relative to the root. The tests of `pollux-sim` look for it there.
pub(crate) const TABLE: &str = "target/osdi21-table.json";

/// What makes it.
const TOOL: &str = "crates/pollux-sim/python/osdi21_table.py";

/// A SciPy of 2023: the reference values were made with it, and it knows no newer Python.
const PYTHON: Python = Python {
    requirements: "crates/pollux-sim/python/requirements.txt",
    options: &[],
    environment: "target/venv-osdi21",
    interpreters: &["python3.11", "python3.10", "python3.9"],
};

/// Makes the table of the traces in the data folder.
pub(crate) fn make_table(data: &Path) -> Result<()> {
    let traces = data.join("pollux-osdi21/traces");
    ensure!(traces.is_dir(), "{} is not a folder; the table is made of the traces there", traces.display());
    let mut tool = shell::command(PYTHON.prepare()?);
    shell::run(tool.args([TOOL.as_ref(), traces.as_os_str(), TABLE.as_ref()]))?;
    println!("The table lies in {TABLE}");
    Ok(())
}

/// What `test` says when there is data but no table.
pub(crate) fn absence_notice() -> Option<String> {
    let rule = "=".repeat(78);
    let notice = format!(
        "{rule}\n\
         {TABLE} ABSENT: the tests of the OSDI'21 job model that need it\n\
         did NOT run. `cargo xtask osdi21-table` makes it.\n\
         {rule}"
    );
    (!shell::root().join(TABLE).exists()).then_some(notice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_and_its_requirements_are_there() {
        assert!(shell::root().join(TOOL).is_file() && shell::root().join(PYTHON.requirements).is_file());
    }

    #[test]
    fn without_traces_nothing_is_made() {
        let error = make_table(Path::new("nowhere")).unwrap_err().to_string();
        assert!(error.starts_with("nowhere/pollux-osdi21/traces is not a folder"), "{error}");
    }
}
