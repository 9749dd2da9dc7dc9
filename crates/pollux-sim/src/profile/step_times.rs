//! How long a step takes on one type of GPU: listed shapes and micro-batches, and straight lines between them.

use std::collections::BTreeMap;

use pollux_model::Placement;

use super::StepTime;
use super::error::{FieldProblem, Within, within};

/// No step is shorter, however far a line is continued: a microsecond, as fine as the simulator's clock.
const LEAST_STEP_SECS: f64 = 1e-6;

/// Step times of one type of GPU.
///
/// Between listed values times lie on straight lines: in the micro-batch, then in replicas, then in nodes. A
/// micro-batch outside of a shape's list continues its first or last line, never below a microsecond; fewer or more
/// replicas than listed for a number of nodes are as the nearest that are, and so are more nodes than any listed.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTimes {
    /// By ascending number of nodes. The first is one node, and begins with one replica.
    groups: Vec<Group>,
}

/// All shapes on one number of nodes, by ascending replicas.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    n_nodes: u32,
    shapes: Vec<Shape>,
}

/// Step times of one shape: replicas on nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    placement: Placement,
    /// By ascending micro-batch.
    points: Vec<(u32, StepTime)>,
}

impl Shape {
    /// Its nodes and replicas.
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// Its micro-batches, ascending, and the time of a step with each.
    pub fn points(&self) -> &[(u32, StepTime)] {
        &self.points
    }

    /// A shape with at least one point; micro-batches ascend, and exchange is a part of the step.
    pub(super) fn new(
        placement: Placement,
        micro_batches: &[u32],
        step_secs: &[f64],
        sync_secs: &[f64],
    ) -> Result<Self, Within> {
        if micro_batches.is_empty() {
            return Err(within("micro_batches", FieldProblem::Empty));
        }
        let expected = micro_batches.len();
        for (key, values) in [("step_secs", step_secs), ("sync_secs", sync_secs)] {
            if values.len() != expected {
                let problem =
                    FieldProblem::Length { found: values.len(), expected, like: "micro_batches".into() };
                return Err(within(key, problem));
            }
        }
        let mut points: Vec<(u32, StepTime)> = Vec::with_capacity(expected);
        for (index, &micro_batch) in micro_batches.iter().enumerate() {
            let at = |key: &str, problem| within(format!("{key}[{index}]"), problem);
            let previous = points.last().map_or(0, |&(micro_batch, _)| micro_batch);
            if micro_batch <= previous {
                let (value, previous) = (micro_batch.to_string(), previous.to_string());
                return Err(at("micro_batches", FieldProblem::NotAscending { value, previous }));
            }
            let time = StepTime { step_secs: step_secs[index], sync_secs: sync_secs[index] };
            if !(time.step_secs.is_finite() && time.step_secs >= LEAST_STEP_SECS) {
                return Err(at("step_secs", FieldProblem::StepSecs { value: time.step_secs }));
            }
            if !(0.0..=time.step_secs).contains(&time.sync_secs) {
                let StepTime { step_secs, sync_secs } = time;
                return Err(at("sync_secs", FieldProblem::SyncSecs { sync_secs, step_secs }));
            }
            points.push((micro_batch, time));
        }
        Ok(Self { placement, points })
    }

    fn at(&self, micro_batch: u32) -> StepTime {
        let above = self.points.partition_point(|&(listed, _)| listed < micro_batch);
        let above = above.clamp(1, (self.points.len() - 1).max(1));
        let (low_micro, low) = self.points[above - 1];
        let Some(&(high_micro, high)) = self.points.get(above) else { return low };
        let fraction = (f64::from(micro_batch) - f64::from(low_micro)) / f64::from(high_micro - low_micro);
        let StepTime { step_secs, sync_secs } = between(low, high, fraction);
        let step_secs = step_secs.max(LEAST_STEP_SECS);
        StepTime { step_secs, sync_secs: sync_secs.clamp(0.0, step_secs) }
    }
}

impl Group {
    fn at(&self, n_replicas: u32, micro_batch: u32) -> StepTime {
        let replicas = |shape: &Shape| shape.placement.n_replicas();
        let (low, high) = around(&self.shapes, replicas, n_replicas);
        line(low, high, replicas, n_replicas, |shape| shape.at(micro_batch))
    }
}

impl StepTimes {
    /// These shapes, which ascend by nodes, then replicas, and begin with one replica on one node.
    pub(super) fn new(shapes: Vec<Shape>) -> Result<Self, Within> {
        if shapes.first().map(Shape::placement) != Some(Placement::ALONE) {
            return Err(FieldProblem::NoSingleGpu.into());
        }
        for (index, pair) in (1..).zip(shapes.windows(2)) {
            let size = |shape: &Shape| (shape.placement.n_nodes(), shape.placement.n_replicas());
            if size(&pair[1]) <= size(&pair[0]) {
                let [previous, value] = [&pair[0], &pair[1]].map(size);
                let text = |(nodes, replicas)| format!("{replicas} replicas on {nodes} nodes");
                let problem = FieldProblem::NotAscending { value: text(value), previous: text(previous) };
                return Err(within(format!("[{index}]"), problem));
            }
        }
        let mut groups: BTreeMap<u32, Vec<Shape>> = BTreeMap::new();
        for shape in shapes {
            groups.entry(shape.placement.n_nodes()).or_default().push(shape);
        }
        let group = |(n_nodes, shapes)| Group { n_nodes, shapes };
        Ok(Self { groups: groups.into_iter().map(group).collect() })
    }

    /// The listed shapes, by ascending nodes, then replicas.
    pub fn shapes(&self) -> impl Iterator<Item = &Shape> {
        self.groups.iter().flat_map(|group| &group.shapes)
    }

