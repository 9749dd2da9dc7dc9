//! Arguments of the commands around a live scheduler.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Where the scheduler is.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct At {
    /// The scheduler's address [default: that of the state folder]
    #[arg(long, value_name = "URL", env = "POLLUX_SERVER", global = true)]
    pub(crate) server: Option<String>,

    /// A file with your token [default: the administrator's, of the state folder]
    #[arg(long, value_name = "FILE", env = "POLLUX_TOKEN_FILE", global = true)]
    pub(crate) token_file: Option<PathBuf>,

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
    Up(UpArgs),
    /// Stop the scheduler; jobs go on
    Down(DownArgs),
    /// Look at the surroundings, and say what to do
    Doctor(Shown),
    /// Submit a job
    ///
    /// A job file (YAML, TOML or JSON), or a command after `--`. Prints the job's name, and what to do next.
    #[command(after_help = SUBMIT_EXAMPLE)]
    Submit(SubmitArgs),
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

#[derive(Args)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) at: At,

    /// Make up a cluster: nodes x GPUs of each : their type, several after commas
    #[arg(long, value_name = "SHAPE")]
    pub(crate) emulate: Option<String>,

    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7117")]
    pub(crate) listen: String,

    /// Who plans; settings follow a colon
    #[arg(long, value_name = "NAME[:SETTINGS]", default_value = "pollux")]
    pub(crate) policy: String,

    /// Seconds between rounds [default: the policy's own]
    #[arg(long, value_name = "SECS")]
    pub(crate) round: Option<f64>,

    /// Seconds between reports of agents
    #[arg(long, value_name = "SECS", default_value = "5")]
    pub(crate) report_every: f64,

    /// Seed of all chance
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    pub(crate) seed: u64,

    /// Value new jobs by what earlier ones of their application taught
    #[arg(long)]
    pub(crate) history: bool,

    /// Go to the background once it answers
    #[arg(long)]
    pub(crate) detach: bool,
}

#[derive(Args)]
pub(crate) struct DownArgs {
    #[command(flatten)]
    pub(crate) at: At,

    /// Also cancel all jobs, and wait until they have left
    #[arg(long)]
    pub(crate) cancel_jobs: bool,
}

#[derive(Args)]
pub(crate) struct SubmitArgs {
    #[command(flatten)]
    pub(crate) shown: Shown,

    /// The job file; `-` for standard input
    #[arg(value_name = "FILE", required_unless_present = "command", conflicts_with = "command")]
    pub(crate) file: Option<PathBuf>,

    /// The job's name [default: the file's, or the command's]
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// GPUs: a number, or the fewest and most as in 1..8
    #[arg(long, value_name = "COUNT")]
    pub(crate) gpus: Option<String>,

    /// The queue it counts for
    #[arg(long)]
    pub(crate) queue: Option<String>,

    /// Who starves last: low, normal or high
    #[arg(long)]
    pub(crate) priority: Option<String>,

    /// The script reports, so that it may grow, shrink and move
    #[arg(long)]
    pub(crate) adapts: bool,

    /// Check only: `client` reads the file, `plan` also says who would hold what
    #[arg(long, value_name = "HOW", value_enum)]
    pub(crate) dry_run: Option<DryRun>,

    /// Wait until it has ended; the exit code says how
    #[arg(long)]
    pub(crate) wait: bool,

    /// The command to run
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRun {
    /// Read the file
    Client,
    /// Plan with it
    Plan,
}

#[derive(Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) shown: Shown,

    /// Ended jobs too
    #[arg(short, long)]
    pub(crate) all: bool,

    /// Only jobs in this state
    #[arg(long)]
    pub(crate) status: Option<String>,

    /// Only jobs of this owner
    #[arg(long)]
    pub(crate) owner: Option<String>,

    /// Only jobs of this queue
    #[arg(long)]
    pub(crate) queue: Option<String>,
}

#[derive(Args)]
pub(crate) struct JobArgs {
    #[command(flatten)]
    pub(crate) shown: Shown,

    /// The job's name or number
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
}

#[derive(Args)]
pub(crate) struct ActArgs {
    #[command(flatten)]
    pub(crate) shown: Shown,

    /// Names or numbers of jobs
    #[arg(value_name = "JOB", required = true)]
    pub(crate) jobs: Vec<String>,
}

#[derive(Args)]
pub(crate) struct LogsArgs {
    #[command(flatten)]
    pub(crate) at: At,

    /// The job's name or number
    #[arg(value_name = "JOB")]
    pub(crate) job: String,

    /// Go on until the attempt ends
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// Which replica
    #[arg(long, default_value = "0")]
    pub(crate) rank: u32,

    /// Which start [default: the latest]
    #[arg(long, conflicts_with = "all_attempts")]
    pub(crate) attempt: Option<u32>,

    /// Every start, one after the other
    #[arg(long)]
    pub(crate) all_attempts: bool,

    /// Only the last lines
    #[arg(long, value_name = "LINES")]
    pub(crate) tail: Option<u32>,
}

