//! From a page to HTML.
//!
//! Every element is closed, so that what reads XML reads it too.

use std::fmt::Write as _;

use super::table::{Align, Table};
use super::{Block, Page, Shown};
use crate::text::Escaped;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("sort.js");
/// Pages with fewer sections need no contents.
const LEAST_SECTIONS: usize = 3;

/// What stands before a chart, so that it can be found again; its name follows.
pub(super) const FIGURE: &str = "<figure id=\"fig-";

pub(super) fn html(page: &Page) -> String {
    let mut out = String::new();
    let title = Escaped(&page.title);
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n"
    );
    if let Some(subtitle) = &page.subtitle {
        let _ = writeln!(out, "<p class=\"subtitle\">{subtitle}</p>");
    }
    out += "</header>\n";
    contents(&mut out, page);
    out += "<main>\n";
    let mut n_figures = 0;
    for block in &page.blocks {
        write_block(&mut out, block, &mut n_figures);
    }
    out += "</main>\n";
    if let Some(footer) = &page.footer {
        let _ = writeln!(out, "<footer><p>{footer}</p></footer>");
    }
    if page.blocks.iter().any(|block| matches!(block, Block::Table(_))) {
        let _ = write!(out, "<script>\n{SCRIPT}</script>\n");
    }
    out += "</body>\n</html>\n";
    out
}

fn contents(out: &mut String, page: &Page) {
    let sections = || {
        page.blocks.iter().filter_map(|block| match block {
            Block::Heading { level: 2, id, text } => Some((id, text)),
            _ => None,
        })
    };
    if sections().count() < LEAST_SECTIONS {
        return;
    }
    *out += "<nav aria-label=\"Contents\"><ol>\n";
    for (id, text) in sections() {
        let _ = writeln!(out, "<li><a href=\"#{id}\">{}</a></li>", Escaped(text));
    }
    *out += "</ol></nav>\n";
}

fn write_block(out: &mut String, block: &Block, n_figures: &mut usize) {
    let _ = match block {
        Block::Heading { level, id, text } => {
            writeln!(out, "<h{level} id=\"{id}\">{}</h{level}>", Escaped(text))
        }
        Block::Text(text) => writeln!(out, "<p>{text}</p>"),
        Block::Note(text) => writeln!(out, "<p class=\"note\">{text}</p>"),
        Block::List(points) => {
            let points: Vec<String> = points.iter().map(|point| format!("<li>{point}</li>\n")).collect();
            if points.is_empty() { Ok(()) } else { writeln!(out, "<ul>\n{}</ul>", points.concat()) }
        }
        Block::Facts(facts) => {
            let line = |(name, text): &(String, super::Text)| {
                format!("<div><dt>{}</dt><dd>{text}</dd></div>\n", Escaped(name))
            };
            let facts: Vec<String> = facts.iter().map(line).collect();
            if facts.is_empty() { Ok(()) } else { writeln!(out, "<dl>\n{}</dl>", facts.concat()) }
        }
        Block::Code(text) => {
            let lines: Vec<String> = text.lines().map(|line| Escaped(line).to_string()).collect();
            writeln!(out, "<pre tabindex=\"0\"><code>{}</code></pre>", lines.join("\n"))
        }
        Block::Table(table) => {
            write_table(out, table);
            Ok(())
        }
        Block::Figure(shown) => {
            *n_figures += 1;
            write_figure(out, shown, *n_figures);
            Ok(())
        }
    };
}

fn write_table(out: &mut String, table: &Table) {
    *out += "<div class=\"scroll\" tabindex=\"0\"><table>\n";
    if !table.caption.is_empty() {
        let _ = writeln!(out, "<caption><span>{}</span></caption>", table.caption);
    }
    let side = |align: Align| if align == Align::Right { " class=\"n\"" } else { "" };
    *out += "<thead><tr>";
    for (name, align) in &table.columns {
        let _ = write!(out, "<th scope=\"col\"{}>{name}</th>", side(*align));
    }
    *out += "</tr></thead>\n<tbody>\n";
    for row in &table.rows {
        *out += "<tr>";
        for (index, (cell, (_, align))) in row.iter().zip(&table.columns).enumerate() {
            let side = side(*align);
            let _ = match index {
                0 => write!(out, "<th scope=\"row\"{side}>{cell}</th>"),
                _ => write!(out, "<td{side}>{cell}</td>"),
            };
        }
        *out += "</tr>\n";
    }
    *out += "</tbody>\n</table></div>\n";
}

fn write_figure(out: &mut String, shown: &Shown, number: usize) {
    let Shown { name, chart, caption, data } = shown;
    let (text, svg) = (data.to_text(), chart.to_svg());
    // Narrow screens scroll a chart rather than make it too small to read.
    let width = svg
        .split_once(" width=\"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map_or("816", |(width, _)| width);
    let _ = write!(
        out,
        "{FIGURE}{name}\">\n<div class=\"scroll\" tabindex=\"0\" style=\"--width: {width}px\">\n{svg}</div>\n\
         <figcaption><b>Figure {number}.</b> {caption} <span class=\"data\">Data: \
         <a href=\"{}\">{name}.csv</a>, <a download=\"{name}.csv\" href=\"data:text/csv;charset=utf-8,{}\">copy in this \
         page</a>.</span></figcaption>\n</figure>\n",
        shown.file(),
        percent(&text),
    );
}

/// Text as a part of an address: what is no letter, digit or plain mark by its bytes.
fn percent(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b',' => {
                out.push(char::from(byte));
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_hold_any_text() {
        assert_eq!(percent("a,b\n1.5,\"é\"\n"), "a,b%0A1.5,%22%C3%A9%22%0A");
    }
}
