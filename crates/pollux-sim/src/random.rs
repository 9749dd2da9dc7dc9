//! Where chance in a simulation comes from.
//!
//! Every part that draws has a stream of its own, named by its purpose. So no part shares numbers with another, and
//! drawing more in one changes nothing in the rest.

use pollux_model::Random;
use pollux_model::random::{GOLDEN, scramble};

/// The stream of one purpose.
///
/// ```
/// use pollux_sim::random::stream;
///
/// let first = |seed, purpose| stream(seed, purpose).bits();
/// assert_eq!(first(7, "arrivals"), first(7, "arrivals"));
/// assert_ne!(first(7, "arrivals"), first(7, "noise"));
/// assert_ne!(first(7, "arrivals"), first(8, "arrivals"));
/// ```
pub fn stream(seed: u64, purpose: &str) -> Random {
    numbered(seed, purpose, 0)
}

/// The stream of one of several that share a purpose, such as job `number`.
pub fn numbered(seed: u64, purpose: &str, number: u64) -> Random {
    // Each part is mixed into what came before, so that neither order nor neighbouring values cancel out.
    let mixed = |value: u64| scramble(value.wrapping_add(GOLDEN));
    Random::seeded(mixed(mixed(seed) ^ hash(purpose)) ^ number)
}

/// FNV-1a: short, and the same everywhere, which the standard library's hash does not promise.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // Published test values.
    fn purposes_are_hashed_as_published() {
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn streams_share_no_numbers() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..10 {
            for purpose in ["", "a", "b", "ab", "ba"] {
                for number in 0..10 {
                    let mut random = numbered(seed, purpose, number);
                    assert!((0..10).all(|_| seen.insert(random.bits())), "{seed} {purpose} {number}");
                }
            }
        }
        assert_eq!(stream(3, "a"), numbered(3, "a", 0));
    }
}
