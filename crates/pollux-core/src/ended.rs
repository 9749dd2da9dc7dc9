//! Jobs that are over: the latest in full, all others as numbers.

use std::collections::{BTreeMap, VecDeque};

use pollux_model::JobId;

/// Who has ended, and in which order.
///
/// Ids that follow each other are one range, so that a scheduler which numbers its jobs needs next to nothing for those
/// it has forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Those whose record is kept, by the time of their end.
    pub latest: VecDeque<JobId>,
    /// First and last ids of ranges in which everybody has ended and is forgotten.
    pub forgotten: BTreeMap<u64, u64>,
}

impl Ended {
    /// Whether it has ended and was forgotten.
    pub(crate) fn contains(&self, id: JobId) -> bool {
        self.forgotten.range(..=id.0).next_back().is_some_and(|(_, last)| *last >= id.0)
    }

    /// A job is over; `most` are kept. Returns those whose record is to go.
    pub(crate) fn insert(&mut self, id: JobId, most: usize) -> Vec<JobId> {
        self.latest.push_back(id);
        let n_over = self.latest.len().saturating_sub(most);
        let over: Vec<JobId> = self.latest.drain(..n_over).collect();
        for id in &over {
            self.forget(id.0);
        }
        over
    }

    /// Whether the ranges are ranges, and apart from each other.
    pub(crate) fn is_sound(&self) -> bool {
        let mut ranges = self.forgotten.iter().peekable();
        while let Some((first, last)) = ranges.next() {
            if first > last
                || ranges.peek().is_some_and(|(next, _)| last.checked_add(1).is_none_or(|end| end >= **next))
            {
                return false;
            }
        }
        true
    }

    fn forget(&mut self, id: u64) {
        let mut first = id;
        let mut last = id;
        if let Some((&before, &end)) = self.forgotten.range(..id).next_back()
            && end.checked_add(1) == Some(id)
        {
            first = before;
        }
        if let Some(next) = id.checked_add(1)
            && let Some(end) = self.forgotten.remove(&next)
        {
            last = end;
        }
        self.forgotten.insert(first, last);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test] // 3 and 5 are ranges of their own until 4 joins them.
    fn neighbours_become_one_range() {
        let mut ended = Ended::default();
        for id in [3, 5, 4, 9] {
            assert_eq!(ended.insert(JobId(id), 0), [JobId(id)]);
        }
        assert_eq!(ended.forgotten.iter().map(|(a, b)| (*a, *b)).collect::<Vec<_>>(), [(3, 5), (9, 9)]);
        let known: Vec<u64> = (0..12).filter(|id| ended.contains(JobId(*id))).collect();
        assert_eq!(known, [3, 4, 5, 9]);
    }

    #[test]
    fn the_latest_are_kept() {
        let mut ended = Ended::default();
        let forgotten: Vec<JobId> = (1..=5).flat_map(|id| ended.insert(JobId(id), 2)).collect();
        assert_eq!(forgotten, [1, 2, 3].map(JobId));
        assert!(ended.contains(JobId(3)) && !ended.contains(JobId(4)));
    }

    proptest! {
        #[test]
        fn who_was_forgotten_is_known(ids in prop::collection::btree_set(any::<u8>(), 0..60), extreme: bool) {
            let mut ended = Ended::default();
            let base = if extreme { u64::MAX - 255 } else { 0 };
            for id in ids.iter().rev().step_by(2).chain(ids.iter().rev().skip(1).step_by(2)) {
                ended.insert(JobId(base + u64::from(*id)), 0);
            }
            for id in 0..=u8::MAX {
                prop_assert_eq!(ended.contains(JobId(base + u64::from(id))), ids.contains(&id));
            }
        }
    }
}
