//! The data of a figure. Drawing it starts in `svg.rs`.

use crate::axis::Axis;
use crate::png::RenderError;

/// A drawing: a title, panels in a grid, a note below.
///
/// ```
/// use pollux_report::{Axis, Figure, Panel, Series};
///
/// let gpus = [1.0, 2.0, 4.0, 8.0];
/// let goodput = Series::new("goodput", gpus.map(|n| (n, 100.0 * n / (1.0 + 0.1 * n))));
/// let ideal = Series::new("ideal", gpus.map(|n| (n, 100.0 * n))).reference();
///
/// let x = Axis::log2("GPUs");
/// let y = Axis::linear("samples/s").starting_at_zero();
/// let panel = Panel::new("Goodput", x, y).with_series(goodput).with_series(ideal);
/// let figure = Figure::new("ResNet-18 on CIFAR-10").with_panel(panel);
///
/// assert!(figure.to_svg().starts_with("<svg"));
/// assert!(figure.to_png(2.0)?.starts_with(b"\x89PNG"));
/// # Ok::<(), pollux_report::RenderError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figure {
    /// The headline; long ones wrap.
    pub title: String,
    /// A quieter line below the title.
    pub subtitle: Option<String>,
    /// Laid out row by row: one alone, two or four in two columns, else in three.
    pub panels: Vec<Panel>,
    /// Small print below the panels: where the numbers come from.
    pub note: Option<String>,
}

/// One pair of axes and what is drawn between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// What the panel shows.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis. Its label stands above it, so that no head needs tilting.
    pub y: Axis,
    /// Drawn in this order, references first.
    pub series: Vec<Series>,
    /// Whether series are named.
    pub legend: Legend,
}

/// Whether a panel names its series. A legend stands above the axes and never covers data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Legend {
    /// If there is more than one series.
    #[default]
    Auto,
    /// Always.
    Shown,
    /// Never.
    Hidden,
}

/// Named points, and how they are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The name in the legend. A name keeps its look from panel to panel.
    pub name: String,
    /// `(x, y)` in drawing order. A point that is not finite is a gap in the line.
    pub points: Vec<(f64, f64)>,
    /// The kind of marks.
    pub style: Style,
    /// How much it asks for attention.
    pub emphasis: Emphasis,
}

/// The kind of marks that show a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// Straight lines from point to point.
    #[default]
    Line,
    /// Each value holds until the next `x`: counts over time, cumulative distributions.
    Step,
    /// A marker per point.
    Points,
    /// A line with markers; where these would touch, some are left out.
    LineWithPoints,
    /// A bar from zero (or from the bottom of a logarithmic axis). Several such series stand side by side.
    Bars,
}

/// How much a series asks for attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Emphasis {
    /// A subject of the figure.
    #[default]
    Normal,
    /// Something to compare with, such as ideal linear speed-up: thin, grey and dashed, behind the rest.
    Reference,
}

impl Figure {
    /// A figure without panels.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Sets the line below the title.
    #[must_use]
    pub fn with_subtitle(self, subtitle: impl Into<String>) -> Self {
        Self { subtitle: Some(subtitle.into()), ..self }
    }

    /// Adds a panel after those already there.
    #[must_use]
    pub fn with_panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// Sets the small print below the panels.
    #[must_use]
    pub fn with_note(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }

    /// Draws the figure as a standalone SVG document, which may also be placed inside HTML as it is.
    ///
    /// Text stays text, in the reader's own sans-serif font. Magnitudes above 1e290 are drawn as 1e290,
    /// those below 1e-290 as zero.
    pub fn to_svg(&self) -> String {
        crate::svg::draw(self)
    }

    /// Draws the figure as a PNG, `scale` pixels per unit of the SVG: 2 suits screens and slides.
    ///
    /// The text is set in an embedded font, so the machine needs none. Scripts that font lacks (it has
    /// Latin, Greek and Cyrillic) come out as boxes.
    ///
    /// # Errors
    ///
    /// [`RenderError::Scale`] and [`RenderError::TooLarge`] if `scale` is not a positive number or asks for
    /// more pixels than are worth their memory.
    pub fn to_png(&self, scale: f32) -> Result<Vec<u8>, RenderError> {
        crate::png::render(&self.to_svg(), scale)
    }
}

impl Panel {
    /// A panel without series.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), x, y, series: Vec::new(), legend: Legend::Auto }
    }

    /// Adds a series after those already there.
    #[must_use]
    pub fn with_series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Sets whether series are named.
    #[must_use]
    pub fn with_legend(self, legend: Legend) -> Self {
        Self { legend, ..self }
    }
}

impl Series {
    /// A line through `points`.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self {
            name: name.into(),
            points: points.into_iter().collect(),
            style: Style::Line,
            emphasis: Emphasis::Normal,
        }
    }

    /// Sets the kind of marks.
    #[must_use]
    pub fn with_style(self, style: Style) -> Self {
        Self { style, ..self }
    }

    /// Makes it something to compare with: thin, grey and dashed.
    #[must_use]
    pub fn reference(self) -> Self {
        Self { emphasis: Emphasis::Reference, ..self }
    }
}
