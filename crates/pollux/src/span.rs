//! Ranges on the command line.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// Whole numbers from 1, both ends included: `1..64`, or `8` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    first: u32,
    last: u32,
}

impl Span {
    pub(crate) fn first(self) -> u32 {
        self.first
    }

    pub(crate) fn last(self) -> u32 {
        self.last
    }

    pub(crate) fn numbers(self) -> RangeInclusive<u32> {
        self.first..=self.last
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        // Those who know Rust write `1..=64`, which is what `1..64` means here.
        let (first, last) = (number(first)?, number(last.strip_prefix('=').unwrap_or(last))?);
        if first > last {
            return Err(format!("it ends at {last}, before it begins at {first}"));
        }
        Ok(Self { first, last })
    }
}

fn number(text: &str) -> Result<u32, String> {
    match text.trim().parse() {
        Ok(0) => Err("numbers start at 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("write a range such as `1..64`, or one whole number".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(u32, u32), &str>) {
        let found = text.parse().map(|span: Span| (span.first(), span.last()));
        assert_eq!(found, expected.map_err(str::to_owned), "{text:?}");
    }

    #[test]
    fn both_ends_are_included() {
        check("1..64", Ok((1, 64)));
        check("1..=64", Ok((1, 64)));
        check("8", Ok((8, 8)));
        check(" 8 .. 16 ", Ok((8, 16)));
        assert_eq!(Span { first: 2, last: 4 }.numbers().collect::<Vec<_>>(), [2, 3, 4]);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        let advice = Err("write a range such as `1..64`, or one whole number");
        for text in ["", "..", "1..", "..4", "1-64", "1,2", "-1..4", "1.5", "4294967296", "1..2..3"] {
            check(text, advice);
        }
        check("0..4", Err("numbers start at 1"));
        check("8..4", Err("it ends at 4, before it begins at 8"));
    }
}
