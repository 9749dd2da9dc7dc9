//! The commands and their arguments.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum};
use pollux_model::fit::ComputeChoice;
use pollux_model::{BatchLimits, NoiseScale};

use crate::demo::DemoArgs;
use crate::live::args::LiveCommand;
use crate::sim::args::SimCommand;
use crate::span::Span;

/// Work out what training jobs are worth on the GPUs of a shared cluster
///
/// A job's goodput is the number of useful samples it trains on per second: its throughput, discounted by what a
/// larger batch loses in progress per sample. Measure a few step times, fit a model to them, and read off how far
/// the job scales and which batch size is best on any number of GPUs. With models of all jobs, plan who holds which.
#[derive(Parser)]
#[command(name = "pollux", version, color = ColorChoice::Never, max_term_width = 100, after_help = ROOT_EXAMPLE)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const ROOT_EXAMPLE: &str = "\
Example:
  pollux model fit observations.csv -o json > fit.json
  pollux model goodput --params fit.json --gpus 1..16 --batch-init 128 --micro-batch 32..1024 \\
      --noise-scale 1000
  pollux plan snapshot.json
  pollux sim run --policy pollux,tiresias --seeds 1..5";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// See it work: real jobs on an emulated cluster, under Pollux and under FIFO
    ///
    /// Starts a scheduler of its own on 8 made-up GPUs, submits real training jobs one after the other, and shows them
    /// grow, shrink and change their batch; then the same jobs with what their users ask for, first come first served. Ends
    /// with completion times side by side and the reason for one decision. Takes about three minutes; leaves nothing running.
    #[command(after_help = DEMO_EXAMPLE)]
    Demo(DemoArgs),
    #[command(flatten)]
    Live(LiveCommand),
    /// Fit step-time models and read goodput off them
    ///
    /// A step-time model says how long an optimizer step takes, by placement and micro-batch: compute, gradient
    /// exchange within a node and across nodes, their overlap, and the optimizer's own step.
    #[command(after_help = MODEL_EXAMPLE)]
    Model {
        #[command(subcommand)]
        command: ModelCommand,
    },
    /// Choose who holds which GPUs, and say why
    ///
    /// Reads a snapshot of a cluster and its jobs, lets a policy plan one round, and prints what each job holds,
    /// how good the plan is, how good any plan could be, and the reason for each job in a sentence. Nothing is
    /// changed anywhere. The same snapshot, policy and seed give the same plan on every machine.
    #[command(after_help = PLAN_EXAMPLE)]
    Plan(PlanArgs),
    /// Simulate a cluster: its jobs, agents, scheduler and policy
    ///
    /// Agents, policies and scheduler are those of a live cluster; only the training is pretended, after profiles of
    /// real applications. Six of them are built in, so that a first simulation needs no data.
    #[command(after_help = SIM_EXAMPLE)]
    Sim {
        #[command(subcommand)]
        command: SimCommand,
    },
    /// Show the policies there are
    ///
    /// A policy turns a snapshot of a cluster into a plan. `pollux` is the one to use; the others are there to
    /// compare it with.
    #[command(after_help = POLICY_EXAMPLE)]
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Print what makes a shell complete our commands
    #[command(after_help = COMPLETION_EXAMPLE)]
    Completion(CompletionArgs),
    /// Write a manual page for each command
    #[command(after_help = MAN_EXAMPLE)]
    Man(ManArgs),
}

const COMPLETION_EXAMPLE: &str = "\
Example:
  pollux completion bash > ~/.local/share/bash-completion/completions/pollux";

const MAN_EXAMPLE: &str = "\
Example:
  pollux man ~/.local/share/man/man1 && man pollux-submit";

#[derive(Args)]
pub(crate) struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args)]
pub(crate) struct ManArgs {
    /// The folder to write to; it is made if it is not there
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

const DEMO_EXAMPLE: &str = "\
Example:
  pollux demo
  pollux demo --quick
  pollux demo --out demo | tee demo.txt";

const SIM_EXAMPLE: &str = "\
Example:
  pollux sim run --policy pollux,tiresias --seeds 1..5
  pollux sim workload generate:jobs=40,hours=2 > jobs.csv";

const PLAN_EXAMPLE: &str = "\
Example:
  pollux plan examples/snapshot.json
  pollux plan examples/snapshot.json --fairness 0 -o json
  ssh head-node cat snapshot.json | pollux plan -";

#[derive(Args)]
pub(crate) struct PlanArgs {
    /// The cluster and its jobs, as JSON; `-` for standard input
    #[arg(value_name = "SNAPSHOT.json")]
    pub(crate) snapshot: PathBuf,

