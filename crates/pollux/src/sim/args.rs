//! The arguments of `pollux sim`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use pollux_sim::ClusterShape;
use pollux_sim::faults::Faults;
use pollux_sim::simulation::RestartCost;

use super::cluster::{ClusterArg, ScalerArg};
use super::journal::JournalArgs;
use super::seeds::Seeds;
use super::sweep::args::{EXAMPLE as SWEEP_EXAMPLE, SweepArgs};
use crate::cli::{PlainOutput, PlotFile, from_one, plot_file};

#[derive(Subcommand)]
pub(crate) enum SimCommand {
    /// Run workloads under policies, and compare how they fare
    ///
    /// Every policy goes through every workload with every seed. Jobs pretend to train as measured ones did; agents,
    /// policies and scheduler are those of a live cluster. Prints completion times, fairness, and how well the
    /// cluster was used, with means and standard deviations over seeds.
    #[command(after_help = RUN_EXAMPLE)]
    Run(Box<RunArgs>),
    /// Make the paper's evaluation again, ours beside the published values
    ///
    /// Every table and figure that a simulator can show: policies with tuned and realistic jobs, the fairness knob,
    /// finish-time fairness, load, time between rounds, interference, exploration, and more (`--list`). Needs no files:
    /// jobs are generated after the paper's recipe and train after built-in profiles of the authors' measurements. With
    /// the authors' own workloads and traces it also repeats their simulator.
    #[command(after_help = REPRODUCE_EXAMPLE)]
    Reproduce(ReproduceArgs),
    /// Ask what would change, and for whom
    ///
    /// Takes the arguments of `sim run` for how things are, and any number of changes: more nodes, other GPUs, more load, another
    /// policy, another weight. Prints both side by side, paired by seed, and which jobs gain and lose.
    #[command(after_help = WHATIF_EXAMPLE)]
    Whatif(Box<WhatifArgs>),
    /// Take a figure out of the report of a run, as SVG or PNG
    ///
    /// `pollux sim run --out DIR` leaves a report with figures in DIR. Without `--figure`, lists them; with it, prints one as
    /// SVG, or draws it to a file.
    #[command(after_help = PLOT_EXAMPLE)]
    Plot(PlotArgs),
    /// Search hyper-parameters with trials as jobs, and compare how policies fare
    ///
    /// Trials come a few at a time; what they find decides which come next and which are given up. Every policy serves every
    /// way to search with every seed. Step times are those of measured jobs; accuracies follow a formula. Prints what was
    /// found, how long it took, and each policy against the last one.
    #[command(after_help = SWEEP_EXAMPLE)]
    Sweep(Box<SweepArgs>),
    /// Simulate the jobs of a live scheduler's journal, beside what became of them
    ///
    /// Jobs arrive when they did, with the batches, work and limits of their files, and train after the profiles that these name
    /// (`emulate.profile`), on the journal's nodes. Nothing of how they fared goes in.
    #[command(after_help = JOURNAL_EXAMPLE)]
    Journal(JournalArgs),
    /// Generate a workload or make one of a trace, and print it as CSV
    ///
    /// After the recipe of the Pollux paper: 160 jobs over 8 hours unless the recipe says otherwise. The same recipe,
    /// seed, profiles and cluster give the same workload on every machine.
    #[command(after_help = WORKLOAD_EXAMPLE)]
    Workload(WorkloadArgs),
    /// Make a profile of an application from measurements, and print it as JSON
    ///
    /// Reads `placements.csv`, `validation-BATCH.csv` for each batch trained with, and `scalability.csv` if there is
    /// one. Put what is printed into a folder and give that folder to `pollux sim run --traces`.
    #[command(after_help = PROFILE_EXAMPLE)]
    Profile(ProfileArgs),
}

const JOURNAL_EXAMPLE: &str = "\
Example:
  pollux demo --out demo
  pollux sim journal demo/pollux/pollux.db --report-every 1";

const RUN_EXAMPLE: &str = "\
Example:
  pollux sim run --policy pollux,tiresias,optimus --seeds 1..5
  pollux sim run --policy pollux:tuned,fifo --workload jobs.csv --cluster 8x8:t4 --out results
  pollux sim run --policy pollux --workload generate:jobs=40,hours=2 --show bert-3
  pollux sim run --policy pollux:tuned,tiresias --faults mtbf=200h,repair=2h,checkpoint=10m
  pollux sim run --policy pollux,tiresias --workload trace:philly.csv,days=7 --cluster 128x8:t4
  pollux sim run --policy pollux --cluster examples/clusters/t4-on-demand.json --scaler throughput
  pollux sim run --policy tiresias --workload workloads --compat osdi21 --traces traces";

#[derive(Clone, Args)]
pub(crate) struct RunArgs {
    /// Who plans, separated by commas; settings follow a colon, as in pollux:tuned+fairness=0
    #[arg(long, value_name = "NAME[:SETTINGS],..", required = true, value_delimiter = ',')]
    pub(crate) policy: Vec<String>,

