//! The task runner: what cargo alone cannot say, as `cargo xtask TASK`.
//!
//! This file reads the command line; [`tasks`] says what each task does, [`mod@bench`] runs the benchmarks, [`mod@api`] and
//! [`mod@adaptdl`] try the live scheduler with what others have written, [`soak`] kills it over and over, [`osdi21`]
//! makes the table that the artifact's job model needs, and [`tidy`] holds the invariants of the repository that no
//! compiler checks.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a task runner speaks to a terminal")]

mod adaptdl;
mod agreement;
mod api;
mod bench;
mod browser;
mod metadata;
mod osdi21;
mod python;
mod shell;
mod soak;
mod tasks;
mod tidy;

use std::fmt::Write as _;
use std::process::ExitCode;

/// What `cargo xtask help` shows: usage and purpose of every task.
const HELP: &[(&str, &str)] = &[
    (
        "demo [--simulated]",
        "Real jobs on an emulated cluster under Pollux and FIFO; or a simulated cluster under six schedulers",
    ),
    ("check", "Formatting, lints, documentation and `tidy`, all without running a test"),
    ("tidy", "Invariants cargo cannot express: crate edges, the pure ring, files, links"),
    ("test", "`check`, then every test; needs nothing but Rust"),
    (
        "test-all [--rest]",
        "`test`, then every benchmark in short form, a report in a browser, the HTTP API and AdaptDL's client; --rest leaves `test` out",
    ),
    (
        "bench [NAME] [--quick | --full]",
        "Run one benchmark or all of them, shorter or longer; prepares Python where one compares with it",
    ),
    (
        "api [--full]",
        "Call every route of a real scheduler with what its description allows and forbids; prepares Python",
    ),
    ("osdi21-table", "Bake the table the OSDI'21 job model interpolates with; prepares Python and SciPy"),
    (
        "soak [--minutes N]",
        "Kill a live scheduler, its supervisors and its workers at random, for an hour or so many minutes",
    ),
    ("help", "Show this list"),
];

