//! Values of several contenders side by side: bars or dots in rows, with their spread.

mod draw;

use crate::axis::Axis;
use crate::csv::Csv;
use crate::png::RenderError;

/// A row for each contender, a column of bars or dots for each measure.
///
/// ```
/// use pollux_report::{Axis, Comparison, Measure, Value};
///
/// let times = [Value::spread(1.0, 0.75, 1.25), Value::exact(2.5)];
/// let comparison = Comparison::new("Completion times", ["pollux", "fifo"])
///     .with_measure(Measure::bars(Axis::linear("average (h)"), times));
/// let csv = "row,measure,series,value,low,high\npollux,average (h),,1,0.75,1.25\nfifo,average (h),,2.5,2.5,2.5\n";
/// assert_eq!(comparison.data().to_text(), csv);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comparison {
    /// The headline; long ones wrap.
    pub title: String,
    /// A quieter line below the title.
    pub subtitle: Option<String>,
    /// Who is compared, from top to bottom.
    pub rows: Vec<String>,
    /// What is compared, from left to right.
    pub measures: Vec<Measure>,
    /// Small print below: what the whiskers are.
    pub note: Option<String>,
}

/// One thing that is compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// Its axis, which runs from left to right.
    pub axis: Axis,
    /// How values are shown.
    pub marks: Marks,
    /// Named sets of values; one without a name is usual.
    pub series: Vec<Values>,
}

/// How the values of a measure are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// A bar from zero.
    Bars,
    /// A marker; zero need not be in sight.
    Dots,
}

/// A value for each row.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    /// The name in the legend.
    pub name: String,
    /// In the order of the rows; missing ones are gaps.
    pub values: Vec<Value>,
}

/// A value and how far those it stands for lie apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// Where the bar ends, or the marker stands.
    pub at: f64,
    /// Where the whisker begins.
    pub low: f64,
    /// Where the whisker ends.
    pub high: f64,
}

impl Value {
    /// A value without spread.
    pub fn exact(at: f64) -> Self {
        Self { at, low: at, high: at }
    }

    /// A value between two others.
    pub fn spread(at: f64, low: f64, high: f64) -> Self {
        Self { at, low, high }
    }

    /// No value: a gap.
    pub fn none() -> Self {
        Self::exact(f64::NAN)
    }
}

impl Measure {
    /// Bars from zero, one for each row.
    pub fn bars(axis: Axis, values: impl IntoIterator<Item = Value>) -> Self {
        Self { axis: axis.starting_at_zero(), marks: Marks::Bars, series: Vec::new() }.with_series("", values)
    }

    /// Dots without series yet.
    pub fn dots(axis: Axis) -> Self {
        Self { axis, marks: Marks::Dots, series: Vec::new() }
    }

    /// Adds a named set of values.
    #[must_use]
    pub fn with_series(mut self, name: impl Into<String>, values: impl IntoIterator<Item = Value>) -> Self {
        self.series.push(Values { name: name.into(), values: values.into_iter().collect() });
        self
    }
}

impl Comparison {
    /// Rows without measures.
    pub fn new<T: Into<String>>(title: impl Into<String>, rows: impl IntoIterator<Item = T>) -> Self {
        Self { title: title.into(), rows: rows.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Sets the line below the title.
    #[must_use]
    pub fn with_subtitle(self, subtitle: impl Into<String>) -> Self {
        Self { subtitle: Some(subtitle.into()), ..self }
    }

    /// Adds a measure to the right of those already there.
    #[must_use]
    pub fn with_measure(mut self, measure: Measure) -> Self {
        self.measures.push(measure);
        self
    }

    /// Sets the small print.
    #[must_use]
    pub fn with_note(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }

    /// Draws the chart as a standalone SVG document.
    pub fn to_svg(&self) -> String {
        draw::draw(self)
    }

    /// Draws the chart as a PNG; see [`Figure::to_png`](crate::Figure::to_png).
    pub fn to_png(&self, scale: f32) -> Result<Vec<u8>, RenderError> {
        crate::png::render(&self.to_svg(), scale)
    }

    /// A row for each value.
    pub fn data(&self) -> Csv {
        let mut csv = Csv::new(["row", "measure", "series", "value", "low", "high"]);
        for measure in &self.measures {
            for series in &measure.series {
                for (row, value) in self.rows.iter().zip(&series.values) {
                    let [at, low, high] = [value.at, value.low, value.high].map(Csv::number);
                    csv.push([row.clone(), measure.axis.label.clone(), series.name.clone(), at, low, high]);
                }
            }
        }
        csv
    }
}
