//! Golden decisions: `testdata/decisions/*.txt`, each a few small scenarios and the plans they lead to.
//!
//! A case is a comment, the scenario, `----` and the answer, which a blank line ends: the job, its GPUs by node, and
//! what keeps it from more. Names of fields are those of `decisions/scenario.rs`, models those of
//! `decisions/models.rs`. `UPDATE_GOLDEN=1` writes the answers anew; read the difference before believing it.

mod common;
#[path = "decisions/line.rs"]
mod line;
#[path = "decisions/models.rs"]
mod models;
#[path = "decisions/scenario.rs"]
mod scenario;

use std::path::{Path, PathBuf};

use common::check::check;
use line::Fault;
use scenario::Scenario;

/// Between a scenario and its answer.
const RULE: &str = "----";

/// Every reason there is must be shown once.
const CODES: [&str; 14] = [
    "price",
    "no_gain",
    "own_maximum",
    "exploration",
    "node_size",
    "restart_price",
    "group_cap",
    "reserved",
    "packing",
    "pinned",
    "restarting",
    "unprofiled",
    "starved",
    "impossible",
];

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/decisions");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files
}

/// What is wrong with the answers of a file: the line, and what should stand there. With it the file as it should be.
fn compare(text: &str) -> Result<(Vec<Fault>, String), Fault> {
    let lines: Vec<(usize, &str)> = text.lines().enumerate().map(|(index, line)| (index + 1, line)).collect();
    let (mut wrong, mut written) = (Vec::new(), String::new());
    let mut rest = &lines[..];
    while !rest.is_empty() {
        let Some(rule) = rest.iter().position(|(_, line)| *line == RULE) else {
            if let Some(&(line, _)) = rest.iter().find(|(_, line)| !line.is_empty()) {
                return Err(Fault { line, what: format!("no `{RULE}` after this") });
            }
            break;
        };
        let after = &rest[rule + 1..];
        let length = after.iter().position(|(_, line)| line.is_empty()).unwrap_or(after.len());
        let expected: Vec<&str> = after[..length].iter().map(|(_, line)| *line).collect();
        let answers = Scenario::read(rest[..rule].iter().copied())?.answers(check)?;
        if answers != expected {
            let same = answers.iter().zip(&expected).take_while(|(answer, line)| answer == *line).count();
            let what = format!("the plan is\n{}\nand not\n{}", answers.join("\n"), expected.join("\n"));
            wrong.push(Fault { line: rest[rule].0 + 1 + same, what });
        }
        for line in rest[..=rule].iter().map(|(_, line)| *line).chain(answers.iter().map(String::as_str)) {
            written.push_str(line);
            written.push('\n');
        }
        rest = &after[length..];
    }
    Ok((wrong, written))
}

#[test]
fn decisions_are_as_written() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut faults = Vec::new();
    for path in files() {
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let wrong = match compare(&text) {
            Err(fault) => vec![fault],
            Ok((_, written)) if update => {
                std::fs::write(&path, written).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                Vec::new()
            }
            Ok((wrong, _)) => wrong,
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        faults.extend(wrong.into_iter().map(|fault| format!("{name}:{}: {}", fault.line, fault.what)));
    }
    assert!(faults.is_empty(), "\n{}\n\nUPDATE_GOLDEN=1 writes what is planned now.", faults.join("\n\n"));
}

#[test]
fn every_reason_is_shown() {
    let text: String = files().iter().map(|path| std::fs::read_to_string(path).expect("a file")).collect();
    let last_words = text.lines().filter_map(|line| line.rsplit("  ").next());
    let shown: Vec<&str> = last_words.filter_map(|word| word.split('(').next()).collect();
    for code in CODES {
        assert!(shown.contains(&code), "no decision ends with {code}");
    }
}

fn check_fault(text: &str, line: usize, what: &str) {
    match compare(text) {
        Err(fault) => assert_eq!((fault.line, fault.what.as_str()), (line, what), "{text}"),
        Ok((wrong, _)) => panic!("{text}: {wrong:?}"),
    }
}

#[test]
fn a_bad_file_says_where() {
    let nodes = "nodes n0 gpus=4\n";
    check_fault("\nnode n0\n----\n", 2, "`node` is none of nodes, speeds, group, job, plan, ----");
    check_fault("nodes n0 gpus=four\n----\n", 1, "`gpus`: `four` is no such number");
    check_fault("nodes n0 gpus=4 color=red\n----\n", 1, "`nodes` has no field `color`");
    check_fault("nodes n0 gpus=4 gpus=5\n----\n", 1, "`gpus` is given twice");
    check_fault(&format!("{nodes}job a\n----\n"), 2, "`job` needs `model`");
    check_fault(&format!("{nodes}job a model=linear holds=n1:2\n----\n"), 2, "there is no node `n1`");
    check_fault(&format!("{nodes}plan p=-1\n"), 1, "no `----` after this");
    let overfull = format!("{nodes}job a model=linear holds=n0:5\nplan\n----\n");
    check_fault(&overfull, 3, "node NodeId(0) has 4 GPUs, but 5 are held by jobs and 0 by others");
    let (wrong, _) =
        compare(&format!("{nodes}job a model=flat\nplan\n----\na  n0=2  no_gain\n")).expect("readable");
    assert_eq!(wrong[0].line, 5);
}
