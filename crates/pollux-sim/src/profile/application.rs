//! An application as a simulator knows it.

use std::collections::BTreeMap;

use pollux_model::{BatchLimits, BatchPlan, GlobalBatch, GpuType, Placement};

use super::StepTime;
use super::error::{FieldProblem, Within, within};
use super::step_times::StepTimes;
use super::training::Training;

/// An application: its step times on each type of GPU, its gradient noise, its work, and what a restart costs.
///
/// Checked when made and not changed after: every lookup gives a sensible value.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    name: String,
    source: String,
    memory: Memory,
    restart_secs: f64,
    step_times: BTreeMap<GpuType, StepTimes>,
    training: Training,
}

/// Batch sizes, and the largest micro-batch of types whose memory is not as the limits say.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Memory {
    pub(super) limits: BatchLimits,
    pub(super) micro_max: BTreeMap<GpuType, u32>,
}

impl Profile {
    pub(super) fn new(
        name: String,
        source: String,
        memory: Memory,
        restart_secs: f64,
        step_times: BTreeMap<GpuType, StepTimes>,
        training: Training,
    ) -> Result<Self, Within> {
        check_name(&name).map_err(|problem| within("name", problem))?;
        if !(restart_secs.is_finite() && restart_secs >= 0.0) {
            return Err(within("restart_secs", FieldProblem::Secs { value: restart_secs }));
        }
        if step_times.is_empty() {
            return Err(within("step_times", FieldProblem::NoGpuType));
        }
        for gpu_type in step_times.keys() {
            check_name(gpu_type.name()).map_err(|problem| within("step_times", problem))?;
        }
        Ok(Self { name, source, memory, restart_secs, step_times, training })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its numbers come from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Its batch sizes: the initial and the largest one, and the range of micro-batches.
    pub fn limits(&self) -> &BatchLimits {
        &self.memory.limits
    }

    /// Its batch sizes on a type of GPU, whose memory may hold more or less.
    pub fn limits_on(&self, gpu_type: &GpuType) -> BatchLimits {
        let limits = self.memory.limits;
        let own = self.own_micro_max(gpu_type).and_then(|most| limits.with_micro_max(most).ok());
        own.unwrap_or(limits)
    }

    /// Its batch sizes on whichever of these types has the most memory for it; the general ones where it knows none.
    pub fn limits_among(&self, gpu_types: &[GpuType]) -> BatchLimits {
        let known = gpu_types.iter().filter(|gpu_type| self.step_times.contains_key(gpu_type));
        let limits = known.map(|gpu_type| self.limits_on(gpu_type));
        limits.max_by_key(BatchLimits::micro_max).unwrap_or(self.memory.limits)
    }

    /// The largest micro-batch that was given for this type alone.
    pub(super) fn own_micro_max(&self, gpu_type: &GpuType) -> Option<u32> {
        self.memory.micro_max.get(gpu_type).copied()
    }

    /// The same application, known on these types too, and where that is from. A type that it knew is replaced.
    pub(super) fn with_types(
        mut self,
        types: impl IntoIterator<Item = (GpuType, u32, StepTimes)>,
        source: &str,
    ) -> Self {
        for (gpu_type, micro_max, times) in types {
            self.memory.micro_max.insert(gpu_type.clone(), micro_max);
            self.step_times.insert(gpu_type, times);
        }
        self.source = format!("{}; {source}", self.source);
        self
    }

    /// Seconds from the order to start or restart until training goes on.
    pub fn restart_secs(&self) -> f64 {
        self.restart_secs
    }

    /// The types of GPUs it was measured on, by name.
    pub fn gpu_types(&self) -> impl Iterator<Item = &GpuType> {
        self.step_times.keys()
    }

    /// The step times on a type of GPU; nothing if it was not measured there.
    pub fn step_times(&self, gpu_type: &GpuType) -> Option<&StepTimes> {
        self.step_times.get(gpu_type)
    }

    /// The most GPUs of a type that it can use: of the largest listed shape, and such that each can have the smallest
    /// micro-batch. 0 for a type it was not measured on.
    pub fn max_gpus(&self, gpu_type: &GpuType) -> u32 {
        let listed = self.step_times(gpu_type).map_or(0, StepTimes::max_replicas);
        listed.min(self.memory.limits.max_replicas())
    }

    /// A step with so many samples on each GPU; nothing for a type it was not measured on.
    pub fn step_time(&self, gpu_type: &GpuType, placement: Placement, micro_batch: u32) -> Option<StepTime> {
        self.step_times(gpu_type).map(|times| times.at(placement, micro_batch))
    }

    /// What its training takes.
    pub fn training(&self) -> &Training {
        &self.training
    }

    /// Seconds from the first step to completion at a fixed `batch`, dealt evenly in as few passes as memory allows.
    ///
    /// The sum over epochs of `work / gain · seconds of a step`; restarts are not in it. Nothing for a type it was not
    /// measured on, nor where the limits forbid the batch on this placement.
    pub fn run_secs(&self, gpu_type: &GpuType, placement: Placement, batch: u64) -> Option<f64> {
        let share = batch.div_ceil(u64::from(placement.n_replicas()));
        let limits = self.limits_on(gpu_type);
        let passes = share.div_ceil(u64::from(limits.micro_max())).max(1);
        let accum_steps = u32::try_from(passes - 1).ok()?;
        let plan = BatchPlan::split(GlobalBatch(batch), placement, accum_steps)?;
        if !limits.allows(placement, plan) {
            return None;
        }
        let time = self.step_time(gpu_type, placement, plan.atomic_batch())?;
        let initial = limits.initial().0;
        let mut n_steps = 0.0;
        let mut start = 0.0;
        for epoch in 0..self.training.n_epochs() {
            let end = self.training.epoch_end(epoch);
            n_steps += (end - start) / self.training.gain(epoch, batch, initial);
            start = end;
        }
        Some(n_steps * time.iteration_secs(accum_steps))
    }
}

/// Names stand in commands, file names and tables.
fn check_name(name: &str) -> Result<(), FieldProblem> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(FieldProblem::Name { value: name.to_owned() });
    }
    Ok(())
}
