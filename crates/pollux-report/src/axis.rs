//! What an axis shows and how: label, scale, range.

/// One axis of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What is measured, with its unit: `goodput (samples/s)`.
    pub label: String,
    /// How values become distances.
    pub scale: Scale,
    /// Which values are shown.
    pub range: Range,
}

/// How values become distances along an axis.
///
/// A logarithmic scale has no place for zero and below: such points are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Equal differences are equal distances.
    #[default]
    Linear,
    /// Equal ratios are equal distances, ticks at powers of two.
    Log2,
    /// Equal ratios are equal distances, ticks at powers of ten.
    Log10,
}

/// Which values an axis shows.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Range {
    /// As much as the data needs. With bars on a linear vertical axis this takes in zero.
    #[default]
    Auto,
    /// As much as the data needs, and zero. The same as `Auto` on a logarithmic scale.
    FromZero,
    /// These bounds, in either order. Lines are cut at the edges, points beyond them left out. Bounds that
    /// cannot be drawn on the axis's scale count as `Auto`.
    Fixed {
        /// One end.
        from: f64,
        /// The other end.
        to: f64,
    },
}

impl Axis {
    /// A linear axis that shows what the data needs.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Linear, range: Range::Auto }
    }

    /// An axis with ticks at powers of two.
    pub fn log2(label: impl Into<String>) -> Self {
        Self { scale: Scale::Log2, ..Self::linear(label) }
    }

    /// An axis with ticks at powers of ten.
    pub fn log10(label: impl Into<String>) -> Self {
        Self { scale: Scale::Log10, ..Self::linear(label) }
    }

    /// The same axis, with zero in it.
    #[must_use]
    pub fn starting_at_zero(self) -> Self {
        Self { range: Range::FromZero, ..self }
    }

    /// The same axis with fixed bounds.
    #[must_use]
    pub fn between(self, from: f64, to: f64) -> Self {
        Self { range: Range::Fixed { from, to }, ..self }
    }
}
