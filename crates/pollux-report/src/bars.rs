//! Bars, side by side where several series have them.

use crate::axis::Scale;
use crate::canvas::{Canvas, Num};
use crate::figure::{Panel, Series, Style};
use crate::look::Look;
use crate::marks::{self, Plot};
use crate::scale::within;

/// The part of the room between two neighbours that their bars fill.
const FILLED: f64 = 0.76;
/// No bar is wider, however few there are.
const WIDEST: f64 = 54.0;
const NARROWEST: f64 = 0.6;

/// How the bars of a panel share their room.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bars {
    n_series: usize,
    width: f64,
    /// Where bars start, as a fraction of the vertical axis.
    base: f64,
}

impl Bars {
    /// The arrangement for all bars of `panel`.
    pub(crate) fn arrange(panel: &Panel, plot: &Plot) -> Self {
        let n_series = panel.series.iter().filter(|series| series.style == Style::Bars).count().max(1);
        let mut places: Vec<f64> = positions(panel).into_iter().filter_map(|x| plot.x.fraction(x)).collect();
        places.sort_by(f64::total_cmp);
        let least_gap = places.windows(2).map(|pair| pair[1] - pair[0]).fold(1.0, f64::min);
        let room = least_gap * plot.frame.width * FILLED;
        let base = match plot.y.scale() {
            Scale::Linear => plot.y.fraction(0.0).unwrap_or(0.0).clamp(0.0, 1.0),
            Scale::Log2 | Scale::Log10 => 0.0,
        };
        Self { n_series, width: (room / n_series as f64).clamp(NARROWEST, WIDEST), base }
    }

    /// Draws the bars of one series, the `index`th that has bars.
    pub(crate) fn draw(&self, canvas: &mut Canvas, plot: &Plot, series: &Series, index: usize, look: &Look) {
        let offset = (index as f64 - self.n_series as f64 / 2.0) * self.width;
        let gap = (self.width * 0.12).min(2.0);
        for (x, y) in series.points.iter().filter_map(|point| plot.fractions(*point)) {
            if !within(x) {
                continue;
            }
            let (middle, tip) = plot.on_canvas((x, y.clamp(0.0, 1.0)));
            let (_, base) = plot.on_canvas((x, self.base));
            let left = (middle + offset + gap / 2.0).max(plot.frame.x);
            let right = (middle + offset + self.width - gap / 2.0).min(plot.frame.right());
            if right <= left || (tip - base).abs() < 0.005 {
                continue;
            }
            canvas.line(format_args!(
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}/>",
                Num(left),
                Num(tip.min(base)),
                Num(right - left),
                Num((tip - base).abs()),
                marks::bar_fill(look),
            ));
        }
    }
}

/// The different horizontal positions of all bars of a panel, in order.
pub(crate) fn positions(panel: &Panel) -> Vec<f64> {
    let mut positions: Vec<f64> = panel
        .series
        .iter()
        .filter(|series| series.style == Style::Bars)
        .flat_map(|series| panel.drawable(series))
        .map(|(x, _)| x)
        .collect();
    positions.sort_by(f64::total_cmp);
    positions.dedup();
    positions
}
