//! Lines, steps and markers.

use std::fmt::Write as _;

use crate::canvas::{Canvas, Num, Rect};
use crate::figure::{Series, Style};
use crate::look::{Look, Marker};
use crate::scale::{Mapping, tame, within};

/// Half the extent of a marker.
const MARKER_RADIUS: f64 = 4.0;
/// Markers on a line keep this distance.
const MARKER_DISTANCE: f64 = 11.0;

/// A position, in whatever units the context has.
type Point = (f64, f64);

/// The area between the axes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Plot {
    pub(crate) frame: Rect,
    pub(crate) x: Mapping,
    pub(crate) y: Mapping,
}

impl Plot {
    /// The position of a point as fractions of the axes.
    pub(crate) fn fractions(&self, (x, y): Point) -> Option<Point> {
        let (x, y) = (tame(self.x.scale(), x)?, tame(self.y.scale(), y)?);
        Some((self.x.fraction(x)?, self.y.fraction(y)?))
    }

    /// The position on the canvas.
    pub(crate) fn on_canvas(&self, (x, y): Point) -> Point {
        (self.frame.x + x * self.frame.width, self.frame.bottom() - y * self.frame.height)
    }
}

/// Draws a series that is not one of bars.
pub(crate) fn draw(canvas: &mut Canvas, plot: &Plot, series: &Series, look: &Look) {
    let mut markers = Vec::new();
    for run in runs(plot, &series.points) {
        let visible = run.iter().copied().filter(|(x, y)| within(*x) && within(*y));
        if matches!(series.style, Style::Points | Style::LineWithPoints) || run.len() == 1 {
            markers.extend(visible.map(|point| plot.on_canvas(point)));
        }
        if series.style != Style::Points {
            let corners = if series.style == Style::Step { stairs(&run) } else { run };
            let data = path_data(plot, &corners);
            if !data.is_empty() {
                draw_path(canvas, series.style, look, &data);
            }
        }
    }
    if series.style == Style::LineWithPoints {
        markers = thinned(&markers);
    }
    for marker in markers {
        draw_marker(canvas, look, marker);
    }
}

/// Draws a path as a line of this look.
pub(crate) fn draw_path(canvas: &mut Canvas, style: Style, look: &Look, data: &str) {
    // Markers tell lines apart already, and dashes between them only blur that.
    let is_dashed = !look.dash.is_empty() && style != Style::LineWithPoints;
    let dash = if is_dashed { format!(" stroke-dasharray=\"{}\"", look.dash) } else { String::new() };
    canvas.line(format_args!(
        "<path d=\"{data}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"{dash}/>",
        look.colour,
        Num(look.line_width),
    ));
}

/// Draws one marker, with a white rim that keeps it off its neighbours.
pub(crate) fn draw_marker(canvas: &mut Canvas, look: &Look, (x, y): Point) {
    let r = MARKER_RADIUS;
    let paint = format!("fill=\"{}\" stroke=\"#fff\"", look.colour);
    let shape = match look.marker {
        Marker::Circle => {
            canvas.line(format_args!("<circle cx=\"{}\" cy=\"{}\" r=\"{r}\" {paint}/>", Num(x), Num(y)));
            return;
        }
        Marker::Square => "m-3.6 -3.6h7.2v7.2h-7.2z",
        Marker::Triangle => "m0 -4.8l4.6 8.2h-9.2z",
        Marker::Diamond => "m0 -5l5 5l-5 5l-5 -5z",
        Marker::Cross => "m-1.6 -4.8h3.2v3.2h3.2v3.2h-3.2v3.2h-3.2v-3.2h-3.2v-3.2h3.2z",
        Marker::Wedge => "m0 4.8l4.6 -8.2h-9.2z",
    };
    canvas.line(format_args!("<path d=\"M{} {}{shape}\" {paint}/>", Num(x), Num(y)));
}

/// Fill and outline of bars as attributes.
pub(crate) fn bar_fill(look: &Look) -> String {
    match look.hatch {
        Some(number) => format!("fill=\"url(#pollux-hatch-{number})\" stroke=\"{}\"", look.colour),
        None => format!("fill=\"{0}\" stroke=\"{0}\"", look.colour),
    }
}

/// The unbroken stretches of a series, as fractions.
fn runs(plot: &Plot, points: &[Point]) -> Vec<Vec<Point>> {
    let places: Vec<Option<Point>> = points.iter().map(|point| plot.fractions(*point)).collect();
    places
        .split(Option::is_none)
        .filter(|run| !run.is_empty())
        .map(|run| run.iter().flatten().copied().collect())
        .collect()
}

