//! How each series is told apart: by colour, and for those who see none by dashes, markers and hatching.

use std::collections::{BTreeMap, BTreeSet};

use crate::canvas::{Canvas, Num};
use crate::figure::{Emphasis, Figure, Panel};

/// The palette of Okabe and Ito, which all common kinds of colour vision can tell apart, without its
/// yellow, too faint on white.
pub(crate) const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];
/// Dash patterns of lines; empty is solid.
const DASHES: [&str; 6] = ["", "9 4", "2 3", "10 3 2 3", "5 3", "12 3 2 3 2 3"];
const MARKERS: [Marker; 6] =
    [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Cross, Marker::Wedge];
const REFERENCE_COLOUR: &str = "#767676";
const REFERENCE_DASHES: [&str; 3] = ["4 4", "1.5 3", "8 3 1.5 3"];

/// The shape of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marker {
    Circle,
    Square,
    /// Point up.
    Triangle,
    Diamond,
    Cross,
    /// Point down.
    Wedge,
}

/// The look of one series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Look {
    pub(crate) colour: &'static str,
    /// Empty is solid.
    pub(crate) dash: &'static str,
    pub(crate) marker: Marker,
    pub(crate) line_width: f64,
    /// Number of the hatching of its bars; none is solid.
    pub(crate) hatch: Option<usize>,
}

impl Look {
    fn normal(index: usize) -> Self {
        let hatch = index % 6;
        Self {
            colour: COLOURS[index % COLOURS.len()],
            dash: DASHES[index % DASHES.len()],
            marker: MARKERS[index % MARKERS.len()],
            line_width: 2.25,
            // The colour's number goes in too, as a hatching has its colour within.
            hatch: (hatch > 0).then(|| hatch * COLOURS.len() + index % COLOURS.len()),
        }
    }

    fn reference(index: usize) -> Self {
        Self {
            colour: REFERENCE_COLOUR,
            dash: REFERENCE_DASHES[index % REFERENCE_DASHES.len()],
            marker: MARKERS[index % MARKERS.len()],
            line_width: 1.5,
            hatch: None,
        }
    }
}

/// The looks of all series, panel by panel.
///
/// A panel gives out looks in order, so that its first series is a solid blue line; but a name that an
/// earlier panel has shown keeps its look, so that a policy is blue everywhere.
pub(crate) fn assign(figure: &Figure) -> Vec<Vec<Look>> {
    let mut known = BTreeMap::new();
    figure.panels.iter().map(|panel| assign_panel(panel, &mut known)).collect()
}

/// Numbers of looks by name and emphasis.
type Known<'a> = BTreeMap<(&'a str, Emphasis), usize>;

fn assign_panel<'a>(panel: &'a Panel, known: &mut Known<'a>) -> Vec<Look> {
    // Names known from before come first: they have a claim to their look.
    let names = || panel.series.iter().map(|series| (series.name.as_str(), series.emphasis));
    let (old, new): (Vec<_>, Vec<_>) = names().partition(|name| known.contains_key(name));
    let mut own = Known::new();
    let mut taken = BTreeSet::new();
    for name in old.into_iter().chain(new) {
        if own.contains_key(&name) {
            continue;
        }
        let is_free = |number: &usize| !taken.contains(&(name.1, *number));
        let claimed = known.get(&name).copied().filter(is_free);
        let number = claimed.or_else(|| (0..=taken.len()).find(is_free)).unwrap_or(0);
        taken.insert((name.1, number));
        own.insert(name, number);
        known.entry(name).or_insert(number);
    }
    names()
        .map(|name| match name.1 {
            Emphasis::Normal => Look::normal(own[&name]),
            Emphasis::Reference => Look::reference(own[&name]),
        })
        .collect()
}

/// So many looks, for what has no panels.
pub(crate) fn numbered(count: usize) -> Vec<Look> {
    (0..count).map(Look::normal).collect()
}

/// The hatchings that a drawing uses, each once. Their names say how they look, so that two drawings within one page
/// may share them.
pub(crate) fn draw_hatchings(canvas: &mut Canvas, used: impl Iterator<Item = usize>) {
    let used: BTreeSet<usize> = used.collect();
    if used.is_empty() {
        return;
    }
    canvas.open(format_args!("defs"));
    for number in used {
        let (strokes, colour) = hatching(number);
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

/// A hatching as the content of a pattern eight units wide, and its colour.
fn hatching(number: usize) -> (&'static str, &'static str) {
    let strokes = match number / COLOURS.len() {
        1 => "M-2 2L2 -2M0 8L8 0M6 10L10 6",
        2 => "M0 2H8M0 6H8",
        3 => "M-2 6L2 10M0 0L8 8M6 -2L10 2",
        4 => "M2 0V8M6 0V8",
        _ => "M0 0L8 8M0 8L8 0",
    };
    (strokes, COLOURS[number % COLOURS.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;
    use crate::figure::Series;

    fn panel(names: &[&str]) -> Panel {
        let empty = Panel::new("", Axis::linear(""), Axis::linear(""));
        names.iter().fold(empty, |panel, name| panel.with_series(Series::new(*name, [])))
    }

    fn check_first_colours(panels: &[&[&str]], expected: &[&[usize]]) {
        let figure = panels.iter().fold(Figure::new(""), |figure, names| figure.with_panel(panel(names)));
        let number = |look: &Look| COLOURS.iter().position(|colour| *colour == look.colour).unwrap();
        let numbers: Vec<Vec<usize>> =
            assign(&figure).iter().map(|looks| looks.iter().map(number).collect()).collect();
        assert_eq!(numbers, expected);
    }

    #[test]
    fn every_panel_starts_with_the_first_colour() {
        check_first_colours(&[&["a", "b"], &["c"], &["d", "e"]], &[&[0, 1], &[0], &[0, 1]]);
    }

    #[test]
    fn a_name_keeps_its_look_in_later_panels() {
        check_first_colours(&[&["a", "b"], &["b", "c"], &["c", "b", "a"]], &[&[0, 1], &[1, 0], &[0, 1, 2]]);
    }

    #[test]
    fn no_two_of_a_long_list_look_alike() {
        let names: Vec<String> = (0..40).map(|index| index.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let looks = &assign(&Figure::new("").with_panel(panel(&names)))[0];
        for (index, look) in looks.iter().enumerate() {
            assert!(!looks[..index].contains(look), "{index} repeats an earlier look");
        }
    }
}