    /// A CSV file, a folder of them, a recipe such as generate:load=1.5, a cluster's trace such as
    /// trace:philly.csv,days=7, or a live scheduler's journal such as journal:pollux.db; may be given several times
    #[arg(
        long,
        value_name = "FILE|DIR|generate[:..]|trace:FILE[,..]|journal:FILE",
        default_value = "generate"
    )]
    pub(crate) workload: Vec<String>,

    /// Profiles of the applications: a folder of JSON files, or `builtin`; with --compat the authors' traces
    /// [default: builtin]
    #[arg(long, value_name = "DIR|builtin")]
    pub(crate) traces: Option<PathBuf>,

    /// Nodes x GPUs of each : their type; several such after commas; or a JSON file that describes rented nodes
    #[arg(long, value_name = "SHAPE|FILE.json", default_value = "16x4:t4")]
    pub(crate) cluster: ClusterArg,

    /// With a cluster of rented nodes: how its size is chosen [default: as its file says]
    #[arg(long, value_name = "RULE")]
    pub(crate) scaler: Option<ScalerArg>,

    /// Seeds, both ends included, such as 1..5; generated workloads differ by seed
    #[arg(long, value_name = "RANGE", default_value = "1")]
    pub(crate) seeds: Seeds,

    /// Repeat another simulator's world instead, to the digit
    #[arg(long, value_name = "NAME")]
    pub(crate) compat: Option<Compat>,

    /// With --compat: the table that `cargo xtask osdi21-table` makes [default: target/osdi21-table.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) table: Option<PathBuf>,

    /// With --compat: Optimus without the artifact's mistake in counting what is left
    #[arg(long)]
    pub(crate) repaired: bool,

    /// Time between rounds [default: the policy's own]
    #[arg(long, value_name = "SECS", value_parser = round)]
    pub(crate) round: Option<f64>,

    /// Time between the reports of an agent [default: 30]
    #[arg(long, value_name = "SECS", value_parser = round)]
    pub(crate) report_every: Option<f64>,

    /// What a restart costs; `application` for what each profile says [default: 30]
    #[arg(long, value_name = "SECS|application")]
    pub(crate) restart: Option<RestartCost>,

    /// The part of its speed that a distributed job loses beside another, from 0 to below 1
    #[arg(long, value_name = "PART", default_value = "0", value_parser = interference)]
    pub(crate) interference: f64,

    /// Spread of what agents measure: 0.1 is 10 % [default: 0]
    #[arg(long, value_name = "PART", value_parser = noise)]
    pub(crate) noise: Option<f64>,

    /// New jobs build on what earlier ones of their application learned
    #[arg(long)]
    pub(crate) history: bool,

    /// What goes wrong, as in mtbf=200h,repair=2h: nodes that fail (mtbf, repair, checkpoint), are taken away (reclaim,
    /// warning) or grow slow (straggler, slowdown, slow-for), starts that fail (restart-failure), work that users
    /// misjudge (work-error) [default: nothing]
    #[arg(long, value_name = "KEY=VALUE,..")]
    pub(crate) faults: Option<Faults>,

    /// Runs at a time; results are the same for any number [default: as many as there are cores]
    #[arg(long, value_name = "COUNT", value_parser = from_one::<u32>)]
    pub(crate) threads: Option<u32>,

    /// Also tell the story of this job, from the first policy's first run
    #[arg(long, value_name = "JOB")]
    pub(crate) show: Option<String>,

    /// What to print
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: PlainOutput,

    /// Also keep a report (report.html), results.json, and the jobs and the timeline of each run in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// The artifact of the Pollux paper
    Osdi21,
}

const WHATIF_EXAMPLE: &str = "\
Example:
  pollux sim whatif --policy pollux --seeds 1..5 --change cluster=20x4:t4 --change load=2
  pollux sim whatif --policy tiresias --workload jobs.csv --change policy=pollux --out answer
  pollux sim whatif --policy pollux --change 'load=1.5; cluster=16x4:t4,2x8:a100' --change weight=bert:3";

#[derive(Args)]
pub(crate) struct WhatifArgs {
    /// What is otherwise, as KEY=VALUE, several after `;`; may be given several times
    #[arg(long, value_name = "KEY=VALUE[;..]", required = true)]
    pub(crate) change: Vec<String>,

    #[command(flatten)]
    pub(crate) run: RunArgs,
}

const PLOT_EXAMPLE: &str = "\
Example:
  pollux sim run --policy pollux,tiresias --out results
  pollux sim plot results
  pollux sim plot results --figure jct-cdf --plot jct.png";

#[derive(Args)]
pub(crate) struct PlotArgs {
    /// The folder that `pollux sim run --out` made
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// Which figure; without it, the figures are listed
    #[arg(long, value_name = "NAME")]
    pub(crate) figure: Option<String>,

