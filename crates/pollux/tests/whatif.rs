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

/// Eight equal jobs of two teams; the tests have two GPUs for each, and they could use more.
fn teams() -> String {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("teams.csv");
    let job = |number: u32| {
        let team = if number.is_multiple_of(2) { "vision" } else { "speech" };
        format!("{team}-{number},{},cifar10,1,128,{team}", 10 * number)
    };
    let header = "name,time,application,num_replicas,batch_size,group".to_owned();
    let lines: Vec<String> = std::iter::once(header).chain((0..8).map(job)).collect();
    let jobs = lines.join("\n") + "\n";
    fs::write(&file, jobs).unwrap();
    file.display().to_string()
}

#[test]
fn a_weight_helps_the_group_that_has_it_and_groups_are_told_apart() {
    let args = ["sim", "whatif", "--policy", "pollux", "--cluster", "4x4:t4", "--workload"];
    let ask = |changes: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_pollux"))
            .args(args)
            .arg(teams())
            .args(changes.iter().flat_map(|change| ["--change", *change]))
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let (code, text) = ask(&["weight=vision:20", "weight=vision:1"]);
    assert_eq!(code, Some(0), "{text}");
    let tables: Vec<&str> = text.split("For whom: ").collect();
    let of = |table: &str, group: &str| -> [f64; 3] {
        let cells: Vec<f64> =
            line(table, group).split_whitespace().filter_map(|cell| cell.parse().ok()).collect();
        [cells[0], cells[1], cells[2]]
    };
    assert!(tables[1].contains("GROUP") && !tables[1].contains("cifar10"), "{text}");
    let ([n_vision, before, after], [n_speech, first, last]) =
        (of(tables[1], "vision "), of(tables[1], "speech "));
    assert_eq!((n_vision, n_speech), (4.0, 4.0));
    assert!(after < before && last > first, "{text}");
    // A weight of one is no change.
    let [_, before, after] = of(tables[2], "vision ");
    assert_eq!(before.to_bits(), after.to_bits(), "{text}");
    let (code, text) = ask(&["weight=vison:3"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("there is no group or application `vison`"), "{text}");
    assert!(text.contains("groups of the workload: `speech`, `vision`; applications: `bert`"), "{text}");
}
