//! Benchmarks: the cargo ones, and the Python that some of them compare with.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::{metadata, shell};

/// Names the interpreter for benchmarks that run an implementation in Python beside ours.
const PYTHON_VARIABLE: &str = "POLLUX_BENCH_PYTHON";

/// A Python with what some benchmarks compare with.
struct Python {
    /// The benchmarks.
    benches: &'static [&'static str],
    /// What it must have installed, relative to the root.
    requirements: &'static str,
    /// Options of the installation.
    options: &'static [&'static str],
    /// The virtual environment, relative to the root.
    environment: &'static str,
    /// Interpreters to make it of, the first that starts.
    interpreters: &'static [&'static str],
}

const PYTHONS: &[Python] = &[
    Python {
        benches: &["fit"],
        requirements: "benches/python/requirements.txt",
        options: &[],
        environment: "target/venv-bench",
        interpreters: &["python3"],
    },
    // Releases of 2021, and a NumPy of 2022 that knows no newer Python.
    Python {
        benches: &["adaptdl"],
        requirements: "benches/python/adaptdl-requirements.txt",
        options: &["--no-deps"],
        environment: "target/venv-bench-adaptdl",
        interpreters: &["python3.11", "python3.10", "python3.9", "python3.8"],
    },
];

/// One benchmark target of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bench {
    package: String,
    name: String,
}

/// Runs the named benchmark, or all of them, perhaps in short form.
pub(crate) fn run(name: Option<&str>, quick: bool) -> Result<()> {
    let all: Vec<Bench> = metadata::load()?
        .into_iter()
        .flat_map(|member| {
            let package = member.name;
            member.benches.into_iter().map(move |name| Bench { package: package.clone(), name })
        })
        .collect();
    for bench in select(&all, name)? {
        // Target by target: `cargo bench --workspace` would also hand `--quick` to the unit tests'
        // harness, which does not know it.
        let mut cargo = shell::cargo();
        cargo.args(["bench", "--locked", "--package", &bench.package, "--bench", &bench.name]);
        if let Some(python) = PYTHONS.iter().find(|python| python.benches.contains(&bench.name.as_str())) {
            cargo.env(PYTHON_VARIABLE, python.prepare()?);
        }
        if quick {
            cargo.args(["--", "--quick"]);
        }
        shell::run(&mut cargo)?;
    }
    Ok(())
}

/// The benchmarks to run. None at all is an error: nothing would have been measured.
fn select<'a>(all: &'a [Bench], name: Option<&str>) -> Result<Vec<&'a Bench>> {
    let selected: Vec<&Bench> =
        all.iter().filter(|bench| name.is_none_or(|name| name == bench.name)).collect();
    ensure!(!all.is_empty(), "the workspace has no benchmarks");
    if let (Some(name), true) = (name, selected.is_empty()) {
        let known: Vec<&str> = all.iter().map(|bench| bench.name.as_str()).collect();
        bail!("no benchmark named `{name}`; there are {}", known.join(", "));
    }
    Ok(selected)
}

impl Python {
    /// The interpreter of a virtual environment that has exactly the pinned requirements.
    fn prepare(&self) -> Result<PathBuf> {
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
        let interpreter = self.interpreters.iter().find(|name| starts(name)).with_context(|| {
            format!("this benchmark compares with Python: install one of {}", self.interpreters.join(", "))
        })?;
        let make =
            || shell::run(shell::command(interpreter).args(["-m", "venv", "--clear", self.environment]));
        let Err(first) = make() else { return Ok(()) };
        let advice = format!(
            "this benchmark compares with Python: install {interpreter} with its `venv` module (Debian and Ubuntu: \
             `apt-get install python3-venv`)"
        );
        if !may_install() {
            return Err(first.context(advice));
        }
        install_venv().and_then(|()| make()).context(advice)
    }
}

/// Whether an earlier run installed these requirements for an interpreter that still starts.
fn is_current(interpreter: &Path, stamp: &Path, requirements: &str) -> bool {
    fs::read_to_string(stamp).is_ok_and(|installed| installed == requirements) && starts(interpreter)
}

/// Whether there is such a program, and it runs.
fn starts(program: impl AsRef<OsStr>) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Whether this is a Debian-like system and we are its administrator.
fn may_install() -> bool {
    Path::new("/etc/debian_version").exists()
        && shell::read(shell::command("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Installs Python's `venv`; a fresh container must first learn which packages there are.
fn install_venv() -> Result<()> {
    let apt = |args: &[&str]| {
        shell::run(shell::command("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(args))
    };
    let install = || apt(&["install", "-y", "python3-venv"]);
    install().or_else(|_| apt(&["update"]).and_then(|()| install()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn benches() -> Vec<Bench> {
        let bench = |name: &str| Bench { package: "pollux-model".to_owned(), name: name.to_owned() };
        vec![bench("best_batch"), bench("fit")]
    }

    #[test]
    fn one_name_or_all() {
        let all = benches();
        assert_eq!(select(&all, None).unwrap().len(), 2);
        assert_eq!(select(&all, Some("fit")).unwrap(), [&all[1]]);
    }

    #[test]
    fn measuring_nothing_is_an_error() {
        let error = select(&benches(), Some("fti")).unwrap_err();
        assert_eq!(error.to_string(), "no benchmark named `fti`; there are best_batch, fit");
        assert!(select(&[], None).is_err());
    }

    #[test]
    fn every_python_has_its_own_environment_and_requirements() {
        let environments: BTreeSet<&str> = PYTHONS.iter().map(|python| python.environment).collect();
        assert_eq!(environments.len(), PYTHONS.len());
        for python in PYTHONS {
            assert!(shell::root().join(python.requirements).is_file(), "{} is missing", python.requirements);
        }
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
