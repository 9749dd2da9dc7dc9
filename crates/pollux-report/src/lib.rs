//! Figures: data in, SVG or PNG bytes out.
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
mod figure;
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
pub use figure::{Emphasis, Figure, Legend, Panel, Series, Style};
pub use png::RenderError;
