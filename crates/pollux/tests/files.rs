//! Files the command writes, and pipes nobody reads.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const LIMITS: &str =
    "--gpus 1..64 --batch-init 128 --batch-max 4096 --micro-batch 32..1024 --noise-scale 1000";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// An empty folder of this test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn pollux(args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pollux"));
    command.args(args.split_whitespace());
    command
}

/// Runs a command in a folder of its own.
fn run(folder: &Path, args: &str) -> Output {
    pollux(args).current_dir(folder).output().unwrap()
}

/// A folder with the fit of the example observations in it.
fn fitted(name: &str) -> PathBuf {
    let folder = folder(name);
    let observations = root().join("examples/observations.csv");
    fs::copy(observations, folder.join("observations.csv")).unwrap();
    let fit = run(&folder, "model fit observations.csv -o json");
    assert!(fit.status.success() && fit.stderr.is_empty(), "{fit:?}");
    fs::write(folder.join("fit.json"), fit.stdout).unwrap();
    folder
}

#[test]
fn a_fit_feeds_the_goodput_table_and_its_plots() {
    let folder = fitted("feeds");
    for (name, magic) in [("goodput.svg", &b"<svg"[..]), ("goodput.PNG", &b"\x89PNG"[..])] {
        let output = run(&folder, &format!("model goodput --params fit.json {LIMITS} --plot {name}"));
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 65);
        assert!(fs::read(folder.join(name)).unwrap().starts_with(magic));
    }
    assert_eq!(names(&folder), ["fit.json", "goodput.PNG", "goodput.svg", "observations.csv"]);
    let svg = fs::read_to_string(folder.join("goodput.svg")).unwrap();
    for label in
        ["Goodput and throughput", "Best global batch", "Statistical efficiency", "Speed-up over 1 GPU"]
    {
        assert!(svg.contains(label), "{label}");
    }
}

#[test]
fn a_plot_replaces_the_one_before() {
    let folder = fitted("replaces");
    fs::write(folder.join("goodput.svg"), "old").unwrap();
    let output = run(&folder, &format!("model goodput --params fit.json {LIMITS} --plot goodput.svg"));
    assert!(output.status.success());
    assert!(fs::read_to_string(folder.join("goodput.svg")).unwrap().starts_with("<svg"));
}

#[test]
fn an_error_writes_nothing() {
    let folder = fitted("nothing");
    fs::create_dir(folder.join("taken.svg")).unwrap();
    let before = names(&folder);
    for (args, code) in [
        (format!("model goodput --params fit.json {LIMITS} --plot taken.svg"), 1),
        (format!("model goodput --params fit.json {LIMITS} --plot gone/goodput.svg"), 3),
        (format!("model goodput --params observations.csv {LIMITS} --plot goodput.svg"), 4),
        (format!("model goodput --params fit.json {LIMITS} --gpu-type t4 --plot goodput.svg"), 4),
        ("model fit fit.json".to_owned(), 4),
        ("model fit taken.svg".to_owned(), 1),
    ] {
        let output = run(&folder, &args);
        assert_eq!(output.status.code(), Some(code), "{args}: {output:?}");
        assert!(output.stdout.is_empty(), "{args}");
        assert!(output.stderr.starts_with(b"error: "), "{args}: {output:?}");
        assert_eq!(names(&folder), before, "{args}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let folder = fitted("leaves");
    for args in [format!("model goodput --params fit.json {LIMITS}"), "model fit --help".to_owned()] {
        let mut command = pollux(&args);
        command.current_dir(&folder).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success(), "{args}: {said}");
        assert!(!said.contains("panicked") && !said.contains("error"), "{args}: {said}");
    }
}

#[test]
fn the_same_command_prints_the_same_bytes() {
    let folder = fitted("same");
    let args = format!("model goodput --params fit.json {LIMITS} -o json --plot goodput.png");
    let first = (run(&folder, &args), fs::read(folder.join("goodput.png")).unwrap());
    let again = (run(&folder, &args), fs::read(folder.join("goodput.png")).unwrap());
    assert_eq!(first, again);
    assert_eq!(
        run(&folder, "model fit observations.csv -o json").stdout,
        fs::read(folder.join("fit.json")).unwrap()
    );
}
