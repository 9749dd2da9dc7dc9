//! Who held which GPU when.

use std::collections::BTreeMap;
use std::ops::Range;

use pollux_model::JobId;
use pollux_report::{Gantt, GanttRow, Span};

use super::{hours, index};
use crate::cluster::ClusterShape;
use crate::faults::{Befalls, NodeEvent};
use crate::log::{Event, What};
use crate::outcome::Run;

/// Nodes that are drawn; of larger clusters the first so many.
const MOST_NODES: usize = 64;

/// What the key calls nodes that are away.
const AWAY: &str = "node away";

/// GPUs of each node by holder.
#[derive(Default)]
struct Nodes {
    lanes: Vec<Vec<Option<JobId>>>,
}

impl Nodes {
    /// Gives a job so many free GPUs of a node, the first ones, as stretches of neighbours. A node that was not known, or
    /// has too few, is taken to be as large as it must.
    fn take(&mut self, node: usize, n_gpus: u32, job: JobId) -> Vec<Range<u32>> {
        if self.lanes.len() <= node {
            self.lanes.resize(node + 1, Vec::new());
        }
        let lanes = &mut self.lanes[node];
        let mut taken: Vec<Range<u32>> = Vec::new();
        for _ in 0..n_gpus {
            let free = lanes.iter().position(Option::is_none).unwrap_or(lanes.len());
            if free == lanes.len() {
                lanes.push(None);
            }
            lanes[free] = Some(job);
            let lane = u32::try_from(free).unwrap_or(u32::MAX);
            match taken.last_mut() {
                Some(last) if last.end == lane => last.end += 1,
                _ => taken.push(lane..lane.saturating_add(1)),
            }
        }
        taken
    }

    fn leave(&mut self, node: usize, lanes: &Range<u32>) {
        for lane in lanes.clone() {
            if let Some(lane) = self.lanes.get_mut(node).and_then(|lanes| lanes.get_mut(lane as usize)) {
                *lane = None;
            }
        }
    }
}

/// The GPUs of a cluster over time, a row for each node, coloured by application.
///
/// A log tells how many GPUs of a node a job held, not which: it is drawn on the first that were free.
pub fn gantt(title: &str, run: &Run, cluster: &ClusterShape) -> Gantt {
    let mut nodes = Nodes { lanes: cluster.nodes().map(|spec| vec![None; spec.gpus as usize]).collect() };
    let mut open: BTreeMap<JobId, Vec<(usize, Range<u32>, f64)>> = BTreeMap::new();
    let mut spans = Vec::new();
    let mut close = |nodes: &mut Nodes, job: JobId, held: Vec<(usize, Range<u32>, f64)>, to: f64| {
        let outcome = run.jobs.get(index(job));
        for (row, lanes, from) in held {
            nodes.leave(row, &lanes);
            let (name, group) = outcome
                .map_or_else(Default::default, |outcome| (outcome.name.clone(), outcome.application.clone()));
            spans.push(Span { row, lanes, from, to, name, group });
        }
    };
    let mut last = 0.0;
    for Event { at, job, what } in &run.log.events {
        last = hours(*at);
        if let What::Started { allocation, .. } = what {
            let held = open.entry(*job).or_default();
            for (node, share) in allocation.iter() {
                let row = node.0 as usize;
                let lanes = nodes.take(row, share.n_replicas(), *job);
                held.extend(lanes.into_iter().map(|lanes| (row, lanes, last)));
            }
        } else if matches!(what, What::Stopped | What::Failed | What::Finished)
            && let Some(held) = open.remove(job)
        {
            close(&mut nodes, *job, held, last);
        }
    }
    for (job, held) in open {
        close(&mut nodes, job, held, last);
    }
    let away = outages(run, &nodes, last);
    let is_any_away = !away.is_empty();
    spans.extend(away);
    spans.retain(|span| span.row < MOST_NODES);
    spans.sort_by(|a, b| (a.row, a.lanes.start).cmp(&(b.row, b.lanes.start)).then(a.from.total_cmp(&b.from)));
    let n_nodes = nodes.lanes.len();
    let size = |lanes: &Vec<_>| u32::try_from(lanes.len()).unwrap_or(u32::MAX);
    let rows = nodes.lanes.iter().take(MOST_NODES).enumerate();
    let rows = rows.map(|(node, lanes)| GanttRow::new(format!("node-{node}"), size(lanes))).collect();
    let mut groups: Vec<String> = run.jobs.iter().map(|job| job.application.clone()).collect();
    groups.sort();
    groups.dedup();
    groups.extend(is_any_away.then(|| AWAY.to_owned()));
    let gantt = Gantt { spans, groups, ..Gantt::new(title, "time (h)", rows) };
    if n_nodes > MOST_NODES {
        gantt.with_note(format!("The first {MOST_NODES} of {n_nodes} nodes."))
    } else {
        gantt
    }
}

