//! What the live scheduler itself costs: a resize without the job's own share, a scheduler that has nothing to do, and
//! a thousand agents that report.
//!
//! `cargo xtask bench live [--quick]`, or one part: `cargo bench -p pollux --bench live -- resize`, `idle`, `load`.
//!
//! A real `pollux up` on an emulated cluster, real processes, the real HTTP API with the jobs' own tokens. This program
//! is also the jobs' worker.
#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]

mod idle;
mod load;
#[path = "../../../pollux-model/benches/measure/mod.rs"]
mod measure;
mod resize;
mod scheduler;
mod worker;

/// The name of a part, and what measures it, in short form or not.
type Part = (&'static str, fn(bool));

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, folder] = arguments.as_slice()
        && word == worker::WORD
    {
        worker::run(folder.as_ref());
    }
    let parts: [Part; 3] = [("resize", resize::run), ("idle", idle::run), ("load", load::run)];
    let is_one_asked_for = parts.iter().any(|(name, _)| arguments.iter().any(|argument| argument == name));
    for (name, run) in parts {
        if !is_one_asked_for || arguments.iter().any(|argument| argument == name) {
            run(measure::is_quick());
        }
    }
}
