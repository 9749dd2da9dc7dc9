//! Draws one panel: title, legend, grid, axes, series.

use std::fmt::Write as _;

use crate::bars::Bars;
use crate::canvas::{Anchor, Canvas, Num, Rect};
use crate::cell::{LABEL, PANEL_TITLE, PanelLayout, TICK, TICK_GAP};
use crate::figure::{Emphasis, Series, Style};
use crate::layout::LINE_HEIGHT;
use crate::marks;
use crate::text::{Escaped, Font};

pub(crate) const GRID: &str = "#e4e4e4";
const MINOR_GRID: &str = "#f1f1f1";
pub(crate) const AXIS: &str = "#8a8a8a";
pub(crate) const NO_DATA: Font = Font { size: 14.0, bold: false, colour: "#767676" };

pub(crate) fn draw(canvas: &mut Canvas, layout: &PanelLayout<'_>) {
    canvas.open(format_args!("g"));
    draw_header(canvas, layout);
    if layout.has_data {
        draw_grid(canvas, layout);
        draw_series(canvas, layout);
        draw_tick_labels(canvas, layout);
    } else {
        draw_no_data(canvas, layout.plot.frame);
    }
    canvas.close("g");
}

/// An empty frame that says why it is empty.
pub(crate) fn draw_no_data(canvas: &mut Canvas, frame: Rect) {
    canvas.line(format_args!(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#fafafa\" stroke=\"{GRID}\"/>",
        Num(frame.x),
        Num(frame.y),
        Num(frame.width),
        Num(frame.height),
    ));
    let (x, y) = (frame.x + frame.width / 2.0, frame.y + frame.height / 2.0 + 5.0);
    canvas.text(NO_DATA, Anchor::Middle, x, y, "no data");
}

fn draw_header(canvas: &mut Canvas, layout: &PanelLayout<'_>) {
    let (cell, frame) = (layout.cell, layout.plot.frame);
    let title_y = cell.y + PANEL_TITLE.size;
    canvas.paragraph(PANEL_TITLE, cell.x, title_y, &layout.title, PANEL_TITLE.size * LINE_HEIGHT);
    let legend_y = cell.y + layout.title_height();
    layout.legend.draw(canvas, layout.panel, &layout.looks, cell.x, legend_y);
    if layout.has_data {
        let y_label = LABEL.shorten(&layout.panel.y.label, cell.width);
        canvas.text(LABEL, Anchor::Start, cell.x, frame.y - 13.0, &y_label);
        let x_label = LABEL.shorten(&layout.panel.x.label, frame.width);
        let middle = frame.x + frame.width / 2.0;
        canvas.text(LABEL, Anchor::Middle, middle, frame.bottom() + 39.0, &x_label);
    }
}

fn draw_grid(canvas: &mut Canvas, layout: &PanelLayout<'_>) {
    let plot = &layout.plot;
    let (left, top) = plot.on_canvas((0.0, 1.0));
    let mut draw = |colour: &str, xs: &mut dyn Iterator<Item = f64>, ys: &mut dyn Iterator<Item = f64>| {
        let mut data = String::new();
        for x in xs.filter_map(|value| plot.x.fraction(value)) {
            let _ =
                write!(data, "M{} {}v{}", Num(plot.on_canvas((x, 1.0)).0), Num(top), Num(plot.frame.height));
        }
        for y in ys.filter_map(|value| plot.y.fraction(value)) {
            let _ =
                write!(data, "M{} {}h{}", Num(left), Num(plot.on_canvas((0.0, y)).1), Num(plot.frame.width));
        }
        if !data.is_empty() {
            canvas.line(format_args!("<path d=\"{data}\" stroke=\"{colour}\"/>"));
        }
    };
    let (x, y) = (&layout.x_ticks, &layout.y_ticks);
    draw(MINOR_GRID, &mut x.minor.iter().copied(), &mut y.minor.iter().copied());
    // Bars stand on their labels: lines behind them would only add noise.
    let has_bars = layout.panel.series.iter().any(|series| series.style == Style::Bars);
    let x_major = if has_bars { &[][..] } else { &x.major };
    draw(GRID, &mut x_major.iter().map(|tick| tick.value), &mut y.major.iter().map(|tick| tick.value));
}

/// Bars stand on the axis, lines run over it, and what is only compared with stays behind the rest.
fn draw_series(canvas: &mut Canvas, layout: &PanelLayout<'_>) {
    let all = || layout.panel.series.iter().zip(&layout.looks);
    let bars = Bars::arrange(layout.panel, &layout.plot);
    for (index, (series, look)) in all().filter(|(series, _)| series.style == Style::Bars).enumerate() {
        open_series(canvas, series);
        bars.draw(canvas, &layout.plot, series, index, look);
        canvas.close("g");
    }
    draw_axis_lines(canvas, layout);
    for emphasis in [Emphasis::Reference, Emphasis::Normal] {
        for (series, look) in all().filter(|(s, _)| s.style != Style::Bars && s.emphasis == emphasis) {
            open_series(canvas, series);
            marks::draw(canvas, &layout.plot, series, look);
            canvas.close("g");
        }
    }
}

/// A group with a name, which a browser shows when pointed at.
fn open_series(canvas: &mut Canvas, series: &Series) {
    canvas.open(format_args!("g"));
    if !series.name.is_empty() {
        canvas.line(format_args!("<title>{}</title>", Escaped(&series.name)));
    }
}

/// The bottom line with its tick marks, and a line at zero if that is further up.
fn draw_axis_lines(canvas: &mut Canvas, layout: &PanelLayout<'_>) {
    let plot = &layout.plot;
    let mut data = String::new();
    let zero = plot.y.fraction(0.0).filter(|zero| *zero > 0.0 && *zero < 1.0);
    for place in [Some(0.0), zero].into_iter().flatten() {
        let (x, y) = plot.on_canvas((0.0, place));
        let _ = write!(data, "M{} {}h{}", Num(x), Num(y), Num(plot.frame.width));
    }
    for place in layout.x_ticks.major.iter().filter_map(|tick| plot.x.fraction(tick.value)) {
        let (x, y) = plot.on_canvas((place, 0.0));
        let _ = write!(data, "M{} {}v4", Num(x), Num(y));
    }
    canvas.line(format_args!("<path d=\"{data}\" stroke=\"{AXIS}\"/>"));
}

fn draw_tick_labels(canvas: &mut Canvas, layout: &PanelLayout<'_>) {
    let (plot, cell) = (&layout.plot, layout.cell);
    for tick in &layout.x_ticks.major {
        let (x, y) = plot.on_canvas((plot.x.fraction(tick.value).unwrap_or(0.0), 0.0));
        let half = TICK.width(&tick.label) / 2.0;
        let middle = x.min(cell.right() - half).max(cell.x + half);
        canvas.text(TICK, Anchor::Middle, middle, y + 18.0, &tick.label);
    }
    for tick in &layout.y_ticks.major {
        let (x, y) = plot.on_canvas((0.0, plot.y.fraction(tick.value).unwrap_or(0.0)));
        canvas.text(TICK, Anchor::End, x - TICK_GAP, y + 4.2, &tick.label);
    }
}
