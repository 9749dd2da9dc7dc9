//! Seeds on the command line.

use std::fmt;
use std::str::FromStr;

/// Seeds, both ends included: `1..5`, or `7` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seeds {
    first: u64,
    last: u64,
}

/// More than anyone waits for.
const MOST: u64 = 10_000;

impl Seeds {
    pub(crate) fn numbers(self) -> Vec<u64> {
        (self.first..=self.last).collect()
    }
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse().ok();
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        // Those who know Rust write `1..=5`, which is what `1..5` means here.
        let range = number(first).zip(number(last.strip_prefix('=').unwrap_or(last)));
        let (first, last) = range.ok_or("write a range such as `1..5`, or one whole number from 0")?;
        if first > last {
            return Err(format!("it ends at {last}, before it begins at {first}"));
        }
        if last - first >= MOST {
            return Err(format!("more than {MOST} seeds"));
        }
        Ok(Self { first, last })
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last } = self;
        if first == last { write!(f, "seed {first}") } else { write!(f, "seeds {first} to {last}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&[u64], &str>) {
        let found = text.parse().map(Seeds::numbers);
        assert_eq!(found, expected.map(<[u64]>::to_vec).map_err(str::to_owned), "{text:?}");
    }

    #[test]
    fn both_ends_are_included() {
        check("1..3", Ok(&[1, 2, 3]));
        check("0", Ok(&[0]));
        check("7..=7", Ok(&[7]));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["x", "", "1..", "..3", "-1", "1.5", "1,2"] {
            check(text, Err("write a range such as `1..5`, or one whole number from 0"));
        }
        check("5..1", Err("it ends at 1, before it begins at 5"));
        check("1..10001", Err("more than 10000 seeds"));
    }
}
