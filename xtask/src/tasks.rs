//! What each task does, as the commands it runs.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::{adaptdl, agreement, api, bench, browser, osdi21, python, shell, soak, tidy};

/// Where the demo leaves its files, relative to the root.
const DEMO_DIR: &str = "target/demo";

/// Names the folder with the reference data.
pub(crate) const DATA_VARIABLE: &str = "POLLUX_DATA";

/// Where the reference data lies when nothing names it, relative to the root.
const DATA_DIR: &str = "../shared/data";

/// Tests that compare with the authors' simulator where its table is there.
const WITH_TABLE: [&str; 4] = ["osdi21*", "philly", "determinism", "sim"];

/// Builds `pollux` and its worker, and shows real jobs under Pollux and under FIFO; or, simulated, the shipped workload
/// under several schedulers and the story of one job.
pub(crate) fn demo(simulated: bool) -> Result<()> {
    let mut pollux = shell::pollux()?;
    if !simulated {
        return shell::run(pollux.arg("demo"));
    }
    shell::run(pollux.args([
        "sim",
        "run",
        "--workload",
        "examples/workload.csv",
        "--policy",
        "pollux,tiresias,optimus,srtf,fair-share,fifo",
        "--show",
        "deepspeech2-6",
        "--out",
        DEMO_DIR,
    ]))?;
    println!(
        "\nOpen {DEMO_DIR}/report.html in a browser. What every job went through lies beside it; docs/guides/simulate.md \
         says how to read it."
    );
    Ok(())
}

/// Everything that can be said about the code without running it.
pub(crate) fn check() -> Result<()> {
    shell::run(shell::cargo().args(["fmt", "--all", "--check"])).context("`cargo fmt --all` mends this")?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    shell::run(shell::cargo().args(clippy))?;
    let doc = ["doc", "--workspace", "--no-deps", "--locked"];
    shell::run(shell::cargo().env("RUSTDOCFLAGS", "-D warnings").args(doc))?;
    tidy::run()
}

/// `check`, then every test. Says loudly when tests had no reference data to compare with.
pub(crate) fn test() -> Result<()> {
    let started = Instant::now();
    let data = data()?;
    check()?;
    let mut tests = shell::cargo();
    tests.args(["test", "--workspace", "--locked"]);
    if let Some(data) = &data {
        // What is said below and what the tests see is the same folder.
        tests.env(DATA_VARIABLE, data);
    }
    let outcome = shell::run(&mut tests);
    match &data {
        Some(data) => {
            println!("\nReference data: {}", data.display());
            if let Some(notice) = osdi21::absence_notice() {
                eprintln!("\n{notice}");
            }
        }
        None => eprintln!("\n{}", absence_notice()),
    }
    outcome?;
    println!("test: passed in {}", minutes(started.elapsed()));
    Ok(())
}

/// `test`, unless only the rest is asked for, and then the parts that take longer or need more.
pub(crate) fn test_all(rest: bool) -> Result<()> {
    let started = Instant::now();
    if !rest {
        test()?;
    }
    let data = data()?;
    // The table first: benchmarks compare with the artifact where they find it.
    match &data {
        Some(data) => osdi21::make_table(data)?,
        None => println!("{}", absence_notice()),
    }
    bench::run(None, bench::Length::Quick)?;
    browser::check()?;
    agreement::check()?;
    api::check(false)?;
    adaptdl::check()?;
    doors()?;
    soak::many_kills()?;
    if let Some(data) = &data {
        // What needs the table, which `test` did not have in a fresh clone. Of the workspace, so that nothing is built anew.
        let mut tests = vec!["test", "--workspace", "--locked"];
        tests.extend(WITH_TABLE.iter().flat_map(|name| ["--test", *name]));
        shell::run(shell::cargo().env(DATA_VARIABLE, data).args(tests))?;
    }
    println!("test-all{}: passed in {}", if rest { " --rest" } else { "" }, minutes(started.elapsed()));
    Ok(())
}

/// What needs a clock that can be set: installed where that is ours to do, and the tests say loudly where it is not.
fn doors() -> Result<()> {
    if python::may_install() {
        // Without it the test says so.
        let _ = python::install("faketime");
    }
    shell::run(shell::cargo().args(["test", "--workspace", "--locked", "--test", "live", "damage"]))
}

/// Makes the table that the OSDI'21 job model interpolates with.
pub(crate) fn osdi21_table() -> Result<()> {
    let data = data()?
        .with_context(|| format!("no traces in {DATA_DIR}; set {DATA_VARIABLE} to the data folder"))?;
    osdi21::make_table(&data)
}

/// The folder with the reference data, as the environment names it or beside the repository.
pub(crate) fn data() -> Result<Option<PathBuf>> {
    reference_data(std::env::var_os(DATA_VARIABLE).map(PathBuf::from), &shell::root())
}

/// The folder with the reference data. Absence is fine, a variable that points nowhere is a mistake.
fn reference_data(named: Option<PathBuf>, root: &Path) -> Result<Option<PathBuf>> {
    if let Some(named) = named {
        ensure!(named.is_dir(), "{DATA_VARIABLE} is {}, which is not a folder", named.display());
        return Ok(Some(named.canonicalize()?));
    }
    let default = root.join(DATA_DIR);
    Ok(if default.is_dir() { Some(default.canonicalize()?) } else { None })
}

/// What `test` says when there is no reference data.
fn absence_notice() -> String {
    let rule = "=".repeat(78);
    format!(
        "{rule}\n\
         REFERENCE DATA ABSENT: the tests that compare with it did NOT run.\n\
         Looked for the folder named by {DATA_VARIABLE} (not set) and for {DATA_DIR}\n\
         beside the repository. Set {DATA_VARIABLE} to run them.\n\
         {rule}"
    )
}

/// A duration as a person says it: `4.2 s`, `3 min 5 s`.
fn minutes(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 {
        format!("{:.1} s", duration.as_secs_f64())
    } else {
        format!("{} min {} s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        assert_eq!(minutes(Duration::from_millis(4_210)), "4.2 s");
        assert_eq!(minutes(Duration::from_secs(185)), "3 min 5 s");
    }

    #[test]
    fn a_named_data_folder_must_exist() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(
            reference_data(Some(here.join("src")), here).unwrap(),
            here.join("src").canonicalize().ok()
        );
        let error = reference_data(Some(here.join("nowhere")), here).unwrap_err();
        assert!(error.to_string().contains("is not a folder"), "{error}");
    }

    #[test]
    fn without_a_default_folder_there_is_no_data() {
        let nowhere = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        assert_eq!(reference_data(None, &nowhere).unwrap(), None);
        assert!(absence_notice().contains("did NOT run"));
    }
}
