//! Which jobs slow each other down.

use pollux_model::{Allocation, NodeId};

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

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn several_gpus_of_one_node_are_one_touch() {
        let distributed = Allocation::whole([(NodeId(0), 4), (NodeId(1), 2)]);
        assert_eq!(slowed([&distributed, &Allocation::none()]), [false, false]);
        check(&[], &[]);
    }
}
