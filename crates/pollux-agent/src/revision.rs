//! When there is something new for a fit to learn.

use crate::profile::ProfileEntry;

/// What a fit was made from, as two fingerprints that fit into one number: of the configurations, of the steps
/// each was timed for (as long as its weight still grows) and of its times, rounded to one grid and to another
/// half a cell off.
///
/// A time that moved by a cell is in another one of both grids; one that trembles at the edge of a cell is in the
/// middle of the other grid's. So there is something to learn when both fingerprints are different.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Revision([u64; 2]);

/// Width of a cell, in logarithms: a lasting change of step time by 1.5 to 3 % is learned.
const CELL: f64 = 0.03;
/// Steps after which an entry's weight grows no more that it matters.
const FULL_WEIGHT_STEPS: u64 = 64;
/// Bits of each fingerprint: both together are a whole number that every reader of JSON keeps.
const REVISION_BITS: u32 = 26;

impl Revision {
    /// As it is stored.
    pub(crate) fn number(self) -> u64 {
        self.0[0] << REVISION_BITS | self.0[1]
    }

    /// Whether a fit of this would learn nothing that one of `fitted` did not.
    pub(crate) fn is_known_to(self, fitted: u64) -> bool {
        let low = (1 << REVISION_BITS) - 1;
        fitted >> REVISION_BITS == self.0[0] || fitted & low == self.0[1]
    }

    /// Adds one configuration, in the order of the profile.
    pub(crate) fn add(&mut self, entry: &ProfileEntry) {
        let steps = u64::from(entry.n_steps.clamp(1, FULL_WEIGHT_STEPS).ilog2());
        for (fingerprint, offset) in self.0.iter_mut().zip([0.0, 0.5]) {
            #[expect(clippy::cast_possible_truncation, reason = "logarithms of times are below 750")]
            let cell = |log_secs: f64| ((log_secs / CELL + offset).floor() as i64).cast_unsigned();
            for part in [steps, cell(entry.log_compute), cell(entry.log_optim)] {
                *fingerprint = mixed(*fingerprint ^ part) >> (64 - REVISION_BITS);
            }
        }
    }
}

/// Every bit of the number in every high bit of the result: two rounds of multiplication by the golden ratio.
fn mixed(number: u64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let once = number.wrapping_add(GOLDEN).wrapping_mul(GOLDEN);
    (once ^ once >> 32).wrapping_mul(GOLDEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries of so many steps and such times.
    fn revision(entries: &[(u64, f64)]) -> Revision {
        let mut revision = Revision::default();
        for &(n_steps, secs) in entries {
            let log_secs = libm::log(secs);
            revision.add(&ProfileEntry {
                n_steps,
                log_compute: log_secs,
                log_optim: log_secs,
                ..Default::default()
            });
        }
        revision
    }

    fn check_known(fitted: &[(u64, f64)], now: &[(u64, f64)], known: bool) {
        assert_eq!(revision(now).is_known_to(revision(fitted).number()), known, "{fitted:?} and {now:?}");
    }

    #[test]
    fn configurations_and_their_first_steps_are_new() {
        check_known(&[(100, 0.1)], &[(100, 0.1), (1, 0.2)], false);
        check_known(&[(100, 0.1)], &[(1, 0.2), (100, 0.1)], false);
        check_known(&[(4, 0.1)], &[(8, 0.1)], false);
        check_known(&[(63, 0.1)], &[(64, 0.1)], false);
        check_known(&[(64, 0.1)], &[(1_000_000, 0.1)], true);
    }

    #[test]
    fn what_moves_by_less_than_half_a_cell_is_known_wherever_it_lies() {
        for step in 0..1_000 {
            let secs = libm::exp(0.01 * f64::from(step) - 5.0);
            check_known(&[(100, secs)], &[(100, secs * 1.014)], true);
            check_known(&[(100, secs)], &[(100, secs / 1.014)], true);
            check_known(&[(100, secs)], &[(100, secs * 1.031)], false);
            check_known(&[(100, 0.3), (100, secs)], &[(100, 0.3), (100, secs / 1.031)], false);
        }
    }

    #[test]
    fn it_is_a_number_that_every_reader_of_json_keeps() {
        let number = revision(&[(1, 0.1), (2, 1e-9), (3, 1e9)]).number();
        assert!(number < 1 << 53);
    }
}
