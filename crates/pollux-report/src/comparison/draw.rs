//! Draws a comparison.

use std::fmt::Write as _;

use super::{Comparison, Marks, Measure, Value};
use crate::axis::{Range, Scale};
use crate::canvas::{Anchor, Canvas, Num, Rect};
use crate::cell::{LABEL, PANEL_TITLE, TICK, TICK_GAP};
use crate::layout::{LINE_HEIGHT, MARGIN, NOTE, SUBTITLE, TITLE, block_height};
use crate::look::{self, Look};
use crate::marks::{bar_fill, draw_marker};
use crate::number;
use crate::panel::{self, AXIS, GRID};
use crate::scale::{Mapping, Margin, tame, within};
use crate::text::Font;
use crate::ticks::Ticks;

/// Inner width of the drawing.
const WIDTH: f64 = 1_064.0;
/// Most columns beside each other; further ones go below.
const MOST_COLUMNS: usize = 4;
const COLUMN_GAP: f64 = 34.0;
const BAR: f64 = 18.0;
const BAR_GAP: f64 = 3.0;
const ROW_GAP: f64 = 10.0;
const KEY_ROW: f64 = 22.0;
const NAME: Font = Font { size: 13.0, bold: false, colour: "#333" };
const NUMBER: Font = Font { size: 11.5, bold: false, colour: "#444" };
/// Room for a number beyond the longest bar.
const NUMBER_ROOM: f64 = 50.0;

/// One column, placed.
struct Column<'a> {
    comparison: &'a Comparison,
    measure: &'a Measure,
    frame: Rect,
    x: Mapping,
    row_height: f64,
    looks: Vec<Look>,
}

pub(super) fn draw(comparison: &Comparison) -> String {
    let title = TITLE.wrap(&comparison.title, WIDTH);
    let subtitle = SUBTITLE.wrap(comparison.subtitle.as_deref().unwrap_or_default(), WIDTH);
    let note = NOTE.wrap(comparison.note.as_deref().unwrap_or_default(), WIDTH);
    let names = series_names(comparison);
    let looks = look::numbered(names.len());
    let mut y = MARGIN + block_height(TITLE, &title) + block_height(SUBTITLE, &subtitle) + 12.0;
    let key_y = y;
    y += if names.len() > 1 { KEY_ROW + 6.0 } else { 0.0 };

    let n_series = comparison.measures.iter().map(|measure| measure.series.len()).max().unwrap_or(1).max(1);
    let has_bars = comparison.measures.iter().any(|measure| measure.marks == Marks::Bars);
    let n_slots = if has_bars { n_series } else { 1 };
    let row_height = n_slots as f64 * (BAR + BAR_GAP) - BAR_GAP + ROW_GAP;
    let name_width = comparison.rows.iter().map(|name| NAME.width(name)).fold(0.0, f64::max).min(260.0);
    let is_empty = comparison.rows.is_empty() || comparison.measures.is_empty();

    let mut columns = Vec::new();
    let n_columns = comparison.measures.len().clamp(1, MOST_COLUMNS);
    let left = MARGIN + name_width + TICK_GAP + 4.0;
    let gaps = COLUMN_GAP * (n_columns as f64 - 1.0);
    let width = (WIDTH + MARGIN - left - gaps) / n_columns as f64;
    for line in comparison.measures.chunks(MOST_COLUMNS) {
        let labels = line.iter().map(|measure| PANEL_TITLE.wrap(&measure.axis.label, width).len());
        let head = labels.max().unwrap_or(1) as f64 * PANEL_TITLE.size * LINE_HEIGHT + 8.0;
        let height = comparison.rows.len() as f64 * row_height;
        for (index, measure) in line.iter().enumerate() {
            let x = left + index as f64 * (width + COLUMN_GAP);
            let frame = Rect { x, y: y + head, width, height };
            let of_names = |values: &super::Values| names.iter().position(|name| *name == values.name);
            let looks = measure.series.iter().map(|series| looks[of_names(series).unwrap_or(0)]).collect();
            columns.push(Column { comparison, measure, frame, x: mapping(measure), row_height, looks });
        }
        y += head + height + 44.0;
    }
    if is_empty {
        y += 130.0;
    }
    let note_y = y + if note.is_empty() { 0.0 } else { 4.0 };
    let height = (note_y + block_height(NOTE, &note) + MARGIN * 0.6).ceil();

    let name = if comparison.title.is_empty() { "Comparison" } else { &comparison.title };
    let mut canvas = Canvas::new(WIDTH + 2.0 * MARGIN, height, name, &describe(comparison));
    look::draw_hatchings(&mut canvas, looks.iter().filter(|_| has_bars).filter_map(|look| look.hatch));
    canvas.paragraph(TITLE, MARGIN, MARGIN + TITLE.size, &title, TITLE.size * LINE_HEIGHT);
    let subtitle_y = MARGIN + block_height(TITLE, &title) + SUBTITLE.size;
    canvas.paragraph(SUBTITLE, MARGIN, subtitle_y, &subtitle, SUBTITLE.size * LINE_HEIGHT);
    if is_empty {
        let frame = Rect { x: MARGIN, y: y - 130.0, width: WIDTH, height: 110.0 };
        panel::draw_no_data(&mut canvas, frame);
    } else {
        if names.len() > 1 {
            draw_key(&mut canvas, &names, &looks, has_bars, key_y);
        }
        for (index, column) in columns.iter().enumerate() {
            column.draw(&mut canvas, (index % MOST_COLUMNS == 0).then_some(name_width));
        }
    }
    canvas.paragraph(NOTE, MARGIN, note_y + NOTE.size, &note, NOTE.size * LINE_HEIGHT);
    canvas.finish()
}

