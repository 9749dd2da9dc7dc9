//! Where everything goes: a grid of panels with aligned axes, and text around it.

use crate::axis::{Range, Scale};
use crate::bars;
use crate::canvas::Rect;
use crate::figure::{Figure, Panel, Series};
use crate::legend::LegendPlan;
use crate::look::{self, Look};
use crate::marks::Plot;
use crate::scale::{Mapping, Margin, tame};
use crate::text::Font;
use crate::ticks::Ticks;

pub(crate) const TITLE: Font = Font { size: 21.0, bold: true, colour: "#111" };
pub(crate) const SUBTITLE: Font = Font { size: 14.0, bold: false, colour: "#555" };
pub(crate) const PANEL_TITLE: Font = Font { size: 15.0, bold: true, colour: "#222" };
pub(crate) const LABEL: Font = Font { size: 12.5, bold: false, colour: "#444" };
pub(crate) const TICK: Font = Font { size: 12.0, bold: false, colour: "#555" };
pub(crate) const NOTE: Font = Font { size: 12.0, bold: false, colour: "#666" };

/// Lines of text are this many times their font size apart.
pub(crate) const LINE_HEIGHT: f64 = 1.35;

const MARGIN: f64 = 28.0;
const COLUMN_GAP: f64 = 40.0;
const ROW_GAP: f64 = 30.0;
/// Between the tick labels and the axis.
pub(crate) const TICK_GAP: f64 = 8.0;
/// Room below the axes for tick labels, and for the label of the axis below those.
const TICK_ROW: f64 = 22.0;
const LABEL_ROW: f64 = 21.0;
/// Kept free to the right of the axes, for half a tick label.
const RIGHT: f64 = 16.0;
/// Least distance between two tick labels.
const TICK_LABEL_GAP: f64 = 12.0;

/// The whole drawing.
pub(crate) struct Layout<'a> {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) left: f64,
    pub(crate) title: Vec<String>,
    pub(crate) subtitle: Vec<String>,
    pub(crate) panels: Vec<PanelLayout<'a>>,
    pub(crate) note: Vec<String>,
    /// First baselines of the texts.
    pub(crate) title_y: f64,
    pub(crate) subtitle_y: f64,
    pub(crate) note_y: f64,
}

/// One panel within it.
pub(crate) struct PanelLayout<'a> {
    pub(crate) panel: &'a Panel,
    pub(crate) looks: Vec<Look>,
    pub(crate) cell: Rect,
    pub(crate) title: Vec<String>,
    pub(crate) legend: LegendPlan,
    pub(crate) plot: Plot,
    pub(crate) x_ticks: Ticks,
    pub(crate) y_ticks: Ticks,
    pub(crate) has_data: bool,
}

impl Panel {
    /// The points of `series` that have a place on both axes, as they are drawn.
    pub(crate) fn drawable<'a>(&self, series: &'a Series) -> impl Iterator<Item = (f64, f64)> + use<'a> {
        let (x_scale, y_scale) = (self.x.scale, self.y.scale);
        series.points.iter().filter_map(move |(x, y)| Some((tame(x_scale, *x)?, tame(y_scale, *y)?)))
    }
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
            y += 16.0;
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
            let footer = row.iter().map(PanelLayout::footer).fold(0.0, f64::max);
            for ((column, panel), left) in row.iter_mut().enumerate().zip(&lefts) {
                let x = MARGIN + column as f64 * (cell_width + COLUMN_GAP);
                panel.place(
                    Rect { x, y, width: cell_width, height: header + plot_height + footer },
                    *left,
                    header,
                );
            }
            y += header + plot_height + footer + ROW_GAP;
        }
        if panels.is_empty() {
            y += 120.0;
        }
        y -= if panels.is_empty() { 0.0 } else { ROW_GAP };
        if !note.is_empty() {
            y += 16.0;
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
            note,
            title_y,
            subtitle_y,
            note_y,
        }
    }
}

