//! Run times of the artifact's applications, for whoever draws workloads.

use super::traces::Application;
use crate::workload::Runtimes;

/// GPUs of a node.
const GPUS_PER_NODE: u32 = 4;

impl Runtimes for Application {
    fn initial_batch(&self) -> u64 {
        self.limits().init_batch.into()
    }

    fn max_batch(&self) -> u64 {
        self.limits().max_batch.into()
    }

    fn max_gpus(&self) -> u32 {
        self.limits().max_replicas()
    }

    /// As the artifact's generator computes it: iterations of the training run at this batch, times what one takes on
    /// whole nodes of 4 GPUs, then the rest.
    fn run_secs(&self, gpus: u32, batch: u64) -> Option<f64> {
        let (limits, batch) = (self.limits(), u32::try_from(batch).ok()?);
        let local = batch.div_ceil(gpus.max(1));
        if local < limits.min_local {
            return None;
        }
        let accum_steps = local.div_ceil(limits.max_local) - 1;
        let nodes = (0..gpus).step_by(GPUS_PER_NODE as usize);
        let placement: Vec<u32> = nodes.map(|placed| (gpus - placed).min(GPUS_PER_NODE)).collect();
        let time = self.step_time(&placement, local.div_ceil(accum_steps + 1)).ok()?;
        let run = self.validation().iter().find(|run| run.batch == batch)?;
        let last = run.epochs.get(usize::try_from(limits.n_epochs - 1).ok()?)?;
        Some(last.iterations * time.iteration_secs(accum_steps))
    }
}
