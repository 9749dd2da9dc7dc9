//! What an experiment found: words, tables, charts, and which published comparisons hold.

use pollux_report::{Align, Chart, Page, Table};

/// What an experiment found.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    pub(super) parts: Vec<Part>,
    /// Published comparisons, and whether they hold here.
    pub claims: Vec<Claim>,
}

/// A part of the findings, in the order they are read.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Text(String),
    Note(String),
    Grid(Grid),
    Figure(String, Box<Chart>, String),
}

/// Rows of words and numbers under headings.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// What it shows.
    pub caption: String,
    /// The headings.
    pub columns: Vec<String>,
    /// The rows; the first column names them.
    pub rows: Vec<Vec<String>>,
}

/// A published comparison, and what became of it here.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// What is compared.
    pub what: String,
    /// As published.
    pub published: String,
    /// As found here.
    pub ours: String,
    /// Whether direction and rough size hold.
    pub holds: bool,
    /// Why not, where it does not.
    pub why: Option<String>,
}

impl Claim {
    /// A comparison.
    pub fn new(what: &str, published: &str, ours: String, holds: bool) -> Self {
        Self { what: what.to_owned(), published: published.to_owned(), ours, holds, why: None }
    }

    /// Says why, if it does not hold.
    #[must_use]
    pub fn otherwise(self, why: &str) -> Self {
        let why = (!self.holds).then(|| why.to_owned());
        Self { why, ..self }
    }

    /// `yes` or `no`.
    pub fn verdict(&self) -> &'static str {
        if self.holds { "yes" } else { "no" }
    }
}

impl Grid {
    /// A table without rows.
    pub fn new<const N: usize>(caption: &str, columns: [&str; N]) -> Self {
        let columns = columns.map(str::to_owned).to_vec();
        Self { caption: caption.to_owned(), columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn push<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    fn table(&self) -> Table {
        let table = Table::new(self.caption.as_str(), self.columns.iter().map(String::as_str));
        self.rows.iter().fold(table, |table, row| table.row(row.iter().map(String::as_str)))
    }
}

impl Findings {
    pub(super) fn text(&mut self, text: impl Into<String>) {
        self.parts.push(Part::Text(text.into()));
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.parts.push(Part::Note(text.into()));
    }

    pub(super) fn grid(&mut self, grid: Grid) {
        self.parts.push(Part::Grid(grid));
    }

    pub(super) fn figure(&mut self, name: &str, chart: impl Into<Chart>, caption: &str) {
        self.parts.push(Part::Figure(name.to_owned(), Box::new(chart.into()), caption.to_owned()));
    }

    pub(super) fn claim(&mut self, claim: Claim) {
        self.claims.push(claim);
    }

    /// The tables.
    pub fn grids(&self) -> impl Iterator<Item = &Grid> {
        self.parts.iter().filter_map(|part| match part {
            Part::Grid(grid) => Some(grid),
            _ => None,
        })
    }

    /// Writes all of it below what a page holds.
    pub fn onto(&self, page: Page) -> Page {
        let page = self.parts.iter().fold(page, |page, part| match part {
            Part::Text(text) => page.text(text.as_str()),
            Part::Note(text) => page.note(text.as_str()),
            Part::Grid(grid) => page.table(grid.table()),
            Part::Figure(name, chart, caption) => page.figure(name, (**chart).clone(), caption.as_str()),
        });
        if self.claims.is_empty() { page } else { with_claims(page, &self.claims) }
    }
}

/// Published comparisons as a table, and why some do not hold.
pub(super) fn with_claims<'a>(page: Page, claims: impl IntoIterator<Item = &'a Claim> + Clone) -> Page {
    let mut table = Table::new("Published comparisons", ["comparison", "published", "here", "holds"]);
    for column in 1..4 {
        table = table.align(column, Align::Left);
    }
    let table = claims.clone().into_iter().fold(table, |table, claim| {
        table.row([claim.what.as_str(), &claim.published, &claim.ours, claim.verdict()])
    });
    let why = |claim: &Claim| claim.why.as_ref().map(|why| format!("{}: {why}.", claim.what));
    let reasons: Vec<String> = claims.into_iter().filter_map(why).collect();
    let page = page.table(table);
    if reasons.is_empty() { page } else { page.text("Why not:").list(reasons) }
}
