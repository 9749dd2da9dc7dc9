//! Which jobs slow each other down.

use std::collections::BTreeMap;

use pollux_model::{Allocation, JobId, NodeId};

use crate::log::{Log, What};

/// For each job, in order, whether others slow it down.
///
/// Only distributed jobs, on two nodes or more, disturb and are disturbed: a node is congested if two of them or more
/// touch it, and one that touches a congested node is slowed as a whole.
///
/// ```
/// use pollux_model::{Allocation, NodeId};
/// use pollux_sim::interference::slowed;
///
/// let on = |nodes: [u32; 2]| Allocation::whole(nodes.map(|node| (NodeId(node), 1)));
/// let alone = Allocation::whole([(NodeId(1), 2)]);
/// assert_eq!(slowed([&on([0, 1]), &on([1, 2]), &on([3, 4]), &alone]), [true, true, false, false]);
/// ```
pub fn slowed<'a>(allocations: impl IntoIterator<Item = &'a Allocation>) -> Vec<bool> {
    let mut slowed = Vec::new();
    let mut touched: Vec<(NodeId, usize)> = Vec::new();
    for (job, allocation) in allocations.into_iter().enumerate() {
        slowed.push(false);
        if allocation.placement().is_some_and(|placement| placement.n_nodes() > 1) {
            touched.extend(allocation.iter().map(|(node, _)| (node, job)));
        }
    }
    touched.sort_unstable();
    for same_node in touched.chunk_by(|one, next| one.0 == next.0) {
        if same_node.len() > 1 {
            for &(_, job) in same_node {
                slowed[job] = true;
            }
        }
    }
    slowed
}

/// Of the time that distributed jobs hold GPUs, the part in which they are beside another on one of their nodes; none
/// if no job was ever distributed, or the log was not kept.
pub fn part_beside_others(log: &Log) -> Option<f64> {
    let mut held: BTreeMap<JobId, Allocation> = BTreeMap::new();
    let (mut distributed_secs, mut beside_secs) = (0.0, 0.0);
    let mut now_secs = 0.0;
    for event in &log.events {
        let secs = event.at.as_secs_f64() - now_secs;
        if secs > 0.0 {
            for (allocation, is_slowed) in held.values().zip(slowed(held.values())) {
                if allocation.placement().is_some_and(|placement| placement.n_nodes() > 1) {
                    distributed_secs += secs;
                    beside_secs += if is_slowed { secs } else { 0.0 };
                }
            }
            now_secs = event.at.as_secs_f64();
        }
        match &event.what {
            What::Started { allocation, .. } => {
                held.insert(event.job, allocation.clone());
            }
            What::Stopped | What::Failed | What::Finished => {
                held.remove(&event.job);
            }
            What::Submitted | What::Training | What::Batch { .. } => {}
        }
    }
    (distributed_secs > 0.0).then(|| beside_secs / distributed_secs)
}

#[cfg(test)]
mod tests {
    use pollux_model::Timestamp;

    use super::*;
    use crate::log::Event;

    /// Jobs by the nodes they hold a GPU of, and who is slowed.
    fn check(jobs: &[&[u32]], expected: &[bool]) {
        let allocations: Vec<Allocation> =
            jobs.iter().map(|nodes| Allocation::whole(nodes.iter().map(|&node| (NodeId(node), 1)))).collect();
        assert_eq!(slowed(&allocations), expected, "{jobs:?}");
    }

    #[test]
    fn a_shared_node_slows_all_distributed_jobs_on_it() {
        check(&[&[0, 1], &[1, 2], &[2, 3]], &[true, true, true]);
        check(&[&[0, 1], &[2, 3], &[3, 4]], &[false, true, true]);
        check(&[&[5, 7, 9], &[9, 8], &[5, 6], &[6, 0]], &[true, true, true, true]);
    }

    #[test]
    fn jobs_of_one_node_neither_disturb_nor_are_disturbed() {
        check(&[&[0, 1], &[1], &[0]], &[false, false, false]);
        check(&[&[0, 1], &[1], &[1, 2]], &[true, false, true]);
    }

    fn started(secs: u64, job: u64, nodes: &[u32]) -> Event {
        let allocation = Allocation::whole(nodes.iter().map(|&node| (NodeId(node), 1)));
        let what = What::Started { allocation, why: None };
        Event { at: Timestamp::from_secs(secs), job: JobId(job), what }
    }

    #[test] // Two jobs meet on node 1 for 10 s of the first one's 40 and the other's 10; the third has one node alone.
    fn time_beside_others_is_counted_for_distributed_jobs() {
        let gone = |secs, job, what| Event { at: Timestamp::from_secs(secs), job: JobId(job), what };
        let events = vec![
            started(0, 1, &[0, 1]),
            started(10, 2, &[1, 2]),
            started(10, 3, &[1]),
            gone(20, 2, What::Stopped),
            gone(40, 1, What::Finished),
            gone(90, 3, What::Finished),
        ];
        let log = Log { events, ..Log::default() };
        assert_eq!(part_beside_others(&log), Some(20.0 / 50.0));
        assert_eq!(part_beside_others(&Log::default()), None);
    }

    #[test]
    fn several_gpus_of_one_node_are_one_touch() {
        let distributed = Allocation::whole([(NodeId(0), 4), (NodeId(1), 2)]);
        assert_eq!(slowed([&distributed, &Allocation::none()]), [false, false]);
        check(&[], &[]);
    }
}
