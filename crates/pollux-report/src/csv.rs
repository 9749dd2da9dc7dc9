//! The numbers behind a chart, as CSV.

/// Rows of cells under named columns.
///
/// ```
/// use pollux_report::Csv;
///
/// let mut csv = Csv::new(["policy", "hours"]);
/// csv.push(["fifo, plain".to_owned(), Csv::number(1.5)]);
/// assert_eq!(csv.to_text(), "policy,hours\n\"fifo, plain\",1.5\n");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Csv {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Csv {
    /// Columns without rows.
    pub fn new<T: Into<String>>(columns: impl IntoIterator<Item = T>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row; cells beyond the columns are left out, missing ones are empty.
    pub fn push(&mut self, row: impl IntoIterator<Item = String>) {
        let mut row: Vec<String> = row.into_iter().collect();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// A number with all its digits; empty if it is none.
    pub fn number(value: f64) -> String {
        if value.is_finite() { value.to_string() } else { String::new() }
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// The whole text, a header first and a newline at its end.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for row in std::iter::once(&self.columns).chain(&self.rows) {
            for (index, cell) in row.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                push_quoted(&mut text, cell);
            }
            text.push('\n');
        }
        text
    }
}

fn push_quoted(text: &mut String, cell: &str) {
    if cell.contains([',', '"', '\n', '\r']) {
        text.push('"');
        text.push_str(&cell.replace('"', "\"\""));
        text.push('"');
    } else {
        text.push_str(cell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_wide_as_their_header() {
        let mut csv = Csv::new(["a", "b"]);
        csv.push(["1".to_owned()]);
        csv.push(["1", "2", "3"].map(str::to_owned));
        csv.push(["say \"hi\"".to_owned(), "two\nlines".to_owned()]);
        assert_eq!(csv.to_text(), "a,b\n1,\n1,2\n\"say \"\"hi\"\"\",\"two\nlines\"\n");
        assert_eq!(csv.n_rows(), 3);
    }

    #[test]
    fn what_is_no_number_is_empty() {
        assert_eq!([0.1, f64::NAN, f64::INFINITY].map(Csv::number), ["0.1", "", ""]);
    }
}
