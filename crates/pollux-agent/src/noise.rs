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

/// Of equal steps in a row, so many blocks are taken in one by one; the rest, if there is more and nothing has
/// settled yet, counts as one block. By the default settings the running moments have forgotten what was before
/// by then, and the noise scale acted on can have come from any value to any other.
const MOST_BLOCKS: u32 = 4_096;

/// Equal blocks are taken in together once the running moments are as near to them as this, relatively.
const SETTLED: f64 = 1e-9;

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
    /// Takes in equal steps, measured or not.
    fn add(&mut self, n_steps: u64, scale: f64, moments: Option<RawMoments>) {
        let count = u32::try_from(n_steps).unwrap_or(u32::MAX);
        self.n_steps = self.n_steps.saturating_add(count);
        self.scale += n_steps as f64 * scale;
        if let Some(moments) = moments {
            self.n_measured = self.n_measured.saturating_add(count);
            self.sqr += n_steps as f64 * moments.sqr;
            self.trace += n_steps as f64 * moments.trace;
        }
    }

    /// So many of these, one after the other.
    fn times(&self, count: u32) -> Self {
        let factor = f64::from(count);
        Self {
            n_measured: self.n_measured.saturating_mul(count),
            n_steps: self.n_steps.saturating_mul(count),
            scale: factor * self.scale,
            sqr: factor * self.sqr,
            trace: factor * self.trace,
        }
    }

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
            n_measured: 0,
            n_implausible: 0,
        }
    }
}

/// Equal steps on their way into a [`NoiseState`].
pub(crate) struct EqualSteps {
    scale: f64,
    /// What each one's gradient says, if that counts.
    moments: Option<RawMoments>,
    left: u64,
    n_closed: u32,
}

impl NoiseState {
    /// Prepares to take in `n_steps` equal steps at `scale` times the initial batch; [`Self::advance`] does it.
    pub(crate) fn begin(
        &mut self,
        scale: f64,
        space: GradientSpace,
        sample: Option<&GradientSample>,
        n_steps: u64,
    ) -> EqualSteps {
        let moments = sample.and_then(|sample| Some((sample.estimator(), sample.moments()?)));
        let moments = moments.filter(|&(estimator, _)| n_steps > 0 && self.accepts(estimator, space));
        EqualSteps { scale, moments: moments.map(|(_, moments)| moments), left: n_steps, n_closed: 0 }
    }

    /// Takes in as many steps as see one and the same noise scale acted on, and says how many; nothing when none
    /// is left. A block ends with the first of them or not at all.
    pub(crate) fn advance(&mut self, settings: &AgentSettings, steps: &mut EqualSteps) -> Option<u64> {
        if steps.left == 0 {
            return None;
        }
        let Some(moments) = steps.moments else {
            let rest = std::mem::take(&mut steps.left);
            self.fill(rest, steps);
            return Some(rest);
        };
        let block_steps = u64::from(settings.block_steps.max(1));
        let missing = block_steps.saturating_sub(self.block.n_measured.into()).max(1);
        if missing > 1 {
            let count = steps.left.min(missing - 1);
            steps.left -= count;
            self.fill(count, steps);
            return Some(count);
        }
        self.fill(1, steps);
        let block = std::mem::take(&mut self.block);
        // A block that began before these steps is unlike those that follow.
        let settled = steps.n_closed > 0 && self.has_settled(settings, moments);
        let alone = !settled && steps.n_closed < MOST_BLOCKS;
        let more = if alone { 0 } else { (steps.left - 1) / block_steps };
        self.close_blocks(settings, &block, 1 + more);
        self.count_measured(more * block_steps);
        steps.n_closed = steps.n_closed.saturating_add(1);
        steps.left -= 1 + more * block_steps;
        let begun = steps.left.min(block_steps - 1);
        steps.left -= begun;
        self.fill(begun, steps);
        Some(1 + more * block_steps + begun)
    }

    /// Puts steps into the block.
    fn fill(&mut self, n_steps: u64, steps: &EqualSteps) {
        self.block.add(n_steps, steps.scale, steps.moments);
        if steps.moments.is_some() {
            self.count_measured(n_steps);
        }
    }

    fn count_measured(&mut self, n_steps: u64) {
        self.n_measured = self.n_measured.saturating_add(n_steps);
    }

    /// Whether more blocks with these means would change nothing that can be noticed.
    fn has_settled(&self, settings: &AgentSettings, block: RawMoments) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= SETTLED * b.abs();
        let mean = self.running_mean();
        self.running.n_blocks >= settings.first_blocks
            && self.held_back.n_measured == 0
            && near(mean.sqr, block.sqr)
            && near(mean.trace, block.trace)
            && estimate(mean).is_none_or(|estimate| self.acted.is_some_and(|acted| near(acted, estimate)))
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

    /// Takes in `count` equal blocks. Once one of them is plausible, all that follow are.
    fn close_blocks(&mut self, settings: &AgentSettings, block: &MomentSums, count: u64) {
        if self.is_plausible(settings, block.mean()) {
            // What was held back was noise after all; only the time it took counts.
            let passed = std::mem::take(&mut self.held_back);
            let scale = count as f64 * block.scale + passed.scale;
            let n_steps = count as f64 * f64::from(block.n_steps) + f64::from(passed.n_steps);
            self.take_in(settings, block.mean(), scale, n_steps);
            let more = u32::try_from(count - 1).unwrap_or(u32::MAX);
            self.running.n_blocks = self.running.n_blocks.saturating_add(more);
            return;
        }
        self.n_implausible = self.n_implausible.saturating_add(count.saturating_mul(block.n_measured.into()));
        let missing = settings.believe_after_steps.saturating_sub(self.held_back.n_steps);
        let enough = missing.div_ceil(block.n_steps.max(1)).max(1);
        self.held_back.absorb(&block.times(u32::try_from(count).unwrap_or(u32::MAX).min(enough)));
        if self.held_back.n_steps >= settings.believe_after_steps {
            let believed = std::mem::take(&mut self.held_back);
            self.running = RunningMoments::default();
            self.take_in(settings, believed.mean(), believed.scale, f64::from(believed.n_steps));
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

    /// Averages the mean of some steps into the running moments and moves the noise scale acted on.
    fn take_in(&mut self, settings: &AgentSettings, mean: RawMoments, scale: f64, n_steps: f64) {
        let decay = libm::pow(settings.smoothing, scale);
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
            self.act(settings, n_steps);
        }
    }

    /// Moves the noise scale acted on towards the running estimate, no faster than allowed.
    fn act(&mut self, settings: &AgentSettings, steps: f64) {
        let Some(estimate) = estimate(self.running_mean()) else { return };
        let Some(acted) = self.acted else {
            self.acted = Some(estimate);
            return;
        };
        let doubling = f64::from(settings.noise_doubling_steps).max(1.0);
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

/// The noise scale these moments tell of; nothing where they show no noise.
fn estimate(mean: RawMoments) -> Option<f64> {
    let shows_noise = mean.trace > 0.0 && mean.trace.is_finite();
    // Where the signal drowns, the noise scale is only known to be large.
    shows_noise.then(|| (mean.trace / mean.sqr.max(1e-6 * mean.trace)).max(1e-6))
}
