//! The goodput table as a picture.

use pollux_api::goodput_table::{BestBatch, GoodputRow, GoodputTable};
use pollux_model::{BatchLimits, GpuType, Placement};
use pollux_report::{Axis, Figure, Panel, RenderError, Series, Style};

use super::beyond::Beyond;
use crate::cli::{GoodputArgs, PlotFormat};
use crate::text;

/// Pixels of a PNG per unit of the drawing.
const PNG_SCALE: f32 = 2.0;

/// With more rows than this, markers would only hide the line.
const MOST_MARKERS: usize = 16;

/// What the picture says beside the table itself.
pub(crate) struct Context<'a> {
    pub(crate) args: &'a GoodputArgs,
    pub(crate) gpu_type: &'a GpuType,
    pub(crate) limits: &'a BatchLimits,
    /// The file the model comes from.
    pub(crate) source: String,
    pub(crate) beyond: Option<&'a Beyond>,
}

pub(crate) fn draw(table: &GoodputTable, context: &Context<'_>) -> Result<Vec<u8>, RenderError> {
    let figure = figure(table, context);
    match context.args.plot.as_ref().map(|file| file.format) {
        Some(PlotFormat::Png) => figure.to_png(PNG_SCALE),
        _ => Ok(figure.to_svg().into_bytes()),
    }
}

fn figure(table: &GoodputTable, context: &Context<'_>) -> Figure {
    let on = if *context.gpu_type == GpuType::default() {
        String::new()
    } else {
        format!(" on {}", context.gpu_type)
    };
    Figure::new(format!("Goodput by number of GPUs{on}"))
        .with_subtitle(subtitle(context))
        .with_panel(rates(table))
        .with_panel(batch(table))
        .with_panel(efficiency(table))
        .with_panel(speedup(table))
        .with_note(note(context))
}

fn subtitle(context: &Context<'_>) -> String {
    let (args, limits) = (context.args, context.limits);
    let micro_batch = text::range((limits.micro_min(), limits.micro_max()));
    let accum = match args.max_accum {
        Some(0) => ", no accumulation".to_owned(),
        Some(most) => format!(", accumulation up to {most}"),
        None => String::new(),
    };
    format!(
        "Best batch at each size: initial batch {}, at most {}, micro-batch {micro_batch}{accum}; noise scale {} samples; {} \
         per node",
        limits.initial().0,
        limits.max().0,
        args.noise_scale.samples(),
        text::count(args.gpus_per_node as usize, "GPU"),
    )
}

fn note(context: &Context<'_>) -> String {
    let source = format!("Step times by the model of {}.", context.source);
    match context.beyond.filter(|beyond| beyond.n_outside > 0) {
        Some(beyond) => format!("{source} Partly extrapolated: {}.", beyond.joined()),
        None => source,
    }
}

/// First and last number of GPUs drawn: from zero, unless that would leave most of a panel empty.
fn ends(table: &GoodputTable) -> (f64, f64) {
    let gpus = |row: Option<&GoodputRow>| row.map_or(1.0, |row| f64::from(row.placement.n_replicas()));
    let (first, last) = (gpus(table.rows.first()), gpus(table.rows.last()));
    (if first > last / 4.0 && first < last { first } else { 0.0 }, last)
}

/// The same for all panels, whatever gaps they have.
fn gpus(table: &GoodputTable) -> Axis {
    let (first, last) = ends(table);
    let room = 0.02 * (last - first);
    Axis::linear("GPUs").between(if first > 0.0 { first - room } else { 0.0 }, last + room)
}

/// One value of the table by number of GPUs, with gaps where there is no batch.
fn series(table: &GoodputTable, name: &str, value: fn(&BestBatch) -> f64) -> Series {
    let points = table
        .rows
        .iter()
        .map(|row| (f64::from(row.placement.n_replicas()), row.best.as_ref().map_or(f64::NAN, value)));
    let style = if table.rows.len() > MOST_MARKERS { Style::Line } else { Style::LineWithPoints };
    Series::new(name, points).with_style(style)
}

fn rates(table: &GoodputTable) -> Panel {
    Panel::new("Goodput and throughput", gpus(table), Axis::linear("samples/s").starting_at_zero())
        .with_series(series(table, "goodput", |best| best.goodput.useful_samples_per_sec()))
        .with_series(series(table, "throughput", |best| best.throughput.samples_per_sec()))
}

fn batch(table: &GoodputTable) -> Panel {
    Panel::new("Best global batch", gpus(table), Axis::linear("samples").starting_at_zero())
        .with_series(series(table, "global batch", |best| best.plan.global().0 as f64))
}

fn efficiency(table: &GoodputTable) -> Panel {
    let axis = Axis::linear("progress per sample, 1 at the initial batch").between(0.0, 1.0);
    Panel::new("Statistical efficiency", gpus(table), axis)
        .with_series(series(table, "efficiency", |best| best.efficiency.ratio()))
}

fn speedup(table: &GoodputTable) -> Panel {
    let reference = table.reference.unwrap_or(Placement::ALONE).n_replicas();
    let title = format!("Speed-up over {}", text::count(reference as usize, "GPU"));
    let (first, last) = ends(table);
    let ideal = [first, last].map(|gpus| (gpus, gpus / f64::from(reference)));
    // The ideal would leave most of the panel empty where a job stops scaling: cut it off.
    let best = |row: &GoodputRow| row.best.map_or(0.0, |best| best.speedup.ratio());
    let highest = table.rows.iter().map(best).fold(1.0, f64::max);
    Panel::new(title, gpus(table), Axis::linear("goodput ratio").between(0.0, (1.5 * highest).ceil()))
        .with_series(series(table, "speed-up", |best| best.speedup.ratio()))
        .with_series(Series::new("ideal", ideal).reference())
}
