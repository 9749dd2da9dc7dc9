use std::fmt::Write as _;

use pollux_model::fit::Observation;
use pollux_model::{GpuType, Placement};
use proptest::prelude::*;

use super::{Column, ObservationsError, Problem, read};

const HEADER: &str = "nodes,replicas,local_bsz,accum_time_s,optim_time_s";

fn error(bytes: &[u8]) -> ObservationsError {
    match read("times.csv", bytes) {
        Err(error) => error,
        Ok(observations) => panic!("no error but {observations:?}"),
    }
}

/// The message of a whole file.
fn check_error(text: &str, expected: &str) {
    assert_eq!(error(text.as_bytes()).to_string(), format!("times.csv:{expected}"), "{text:?}");
}

/// The message of one row below the plain header.
fn check_row(row: &str, expected: &str) {
    check_error(&format!("{HEADER}\n1,1,32,0.1,0.2\n{row}\n"), &format!("3: {expected}"));
}

fn check_hint(text: &str, expected: &str) {
    assert_eq!(error(text.as_bytes()).hint().as_deref(), Some(expected), "{text:?}");
}

/// Rows read, as text, by GPU type.
fn check_rows(text: &str, expected: &[(&str, &[Observation])]) {
    let observations = read("times.csv", text.as_bytes()).unwrap();
    let found: Vec<_> =
        observations.iter().map(|(gpu_type, rows)| (gpu_type.name(), rows.as_slice())).collect();
    assert_eq!(found, expected, "{text:?}");
}

fn observation(nodes: u32, replicas: u32, micro_batch: u32) -> Observation {
    let placement = Placement::new(nodes, replicas).unwrap();
    Observation::new(placement, micro_batch, 0.1, 0.2).unwrap()
}

#[test]
fn rows_become_observations() {
    let expected = [observation(1, 1, 32), observation(2, 8, 64)];
    check_rows(&format!("{HEADER}\n1,1,32,0.1,0.2\n2,8,64,1e-1,.2\n"), &[("gpu", &expected)]);
}

#[test]
fn columns_come_in_any_order() {
    let expected = [observation(2, 4, 32).with_weight(2.5).unwrap()];
    check_rows(
        "weight,optim_time_s,accum_time_s,replicas,gpu_type,nodes,local_bsz\n2.5,0.2,0.1,4,t4,2,32\n",
        &[("t4", &expected)],
    );
}

#[test]
fn observations_are_told_apart_by_gpu_type() {
    let text = format!("gpu_type,{HEADER}\nt4,1,1,8,0.1,0.2\na100,1,1,16,0.1,0.2\nt4,1,1,32,0.1,0.2\n");
    check_rows(
        &text,
        &[("a100", &[observation(1, 1, 16)]), ("t4", &[observation(1, 1, 8), observation(1, 1, 32)])],
    );
}

#[test]
fn spaces_quotes_blank_lines_comments_and_line_ends_do_not_matter() {
    let expected = [("gpu", &[observation(1, 1, 32)][..])];
    for text in [
        "\u{feff}nodes, replicas ,local_bsz,accum_time_s,optim_time_s\n 1 ,1,\t32,0.1, 0.2 ",
        "# made up\n\n  \nnodes,replicas,local_bsz,accum_time_s,optim_time_s\n  # note, with, commas\n1,1,32,0.1,0.2\n\n",
        "nodes,replicas,local_bsz,accum_time_s,optim_time_s\r\n1,1,32,0.1,0.2\r\n",
        "nodes,replicas,local_bsz,accum_time_s,optim_time_s\r1,1,32,0.1,0.2\r",
        "\"nodes\",\"replicas\",\"local_bsz\",\"accum_time_s\",\"optim_time_s\"\n\"1\",\"1\",\"32\",\"0.1\",\"0.2\"\n",
    ] {
        check_rows(text, &expected);
    }
}

#[test]
fn headers_that_are_wrong_are_named() {
    check_error("", "1: no header and no rows");
    check_error("# nothing\n\n", "1: no header and no rows");
    check_error("1,1,32,0.1,0.2\n", "1: the first line must name the columns, not hold numbers");
    check_error("#\nnodes;replicas\n", "2: the header has no commas; fields are separated by `,`, not ';'");
    check_error("nodes,replicas,bsz\n", "1: unknown column `bsz`");
    check_error(&format!("{HEADER},nodes\n"), "1: column `nodes` stands twice in the header");
    check_error(
        "nodes,replicas,local_bsz,accum_time_s\n",
        "1: column `optim_time_s` is missing from the header",
    );
    check_error(&format!("{HEADER},\n"), "1: unknown column ``");
    check_error(&format!("# a\n\n{HEADER}\n# no rows\n"), "3: no rows after the header");
}

#[test]
fn hints_say_what_was_meant() {
    check_hint("nodes,replicas,local_bsz,accum_time_s,optim_time\n", "did you mean `optim_time_s`?");
    check_hint("nodes,Replica,local_bsz\n", "did you mean `replicas`?");
    let required = "`nodes`, `replicas`, `local_bsz`, `accum_time_s`, `optim_time_s`";
    check_hint("model,nodes\n", &format!("known columns are {required}, `gpu_type`, `weight`"));
    check_hint("nodes\n", &format!("a header names at least {required}"));
}

