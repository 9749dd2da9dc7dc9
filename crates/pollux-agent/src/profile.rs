//! Step times, remembered per configuration.

use std::collections::{BTreeMap, BTreeSet};

use pollux_model::fit::Observation;
use pollux_model::{GpuType, Placement};

use crate::observation::StepObservation;
use crate::revision::Revision;

/// What was timed: a shape, a micro-batch, a kind of GPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProfileKey {
    /// The kind of GPU.
    pub gpu_type: GpuType,
    /// Nodes and replicas.
    pub placement: Placement,
    /// Samples of the largest pass on one GPU.
    pub micro_batch: u32,
}

/// Times of one configuration: means of logarithms, little moved by outliers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProfileEntry {
    /// Steps timed.
    pub n_steps: u64,
    /// The first few, kept until their median can stand in for the mean: logarithms of compute and of
    /// synchronising time.
    pub first: Vec<(f64, f64)>,
    /// Mean logarithm of seconds of compute.
    pub log_compute: f64,
    /// Mean logarithm of seconds of the synchronising pass.
    pub log_optim: f64,
    /// Typical deviation of a step's logarithm from the mean.
    pub deviation: f64,
}

/// Steps whose median starts an entry.
const FIRST: usize = 5;
/// A step moves the mean by at least this share, so that lasting changes of speed are followed.
const LEAST_SHARE: f64 = 1.0 / 200.0;
/// Steps further off than this many deviations count as that many.
const CLIP: f64 = 3.0;
/// Step times vary by at least this much.
const LEAST_DEVIATION: f64 = 0.02;

impl ProfileEntry {
    fn add(&mut self, log_compute: f64, log_optim: f64) {
        self.n_steps = self.n_steps.saturating_add(1);
        if self.n_steps <= FIRST as u64 {
            self.first.push((log_compute, log_optim));
            self.log_compute = median(self.first.iter().map(|&(compute, _)| compute));
            self.log_optim = median(self.first.iter().map(|&(_, optim)| optim));
            let middle = self.log_optim;
            let off = median(self.first.iter().map(|&(_, optim)| (optim - middle).abs()));
            self.deviation = off.max(LEAST_DEVIATION);
            if self.first.len() == FIRST {
                self.first = Vec::new();
            }
            return;
        }
        let share = (1.0 / self.n_steps as f64).max(LEAST_SHARE);
        let reach = CLIP * self.deviation;
        let off = (log_optim - self.log_optim).clamp(-reach, reach);
        self.log_optim += share * off;
        self.log_compute += share * (log_compute - self.log_compute).clamp(-reach, reach);
        self.deviation += share * (off.abs() - self.deviation);
        self.deviation = self.deviation.max(LEAST_DEVIATION);
    }

    /// The same as `n_steps` calls of [`Self::add`], up to rounding. Step by step while the deviation changes, which
    /// ends after a few thousand steps at most; from then on in closed form.
    fn add_run(&mut self, log_compute: f64, log_optim: f64, n_steps: u64) {
        let mut left = n_steps;
        while left > 1 && !self.is_steady(log_optim) {
            self.add(log_compute, log_optim);
            left -= 1;
        }
        if left <= 1 {
            (0..left).for_each(|_| self.add(log_compute, log_optim));
            return;
        }
        self.n_steps = self.n_steps.saturating_add(left);
        self.log_optim = approach(self.log_optim, log_optim, left);
        self.log_compute = approach(self.log_compute, log_compute, left);
    }

    /// Whether steps of this time leave the deviation where it is, and all count the same.
    fn is_steady(&self, log_optim: f64) -> bool {
        self.n_steps as f64 * LEAST_SHARE >= 1.0
            && self.deviation <= LEAST_DEVIATION
            && (log_optim - self.log_optim).abs() <= LEAST_DEVIATION
    }

    /// Typical seconds of the synchronising pass.
    pub fn optim_secs(&self) -> f64 {
        libm::exp(self.log_optim)
    }
}

/// Where a mean ends after `n_steps` equal steps, each of which moves it by [`LEAST_SHARE`] of the way left, at the
/// least deviation: evenly while the way is clipped, then slower and slower.
fn approach(mean: f64, goal: f64, n_steps: u64) -> f64 {
    let n_steps = n_steps as f64;
    let reach = CLIP * LEAST_DEVIATION;
    let way = (goal - mean).abs();
    let clipped = ((way - reach) / (LEAST_SHARE * reach)).ceil().clamp(0.0, n_steps);
    let left = (way - clipped * LEAST_SHARE * reach) * libm::pow(1.0 - LEAST_SHARE, n_steps - clipped);
    goal - left.copysign(goal - mean)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Step times of a job, of all its runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// By configuration.
    pub entries: BTreeMap<ProfileKey, ProfileEntry>,
}

/// More configurations than this of one GPU type are merged before a fit: near-equal micro-batches.
const MANY_OBSERVATIONS: usize = 32;
/// Micro-batches whose logarithms differ by less than this are near-equal.
const NEAR: f64 = 0.25;
/// More than this are merged in any case, nearest first.
const MOST_OBSERVATIONS: usize = 128;

