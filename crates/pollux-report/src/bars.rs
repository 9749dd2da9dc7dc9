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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;
    use crate::canvas::Rect;
    use crate::scale::{Mapping, Margin};

    fn plot(y: &Axis) -> Plot {
        let x = Mapping::fit(&Axis::linear("").between(0.0, 10.0), &[], Margin::Snug);
        let y = Mapping::fit(y, &[], Margin::Snug);
        Plot { frame: Rect { x: 0.0, y: 0.0, width: 100.0, height: 100.0 }, x, y }
    }

    fn panel(n_series: usize, points: &[(f64, f64)]) -> Panel {
        let empty = Panel::new("", Axis::linear(""), Axis::linear(""));
        (0..n_series).fold(empty, |panel, index| {
            let series = Series::new(index.to_string(), points.iter().copied());
            panel.with_series(series.with_style(Style::Bars))
        })
    }

    #[test]
    fn series_share_the_room_between_neighbours() {
        let points = [(2.0, 1.0), (4.0, 1.0), (8.0, 1.0)];
        let y = Axis::linear("").between(0.0, 1.0);
        // Neighbours are 20 apart on the canvas.
        assert!((Bars::arrange(&panel(1, &points), &plot(&y)).width - 20.0 * FILLED).abs() < 1e-9);
        assert!((Bars::arrange(&panel(4, &points), &plot(&y)).width - 5.0 * FILLED).abs() < 1e-9);
    }

    #[test]
    fn bars_start_at_zero_if_it_is_in_sight() {
        let check = |y: &Axis, base: f64| {
            assert_eq!(
                Bars::arrange(&panel(1, &[(1.0, 1.0)]), &plot(y)),
                Bars { n_series: 1, width: WIDEST, base }
            );
        };
        check(&Axis::linear("").between(-5.0, 5.0), 0.5);
        check(&Axis::linear("").between(5.0, 10.0), 0.0);
        check(&Axis::linear("").between(-10.0, -5.0), 1.0);
        check(&Axis::log10("").between(1.0, 10.0), 0.0);
    }
}
