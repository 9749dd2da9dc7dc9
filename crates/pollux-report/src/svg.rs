//! Draws a whole figure.

use std::collections::BTreeSet;

use crate::canvas::{Canvas, Num, Rect};
use crate::figure::{Emphasis, Figure, Panel, Style};
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
    if layout.panels.is_empty() {
        let (width, height) = (layout.width - 2.0 * layout.left, 120.0);
        let y = layout.note_y - NOTE.size - height - if layout.note.is_empty() { 0.0 } else { 16.0 };
        panel::draw_no_data(&mut canvas, Rect { x: layout.left, y, width, height });
    }
    canvas.paragraph(NOTE, layout.left, layout.note_y, &layout.note, NOTE.size * LINE_HEIGHT);
    canvas.finish()
}

/// The hatchings that the bars of this figure use. Their names say how they look, so that two figures
/// within one page may share them.
fn draw_hatchings(canvas: &mut Canvas, layout: &Layout<'_>) {
    let used: BTreeSet<usize> = layout
        .panels
        .iter()
        .flat_map(|panel| panel.panel.series.iter().zip(&panel.looks))
        .filter(|(series, _)| series.style == Style::Bars)
        .filter_map(|(_, look)| look.hatch)
        .collect();
    if used.is_empty() {
        return;
    }
    canvas.open(format_args!("defs"));
    for number in used {
        let (strokes, colour) = look::hatching(number);
        canvas.open(format_args!(
            "pattern id=\"pollux-hatch-{number}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\""
        ));
        canvas.line(format_args!("<rect width=\"8\" height=\"8\" fill=\"{colour}\" fill-opacity=\"0.3\"/>"));
        canvas
            .line(format_args!("<path d=\"{strokes}\" stroke=\"{colour}\" stroke-width=\"{}\"/>", Num(1.8)));
        canvas.close("pattern");
    }
    canvas.close("defs");
}

/// The figure in words, for those who cannot see it.
fn describe(figure: &Figure) -> String {
    if figure.panels.is_empty() {
        return "No data.".to_owned();
    }
    let subtitle = figure.subtitle.iter().map(|subtitle| format!("{subtitle}. "));
    subtitle.chain(figure.panels.iter().map(describe_panel)).collect::<String>().trim_end().to_owned()
}

fn describe_panel(panel: &Panel) -> String {
    let series: Vec<String> = panel
        .series
        .iter()
        .map(|series| {
            let points: Vec<(f64, f64)> = panel.drawable(series).collect();
            let name = match series.emphasis {
                Emphasis::Normal => series.name.clone(),
                Emphasis::Reference => format!("{} (reference)", series.name),
            };
            match (points.first(), points.last()) {
                (Some(first), Some(last)) if points.len() > 1 => format!(
                    "{name} goes from {} at {} to {} at {}",
                    number::rounded(first.1),
                    number::rounded(first.0),
                    number::rounded(last.1),
                    number::rounded(last.0),
                ),
                (Some(only), _) => {
                    format!("{name} is {} at {}", number::rounded(only.1), number::rounded(only.0))
                }
                _ => format!("{name} has no data"),
            }
        })
        .collect();
    let series = if series.is_empty() { "no data".to_owned() } else { series.join("; ") };
    format!("{}, {} against {}: {series}. ", panel.title, panel.y.label, panel.x.label)
}
