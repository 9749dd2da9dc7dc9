//! Makes a profile from measurements.

use std::collections::BTreeMap;
use std::path::Path;

use pollux_model::GpuType;
use serde::de::IgnoredAny;

use super::application::Profile;
use super::error::ProfileError;
use super::format::{Draft, DraftBatch, DraftNoise, DraftShape, DraftTimes, DraftWork};
use super::step_times::between;
use super::training::MOST_NOISE;
use crate::osdi21::traces::{read_measurements, read_validation};
use crate::osdi21::{Limits, StepTime, Validation};

/// The most micro-batches of a shape that a profile lists.
const MOST_RUNGS: usize = 6;

/// Significant digits of step times: far finer than they repeat from run to run.
pub(super) const TIME_DIGITS: usize = 4;

/// Significant digits of noise scales, which are rough estimates.
const NOISE_DIGITS: usize = 3;

/// Significant digits of progress: a millionth of all work.
const PROGRESS_DIGITS: usize = 6;

/// What the measurements themselves do not say.
#[derive(Clone, Debug, PartialEq)]
pub struct MakeRequest {
    /// Name of the application.
    pub name: String,
    /// Where the measurements come from; it will stand in the profile.
    pub source: String,
    /// The GPUs that were measured.
    pub gpu_type: GpuType,
    /// What a restart costs, in seconds.
    pub restart_secs: f64,
    /// The largest micro-batch, where it is to be less than was measured.
    pub micro_max: Option<u32>,
    /// Epochs to completion, where they are fewer than were run.
    pub max_epochs: Option<usize>,
}

impl MakeRequest {
    /// All that was measured and trained, with a restart of 30 s, the average in the Pollux paper.
    pub fn new(name: &str, source: &str, gpu_type: GpuType) -> Self {
        Self {
            name: name.to_owned(),
            source: source.to_owned(),
            gpu_type,
            restart_secs: 30.0,
            micro_max: None,
            max_epochs: None,
        }
    }

    /// One of the paper's applications as its artifact limits it, from the folder `simulator/traces` of the artifact.
    pub fn osdi21(limits: &Limits) -> Self {
        let source = format!(
            "derived from simulator/traces/{} of petuum/adaptdl, branch osdi21-artifact (Apache-2.0), \
             the measurements of Qiao et al., Pollux, OSDI 2021, on nodes of 4 T4 GPUs",
            limits.name
        );
        Self {
            micro_max: Some(limits.max_local),
            max_epochs: Some(limits.n_epochs as usize),
            ..Self::new(limits.name, &source, GpuType::new("t4"))
        }
    }
}

/// Makes a profile from a folder with `placements.csv`, `validation-BATCH.csv` for each batch trained with, and
/// `scalability.csv` if there is one.
///
/// Step times of placements with equally many nodes and replicas are averaged. The smallest and largest batch trained
/// with become the initial and the largest one. An epoch ends at the least progress of any run.
pub fn make_profile(folder: &Path, request: &MakeRequest) -> Result<Profile, ProfileError> {
    let ladders = read_ladders(folder)?;
    let runs = read_validation(folder)?;
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
        return Err(ProfileError::NoTraining { folder: folder.to_owned() });
    };
    let micro_batches = || ladders.values().flatten().map(|&(micro_batch, _)| micro_batch);
    let micro_min = micro_batches().min().unwrap_or(0);
    let micro_max = micro_batches().max().unwrap_or(0).min(request.micro_max.unwrap_or(u32::MAX));
    let shapes = ladders.iter().map(|(&shape, ladder)| make_shape(shape, ladder, micro_max)).collect();
    let draft = Draft {
        kind: IgnoredAny,
        version: IgnoredAny,
        name: request.name.clone(),
        source: request.source.clone(),
        batch: DraftBatch { initial: first.batch.into(), max: last.batch.into(), micro_min, micro_max },
        restart_secs: request.restart_secs,
        work: make_work(&runs, first.batch, request.max_epochs),
        step_times: BTreeMap::from([(
            request.gpu_type.name().to_owned(),
            DraftTimes { micro_max: None, shapes },
        )]),
    };
    draft.check().map_err(|problem| problem.of(folder))
}

/// Micro-batches, ascending, and the time of a step with each.
type Ladder = Vec<(u32, StepTime)>;

/// What was measured, by nodes and replicas.
fn read_ladders(folder: &Path) -> Result<BTreeMap<(u32, u32), Ladder>, ProfileError> {
    let mut measured: BTreeMap<(u32, u32), BTreeMap<u32, Vec<StepTime>>> = BTreeMap::new();
    for (point, time) in read_measurements(folder)? {
        let ladder = measured.entry((point.n_nodes, point.n_replicas)).or_default();
        ladder.entry(point.local_batch).or_default().push(time);
    }
    let ladder = |ladder: BTreeMap<u32, Vec<StepTime>>| {
        ladder.into_iter().map(|(micro_batch, times)| (micro_batch, mean(&times))).collect()
    };
    Ok(measured.into_iter().map(|(shape, times)| (shape, ladder(times))).collect())
}

fn mean(times: &[StepTime]) -> StepTime {
    let mean = |value: fn(&StepTime) -> f64| times.iter().map(value).sum::<f64>() / times.len() as f64;
    StepTime { step_secs: mean(|time| time.step_secs), sync_secs: mean(|time| time.sync_secs) }
}

