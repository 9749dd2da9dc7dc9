//! Which GPU of which node is held by which run.

use std::collections::{BTreeMap, BTreeSet};

use super::run::{RunId, Share};

/// Why GPUs cannot be given; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlotsError {
    /// No such node.
    #[error("there is no node named `{0}`")]
    NoSuchNode(String),
    /// Fewer are free.
    #[error("{wanted} GPUs of `{node}` are wanted, {free} are free; wait until others have left")]
    TooFew {
        /// The node.
        node: String,
        /// How many are wanted.
        wanted: u32,
        /// How many are free and healthy.
        free: u32,
    },
    /// Somebody else has this one.
    #[error("GPU {index} of `{node}` is held by run {holder}, so run {run} cannot have it")]
    Held {
        /// The node.
        node: String,
        /// The GPU.
        index: u32,
        /// Who has it.
        holder: RunId,
        /// Who wanted it.
        run: RunId,
    },
    /// The run has GPUs already.
    #[error("run {0} holds GPUs already")]
    HoldsAlready(RunId),
}

/// All GPUs and their holders. A GPU has one holder at most.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    /// The indices of each node's GPUs.
    nodes: BTreeMap<String, Vec<u32>>,
    unhealthy: BTreeSet<(String, u32)>,
    held: BTreeMap<(String, u32), RunId>,
}

impl Slots {
    /// Nodes by name and the indices of their GPUs, all free.
    pub fn new(nodes: impl IntoIterator<Item = (String, Vec<u32>)>) -> Self {
        Self { nodes: nodes.into_iter().collect(), ..Self::default() }
    }

    /// Chooses GPUs for a run, the lowest free indices of each node, all or nothing.
    ///
    /// The answer has the order of the question.
    pub fn take(&mut self, run: RunId, shares: &[Share]) -> Result<Vec<Vec<u32>>, SlotsError> {
        if self.held.values().any(|holder| *holder == run) {
            return Err(SlotsError::HoldsAlready(run));
        }
        let mut taken: BTreeMap<(String, u32), RunId> = BTreeMap::new();
        let mut chosen = Vec::new();
        for share in shares {
            let indices =
                self.nodes.get(&share.node).ok_or_else(|| SlotsError::NoSuchNode(share.node.clone()))?;
            let is_free = |index: &u32| {
                let slot = (share.node.clone(), *index);
                !self.held.contains_key(&slot)
                    && !self.unhealthy.contains(&slot)
                    && !taken.contains_key(&slot)
            };
            let free: Vec<u32> = indices.iter().copied().filter(is_free).collect();
            let n = usize::try_from(share.gpus).unwrap_or(usize::MAX);
            let Some(picked) = free.get(..n) else {
                let free = u32::try_from(free.len()).unwrap_or(u32::MAX);
                return Err(SlotsError::TooFew { node: share.node.clone(), wanted: share.gpus, free });
            };
            taken.extend(picked.iter().map(|index| ((share.node.clone(), *index), run)));
            chosen.push(picked.to_vec());
        }
        self.held.append(&mut taken);
        Ok(chosen)
    }

    /// Notes what a run found again holds, also GPUs that are no longer known; all or nothing.
    pub fn hold<'a>(
        &mut self,
        run: RunId,
        slots: impl IntoIterator<Item = (&'a str, u32)>,
    ) -> Result<(), SlotsError> {
        let slots: Vec<(String, u32)> =
            slots.into_iter().map(|(node, index)| (node.to_owned(), index)).collect();
        for slot in &slots {
            if let Some(holder) = self.held.get(slot).filter(|holder| **holder != run) {
                let (node, index) = slot.clone();
                return Err(SlotsError::Held { node, index, holder: *holder, run });
            }
        }
        self.held.extend(slots.into_iter().map(|slot| (slot, run)));
        Ok(())
    }

    /// Frees all that a run holds.
    pub fn free(&mut self, run: RunId) {
        self.held.retain(|_, holder| *holder != run);
    }

    /// Says whether a GPU may be given; who holds it keeps it either way.
    pub fn set_healthy(&mut self, node: &str, index: u32, healthy: bool) {
        let slot = (node.to_owned(), index);
        if healthy {
            self.unhealthy.remove(&slot);
        } else {
            self.unhealthy.insert(slot);
        }
    }

    /// Everything held: node, index, holder; in order.
    pub fn held(&self) -> impl Iterator<Item = (&str, u32, RunId)> {
        self.held.iter().map(|((node, index), run)| (node.as_str(), *index, *run))
    }
}

#[cfg(test)]
mod tests {
    use pollux_core::Generation;
    use pollux_model::JobId;
    use proptest::prelude::*;

    use super::*;