    /// Who plans; `pollux policy list` shows the names, settings follow a colon as in pollux:tuned
    #[arg(long, value_name = "NAME[:SETTINGS]", default_value = "pollux")]
    pub(crate) policy: String,

    /// Seed of all randomness
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    pub(crate) seed: u64,

    /// Exponent of the mean of speed-ups, from -100 to 1: 1 is the sum, -10 nearly max-min [default: -1]
    #[arg(long, value_name = "EXPONENT", value_parser = fairness, allow_negative_numbers = true)]
    pub(crate) fairness: Option<f64>,

    /// What to print
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: PlainOutput,
}

fn fairness(text: &str) -> Result<f64, String> {
    let exponent = text.trim().parse().ok().filter(|exponent| (-100.0..=1.0).contains(exponent));
    exponent.ok_or_else(|| "not a number from -100 to 1".to_owned())
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum PlainOutput {
    /// For people
    Text,
    /// All digits, for programs
    Json,
}

#[derive(Subcommand)]
pub(crate) enum PolicyCommand {
    /// List all policies: name, what they do, where they come from
    #[command(after_help = POLICY_EXAMPLE)]
    List(PolicyListArgs),
}

const POLICY_EXAMPLE: &str = "\
Example:
  pollux policy list
  pollux policy list -o json";

#[derive(Args)]
pub(crate) struct PolicyListArgs {
    /// What to print
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: PlainOutput,
}

const MODEL_EXAMPLE: &str = "\
Example:
  pollux model fit observations.csv -o json > fit.json
  pollux model goodput --params fit.json --gpus 1..16 --batch-init 128 --micro-batch 32..1024 \\
      --noise-scale 1000";

#[derive(Subcommand)]
pub(crate) enum ModelCommand {
    /// Fit a step-time model to measured step times
    ///
    /// Prints the parameters with their units, how far predictions are from the measurements, which parameters
    /// the measurements do not determine, and what range they cover. With a column `gpu_type` there is one model
    /// per type.
    #[command(after_help = FIT_EXAMPLE)]
    Fit(FitArgs),
    /// Tabulate the best batch and the goodput by number of GPUs
    ///
    /// For each number of GPUs, packed on as few nodes as hold them, finds the micro-batch and the gradient
    /// accumulation of highest goodput within the limits, exactly. Rows where no batch keeps the limits show `-`.
    #[command(after_help = GOODPUT_EXAMPLE)]
    Goodput(GoodputArgs),
}

const FIT_EXAMPLE: &str = "\
Example:
  pollux model fit observations.csv --test kept-out.csv
  pollux model fit observations.csv -o json > fit.json

Columns of the CSV, in any order: nodes, replicas, local_bsz, accum_time_s, optim_time_s,
and if wanted gpu_type and weight. Lines that begin with `#` are skipped.";

#[derive(Args)]
pub(crate) struct FitArgs {
    /// Measured step times, as CSV
    #[arg(value_name = "OBSERVATIONS.csv")]
    pub(crate) observations: PathBuf,

    /// Form of the compute time
    #[arg(long, value_name = "FORM", default_value = "auto")]
    pub(crate) compute: ComputeForm,

    /// Measure the error on these observations too, which take no part in the fit
    #[arg(long, value_name = "KEPT_OUT.csv")]
    pub(crate) test: Option<PathBuf>,

    /// What to print
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: FitOutput,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ComputeForm {
    /// The data choose between the forms below and a table
    Auto,
    /// Constant part and part per sample: the model and the objective of the Pollux paper
    Linear,
    /// Flat up to some micro-batch, then in proportion to it
    Roofline,
}

impl From<ComputeForm> for ComputeChoice {
    fn from(form: ComputeForm) -> Self {
        match form {
            ComputeForm::Auto => Self::Auto,
            ComputeForm::Linear => Self::Linear,
            ComputeForm::Roofline => Self::Roofline,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum FitOutput {
    /// For people
    Text,
    /// For `pollux model goodput --params` and other programs
    Json,
}

const GOODPUT_EXAMPLE: &str = "\
Example:
  pollux model goodput --params fit.json --gpus 1..64 --gpus-per-node 4 --batch-init 128 \\
      --batch-max 4096 --micro-batch 32..1024 --noise-scale 1000 --plot goodput.svg

Ranges include both ends; a single number is a range of one.";

#[derive(Args)]
pub(crate) struct GoodputArgs {
    /// The step-time model: what `pollux model fit -o json` prints, or written by hand
    #[arg(long, value_name = "FIT.json")]
    pub(crate) params: PathBuf,

    /// Numbers of GPUs, such as 1..64
    #[arg(long, value_name = "RANGE", value_parser = gpu_counts)]
    pub(crate) gpus: Span,

    /// GPUs of one node
    #[arg(long, value_name = "COUNT", default_value = "4", value_parser = from_one::<u32>)]
    pub(crate) gpus_per_node: u32,

    /// Initial batch size: the one the learning rate was tuned for, in samples
    #[arg(long, value_name = "SAMPLES", value_parser = from_one::<u64>)]
    pub(crate) batch_init: u64,

    #[arg(long, value_name = "SAMPLES", help = batch_max_help())]
    pub(crate) batch_max: Option<u64>,

    /// Micro-batches one GPU can compute, in samples, such as 32..1024
    #[arg(long, value_name = "RANGE")]
    pub(crate) micro_batch: Span,

    /// Gradient noise scale, in samples: how large a batch may grow before it loses progress per sample
    #[arg(long, value_name = "SAMPLES", value_parser = noise_scale)]
    pub(crate) noise_scale: NoiseScale,

    /// Most micro-batches to accumulate before the one that synchronises; 0 for none [default: any]
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_accum: Option<u32>,

    /// Which model to use, if the file holds several
    #[arg(long, value_name = "NAME")]
    pub(crate) gpu_type: Option<String>,

    /// What to print
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: GoodputOutput,

    /// Draw the table, as SVG or PNG by the name's ending
    #[arg(long, value_name = "FILE.svg|png", value_parser = plot_file)]
    pub(crate) plot: Option<PlotFile>,
}

fn batch_max_help() -> String {
    let growth = BatchLimits::DEFAULT_GROWTH;
    format!("Largest batch size, in samples [default: {growth} times the initial one]")
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum GoodputOutput {
    /// For people
    Text,
    /// All digits, for programs
    Json,
    /// All digits, for spreadsheets
    Csv,
}

/// Where to draw, and how.
#[derive(Clone)]
pub(crate) struct PlotFile {
    pub(crate) path: PathBuf,
    pub(crate) format: PlotFormat,
}

#[derive(Clone, Copy)]
pub(crate) enum PlotFormat {
    Svg,
    Png,
}

pub(crate) fn plot_file(name: &str) -> Result<PlotFile, String> {
    let path = PathBuf::from(name);
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    let format = match ending.as_deref() {
        Some("svg") => PlotFormat::Svg,
        Some("png") => PlotFormat::Png,
        _ => return Err("the name must end in .svg or .png".to_owned()),
    };
    Ok(PlotFile { path, format })
}

/// More rows than anyone reads, fewer than would exhaust the memory.
const MOST_ROWS: u32 = 65_536;

fn gpu_counts(text: &str) -> Result<Span, String> {
    let span: Span = text.parse()?;
    if span.last() - span.first() >= MOST_ROWS {
        return Err(format!("more than {MOST_ROWS} rows"));
    }
    Ok(span)
}

/// A whole number from 1.
pub(crate) fn from_one<T: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<T, String> {
    let number = text.trim().parse().ok().filter(|number: &T| *number >= T::from(1));
    number.ok_or_else(|| "not a whole number from 1".to_owned())
}

fn noise_scale(text: &str) -> Result<NoiseScale, String> {
    let samples = text.parse().map_err(|_| "not a number".to_owned())?;
    NoiseScale::from_samples(samples).ok_or_else(|| "must be zero or more".to_owned())
}
