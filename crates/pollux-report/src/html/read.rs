//! Takes charts out of a page again.

use super::render::FIGURE;

/// A chart as it stands on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Embedded<'a> {
    /// Its name.
    pub name: &'a str,
    /// The drawing: a standalone SVG document.
    pub svg: &'a str,
}

impl Embedded<'_> {
    /// Its headline.
    pub fn title(&self) -> String {
        let title = self.svg.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
        let title = title.map_or("", |(title, _)| title);
        let marks = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
        marks.iter().fold(title.to_owned(), |text, (escaped, mark)| text.replace(escaped, mark))
    }
}

/// The charts of a page that [`Page::to_html`](super::Page::to_html) made, in order. Of other text there are none.
///
/// ```
/// use pollux_report::{Figure, Page, embedded};
///
/// let figure = Figure::new("Times");
/// let html = Page::new("a").figure("times", figure.clone(), "").to_html();
/// let found = embedded(&html);
/// assert_eq!((found.len(), found[0].name, found[0].svg), (1, "times", figure.to_svg().as_str()));
/// assert_eq!(found[0].title(), "Times");
/// ```
pub fn embedded(html: &str) -> Vec<Embedded<'_>> {
    let end_of_svg = "</svg>\n";
    let mut found = Vec::new();
    let mut rest = html;
    while let Some((_, after)) = rest.split_once(FIGURE) {
        let Some((name, after)) = after.split_once('"') else { break };
        let Some(start) = after.find("<svg") else { break };
        let Some(end) = after[start..].find(end_of_svg) else { break };
        let (svg, after) = after[start..].split_at(end + end_of_svg.len());
        found.push(Embedded { name, svg });
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_page_has_no_charts() {
        for text in ["", "<figure id=\"fig-", "<figure id=\"fig-a\"><svg>", "<figure id=\"fig-a\">"] {
            assert_eq!(embedded(text), [], "{text}");
        }
    }
}