    fn run(job: u64) -> RunId {
        RunId::new(JobId(job), Generation(1))
    }

    fn shares(of: &[(&str, u32)]) -> Vec<Share> {
        of.iter().map(|(node, gpus)| Share { node: (*node).to_owned(), gpus: *gpus }).collect()
    }

    /// Two nodes, `a` with four GPUs and `b` with two.
    fn slots() -> Slots {
        Slots::new([("a".to_owned(), vec![0, 1, 2, 3]), ("b".to_owned(), vec![0, 1])])
    }

    fn check(slots: &mut Slots, job: u64, of: &[(&str, u32)], expected: Result<&[&[u32]], &str>) {
        let held = slots.held.clone();
        match (slots.take(run(job), &shares(of)), expected) {
            (Ok(taken), Ok(expected)) => assert_eq!(taken, expected),
            (Err(error), Err(part)) => {
                assert!(error.to_string().contains(part), "{error}");
                assert_eq!(slots.held, held, "a refusal changes nothing");
            }
            (taken, expected) => panic!("{taken:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn the_lowest_free_ones_are_given() {
        let mut slots = slots();
        check(&mut slots, 1, &[("a", 2)], Ok(&[&[0, 1]]));
        check(&mut slots, 2, &[("b", 1), ("a", 1)], Ok(&[&[0], &[2]]));
        slots.free(run(1));
        check(&mut slots, 3, &[("a", 3)], Ok(&[&[0, 1, 3]]));
    }

    #[test]
    fn what_cannot_be_given_is_refused_whole() {
        let mut slots = slots();
        check(&mut slots, 1, &[("a", 3), ("b", 3)], Err("3 GPUs of `b` are wanted, 2 are free"));
        check(&mut slots, 1, &[("c", 1)], Err("no node named `c`"));
        check(&mut slots, 1, &[("a", 3), ("a", 3)], Err("1 are free"));
        check(&mut slots, 1, &[("a", 4)], Ok(&[&[0, 1, 2, 3]]));
        check(&mut slots, 1, &[("b", 1)], Err("run 1.1 holds GPUs already"));
    }

    #[test]
    fn a_sick_gpu_is_not_given_until_it_is_well() {
        let mut slots = slots();
        slots.set_healthy("b", 0, false);
        check(&mut slots, 1, &[("b", 2)], Err("1 are free"));
        slots.set_healthy("b", 0, true);
        check(&mut slots, 1, &[("b", 2)], Ok(&[&[0, 1]]));
    }

    #[test]
    fn what_is_found_again_is_held_even_if_unknown() {
        let mut slots = slots();
        slots.hold(run(1), [("a", 0), ("gone", 9)]).unwrap();
        slots.hold(run(1), [("a", 0), ("gone", 9)]).unwrap();
        let error = slots.hold(run(2), [("b", 0), ("a", 0)]).unwrap_err().to_string();
        assert_eq!(error, "GPU 0 of `a` is held by run 1.1, so run 2.1 cannot have it");
        assert_eq!(slots.held().count(), 2);
        check(&mut slots, 2, &[("a", 1)], Ok(&[&[1]]));
    }

    proptest! {
        #[test] // Whatever is taken, found again and freed: the runs' own notes never overlap.
        fn no_gpu_has_two_holders(steps in prop::collection::vec((0_u64..6, 0_u32..5, 0_u32..3, 0_u8..4), 0..60)) {
            let mut slots = slots();
            let mut notes: BTreeMap<RunId, BTreeSet<(String, u32)>> = BTreeMap::new();
            for (job, a, b, what) in steps {
                let run = run(job);
                match what {
                    0 => {
                        slots.free(run);
                        notes.remove(&run);
                    }
                    1 => {
                        if slots.hold(run, [("a", a), ("b", b)]).is_ok() {
                            notes.entry(run).or_default().extend([("a".to_owned(), a), ("b".to_owned(), b)]);
                        }
                    }
                    _ => {
                        let wanted = shares(&[("a", a), ("b", b)]);
                        if let Ok(taken) = slots.take(run, &wanted) {
                            let got = wanted.iter().zip(&taken);
                            prop_assert!(got.clone().all(|(share, slots)| slots.len() == share.gpus as usize));
                            let got = got.flat_map(|(share, slots)| slots.iter().map(|slot| (share.node.clone(), *slot)));
                            notes.entry(run).or_default().extend(got);
                        }
                    }
                }
                let noted: usize = notes.values().map(BTreeSet::len).sum();
                let distinct: BTreeSet<_> = notes.values().flatten().collect();
                prop_assert_eq!(noted, distinct.len());
                prop_assert_eq!(noted, slots.held().count());
            }
        }
    }
}
