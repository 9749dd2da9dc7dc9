//! Text in SVG: escaping, and how much room it takes.

use std::fmt;

/// Advance widths of Noto Sans for the printable ASCII characters, in thousandths of the font size.
/// Most system fonts are a little narrower; [`Font::width`] adds some room for those that are not.
#[rustfmt::skip]
const REGULAR: [u16; 95] = [
    260, 269, 408, 646, 572, 831, 732, 225, 300, 300, 551, 572, 268, 322, 268, 372, 572, 572, 572, 572, 572, 572, 572,
    572, 572, 572, 268, 268, 572, 572, 572, 434, 899, 639, 650, 632, 730, 556, 519, 728, 741, 339, 273, 619, 524, 907,
    760, 781, 605, 781, 622, 549, 556, 731, 600, 930, 586, 566, 572, 329, 372, 329, 572, 444, 580, 561, 615, 480, 615,
    564, 344, 615, 618, 258, 258, 534, 258, 935, 618, 605, 615, 615, 413, 479, 361, 618, 508, 786, 529, 510, 470, 380,
    551, 380, 572,
];
/// The same for its bold face.
#[rustfmt::skip]
const BOLD: [u16; 95] = [
    260, 286, 472, 646, 572, 901, 750, 266, 339, 339, 545, 572, 285, 322, 285, 413, 572, 572, 572, 572, 572, 572, 572,
    572, 572, 572, 285, 285, 572, 572, 572, 477, 897, 690, 672, 637, 740, 560, 549, 724, 765, 389, 331, 664, 565, 943,
    813, 796, 628, 796, 660, 551, 579, 756, 650, 967, 667, 624, 579, 331, 413, 331, 572, 411, 607, 604, 633, 514, 633,
    591, 387, 633, 657, 305, 305, 620, 305, 982, 657, 619, 633, 633, 454, 497, 434, 657, 569, 856, 578, 569, 488, 394,
    551, 394, 572,
];
/// Room for system fonts that are wider than Noto Sans.
const SPARE: f64 = 1.04;

/// The face of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Font {
    pub(crate) size: f64,
    pub(crate) bold: bool,
    pub(crate) colour: &'static str,
}

impl Font {
    /// About how wide `text` is.
    pub(crate) fn width(self, text: &str) -> f64 {
        let widths = if self.bold { &BOLD } else { &REGULAR };
        let thousandths: f64 = text.chars().map(|c| f64::from(advance(widths, c))).sum();
        thousandths / 1_000.0 * self.size * SPARE
    }

    /// `text` in lines no wider than `room`, broken between words, or within one that is too long.
    pub(crate) fn wrap(self, text: &str, room: f64) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut line = String::new();
        for word in text.split_whitespace() {
            if !line.is_empty() && self.width(&line) + self.width(" ") + self.width(word) > room {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            for c in word.chars() {
                if !line.is_empty() && self.width(&line) + self.width(c.encode_utf8(&mut [0; 4])) > room {
                    lines.push(std::mem::take(&mut line));
                }
                line.push(c);
            }
        }
        if !line.is_empty() {
            lines.push(line);
        }
        lines
    }

    /// `text` if it fits into `room`, else its beginning and an ellipsis.
    pub(crate) fn shorten(self, text: &str, room: f64) -> String {
        if self.width(text) <= room {
            return text.to_owned();
        }
        let mut left = room - self.width("…");
        let mut kept: String = text
            .chars()
            .take_while(|c| {
                left -= self.width(c.encode_utf8(&mut [0; 4]));
                left >= 0.0
            })
            .collect();
        kept.truncate(kept.trim_end().len());
        kept.push('…');
        kept
    }
}

/// Text or an attribute value, with what XML reserves escaped and what it forbids replaced.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\t' | '\n' | '\r' => f.write_char(' ')?,
                '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {
                    f.write_char('\u{fffd}')?;
                }
                _ => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Thousandths of the font size that a character moves on.
fn advance(widths: &[u16; 95], c: char) -> u16 {
    match c {
        ' '..='~' => widths[c as usize - ' ' as usize],
        '…' | '—' | '→' => 1_000,
        // Scripts of full-width characters, and pictures.
        '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'.. => 1_050,
        _ => 660,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FONT: Font = Font { size: 10.0, bold: false, colour: "#000" };

    #[test]
    fn reserved_characters_are_escaped_and_forbidden_ones_replaced() {
        assert_eq!(
            Escaped("a < b & \"c\" > 'd'").to_string(),
            "a &lt; b &amp; &quot;c&quot; &gt; &#39;d&#39;"
        );
        assert_eq!(Escaped("tab\tline\nnull\0").to_string(), "tab line null\u{fffd}");
        assert_eq!(Escaped("φ ≥ 1").to_string(), "φ ≥ 1");
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(FONT.wrap("aa bb cc", FONT.width("aa bb") + 0.1), ["aa bb", "cc"]);
        assert_eq!(FONT.wrap("  ", 100.0), Vec::<String>::new());
    }

    #[test]
    fn a_word_that_is_too_long_breaks_inside() {
        let lines = FONT.wrap("a mmmmmmmmmm", 40.0);
        assert_eq!(lines.concat(), "ammmmmmmmmm");
        assert!(lines.len() > 2 && lines.iter().all(|line| FONT.width(line) <= 40.0), "{lines:?}");
    }

    #[test]
    fn what_does_not_fit_ends_in_an_ellipsis() {
        assert_eq!(FONT.shorten("short", 100.0), "short");
        let cut = FONT.shorten("a long name of a series", 60.0);
        assert!(cut.ends_with('…') && FONT.width(&cut) <= 60.0, "{cut}");
    }
}