/// Times until `last` in which nodes were away after a fault.
fn outages(run: &Run, nodes: &Nodes, last: f64) -> Vec<Span> {
    let mut lost: BTreeMap<usize, f64> = BTreeMap::new();
    let mut spans = Vec::new();
    let mut close = |row: usize, from: f64, to: f64| {
        let n_lanes = nodes.lanes.get(row).map_or(0, Vec::len);
        let lanes = 0..u32::try_from(n_lanes).unwrap_or(u32::MAX);
        spans.push(Span { row, lanes, from, to, name: String::new(), group: AWAY.to_owned() });
    };
    for NodeEvent { at, node, what } in &run.log.nodes {
        let (row, now) = (node.0 as usize, hours(*at).min(last));
        match what {
            Befalls::Lost => drop(lost.insert(row, now)),
            Befalls::Back => {
                if let Some(from) = lost.remove(&row) {
                    close(row, from, now);
                }
            }
            Befalls::Warned | Befalls::Slow | Befalls::Steady => {}
        }
    }
    for (row, from) in lost {
        close(row, from, last);
    }
    spans.retain(|span| span.to > span.from);
    spans
}

#[cfg(test)]
mod tests {
    use pollux_model::{NodeId, Timestamp};

    use super::*;
    use crate::{Log, RoundStats};

    #[test] // Node 0 is away from the first hour to the second; node 1 stays away from the third.
    fn nodes_that_are_away_are_drawn() {
        let event = |secs, node, what| NodeEvent { at: Timestamp::from_secs(secs), node: NodeId(node), what };
        let events = vec![
            event(3_600, 0, Befalls::Lost),
            event(7_200, 0, Befalls::Back),
            event(9_000, 1, Befalls::Slow),
            event(10_800, 1, Befalls::Lost),
        ];
        let log = Log { nodes: events, ..Log::default() };
        let run = Run { jobs: vec![], gpus: 6, rounds: RoundStats::default(), log };
        let nodes = Nodes { lanes: vec![vec![None; 4], vec![None; 2]] };
        let seen = |last| -> Vec<(usize, Range<u32>, f64, f64)> {
            let spans = outages(&run, &nodes, last).into_iter();
            spans.map(|span| (span.row, span.lanes, span.from, span.to)).collect()
        };
        assert_eq!(seen(5.0), [(0, 0..4, 1.0, 2.0), (1, 0..2, 3.0, 5.0)]);
        assert_eq!(seen(1.5), [(0, 0..4, 1.0, 1.5)]);
    }

    fn check_take(nodes: &mut Nodes, node: usize, n_gpus: u32, expected: &[(u32, u32)]) {
        let taken = nodes.take(node, n_gpus, JobId(1));
        assert_eq!(taken.iter().map(|lanes| (lanes.start, lanes.end)).collect::<Vec<_>>(), expected);
    }

    #[test] // GPU 0 comes free between two neighbours that stay; then the node is full, and node 2 was not known.
    fn jobs_get_the_first_gpus_that_are_free() {
        let mut nodes = Nodes { lanes: vec![vec![None; 4]] };
        check_take(&mut nodes, 0, 1, &[(0, 1)]);
        check_take(&mut nodes, 0, 2, &[(1, 3)]);
        nodes.leave(0, &(0..1));
        check_take(&mut nodes, 0, 2, &[(0, 1), (3, 4)]);
        check_take(&mut nodes, 0, 1, &[(4, 5)]);
        check_take(&mut nodes, 2, 1, &[(0, 1)]);
        assert_eq!(nodes.lanes.iter().map(Vec::len).collect::<Vec<_>>(), [5, 0, 1]);
    }
}
