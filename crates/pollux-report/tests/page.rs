//! What holds for every page and for the charts only pages have: text stays text, and all of it can be read back.

use std::sync::Arc;

use pollux_report::{
    Axis, Chart, Comparison, Figure, Gantt, GanttRow, Measure, Page, Panel, Series, Span, Table, Text, Value,
    embedded,
};
use proptest::collection::vec;
use proptest::num::f64::ANY;
use proptest::prelude::*;
use resvg::usvg::{self, fontdb, roxmltree};

fn any_float() -> impl Strategy<Value = f64> {
    prop_oneof![ANY, -1e3..1e3, (0u32..2_000).prop_map(f64::from), Just(f64::NAN), Just(f64::INFINITY)]
}

fn any_span() -> impl Strategy<Value = Span> {
    (0..5_usize, 0..9_u32, 0..9_u32, any_float(), any_float(), "[a-c<&\"]{0,3}", "[a-k]{0,1}").prop_map(
        |(row, first, end, from, to, name, group)| Span { row, lanes: first..end, from, to, name, group },
    )
}

fn any_gantt() -> impl Strategy<Value = Gantt> {
    let rows = vec(("[ -~]{0,40}", 0..9_u32).prop_map(|(label, n)| GanttRow::new(label, n)), 0..5);
    ("[ -~]{0,90}", rows, vec(any_span(), 0..20))
        .prop_map(|(title, rows, spans)| Gantt { spans, ..Gantt::new(title.clone(), title, rows) })
}

fn any_comparison() -> impl Strategy<Value = Comparison> {
    let value = (any_float(), any_float(), any_float()).prop_map(|(at, low, high)| Value { at, low, high });
    let values = vec(value, 0..5);
    let axis = ("[ -~]{0,60}", 0..3).prop_map(|(label, scale)| match scale {
        0 => Axis::linear(label),
        1 => Axis::log2(label),
        _ => Axis::log10(label),
    });
    let measure =
        (axis, any::<bool>(), vec(("[ -~]{0,20}", values), 0..3)).prop_map(|(axis, bars, series)| {
            let empty = if bars { Measure::bars(axis, []) } else { Measure::dots(axis) };
            series.into_iter().fold(empty, |measure, (name, values)| measure.with_series(name, values))
        });
    ("[ -~]{0,90}", vec("[ -~]{0,40}", 0..5), vec(measure, 0..6))
        .prop_map(|(title, rows, measures)| Comparison { measures, ..Comparison::new(title, rows) })
}

/// Draws a chart, reads it back, and finds all of it within its frame.
fn check_chart(chart: &Chart) {
    let svg = chart.to_svg();
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(ttf_noto_sans::REGULAR.to_vec());
    fonts.load_font_data(ttf_noto_sans::BOLD.to_vec());
    let options = usvg::Options { fontdb: Arc::new(fonts), ..usvg::Options::default() };
    let tree = usvg::Tree::from_str(&svg, &options).unwrap();
    let all = tree.root().abs_stroke_bounding_box();
    let size = tree.size();
    assert!(all.left() >= 0.0 && all.top() >= 0.0, "{all:?}\n{svg}");
    assert!(all.right() <= size.width() && all.bottom() <= size.height(), "{all:?} {size:?}\n{svg}");
    assert_eq!(svg, chart.clone().to_svg());
    // A header, and as many cells in each row.
    assert!(chart.data().to_text().lines().next().is_some_and(|header| header.contains(',')));
}

