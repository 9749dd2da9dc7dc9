//! The arguments of `pollux sim sweep`.

use std::path::PathBuf;

use clap::Args;
use pollux_sim::ClusterShape;
use pollux_sim::simulation::RestartCost;
use pollux_sim::sweep::Search;

use crate::cli::{PlainOutput, from_one};
use crate::sim::args::{interference, noise, round};
use crate::sim::seeds::Seeds;

pub(crate) const EXAMPLE: &str = "\
Example:
  pollux sim sweep --seeds 1..5
  pollux sim sweep --policy pollux:tuned,tiresias --search random,tpe,halving --at-once 8 --history
  pollux sim sweep --policy pollux,fifo --application ncf --trials 40 --gpus 2 --batch 4096 -o json";

#[derive(Args)]
pub(crate) struct SweepArgs {
    /// Who schedules the trials, separated by commas; each is compared with the last
    #[arg(long, value_name = "NAME[:SETTINGS],..", default_value = "pollux,fifo", value_delimiter = ',')]
    pub(crate) policy: Vec<String>,
    /// How to search: random, tpe, halving; several after commas
    #[arg(long, value_name = "NAME,..", default_value = "tpe", value_delimiter = ',')]
    pub(crate) search: Vec<Search>,
    /// Trials of a search
    #[arg(long, value_name = "COUNT", default_value = "100", value_parser = up_to_10000)]
    pub(crate) trials: u32,
    /// Trials submitted at a time
    #[arg(long, value_name = "COUNT", default_value = "4", value_parser = up_to_10000)]
    pub(crate) at_once: u32,
    /// What trials train
    #[arg(long, value_name = "NAME", default_value = "cifar10")]
    pub(crate) application: String,
    /// GPUs that each trial asks for; policies that choose do not heed it
    #[arg(long, value_name = "COUNT", default_value = "4", value_parser = from_one::<u32>)]
    pub(crate) gpus: u32,
    /// Batch that each trial asks for; policies that adapt the batch do not heed it [default: the fastest on its GPUs]
    #[arg(long, value_name = "SAMPLES", value_parser = from_one::<u64>)]
    pub(crate) batch: Option<u64>,
    /// Also give up trials that are below the median of earlier ones
    #[arg(long)]
    pub(crate) median: bool,
    /// Profiles of the applications: a folder of JSON files, or `builtin`
    #[arg(long, value_name = "DIR|builtin", default_value = "builtin")]
    pub(crate) traces: PathBuf,
    /// Nodes x GPUs of each : their type; several such after commas
    #[arg(long, value_name = "SHAPE", default_value = "4x4:t4")]
    pub(crate) cluster: ClusterShape,
    /// Seeds, both ends included, such as 1..5; each is another search
    #[arg(long, value_name = "RANGE", default_value = "1")]
    pub(crate) seeds: Seeds,
    /// Time between rounds [default: the policy's own]
    #[arg(long, value_name = "SECS", value_parser = round)]
    pub(crate) round: Option<f64>,
    /// What a restart costs; `application` for what each profile says
    #[arg(long, value_name = "SECS|application", default_value = "30")]
    pub(crate) restart: RestartCost,
    /// The part of its speed that a distributed job loses beside another, from 0 to below 1
    #[arg(long, value_name = "PART", default_value = "0", value_parser = interference)]
    pub(crate) interference: f64,
    /// Spread of what agents measure: 0.1 is 10 %
    #[arg(long, value_name = "PART", default_value = "0", value_parser = noise)]
    pub(crate) noise: f64,
    /// Trials build on what earlier ones learned of step times
    #[arg(long)]
    pub(crate) history: bool,
    /// Searches at a time; results are the same for any number [default: as many as there are cores]
    #[arg(long, value_name = "COUNT", value_parser = from_one::<u32>)]
    pub(crate) threads: Option<u32>,
    /// What to print
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: PlainOutput,
}

fn up_to_10000(text: &str) -> Result<u32, String> {
    let number = text.trim().parse().ok().filter(|number| (1..=10_000).contains(number));
    number.ok_or_else(|| "not a whole number from 1 to 10000".to_owned())
}
