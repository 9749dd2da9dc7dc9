//! The HTTP API of a real scheduler, called with whatever its own description allows and forbids.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::python::Python;
use crate::shell;

/// Schemathesis, which makes calls of an OpenAPI document and compares the answers with it.
const PYTHON: Python = Python {
    requirements: "crates/pollux/python/schemathesis-requirements.txt",
    options: &[],
    environment: "target/venv-schemathesis",
    interpreters: &["python3", "python3.13", "python3.12", "python3.11", "python3.10"],
};

/// What is called with what, and what is left out.
const SETTINGS: &str = "crates/pollux/python/schemathesis.toml";

/// Where the scheduler keeps its state, relative to the root.
const STATE: &str = "target/api-state";

/// The description, in the state folder: a job may call what it does not let a job read.
const DOCUMENT: &str = "openapi.json";

/// Reads it, for the holder of the token in a file.
const FETCH: &str = "import requests, sys; token = open(sys.argv[2]).read().strip(); \
    print(requests.get(sys.argv[1] + '/openapi.json', headers={'Authorization': 'Bearer ' + token}).text)";

/// Calls of each route, in the short form and in the long one.
const EXAMPLES: [&str; 2] = ["25", "1000"];

/// What answers must keep to.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,\
                      response_headers_conformance,negative_data_rejection,unsupported_method,ignored_auth";

/// Starts a scheduler, calls every route, and stops it. Answers that differ from the description are an error.
pub(crate) fn check(is_long: bool) -> Result<()> {
    let python = PYTHON.prepare()?;
    let state = shell::root().join(STATE);
    if state.exists() {
        fs::remove_dir_all(&state).with_context(|| format!("cannot remove {STATE}"))?;
    }
    let up = ["up", "--emulate", "2x2:t4", "--round", "1", "--listen", "127.0.0.1:0", "--detach"];
    let url = pollux(&up)?;
    let outcome = calls(&python, url.trim(), &state, is_long);
    let stopped = pollux(&["down", "--cancel-jobs"]);
    let log = fs::read_to_string(state.join("pollux.log")).unwrap_or_default();
    outcome?;
    stopped?;
    ensure!(!log.contains("panicked"), "the scheduler panicked:\n{log}");
    println!("api: every route keeps to its description");
    Ok(())
}

/// As an administrator, then what only a job may call as a job.
fn calls(python: &Path, url: &str, state: &Path, is_long: bool) -> Result<()> {
    pollux(&["submit", "--name", "one", "--", "true"])?;
    pollux(&["queue", "set", "vision", "--cap", "t4=4"])?;
    let token = fs::read_to_string(state.join("admin.token")).context("cannot read the token")?;
    let document =
        shell::read(shell::command(python).args(["-c", FETCH, url]).arg(state.join("admin.token")))?;
    fs::write(state.join(DOCUMENT), document).context("cannot write the description")?;
    let mut tool = self::tool(python, url, state, &token, is_long)?;
    shell::run(tool.args(["--exclude-tag", "agent"])).context("the API and its description differ")?;
    pollux(&["submit", "--name", "two", "--", "sh", "-c", "cat $POLLUX_TOKEN_FILE; sleep 3600"])?;
    let token = loop {
        let said = pollux(&["logs", "two"]).unwrap_or_default();
        if said.ends_with('\n') {
            break said;
        }
    };
    let mut tool = self::tool(python, url, state, &token, is_long)?;
    let tags = ["--include-tag", "agent", "--include-tag", "adaptdl"];
    shell::run(tool.args(tags)).context("the API and its description differ")
}

/// The tool, as the holder of a token.
fn tool(python: &Path, url: &str, state: &Path, token: &str, is_long: bool) -> Result<Command> {
    let settings = fs::read_to_string(shell::root().join(SETTINGS)).context("cannot read the settings")?;
    // A file, since what is on the command line is shown.
    let filled_in = state.join("schemathesis.toml");
    fs::write(&filled_in, settings.replace("TOKEN", token.trim())).context("cannot write the settings")?;
    let mut tool = shell::command(python);
    // It leaves notes where it runs.
    tool.current_dir(state);
    tool.args(["-m", "schemathesis.cli", "--config-file"]).arg(filled_in).arg("run");
    tool.args([DOCUMENT, "--url", url, "--checks", CHECKS]);
    tool.args(["--max-examples", EXAMPLES[usize::from(is_long)]]);
    // What was found before must not decide what is tried now, and one after the other: its threads stumble over each other.
    tool.args(["--generation-database", "none", "--seed", "1", "--workers", "1"]);
    Ok(tool)
}

/// What a `pollux` command prints.
fn pollux(args: &[&str]) -> Result<String> {
    let mut command = shell::cargo();
    command.args(["run", "--quiet", "--locked", "--package", "pollux", "--"]).args(args);
    shell::read(command.env("POLLUX_STATE", shell::root().join(STATE)).env_remove("POLLUX_SERVER"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_and_the_requirements_are_there() {
        let root = shell::root();
        assert!(root.join(SETTINGS).is_file() && root.join(PYTHON.requirements).is_file());
    }
}