#[derive(Args)]
pub(crate) struct SetArgs {
    #[command(flatten)]
    pub(crate) shown: Shown,

    /// The job's name or number
    #[arg(value_name = "JOB")]
    pub(crate) job: String,

    /// Who starves last: low, normal or high
    #[arg(long)]
    pub(crate) priority: Option<String>,

    /// How much its speed-up counts
    #[arg(long)]
    pub(crate) weight: Option<f64>,

    /// Fewest GPUs
    #[arg(long, value_name = "GPUS")]
    pub(crate) min: Option<u32>,

    /// Most GPUs; 0 lifts the limit
    #[arg(long, value_name = "GPUS")]
    pub(crate) max: Option<u32>,
}

#[derive(Subcommand)]
pub(crate) enum ExplainCommand {
    /// Why a job holds what it holds, or waits
    Job(JobArgs),
    /// What a round decided
    Round(RoundArgs),
}

#[derive(Args)]
pub(crate) struct RoundArgs {
    #[command(flatten)]
    pub(crate) shown: Shown,

    /// The round's number [default: the latest]
    #[arg(value_name = "NUMBER")]
    pub(crate) round: Option<u64>,
}

#[derive(Args)]
pub(crate) struct WhatifArgs {
    #[command(flatten)]
    pub(crate) shown: Shown,

    /// A job that was there too
    #[arg(long, value_name = "FILE")]
    pub(crate) submit: Vec<PathBuf>,

    /// Nodes that were there too, such as 2x8:h100
    #[arg(long, value_name = "SHAPE")]
    pub(crate) add_nodes: Option<String>,

    /// A node that was gone
    #[arg(long, value_name = "NODE")]
    pub(crate) remove_node: Vec<String>,

    /// A job that was gone
    #[arg(long, value_name = "JOB")]
    pub(crate) cancel: Vec<String>,

    /// Another weight for a job
    #[arg(long, value_name = "JOB=WEIGHT")]
    pub(crate) weight: Vec<String>,
}

#[derive(Subcommand)]
pub(crate) enum QueueCommand {
    /// List queues
    List(Shown),
    /// Make or change a queue
    Set(QueueArgs),
    /// Remove a queue
    Remove(NameArgs),
}

#[derive(Args)]
pub(crate) struct QueueArgs {
    #[command(flatten)]
    pub(crate) shown: Shown,

    /// The queue's name
    pub(crate) name: String,

    /// The queue it is part of
    #[arg(long)]
    pub(crate) parent: Option<String>,

    /// GPUs its jobs come first for, such as t4=8
    #[arg(long, value_name = "TYPE=GPUS", value_delimiter = ',')]
    pub(crate) entitled: Vec<String>,

    /// GPUs its jobs may hold at most, such as t4=16
    #[arg(long, value_name = "TYPE=GPUS", value_delimiter = ',')]
    pub(crate) cap: Vec<String>,
}

#[derive(Args)]
pub(crate) struct NameArgs {
    #[command(flatten)]
    pub(crate) shown: Shown,

    /// Its name
    pub(crate) name: String,
}

#[derive(Subcommand)]
pub(crate) enum NodeCommand {
    /// List nodes
    List(Shown),
    /// Let nobody new come
    Cordon(NameArgs),
    /// Let nobody new come, and move away who can be moved
    Drain(NameArgs),
    /// Open a node again
    Open(NameArgs),
}

#[derive(Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token; it is shown once
    Create(TokenArgs),
    /// List tokens
    List(Shown),
    /// Take a token back
    Revoke(NameArgs),
}

#[derive(Args)]
pub(crate) struct TokenArgs {
    #[command(flatten)]
    pub(crate) shown: Shown,

    /// Whose it is
    pub(crate) owner: String,

    /// What it allows
    #[arg(long, value_enum, default_value = "submitter")]
    pub(crate) role: RoleArg,

    /// Days until it expires [default: never]
    #[arg(long, value_name = "DAYS")]
    pub(crate) expires_days: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleArg {
    /// Look
    Viewer,
    /// Look, submit, and change one's own jobs
    Submitter,
    /// Everything
    Admin,
}

#[derive(Args)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    pub(crate) shown: Shown,

    /// At most so many, the latest
    #[arg(long, default_value = "100")]
    pub(crate) limit: u32,
}

#[derive(Args)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    pub(crate) shown: Shown,

    /// Only events about this job
    #[arg(long)]
    pub(crate) job: Option<String>,

    /// Go on as they happen
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// At most so many, the latest
    #[arg(long, default_value = "50")]
    pub(crate) limit: u32,
}

#[derive(Args)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    pub(crate) shown: Shown,

    /// The journal: pollux.db of a state folder [default: that of the state folder]
    #[arg(value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    pub(crate) at: At,

    /// Names or numbers of jobs; all active ones if none is given
    #[arg(value_name = "JOB")]
    pub(crate) jobs: Vec<String>,

    /// Give up after so many seconds
    #[arg(long, value_name = "SECS")]
    pub(crate) timeout: Option<f64>,
}
