//! From an agent's state to the format. Every field is named, so that a new one cannot be forgotten here.

use pollux_agent::{AgentState, Exploring, MomentSums, NoiseState, ProfileEntry, ProfileKey, RunningMoments};
use pollux_model::{Placement, Timestamp};

use super::VERSION;
use super::wire;
use crate::wire::{AtLeastOne, Count, Fit, LogSecs, NotNegative, Positive, Revision, Share, SmallCount};

impl From<&AgentState> for wire::State {
    fn from(state: &AgentState) -> Self {
        let AgentState {
            profile,
            noise,
            fits,
            fit_revisions,
            micro_max,
            plan,
            placement,
            gpu_type,
            steps_since_change,
            exploring,
            learning_rate_factor,
            progress,
            samples,
            most_replicas,
            last_report,
        } = state;
        Self {
            version: VERSION,
            progress: NotNegative(*progress),
            samples: *samples,
            learning_rate_factor: Positive(*learning_rate_factor),
            most_replicas: *most_replicas,
            gpu_type: gpu_type.as_ref().map(|gpu_type| gpu_type.name().to_owned()),
            placement: placement.map(Into::into),
            plan: plan.map(Into::into),
            steps_since_change: *steps_since_change,
            exploring: exploring.map(Into::into),
            last_report_us: last_report.map(Timestamp::as_micros),
            micro_max: micro_max
                .iter()
                .map(|(gpu_type, &most)| (gpu_type.name().to_owned(), AtLeastOne(most)))
                .collect(),
            noise: noise.into(),
            fits: fits
                .iter()
                .map(|(gpu_type, fit)| {
                    let revision = Some(Revision(fit_revisions.get(gpu_type).copied()));
                    (gpu_type.name().to_owned(), Fit { revision, ..Fit::from(fit) })
                })
                .collect(),
            profile: profile.entries.iter().map(|(key, entry)| profile_entry(key, entry)).collect(),
        }
    }
}

impl From<Placement> for wire::Placement {
    fn from(placement: Placement) -> Self {
        Self { nodes: AtLeastOne(placement.n_nodes()), replicas: AtLeastOne(placement.n_replicas()) }
    }
}

impl From<Exploring> for wire::Exploring {
    fn from(Exploring { plan, before, steps_left }: Exploring) -> Self {
        Self { plan: plan.into(), before: before.into(), steps_left }
    }
}

impl From<&NoiseState> for wire::Noise {
    fn from(noise: &NoiseState) -> Self {
        let &NoiseState { estimator, space, block, held_back, running, acted, n_measured, n_implausible } =
            noise;
        Self {
            estimator,
            space,
            acted: acted.map(Positive),
            steps_known: 0,
            n_measured: Count(n_measured),
            n_implausible: Count(n_implausible),
            block: block.into(),
            held_back: held_back.into(),
            running: running.into(),
        }
    }
}

impl From<MomentSums> for wire::Sums {
    fn from(MomentSums { n_measured, n_steps, scale, sqr, trace }: MomentSums) -> Self {
        Self { n_measured: SmallCount(n_measured), n_steps, scale: NotNegative(scale), sqr, trace }
    }
}

impl From<RunningMoments> for wire::Running {
    fn from(running: RunningMoments) -> Self {
        let RunningMoments { sqr, trace, sqr_deviation, weight, deviation_weight, n_blocks } = running;
        Self {
            sqr,
            trace,
            sqr_deviation: NotNegative(sqr_deviation),
            weight: Share(weight),
            deviation_weight: Share(deviation_weight),
            n_blocks,
        }
    }
}

fn profile_entry(key: &ProfileKey, entry: &ProfileEntry) -> wire::ProfileEntry {
    let ProfileKey { gpu_type, placement, micro_batch } = key;
    let ProfileEntry { n_steps, first, log_compute, log_optim, deviation } = entry;
    wire::ProfileEntry {
        gpu_type: gpu_type.name().to_owned(),
        nodes: AtLeastOne(placement.n_nodes()),
        replicas: AtLeastOne(placement.n_replicas()),
        micro_batch: AtLeastOne(*micro_batch),
        n_steps: Count(*n_steps),
        log_compute: LogSecs(*log_compute),
        log_optim: LogSecs(*log_optim),
        deviation: NotNegative(*deviation),
        first: first.iter().map(|&(compute, optim)| (LogSecs(compute), LogSecs(optim))).collect(),
    }
}