fn make_shape((nodes, replicas): (u32, u32), ladder: &[(u32, StepTime)], micro_max: u32) -> DraftShape {
    // Up to the largest micro-batch, or the next one measured, so that there is a line to it.
    let n_useful = ladder.partition_point(|&(micro_batch, _)| micro_batch < micro_max) + 1;
    let rungs = choose_rungs(&ladder[..n_useful.min(ladder.len())]);
    let secs = |value: fn(&StepTime) -> f64| {
        rungs.iter().map(|(_, time)| round_to(value(time), TIME_DIGITS)).collect()
    };
    DraftShape {
        nodes,
        replicas,
        step_secs: secs(|time| time.step_secs),
        sync_secs: secs(|time| time.sync_secs),
        micro_batches: rungs.iter().map(|&(micro_batch, _)| micro_batch).collect(),
    }
}

/// The first and the last rung, then again and again the one that lines between those chosen miss the most. All are
/// measured ones, so that a profile is exact there.
fn choose_rungs(ladder: &[(u32, StepTime)]) -> Ladder {
    let (Some(&first), Some(&last)) = (ladder.first(), ladder.last()) else { return Vec::new() };
    let mut rungs = vec![first, last];
    rungs.dedup_by_key(|rung| rung.0);
    while rungs.len() < MOST_RUNGS.min(ladder.len()) {
        let left = ladder.iter().filter(|rung| !rungs.contains(rung));
        let Some(&worst) = left.max_by(|a, b| miss(&rungs, a).total_cmp(&miss(&rungs, b))) else { break };
        rungs.insert(rungs.partition_point(|rung| rung.0 < worst.0), worst);
    }
    rungs
}

/// How far the line between the neighbours of a rung is from it, as a part of its step time.
fn miss(rungs: &[(u32, StepTime)], &(micro_batch, time): &(u32, StepTime)) -> f64 {
    let above = rungs.partition_point(|rung| rung.0 < micro_batch);
    let ((low, below), (high, above)) = (rungs[above - 1], rungs[above]);
    let line = between(below, above, f64::from(micro_batch - low) / f64::from(high - low));
    let (step, sync) = (line.step_secs - time.step_secs, line.sync_secs - time.sync_secs);
    step.abs().max(sync.abs()) / time.step_secs
}

fn make_work(runs: &[Validation], initial: u32, max_epochs: Option<usize>) -> DraftWork {
    let trained = runs.iter().map(|run| run.epochs.len()).min().unwrap_or(0);
    let n_epochs = trained.min(max_epochs.unwrap_or(usize::MAX));
    let end = |epoch: usize| runs.iter().map(|run| run.epochs[epoch].progress).fold(f64::INFINITY, f64::min);
    let noise = |epoch: usize, run: &Validation| {
        let gradient = run.epochs[epoch].gradient;
        // Infinite where there is no signal; never undefined, since one of both is positive.
        let noise = f64::from(initial) * gradient.var / gradient.sqr;
        round_to(noise.min(MOST_NOISE), NOISE_DIGITS)
    };
    DraftWork {
        epoch_ends: (0..n_epochs).map(|epoch| round_to(end(epoch), PROGRESS_DIGITS)).collect(),
        noise_scales: DraftNoise {
            batches: runs.iter().map(|run| run.batch.into()).collect(),
            epochs: (0..n_epochs).map(|epoch| runs.iter().map(|run| noise(epoch, run)).collect()).collect(),
        },
    }
}

/// The nearest number of so many significant digits.
pub(super) fn round_to(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits - 1).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_keeps_significant_digits() {
        let rounded = [0.000_123_456, 12.345_6, 98_765.0, 0.0].map(|value| round_to(value, 3).to_string());
        assert_eq!(rounded, ["0.000123", "12.3", "98800", "0"]);
    }

    /// Step times as given, of which nothing is exchange, at 1, 2, 3 samples and so on.
    fn check_rungs(step_secs: &[f64], expected: &[u32]) {
        let time = |&step_secs: &f64| StepTime { step_secs, sync_secs: 0.0 };
        let ladder: Ladder = (1..).zip(step_secs.iter().map(time)).collect();
        let rungs: Vec<u32> = choose_rungs(&ladder).iter().map(|rung| rung.0).collect();
        assert_eq!(rungs, expected);
    }

    #[test]
    fn rungs_are_where_the_time_bends() {
        check_rungs(&[], &[]);
        check_rungs(&[1.0], &[1]);
        check_rungs(&[5.0, 1.0, 7.0, 2.0, 9.0, 3.0], &[1, 2, 3, 4, 5, 6]);
        // Flat up to 3, then a line to 9 but for a bump at 7; the sixth is a tie, and the last of those is taken.
        check_rungs(&[2.0, 2.0, 2.0, 3.0, 4.0, 5.0, 12.0, 7.0, 8.0], &[1, 3, 6, 7, 8, 9]);
    }

    fn check_top(micro_max: u32, expected: &[u32]) {
        let time = StepTime { step_secs: 1.0, sync_secs: 0.0 };
        let ladder = [4, 6, 8, 11, 16].map(|micro_batch| (micro_batch, time));
        assert_eq!(make_shape((1, 1), &ladder, micro_max).micro_batches, expected);
    }

    #[test]
    fn a_shape_reaches_to_the_largest_micro_batch() {
        check_top(8, &[4, 6, 8]);
        check_top(9, &[4, 6, 8, 11]);
        check_top(99, &[4, 6, 8, 11, 16]);
    }
}
