//! Quantities with units. Throughput times efficiency is goodput, and nothing else is.

use std::ops::{Div, Mul};

macro_rules! non_negative {
    ($(#[$doc:meta])* $name:ident, $getter:ident, $unit:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
        pub struct $name(f64);

        impl $name {
            #[doc = concat!("From ", $unit, "; what is negative or not a number counts as zero.")]
            pub fn new(value: f64) -> Self {
                Self(if value > 0.0 { value } else { 0.0 })
            }

            #[doc = concat!("In ", $unit, ".")]
            pub fn $getter(self) -> f64 {
                self.0
            }
        }
    };
}

non_negative!(
    /// Samples processed per second.
    Throughput, samples_per_sec, "samples per second"
);
non_negative!(
    /// Progress per sample relative to the initial batch size; in `(0, 1]` for batches at least that.
    Efficiency, ratio, "a ratio"
);
non_negative!(
    /// Useful samples per second: throughput times efficiency, obtainable in no other way.
    Goodput, useful_samples_per_sec, "useful samples per second"
);
non_negative!(
    /// Best goodput over that of a reference allocation.
    Speedup, ratio, "a ratio"
);

impl Mul<Efficiency> for Throughput {
    type Output = Goodput;
    fn mul(self, efficiency: Efficiency) -> Goodput {
        Goodput::new(self.0 * efficiency.0)
    }
}

impl Div for Goodput {
    type Output = Speedup;
    /// Zero over zero is no speed-up.
    fn div(self, reference: Goodput) -> Speedup {
        Speedup::new(self.0 / reference.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_counts_as_zero() {
        assert_eq!(Throughput::new(f64::NAN).samples_per_sec().to_bits(), 0);
        assert_eq!(Throughput::new(-1.0).samples_per_sec().to_bits(), 0);
        assert_eq!((Goodput::new(0.0) / Goodput::new(0.0)).ratio().to_bits(), 0);
    }
}
