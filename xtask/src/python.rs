//! Python environments with pinned requirements, for what only a Python library can tell us.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::shell;

/// A virtual environment and how to make it.
pub(crate) struct Python {
    /// What it must have installed, relative to the root.
    pub(crate) requirements: &'static str,
    /// Options of the installation.
    pub(crate) options: &'static [&'static str],
    /// The virtual environment, relative to the root.
    pub(crate) environment: &'static str,
    /// Interpreters to make it of, the first that starts.
    pub(crate) interpreters: &'static [&'static str],
}

impl Python {
    /// The interpreter of a virtual environment that has exactly the pinned requirements.
    pub(crate) fn prepare(&self) -> Result<PathBuf> {
        let requirements = fs::read_to_string(shell::root().join(self.requirements))
            .with_context(|| format!("cannot read {}", self.requirements))?;
        let environment = shell::root().join(self.environment);
        let interpreter = environment.join("bin/python");
        let stamp = environment.join("requirements.stamp");
        if is_current(&interpreter, &stamp, &requirements) {
            return Ok(interpreter);
        }
        self.make_environment()?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        let mut pip = shell::command(&interpreter);
        shell::run(pip.args(install).args(self.options).args(["--requirement", self.requirements]))?;
        fs::write(&stamp, requirements).with_context(|| format!("cannot write {}", stamp.display()))?;
        Ok(interpreter)
    }

    /// Makes an empty virtual environment, after installing the means where that is ours to do.
    fn make_environment(&self) -> Result<()> {
        let interpreter =
            self.interpreters.iter().find(|name| starts(name)).with_context(|| {
                format!("this needs Python: install one of {}", self.interpreters.join(", "))
            })?;
        let make =
            || shell::run(shell::command(interpreter).args(["-m", "venv", "--clear", self.environment]));
        let Err(first) = make() else { return Ok(()) };
        let advice = format!(
            "this needs Python: install {interpreter} with its `venv` module (Debian and Ubuntu: \
             `apt-get install python3-venv`)"
        );
        if !may_install() {
            return Err(first.context(advice));
        }
        install("python3-venv").and_then(|()| make()).context(advice)
    }
}

/// Whether an earlier run installed these requirements for an interpreter that still starts.
fn is_current(interpreter: &Path, stamp: &Path, requirements: &str) -> bool {
    fs::read_to_string(stamp).is_ok_and(|installed| installed == requirements) && starts(interpreter)
}

/// Whether there is such a program, and it runs.
pub(crate) fn starts(program: impl AsRef<OsStr>) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Whether this is a Debian-like system and we are its administrator.
pub(crate) fn may_install() -> bool {
    Path::new("/etc/debian_version").exists()
        && shell::read(shell::command("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Installs a package of the system; a fresh container must first learn which packages there are.
pub(crate) fn install(package: &str) -> Result<()> {
    let apt = |args: &[&str]| {
        shell::run(shell::command("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(args))
    };
    let install = || apt(&["install", "-y", package]);
    install().or_else(|_| apt(&["update"]).and_then(|()| install()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_starts_or_does_not() {
        assert!(starts(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())));
        assert!(!starts("no-such-python"));
    }

    #[test]
    fn an_environment_without_stamp_or_interpreter_is_made_anew() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let stamp = here.join("Cargo.toml");
        let installed = fs::read_to_string(&stamp).unwrap();
        let runs = PathBuf::from(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        assert!(is_current(&runs, &stamp, &installed));
        assert!(!is_current(&runs, &stamp, "numpy==0"));
        assert!(!is_current(&runs, &here.join("no-stamp"), &installed));
        assert!(!is_current(&here.join("no-python"), &stamp, &installed));
    }
}
