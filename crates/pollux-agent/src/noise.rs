//! The noise scale from noisy gradients: smoothed, sceptical, slow to act.
//!
//! Gradients of a few steps are averaged into a block. A plausible block enters the running moments; an
//! implausible one is held back, and believed only if the following ones keep saying the same. The noise
//! scale that learning rate and batch are set by follows the running moments at a bounded rate. So a wild
//! estimate (one fell from 479 to 12 and back within a few hundred steps, and took the training run with it)
//! moves little, while a lasting change is followed.

use pollux_model::{Estimator, GlobalBatch, GradientMoments, NoiseReport, NoiseScale};

use crate::observation::{GradientSample, GradientSpace, RawMoments};
use crate::settings::AgentSettings;

/// Sums over measured steps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MomentSums {
    /// Measured steps.
    pub n_measured: u32,
    /// All steps that passed, measured or not.
    pub n_steps: u32,
    /// Steps at the initial batch size that passed, measured or not: what decay counts.
    pub scale: f64,
    /// Sum of estimates of `|g|²`.
    pub sqr: f64,
    /// Sum of estimates of `tr(Σ)`.
    pub trace: f64,
}

impl MomentSums {
    fn mean(&self) -> RawMoments {
        let count = f64::from(self.n_measured.max(1));
        RawMoments { sqr: self.sqr / count, trace: self.trace / count }
    }

    fn absorb(&mut self, other: &Self) {
        self.n_measured = self.n_measured.saturating_add(other.n_measured);
        self.n_steps = self.n_steps.saturating_add(other.n_steps);
        self.scale += other.scale;
        self.sqr += other.sqr;
        self.trace += other.trace;
    }
}

/// Running moments, corrected for their start: divide by `weight`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunningMoments {
    /// Decayed sum for `|g|²`.
    pub sqr: f64,
    /// Decayed sum for `tr(Σ)`.
    pub trace: f64,
    /// Decayed sum of squared deviations of a block's `|g|²` from the mean before it.
    pub sqr_deviation: f64,
    /// Decayed sum of ones.
    pub weight: f64,
    /// Decayed sum of ones for the deviations.
    pub deviation_weight: f64,
    /// Blocks taken in.
    pub n_blocks: u32,
}

/// Everything the estimator remembers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseState {
    /// The kind of estimate being averaged.
    pub estimator: Estimator,
    /// The space of the gradients being averaged.
    pub space: GradientSpace,
    /// The block being filled.
    pub block: MomentSums,
    /// Implausible blocks in a row, held back.
    pub held_back: MomentSums,
    /// The running moments.
    pub running: RunningMoments,
    /// The noise scale acted on, in samples.
    pub acted: Option<f64>,
    /// Steps since it was first known.
    pub steps_known: u64,
    /// Usable measurements, ever.
    pub n_measured: u64,
    /// Measurements judged implausible, ever.
    pub n_implausible: u64,
}

impl Default for NoiseState {
    fn default() -> Self {
        Self {
            estimator: Estimator::Differences,
            space: GradientSpace::Plain,
            block: MomentSums::default(),
            held_back: MomentSums::default(),
            running: RunningMoments::default(),
            acted: None,
            steps_known: 0,
            n_measured: 0,
            n_implausible: 0,
        }
    }
}

impl NoiseState {
    /// Takes in one optimizer step at `scale` times the initial batch.
    pub(crate) fn observe(
        &mut self,
        settings: &AgentSettings,
        scale: f64,
        space: GradientSpace,
        sample: Option<&GradientSample>,
    ) {
        self.block.n_steps = self.block.n_steps.saturating_add(1);
        self.block.scale += scale;
        if self.acted.is_some() {
            self.steps_known += 1;
        }
        let Some((sample, moments)) = sample.and_then(|sample| Some((sample, sample.moments()?))) else {
            return;
        };
        if !self.accepts(sample.estimator(), space) {
            return;
        }
        self.block.n_measured += 1;
        self.block.sqr += moments.sqr;
        self.block.trace += moments.trace;
        self.n_measured += 1;
        if self.block.n_measured >= settings.block_steps {
            self.close_block(settings);
        }
    }

    /// Whether such a sample belongs to the average; a better kind, or another space, starts it anew.
    fn accepts(&mut self, estimator: Estimator, space: GradientSpace) -> bool {
        let better = self.estimator.is_biased() && !estimator.is_biased();
        if better || space != self.space {
            let passed = MomentSums { n_measured: 0, sqr: 0.0, trace: 0.0, ..self.block };
            let keep_acted = if space == self.space { self.acted } else { None };
            *self = Self {
                estimator,
                space,
                block: passed,
                held_back: MomentSums::default(),
                running: RunningMoments::default(),
                acted: keep_acted,
                ..*self
            };
            return true;
        }
        // Differences add nothing once pairs are there.
        estimator == self.estimator
    }