impl<'a> PanelLayout<'a> {
    /// What can be said before the grid is known.
    fn measure(panel: &'a Panel, looks: Vec<Look>, width: f64, plot_height: f64) -> Self {
        let points: Vec<(f64, f64)> = panel.series.iter().flat_map(|series| panel.drawable(series)).collect();
        let xs: Vec<f64> = points.iter().map(|point| point.0).collect();
        let mut ys: Vec<f64> = points.iter().map(|point| point.1).collect();
        let bars = bars::positions(panel);
        if !bars.is_empty() && panel.y.scale == Scale::Linear && panel.y.range == Range::Auto {
            ys.push(0.0);
        }
        // Powers are short and even: they may stand closer than other numbers.
        let n_ticks = n_ticks(plot_height, if panel.y.scale == Scale::Linear { 44.0 } else { 30.0 });
        let plot = Plot {
            frame: Rect { x: 0.0, y: 0.0, width, height: plot_height },
            x: Mapping::fit(&panel.x, &xs, if bars.is_empty() { Margin::Snug } else { Margin::Bars(&bars) }),
            y: Mapping::fit(&panel.y, &ys, Margin::Ticks(n_ticks)),
        };
        Self {
            panel,
            looks,
            cell: plot.frame,
            title: PANEL_TITLE.wrap(&panel.title, width),
            legend: LegendPlan::new(panel, width),
            x_ticks: Ticks::default(),
            y_ticks: if points.is_empty() {
                Ticks::default()
            } else {
                Ticks::choose(&plot.y, n_ticks, false)
            },
            has_data: !points.is_empty(),
            plot,
        }
    }

    /// Room for the labels of the vertical axis.
    fn left(&self) -> f64 {
        let widest = self.y_ticks.major.iter().map(|tick| TICK.width(&tick.label)).fold(0.0, f64::max);
        widest + TICK_GAP
    }

    fn header(&self) -> f64 {
        let legend = if self.legend.height() > 0.0 { self.legend.height() + 4.0 } else { 0.0 };
        let y_label = if self.panel.y.label.is_empty() { 0.0 } else { LABEL.size * LINE_HEIGHT };
        self.title_height() + legend + y_label + 14.0
    }

    fn footer(&self) -> f64 {
        TICK_ROW + if self.panel.x.label.is_empty() { 0.0 } else { LABEL_ROW }
    }

    /// Room for the title; the legend follows.
    pub(crate) fn title_height(&self) -> f64 {
        if self.title.is_empty() { 0.0 } else { block_height(PANEL_TITLE, &self.title) + 3.0 }
    }

    /// Fits the panel into its cell, with the axes as far from its edges as its neighbours need.
    fn place(&mut self, cell: Rect, left: f64, header: f64) {
        self.cell = cell;
        self.plot.frame = Rect {
            x: cell.x + left,
            y: cell.y + header,
            width: (cell.width - left - RIGHT).max(40.0),
            height: self.plot.frame.height,
        };
        if self.has_data {
            self.x_ticks = x_ticks(self.panel, &self.plot);
        }
    }
}

/// As many ticks as have room for their labels. Bars are labelled where they stand if that fits.
fn x_ticks(panel: &Panel, plot: &Plot) -> Ticks {
    let positions: Vec<f64> = bars::positions(panel).into_iter().filter(|x| plot.x.shows(*x)).collect();
    if !positions.is_empty() && positions.len() <= 40 {
        let ticks = Ticks::at(&positions);
        if has_room(&ticks, plot) {
            return ticks;
        }
    }
    let is_whole = |value: f64| value.fract() == 0.0;
    let whole = panel.series.iter().flat_map(|series| panel.drawable(series)).all(|(x, _)| is_whole(x));
    let most = n_ticks(plot.frame.width, 44.0);
    (2..=most)
        .rev()
        .map(|n_ticks| Ticks::choose(&plot.x, n_ticks, whole))
        .find(|ticks| has_room(ticks, plot))
        .unwrap_or_default()
}

/// Whether no two labels come too close.
fn has_room(ticks: &Ticks, plot: &Plot) -> bool {
    let place = |value| plot.x.fraction(value).unwrap_or(0.0) * plot.frame.width;
    ticks.major.windows(2).all(|pair| {
        let widths = TICK.width(&pair[0].label) + TICK.width(&pair[1].label);
        place(pair[1].value) - place(pair[0].value) >= widths / 2.0 + TICK_LABEL_GAP
    })
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

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive length of some hundreds"
)]
fn n_ticks(length: f64, apart: f64) -> usize {
    (length / apart) as usize
}

fn block_height(font: Font, lines: &[String]) -> f64 {
    lines.len() as f64 * font.size * LINE_HEIGHT
}
