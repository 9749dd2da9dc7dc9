//! Values of a file, quoted in a message.

use std::fmt;

/// Shows a value between backticks: on one line, without control characters, cut if it is long.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

/// The same without backticks, for keys within a path.
pub(crate) struct Shown<'a>(pub(crate) &'a str);

/// The most characters shown.
const LONGEST: usize = 40;

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", Shown(self.0))
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars().take(LONGEST) {
            if letter.is_control() {
                write!(f, "{}", letter.escape_default())?;
            } else {
                write!(f, "{letter}")?;
            }
        }
        f.write_str(if self.0.chars().nth(LONGEST).is_some() { "…" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_on_one_short_line() {
        assert_eq!(Quoted("a b").to_string(), "`a b`");
        assert_eq!(Quoted("a\nb\u{1b}[1m").to_string(), "`a\\nb\\u{1b}[1m`");
        assert_eq!(Quoted(&"x".repeat(40)).to_string(), format!("`{}`", "x".repeat(40)));
        assert_eq!(Quoted(&"x".repeat(41)).to_string(), format!("`{}…`", "x".repeat(40)));
    }
}
