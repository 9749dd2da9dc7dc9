//! Arguments, and what `POLLUX_BATCH` makes of them.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use pollux_agent::LearningRateRule;
use pollux_model::{BatchLimits, InvalidLimits};
use serde::Deserialize;

/// Train a small model on handwritten digits, with Pollux's agent inside.
///
/// Alone it trains and prints its accuracy. Under `pollux up` it is one replica of a job: it takes its rank, its server and
/// its folder for checkpoints from the environment, reports to the scheduler, and on SIGTERM saves at the end of the step
/// and exits with 143. Started again with any number of replicas it goes on where it left.
#[derive(Clone, Debug, Parser)]
#[command(name = "pollux-trainer", version, max_term_width = 100)]
pub struct Options {
    /// Train until this much progress, in steps at the initial batch [default: 2000, without --target-accuracy].
    #[arg(long, value_name = "N")]
    pub steps_at_initial: Option<u64>,
    /// Train until this share of the images kept out is told right, such as 0.95. With both, the first ends it.
    #[arg(long, value_name = "SHARE")]
    pub target_accuracy: Option<f64>,
    /// Samples of a step, for which the learning rate is chosen.
    #[arg(long, value_name = "SAMPLES", default_value_t = 32)]
    pub batch: u64,
    /// Most samples of a step; the same as --batch keeps it fixed [default: 8 times --batch].
    #[arg(long, value_name = "SAMPLES")]
    pub max_batch: Option<u64>,
    /// Most samples of one replica in one pass; more are accumulated.
    #[arg(long, value_name = "SAMPLES", default_value_t = 1_024)]
    pub micro_max: u32,
    /// Decides first weights and the order of samples.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Hidden units; 0 is softmax regression.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub hidden: usize,
    /// Learning rate at the initial batch.
    #[arg(long, value_name = "RATE", default_value_t = 0.02)]
    pub learning_rate: f64,
    /// Momentum of the optimizer (SGD).
    #[arg(long, value_name = "SHARE", default_value_t = 0.9)]
    pub momentum: f64,
    /// Seconds between checkpoints, where there is a folder for them.
    #[arg(long, value_name = "SECS", default_value_t = 60.0)]
    pub checkpoint_every: f64,
    /// Seconds between refits of the agent, and reports where there is a server.
    #[arg(long, value_name = "SECS", default_value_t = 5.0)]
    pub report_every: f64,
    /// Seconds to wait for the other replicas.
    #[arg(long, value_name = "SECS", default_value_t = 60.0)]
    pub meet_within: f64,
    /// Write each step as a row of this CSV file; a job that goes on appends.
    #[arg(long, value_name = "FILE")]
    pub curve: Option<PathBuf>,
}

/// Arguments or a `POLLUX_BATCH` that make no training.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OptionsError {
    /// A number out of its range.
    #[error("{option} is {value}; it must be {range}")]
    Range {
        /// The argument.
        option: &'static str,
        /// Its value.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
    /// `POLLUX_BATCH` is not what it should be.
    #[error("POLLUX_BATCH: {reason}")]
    Batch {
        /// What is wrong.
        reason: String,
    },
    /// No batch keeps these limits.
    #[error(transparent)]
    Limits(#[from] InvalidLimits),
}

/// Which batches are allowed, and how the learning rate follows them.
#[derive(Clone, Debug)]
pub struct Batches {
    /// The limits.
    pub limits: BatchLimits,
    /// The rule.
    pub rule: LearningRateRule,
}

/// `POLLUX_BATCH`: what the job's file says about its batch. Unknown fields are ignored: the scheduler may be newer.
#[derive(Debug, Deserialize)]
struct BatchOfJob {
    mode: Mode,
    initial: Option<u64>,
    max: Option<u64>,
    per_gpu: Option<PerGpu>,
    accumulation: Option<Accumulation>,
    #[serde(alias = "learning_rate_rule", alias = "lr")]
    rule: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Fixed,
    Bounded,
    Adaptive,
}

/// The most samples on one GPU, or the least and the most.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum PerGpu {
    Most(u32),
    Range([u32; 2]),
}

/// Whether to accumulate, or at most so many times.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Accumulation {
    Allowed(bool),
    AtMost(u32),
}

impl Options {
    /// Checks what the parser of arguments does not.
    pub fn check(&self) -> Result<(), OptionsError> {
        let within = |option, value: f64, fits: bool, range| {
            if fits { Ok(()) } else { Err(OptionsError::Range { option, value, range }) }
        };
        let positive = |value: f64| value > 0.0 && value.is_finite();
        if let Some(share) = self.target_accuracy {
            within("--target-accuracy", share, (0.0..=1.0).contains(&share), "from 0 to 1")?;
        }
        within("--learning-rate", self.learning_rate, positive(self.learning_rate), "above 0")?;
        within("--momentum", self.momentum, (0.0..1.0).contains(&self.momentum), "at least 0 and below 1")?;
        let intervals = [
            ("--checkpoint-every", self.checkpoint_every),
            ("--report-every", self.report_every),
            ("--meet-within", self.meet_within),
        ];
        intervals.iter().try_for_each(|&(option, secs)| {
            within(option, secs, positive(secs) && secs <= 1e9, "above 0 and at most a billion seconds")
        })
    }