/// Steps after which an entry counts half as much as one timed for ever: its own noise is small by then,
/// the model's error is not.
const HALF_WEIGHT_STEPS: f64 = 5.0;

impl Profile {
    /// Takes in equal steps; false if there are none or they have no usable times.
    pub(crate) fn observe(&mut self, step: &StepObservation, n_steps: u64) -> bool {
        let timing = step.timing.filter(|timing| n_steps > 0 && timing.is_valid());
        let Some(timing) = timing else {
            return false;
        };
        let key = ProfileKey {
            gpu_type: step.gpu_type.clone(),
            placement: step.placement,
            micro_batch: step.plan.atomic_batch(),
        };
        let entry = self.entries.entry(key).or_default();
        entry.add_run(libm::log(timing.compute_secs()), libm::log(timing.optim_secs), n_steps);
        true
    }

    /// The types of GPU the job has been timed on.
    pub(crate) fn gpu_types(&self) -> BTreeSet<GpuType> {
        self.entries.keys().map(|key| key.gpu_type.clone()).collect()
    }

    /// Micro-batches timed on this type, with at least `n_steps` steps each.
    pub(crate) fn micro_batches(&self, gpu_type: &GpuType, n_steps: u64) -> BTreeSet<u32> {
        let timed = self.entries.iter();
        let timed = timed.filter(|(key, entry)| key.gpu_type == *gpu_type && entry.n_steps >= n_steps);
        timed.map(|(key, _)| key.micro_batch).collect()
    }

    pub(crate) fn entry(
        &self,
        gpu_type: &GpuType,
        placement: Placement,
        micro_batch: u32,
    ) -> Option<&ProfileEntry> {
        self.entries.get(&ProfileKey { gpu_type: gpu_type.clone(), placement, micro_batch })
    }

    /// A fingerprint of what a fit would learn from.
    pub(crate) fn revision(&self, gpu_type: &GpuType) -> Revision {
        let mut revision = Revision::default();
        for (_, entry) in self.entries.iter().filter(|(key, _)| key.gpu_type == *gpu_type) {
            revision.add(entry);
        }
        revision
    }

    /// What a fit learns from, for one type of GPU.
    pub(crate) fn observations(&self, gpu_type: &GpuType) -> Vec<Observation> {
        let entries = || self.entries.iter().filter(|(key, _)| key.gpu_type == *gpu_type);
        let mut grain = 0.0;
        loop {
            let mut merged = BTreeMap::<(Placement, u64), (f64, f64, f64, f64)>::new();
            for (key, entry) in entries() {
                let log_micro = libm::log(f64::from(key.micro_batch));
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a small bucket number"
                )]
                let bucket =
                    if grain > 0.0 { (log_micro / grain) as u64 } else { u64::from(key.micro_batch) };
                let weight = entry.n_steps as f64 / (entry.n_steps as f64 + HALF_WEIGHT_STEPS);
                let sums = merged.entry((key.placement, bucket)).or_default();
                sums.0 += weight;
                sums.1 += weight * log_micro;
                sums.2 += weight * entry.log_compute;
                sums.3 += weight * entry.log_optim;
            }
            let most = if grain < NEAR { MANY_OBSERVATIONS } else { MOST_OBSERVATIONS };
            if merged.len() <= most || grain > 1.0 {
                return merged
                    .into_iter()
                    .filter_map(|((placement, _), sums)| observation(placement, sums))
                    .collect();
            }
            grain = if grain > 0.0 { 2.0 * grain } else { 0.03 };
        }
    }
}

fn observation(placement: Placement, sums: (f64, f64, f64, f64)) -> Option<Observation> {
    let (weight, log_micro, log_compute, log_optim) = sums;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the mean of u32s")]
    let micro_batch = libm::exp(log_micro / weight).round().max(1.0) as u32;
    let (accum_secs, optim_secs) = (libm::exp(log_compute / weight), libm::exp(log_optim / weight));
    Observation::new(placement, micro_batch, accum_secs, optim_secs).ok()?.with_weight(weight).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_in_a_hundred_steps_moves_the_mean_by_little() {
        let mut entry = ProfileEntry::default();
        for step in 0..1_000 {
            let secs = if step % 100 == 50 { 3.0 } else { 0.1 };
            entry.add(libm::log(secs), libm::log(secs));
        }
        assert!((entry.optim_secs() / 0.1 - 1.0).abs() < 0.01, "{}", entry.optim_secs());
    }

    #[test]
    fn a_stall_at_the_start_is_outvoted() {
        let mut entry = ProfileEntry::default();
        for secs in [5.0, 0.1, 0.1, 0.11, 0.1] {
            entry.add(libm::log(secs), libm::log(secs));
        }
        assert!((entry.optim_secs() / 0.1 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_lasting_change_of_speed_is_followed() {
        let mut entry = ProfileEntry::default();
        for _ in 0..5_000 {
            entry.add(libm::log(0.1), libm::log(0.1));
        }
        for _ in 0..5_000 {
            entry.add(libm::log(0.2), libm::log(0.2));
        }
        assert!((entry.optim_secs() / 0.2 - 1.0).abs() < 0.05, "{}", entry.optim_secs());
    }
}
