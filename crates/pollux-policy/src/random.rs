//! A small seeded generator: the same draws on every machine.

/// The xoshiro256++ generator of Blackman and Vigna, its state filled by SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    /// All draws follow from `seed`. Neighbouring seeds give unrelated draws.
    pub(crate) fn seeded(seed: u64) -> Self {
        let mut at = seed;
        Self { state: std::array::from_fn(|_| split_mix(&mut at)) }
    }

    /// One of several generators that follow from one seed.
    pub(crate) fn stream(seed: u64, number: u64) -> Self {
        let mut at = number;
        Self::seeded(seed ^ split_mix(&mut at))
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let drawn = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        drawn
    }

    /// Uniform in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// True with this probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Uniform in `0..n`; 0 where `n` is 0.
    ///
    /// The product's upper half is off from uniform by less than `n / 2^64`, which nobody will notice.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "below n, which is a usize")]
        let drawn = ((u128::from(self.bits()) * n as u128) >> 64) as usize;
        drawn
    }

    /// Puts the items in random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

fn split_mix(at: &mut u64) -> u64 {
    *at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *at;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // From the authors' C code with the state 1, 2, 3, 4.
    fn the_first_draws_are_those_of_the_reference() {
        let mut random = Random { state: [1, 2, 3, 4] };
        let drawn: Vec<u64> = (0..4).map(|_| random.bits()).collect();
        assert_eq!(drawn, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn draws_are_even() {
        let mut random = Random::seeded(7);
        let mut counts = [0_u32; 10];
        for _ in 0..10_000 {
            counts[random.below(10)] += 1;
        }
        assert!(counts.iter().all(|count| (880..1_120).contains(count)), "{counts:?}");
        let hits = (0..10_000).filter(|_| random.chance(0.25)).count();
        assert!((2_350..2_650).contains(&hits), "{hits}");
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
    }

    #[test]
    fn shuffling_loses_nothing_and_depends_on_the_seed_alone() {
        let shuffled = |seed| {
            let mut items: Vec<u32> = (0..20).collect();
            Random::seeded(seed).shuffle(&mut items);
            items
        };
        assert_eq!(shuffled(1), shuffled(1));
        assert_ne!(shuffled(1), shuffled(2));
        let mut sorted = shuffled(1);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<_>>());
    }
}
