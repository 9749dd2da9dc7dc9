//! What is said of traces that cannot be used.

use std::fs;
use std::path::PathBuf;

use pollux_sim::osdi21::{Application, Limits, LoadError, MeshTable, StepTime};

const TOY: Limits =
    Limits { name: "toy", init_batch: 10, max_batch: 20, min_local: 5, max_local: 10, n_epochs: 1 };

/// An application measured on 1 + 2 GPUs of two nodes, on 3 GPUs of one, and once on six nodes.
const FILES: [(&str, &str); 4] = [
    ("placements.csv", "placement,local_bsz,step_time,sync_time\n12,5,1.0,0.5\n12,10,2.0,0.5\n3,10,4,1\n"),
    ("scalability.csv", "num_nodes,num_replicas,local_bsz,step_time,sync_time\n6,6,5,1,0\n"),
    ("validation-20.csv", "progress,iteration,metric,grad_sqr,grad_var\n9,5,1,1,1\n"),
    ("validation-10.csv", "progress,iteration,metric,grad_sqr,grad_var\n10,10,1,1,1\n"),
];

/// No simplex at all: what was measured needs none.
const TABLE: &str = r#"{ "version": 1, "applications": { "toy": { "points": [[1, 3, 10], [2, 3, 5], [2, 3, 10],
    [6, 6, 5]], "simplices": [], "transforms": [], "lines": [] } } }"#;

/// Writes the files, one of them changed, and reads them.
fn load(test: &str, file: &str, from: &str, to: &str) -> Result<Application, LoadError> {
    let traces = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("osdi21-traces").join(test);
    let folder = traces.join(TOY.name);
    fs::create_dir_all(&folder).unwrap();
    for (name, text) in FILES.into_iter().chain([("table.json", TABLE)]) {
        let changed = if name == file { text.replacen(from, to, 1) } else { text.to_owned() };
        fs::write(folder.join(name), changed).unwrap();
    }
    Application::load(&traces, &TOY, &MeshTable::load(&folder.join("table.json"))?)
}

#[test]
fn good_traces_are_read() {
    let toy = load("good", "", "", "").unwrap();
    let time = |step_secs, sync_secs| Ok(StepTime { step_secs, sync_secs });
    assert_eq!(toy.step_time(&[2, 0, 1], 5), time(1.0, 0.5));
    assert_eq!(toy.step_time(&[1, 2], 7), time(1.4, 0.5));
    assert_eq!(toy.step_time(&[3], 10), time(4.0, 1.0));
    assert!(toy.step_time(&[1, 1], 10).is_err() && toy.step_time(&[], 10).is_err());
    assert_eq!(toy.validation().iter().map(|run| run.batch).collect::<Vec<_>>(), [10, 20]);
    assert_eq!(toy.progress_after(1), Ok(9.0));
}

fn check(test: &str, file: &str, from: &str, to: &str, expected: &str) {
    let message = load(test, file, from, to).unwrap_err().to_string();
    assert!(message.contains(expected), "{message}");
}

#[test]
fn errors_in_step_times_name_file_line_and_column() {
    let placements = |from, to, expected: &str| {
        check("placements", "placements.csv", from, to, &format!("placements.csv:{expected}"));
    };
    placements("placement,", "place,", "1: column `placement` is missing");
    placements("12,10", "102,10", "3: column `placement`: \"102\" is not digits from 1 to 9, a node each");
    placements("12,10", "21,10", "3: column `placement`: \"21\" is not in its smallest rotation");
    placements("12,10", "12,5", "3: column `local_bsz`: 5 comes after 5, but the column must ascend");
    placements("2.0", "0", "3: column `step_time`: \"0\" is not a positive number of seconds");
    placements("2.0,0.5", "2.0,2.5", "3: column `sync_time`: \"2.5\" is not at most the step time");
    let scalability = "scalability.csv:2: column `num_replicas`: \"5\" is not a replica on each node";
    check("scalability", "scalability.csv", "6,6,5", "6,5,5", scalability);
}

#[test]
fn errors_in_training_runs_name_file_line_and_column() {
    let second = "1,1,1\n9,6,1,1,1\n";
    let expected = "validation-20.csv:3: column `progress`: 9 comes after 9, but the column must ascend";
    check("runs", "validation-20.csv", "1,1,1\n", second, expected);
    let expected = "validation-10.csv:2: column `grad_var`: \"0\" is not positive";
    check("gradient", "validation-10.csv", "1,1,1\n", "1,0,0\n", expected);
}

#[test]
fn traces_of_another_application_are_noticed() {
    let expected = "toy: the smallest local batch is 4, but `toy` has 5";
    check("limits", "placements.csv", "12,5,", "12,4,", expected);
    check("points", "placements.csv", "12,5,", "12,6,", "is 6, but `toy` has 5");
    check("table", "table.json", "[6, 6, 5]", "[6, 6, 6]", "`toy`: the table was made of other traces");
}
