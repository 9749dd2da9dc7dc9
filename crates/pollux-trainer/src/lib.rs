//! A small worker that really trains: the example job, and the test job, of the live scheduler.
//!
//! Softmax regression or a small network learns handwritten digits on any number of replicas, each a process. Rank 0
//! asks [`pollux_agent::Agent`] for batches and learning rates, and reports to the scheduler.
//!
//! | question | module |
//! | --- | --- |
//! | what is it told? | [`options`], [`environment`] |
//! | what does it learn? | [`digits`], [`network`] |
//! | which sample comes next? | [`sampler`] |
//! | what does each replica do? | [`replica`] |
//! | how do replicas work together? | [`exchange`] |
//! | what is left after it was stopped? | [`checkpoint`], [`signals`] |
//! | how long does a step take on emulated GPUs? | [`pace`] |
//! | what does it tell? | [`record`] |

pub mod checkpoint;
pub mod digits;
pub mod environment;
pub mod exchange;
mod follow;
mod lead;
pub mod network;
pub mod options;
pub mod pace;
pub mod record;
pub mod replica;
pub mod sampler;
pub mod signals;

use std::io;
use std::time::{Duration, Instant};

use pollux_agent::{Agent, AgentConfig, InvalidState};
use pollux_api::agent_state::{self, AgentStateError};
use pollux_api::client::AgentLink;

use checkpoint::{Checkpoint, CheckpointError, Found};
use environment::{Environment, EnvironmentError};
use exchange::{ExchangeError, Meeting};
use lead::{Lead, Standing};
use network::Network;
use options::{Options, OptionsError};
use pace::{Pace, PaceError};
use record::{Curve, say, warn};
use replica::Replica;
use signals::Asked;

/// How training ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ended {
    /// The work is done.
    Done {
        /// The share of the images kept out that are told right.
        accuracy: f64,
        /// Optimizer steps it took.
        steps: u64,
    },
    /// It was asked to leave, and saved before.
    Left,
    /// Rank 0 says that the work is done.
    Followed,
}

/// Training that cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// Arguments, or the job's batch.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// Variables.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The profile of an emulated cluster.
    #[error(transparent)]
    Pace(#[from] PaceError),
    /// Checkpoints.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The other replicas.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// A checkpoint of other training.
    #[error("the checkpoint was made with {option} {found}, not {wanted}; use that, or another folder")]
    OtherTraining {
        /// The argument.
        option: &'static str,
        /// Its value when the checkpoint was made.
        found: u64,
        /// Its value now.
        wanted: u64,
    },
    /// A checkpoint whose agent cannot be read.
    #[error("the checkpoint's agent: {0}")]
    AgentState(#[from] AgentStateError),
    /// A checkpoint whose agent is in no state it can be in.
    #[error("the checkpoint's agent: {0}")]
    Agent(#[from] InvalidState),
    /// No batch keeps the limits.
    #[error("no batch keeps the limits on {n_replicas} replicas; allow a larger --max-batch, or use fewer")]
    NoBatch {
        /// Replicas.
        n_replicas: u32,
    },
    /// The file of `--curve`.
    #[error("--curve: {0}")]
    Curve(io::Error),
}

/// Trains as one replica, until the work is done or it is asked to leave.
pub fn run(options: &Options, environment: &Environment, asked: &Asked) -> Result<Ended, TrainError> {
    let began = Instant::now();
    options.check()?;
    let network = Network { hidden: options.hidden };
    let (rank, placement) = (environment.rank, environment.placement);
    let pace = match &environment.profile {
        Some(file) => Pace::from_profile(file, &environment.gpu_type)?,
        None => Pace::default(),
    };
    let mut replica = Replica::new(rank, placement, network, options.momentum, options.seed);
    let meeting = Meeting {
        address: environment.master.clone(),
        placement,
        attempt: environment.attempt,
        n_weights: network.n_weights(),
        limit: options.meet_limit(),
    };
    if rank > 0 {
        let leader = match exchange::call(&meeting, rank, asked) {
            Err(ExchangeError::Asked) => return Ok(Ended::Left),
            leader => leader?,
        };
        return follow::follow(replica, leader, placement, &pace, asked);
    }
    let (agent, standing) = begin(options, environment, &mut replica)?;
    let mut members = match exchange::gather(&meeting, asked) {
        Err(ExchangeError::Asked) => return Ok(Ended::Left),
        members => members?,
    };
    members.welcome(&replica.weights, &replica.direction)?;
    pace.wait_for_start(began, asked);
    let curve = options.curve.as_ref().map(|file| Curve::open(file, standing.steps > 0));
    let curve = curve.transpose().map_err(TrainError::Curve)?;
    let link = environment.link.clone().map(AgentLink::new);
    Lead { options, environment, asked, replica, agent, members, pace, link, curve, standing }.run()
}

/// A new agent, or that of the newest checkpoint, whose weights the replica gets.
fn begin(
    options: &Options,
    environment: &Environment,
    replica: &mut Replica,
) -> Result<(Agent, Standing), TrainError> {
    let batches = options.batches(environment.batch.as_deref())?;
    let mut config = AgentConfig::new(batches.limits);
    config.rule = batches.rule;
    config.settings.report_interval = Duration::from_secs_f64(options.report_every);
    let saved = environment.checkpoints.as_deref().map(Checkpoint::load).transpose()?.flatten();
    let Some(Found { checkpoint: saved, damaged }) = saved else {
        return Ok((Agent::new(config), Standing::default()));
    };
    for (path, damage) in damaged {
        warn(&format!("warning: {} is not used: {damage}", path.display()));
    }
    let same = |option, found: u64, wanted: u64| {
        if found == wanted { Ok(()) } else { Err(TrainError::OtherTraining { option, found, wanted }) }
    };
    same("--hidden", saved.hidden as u64, options.hidden as u64)?;
    same("--seed", saved.seed, options.seed)?;
    let n_weights = replica.weights.len() as u64;
    same("a number of weights of", saved.weights.len() as u64, n_weights)?;
    same("a number of weights of", saved.momentum.len() as u64, n_weights)?;
    let agent = Agent::restore(config, agent_state::from_json(&saved.agent.to_string())?)?;
    (replica.weights, replica.direction) = (saved.weights, saved.momentum);
    let standing = Standing { steps: saved.steps, position: saved.position };
    say(&format!("resumed: step {}, progress {:.1}", standing.steps, agent.progress()));
    Ok((agent, standing))
}
