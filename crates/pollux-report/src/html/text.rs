//! A paragraph: text, code and links.

use std::fmt;

use crate::text::Escaped;

/// Text with some of it set as code or leading elsewhere.
///
/// What stands between backticks becomes code; all else is taken as it is.
///
/// ```
/// use pollux_report::Text;
///
/// let text = Text::from("run `pollux plan`, or see ").link("the guide", "docs/plan.md").plain(".");
/// assert_eq!(text.to_html(), "run <code>pollux plan</code>, or see <a href=\"docs/plan.md\">the guide</a>.");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Plain(String),
    Code(String),
    Link { text: String, to: String },
}

impl Text {
    /// Adds text in which even backticks are only backticks: names that others chose.
    #[must_use]
    pub fn plain(self, text: impl Into<String>) -> Self {
        self.with(Piece::Plain(text.into()))
    }

    /// Adds code.
    #[must_use]
    pub fn code(self, text: impl Into<String>) -> Self {
        self.with(Piece::Code(text.into()))
    }

    /// Adds a link to a page (`https:`), a file beside this one, or a place on it (`#`). Other addresses stay text.
    #[must_use]
    pub fn link(self, text: impl Into<String>, to: impl Into<String>) -> Self {
        self.with(Piece::Link { text: text.into(), to: to.into() })
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As HTML, escaped.
    pub fn to_html(&self) -> String {
        self.to_string()
    }

    fn with(mut self, piece: Piece) -> Self {
        self.0.push(piece);
        self
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('`')
            && let Some((code, after)) = after.split_once('`')
        {
            if !before.is_empty() {
                pieces.push(Piece::Plain(before.to_owned()));
            }
            pieces.push(Piece::Code(code.to_owned()));
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Plain(rest.to_owned()));
        }
        Self(pieces)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.0 {
            match piece {
                Piece::Code(text) => write!(f, "<code>{}</code>", Escaped(text))?,
                Piece::Link { text, to } if is_harmless(to) => {
                    write!(f, "<a href=\"{}\">{}</a>", Escaped(to), Escaped(text))?;
                }
                Piece::Plain(text) | Piece::Link { text, .. } => write!(f, "{}", Escaped(text))?,
            }
        }
        Ok(())
    }
}

/// Whether an address leads to a page or a file, and runs nothing.
fn is_harmless(to: &str) -> bool {
    let scheme = to.split(['/', '?', '#']).next().unwrap_or_default();
    !scheme.contains(':') || to.starts_with("https://") || to.starts_with("http://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(Text::from(text).to_html(), expected);
    }

    #[test]
    fn backticks_make_code_where_there_are_two() {
        check("a `b<c` d `e", "a <code>b&lt;c</code> d `e");
        check("``", "<code></code>");
        check("", "");
    }

    #[test]
    fn links_run_nothing() {
        let link = |to: &str| Text::default().link("x", to).to_html();
        assert_eq!(link("javascript:alert(1)"), "x");
        assert_eq!(link("data:text/html,a"), "x");
        assert_eq!(link("data/a:b.csv"), "<a href=\"data/a:b.csv\">x</a>");
        assert_eq!(link("https://example.com/\"a"), "<a href=\"https://example.com/&quot;a\">x</a>");
        assert_eq!(link("#fig"), "<a href=\"#fig\">x</a>");
    }
}
