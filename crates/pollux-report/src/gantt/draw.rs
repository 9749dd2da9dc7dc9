//! Draws a Gantt chart.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{Gantt, Span};
use crate::axis::Axis;
use crate::canvas::{Anchor, Canvas, Num, Rect};
use crate::cell::{LABEL, TICK, TICK_GAP};
use crate::layout::{LINE_HEIGHT, MARGIN, NOTE, SUBTITLE, TITLE, block_height};
use crate::look::COLOURS;
use crate::panel::{self, AXIS, GRID};
use crate::scale::{Mapping, Margin};
use crate::text::{Escaped, Font};
use crate::ticks::Ticks;

/// Inner width of the drawing.
const WIDTH: f64 = 1_064.0;
/// A lane is this high, unless its row would then be higher or lower than the next two say.
const LANE: f64 = 5.0;
const LOWEST_ROW: f64 = 9.0;
const HIGHEST_ROW: f64 = 40.0;
const ROW_GAP: f64 = 3.0;
/// Ends of spans are moved to a grid this fine, so that a year of short jobs is no larger than a day of long ones.
const GRAIN: f64 = 0.5;
/// Between neighbouring spans.
const GAP: f64 = 0.6;
/// With more names than this, spans are told apart by group alone.
const MOST_NAMES: usize = 2_000;
/// Names of the groups, beside their colours.
const KEY: Font = Font { size: 12.5, bold: false, colour: "#333" };
const KEY_ROW: f64 = 20.0;
const SWATCH: f64 = 22.0;
/// Names within spans, on dark and on light colours.
const ON_DARK: Font = Font { size: 9.5, bold: false, colour: "#ffffff" };
const ON_LIGHT: Font = Font { size: 9.5, bold: false, colour: "#000" };
/// Strokes of white on a colour, so that groups can be told apart without colours; the first has none.
const STRIPES: [&str; 6] = [
    "",
    "M-2 2L2 -2M0 8L8 0M6 10L10 6",
    "M0 2H8M0 6H8",
    "M2 0V8M6 0V8",
    "M-2 6L2 10M0 0L8 8M6 -2L10 2",
    "M0 0L8 8M0 8L8 0",
];

/// Where everything goes.
struct Places<'a> {
    gantt: &'a Gantt,
    groups: Vec<&'a str>,
    frame: Rect,
    x: Mapping,
    /// Top and height of each row.
    rows: Vec<(f64, f64)>,
}

pub(super) fn draw(gantt: &Gantt) -> String {
    let groups = gantt.all_groups();
    let title = TITLE.wrap(&gantt.title, WIDTH);
    let subtitle = SUBTITLE.wrap(gantt.subtitle.as_deref().unwrap_or_default(), WIDTH);
    let note = NOTE.wrap(gantt.note.as_deref().unwrap_or_default(), WIDTH);
    let key = key(&groups);
    let mut y = MARGIN + block_height(TITLE, &title) + block_height(SUBTITLE, &subtitle) + 10.0;
    let key_y = y;
    y += key.last().map_or(0.0, |(_, _, row)| (*row as f64 + 1.0) * KEY_ROW + 8.0);
    let places = places(gantt, groups, y);
    let is_empty = gantt.rows.is_empty() || places.spans().next().is_none();
    let bottom = places.frame.bottom() + 46.0;
    let note_y = bottom + if note.is_empty() { 0.0 } else { 14.0 };
    let height = (note_y + block_height(NOTE, &note) + MARGIN * 0.8).ceil();

    let name = if gantt.title.is_empty() { "Gantt chart" } else { &gantt.title };
    let mut canvas = Canvas::new(WIDTH + 2.0 * MARGIN, height, name, &describe(&places));
    draw_stripes(&mut canvas, places.groups.len());
    canvas.paragraph(TITLE, MARGIN, MARGIN + TITLE.size, &title, TITLE.size * LINE_HEIGHT);
    let subtitle_y = MARGIN + block_height(TITLE, &title) + SUBTITLE.size;
    canvas.paragraph(SUBTITLE, MARGIN, subtitle_y, &subtitle, SUBTITLE.size * LINE_HEIGHT);
    if is_empty {
        panel::draw_no_data(&mut canvas, places.frame);
    } else {
        draw_key(&mut canvas, &key, key_y);
        draw_axes(&mut canvas, &places);
        draw_spans(&mut canvas, &places);
    }
    canvas.paragraph(NOTE, MARGIN, note_y + NOTE.size, &note, NOTE.size * LINE_HEIGHT);
    canvas.finish()
}

