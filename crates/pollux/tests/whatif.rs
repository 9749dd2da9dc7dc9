//! Questions to the simulator through the command.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

fn pollux(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pollux"));
    let few = [
        "sim",
        "whatif",
        "--policy",
        "pollux",
        "--workload",
        "generate:jobs=12,hours=1",
        "--cluster",
        "4x4:t4",
    ];
    command.args(few).args(args).output().unwrap()
}

fn text(args: &[&str]) -> String {
    let output = pollux(args);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The line of a variant in the first table.
fn line<'t>(text: &'t str, variant: &str) -> &'t str {
    text.lines().find(|line| line.starts_with(variant)).unwrap()
}

#[test]
fn no_change_is_no_change() {
    let text = text(&["--change", "policy=pollux"]);
    let line = line(&text, "policy=pollux");
    assert_eq!(line.matches("+0.0 %").count(), 3, "{text}");
    assert!(!text.contains("loses most"), "{text}");
}

#[test]
fn more_nodes_help_and_more_load_hurts() {
    let text = text(&["--change", "cluster=8x4:t4", "--change", "load=2"]);
    assert!(line(&text, "cluster=8x4:t4").contains(" -"), "{text}");
    assert!(line(&text, "load=2").contains(" +"), "{text}");
    // Other jobs cannot be compared one by one.
    let tables: Vec<&str> = text.split("For whom: ").collect();
    assert_eq!(tables.len(), 3);
    assert!(!line(tables[1], "all").ends_with('-') && line(tables[2], "all").ends_with('-'), "{text}");
}

#[test]
fn a_weight_helps_those_who_have_it() {
    let text = text(&["--change", "weight=cifar10:20", "--seeds", "1..3"]);
    let of = |application: &str| -> [f64; 2] {
        let line = line(text.split("For whom: ").nth(1).unwrap(), application);
        let cells: Vec<f64> = line.split_whitespace().filter_map(|cell| cell.parse().ok()).collect();
        [cells[1], cells[2]]
    };
    let [before, after] = of("cifar10");
    assert!(after < before, "{text}");
}

#[test]
fn the_answer_can_be_kept() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("whatif");
    let _ = fs::remove_dir_all(&folder);
    text(&["--change", "load=1.5; round=120", "--out", folder.to_str().unwrap()]);
    let report = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(report.contains("What if?") && report.contains("load=1.5; round=120"));
    assert!(folder.join("data/completion-times.csv").exists());
}

#[test]
fn wrong_changes_are_named() {
    for change in ["nodes=3", "load", "load=-1", "cluster=16*4", "weight=bert", "history=perhaps"] {
        let output = pollux(&["--change", change]);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{change}: {message}");
        assert!(message.contains(&format!("`{change}` is no change")), "{message}");
        assert!(message.contains("cluster=20x4:t4"), "{message}");
    }
}
