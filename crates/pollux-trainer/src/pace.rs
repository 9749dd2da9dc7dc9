//! Emulated GPUs: steps are stretched to what an application's profile says, and never shortened.
//!
//! Gradients stay real. The agent is told nothing of this: it sees wall-clock time, like on any cluster.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use pollux_model::{BatchPlan, GpuType, Placement};
use pollux_sim::profile::{ProfileError, StepTimes, read_profile};

use crate::signals::Asked;

/// Between two looks whether to leave, while a start is emulated.
const GLANCE: Duration = Duration::from_millis(50);

/// A profile that cannot pace.
#[derive(Debug, thiserror::Error)]
pub enum PaceError {
    /// The file is no profile.
    #[error("POLLUX_EMULATED_PROFILE: {0}")]
    Profile(#[from] ProfileError),
    /// The application was not measured on these GPUs.
    #[error("{} does not know the GPU type `{gpu_type}`; it knows {}", file.display(), known.join(", "))]
    UnknownType {
        /// The profile.
        file: PathBuf,
        /// What `POLLUX_GPU_TYPE` says.
        gpu_type: String,
        /// The types it was measured on.
        known: Vec<String>,
    },
}

/// How long steps take at least. The default paces nothing.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    times: Option<StepTimes>,
    start_secs: f64,
}

/// Seconds of the passes of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PassSecs {
    /// The computing part of each pass.
    pub compute: f64,
    /// The whole last pass, with exchange and update.
    pub last: f64,
}

impl Pace {
    /// The pace of the application described in `file` on GPUs of this type.
    pub fn from_profile(file: &Path, gpu_type: &GpuType) -> Result<Self, PaceError> {
        let profile = read_profile(file)?;
        let Some(times) = profile.step_times(gpu_type) else {
            let known = profile.gpu_types().map(|known| known.name().to_owned()).collect();
            let (file, gpu_type) = (file.to_owned(), gpu_type.name().to_owned());
            return Err(PaceError::UnknownType { file, gpu_type, known });
        };
        Ok(Self { times: Some(times.clone()), start_secs: profile.restart_secs() })
    }

    /// What the passes of such a step take at least.
    pub fn pass_secs(&self, placement: Placement, plan: BatchPlan) -> PassSecs {
        self.times.as_ref().map_or_else(PassSecs::default, |times| {
            let time = times.at(placement, plan.atomic_batch());
            PassSecs { compute: time.compute_secs(), last: time.step_secs }
        })
    }

    /// What a whole step takes at least.
    pub fn step_secs(&self, placement: Placement, plan: BatchPlan) -> f64 {
        let secs = self.pass_secs(placement, plan);
        secs.compute * f64::from(plan.accum_steps()) + secs.last
    }

    /// Waits until a restart would be over that began with the process; less where it is asked to leave.
    pub fn wait_for_start(&self, began: Instant, asked: &Asked) {
        let end = began + Duration::from_secs_f64(self.start_secs.min(1e6));
        while !asked.to_leave() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            sleep(left.min(GLANCE));
        }
    }
}

/// Waits until `secs` after `since`; not at all if that is over.
pub fn hold_until(since: Instant, secs: f64) {
    if secs > 0.0 {
        let end = since + Duration::from_secs_f64(secs.min(1e6));
        sleep(end.saturating_duration_since(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use pollux_model::GlobalBatch;

    use super::*;

    #[test] // The example of docs/reference/application-profile.md: 1.5 s on two GPUs, of which 0.5 s are exchange.
    fn steps_take_what_the_profile_says() {
        let text = r#"{"kind": "pollux.application", "version": 1, "name": "small", "source": "made up",
            "batch": {"initial": 20, "max": 80, "micro_min": 10, "micro_max": 20}, "restart_secs": 30,
            "work": {"epoch_ends": [10], "noise_scales": {"batches": [20], "epochs": [[0]]}},
            "step_times": {"t4": {"shapes": [
                {"nodes": 1, "replicas": 1, "micro_batches": [10,20], "step_secs": [1,2], "sync_secs": [0,0]},
                {"nodes": 1, "replicas": 2, "micro_batches": [10,20], "step_secs": [1.5,2.5],
                 "sync_secs": [0.5,0.5]}]}}}"#;
        let profile = pollux_sim::profile::parse_profile(Path::new("small.json"), text).unwrap();
        let times = profile.step_times(&GpuType::new("t4")).cloned();
        let pace = Pace { times, start_secs: 30.0 };
        let check = |n_replicas: u32, batch: u64, accum_steps: u32, secs: f64| {
            let placement = Placement::new(1, n_replicas).unwrap();
            let plan = BatchPlan::split(GlobalBatch(batch), placement, accum_steps).unwrap();
            assert!((pace.step_secs(placement, plan) - secs).abs() < 1e-12, "{n_replicas} {batch}");
        };
        check(1, 20, 0, 2.0);
        check(1, 20, 1, 2.0); // twice 1 s
        check(2, 20, 0, 1.5);
        check(2, 40, 1, 2.5); // 1 s without exchange, then 1.5 s
        assert!(Pace::default().step_secs(Placement::ALONE, plan_of_one()).abs() < 1e-12);
    }

    fn plan_of_one() -> BatchPlan {
        BatchPlan::even(Placement::ALONE, 1, 0).unwrap()
    }
}
