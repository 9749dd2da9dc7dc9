//! GPUs held, and how well they were used, over time.

use std::collections::BTreeMap;

use pollux_model::JobId;
use pollux_report::{Axis, Figure, Panel, Series, Style};

use super::HOUR;
use super::digest::{Digest, detailed};
use crate::log::{Event, Log, What};

/// GPUs held and GPUs that do useful work, from moment to moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// From each moment on: seconds, GPUs held, and these times the statistical efficiency of their jobs. A job that
    /// is starting does nothing useful.
    pub changes: Vec<(f64, f64, f64)>,
}

/// What one job holds.
#[derive(Clone, Copy, Debug, Default)]
struct Holder {
    gpus: f64,
    trains: bool,
    efficiency: Option<f64>,
}

impl Holder {
    fn useful(self) -> f64 {
        // A job whose batch is not known yet has that of its user.
        if self.trains { self.gpus * self.efficiency.unwrap_or(1.0) } else { 0.0 }
    }
}

impl Usage {
    /// As a log tells it.
    pub fn of(log: &Log) -> Self {
        let mut holders: BTreeMap<JobId, Holder> = BTreeMap::new();
        let mut changes: Vec<(f64, f64, f64)> = vec![(0.0, 0.0, 0.0)];
        let (mut held, mut useful) = (0.0, 0.0);
        for Event { at, job, what } in &log.events {
            let before = holders.get(job).copied().unwrap_or_default();
            let mut now = before;
            if let What::Started { allocation, .. } = what {
                now = Holder { gpus: allocation.gpus(), trains: false, ..before };
            } else if matches!(what, What::Training) {
                now.trains = true;
            } else if let What::Batch { efficiency, .. } = what {
                now.efficiency = Some(*efficiency);
            } else if matches!(what, What::Stopped | What::Failed | What::Finished) {
                now = Holder { gpus: 0.0, trains: false, ..before };
            } else {
                continue;
            }
            holders.insert(*job, now);
            held += now.gpus - before.gpus;
            useful += now.useful() - before.useful();
            let secs = at.as_secs_f64();
            match changes.last_mut() {
                Some(last) if last.0 >= secs => *last = (last.0, held, useful),
                _ => changes.push((secs, held, useful)),
            }
        }
        Self { changes }
    }

    /// GPU-seconds held and useful from one moment to another.
    pub fn between(&self, from: f64, to: f64) -> (f64, f64) {
        let first = self.changes.partition_point(|(at, ..)| *at <= from).max(1) - 1;
        let mut sums = (0.0, 0.0);
        for (index, (at, held, useful)) in self.changes.iter().enumerate().skip(first) {
            if *at >= to {
                break;
            }
            let end = self.changes.get(index + 1).map_or(to, |next| next.0.min(to));
            let secs = (end - at.max(from)).max(0.0);
            sums = (sums.0 + held * secs, sums.1 + useful * secs);
        }
        sums
    }

    /// The last moment at which anything changed, in seconds.
    pub fn end_secs(&self) -> f64 {
        self.changes.last().map_or(0.0, |(at, ..)| *at)
    }
}

/// Widths of the stretches that are averaged over, in minutes; and how many of them a chart has at most.
const WIDTHS: [f64; 12] = [1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 240.0, 480.0, 1_440.0, 10_080.0];
const MOST_STRETCHES: f64 = 120.0;

/// Held and useful share of the cluster over time, a line for each policy; none if no run was kept whole.
///
/// Also says over how many minutes each value is averaged.
pub fn usage_figure(digests: &[Digest]) -> Option<(Figure, f64)> {
    let usages: Vec<(&str, f64, Usage)> = detailed(digests)
        .into_iter()
        .map(|(digest, run)| (digest.policy.as_str(), f64::from(run.gpus.max(1)), Usage::of(&run.log)))
        .collect();
    let longest = usages.iter().map(|(_, _, usage)| usage.end_secs()).fold(0.0, f64::max);
    if longest <= 0.0 {
        return None;
    }
    let fits = |minutes: &f64| longest / (minutes * 60.0) <= MOST_STRETCHES;
    let minutes = WIDTHS.into_iter().find(fits).unwrap_or(longest / 60.0 / MOST_STRETCHES);
    let panel = |title: &str, share: fn((f64, f64)) -> f64| {
        let axes =
            (Axis::linear("time (h)").starting_at_zero(), Axis::linear("% of the GPUs").between(0.0, 100.0));
        let empty = Panel::new(title, axes.0, axes.1);
        usages.iter().fold(empty, |panel, (policy, gpus, usage)| {
            let points = stretches(usage, minutes * 60.0)
                .into_iter()
                .map(|(secs, used)| (secs / HOUR, 100.0 * share(used) / gpus));
            panel.with_series(Series::new(*policy, points).with_style(Style::Step))
        })
    };
    let figure = Figure::new("How the cluster was used")
        .with_panel(panel("Held by jobs", |(held, _)| held))
        .with_panel(panel("Useful: held times statistical efficiency", |(_, useful)| useful));
    let figure = match rented_panel(digests) {
        Some(panel) => figure.with_panel(panel),
        None => figure,
    };
    Some((figure, minutes))
}

