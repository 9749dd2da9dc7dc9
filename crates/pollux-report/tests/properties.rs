//! What holds for every figure, whatever the data: it can be drawn, read back, and drawn again alike.

use std::sync::Arc;

use pollux_report::{Axis, Emphasis, Figure, Legend, Panel, Range, Scale, Series, Style};
use proptest::collection::vec;
use proptest::num::f64::ANY;
use proptest::option;
use proptest::prelude::*;
use resvg::usvg::{self, fontdb};

/// Floats of all kinds, and more often than chance has it the ordinary and the extreme.
fn any_float() -> impl Strategy<Value = f64> {
    prop_oneof![
        ANY,
        -1e3..1e3,
        (0u32..2_000).prop_map(f64::from),
        prop::sample::select(vec![
            0.0,
            -0.0,
            1.0,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            5e-324,
            f64::EPSILON,
            1.0 + f64::EPSILON,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ]),
    ]
}

fn any_axis() -> impl Strategy<Value = Axis> {
    let scale = prop::sample::select(vec![Scale::Linear, Scale::Log2, Scale::Log10]);
    let range = prop_oneof![
        Just(Range::Auto),
        Just(Range::FromZero),
        (any_float(), any_float()).prop_map(|(from, to)| Range::Fixed { from, to }),
    ];
    (any_text(), scale, range).prop_map(|(label, scale, range)| Axis { label, scale, range })
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-e ]{0,12}", "[ -~]{0,90}"].prop_map(|text| text.replace("inf", "").replace("NaN", ""))
}

fn any_series() -> impl Strategy<Value = Series> {
    let styles = vec![Style::Line, Style::Step, Style::Points, Style::LineWithPoints, Style::Bars];
    let emphasis = prop::sample::select(vec![Emphasis::Normal, Emphasis::Reference]);
    (any_text(), vec((any_float(), any_float()), 0..12), prop::sample::select(styles), emphasis)
        .prop_map(|(name, points, style, emphasis)| Series { name, points, style, emphasis })
}

fn any_panel() -> impl Strategy<Value = Panel> {
    let legend = prop::sample::select(vec![Legend::Auto, Legend::Shown, Legend::Hidden]);
    (any_text(), any_axis(), any_axis(), vec(any_series(), 0..6), legend)
        .prop_map(|(title, x, y, series, legend)| Panel { title, x, y, series, legend })
}

fn any_figure() -> impl Strategy<Value = Figure> {
    (any_text(), option::of(any_text()), vec(any_panel(), 0..6), option::of(any_text()))
        .prop_map(|(title, subtitle, panels, note)| Figure { title, subtitle, panels, note })
}

/// Reads a drawing back with the font that PNG uses.
fn parse(svg: &str) -> usvg::Tree {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(ttf_noto_sans::REGULAR.to_vec());
    fonts.load_font_data(ttf_noto_sans::BOLD.to_vec());
    let options = usvg::Options { fontdb: Arc::new(fonts), ..usvg::Options::default() };
    usvg::Tree::from_str(svg, &options).unwrap()
}

/// The boxes of all texts, and the text itself.
fn texts(group: &usvg::Group) -> Vec<(usvg::Rect, String)> {
    let mut found = Vec::new();
    for node in group.children() {
        match node {
            usvg::Node::Group(inner) => found.extend(texts(inner)),
            usvg::Node::Text(text) => {
                let content = text.chunks().iter().map(usvg::TextChunk::text).collect();
                found.push((text.abs_bounding_box(), content));
            }
            _ => {}
        }
    }
    found
}

/// Whether two texts cover each other. Boxes reach from the highest to the lowest letter of the font,
/// hence a third of the height is no letter's.
fn overlap(a: &usvg::Rect, b: &usvg::Rect) -> bool {
    let slack = a.height().min(b.height()) / 3.0;
    a.left() < b.right()
        && b.left() < a.right()
        && a.top() + slack < b.bottom()
        && b.top() + slack < a.bottom()
}

/// All that is promised of one drawing.
fn check(figure: &Figure) {
    let svg = figure.to_svg();
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    assert_eq!(svg, figure.clone().to_svg());
    let tree = parse(&svg);
    let all = tree.root().abs_stroke_bounding_box();
    let is_inside = all.left() >= 0.0
        && all.top() >= 0.0
        && all.right() <= tree.size().width()
        && all.bottom() <= tree.size().height();
    assert!(is_inside, "{all:?} leaves the picture of {:?}\n{svg}", tree.size());
    let texts = texts(tree.root());
    for (index, (a, a_text)) in texts.iter().enumerate() {
        for (b, b_text) in &texts[..index] {
            assert!(!overlap(a, b), "`{a_text}` covers `{b_text}`\n{svg}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_figure_can_be_drawn_and_read_back(figure in any_figure()) {
        check(&figure);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn any_figure_becomes_pixels(figure in any_figure()) {
        prop_assert!(figure.to_png(0.5).unwrap().starts_with(b"\x89PNG"));
    }
}

#[test]
fn names_that_are_markup_come_back_as_text() {
    let name = "</text><script>alert('&amp;')</script>";
    let panel = Panel::new(name, Axis::linear("<x>"), Axis::linear("\"y\""))
        .with_series(Series::new(name, [(0.0, 0.0)]))
        .with_legend(Legend::Shown);
    let figure = Figure::new(name).with_panel(panel);
    check(&figure);
    let texts = texts(parse(&figure.to_svg()).root());
    assert_eq!(texts.iter().filter(|(_, text)| text == name).count(), 3);
    assert!(!figure.to_svg().contains("<script"));
}

#[test]
fn what_is_empty_says_so() {
    let panel = Panel::new("", Axis::linear(""), Axis::log2(""));
    let nothing_drawable = Series::new("a", [(1.0, 0.0), (f64::NAN, 1.0)]);
    for figure in [
        Figure::default(),
        Figure::new("").with_panel(panel.clone()),
        Figure::new("").with_panel(panel.with_series(nothing_drawable)),
    ] {
        check(&figure);
        assert!(texts(parse(&figure.to_svg()).root()).iter().any(|(_, text)| text == "no data"));
    }
}

#[test]
fn a_single_point_is_visible_in_every_style() {
    for style in [Style::Line, Style::Step, Style::Points, Style::LineWithPoints, Style::Bars] {
        let series = Series::new("a", [(3.0, 7.0)]).with_style(style);
        let figure = Figure::new("")
            .with_panel(Panel::new("", Axis::linear(""), Axis::linear("")).with_series(series));
        check(&figure);
        assert!(figure.to_svg().contains("#0072b2"), "{style:?} draws nothing");
    }
}
