//! Draws a whole figure.

use crate::canvas::Canvas;
use crate::figure::{Emphasis, Figure, Panel, Series, Style};
use crate::layout::{LINE_HEIGHT, Layout, NOTE, SUBTITLE, TITLE};
use crate::look;
use crate::{number, panel};

pub(crate) fn draw(figure: &Figure) -> String {
    let layout = Layout::new(figure);
    let title = if figure.title.is_empty() { "Figure" } else { &figure.title };
    let mut canvas = Canvas::new(layout.width, layout.height, title, &describe(figure));
    draw_hatchings(&mut canvas, &layout);
    canvas.paragraph(TITLE, layout.left, layout.title_y, &layout.title, TITLE.size * LINE_HEIGHT);
    canvas.paragraph(SUBTITLE, layout.left, layout.subtitle_y, &layout.subtitle, SUBTITLE.size * LINE_HEIGHT);
    for panel in &layout.panels {
        panel::draw(&mut canvas, panel);
    }
    if let Some(frame) = layout.placeholder {
        panel::draw_no_data(&mut canvas, frame);
    }
    canvas.paragraph(NOTE, layout.left, layout.note_y, &layout.note, NOTE.size * LINE_HEIGHT);
    canvas.finish()
}

/// The hatchings that the bars of this figure use.
fn draw_hatchings(canvas: &mut Canvas, layout: &Layout<'_>) {
    let bars = layout
        .panels
        .iter()
        .flat_map(|panel| panel.panel.series.iter().zip(&panel.looks))
        .filter(|(series, _)| series.style == Style::Bars);
    look::draw_hatchings(canvas, bars.filter_map(|(_, look)| look.hatch));
}

/// The figure in words, for those who cannot see it.
fn describe(figure: &Figure) -> String {
    if figure.panels.is_empty() {
        return "No data.".to_owned();
    }
    let subtitle = figure.subtitle.iter().map(|subtitle| format!("{subtitle}."));
    subtitle.chain(figure.panels.iter().map(describe_panel)).collect::<Vec<_>>().join(" ")
}

fn describe_panel(panel: &Panel) -> String {
    let axes = [panel.y.label.as_str(), &panel.x.label].map(str::trim);
    let axes = if axes.contains(&"") { axes.concat() } else { axes.join(" against ") };
    let head: Vec<&str> = [panel.title.trim(), &axes].into_iter().filter(|part| !part.is_empty()).collect();
    let head = if head.is_empty() { "A panel".to_owned() } else { head.join(", ") };
    let series: Vec<String> = panel.series.iter().map(|series| describe_series(panel, series)).collect();
    let series = if series.is_empty() { "no data".to_owned() } else { series.join("; ") };
    format!("{head}: {series}.")
}

/// The ends of a series: enough to know which way it goes.
fn describe_series(panel: &Panel, series: &Series) -> String {
    let name = if series.name.is_empty() { "a series" } else { &series.name };
    let kind = if series.emphasis == Emphasis::Reference { " (reference)" } else { "" };
    let value_at = |(x, y): (f64, f64)| format!("{} at {}", number::rounded(y), number::rounded(x));
    let mut points = panel.drawable(series);
    let what = match (points.next(), points.last()) {
        (Some(first), Some(last)) => format!("goes from {} to {}", value_at(first), value_at(last)),
        (Some(only), None) => format!("is {}", value_at(only)),
        (None, _) => "has no data".to_owned(),
    };
    format!("{name}{kind} {what}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;

    #[test]
    fn a_figure_can_be_read_aloud() {
        let panel = Panel::new("Goodput", Axis::linear("GPUs"), Axis::linear("samples/s"))
            .with_series(Series::new("resnet", [(1.0, 100.0), (2.0, 190.0), (64.0, 2_500.0)]))
            .with_series(Series::new("ideal", [(64.0, 6_400.0)]).reference())
            .with_series(Series::new("bert", []));
        let figure = Figure::new("").with_subtitle("Two jobs").with_panel(panel);
        assert_eq!(
            describe(&figure),
            "Two jobs. Goodput, samples/s against GPUs: resnet goes from 100 at 1 to 2.5k at 64; \
             ideal (reference) is 6.4k at 64; bert has no data."
        );
    }

    #[test]
    fn what_has_no_labels_is_described_all_the_same() {
        let figure = Figure::new("").with_panel(Panel::new("", Axis::linear("x"), Axis::linear("")));
        assert_eq!(describe(&figure), "x: no data.");
        assert_eq!(describe(&Figure::default()), "No data.");
    }
}