    fn close_block(&mut self, settings: &AgentSettings) {
        let block = std::mem::take(&mut self.block);
        if self.is_plausible(settings, block.mean()) {
            // What was held back was noise after all; only the time it took counts.
            let passed = MomentSums { n_measured: 0, sqr: 0.0, trace: 0.0, ..self.held_back };
            self.held_back = MomentSums::default();
            let mut block = block;
            block.absorb(&passed);
            self.take_in(settings, &block);
            return;
        }
        self.n_implausible += u64::from(block.n_measured);
        self.held_back.absorb(&block);
        if self.held_back.n_steps >= settings.believe_after_steps {
            let believed = std::mem::take(&mut self.held_back);
            self.running = RunningMoments::default();
            self.take_in(settings, &believed);
            self.running.n_blocks = settings.first_blocks;
        }
    }

    fn is_plausible(&self, settings: &AgentSettings, block: RawMoments) -> bool {
        if self.running.n_blocks < settings.first_blocks {
            return true;
        }
        let mean = self.running_mean();
        let factor = settings.plausible_factor;
        let noise_fits = block.trace < factor * mean.trace && block.trace * factor > mean.trace;
        let spread = (self.running.sqr_deviation / self.running.deviation_weight.max(1e-300)).max(0.0).sqrt();
        let excess = block.sqr - mean.sqr;
        let signal_fits = block.sqr < factor * mean.sqr.max(0.0) || excess < 6.0 * spread;
        noise_fits && signal_fits
    }

    fn running_mean(&self) -> RawMoments {
        let weight = self.running.weight;
        RawMoments { sqr: self.running.sqr / weight, trace: self.running.trace / weight }
    }

    /// Averages a block into the running moments and moves the noise scale acted on.
    fn take_in(&mut self, settings: &AgentSettings, block: &MomentSums) {
        let decay = libm::pow(settings.smoothing, block.scale);
        let mean = block.mean();
        if self.running.n_blocks > 0 {
            let deviation = mean.sqr - self.running_mean().sqr;
            self.running.sqr_deviation =
                decay * self.running.sqr_deviation + (1.0 - decay) * deviation * deviation;
            self.running.deviation_weight = decay * self.running.deviation_weight + (1.0 - decay);
        }
        self.running.sqr = decay * self.running.sqr + (1.0 - decay) * mean.sqr;
        self.running.trace = decay * self.running.trace + (1.0 - decay) * mean.trace;
        self.running.weight = decay * self.running.weight + (1.0 - decay);
        self.running.n_blocks = self.running.n_blocks.saturating_add(1);
        if self.running.n_blocks >= settings.first_blocks {
            self.act(settings, f64::from(block.n_steps));
        }
    }

    /// Moves the noise scale acted on towards the running estimate, no faster than allowed.
    fn act(&mut self, settings: &AgentSettings, steps: f64) {
        let mean = self.running_mean();
        if !(mean.trace > 0.0 && mean.trace.is_finite()) {
            return;
        }
        // Where the signal drowns, the noise scale is only known to be large.
        let estimate = (mean.trace / mean.sqr.max(1e-6 * mean.trace)).max(1e-6);
        let Some(acted) = self.acted else {
            self.acted = Some(estimate);
            return;
        };
        // Early in training little is known and much changes: the rate grows strict with experience.
        let ceiling = f64::from(settings.noise_doubling_steps);
        let doubling = (self.steps_known as f64).clamp(0.25 * ceiling, ceiling).max(1.0);
        let reach = libm::exp2(steps / doubling);
        self.acted = Some(estimate.clamp(acted / reach, acted * reach));
    }

    /// The noise scale to act on.
    pub(crate) fn acted(&self) -> Option<NoiseScale> {
        NoiseScale::from_samples(self.acted?)
    }

    pub(crate) fn report(&self, settings: &AgentSettings, initial: GlobalBatch) -> Option<NoiseReport> {
        let acted = self.acted()?;
        let mean = self.running_mean();
        let moments = if self.running.n_blocks == 0 {
            GradientMoments { sqr: 1.0, var: acted.samples() / initial.0 as f64 }
        } else {
            GradientMoments { sqr: mean.sqr.max(0.0), var: mean.trace.max(0.0) / initial.0 as f64 }
        };
        let estimate = mean.trace / mean.sqr;
        let far =
            |ratio: f64| !(1.0 / settings.plausible_factor..=settings.plausible_factor).contains(&ratio);
        Some(NoiseReport {
            acted,
            moments,
            estimator: self.estimator,
            n_measured: self.n_measured,
            n_implausible: self.n_implausible,
            suspicious: self.held_back.n_measured > 0
                || (self.running.n_blocks > 0 && far(estimate / acted.samples())),
        })
    }
}