/// The different names of series, in the order they appear.
fn series_names(comparison: &Comparison) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for series in comparison.measures.iter().flat_map(|measure| &measure.series) {
        if !names.contains(&series.name.as_str()) {
            names.push(&series.name);
        }
    }
    names
}

fn mapping(measure: &Measure) -> Mapping {
    let values = measure.series.iter().flat_map(|series| &series.values);
    let mut ends: Vec<f64> = values.flat_map(|value| [value.at, value.low, value.high]).collect();
    ends.retain(|end| tame(measure.axis.scale, *end).is_some());
    let is_zero = ends.iter().all(|end| *end == 0.0);
    let mut axis = measure.axis.clone();
    if measure.marks == Marks::Bars && axis.scale == Scale::Linear && is_zero && axis.range == Range::FromZero
    {
        axis = axis.between(0.0, 1.0);
    }
    let margin = if measure.marks == Marks::Bars { Margin::Ticks(5) } else { Margin::Snug };
    Mapping::fit(&axis, &ends, margin)
}

impl Column<'_> {
    /// Draws the column; the first of a line also has the names of the rows.
    fn draw(&self, canvas: &mut Canvas, names: Option<f64>) {
        let frame = self.frame;
        let title = PANEL_TITLE.wrap(&self.measure.axis.label, frame.width);
        let lines = title.len().max(1) as f64 - 1.0;
        let title_y = frame.y - 10.0 - lines * PANEL_TITLE.size * LINE_HEIGHT;
        canvas.paragraph(PANEL_TITLE, frame.x, title_y, &title, PANEL_TITLE.size * LINE_HEIGHT);
        self.draw_axis(canvas);
        for (row, name) in self.comparison.rows.iter().enumerate() {
            let middle = frame.y + (row as f64 + 0.5) * self.row_height;
            if let Some(room) = names {
                let name = NAME.shorten(name, room + 1.0);
                canvas.text(NAME, Anchor::End, frame.x - TICK_GAP, middle + 4.5, &name);
            }
            self.draw_row(canvas, row, middle);
        }
    }

    /// Room for marks; beyond it stand the numbers of bars.
    fn room(&self) -> f64 {
        let has_numbers = self.measure.marks == Marks::Bars;
        if has_numbers { (self.frame.width - NUMBER_ROOM).max(20.0) } else { self.frame.width }
    }

    fn draw_axis(&self, canvas: &mut Canvas) {
        let (frame, room) = (self.frame, self.room());
        let fits = |ticks: &Ticks| {
            let place = |value| self.x.fraction(value).unwrap_or(0.0) * room;
            ticks.major.windows(2).all(|pair| {
                let widths = TICK.width(&pair[0].label) + TICK.width(&pair[1].label);
                place(pair[1].value) - place(pair[0].value) >= widths / 2.0 + 12.0
            })
        };
        let mut choices = (2..=6).rev().map(|n_ticks| Ticks::choose(&self.x, n_ticks, false));
        let ticks = choices.find(fits).unwrap_or_default();
        let mut grid = String::new();
        for tick in &ticks.major {
            let x = frame.x + self.x.fraction(tick.value).unwrap_or(0.0) * room;
            let _ = write!(grid, "M{} {}v{}", Num(x), Num(frame.y), Num(frame.height + 4.0));
            canvas.text(TICK, Anchor::Middle, x, frame.bottom() + 18.0, &tick.label);
        }
        if !grid.is_empty() {
            canvas.line(format_args!("<path d=\"{grid}\" stroke=\"{GRID}\"/>"));
        }
        canvas.line(format_args!(
            "<path d=\"M{} {}v{}\" stroke=\"{AXIS}\"/>",
            Num(frame.x),
            Num(frame.y),
            Num(frame.height)
        ));
    }

    fn draw_row(&self, canvas: &mut Canvas, row: usize, middle: f64) {
        let n_series = self.measure.series.len();
        for (index, (series, look)) in self.measure.series.iter().zip(&self.looks).enumerate() {
            let Some(value) = series.values.get(row) else { continue };
            match self.measure.marks {
                Marks::Bars => {
                    let offset = (index as f64 - (n_series as f64 - 1.0) / 2.0) * (BAR + BAR_GAP);
                    self.draw_bar(canvas, value, look, middle + offset);
                }
                Marks::Dots => self.draw_dot(canvas, value, look, middle),
            }
        }
    }

    fn at(&self, value: f64) -> Option<f64> {
        let fraction = self.x.fraction(tame(self.measure.axis.scale, value)?)?;
        Some(self.frame.x + fraction.clamp(0.0, 1.0) * self.room())
    }

    fn draw_bar(&self, canvas: &mut Canvas, value: &Value, look: &Look, middle: f64) {
        let zero = self.at(0.0).unwrap_or(self.frame.x);
        let Some(end) = self.at(value.at) else {
            canvas.text(NUMBER, Anchor::Start, self.frame.x + 5.0, middle + 4.0, "–");
            return;
        };
        canvas.line(format_args!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{BAR}\" {}/>",
            Num(end.min(zero)),
            Num(middle - BAR / 2.0),
            Num((end - zero).abs()),
            bar_fill(look)
        ));
        let whisker = self.draw_whisker(canvas, value, middle, 4.0);
        let label = number::brief(value.at);
        canvas.text(NUMBER, Anchor::Start, end.max(whisker) + 5.0, middle + 4.0, &label);
    }

    fn draw_dot(&self, canvas: &mut Canvas, value: &Value, look: &Look, middle: f64) {
        let visible = self.x.fraction(value.at).is_some_and(within);
        if let Some(x) = self.at(value.at).filter(|_| visible) {
            self.draw_whisker(canvas, value, middle, 3.0);
            draw_marker(canvas, look, (x, middle));
        }
    }

    /// Draws from the low to the high end, if they are apart, and says how far it reaches.
    fn draw_whisker(&self, canvas: &mut Canvas, value: &Value, middle: f64, cap: f64) -> f64 {
        let ends = self.at(value.low).zip(self.at(value.high));
        let Some((low, high)) = ends.filter(|(low, high)| high - low >= 0.5) else { return 0.0 };
        let caps = [low, high].map(|x| format!("M{} {}v{}", Num(x), Num(middle - cap), Num(2.0 * cap)));
        canvas.line(format_args!(
            "<path d=\"M{} {}H{}{}\" stroke=\"#333\" stroke-width=\"1.4\"/>",
            Num(low),
            Num(middle),
            Num(high),
            caps.concat()
        ));
        high
    }
}

