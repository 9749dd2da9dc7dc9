//! The legend of a panel: rows of samples and names above the axes.

use crate::canvas::{Anchor, Canvas, Num};
use crate::figure::{Legend, Panel, Series, Style};
use crate::look::Look;
use crate::marks;
use crate::text::Font;

const FONT: Font = Font { size: 12.5, bold: false, colour: "#333" };
const ROW_HEIGHT: f64 = 20.0;
const SAMPLE_WIDTH: f64 = 28.0;
const SAMPLE_GAP: f64 = 7.0;
const ENTRY_GAP: f64 = 20.0;

/// Where the entries of a legend go, relative to its top left corner.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct LegendPlan {
    entries: Vec<Entry>,
    n_rows: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    /// Index of the series.
    series: usize,
    label: String,
    x: f64,
    row: usize,
}

impl LegendPlan {
    /// Flows the names of `panel` into rows of at most `room`.
    pub(crate) fn new(panel: &Panel, room: f64) -> Self {
        let is_shown = match panel.legend {
            Legend::Auto => panel.series.len() > 1,
            Legend::Shown => !panel.series.is_empty(),
            Legend::Hidden => false,
        };
        if !is_shown {
            return Self::default();
        }
        let mut plan = Self { entries: Vec::new(), n_rows: 1 };
        let mut x = 0.0;
        for (index, series) in panel.series.iter().enumerate() {
            let label = FONT.shorten(&name(panel, series), room - SAMPLE_WIDTH - SAMPLE_GAP);
            let width = SAMPLE_WIDTH + SAMPLE_GAP + FONT.width(&label);
            if x > 0.0 && x + width > room {
                x = 0.0;
                plan.n_rows += 1;
            }
            plan.entries.push(Entry { series: index, label, x, row: plan.n_rows - 1 });
            x += width + ENTRY_GAP;
        }
        plan
    }

    pub(crate) fn height(&self) -> f64 {
        self.n_rows as f64 * ROW_HEIGHT
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas, panel: &Panel, looks: &[Look], left: f64, top: f64) {
        for entry in &self.entries {
            let (series, look) = (&panel.series[entry.series], &looks[entry.series]);
            let x = left + entry.x;
            let middle = top + entry.row as f64 * ROW_HEIGHT + ROW_HEIGHT / 2.0;
            draw_sample(canvas, series.style, look, x, middle);
            canvas.text(FONT, Anchor::Start, x + SAMPLE_WIDTH + SAMPLE_GAP, middle + 4.4, &entry.label);
        }
    }
}

fn name(panel: &Panel, series: &Series) -> String {
    if panel.drawable(series).next().is_some() {
        series.name.clone()
    } else {
        format!("{} (no data)", series.name)
    }
}

fn draw_sample(canvas: &mut Canvas, style: Style, look: &Look, x: f64, middle: f64) {
    match style {
        Style::Bars => {
            canvas.line(format_args!(
                "<rect x=\"{}\" y=\"{}\" width=\"{SAMPLE_WIDTH}\" height=\"11\" {}/>",
                Num(x),
                Num(middle - 5.5),
                marks::bar_fill(look),
            ));
        }
        Style::Line | Style::Step | Style::LineWithPoints => {
            let data = format!("M{} {}h{SAMPLE_WIDTH}", Num(x), Num(middle));
            marks::draw_path(canvas, style, look, &data);
        }
        Style::Points => {}
    }
    if matches!(style, Style::Points | Style::LineWithPoints) {
        marks::draw_marker(canvas, look, (x + SAMPLE_WIDTH / 2.0, middle));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;

    fn panel(names: &[&str]) -> Panel {
        let empty = Panel::new("", Axis::linear(""), Axis::linear(""));
        names.iter().fold(empty, |panel, name| panel.with_series(Series::new(*name, [(0.0, 0.0)])))
    }

    #[test]
    fn one_series_needs_no_legend_unless_asked_for() {
        assert_eq!(LegendPlan::new(&panel(&["only"]), 300.0).n_rows, 0);
        assert_eq!(LegendPlan::new(&panel(&["only"]).with_legend(Legend::Shown), 300.0).n_rows, 1);
        assert_eq!(LegendPlan::new(&panel(&["a", "b"]).with_legend(Legend::Hidden), 300.0).n_rows, 0);
    }

    #[test]
    fn entries_stay_within_their_room_and_apart() {
        let long = "a name that is far too long for any legend to hold on a single row of its own";
        let plan = LegendPlan::new(&panel(&["goodput", "throughput", "ideal", long, "b", "c"]), 300.0);
        for (index, entry) in plan.entries.iter().enumerate() {
            let right = entry.x + SAMPLE_WIDTH + SAMPLE_GAP + FONT.width(&entry.label);
            assert!(right <= 300.0, "{entry:?} ends at {right}");
            if let Some(next) = plan.entries.get(index + 1) {
                assert!(next.row > entry.row || next.x > right, "{entry:?} runs into {next:?}");
            }
        }
    }

    #[test]
    fn a_series_without_data_says_so() {
        let plan = LegendPlan::new(&panel(&["a"]).with_series(Series::new("b", [(f64::NAN, 1.0)])), 300.0);
        assert_eq!(plan.entries[1].label, "b (no data)");
    }
}
