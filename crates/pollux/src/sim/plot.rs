//! `pollux sim plot`.

use std::path::Path;

use pollux_report::{Embedded, embedded, svg_to_png};

use super::args::PlotArgs;
use super::failure::SimFailure;
use super::files::REPORT;
use crate::cli::PlotFormat;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::text::{Align, Table};

/// Pixels of a PNG per unit of the drawing.
const PNG_SCALE: f32 = 2.0;

pub(crate) fn run(args: &PlotArgs) -> Result<Output, Failure> {
    if !args.folder.is_dir() {
        return Err(SimFailure::NoFolder { path: args.folder.clone() }.into());
    }
    let path = args.folder.join(REPORT);
    let html = String::from_utf8_lossy(&output::read(&path)?).into_owned();
    let charts = embedded(&html);
    if charts.is_empty() {
        return Err(SimFailure::NoReport { path }.into());
    }
    let Some(name) = &args.figure else {
        return Ok(Output { data: list(&charts), ..Output::default() });
    };
    let chart = find(name, &charts, &path)?;
    let Some(file) = &args.plot else {
        return Ok(Output { data: chart.svg.to_owned(), ..Output::default() });
    };
    let bytes = match file.format {
        PlotFormat::Svg => chart.svg.as_bytes().to_vec(),
        PlotFormat::Png => svg_to_png(chart.svg, PNG_SCALE)?,
    };
    Ok(Output { file: Some((file.path.clone(), bytes)), ..Output::default() })
}

fn find<'a>(name: &str, charts: &[Embedded<'a>], path: &Path) -> Result<Embedded<'a>, SimFailure> {
    charts.iter().find(|chart| chart.name == name).copied().ok_or_else(|| SimFailure::NoFigure {
        name: name.to_owned(),
        path: path.to_owned(),
        known: charts.iter().map(|chart| chart.name.to_owned()).collect(),
    })
}

fn list(charts: &[Embedded<'_>]) -> String {
    let mut table = Table::new([("FIGURE", Align::Left), ("TITLE", Align::Left)]);
    for chart in charts {
        table.push([chart.name.to_owned(), chart.title()]);
    }
    table.render()
}
