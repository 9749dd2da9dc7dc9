//! Commands around a live scheduler.

pub(crate) mod args;
mod cluster;
mod doctor;
mod failure;
mod jobs;
pub(crate) mod journal;
pub(crate) mod place;
mod replay;
mod show;
mod submit;
pub(crate) mod up;
mod watch;

pub(crate) use failure::LiveFailure;

use args::LiveCommand;

use crate::failure::Failure;
use crate::output::Output;

/// Carries out a command.
pub(crate) fn run(command: &LiveCommand) -> Result<Output, Failure> {
    let done = match command {
        LiveCommand::Up(args) => up::up(args),
        LiveCommand::Down(args) => up::down(args),
        LiveCommand::Doctor(args) => doctor::run(args),
        LiveCommand::Submit(args) => submit::run(args),
        LiveCommand::List(args) => jobs::list(args),
        LiveCommand::Describe(args) => jobs::describe(args),
        LiveCommand::Logs(args) => watch::logs(args),
        LiveCommand::Cancel(args) => jobs::act(args, "cancel"),
        LiveCommand::Pause(args) => jobs::act(args, "pause"),
        LiveCommand::Resume(args) => jobs::act(args, "resume"),
        LiveCommand::Checkpoint(args) => jobs::act(args, "checkpoint"),
        LiveCommand::Set(args) => jobs::set(args),
        LiveCommand::Explain { command } => jobs::explain(command),
        LiveCommand::Whatif(args) => cluster::what_if(args),
        LiveCommand::Queue { command } => cluster::queue(command),
        LiveCommand::Node { command } => cluster::node(command),
        LiveCommand::Token { command } => cluster::token(command),
        LiveCommand::History(args) => jobs::history(args),
        LiveCommand::Events(args) => watch::events(args),
        LiveCommand::Status(args) => cluster::status(args),
        LiveCommand::Wait(args) => watch::wait(args),
        LiveCommand::Replay(args) => replay::run(args),
    };
    done.map_err(Failure::from)
}
