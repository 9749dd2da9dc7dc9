//! The `pollux` command: data on standard output, all else on standard error.

mod cli;
mod demo;
mod failure;
mod live;
mod manual;
mod model;
mod output;
mod plan;
mod policy;
mod sim;
mod span;
mod text;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command, ModelCommand, PolicyCommand};
use failure::{Failure, exit};
use output::Output;
use sim::args::SimCommand;

fn main() -> ExitCode {
    // Not for people: the scheduler starts this for each process of a job. What follows is the job's, not ours to parse.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == "supervise") {
        return pollux_server::engine::supervisor::main(words);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version also come this way. A closed pipe is no reason to complain.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit::USAGE } else { exit::OK });
        }
    };
    match run(&cli.command).and_then(|output| output.deliver()) {
        Ok(()) => ExitCode::from(exit::OK),
        Err(failure) => {
            output::say(&failure.report());
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Works out what the command has to say. Nothing is written yet: an error leaves nothing behind.
fn run(command: &Command) -> Result<Output, Failure> {
    match command {
        Command::Model { command: ModelCommand::Fit(args) } => model::fit::run(args),
        Command::Model { command: ModelCommand::Goodput(args) } => model::goodput::run(args),
        Command::Sim { command: SimCommand::Run(args) } => sim::run::run(args),
        Command::Sim { command: SimCommand::Sweep(args) } => sim::sweep::run(args),
        Command::Sim { command: SimCommand::Plot(args) } => sim::plot::run(args),
        Command::Sim { command: SimCommand::Whatif(args) } => sim::whatif::run(args),
        Command::Sim { command: SimCommand::Reproduce(args) } => sim::reproduce::run(args),
        Command::Sim { command: SimCommand::Journal(args) } => sim::journal::run(args),
        Command::Sim { command: SimCommand::Workload(args) } => sim::workload::run(args),
        Command::Sim { command: SimCommand::Profile(args) } => sim::profile::run(args),
        Command::Live(command) => live::run(command),
        Command::Demo(args) => demo::run(args),
        Command::Plan(args) => plan::run(args),
        Command::Policy { command: PolicyCommand::List(args) } => Ok(policy::list(args)),
        Command::Completion(args) => Ok(manual::completion(args)),
        Command::Man(args) => manual::pages(args),
    }
}
