//! Step times of a placement and a local batch.

use super::mesh::{Mesh, Point};
use super::traces::Measurement;

/// The most nodes that were measured; more count as so many.
const MAX_NODES: usize = 16;

/// One iteration with gradient exchange, and the part of it that is exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepTime {
    /// Seconds of the whole.
    pub step_secs: f64,
    /// Seconds that are not compute.
    pub sync_secs: f64,
}

impl StepTime {
    /// Seconds of one pass that only accumulates.
    pub fn compute_secs(&self) -> f64 {
        self.step_secs - self.sync_secs
    }

    /// Seconds of an iteration with so many accumulating passes before the last one.
    pub fn iteration_secs(&self, accum_steps: u32) -> f64 {
        self.step_secs + self.compute_secs() * f64::from(accum_steps)
    }
}

/// A step time the measurements do not tell.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ThroughputError {
    /// A placement without GPUs.
    #[error("no GPUs, no step time")]
    NoGpus,
    /// A measured placement, but not with this batch.
    #[error("{placement:?} was measured with {low} to {high} samples for each GPU, not with {local_batch}")]
    BatchNotMeasured {
        /// GPUs of each node, in the rotation that was measured.
        placement: Vec<u32>,
        /// The batch asked for.
        local_batch: u32,
        /// The smallest one measured.
        low: u32,
        /// The largest one measured.
        high: u32,
    },
    /// Outside the convex hull of all measurements.
    #[error(
        "{n_replicas} replicas on {n_nodes} nodes with {local_batch} samples each lie outside the measurements"
    )]
    Outside {
        /// Nodes, at most 16.
        n_nodes: u32,
        /// Replicas.
        n_replicas: u32,
        /// The batch asked for.
        local_batch: u32,
    },
}

/// The placement without idle nodes, in its lexicographically smallest rotation. Rotated, not sorted: neighbours stay
/// neighbours.
///
/// ```
/// use pollux_sim::osdi21::throughput::smallest_rotation;
///
/// assert_eq!(smallest_rotation(&[4, 0, 1, 3]), [1, 3, 4]);
/// assert_eq!(smallest_rotation(&[3, 1, 2, 0]), [1, 2, 3]);
/// assert_eq!(smallest_rotation(&[2, 1, 3]), [1, 3, 2]);
/// ```
pub fn smallest_rotation(placement: &[u32]) -> Vec<u32> {
    let busy: Vec<u32> = placement.iter().copied().filter(|&gpus| gpus > 0).collect();
    let rotations = (0..busy.len()).map(|start| [&busy[start..], &busy[..start]].concat());
    rotations.min().unwrap_or_default()
}

/// Between the two measurements around a batch, in the order of operations of SciPy's `interp1d`. The measurements
/// ascend; nothing outside them.
pub(super) fn between(measured: &[Measurement], local_batch: u32) -> Option<StepTime> {
    let not_below = measured.partition_point(|measurement| measurement.local_batch < local_batch);
    let first = measured.first()?;
    if first.local_batch > local_batch {
        return None;
    }
    let high = measured.get(not_below.max(1));
    let high = match high {
        Some(high) => high,
        // A single measurement tells of its own batch alone.
        None if first.local_batch == local_batch => return Some(first.time),
        None => return None,
    };
    let low = &measured[not_below.max(1) - 1];
    let width = f64::from(high.local_batch) - f64::from(low.local_batch);
    let beyond = f64::from(local_batch) - f64::from(low.local_batch);
    let value = |low: f64, high: f64| (high - low) / width * beyond + low;
    Some(StepTime {
        step_secs: value(low.time.step_secs, high.time.step_secs),
        sync_secs: value(low.time.sync_secs, high.time.sync_secs),
    })
}

/// Step time of a placement that was measured.
pub(super) fn measured(
    placement: &[u32],
    measurements: &[Measurement],
    local_batch: u32,
) -> Result<StepTime, ThroughputError> {
    between(measurements, local_batch).ok_or_else(|| ThroughputError::BatchNotMeasured {
        placement: placement.to_owned(),
        local_batch,
        low: measurements.first().map_or(0, |measurement| measurement.local_batch),
        high: measurements.last().map_or(0, |measurement| measurement.local_batch),
    })
}

/// Step time of a placement that was not.
pub(super) fn interpolated(
    placement: &[u32],
    mesh: &Mesh,
    local_batch: u32,
) -> Result<StepTime, ThroughputError> {
    let n_nodes = u32::try_from(placement.len().min(MAX_NODES)).expect("at most 16");
    let n_replicas = placement.iter().fold(0, |sum: u32, &gpus| sum.saturating_add(gpus));
    if n_replicas == 0 {
        return Err(ThroughputError::NoGpus);
    }
    mesh.step_time(Point { n_nodes, n_replicas, local_batch }).ok_or(ThroughputError::Outside {
        n_nodes,
        n_replicas,
        local_batch,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of 1, 2 and 6 s at 10, 20 and 40 samples; half of each is exchange.
    fn three() -> Vec<Measurement> {
        [(10, 1.0), (20, 2.0), (40, 6.0)]
            .map(|(local_batch, step_secs)| Measurement {
                local_batch,
                time: StepTime { step_secs, sync_secs: step_secs / 2.0 },
            })
            .to_vec()
    }

    fn check(local_batch: u32, step_secs: f64) {
        let time = between(&three(), local_batch).unwrap();
        assert_eq!(time, StepTime { step_secs, sync_secs: step_secs / 2.0 }, "{local_batch} samples");
    }

    #[test]
    fn between_two_measurements_the_time_is_a_line() {
        check(10, 1.0);
        check(15, 1.5);
        check(20, 2.0);
        check(30, 4.0);
        check(40, 6.0);
    }

    #[test]
    fn outside_there_is_an_error_that_names_the_range() {
        for local_batch in [9, 41] {
            let error = measured(&[1, 2], &three(), local_batch).unwrap_err();
            let expected =
                format!("[1, 2] was measured with 10 to 40 samples for each GPU, not with {local_batch}");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn one_measurement_tells_of_itself_alone() {
        let one = &three()[..1];
        assert_eq!(between(one, 10), Some(one[0].time));
        assert_eq!((between(one, 9), between(one, 11), between(&[], 1)), (None, None, None));
    }

    #[test] // Of 3 s, 1 is exchange: two more passes take 2 s each.
    fn accumulation_repeats_the_compute_alone() {
        let time = StepTime { step_secs: 3.0, sync_secs: 1.0 };
        assert_eq!((time.iteration_secs(0), time.iteration_secs(2)), (3.0, 7.0));
    }

    #[test]
    fn nothing_but_idle_nodes_is_the_empty_placement() {
        assert_eq!(smallest_rotation(&[0, 0]), [0_u32; 0]);
        assert_eq!(smallest_rotation(&[2, 1, 2, 1, 1]), [1, 1, 2, 1, 2]);
    }
}
