//! One cell of the grid: how much room a panel needs, and where its axes go.

use crate::axis::{Range, Scale};
use crate::bars;
use crate::canvas::Rect;
use crate::figure::{Panel, Series};
use crate::layout::{LINE_HEIGHT, block_height};
use crate::legend::LegendPlan;
use crate::look::Look;
use crate::marks::Plot;
use crate::scale::{Mapping, Margin, tame};
use crate::text::Font;
use crate::ticks::Ticks;

pub(crate) const PANEL_TITLE: Font = Font { size: 15.0, bold: true, colour: "#222" };
pub(crate) const LABEL: Font = Font { size: 12.5, bold: false, colour: "#444" };
pub(crate) const TICK: Font = Font { size: 12.0, bold: false, colour: "#555" };

/// Between the tick labels and the axis.
pub(crate) const TICK_GAP: f64 = 8.0;
/// Room below the axes for tick labels, and for the label of the axis below those.
const TICK_ROW: f64 = 22.0;
const LABEL_ROW: f64 = 21.0;
/// Kept free to the right of the axes, for half a tick label.
const RIGHT: f64 = 16.0;
/// Least distance between two tick labels.
const TICK_LABEL_GAP: f64 = 12.0;

/// A panel, measured and placed.
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

impl<'a> PanelLayout<'a> {
    /// What can be said before the grid is known.
    pub(crate) fn measure(panel: &'a Panel, looks: Vec<Look>, width: f64, plot_height: f64) -> Self {
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
    pub(crate) fn left(&self) -> f64 {
        let widest = self.y_ticks.major.iter().map(|tick| TICK.width(&tick.label)).fold(0.0, f64::max);
        widest + TICK_GAP
    }

    pub(crate) fn header(&self) -> f64 {
        let legend = if self.legend.height() > 0.0 { self.legend.height() + 4.0 } else { 0.0 };
        let y_label = if self.panel.y.label.is_empty() { 0.0 } else { LABEL.size * LINE_HEIGHT };
        self.title_height() + legend + y_label + 14.0
    }

    pub(crate) fn footer(&self) -> f64 {
        TICK_ROW + if self.panel.x.label.is_empty() { 0.0 } else { LABEL_ROW }
    }

    /// Room for the title; the legend follows.
    pub(crate) fn title_height(&self) -> f64 {
        if self.title.is_empty() { 0.0 } else { block_height(PANEL_TITLE, &self.title) + 3.0 }
    }

    /// Fits the panel into its cell, with the axes as far from its edges as its neighbours need.
    pub(crate) fn place(&mut self, cell: Rect, left: f64, header: f64) {
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

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive length of some hundreds"
)]
fn n_ticks(length: f64, apart: f64) -> usize {
    (length / apart) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;
    use crate::figure::Style;

    fn check_x_labels(x: Axis, style: Style, xs: &[f64], expected: &[&str]) {
        let series = Series::new("", xs.iter().map(|x| (*x, 1.0))).with_style(style);
        let panel = Panel::new("", x, Axis::linear("")).with_series(series);
        let mut layout = PanelLayout::measure(&panel, Vec::new(), 300.0, 200.0);
        layout.place(Rect { x: 0.0, y: 0.0, width: 300.0, height: 250.0 }, 40.0, 20.0);
        let labels: Vec<&str> = layout.x_ticks.major.iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(labels, expected);
    }

    #[test]
    fn bars_are_labelled_where_they_stand() {
        check_x_labels(Axis::linear(""), Style::Bars, &[3.0, 7.0, 8.0], &["3", "7", "8"]);
    }

    #[test]
    fn counts_are_labelled_by_whole_numbers() {
        check_x_labels(Axis::linear(""), Style::Line, &[1.0, 2.0], &["1", "2"]);
        check_x_labels(Axis::linear(""), Style::Line, &[1.0, 1.5], &["1", "1.2", "1.4"]);
    }

    #[test]
    fn long_labels_are_fewer() {
        let x = Axis::linear("").between(1_000_000.0, 1_000_010.0);
        check_x_labels(x, Style::Line, &[1_000_001.0], &["1M", "1.000005M", "1.00001M"]);
    }
}
