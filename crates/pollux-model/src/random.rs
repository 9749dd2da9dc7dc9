//! A small seeded generator: the same draws on every machine, which no crate of the field promises over its versions.

/// The xoshiro256++ generator of Blackman and Vigna, its state filled by SplitMix64.
///
/// ```
/// use pollux_model::Random;
///
/// let first = |seed| Random::seeded(seed).bits();
/// assert_eq!(first(7), first(7));
/// assert_ne!(first(7), first(8));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// All draws follow from `seed`. Neighbouring seeds give unrelated draws.
    pub fn seeded(seed: u64) -> Self {
        let mut at = seed;
        Self { state: std::array::from_fn(|_| split_mix(&mut at)) }
    }

    /// One of several generators that follow from one seed.
    pub fn stream(seed: u64, number: u64) -> Self {
        let mut at = number;
        Self::seeded(seed ^ split_mix(&mut at))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let drawn = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        drawn
    }

    /// Uniform in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform between two numbers.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Uniform in `0..n`; 0 where `n` is 0.
    ///
    /// The product's upper half is off from uniform by less than `n / 2^64`, which nobody will notice.
    pub fn below(&mut self, n: usize) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "below n, which is a usize")]
        let drawn = ((u128::from(self.bits()) * n as u128) >> 64) as usize;
        drawn
    }

    /// Puts the items in random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// One of several by their weights, and how far into it the draw fell, in `[0, 1)`.
    ///
    /// The second number is uniform, whichever was drawn: a second draw for free. Weights are 0 or more and need not
    /// add up to 1. `None` where no weight is positive.
    ///
    /// ```
    /// use pollux_model::Random;
    ///
    /// let mut random = Random::seeded(7);
    /// assert!(matches!(random.weighted(&[0.0, 2.0]), Some((1, within)) if (0.0..1.0).contains(&within)));
    /// assert_eq!(random.weighted(&[0.0]), None);
    /// ```
    pub fn weighted(&mut self, weights: &[f64]) -> Option<(usize, f64)> {
        let mut rest = self.unit() * weights.iter().sum::<f64>();
        let mut last = None;
        for (index, &weight) in weights.iter().enumerate().filter(|&(_, &weight)| weight > 0.0) {
            if rest < weight {
                return Some((index, rest / weight));
            }
            rest -= weight;
            // Rounding may carry the draw past the end: then it belongs to the last.
            last = Some((index, 0.0));
        }
        last
    }

    /// Normal with mean 0 and standard deviation 1, by the method of Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential(1.0));
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }

    /// Exponential with this mean: the time to the next of many independent arrivals.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // `1 - unit` is never 0, so the logarithm is finite.
        -mean * libm::log(1.0 - self.unit())
    }
}

/// A number from which every bit of another follows, and which tells nothing of it: neighbours become strangers.
pub fn scramble(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// SplitMix64.
fn split_mix(at: &mut u64) -> u64 {
    *at = at.wrapping_add(GOLDEN);
    scramble(*at)
}

/// 2^64 over the golden ratio: multiples of it are spread evenly.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

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

    #[test] // A published test value.
    fn seeds_are_mixed_as_published() {
        assert_eq!(split_mix(&mut 0), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn weights_are_heeded() {
        let mut random = Random::seeded(7);
        let mut counts = [0_u32; 3];
        let mut sum = 0.0;
        for _ in 0..10_000 {
            let (index, within) = random.weighted(&[1.0, 0.0, 3.0]).unwrap();
            counts[index] += 1;
            sum += within;
        }
        assert!((2_350..2_650).contains(&counts[0]) && counts[1] == 0, "{counts:?}");
        assert!((4_850.0..5_150.0).contains(&sum), "{sum}");
        assert_eq!(random.weighted(&[]), None);
    }

    /// Mean and standard deviation of 10,000 draws, within 4 standard errors (of the mean) and 5 %.
    fn check_moments(mut draw: impl FnMut(&mut Random) -> f64, mean: f64, deviation: f64) {
        let mut random = Random::seeded(8);
        let draws: Vec<f64> = (0..10_000).map(|_| draw(&mut random)).collect();
        let found = draws.iter().sum::<f64>() / 10_000.0;
        assert!((found - mean).abs() < 0.04 * deviation, "mean {found}");
        let variance = draws.iter().map(|draw| (draw - found) * (draw - found)).sum::<f64>() / 10_000.0;
        let ratio = libm::sqrt(variance) / deviation;
        assert!((0.95..1.05).contains(&ratio), "deviation off by {ratio}");
    }

    #[test] // A uniform draw over a width w deviates by w / sqrt(12).
    fn distributions_have_their_moments() {
        check_moments(Random::normal, 0.0, 1.0);
        check_moments(|random| random.exponential(20.0), 20.0, 20.0);
        check_moments(|random| random.uniform(10.0, 22.0), 16.0, libm::sqrt(12.0));
    }

    #[test] // 68 % of a normal distribution lie within one deviation, 95 % within two.
    fn normal_draws_have_a_bell() {
        let mut random = Random::seeded(9);
        let draws: Vec<f64> = (0..10_000).map(|_| random.normal().abs()).collect();
        let within = |limit: f64| draws.iter().filter(|&&draw| draw < limit).count();
        assert!((6_650..7_000).contains(&within(1.0)), "{}", within(1.0));
        assert!((9_450..9_640).contains(&within(2.0)), "{}", within(2.0));
    }
}