fn draw_key(canvas: &mut Canvas, names: &[&str], looks: &[Look], has_bars: bool, top: f64) {
    let room = WIDTH / names.len() as f64 - 50.0;
    let mut x = MARGIN;
    for (name, look) in names.iter().zip(looks) {
        let middle = top + KEY_ROW / 2.0;
        if has_bars {
            canvas.line(format_args!(
                "<rect x=\"{}\" y=\"{}\" width=\"24\" height=\"12\" {}/>",
                Num(x),
                Num(middle - 6.0),
                bar_fill(look)
            ));
        } else {
            draw_marker(canvas, look, (x + 12.0, middle));
        }
        let label = LABEL.shorten(name, room.max(30.0));
        canvas.text(LABEL, Anchor::Start, x + 30.0, middle + 4.4, &label);
        x += 30.0 + LABEL.width(&label) + 20.0;
    }
}

/// The chart in words, all values included.
fn describe(comparison: &Comparison) -> String {
    let mut text =
        comparison.subtitle.as_deref().map_or_else(String::new, |subtitle| format!("{subtitle}. "));
    for measure in &comparison.measures {
        let _ = write!(text, "{}: ", measure.axis.label);
        let mut parts = Vec::new();
        for series in &measure.series {
            for (row, value) in comparison.rows.iter().zip(&series.values) {
                let of = if series.name.is_empty() { String::new() } else { format!(" ({})", series.name) };
                parts.push(format!("{row}{of} {}", number::brief(value.at)));
            }
        }
        text += &parts.join("; ");
        text += ". ";
    }
    if text.is_empty() { "No data.".to_owned() } else { text.trim_end().to_owned() }
}