fn places<'a>(gantt: &'a Gantt, groups: Vec<&'a str>, top: f64) -> Places<'a> {
    let widest = gantt.rows.iter().map(|row| TICK.width(&row.label)).fold(0.0, f64::max).min(160.0);
    let left = MARGIN + widest + TICK_GAP;
    let mut y = top;
    let mut rows = Vec::with_capacity(gantt.rows.len());
    for row in &gantt.rows {
        let height = (f64::from(row.n_lanes) * LANE).clamp(LOWEST_ROW, HIGHEST_ROW);
        rows.push((y, height));
        y += height + ROW_GAP;
    }
    let height = if rows.is_empty() { 60.0 } else { y - ROW_GAP - top };
    let ends = gantt.spans.iter().map(|span| span.to).chain(gantt.until);
    let last = ends.filter(|end| end.is_finite()).fold(0.0, f64::max);
    let axis = Axis::linear("").between(0.0, if last > 0.0 { last } else { 1.0 });
    let x = Mapping::fit(&axis, &[], Margin::Snug);
    let frame = Rect { x: left, y: top, width: WIDTH + MARGIN - left, height };
    Places { gantt, groups, frame, x, rows }
}

impl<'a> Places<'a> {
    /// Spans that can be seen, and the rectangles they cover.
    fn spans(&self) -> impl Iterator<Item = (&'a Span, Rect)> {
        self.gantt.spans.iter().filter_map(|span| Some((span, self.rect(span)?)))
    }

    fn rect(&self, span: &Span) -> Option<Rect> {
        let ((top, height), row) = (self.rows.get(span.row)?, self.gantt.rows.get(span.row)?);
        let at = |time: f64| {
            let fraction = self.x.fraction(time)?.clamp(0.0, 1.0);
            Some(self.frame.x + (fraction * self.frame.width / GRAIN).round() * GRAIN)
        };
        let finite = |time: f64| time.is_finite().then_some(time);
        let (left, right) = (at(finite(span.from)?)?, at(finite(span.to)?)?);
        let lane = height / f64::from(row.n_lanes.max(1));
        let (first, end) = (span.lanes.start.min(row.n_lanes), span.lanes.end.min(row.n_lanes));
        let rect = Rect {
            x: left,
            y: top + f64::from(first) * lane,
            width: right - left,
            height: f64::from(end.saturating_sub(first)) * lane,
        };
        (rect.width > 0.0 && rect.height > GAP).then_some(rect)
    }

    fn group(&self, span: &Span) -> usize {
        self.groups.iter().position(|group| *group == span.group).unwrap_or(0)
    }
}

/// Names of groups with their place: distance from the left, and row.
fn key(groups: &[&str]) -> Vec<(String, f64, usize)> {
    let (mut x, mut row) = (0.0, 0);
    let mut entries = Vec::with_capacity(groups.len());
    for group in groups {
        let label = KEY.shorten(group, WIDTH / 2.0);
        let width = SWATCH + 7.0 + KEY.width(&label) + 20.0;
        if x > 0.0 && x + width > WIDTH {
            (x, row) = (0.0, row + 1);
        }
        entries.push((label, x, row));
        x += width;
    }
    entries
}

fn fill(group: usize) -> String {
    if group == 0 {
        format!("fill=\"{}\"", COLOURS[0])
    } else {
        format!("fill=\"url(#pollux-span-{group})\"")
    }
}

/// A pattern for each group but the first. Names say how they look, so that charts of one page may share them.
fn draw_stripes(canvas: &mut Canvas, n_groups: usize) {
    if n_groups < 2 {
        return;
    }
    canvas.open(format_args!("defs"));
    for group in 1..n_groups {
        let colour = COLOURS[group % COLOURS.len()];
        let strokes = STRIPES[group % STRIPES.len()];
        canvas.open(format_args!(
            "pattern id=\"pollux-span-{group}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\""
        ));
        canvas.line(format_args!("<rect width=\"8\" height=\"8\" fill=\"{colour}\"/>"));
        if !strokes.is_empty() {
            canvas.line(format_args!(
                "<path d=\"{strokes}\" stroke=\"#ffffff\" stroke-opacity=\"0.45\" stroke-width=\"1.1\"/>"
            ));
        }
        canvas.close("pattern");
    }
    canvas.close("defs");
}

fn draw_key(canvas: &mut Canvas, key: &[(String, f64, usize)], top: f64) {
    for (group, (label, x, row)) in key.iter().enumerate() {
        let (x, y) = (MARGIN + x, top + *row as f64 * KEY_ROW);
        canvas.line(format_args!(
            "<rect x=\"{}\" y=\"{}\" width=\"{SWATCH}\" height=\"12\" {}/>",
            Num(x),
            Num(y + 4.0),
            fill(group)
        ));
        canvas.text(KEY, Anchor::Start, x + SWATCH + 7.0, y + 14.4, label);
    }
}

