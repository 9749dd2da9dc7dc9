//! Where everything goes: a grid of panels with aligned axes, and text around it.

use crate::canvas::Rect;
use crate::cell::PanelLayout;
use crate::figure::Figure;
use crate::look;
use crate::text::Font;

pub(crate) const TITLE: Font = Font { size: 21.0, bold: true, colour: "#111" };
pub(crate) const SUBTITLE: Font = Font { size: 14.0, bold: false, colour: "#555" };
pub(crate) const NOTE: Font = Font { size: 12.0, bold: false, colour: "#666" };

/// Lines of text are this many times their font size apart.
pub(crate) const LINE_HEIGHT: f64 = 1.35;

pub(crate) const MARGIN: f64 = 28.0;
const COLUMN_GAP: f64 = 40.0;
const ROW_GAP: f64 = 30.0;
/// Between the panels and the text above or below.
const TEXT_GAP: f64 = 16.0;

/// The whole drawing.
pub(crate) struct Layout<'a> {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) left: f64,
    pub(crate) title: Vec<String>,
    pub(crate) subtitle: Vec<String>,
    pub(crate) panels: Vec<PanelLayout<'a>>,
    /// Drawn instead of panels where there are none.
    pub(crate) placeholder: Option<Rect>,
    pub(crate) note: Vec<String>,
    /// First baselines of the texts.
    pub(crate) title_y: f64,
    pub(crate) subtitle_y: f64,
    pub(crate) note_y: f64,
}

impl<'a> Layout<'a> {
    pub(crate) fn new(figure: &'a Figure) -> Self {
        let n_columns = n_columns(figure.panels.len());
        let (cell_width, plot_height) = cell_size(n_columns);
        let inner = n_columns as f64 * (cell_width + COLUMN_GAP) - COLUMN_GAP;
        let title = TITLE.wrap(&figure.title, inner);
        let subtitle = SUBTITLE.wrap(figure.subtitle.as_deref().unwrap_or_default(), inner);
        let note = NOTE.wrap(figure.note.as_deref().unwrap_or_default(), inner);

        let mut y = MARGIN;
        let title_y = y + TITLE.size;
        y += block_height(TITLE, &title);
        let subtitle_y = y + SUBTITLE.size;
        y += block_height(SUBTITLE, &subtitle);
        if y > MARGIN {
            y += TEXT_GAP;
        }

        let mut panels: Vec<PanelLayout<'a>> = figure
            .panels
            .iter()
            .zip(look::assign(figure))
            .map(|(panel, looks)| PanelLayout::measure(panel, looks, cell_width, plot_height))
            .collect();
        let lefts: Vec<f64> = (0..n_columns)
            .map(|column| {
                panels.iter().skip(column).step_by(n_columns).map(PanelLayout::left).fold(0.0, f64::max)
            })
            .collect();
        for row in panels.chunks_mut(n_columns) {
            let header = row.iter().map(PanelLayout::header).fold(0.0, f64::max);
            let height = header + plot_height + row.iter().map(PanelLayout::footer).fold(0.0, f64::max);
            for ((column, panel), left) in row.iter_mut().enumerate().zip(&lefts) {
                let x = MARGIN + column as f64 * (cell_width + COLUMN_GAP);
                panel.place(Rect { x, y, width: cell_width, height }, *left, header);
            }
            y += height + ROW_GAP;
        }
        let placeholder = panels.is_empty().then_some(Rect { x: MARGIN, y, width: inner, height: 120.0 });
        y = placeholder.map_or(y - ROW_GAP, Rect::bottom);
        if !note.is_empty() {
            y += TEXT_GAP;
        }
        let note_y = y + NOTE.size;
        y += block_height(NOTE, &note);
        Self {
            width: inner + 2.0 * MARGIN,
            height: (y + MARGIN * 0.8).ceil(),
            left: MARGIN,
            title,
            subtitle,
            panels,
            placeholder,
            note,
            title_y,
            subtitle_y,
            note_y,
        }
    }
}

fn n_columns(n_panels: usize) -> usize {
    match n_panels {
        0 | 1 => 1,
        2 | 4 => 2,
        _ => 3,
    }
}

/// Width of a cell and height of the axes in it.
fn cell_size(n_columns: usize) -> (f64, f64) {
    match n_columns {
        1 => (760.0, 400.0),
        2 => (540.0, 270.0),
        _ => (430.0, 240.0),
    }
}

/// Height of lines of text.
pub(crate) fn block_height(font: Font, lines: &[String]) -> f64 {
    lines.len() as f64 * font.size * LINE_HEIGHT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;
    use crate::figure::{Panel, Series};

    /// A panel whose largest value has `n_digits` digits, and so many series.
    fn panel(n_digits: i32, n_series: usize) -> Panel {
        let y = Axis::log2("y").between(1.0, 10f64.powi(n_digits - 1));
        let empty = Panel::new("title", Axis::linear("x"), y);
        (0..n_series).fold(empty, |panel, index| {
            panel.with_series(Series::new(format!("series {index}"), [(0.0, 1.0), (1.0, 2.0)]))
        })
    }

    #[test]
    fn the_grid_follows_from_the_number_of_panels() {
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 9].map(n_columns), [1, 1, 2, 3, 2, 3, 3, 3]);
    }

    #[test]
    fn axes_line_up_along_rows_and_columns() {
        let sizes = [(2, 1), (6, 20), (4, 2), (3, 1)];
        let figure = sizes.iter().fold(Figure::new("a"), |figure, (n, m)| figure.with_panel(panel(*n, *m)));
        let frames: Vec<Rect> = Layout::new(&figure).panels.iter().map(|panel| panel.plot.frame).collect();
        for (a, b) in [(0, 1), (2, 3)] {
            assert_eq!((frames[a].y, frames[a].height), (frames[b].y, frames[b].height));
        }
        for (a, b) in [(0, 2), (1, 3)] {
            assert_eq!((frames[a].x, frames[a].width), (frames[b].x, frames[b].width));
        }
        assert!(frames[1].x > frames[0].right() && frames[2].y > frames[0].bottom());
    }

    #[test]
    fn a_longer_legend_makes_the_figure_taller_not_the_axes_smaller() {
        let (short, long) =
            (Figure::new("").with_panel(panel(2, 2)), Figure::new("").with_panel(panel(2, 30)));
        let (short, long) = (Layout::new(&short), Layout::new(&long));
        let size =
            |layout: &Layout<'_>| (layout.panels[0].plot.frame.width, layout.panels[0].plot.frame.height);
        assert_eq!(size(&short), size(&long));
        assert!(long.height > short.height);
    }
}
