//! Which examples come next: a shuffled pass over the data after another, whatever the number of replicas.

use std::ops::Range;

use pollux_model::{BatchPlan, Placement, Random};

/// Deals examples by position, the count of samples that all replicas together have consumed since training began.
///
/// Position `p` lies in pass `p / n`, whose order follows from the seed and that number alone. So a position says all
/// there is to save, and any number of replicas goes on from it.
#[derive(Clone, Debug)]
pub struct Sampler {
    n_examples: usize,
    seed: u64,
    /// The order of the pass that was asked for last.
    pass: Option<(u64, Vec<usize>)>,
}

impl Sampler {
    /// Deals so many examples, in orders that follow from `seed`.
    pub fn new(n_examples: usize, seed: u64) -> Self {
        Self { n_examples, seed, pass: None }
    }

    /// The examples at these positions.
    pub fn examples(&mut self, positions: Range<u64>) -> Vec<usize> {
        let n = (self.n_examples as u64).max(1);
        positions
            .map(|position| {
                let order = self.order(position / n);
                #[expect(clippy::cast_possible_truncation, reason = "below the number of examples")]
                let index = (position % n) as usize;
                order.get(index).copied().unwrap_or(0)
            })
            .collect()
    }

    fn order(&mut self, pass: u64) -> &[usize] {
        let known = self.pass.take().filter(|(number, _)| *number == pass);
        let (n_examples, seed) = (self.n_examples, self.seed);
        let known = known.unwrap_or_else(|| {
            let mut order: Vec<usize> = (0..n_examples).collect();
            Random::stream(seed, pass).shuffle(&mut order);
            (pass, order)
        });
        &self.pass.insert(known).1
    }
}

/// The positions of one micro-batch (`pass` from 0 to the plan's accumulation steps) of the replica of this rank, in a
/// step that begins at `start`. All of them together are the `global` positions from `start`, each once.
///
/// ```
/// use pollux_model::{BatchPlan, GlobalBatch, Placement};
/// use pollux_trainer::sampler::micro_batch;
///
/// let placement = Placement::new(1, 3).unwrap();
/// let plan = BatchPlan::split(GlobalBatch(128), placement, 0).unwrap();
/// let shares: Vec<_> = (0..3).map(|rank| micro_batch(plan, placement, 1_000, rank, 0)).collect();
/// assert_eq!(shares, [1_000..1_043, 1_043..1_086, 1_086..1_128]);
/// ```
pub fn micro_batch(plan: BatchPlan, placement: Placement, start: u64, rank: u32, pass: u32) -> Range<u64> {
    let ranks: u64 = (0..rank).map(|rank| plan.replica_share(placement, rank)).sum();
    let passes: u64 = (0..pass).map(|pass| plan.micro_batch(placement, rank, pass)).sum();
    let first = start + ranks + passes;
    first..first + plan.micro_batch(placement, rank, pass)
}

#[cfg(test)]
mod tests {
    use pollux_model::GlobalBatch;
    use proptest::prelude::*;

    use super::*;

    /// What all replicas of a step see, in the order of ranks and passes.
    fn step(sampler: &mut Sampler, plan: BatchPlan, placement: Placement, start: u64) -> Vec<usize> {
        let mut seen = Vec::new();
        for rank in 0..placement.n_replicas() {
            for pass in 0..=plan.accum_steps() {
                seen.extend(sampler.examples(micro_batch(plan, placement, start, rank, pass)));
            }
        }
        seen
    }

    proptest! {
        #[test]
        fn resizes_lose_no_sample_and_repeat_none(
            seed: u64,
            n_examples in 1_usize..60,
            steps in prop::collection::vec((1_u64..100, 1_u32..9, 0_u32..4), 1..40),
        ) {
            let mut seen = Vec::new();
            let mut position = 0;
            for (batch, n_replicas, accum_steps) in steps {
                let placement = Placement::new(1, n_replicas).unwrap();
                let Some(plan) = BatchPlan::split(GlobalBatch(batch), placement, accum_steps) else { continue };
                // A resize begins with a sampler that knows nothing but the position.
                let mut sampler = Sampler::new(n_examples, seed);
                seen.extend(step(&mut sampler, plan, placement, position));
                position += batch;
            }
            prop_assert_eq!(seen.len() as u64, position);
            for pass in seen.chunks_exact(n_examples) {
                let mut pass = pass.to_vec();
                pass.sort_unstable();
                prop_assert_eq!(pass, (0..n_examples).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn passes_differ_and_seeds_differ() {
        let order = |seed, pass: u64| Sampler::new(50, seed).examples(50 * pass..50 * pass + 50);
        assert_eq!(order(1, 0), order(1, 0));
        assert_ne!(order(1, 0), order(1, 1));
        assert_ne!(order(1, 0), order(2, 0));
    }
}
