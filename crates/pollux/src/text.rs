//! Tables and numbers for people.

use std::time::Duration;

/// Which side of its column a cell keeps to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of cells under headings, in columns as wide as they need.
pub(crate) struct Table<const N: usize> {
    aligns: [Align; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(columns: [(&str, Align); N]) -> Self {
        Self { aligns: columns.map(|(_, align)| align), rows: vec![columns.map(|(name, _)| name.to_owned())] }
    }

    pub(crate) fn push(&mut self, row: [String; N]) {
        self.rows.push(row);
    }

    pub(crate) fn render(&self) -> String {
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; N] = std::array::from_fn(width);
        let mut text = String::new();
        for row in &self.rows {
            let cells: [String; N] = std::array::from_fn(|column| match self.aligns[column] {
                Align::Left => format!("{:<1$}", row[column], widths[column]),
                Align::Right => format!("{:>1$}", row[column], widths[column]),
            });
            text.push_str(cells.join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

/// The same where the number of columns is not known beforehand: columns of numbers keep to the right.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let cell = |row: &[String], column: usize| row.get(column).cloned().unwrap_or_default();
    let is_number = |text: &str| text == "-" || text.starts_with(|c: char| c.is_ascii_digit());
    let columns: Vec<(usize, bool)> = (0..header.len())
        .map(|column| {
            let widths = rows.iter().map(|row| cell(row, column).chars().count());
            let width = widths.chain([header[column].chars().count()]).max().unwrap_or(0);
            (width, !rows.is_empty() && rows.iter().all(|row| is_number(&cell(row, column))))
        })
        .collect();
    let line = |cells: &dyn Fn(usize) -> String| {
        let padded = columns.iter().enumerate().map(|(column, (width, is_right))| {
            let text = cells(column);
            if *is_right { format!("{text:>width$}") } else { format!("{text:<width$}") }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let mut text = line(&|column| header[column].to_owned());
    for row in rows {
        text.push_str(&line(&|column| cell(row, column)));
    }
    text
}

/// A number with this many significant digits, in full where that is readable: `0.0213`, `1234`, `1.2e-9`.
pub(crate) fn significant(number: f64, digits: usize) -> String {
    let decimals = digits.max(1) - 1;
    let scientific = format!("{number:.decimals$e}");
    let exponent: Option<i32> = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok());
    match exponent {
        _ if number == 0.0 => "0".to_owned(),
        // Not a number, or infinite.
        None => number.to_string(),
        Some(exponent @ -6..=8) => {
            let after_point = i32::try_from(decimals).unwrap_or(i32::MAX).saturating_sub(exponent).max(0);
            format!("{number:.0$}", usize::try_from(after_point).unwrap_or(0))
        }
        Some(_) => scientific,
    }
}

/// A relative error: `2.1 %`.
pub(crate) fn percent(ratio: f64) -> String {
    let percent = 100.0 * ratio;
    if percent < 1e4 { format!("{percent:.1} %") } else { format!("{} %", significant(percent, 3)) }
}

/// Text in lines of at most `width` characters, the second and later ones indented.
pub(crate) fn wrap(text: &str, width: usize, indent: &str) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            lines.push('\n');
            lines.push_str(indent);
            column = indent.len();
        } else if column > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    lines.push('\n');
    lines
}

/// `1 row`, `2 rows`.
pub(crate) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// `8`, or `8 to 64`.
pub(crate) fn range((first, last): (u32, u32)) -> String {
    if first == last { first.to_string() } else { format!("{first} to {last}") }
}

/// `1.25 ms`, `3.20 s`.
pub(crate) fn duration(time: Duration) -> String {
    let secs = time.as_secs_f64();
    if secs < 1.0 {
        format!("{} ms", significant(1e3 * secs, 3))
    } else {
        format!("{} s", significant(secs, 3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_significant(number: f64, expected: &str) {
        assert_eq!(significant(number, 4), expected);
    }

    #[test]
    fn numbers_have_four_digits_that_count() {
        check_significant(0.0, "0");
        check_significant(1.0, "1.000");
        check_significant(0.021_345_6, "0.02135");
        check_significant(9.999_96, "10.00");
        check_significant(999.96, "1000");
        check_significant(123_456.7, "123457");
        check_significant(0.000_371_23, "0.0003712");
        check_significant(-1.5, "-1.500");
        check_significant(1.5e-9, "1.500e-9");
        check_significant(2e12, "2.000e12");
        check_significant(f64::INFINITY, "inf");
        check_significant(f64::NAN, "NaN");
    }

    #[test]
    fn errors_are_percentages() {
        assert_eq!(percent(0.0213), "2.1 %");
        assert_eq!(percent(1_234.0), "1.23e5 %".replace("1.23e5", "123400"));
    }

    #[test]
    fn columns_are_as_wide_as_they_need() {
        let mut table = Table::new([("NAME", Align::Left), ("COUNT", Align::Right), ("", Align::Left)]);
        table.push(["a".to_owned(), "1000000".to_owned(), "x".to_owned()]);
        table.push(["a long name".to_owned(), "-".to_owned(), String::new()]);
        assert_eq!(table.render(), "NAME           COUNT\na            1000000  x\na long name        -\n");
    }

    #[test]
    fn times_have_three_digits() {
        assert_eq!(duration(Duration::from_micros(1_250)), "1.25 ms");
        assert_eq!(duration(Duration::from_millis(3_200)), "3.20 s");
    }
}
