//! Numbers as they stand in files: what may be read, and what JSON has no number for.

use std::fmt;

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Numbers of which only some are read. Any may be written: there is one place to refuse them.
macro_rules! checked {
    ($($(#[$doc:meta])* $name:ident($of:ty), $expected:literal, $check:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
        pub(crate) struct $name(pub(crate) $of);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let check: fn($of) -> bool = $check;
                let number = <$of>::deserialize(deserializer)?;
                let refused = || D::Error::custom(format_args!("`{number:?}` is not {}", $expected));
                check(number).then_some(Self(number)).ok_or_else(refused)
            }
        }
    )*};
}

checked! {
    NotNegative(f64), "a number, zero or more", |number| number >= 0.0;
    Positive(f64), "a number above zero", |number| number > 0.0;
    Share(f64), "a number from 0 to 1", |number| (0.0..=1.0).contains(&number);
    /// A logarithm of seconds. Those of all positive numbers lie in this range.
    LogSecs(f64), "the logarithm of a time", |number| number.abs() <= 746.0;
    AtLeastOne(u32), "a whole number, 1 or more", |count| count >= 1;
    /// Goes up one by one, so that it never gets near the end of its range, where adding fails.
    Count(u64), "a whole number up to 2^53", |count| count <= 1 << 53;
    /// The same, for counts that begin anew again and again.
    SmallCount(u32), "a whole number up to 2^31", |count| count <= 1 << 31;
}

/// JSON has no infinity: an objective or error too large for a number is null, as in a fit file.
pub(crate) mod or_infinite {
    use super::{Deserialize as _, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(crate) fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        if number.is_finite() {
            serializer.serialize_f64(*number)
        } else if *number == f64::INFINITY {
            serializer.serialize_none()
        } else {
            // Not a number at all: to be refused when read.
            serializer.collect_str(number)
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
    }
}

/// Any float. JSON has no infinities: those, and what is no number, are words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Float(pub(crate) f64);

impl PartialEq for Float {
    /// Bit for bit, so that what is no number equals itself.
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Serialize for Float {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            number if number.is_finite() => serializer.serialize_f64(number),
            number if number.is_nan() => serializer.serialize_str("nan"),
            number if number > 0.0 => serializer.serialize_str("inf"),
            _ => serializer.serialize_str("-inf"),
        }
    }
}

impl<'de> Deserialize<'de> for Float {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyFloat).map(Self)
    }
}

struct AnyFloat;

impl Visitor<'_> for AnyFloat {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, `inf`, `-inf` or `nan`")
    }

    fn visit_f64<E>(self, number: f64) -> Result<f64, E> {
        Ok(number)
    }

    fn visit_u64<E>(self, number: u64) -> Result<f64, E> {
        Ok(number as f64)
    }

    fn visit_i64<E>(self, number: i64) -> Result<f64, E> {
        Ok(number as f64)
    }

    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<f64, E> {
        match word {
            "inf" => Ok(f64::INFINITY),
            "-inf" => Ok(f64::NEG_INFINITY),
            "nan" => Ok(f64::NAN),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(word), &self)),
        }
    }
}
