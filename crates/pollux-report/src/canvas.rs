//! A small writer of SVG elements. All text and all numbers pass through here.

use std::fmt::{self, Write as _};

use crate::text::{Escaped, Font};

/// Fonts that readers have; the last name is the one embedded for PNG.
const FAMILIES: &str =
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Noto Sans', sans-serif";

/// A rectangle in the coordinates of the drawing; `y` grows downwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rect {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Rect {
    pub(crate) fn right(self) -> f64 {
        self.x + self.width
    }

    pub(crate) fn bottom(self) -> f64 {
        self.y + self.height
    }
}

/// Which end of a text its position names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A coordinate: two decimals at most, and always a number.
pub(crate) struct Num(pub(crate) f64);

impl fmt::Display for Num {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = (self.0 * 100.0).round();
        // The sum turns a negative zero into a plain one.
        let value = if hundredths.is_finite() { hundredths / 100.0 + 0.0 } else { 0.0 };
        write!(f, "{value}")
    }
}

/// An SVG document being written.
pub(crate) struct Canvas {
    out: String,
    depth: usize,
}

impl Canvas {
    /// Starts a document of this size, with what a screen reader says of it.
    pub(crate) fn new(width: f64, height: f64, title: &str, description: &str) -> Self {
        let mut canvas = Self { out: String::new(), depth: 0 };
        let (w, h) = (Num(width), Num(height));
        canvas.open(format_args!(
            "svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
             role=\"img\" font-family=\"{FAMILIES}\""
        ));
        canvas.line(format_args!("<title>{}</title>", Escaped(title)));
        canvas.line(format_args!("<desc>{}</desc>", Escaped(description)));
        // Without it a dark viewer would show dark text on a dark ground.
        canvas.line(format_args!("<rect width=\"{w}\" height=\"{h}\" fill=\"#fff\"/>"));
        canvas
    }

    /// Opens an element; `head` is its name and attributes, which must be escaped already.
    pub(crate) fn open(&mut self, head: fmt::Arguments<'_>) {
        self.line(format_args!("<{head}>"));
        self.depth += 1;
    }

    /// Closes the innermost open element, which has this name.
    pub(crate) fn close(&mut self, name: &str) {
        self.depth = self.depth.saturating_sub(1);
        self.line(format_args!("</{name}>"));
    }

    /// Writes a whole element, escaped already.
    pub(crate) fn line(&mut self, element: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.out, "{:indent$}{element}", "", indent = 2 * self.depth);
    }

    /// Writes `text`, if there is any, with its baseline at `y`.
    pub(crate) fn text(&mut self, font: Font, anchor: Anchor, x: f64, y: f64, text: &str) {
        if text.is_empty() {
            return;
        }
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let weight = if font.bold { " font-weight=\"bold\"" } else { "" };
        self.line(format_args!(
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"{weight}{anchor}>{}</text>",
            Num(x),
            Num(y),
            Num(font.size),
            font.colour,
            Escaped(text),
        ));
    }

    /// Writes lines of text below each other, the first baseline at `y`.
    pub(crate) fn paragraph(&mut self, font: Font, x: f64, y: f64, lines: &[String], line_height: f64) {
        for (index, line) in lines.iter().enumerate() {
            self.text(font, Anchor::Start, x, y + index as f64 * line_height, line);
        }
    }

    /// Ends the document.
    pub(crate) fn finish(mut self) -> String {
        self.close("svg");
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_finite() {
        assert_eq!(Num(1.0).to_string(), "1");
        assert_eq!(Num(2.345_678).to_string(), "2.35");
        assert_eq!(Num(-0.001).to_string(), "0");
        assert_eq!(Num(f64::NAN).to_string(), "0");
    }

    #[test]
    fn elements_are_nested_and_closed() {
        let mut canvas = Canvas::new(10.0, 5.0, "a & b", "c");
        canvas.open(format_args!("g"));
        canvas.close("g");
        let svg = canvas.finish();
        assert!(svg.contains("viewBox=\"0 0 10 5\"") && svg.contains("\n  <title>a &amp; b</title>\n"));
        assert!(svg.ends_with("\n  <g>\n  </g>\n</svg>\n"), "{svg}");
    }
}
