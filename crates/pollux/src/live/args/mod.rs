//! Arguments of the commands around a live scheduler.

mod jobs;
mod service;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

pub(crate) use jobs::{
    ActArgs, DryRun, EventsArgs, ExplainCommand, HistoryArgs, JobArgs, ListArgs, LogsArgs, RoundArgs,
    SetArgs, SubmitArgs, WaitArgs,
};
pub(crate) use service::{
    DownArgs, LogFormat, NameArgs, NodeCommand, QueueArgs, QueueCommand, ReplayArgs, RoleArg, TokenArgs,
    TokenCommand, UpArgs, WhatifArgs,
};

/// Where the scheduler is.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct At {
    /// The scheduler's address [default: that of the state folder]
    #[arg(long, value_name = "URL", env = "POLLUX_SERVER", global = true)]
    pub(crate) server: Option<String>,

    /// A file with your token [default: the administrator's, of the state folder]
    #[arg(long, value_name = "FILE", env = "POLLUX_TOKEN_FILE", global = true)]
    pub(crate) token_file: Option<PathBuf>,

    /// A file with the certificates to trust (PEM), for an https address [default: those of public authorities]
    #[arg(long, value_name = "FILE", env = "POLLUX_CA_FILE", global = true)]
    pub(crate) ca_file: Option<PathBuf>,

    /// The folder with all state of a scheduler on this machine [default: ~/.local/state/pollux]
    #[arg(long, value_name = "DIR", env = "POLLUX_STATE", global = true)]
    pub(crate) state: Option<PathBuf>,
}

/// How to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// A table for people
    #[default]
    Table,
    /// JSON for programs
    Json,
    /// The same as YAML
    Yaml,
    /// A row for each, separated by commas
    Csv,
    /// Names alone, a line each
    Name,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Shown {
    #[command(flatten)]
    pub(crate) at: At,

    /// How to print
    #[arg(short, long, value_name = "FORMAT", default_value = "table", env = "POLLUX_OUTPUT")]
    pub(crate) output: Form,
}

#[derive(Subcommand)]
pub(crate) enum LiveCommand {
    /// Start the scheduler on this machine
    ///
    /// Finds the GPUs of this machine and shares them among the jobs that are submitted. With `--emulate` the GPUs are made
    /// up: jobs are real processes, but their steps take as long as a profile says. Everything is kept in the state folder;
    /// after a crash the next `pollux up` goes on where it was, and running jobs do not notice.
    #[command(after_help = UP_EXAMPLE)]
    Up(Box<UpArgs>),
    /// Stop the scheduler; jobs go on
    Down(DownArgs),
    /// Look at the surroundings, and say what to do
    Doctor(Shown),
    /// Submit a job
    ///
    /// A job file (YAML, TOML or JSON), or a command after `--`. Prints the job's name, and what to do next.
    #[command(after_help = SUBMIT_EXAMPLE)]
    Submit(Box<SubmitArgs>),
    /// List jobs
    List(ListArgs),
    /// Describe a job: what it holds, how it trains, every start
    Describe(JobArgs),
    /// Print what a job printed
    Logs(LogsArgs),
    /// Cancel jobs
    Cancel(ActArgs),
    /// Pause jobs: they save their state and leave their GPUs
    Pause(ActArgs),
    /// Resume paused jobs
    Resume(ActArgs),
    /// Ask jobs to save their state and go on
    Checkpoint(ActArgs),
    /// Change a job while it runs
    Set(SetArgs),
    /// Say why a job holds what it holds, or what a round decided
    Explain {
        #[command(subcommand)]
        command: ExplainCommand,
    },
    /// Ask who would hold what after a change; nothing changes
    Whatif(WhatifArgs),
    /// Queues: what teams are entitled to
    Queue {
        #[command(subcommand)]
        command: QueueCommand,
    },
    /// Nodes: list, cordon, drain, open
    Node {
        #[command(subcommand)]
        command: NodeCommand,
    },
    /// Tokens: who may do what
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// List jobs that have ended
    History(HistoryArgs),
    /// Print what happened
    Events(EventsArgs),
    /// Show the scheduler itself
    Status(Shown),
    /// Wait until jobs have ended; the exit code says how
    Wait(WaitArgs),
    /// Go through a journal again, and say where a decision would be another
    ///
    /// Every input is handed to the scheduler again and every plan is made anew, with its seed; what comes of them is
    /// compared with what was recorded. Nothing is changed. The scheduler must not run; a backup of its file will do.
    Replay(ReplayArgs),
}

const UP_EXAMPLE: &str = "\
Example:
  pollux up
  pollux up --emulate 4x4:t4 --round 10 --detach
  pollux submit examples/jobs/digits.yaml";

const SUBMIT_EXAMPLE: &str = "\
Example:
  pollux submit job.yaml
  pollux submit --gpus 2 -- python train.py --epochs 10
  pollux submit job.yaml --dry-run=plan";
