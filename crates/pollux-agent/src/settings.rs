//! The agent's settings as data, each with the reason for its value.

use std::time::Duration;

/// How an agent smooths, limits and explores. The defaults are meant to be left alone.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSettings {
    /// Decay of the gradient moments per step at the initial batch size; a step at `r` times that batch
    /// decays them `r` times as much, so that the horizon is a fixed number of samples. The paper's value.
    pub smoothing: f64,
    /// Measured gradients that are averaged before they are judged: one alone says next to nothing.
    pub block_steps: u32,
    /// Blocks needed before the noise scale is acted on at all.
    pub first_blocks: u32,
    /// A block is implausible if its signal or noise is off the running estimate by more than this factor.
    pub plausible_factor: f64,
    /// Implausible blocks in a row are believed after this many steps: the world did change.
    pub believe_after_steps: u32,
    /// Steps in which the noise scale acted on may double or halve. An estimate that is off by 40 for a few hundred
    /// steps was seen to ruin a training run; at this rate it moves the learning rate by less than a factor of two, and
    /// a faster one does not. A slower one costs completion time: 6 % at 1,000 steps.
    pub noise_doubling_steps: u32,
    /// Steps in which the learning-rate factor may double. It may fall at once.
    pub warm_up_steps: u32,
    /// Most that a batch may grow or shrink in one change, where limits allow.
    pub batch_change: f64,
    /// Steps between two changes of batch on one placement.
    pub batch_change_steps: u32,
    /// Predicted goodput must rise by this factor for a batch to change. The paper's value.
    pub worthwhile: f64,
    /// Distinct micro-batches an agent wants to have timed on each GPU type.
    pub explore_micro_batches: u32,
    /// Steps spent on a micro-batch that is tried for its timing.
    pub explore_steps: u32,
    /// Time between reports. The paper's value.
    pub report_interval: Duration,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            smoothing: 0.999,
            block_steps: 16,
            first_blocks: 3,
            plausible_factor: 5.0,
            believe_after_steps: 1_000,
            noise_doubling_steps: 400,
            warm_up_steps: 100,
            batch_change: 2.0,
            batch_change_steps: 100,
            worthwhile: 1.05,
            explore_micro_batches: 3,
            explore_steps: 20,
            report_interval: Duration::from_secs(30),
        }
    }
}
