//! Figures and pages: data in, SVG, PNG or HTML out.
//!
//! | what | type |
//! | --- | --- |
//! | lines, steps, points and bars between axes | [`Figure`] |
//! | who held what when | [`Gantt`] |
//! | contenders side by side, with their spread | [`Comparison`] |
//! | any of these, with the numbers behind it | [`Chart`] |
//! | a page of text, tables and charts, as one HTML file | [`Page`] |
//!
//! A [`Figure`] holds [`Panel`]s, a panel holds [`Series`] over two [`Axis`] values. The crate knows
//! nothing of files, of the model or of where the numbers come from.
//!
//! Two promises hold for any input: drawing never panics, and the same figure always gives the same
//! bytes of SVG. What cannot be drawn (a NaN, an infinity, a zero on a logarithmic axis) leaves a gap.

mod axis;
mod bars;
mod canvas;
mod cell;
mod chart;
mod comparison;
mod csv;
mod figure;
mod gantt;
mod html;
mod layout;
mod legend;
mod look;
mod marks;
mod number;
mod panel;
mod png;
mod scale;
mod svg;
mod text;
mod ticks;

pub use axis::{Axis, Range, Scale};
pub use chart::Chart;
pub use comparison::{Comparison, Marks, Measure, Value, Values};
pub use csv::Csv;
pub use figure::{Emphasis, Figure, Legend, Panel, Series, Style};
pub use gantt::{Gantt, GanttRow, Span};
pub use html::{Align, Embedded, Page, Table, Text, embedded};
pub use png::{RenderError, svg_to_png};
