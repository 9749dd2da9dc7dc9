//! Benchmarks: the cargo ones, and the Python that some of them compare with.

use anyhow::{Result, bail, ensure};

use crate::python::Python;
use crate::{metadata, shell, tasks};

/// Names the interpreter for benchmarks that run an implementation in Python beside ours.
const PYTHON_VARIABLE: &str = "POLLUX_BENCH_PYTHON";

/// Which benchmarks compare with which Python.
const PYTHONS: &[(&str, Python)] = &[
    (
        "fit",
        Python {
            requirements: "benches/python/requirements.txt",
            options: &[],
            environment: "target/venv-bench",
            interpreters: &["python3"],
        },
    ),
    // Releases of 2021, and a NumPy of 2022 that knows no newer Python.
    (
        "adaptdl",
        Python {
            requirements: "benches/python/adaptdl-requirements.txt",
            options: &["--no-deps"],
            environment: "target/venv-bench-adaptdl",
            interpreters: &["python3.11", "python3.10", "python3.9", "python3.8"],
        },
    ),
];

/// How much is measured. Each benchmark decides what to make of it; most know no longer form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    Quick,
    Usual,
    Full,
}

/// One benchmark target of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bench {
    package: String,
    name: String,
}

/// Runs the named benchmark, or all of them.
pub(crate) fn run(name: Option<&str>, length: Length) -> Result<()> {
    let data = tasks::data()?;
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
        if let Some((_, python)) = PYTHONS.iter().find(|(name, _)| *name == bench.name) {
            cargo.env(PYTHON_VARIABLE, python.prepare()?);
        }
        if let Some(data) = &data {
            // Benchmarks run in the folder of their crate, where a relative path would lead elsewhere.
            cargo.env(tasks::DATA_VARIABLE, data);
        }
        match length {
            Length::Quick => cargo.args(["--", "--quick"]),
            Length::Usual => &mut cargo,
            Length::Full => cargo.args(["--", "--full"]),
        };
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
        let environments: BTreeSet<&str> = PYTHONS.iter().map(|(_, python)| python.environment).collect();
        assert_eq!(environments.len(), PYTHONS.len());
        for (_, python) in PYTHONS {
            assert!(shell::root().join(python.requirements).is_file(), "{} is missing", python.requirements);
        }
    }
}