    /// The most replicas of any listed shape.
    pub fn max_replicas(&self) -> u32 {
        self.shapes().map(|shape| shape.placement.n_replicas()).max().unwrap_or(0)
    }

    /// A step of `placement` with so many samples on each GPU.
    pub fn at(&self, placement: Placement, micro_batch: u32) -> StepTime {
        let nodes = |group: &Group| group.n_nodes;
        let (low, high) = around(&self.groups, nodes, placement.n_nodes());
        line(low, high, nodes, placement.n_nodes(), |group| group.at(placement.n_replicas(), micro_batch))
    }
}

/// The items on both sides of `key`, one of them twice where it is met or nothing lies beyond. `items` is not empty.
fn around<T>(items: &[T], key_of: impl Fn(&T) -> u32, key: u32) -> (&T, &T) {
    let not_below = items.partition_point(|item| key_of(item) < key);
    let high = &items[not_below.min(items.len() - 1)];
    if key_of(high) <= key || not_below == 0 { (high, high) } else { (&items[not_below - 1], high) }
}

/// The time at `key` on the line from `low` to `high`; where both are one item, its own.
fn line<T>(
    low: &T,
    high: &T,
    key_of: impl Fn(&T) -> u32,
    key: u32,
    time_of: impl Fn(&T) -> StepTime,
) -> StepTime {
    let (low_key, high_key) = (key_of(low), key_of(high));
    if low_key == high_key {
        return time_of(low);
    }
    let fraction = f64::from(key - low_key) / f64::from(high_key - low_key);
    let StepTime { step_secs, sync_secs } = between(time_of(low), time_of(high), fraction);
    // Rounding alone could lift the part above the whole.
    StepTime { step_secs, sync_secs: sync_secs.min(step_secs) }
}

/// On the line from `low` (at 0) to `high` (at 1), or beyond it.
pub(super) fn between(low: StepTime, high: StepTime, fraction: f64) -> StepTime {
    let value = |low: f64, high: f64| low + (high - low) * fraction;
    StepTime {
        step_secs: value(low.step_secs, high.step_secs),
        sync_secs: value(low.sync_secs, high.sync_secs),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shape(n_nodes: u32, n_replicas: u32, points: &[(u32, f64, f64)]) -> Shape {
        let placement = Placement::new(n_nodes, n_replicas).unwrap();
        let [steps, syncs]: [Vec<f64>; 2] =
            [points.iter().map(|point| point.1).collect(), points.iter().map(|point| point.2).collect()];
        let micro_batches: Vec<u32> = points.iter().map(|point| point.0).collect();
        Shape::new(placement, &micro_batches, &steps, &syncs).unwrap()
    }

    /// One GPU: 1, 2 and 6 s at 10, 20 and 40 samples. Two nodes: 4 s with 2 replicas, 8 s with 6. Four nodes: 12 s.
    fn times() -> StepTimes {
        StepTimes::new(vec![
            shape(1, 1, &[(10, 1.0, 0.0), (20, 2.0, 0.5), (40, 6.0, 1.5)]),
            shape(2, 2, &[(10, 4.0, 2.0)]),
            shape(2, 6, &[(10, 8.0, 4.0)]),
            shape(4, 4, &[(10, 12.0, 6.0)]),
        ])
        .unwrap()
    }

    fn check(n_nodes: u32, n_replicas: u32, micro_batch: u32, step_secs: f64, sync_secs: f64) {
        let time = times().at(Placement::new(n_nodes, n_replicas).unwrap(), micro_batch);
        assert_eq!(time, StepTime { step_secs, sync_secs }, "{n_replicas} on {n_nodes} with {micro_batch}");
    }

    #[test]
    fn listed_values_are_met() {
        check(1, 1, 10, 1.0, 0.0);
        check(1, 1, 20, 2.0, 0.5);
        check(1, 1, 40, 6.0, 1.5);
        check(2, 6, 10, 8.0, 4.0);
    }

    #[test]
    fn between_listed_values_lie_lines() {
        check(1, 1, 15, 1.5, 0.25);
        check(1, 1, 30, 4.0, 1.0);
        check(2, 3, 10, 5.0, 2.5); // a quarter of the way from 2 to 6 replicas
        check(3, 4, 10, 9.0, 4.5); // half way from (2, 4), which is 6 s, to (4, 4)
    }

    #[test]
    fn micro_batches_outside_continue_the_line_within_reason() {
        check(1, 1, 5, 0.5, 0.0); // exchange would be below zero
        check(1, 1, 50, 8.0, 2.0);
        check(2, 2, 99, 4.0, 2.0); // a single point says nothing of a slope
        let steep = StepTimes::new(vec![shape(1, 1, &[(10, 1.0, 1.0), (11, 2.0, 1.0)])]).unwrap();
        let least = StepTime { step_secs: 1e-6, sync_secs: 1e-6 };
        assert_eq!(steep.at(Placement::ALONE, 1), least);
    }

    #[test]
    fn shapes_outside_are_as_the_nearest() {
        check(1, 8, 10, 1.0, 0.0);
        check(2, 9, 10, 8.0, 4.0);
        check(9, 9, 10, 12.0, 6.0);
        assert_eq!(times().max_replicas(), 6);
    }

    proptest! {
        #[test]
        fn every_time_is_one(nodes in 1_u32..40, more in 0_u32..200, micro_batch in 0..=u32::MAX) {
            let time = times().at(Placement::new(nodes, nodes + more).unwrap(), micro_batch);
            prop_assert!(time.step_secs.is_finite() && time.step_secs >= LEAST_STEP_SECS);
            prop_assert!((0.0..=time.step_secs).contains(&time.sync_secs));
        }
    }
}
