//! A page of text, tables and charts: data in, one HTML file out.
//!
//! | question | file |
//! | --- | --- |
//! | what is a page made of? | this one |
//! | what is a paragraph, a table? | `text.rs`, `table.rs` |
//! | how does it become HTML? | `render.rs`, with `page.css` and `sort.js` |
//! | how is a chart taken out again? | `read.rs` |

mod read;
mod render;
mod table;
mod text;

pub use read::{Embedded, embedded};
pub use table::{Align, Table};
pub use text::Text;

use crate::chart::Chart;
use crate::csv::Csv;

/// A document, written from top to bottom: what is added goes below what is there.
///
/// The HTML is one file that needs no network and no script: style, charts and the numbers behind them are within. It has
/// light and dark colours, and prints. All text is escaped.
///
/// ```
/// use pollux_report::{Axis, Figure, Page, Panel, Series, Table};
///
/// let panel = Panel::new("", Axis::linear("hours"), Axis::linear("jobs"))
///     .with_series(Series::new("fifo", [(0.0, 3.0), (1.0, 1.0)]));
/// let page = Page::new("Two policies")
///     .section("Results")
///     .text("`pollux` was faster than a < b.")
///     .table(Table::new("Times", ["policy", "hours"]).row(["pollux", "1.0"]).row(["fifo", "2.5"]))
///     .figure("jobs", Figure::new("Jobs in the system").with_panel(panel), "Fewer is better.");
///
/// let html = page.to_html();
/// assert!(html.contains("<code>pollux</code> was faster than a &lt; b."));
/// let (name, csv) = page.files().next().unwrap();
/// assert_eq!((name.as_str(), csv.as_str()), ("data/jobs.csv", "panel,series,hours,jobs\n,fifo,0,3\n,fifo,1,1\n"));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    title: String,
    subtitle: Option<Text>,
    blocks: Vec<Block>,
    footer: Option<Text>,
}

/// A part of a page.
#[derive(Debug, Clone, PartialEq)]
enum Block {
    /// Level 2 is a section, 3 a part of one.
    Heading {
        level: u8,
        id: String,
        text: String,
    },
    Text(Text),
    Note(Text),
    List(Vec<Text>),
    /// Names and what they stand for.
    Facts(Vec<(String, Text)>),
    Code(String),
    Table(Table),
    Figure(Box<Shown>),
}

/// A chart on a page.
#[derive(Debug, Clone, PartialEq)]
struct Shown {
    name: String,
    chart: Chart,
    caption: Text,
    data: Csv,
}

impl Page {
    /// A page with a title alone.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Sets the line below the title.
    #[must_use]
    pub fn subtitle(self, text: impl Into<Text>) -> Self {
        Self { subtitle: Some(text.into()), ..self }
    }

    /// Sets the small print at the end.
    #[must_use]
    pub fn footer(self, text: impl Into<Text>) -> Self {
        Self { footer: Some(text.into()), ..self }
    }

    /// Begins a section, which the contents at the top of the page list.
    #[must_use]
    pub fn section(self, heading: impl Into<String>) -> Self {
        self.heading(2, heading.into())
    }

    /// Begins a part of a section.
    #[must_use]
    pub fn subsection(self, heading: impl Into<String>) -> Self {
        self.heading(3, heading.into())
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn text(self, text: impl Into<Text>) -> Self {
        self.with(Block::Text(text.into()))
    }

    /// Adds a paragraph set apart: a caveat, a hint.
    #[must_use]
    pub fn note(self, text: impl Into<Text>) -> Self {
        self.with(Block::Note(text.into()))
    }

    /// Adds a list of points.
    #[must_use]
    pub fn list<T: Into<Text>>(self, points: impl IntoIterator<Item = T>) -> Self {
        self.with(Block::List(points.into_iter().map(Into::into).collect()))
    }

    /// Adds names and what they stand for, a line each.
    #[must_use]
    pub fn facts<N: Into<String>, T: Into<Text>>(self, facts: impl IntoIterator<Item = (N, T)>) -> Self {
        let facts = facts.into_iter().map(|(name, text)| (name.into(), text.into()));
        self.with(Block::Facts(facts.collect()))
    }

    /// Adds text as it is, in letters of one width, its lines kept: a command and what it printed.
    #[must_use]
    pub fn code(self, text: impl Into<String>) -> Self {
        self.with(Block::Code(text.into()))
    }

    /// Adds a table.
    #[must_use]
    pub fn table(self, table: Table) -> Self {
        self.with(Block::Table(table))
    }

    /// Adds a chart. `name` is what its file of numbers and its place on the page are called; letters other than those of
    /// plain names become `-`, and a name that is taken gets a number.
    #[must_use]
    pub fn figure(self, name: &str, chart: impl Into<Chart>, caption: impl Into<Text>) -> Self {
        let taken = |name: &str| self.shown().any(|shown| shown.name == name);
        let name = free(&plain(name), taken);
        let chart = chart.into();
        let (data, caption) = (chart.data(), caption.into());
        self.with(Block::Figure(Box::new(Shown { name, chart, caption, data })))
    }

    /// The charts by name, in the order they stand on the page.
    pub fn charts(&self) -> impl Iterator<Item = (&str, &Chart)> {
        self.shown().map(|shown| (shown.name.as_str(), &shown.chart))
    }

    /// The files that belong beside the page: their paths from there, and their text.
    pub fn files(&self) -> impl Iterator<Item = (String, String)> {
        self.shown().map(|shown| (shown.file(), shown.data.to_text()))
    }

    /// The page as one HTML file.
    pub fn to_html(&self) -> String {
        render::html(self)
    }

    fn shown(&self) -> impl Iterator<Item = &Shown> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Figure(shown) => Some(shown.as_ref()),
            _ => None,
        })
    }

    fn heading(self, level: u8, text: String) -> Self {
        let taken = |id: &str| {
            let mut ids = self.blocks.iter().filter_map(|block| match block {
                Block::Heading { id, .. } => Some(id),
                _ => None,
            });
            ids.any(|other| other == id)
        };
        let id = free(&plain(&text), taken);
        self.with(Block::Heading { level, id, text })
    }

    fn with(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }
}

impl Shown {
    fn file(&self) -> String {
        format!("data/{}.csv", self.name)
    }
}

/// A name for files and links: small letters, digits, and single `-` between them.
fn plain(name: &str) -> String {
    let mut plain = String::new();
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() {
            plain.push(letter.to_ascii_lowercase());
        } else if !plain.ends_with('-') && !plain.is_empty() {
            plain.push('-');
        }
    }
    let plain = plain.trim_end_matches('-');
    if plain.is_empty() { "part".to_owned() } else { plain.to_owned() }
}

/// The name, with a number where it is taken.
fn free(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut free = name.to_owned();
    let mut number = 2_u64;
    while taken(&free) {
        free = format!("{name}-{number}");
        number += 1;
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Figure;

    #[test]
    fn names_are_plain_and_each_once() {
        let figure = || Figure::new("a");
        let page = Page::new("t").figure("Who: a/b", figure(), "").figure("who a b", figure(), "");
        let page = page.figure("", figure(), "");
        let names: Vec<&str> = page.charts().map(|(name, _)| name).collect();
        assert_eq!(names, ["who-a-b", "who-a-b-2", "part"]);
        let files: Vec<String> = page.files().map(|(file, _)| file).collect();
        assert_eq!(files, ["data/who-a-b.csv", "data/who-a-b-2.csv", "data/part.csv"]);
    }
}