#[test]
fn values_that_are_wrong_are_named() {
    check_row("1,1,32,0.1", "4 fields, but the header has 5");
    check_row("1,1,32,0.1,0.2,0.3", "6 fields, but the header has 5");
    check_row("1,1,32,0.1,", "column `optim_time_s`: the field is empty");
    check_row("1,1,32,fast,0.2", "column `accum_time_s`: `fast` is not a positive number of seconds");
    check_row("1,1,32,0,0.2", "column `accum_time_s`: `0` is not a positive number of seconds");
    check_row("1,1,32,0.1,-0.3", "column `optim_time_s`: `-0.3` is not a positive number of seconds");
    check_row("1,1,32,0.1,NaN", "column `optim_time_s`: `NaN` is not a positive number of seconds");
    check_row("1,1,32,inf,0.2", "column `accum_time_s`: `inf` is not a positive number of seconds");
    check_row("1,1,32,1e999,0.2", "column `accum_time_s`: `1e999` is not a positive number of seconds");
    check_row("1,1,32.5,0.1,0.2", "column `local_bsz`: `32.5` is not a whole number, 1 or more");
    check_row("1,0,32,0.1,0.2", "column `replicas`: `0` is not a whole number, 1 or more");
    check_row("-1,1,32,0.1,0.2", "column `nodes`: `-1` is not a whole number, 1 or more");
    check_row("1,1,4294967296,0.1,0.2", "column `local_bsz`: `4294967296` is not a whole number, 1 or more");
    let nodes = "column `nodes`: 3 nodes are more than 2 replicas; each node holds at least one";
    check_row("3,2,32,0.1,0.2", nodes);
}

#[test]
fn weights_and_gpu_types_are_checked_too() {
    let with = |column: &str, value: &str| format!("{HEADER},{column}\n1,1,32,0.1,0.2,{value}\n");
    check_error(&with("weight", "0"), "2: column `weight`: `0` is not a positive number");
    check_error(&with("weight", "x"), "2: column `weight`: `x` is not a positive number");
    check_error(&with("gpu_type", " "), "2: column `gpu_type`: the field is empty");
    check_error(&with("gpu_type", "a\u{1b}b"), "2: column `gpu_type`: `a\\u{1b}b` is not a name");
}

#[test]
fn lines_are_those_of_the_file() {
    check_error(
        &format!("# one\n\n{HEADER}\n# four\n1,1,32,0.1,0.2\n\n\n1,1,32,0.1,x\n"),
        "8: column `optim_time_s`: `x` is not a positive number of seconds",
    );
    check_error(
        &format!("{HEADER}\r1,1,32,0.1,x\r"),
        "2: column `optim_time_s`: `x` is not a positive number of seconds",
    );
}

#[test]
fn what_is_no_text_is_refused_where_it_stands() {
    let mut bytes = format!("{HEADER}\n1,1,32,0.1,0.2\n").into_bytes();
    bytes.extend([b'1', 0xff, b'\n']);
    let found = error(&bytes);
    assert_eq!((found.line, found.problem), (3, Problem::NotUtf8));
}

#[test]
fn errors_hold_values() {
    let found = error(format!("{HEADER}\n2,1,32,0.1,0.2\n").as_bytes());
    assert_eq!((found.file.as_str(), found.line), ("times.csv", 2));
    assert_eq!(found.problem, Problem::MoreNodesThanReplicas { nodes: 2, replicas: 1 });
    let found = error(format!("{HEADER}\n2,1,32,0.1,\n").as_bytes());
    assert_eq!(found.problem, Problem::EmptyField { column: Column::OptimTime });
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>) {
        let _ = read("any", &bytes).map_err(|error| (error.to_string(), error.hint()));
    }

    #[test]
    fn no_fields_make_it_panic(
        fields in prop::collection::vec("[0-9.,eE+\\-\"\r\n# ;nainf\\PC]{0,12}", 0..40),
        with_header: bool,
    ) {
        let text = format!("{}{}", if with_header { "nodes,replicas,local_bsz,accum_time_s,optim_time_s\n" } else { "" }, fields.join(","));
        let n_lines = text.lines().count().max(1) + text.matches('\r').count();
        match read("any", text.as_bytes()) {
            Ok(observations) => prop_assert!(!observations.is_empty()),
            Err(error) => prop_assert!((1..=n_lines).contains(&error.line), "{}", error),
        }
    }

    #[test]
    fn every_valid_row_is_read_back(
        rows in prop::collection::vec((1_u32..9, 1_u32..99, 1_u32.., 1e-9..1e9, 1e-9..1e9, 1e-3..1e3), 1..9),
    ) {
        let mut text = format!("{HEADER},weight\n");
        let mut expected = Vec::new();
        for (nodes, more, micro_batch, accum, optim, weight) in rows {
            let replicas = nodes + more;
            writeln!(text, "{nodes},{replicas},{micro_batch},{accum},{optim},{weight}").unwrap();
            let placement = Placement::new(nodes, replicas).unwrap();
            let row = Observation::new(placement, micro_batch, accum, optim).unwrap();
            expected.push(row.with_weight(weight).unwrap());
        }
        let found = read("any", text.as_bytes()).unwrap();
        prop_assert_eq!(&found[&GpuType::default()], &expected);
    }
}
