//! `pollux supervise` alone, for this crate's tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The first argument is the word `supervise`, as with the whole command.
    pollux_server::engine::supervisor::main(std::env::args_os().skip(2))
}
