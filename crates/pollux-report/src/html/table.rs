//! A table of a page.

use super::text::Text;

/// Rows under headings. The first column names its row.
///
/// ```
/// use pollux_report::{Align, Table};
///
/// let table = Table::new("Completion times", ["policy", "average (h)", "remark"])
///     .align(2, Align::Left)
///     .row(["pollux", "1.04", "as published"])
///     .row(["fifo", "2.50", ""]);
/// assert_eq!(table.n_rows(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    pub(super) caption: Text,
    pub(super) columns: Vec<(Text, Align)>,
    pub(super) rows: Vec<Vec<Text>>,
}

/// Which side of its column a cell keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    #[default]
    Right,
}

impl Table {
    /// A table without rows: the first column holds words, the others numbers.
    pub fn new<T: Into<Text>>(caption: impl Into<Text>, columns: impl IntoIterator<Item = T>) -> Self {
        let mut columns: Vec<(Text, Align)> =
            columns.into_iter().map(|column| (column.into(), Align::Right)).collect();
        if let Some(first) = columns.first_mut() {
            first.1 = Align::Left;
        }
        Self { caption: caption.into(), columns, rows: Vec::new() }
    }

    /// Sets the side that a column keeps to.
    #[must_use]
    pub fn align(mut self, column: usize, align: Align) -> Self {
        if let Some(column) = self.columns.get_mut(column) {
            column.1 = align;
        }
        self
    }

    /// Adds a row; cells beyond the columns are left out, missing ones are empty.
    #[must_use]
    pub fn row<T: Into<Text>>(mut self, cells: impl IntoIterator<Item = T>) -> Self {
        let mut cells: Vec<Text> = cells.into_iter().map(Into::into).collect();
        cells.resize(self.columns.len(), Text::default());
        self.rows.push(cells);
        self
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }
}