/// Nodes that were rented over time; none if nodes are not.
fn rented_panel(digests: &[Digest]) -> Option<Panel> {
    let runs = detailed(digests);
    if runs.iter().all(|(_, run)| run.log.bill.is_empty()) {
        return None;
    }
    let axes = (Axis::linear("time (h)").starting_at_zero(), Axis::linear("nodes").starting_at_zero());
    Some(runs.iter().fold(Panel::new("Nodes rented", axes.0, axes.1), |panel, (digest, run)| {
        let sizes = run.log.bill.totals();
        // The last size holds until the last job is done.
        let end = sizes.last().map(|(_, nodes)| (Usage::of(&run.log).end_secs(), *nodes));
        let points = sizes.iter().map(|(at, nodes)| (at.as_secs_f64(), *nodes)).chain(end);
        let points = points.map(|(secs, nodes)| (secs / HOUR, f64::from(nodes)));
        panel.with_series(Series::new(digest.policy.as_str(), points).with_style(Style::Step))
    }))
}

/// The mean over each stretch of time, by its beginning; the last value is there twice, to be drawn to its end.
fn stretches(usage: &Usage, width: f64) -> Vec<(f64, (f64, f64))> {
    let end = usage.end_secs();
    let mut points = Vec::new();
    let mut last = (0.0, 0.0);
    for number in 0_u32.. {
        let from = f64::from(number) * width;
        let to = (from + width).min(end);
        if from >= end {
            break;
        }
        let (held, useful) = usage.between(from, to);
        last = (held / (to - from), useful / (to - from));
        points.push((from, last));
    }
    points.push((end, last));
    points
}

#[cfg(test)]
mod tests {
    use pollux_model::{Allocation, NodeId, Timestamp};

    use super::*;

    /// A job holds 4 GPUs from 10 s on, trains from 20 s on, at half the efficiency from 30 s on, and is done at 40 s.
    fn log() -> Log {
        let allocation = Allocation::whole([(NodeId(0), 4)]);
        let batch = |efficiency| What::Batch { global: 8, efficiency };
        let events = [
            (0, What::Submitted),
            (10, What::Started { allocation, why: None }),
            (20, What::Training),
            (20, batch(1.0)),
            (30, batch(0.5)),
            (40, What::Finished),
        ];
        let event = |(secs, what)| Event { at: Timestamp::from_secs(secs), job: JobId(0), what };
        Log { events: events.into_iter().map(event).collect(), ..Log::default() }
    }

    fn check_between(from: f64, to: f64, expected: (f64, f64)) {
        assert_eq!(Usage::of(&log()).between(from, to), expected, "{from} to {to}");
    }

    #[test] // 4 GPUs for 30 s are held; 10 s of them count wholly, 10 s by half.
    fn gpu_seconds_are_counted_by_what_they_do() {
        check_between(0.0, 100.0, (120.0, 60.0));
        check_between(0.0, 10.0, (0.0, 0.0));
        check_between(15.0, 25.0, (40.0, 20.0));
        check_between(35.0, 36.0, (4.0, 2.0));
        check_between(50.0, 60.0, (0.0, 0.0));
    }

    #[test]
    fn stretches_cover_the_run() {
        let found = stretches(&Usage::of(&log()), 20.0);
        assert_eq!(found, [(0.0, (2.0, 0.0)), (20.0, (4.0, 3.0)), (40.0, (4.0, 3.0))]);
    }
}