/// All text of a page, wherever it stands.
fn page(text: &str) -> Page {
    let panel = Panel::new(text, Axis::linear(text), Axis::linear(text))
        .with_series(Series::new(text, [(0.0, 1.0), (1.0, 2.0)]));
    let span =
        Span { row: 0, lanes: 0..1, from: 0.0, to: 1.0, name: text.to_owned(), group: text.to_owned() };
    Page::new(text)
        .subtitle(text)
        .section(text)
        .subsection(text)
        .text(text)
        .text(Text::default().plain(text).code(text).link(text, text))
        .note(text)
        .list([text])
        .facts([(text, text)])
        .code(text)
        .table(Table::new(text, [text, text]).row([text, text]))
        .figure(text, Figure::new(text).with_panel(panel), text)
        .figure(text, Gantt::new(text, text, vec![GanttRow::new(text, 1)]).with_span(span), text)
        .figure(text, Comparison::new(text, [text]).with_measure(Measure::bars(Axis::linear(text), [])), text)
        .footer(text)
}

/// How often each element stands in a page.
fn elements(html: &str) -> Vec<String> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
    let document = roxmltree::Document::parse_with_options(html, options).unwrap();
    let mut names: Vec<String> = document
        .descendants()
        .filter(roxmltree::Node::is_element)
        .map(|node| node.tag_name().name().to_owned())
        .collect();
    names.sort();
    names
}

/// Elements whose number depends on the text: lines of it, code in it, and links that lead somewhere.
const BY_TEXT: [&str; 4] = ["text", "code", "a", "path"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test] // Markup in the text would be further elements, or no page at all.
    fn any_text_stays_text(text in "[ -~\\n\\t`<>&\"'éφ\\u{0}-\\u{8}]{0,40}") {
        let plain = |html: &str| {
            let mut names = elements(html);
            names.retain(|name| !BY_TEXT.contains(&name.as_str()));
            names
        };
        // No text at all has no element either.
        let text = format!("x{text}");
        prop_assert_eq!(plain(&page(&text).to_html()), plain(&page("plain").to_html()));
    }

    #[test]
    fn any_gantt_chart_can_be_drawn_and_read_back(gantt in any_gantt()) {
        check_chart(&gantt.into());
    }

    #[test]
    fn any_comparison_can_be_drawn_and_read_back(comparison in any_comparison()) {
        check_chart(&comparison.into());
    }
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let html = page("a").to_html();
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
    let document = roxmltree::Document::parse_with_options(&html, options).unwrap();
    for node in document.descendants() {
        assert!(!["link", "img", "iframe", "object"].contains(&node.tag_name().name()));
        for attribute in node.attributes() {
            let value = attribute.value();
            assert_ne!(attribute.name(), "src");
            if attribute.name() == "href" {
                assert!(["#", "data/", "data:text/csv", "a"].iter().any(|start| value.starts_with(start)));
            }
        }
    }
    assert!(!html.contains("@import") && !html.contains("url(http"));
}

#[test]
fn charts_come_out_as_they_went_in() {
    let page = page("a");
    let html = page.to_html();
    let found: Vec<(String, String)> =
        embedded(&html).iter().map(|chart| (chart.name.to_owned(), chart.svg.to_owned())).collect();
    let expected: Vec<(String, String)> =
        page.charts().map(|(name, chart)| (name.to_owned(), chart.to_svg())).collect();
    assert_eq!(found, expected);
    assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "a-2", "a-3"]);
}

#[test] // A comma, a quote and a newline go through CSV and through the address.
fn the_numbers_are_in_the_page() {
    let series = Series::new("a \"b\", c", [(0.5, 1.25)]);
    let panel = Panel::new("", Axis::linear("h"), Axis::linear("jobs")).with_series(series);
    let page = Page::new("t").figure("x", Figure::new("t").with_panel(panel), "");
    let (file, text) = page.files().next().unwrap();
    assert_eq!(
        (file.as_str(), text.as_str()),
        ("data/x.csv", "panel,series,h,jobs\n,\"a \"\"b\"\", c\",0.5,1.25\n")
    );
    let html = page.to_html();
    assert!(html.contains("href=\"data/x.csv\""));
    let encoded = "data:text/csv;charset=utf-8,panel,series,h,jobs%0A,%22a%20%22%22b%22%22%2C";
    assert!(html.contains(&encoded.replace("%2C", ",")), "{html}");
}
