//! Who held what when: a row for each node, its GPUs stacked, time from left to right.

mod draw;

use crate::csv::Csv;
use crate::png::RenderError;

/// A Gantt chart of shared machines.
///
/// ```
/// use pollux_report::{Gantt, GanttRow, Span};
///
/// let span = Span { row: 0, lanes: 0..4, from: 0.5, to: 2.0, name: "bert-3".into(), group: "bert".into() };
/// let gantt = Gantt::new("GPUs held", "hours", vec![GanttRow::new("node 0", 4)]).with_span(span);
/// assert!(gantt.to_svg().contains("bert-3"));
/// assert_eq!(gantt.data().to_text(), "row,first_lane,lanes,from,to,name,group\nnode 0,0,4,0.5,2,bert-3,bert\n");
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gantt {
    /// The headline; long ones wrap.
    pub title: String,
    /// A quieter line below the title.
    pub subtitle: Option<String>,
    /// What time is measured in.
    pub x_label: String,
    /// From top to bottom.
    pub rows: Vec<GanttRow>,
    /// What is drawn. Spans shorter than can be seen are left out of the drawing, never out of the data.
    pub spans: Vec<Span>,
    /// Groups in the order in which they are given colours; those only spans name come after, as they appear.
    pub groups: Vec<String>,
    /// The end of the time axis, where it is to be beyond the last span.
    pub until: Option<f64>,
    /// Small print below.
    pub note: Option<String>,
}

/// A row: a node, and the lanes in it, one for each GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GanttRow {
    /// Its name.
    pub label: String,
    /// Its lanes.
    pub n_lanes: u32,
}

/// Neighbouring lanes of a row, held by one for some time.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Index of the row.
    pub row: usize,
    /// Lanes, from the top of the row.
    pub lanes: std::ops::Range<u32>,
    /// When it begins.
    pub from: f64,
    /// When it ends.
    pub to: f64,
    /// Who holds them.
    pub name: String,
    /// What the colour tells: the kind of holder.
    pub group: String,
}

impl GanttRow {
    /// A row of so many lanes.
    pub fn new(label: impl Into<String>, n_lanes: u32) -> Self {
        Self { label: label.into(), n_lanes }
    }
}

impl Gantt {
    /// Rows on which nobody holds anything yet.
    pub fn new(title: impl Into<String>, x_label: impl Into<String>, rows: Vec<GanttRow>) -> Self {
        Self { title: title.into(), x_label: x_label.into(), rows, ..Self::default() }
    }

    /// Sets the line below the title.
    #[must_use]
    pub fn with_subtitle(self, subtitle: impl Into<String>) -> Self {
        Self { subtitle: Some(subtitle.into()), ..self }
    }

    /// Adds a span.
    #[must_use]
    pub fn with_span(mut self, span: Span) -> Self {
        self.spans.push(span);
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

    /// A row for each span.
    pub fn data(&self) -> Csv {
        let mut csv = Csv::new(["row", "first_lane", "lanes", "from", "to", "name", "group"]);
        for span in &self.spans {
            let row = self.rows.get(span.row).map_or_else(|| span.row.to_string(), |row| row.label.clone());
            csv.push([
                row,
                span.lanes.start.to_string(),
                span.lanes.end.saturating_sub(span.lanes.start).to_string(),
                Csv::number(span.from),
                Csv::number(span.to),
                span.name.clone(),
                span.group.clone(),
            ]);
        }
        csv
    }

    /// All groups, those with a claim to a colour first.
    fn all_groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = Vec::new();
        let named = self.groups.iter().chain(self.spans.iter().map(|span| &span.group));
        for group in named {
            if groups.last() != Some(&group.as_str()) && !groups.contains(&group.as_str()) {
                groups.push(group);
            }
        }
        groups
    }
}