/// One invocation, read from the command line.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    /// Only simulated, if asked for.
    Demo {
        simulated: bool,
    },
    Check,
    Tidy,
    Test,
    /// `rest` leaves out what `test` runs.
    TestAll {
        rest: bool,
    },
    /// No name means every benchmark.
    Bench {
        name: Option<String>,
        length: bench::Length,
    },
    /// `is_long` for many more calls.
    Api {
        is_long: bool,
    },
    Osdi21Table,
    Soak {
        minutes: u64,
    },
    Help,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let task = match parse(&args) {
        Ok(task) => task,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(2);
        }
    };
    match run(task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> anyhow::Result<()> {
    match task {
        Task::Demo { simulated } => tasks::demo(simulated),
        Task::Check => tasks::check(),
        Task::Tidy => tidy::run(),
        Task::Test => tasks::test(),
        Task::TestAll { rest } => tasks::test_all(rest),
        Task::Bench { name, length } => bench::run(name.as_deref(), length),
        Task::Api { is_long } => api::check(is_long),
        Task::Osdi21Table => tasks::osdi21_table(),
        Task::Soak { minutes } => soak::run(minutes),
        Task::Help => {
            print!("{}", help());
            Ok(())
        }
    }
}

/// Reads the arguments after `cargo xtask`. The error is one a caller made, so it names what is possible.
fn parse(args: &[String]) -> Result<Task, String> {
    let Some((name, rest)) = args.split_first() else {
        return Err(format!("no task given; the tasks are {}", task_names()));
    };
    let (flags, values): (Vec<&str>, Vec<&str>) =
        rest.iter().map(String::as_str).partition(|arg| arg.starts_with('-'));
    let (task, known_flags, n_values) = match name.as_str() {
        "demo" => (Task::Demo { simulated: flags.contains(&"--simulated") }, &["--simulated"][..], 0),
        "check" => (Task::Check, &[][..], 0),
        "tidy" => (Task::Tidy, &[][..], 0),
        "test" => (Task::Test, &[][..], 0),
        "test-all" => (Task::TestAll { rest: flags.contains(&"--rest") }, &["--rest"][..], 0),
        "bench" => {
            let name = values.first().map(ToString::to_string);
            let length = match (flags.contains(&"--quick"), flags.contains(&"--full")) {
                (false, false) => bench::Length::Usual,
                (true, false) => bench::Length::Quick,
                (false, true) => bench::Length::Full,
                (true, true) => return Err("`bench` takes `--quick` or `--full`, not both".to_owned()),
            };
            (Task::Bench { name, length }, &["--quick", "--full"][..], 1)
        }
        "api" => (Task::Api { is_long: flags.contains(&"--full") }, &["--full"][..], 0),
        "osdi21-table" => (Task::Osdi21Table, &[][..], 0),
        "soak" => {
            let minutes = match (flags.contains(&"--minutes"), values.first()) {
                (false, None) => soak::USUAL_MINUTES,
                (true, Some(value)) => {
                    value.parse().map_err(|_| format!("`--minutes` takes a whole number, not `{value}`"))?
                }
                (true, None) => return Err("`--minutes` takes a whole number".to_owned()),
                (false, Some(_)) => return Err("`soak` takes its time as `--minutes N`".to_owned()),
            };
            (Task::Soak { minutes }, &["--minutes"][..], 1)
        }
        "help" | "--help" | "-h" => (Task::Help, &[][..], 0),
        unknown => return Err(format!("no task named `{unknown}`; the tasks are {}", task_names())),
    };
    let surplus = flags.iter().find(|flag| !known_flags.contains(flag)).or_else(|| values.get(n_values));
    match surplus {
        Some(argument) => {
            Err(format!("`{name}` takes no argument `{argument}`; `cargo xtask help` shows what it takes"))
        }
        None => Ok(task),
    }
}

/// The names of all tasks, as a sentence ends with them.
fn task_names() -> String {
    let names: Vec<&str> = HELP.iter().filter_map(|(usage, _)| usage.split(' ').next()).collect();
    names.join(", ")
}

/// The text of `cargo xtask help`.
fn help() -> String {
    let width = HELP.iter().map(|(usage, _)| usage.len()).max().unwrap_or(0);
    let mut text = String::from("Usage: cargo xtask TASK\n\nTasks:\n");
    for (usage, about) in HELP {
        writeln!(text, "  {usage:width$}  {about}").expect("a string takes any text");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Length;

    fn parse_line(line: &str) -> Result<Task, String> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&args)
    }

    #[test]
    fn every_task_in_the_help_can_be_called() {
        for (usage, _) in HELP {
            let name = usage.split(' ').next().unwrap();
            assert!(parse_line(name).is_ok(), "`{name}` is in the help and not in `parse`");
        }
    }

    #[test]
    fn flags_and_names_reach_the_task() {
        assert_eq!(parse_line("demo"), Ok(Task::Demo { simulated: false }));
        assert_eq!(parse_line("demo --simulated"), Ok(Task::Demo { simulated: true }));
        assert_eq!(parse_line("test-all"), Ok(Task::TestAll { rest: false }));
        assert_eq!(parse_line("test-all --rest"), Ok(Task::TestAll { rest: true }));
        assert_eq!(parse_line("bench"), Ok(Task::Bench { name: None, length: Length::Usual }));
        let fit = Task::Bench { name: Some("fit".to_owned()), length: Length::Quick };
        assert_eq!(parse_line("bench --quick fit"), Ok(fit));
        let published = Task::Bench { name: Some("published".to_owned()), length: Length::Full };
        assert_eq!(parse_line("bench published --full"), Ok(published));
        assert_eq!(parse_line("soak"), Ok(Task::Soak { minutes: 60 }));
        assert_eq!(parse_line("soak --minutes 5"), Ok(Task::Soak { minutes: 5 }));
    }

    #[test]
    fn an_unknown_task_is_answered_with_the_known_ones() {
        let message = parse_line("deploy").unwrap_err();
        assert_eq!(
            message,
            "no task named `deploy`; the tasks are demo, check, tidy, test, test-all, bench, api, osdi21-table, soak, help"
        );
        assert!(parse_line("").unwrap_err().contains("the tasks are demo"));
    }

    #[test]
    fn surplus_arguments_are_refused() {
        assert!(parse_line("test --rest").unwrap_err().contains("`--rest`"));
        assert!(parse_line("bench fit best_batch").unwrap_err().contains("`best_batch`"));
        assert!(parse_line("bench --quick --full").unwrap_err().contains("not both"));
        assert!(parse_line("soak 5").unwrap_err().contains("--minutes N"));
        assert!(parse_line("soak --minutes x").unwrap_err().contains("`x`"));
        assert!(parse_line("demo now").unwrap_err().contains("`now`"));
    }
}