    /// The work to do, in steps at the initial batch; nothing where accuracy alone ends it.
    pub fn work(&self) -> Option<f64> {
        match (self.steps_at_initial, self.target_accuracy) {
            (None, Some(_)) => None,
            (steps, _) => Some(steps.unwrap_or(2_000) as f64),
        }
    }

    /// The batches of these arguments, unless `POLLUX_BATCH` (given as `of_job`) says otherwise.
    pub fn batches(&self, of_job: Option<&str>) -> Result<Batches, OptionsError> {
        let max = self.max_batch.unwrap_or_else(|| self.batch.saturating_mul(BatchLimits::DEFAULT_GROWTH));
        let own = Batches {
            limits: BatchLimits::new(self.batch, max, 1, self.micro_max)?,
            rule: LearningRateRule::default(),
        };
        let Some(text) = of_job else { return Ok(own) };
        let wrong = |reason: String| OptionsError::Batch { reason };
        let job: BatchOfJob = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let initial = job.initial.unwrap_or(self.batch);
        let max = match (job.mode, job.max) {
            (Mode::Fixed, _) => initial,
            (Mode::Bounded, None) => return Err(wrong("mode `bounded` needs `max`".to_owned())),
            (Mode::Bounded | Mode::Adaptive, Some(max)) => max,
            (Mode::Adaptive, None) => initial.saturating_mul(BatchLimits::DEFAULT_GROWTH),
        };
        let [least, most] = match job.per_gpu {
            None => [1, self.micro_max],
            Some(PerGpu::Most(most)) => [1, most],
            Some(PerGpu::Range(range)) => range,
        };
        let limits = BatchLimits::new(initial, max, least, most)?;
        let limits = match job.accumulation {
            None | Some(Accumulation::Allowed(true)) => limits,
            Some(Accumulation::Allowed(false)) => limits.with_max_accum_steps(0),
            Some(Accumulation::AtMost(steps)) => limits.with_max_accum_steps(steps),
        };
        let rule = match job.rule.as_deref() {
            None => own.rule,
            Some(name) => rule(name).ok_or_else(|| {
                wrong(format!("unknown rule `{name}`; known are adascale, adamscale, sqrt, linear, none"))
            })?,
        };
        Ok(Batches { limits, rule })
    }

    /// How long to wait for the other replicas.
    pub fn meet_limit(&self) -> Duration {
        Duration::from_secs_f64(self.meet_within)
    }
}

fn rule(name: &str) -> Option<LearningRateRule> {
    use LearningRateRule::{AdaScale, AdamScale, Linear, None as Unscaled, SquareRoot};
    [AdaScale, AdamScale, SquareRoot, Linear, Unscaled].into_iter().find(|rule| rule.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(of_job: Option<&str>, expected: &str) {
        let options = Options::parse_from(["pollux-trainer", "--batch", "20", "--micro-max", "16"]);
        let seen = match options.batches(of_job) {
            Err(error) => error.to_string(),
            Ok(Batches { limits, rule }) => format!(
                "{}..{} of {}..{} {} {rule:?}",
                limits.initial().0,
                limits.max().0,
                limits.micro_min(),
                limits.micro_max(),
                if limits.max_accum_steps() == u32::MAX {
                    "any".to_owned()
                } else {
                    limits.max_accum_steps().to_string()
                },
            ),
        };
        assert_eq!(seen, expected);
    }

    #[test]
    fn the_job_overrides_the_arguments() {
        check(None, "20..160 of 1..16 any adascale");
        check(Some(r#"{"mode": "fixed", "max": 99}"#), "20..20 of 1..16 any adascale");
        check(Some(r#"{"mode": "adaptive", "initial": 8, "rule": null}"#), "8..64 of 1..16 any adascale");
        check(
            Some(
                r#"{"mode": "bounded", "initial": 8, "max": 30, "per_gpu": [2, 4], "accumulation": false,
                    "rule": "sqrt"}"#,
            ),
            "8..30 of 2..4 0 sqrt",
        );
        check(
            Some(r#"{"mode": "bounded", "max": 30, "per_gpu": 5, "accumulation": 3}"#),
            "20..30 of 1..5 3 adascale",
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        check(Some(r#"{"mode": "bounded"}"#), "POLLUX_BATCH: mode `bounded` needs `max`");
        check(
            Some(r#"{"mode": "bounded", "max": 5}"#),
            "the maximum batch size 5 is below the initial batch size 20",
        );
        check(
            Some(r#"{"mode": "fixed", "rule": "magic"}"#),
            "POLLUX_BATCH: unknown rule `magic`; known are adascale, adamscale, sqrt, linear, none",
        );
    }
}
