//! Any drawing, with the numbers behind it.

use crate::comparison::Comparison;
use crate::csv::Csv;
use crate::figure::{Figure, Panel};
use crate::gantt::Gantt;
use crate::png::RenderError;

/// A drawing of any kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    /// Lines, steps, points and upright bars between axes.
    Panels(Figure),
    /// Who held what when.
    Gantt(Gantt),
    /// Bars or dots in rows, with their spread.
    Comparison(Comparison),
}

impl Chart {
    /// The headline.
    pub fn title(&self) -> &str {
        match self {
            Self::Panels(figure) => &figure.title,
            Self::Gantt(gantt) => &gantt.title,
            Self::Comparison(comparison) => &comparison.title,
        }
    }

    /// The drawing as a standalone SVG document, which may also be placed inside HTML as it is.
    pub fn to_svg(&self) -> String {
        match self {
            Self::Panels(figure) => figure.to_svg(),
            Self::Gantt(gantt) => gantt.to_svg(),
            Self::Comparison(comparison) => comparison.to_svg(),
        }
    }

    /// The drawing as a PNG, `scale` pixels per unit of the SVG; see [`Figure::to_png`].
    pub fn to_png(&self, scale: f32) -> Result<Vec<u8>, RenderError> {
        crate::png::render(&self.to_svg(), scale)
    }

    /// All that is drawn, as numbers.
    pub fn data(&self) -> Csv {
        match self {
            Self::Panels(figure) => panels(figure),
            Self::Gantt(gantt) => gantt.data(),
            Self::Comparison(comparison) => comparison.data(),
        }
    }
}

impl From<Figure> for Chart {
    fn from(figure: Figure) -> Self {
        Self::Panels(figure)
    }
}

impl From<Gantt> for Chart {
    fn from(gantt: Gantt) -> Self {
        Self::Gantt(gantt)
    }
}

impl From<Comparison> for Chart {
    fn from(comparison: Comparison) -> Self {
        Self::Comparison(comparison)
    }
}

/// A row for each point. Columns have the names of the axes where all panels share them.
fn panels(figure: &Figure) -> Csv {
    let shared = |label: fn(&Panel) -> &str, otherwise: &str| {
        let mut labels = figure.panels.iter().map(label);
        let first = labels.next().filter(|first| !first.is_empty());
        first.filter(|first| labels.all(|label| label == *first)).unwrap_or(otherwise).to_owned()
    };
    let x = shared(|panel| &panel.x.label, "x");
    let y = shared(|panel| &panel.y.label, "y");
    let mut csv = Csv::new(["panel", "series", &x, &y]);
    for panel in &figure.panels {
        let axes = [(&x, &panel.x.label), (&y, &panel.y.label)];
        let unlike = axes.iter().filter(|(shared, own)| shared != own && !own.is_empty());
        let labels: Vec<&str> = unlike.map(|(_, own)| own.as_str()).collect();
        let name = match (panel.title.is_empty(), labels.is_empty()) {
            (_, true) => panel.title.clone(),
            (true, false) => labels.join(" against "),
            (false, false) => format!("{}: {}", panel.title, labels.join(" against ")),
        };
        for series in &panel.series {
            for (x, y) in &series.points {
                csv.push([name.clone(), series.name.clone(), Csv::number(*x), Csv::number(*y)]);
            }
        }
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;
    use crate::figure::Series;

    fn panel(title: &str, y: &str) -> Panel {
        let axes = (Axis::linear("hours"), Axis::linear(y));
        Panel::new(title, axes.0, axes.1).with_series(Series::new("fifo", [(0.5, 1.0), (1.0, f64::NAN)]))
    }

    fn check_data(panels: &[Panel], expected: &str) {
        let figure = panels.iter().cloned().fold(Figure::new("a"), Figure::with_panel);
        assert_eq!(Chart::from(figure).data().to_text(), expected);
    }

    #[test]
    fn every_point_is_a_row() {
        check_data(&[panel("", "GPUs")], "panel,series,hours,GPUs\n,fifo,0.5,1\n,fifo,1,\n");
    }

    #[test]
    fn axes_that_differ_are_named_by_row() {
        let two = [panel("Held", "GPUs"), panel("Batch", "samples")];
        let rows =
            "Held: GPUs,fifo,0.5,1\nHeld: GPUs,fifo,1,\nBatch: samples,fifo,0.5,1\nBatch: samples,fifo,1,\n";
        check_data(&two, &format!("panel,series,hours,y\n{rows}"));
    }
}