    /// Draw it to this file, as SVG or PNG by the name's ending; without it, the SVG is printed
    #[arg(long, value_name = "FILE.svg|png", value_parser = plot_file, requires = "figure")]
    pub(crate) plot: Option<PlotFile>,
}

const REPRODUCE_EXAMPLE: &str = "\
Example:
  pollux sim reproduce --out evaluation
  pollux sim reproduce tuned fairness --seeds 1..3
  pollux sim reproduce load rounds interference --artifact adaptdl/simulator";

#[derive(Args)]
pub(crate) struct ReproduceArgs {
    /// Experiments by name, or `all` [default: all]
    #[arg(value_name = "EXPERIMENT|all")]
    pub(crate) experiments: Vec<String>,

    /// Name the experiments, and make none
    #[arg(long)]
    pub(crate) list: bool,

    /// Seeds of the generated workloads; experiments with many settings use the first five
    #[arg(long, value_name = "RANGE", default_value = "1..10")]
    pub(crate) seeds: Seeds,

    /// The folder of the authors' artifact with `traces`, `workloads`, `workloads-0.5` and so on
    #[arg(long, value_name = "DIR")]
    pub(crate) artifact: Option<PathBuf>,

    /// With --artifact: the table that `cargo xtask osdi21-table` makes [default: target/osdi21-table.json]
    #[arg(long, value_name = "FILE", requires = "artifact")]
    pub(crate) table: Option<PathBuf>,

    /// Runs at a time; results are the same for any number [default: as many as there are cores]
    #[arg(long, value_name = "COUNT", value_parser = from_one::<u32>)]
    pub(crate) threads: Option<u32>,

    /// What to print
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: PlainOutput,

    /// Also write report.html, the data of its figures and findings.json into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

const WORKLOAD_EXAMPLE: &str = "\
Example:
  pollux sim workload > jobs.csv
  pollux sim workload generate:jobs=40,hours=2,requests=realistic --seed 3
  pollux sim workload trace:philly.csv,jobs=1000,cluster=ee9e8c --cluster 128x8:t4";

#[derive(Args)]
pub(crate) struct WorkloadArgs {
    /// The recipe, or a cluster's trace
    #[arg(value_name = "generate[:..]|trace:FILE[,..]", default_value = "generate")]
    pub(crate) recipe: String,

    /// Seed of all chance
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    pub(crate) seed: u64,

    /// Profiles of the applications: a folder of JSON files, or `builtin`
    #[arg(long, value_name = "DIR|builtin", default_value = "builtin")]
    pub(crate) profiles: PathBuf,

    /// The cluster that users ask for GPUs of
    #[arg(long, value_name = "SHAPE", default_value = "16x4:t4")]
    pub(crate) cluster: ClusterShape,
}

const PROFILE_EXAMPLE: &str = "\
Example:
  pollux sim profile --traces measured/resnet --name resnet --gpu-type a100 > profiles/resnet.json
  pollux sim run --policy pollux --traces profiles --workload jobs.csv --cluster 4x8:a100";

#[derive(Args)]
pub(crate) struct ProfileArgs {
    /// The folder of measurements
    #[arg(long, value_name = "DIR")]
    pub(crate) traces: PathBuf,

    /// What workloads call the application
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,

    /// The GPUs that were measured
    #[arg(long, value_name = "NAME", default_value = "t4")]
    pub(crate) gpu_type: String,

    /// Largest batch of one GPU and one pass [default: the largest measured]
    #[arg(long, value_name = "SAMPLES", value_parser = from_one::<u32>)]
    pub(crate) micro_max: Option<u32>,

    /// Epochs to completion [default: as many as were run]
    #[arg(long, value_name = "COUNT", value_parser = from_one::<u32>)]
    pub(crate) epochs: Option<u32>,

    /// What a restart costs
    #[arg(long, value_name = "SECS", default_value = "30", value_parser = secs)]
    pub(crate) restart: f64,

    /// Where the measurements come from; it will stand in the profile [default: the folder's name]
    #[arg(long, value_name = "TEXT")]
    pub(crate) source: Option<String>,
}

pub(super) fn round(text: &str) -> Result<f64, String> {
    number(text, "not a number of seconds from 1 to 86400", |secs| (1.0..=86_400.0).contains(&secs))
}

fn secs(text: &str) -> Result<f64, String> {
    number(text, "not a number of seconds from 0 to 86400", |secs| (0.0..=86_400.0).contains(&secs))
}

pub(super) fn interference(text: &str) -> Result<f64, String> {
    number(text, "not a number from 0 to below 1", |part| (0.0..1.0).contains(&part))
}

pub(super) fn noise(text: &str) -> Result<f64, String> {
    number(text, "not a number from 0 to 1", |part| (0.0..=1.0).contains(&part))
}

fn number(text: &str, otherwise: &str, is_good: impl Fn(f64) -> bool) -> Result<f64, String> {
    text.trim().parse().ok().filter(|number| is_good(*number)).ok_or_else(|| otherwise.to_owned())
}