/// The corners of a line that holds each value until the next point.
fn stairs(run: &[Point]) -> Vec<Point> {
    let mut corners: Vec<Point> = run.first().copied().into_iter().collect();
    for pair in run.windows(2) {
        corners.push((pair[1].0, pair[0].1));
        corners.push(pair[1]);
    }
    corners
}

/// Path data of the visible part of a line; empty if there is none.
fn path_data(plot: &Plot, corners: &[Point]) -> String {
    let mut data = String::new();
    let mut pen = None;
    for pair in corners.windows(2) {
        let Some((start, end)) = clip(pair[0], pair[1]) else { continue };
        let (start, end) = (hundredths(plot.on_canvas(start)), hundredths(plot.on_canvas(end)));
        if pen == Some(end) {
            continue;
        }
        if pen != Some(start) {
            let _ = write!(data, "M{} {}", Num(start.0), Num(start.1));
        }
        let _ = write!(data, "L{} {}", Num(end.0), Num(end.1));
        pen = Some(end);
    }
    data
}

/// A position at the precision of the document: what is equal there needs no second segment.
fn hundredths((x, y): Point) -> Point {
    ((x * 100.0).round() / 100.0, (y * 100.0).round() / 100.0)
}

/// The part of a segment within the unit square, by the method of Liang and Barsky.
fn clip(start: Point, end: Point) -> Option<(Point, Point)> {
    let (dx, dy) = (end.0 - start.0, end.1 - start.1);
    let (mut enter, mut leave) = (0.0f64, 1.0f64);
    for (change, room) in [(-dx, start.0), (dx, 1.0 - start.0), (-dy, start.1), (dy, 1.0 - start.1)] {
        if change == 0.0 {
            if room < -1e-9 {
                return None;
            }
        } else if change < 0.0 {
            enter = enter.max(room / change);
        } else {
            leave = leave.min(room / change);
        }
    }
    let at = |t: f64| (start.0 + t * dx, start.1 + t * dy);
    let first = if enter == 0.0 { start } else { at(enter) };
    let last = if leave >= 1.0 { end } else { at(leave) };
    (enter <= leave).then_some((first, last))
}

/// Markers without those too close to the one before.
fn thinned(markers: &[Point]) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::new();
    for &(x, y) in markers {
        if kept.last().is_none_or(|last| (x - last.0).hypot(y - last.1) >= MARKER_DISTANCE) {
            kept.push((x, y));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;
    use crate::scale::Margin;

    fn plot() -> Plot {
        let ten = Mapping::fit(&Axis::linear("").between(0.0, 10.0), &[], Margin::Snug);
        Plot { frame: Rect { x: 0.0, y: 0.0, width: 100.0, height: 100.0 }, x: ten, y: ten }
    }

    #[test]
    fn a_point_that_is_not_finite_leaves_a_gap() {
        let points = [(0.0, 1.0), (1.0, 1.0), (2.0, f64::NAN), (f64::INFINITY, 1.0), (3.0, 1.0)];
        let lengths: Vec<usize> = runs(&plot(), &points).iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, 1]);
    }

    #[test]
    fn a_line_is_cut_at_the_frame() {
        let corners = &runs(&plot(), &[(-10.0, 0.0), (10.0, 10.0), (30.0, 10.0)])[0];
        assert_eq!(path_data(&plot(), corners), "M0 50L100 0");
        assert_eq!(path_data(&plot(), &[(2.0, 0.0), (3.0, 1.0)]), "");
    }

    #[test]
    fn a_step_holds_its_value() {
        assert_eq!(stairs(&[(0.0, 1.0), (2.0, 3.0)]), [(0.0, 1.0), (2.0, 1.0), (2.0, 3.0)]);
    }

    #[test]
    fn repeated_points_are_drawn_once() {
        let corners = [(0.0, 0.0), (0.5, 0.5), (0.5, 0.5), (0.500_001, 0.5), (1.0, 1.0)];
        assert_eq!(path_data(&plot(), &corners), "M0 100L50 50L100 0");
    }

    #[test]
    fn crowded_markers_are_thinned() {
        let markers: Vec<Point> = (0..100).map(|x| (f64::from(x), 0.0)).collect();
        assert_eq!(thinned(&markers).len(), 10);
    }
}
