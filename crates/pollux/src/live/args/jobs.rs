//! Arguments about jobs.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{At, Shown};

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

    /// Who starves last: low, normal, high, or 0 to 100
    #[arg(long)]
    pub(crate) priority: Option<String>,

    /// The script reports, so that it may grow, shrink and move
    #[arg(long)]
    pub(crate) adapts: bool,

    /// A GPU type it may use; may be repeated [default: any]
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) types: Vec<String>,

    /// CPU cores for each GPU
    #[arg(long, value_name = "CORES")]
    pub(crate) cpus: Option<String>,

    /// Memory for each GPU, such as 64Gi
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// The folder to run in [default: this one]
    #[arg(long, value_name = "DIR")]
    pub(crate) workdir: Option<String>,

    /// A variable for the script; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,

    /// What it trains; jobs of one application learn from each other
    #[arg(long, value_name = "NAME")]
    pub(crate) application: Option<String>,

    /// How long it is left alone after a start, such as 5m
    #[arg(long, value_name = "TIME")]
    pub(crate) min_runtime: Option<String>,

    /// Where it saves its state [default: a folder of its own]
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoint: Option<String>,

    /// How long it may take to save its state and leave, such as 30s
    #[arg(long, value_name = "TIME")]
    pub(crate) grace: Option<String>,

    /// How often it may die without progress in between
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_failures: Option<String>,

    /// So many of it
    #[arg(long, value_name = "COUNT")]
    pub(crate) array: Option<String>,

    /// What to pace its steps by on an emulated cluster
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,

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