fn draw_axes(canvas: &mut Canvas, places: &Places<'_>) {
    let frame = places.frame;
    for (top, height) in &places.rows {
        canvas.line(format_args!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{GRID}\" fill-opacity=\"0.45\"/>",
            Num(frame.x),
            Num(*top),
            Num(frame.width),
            Num(*height)
        ));
    }
    // Names of rows as close as they can be read.
    let mut free_from = f64::NEG_INFINITY;
    for ((top, height), row) in places.rows.iter().zip(&places.gantt.rows) {
        let middle = top + height / 2.0;
        if middle - 7.0 >= free_from {
            let label = TICK.shorten(&row.label, 160.0);
            canvas.text(TICK, Anchor::End, frame.x - TICK_GAP, middle + 4.2, &label);
            free_from = middle + 7.0;
        }
    }
    let ticks = Ticks::choose(&places.x, 12, false);
    let mut data = format!("M{} {}h{}", Num(frame.x), Num(frame.bottom() + 2.0), Num(frame.width));
    for tick in &ticks.major {
        let x = frame.x + places.x.fraction(tick.value).unwrap_or(0.0) * frame.width;
        let _ = write!(data, "M{} {}v5", Num(x), Num(frame.bottom() + 2.0));
        let half = TICK.width(&tick.label) / 2.0;
        let middle = x.min(frame.right() + MARGIN * 0.5 - half);
        canvas.text(TICK, Anchor::Middle, middle, frame.bottom() + 20.0, &tick.label);
    }
    canvas.line(format_args!("<path d=\"{data}\" stroke=\"{AXIS}\"/>"));
    let label = LABEL.shorten(&places.gantt.x_label, frame.width);
    canvas.text(LABEL, Anchor::Middle, frame.x + frame.width / 2.0, frame.bottom() + 40.0, &label);
}

/// A path for each holder, which a browser names when pointed at; with very many holders one for each group.
fn draw_spans(canvas: &mut Canvas, places: &Places<'_>) {
    let names: BTreeSet<&str> = places.gantt.spans.iter().map(|span| span.name.as_str()).collect();
    let by_name = names.len() <= MOST_NAMES;
    let mut paths: BTreeMap<(usize, &str), (String, Option<Rect>)> = BTreeMap::new();
    for (span, rect) in places.spans() {
        let name = if by_name { span.name.as_str() } else { "" };
        let (data, largest) = paths.entry((places.group(span), name)).or_default();
        // A gap keeps neighbours apart, where they are not so narrow that it would hide them.
        let gap = if rect.width >= 3.0 { GAP } else { 0.0 };
        let (w, h) = (Num(rect.width - gap), Num(rect.height - GAP));
        let _ = write!(data, "M{} {}h{w}v{h}h-{w}z", Num(rect.x), Num(rect.y));
        if largest.is_none_or(|largest| {
            rect.width * rect.height.min(16.0) > largest.width * largest.height.min(16.0)
        }) {
            *largest = Some(rect);
        }
    }
    for ((group, name), (data, _)) in &paths {
        let title = if name.is_empty() { places.groups[*group] } else { name };
        canvas.line(format_args!(
            "<path d=\"{data}\" {}><title>{}</title></path>",
            fill(*group),
            Escaped(title)
        ));
    }
    for ((group, name), (_, largest)) in &paths {
        if let Some(rect) = largest {
            draw_name(canvas, *group, name, *rect);
        }
    }
}

/// The holder's name in its largest span, where it fits.
fn draw_name(canvas: &mut Canvas, group: usize, name: &str, rect: Rect) {
    let is_dark = matches!(COLOURS[group % COLOURS.len()], "#0072b2" | "#000000" | "#009e73" | "#d55e00");
    let font = if is_dark { ON_DARK } else { ON_LIGHT };
    if rect.height >= font.size + 1.0 && font.width(name) + 6.0 <= rect.width {
        let (x, y) = (rect.x + rect.width / 2.0, rect.y + rect.height / 2.0 + font.size * 0.35);
        canvas.text(font, Anchor::Middle, x, y, name);
    }
}

/// The chart in words.
fn describe(places: &Places<'_>) -> String {
    let names: BTreeSet<&str> = places.gantt.spans.iter().map(|span| span.name.as_str()).collect();
    let (n_rows, n_names) = (places.gantt.rows.len(), names.len());
    let groups = places.groups.join(", ");
    format!("Who held what when: {n_rows} rows, {n_names} holders of the groups {groups}.")
}
