//! Arguments about the scheduler itself, its nodes, queues and tokens.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{At, Shown};

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

    /// Also listen here, with TLS, for other machines
    #[arg(long, value_name = "ADDRESS", requires = "tls_cert", requires = "tls_key")]
    pub(crate) tls_listen: Option<String>,

    /// The certificate for that, and those that vouch for it (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_listen")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// Its key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_listen")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Let `--listen` be an address that other machines reach: they could read all tokens
    #[arg(long)]
    pub(crate) insecure: bool,

    /// How events are said on standard error
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub(crate) log_format: LogFormat,

    /// How long logs of ended runs are kept
    #[arg(long, value_name = "DAYS", default_value = "30")]
    pub(crate) keep_logs_days: f64,

    /// How much of them is kept, in GiB
    #[arg(long, value_name = "GIB", default_value = "10")]
    pub(crate) keep_logs_gib: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line for people
    Text,
    /// An object a line
    Json,
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
    /// Describe a node: its GPUs and how they are
    Describe(NameArgs),
    /// Let nobody new come
    Cordon(NodeArgs),
    /// Let nobody new come, and move away who can be moved
    Drain(NameArgs),
    /// Open a node again
    Open(NodeArgs),
}

#[derive(Args)]
pub(crate) struct NodeArgs {
    #[command(flatten)]
    pub(crate) named: NameArgs,

    /// One GPU of it alone, by its index
    #[arg(long, value_name = "INDEX")]
    pub(crate) gpu: Option<u32>,
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
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    pub(crate) shown: Shown,

    /// The journal: pollux.db of a state folder [default: that of the state folder]
    #[arg(value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,

    /// Through the simulator's shell instead of the service's
    #[arg(long)]
    pub(crate) simulator: bool,
}
