//! Snapshots through a pipe, and plans that repeat.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn pollux(args: &[&str], stdin: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pollux"));
    command.args(args).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that fails before it reads closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    child.wait_with_output().unwrap()
}

const EXAMPLE: &[u8] = include_bytes!("../../../examples/snapshot.json");

#[test]
fn a_pipe_serves_as_a_file() {
    for format in ["text", "json"] {
        let piped = pollux(&["plan", "-", "-o", format], EXAMPLE);
        let file = pollux(&["plan", "examples/snapshot.json", "-o", format], b"");
        assert!(piped.status.success(), "{piped:?}");
        assert_eq!(piped.stdout, file.stdout);
        assert!(piped.stderr.starts_with(b"note: planned in "), "{piped:?}");
    }
}

#[test]
fn a_bad_pipe_is_called_standard_input() {
    let output = pollux(&["plan", "-"], b"{\"nodes\": [],");
    assert_eq!(output.status.code(), Some(4));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: standard input:1:13: not JSON: EOF"), "{said}");
}

#[test]
fn the_same_snapshot_and_seed_give_the_same_bytes() {
    let plan = |seed| pollux(&["plan", "-", "--seed", seed, "-o", "json"], EXAMPLE).stdout;
    assert!(!plan("3").is_empty());
    assert_eq!(plan("3"), plan("3"));
}
