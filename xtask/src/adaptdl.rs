//! AdaptDL's own client under a real scheduler.

use anyhow::Result;

use crate::python::Python;
use crate::shell;

/// Names the interpreter to the test.
const VARIABLE: &str = "POLLUX_ADAPTDL_PYTHON";

/// The client as released, and a PyTorch and NumPy of its time, which know no newer Python.
const PYTHON: Python = Python {
    requirements: "examples/adaptdl/requirements.txt",
    options: &[],
    environment: "target/venv-adaptdl",
    interpreters: &["python3.11", "python3.10", "python3.9", "python3.8"],
};

/// Runs the example of `examples/adaptdl` with everything it needs. Of the workspace, so that nothing is built anew.
pub(crate) fn check() -> Result<()> {
    let python = PYTHON.prepare()?;
    let test = ["test", "--workspace", "--locked", "--test", "live", "adaptdl"];
    shell::run(shell::cargo().env(VARIABLE, python).args(test))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requirements_are_there() {
        assert!(shell::root().join(PYTHON.requirements).is_file());
    }
}
