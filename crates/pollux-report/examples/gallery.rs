//! Draws one of each kind of figure into the folder given as argument.
//!
//! `cargo run -p pollux-report --example gallery -- target/gallery`

use std::error::Error;
use std::path::PathBuf;

use pollux_report::{
    Axis, Chart, Comparison, Figure, Gantt, GanttRow, Legend, Measure, Panel, Series, Span, Style, Value,
};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: gallery FOLDER")?);
    std::fs::create_dir_all(&folder)?;
    let figures = [
        ("goodput", goodput()),
        ("single", single()),
        ("point", point()),
        ("log", log()),
        ("bars", bars()),
        ("legend", legend()),
        ("odd", odd()),
        ("empty", Figure::new("A figure without panels").with_note("Nothing was measured.")),
    ];
    let figures = figures.map(|(name, figure)| (name, Chart::from(figure)));
    let more = [("gantt", Chart::from(gantt())), ("comparison", comparison().into())];
    for (name, figure) in figures.into_iter().chain(more) {
        std::fs::write(folder.join(name).with_extension("svg"), figure.to_svg())?;
        std::fs::write(folder.join(name).with_extension("png"), figure.to_png(2.0)?)?;
    }
    Ok(())
}

fn gpus() -> impl Iterator<Item = f64> + Clone {
    (1..=64).map(f64::from)
}

/// A made-up job: steps that slow down when they cross nodes of four GPUs, a batch that grows.
fn goodput() -> Figure {
    let batch = |n: f64| (128.0 * n.powf(0.8) / 32.0).round() * 32.0;
    let throughput = |n: f64| {
        let exchange = if n > 4.0 { 0.02 + 0.0004 * n } else { 0.01 };
        batch(n) / (0.05 + batch(n) / n * 0.0011 + exchange)
    };
    let efficiency = |n: f64| (4_000.0 + 128.0) / (4_000.0 + batch(n));
    let useful = |n: f64| throughput(n) * efficiency(n);
    let x = || Axis::linear("GPUs").starting_at_zero();
    let rates = Panel::new("Goodput and throughput", x(), Axis::linear("samples/s").starting_at_zero())
        .with_series(Series::new("goodput", gpus().map(|n| (n, useful(n)))))
        .with_series(Series::new("throughput", gpus().map(|n| (n, throughput(n)))))
        .with_series(Series::new("ideal linear", gpus().map(|n| (n, n * useful(1.0)))).reference());
    let best = Panel::new("Best global batch", x(), Axis::log2("samples"))
        .with_series(Series::new("best batch", gpus().map(|n| (n, batch(n)))).with_style(Style::Step));
    let statistical =
        Panel::new("Statistical efficiency", x(), Axis::linear("at the best batch").between(0.0, 1.0))
            .with_series(Series::new("efficiency", gpus().map(|n| (n, efficiency(n)))));
    let speedup = Panel::new("Speed-up over one GPU", x(), Axis::linear("ratio").starting_at_zero())
        .with_series(Series::new("speed-up", gpus().map(|n| (n, useful(n) / useful(1.0)))))
        .with_series(Series::new("ideal linear", gpus().map(|n| (n, n))).reference());
    Figure::new("Goodput of resnet18 on CIFAR-10")
        .with_subtitle(
            "Best batch at each size, 4 GPUs per node, noise scale φ = 4000 samples, initial batch 128",
        )
        .with_panel(rates)
        .with_panel(best)
        .with_panel(statistical)
        .with_panel(speedup)
        .with_note(
            "Step times from the fitted model; ideal linear is goodput on one GPU times the number of GPUs.",
        )
}

fn single() -> Figure {
    let cdf = |shift: f64| (0..=60).map(move |n| (f64::from(n) * shift, f64::from(n) / 60.0));
    let panel = Panel::new(
        "",
        Axis::linear("completion time (h)"),
        Axis::linear("fraction of jobs").between(0.0, 1.0),
    )
    .with_series(Series::new("pollux", cdf(0.2)).with_style(Style::Step))
    .with_series(Series::new("tiresias", cdf(0.31)).with_style(Style::Step))
    .with_series(Series::new("optimus", cdf(0.27)).with_style(Style::Step));
    Figure::new("Completion times").with_subtitle("160 jobs on 64 GPUs").with_panel(panel)
}

fn point() -> Figure {
    let panel = Panel::new("One point", Axis::linear("GPUs"), Axis::linear("samples/s"))
        .with_series(Series::new("only", [(4.0, 1_234.5)]))
        .with_legend(Legend::Shown);
    let gaps = [(1.0, 2.0), (2.0, f64::NAN), (3.0, 5.0), (4.0, 4.0), (5.0, f64::INFINITY), (6.0, 1.0)];
    let gap = Panel::new("Gaps", Axis::linear("step"), Axis::linear("loss"))
        .with_series(Series::new("measured", gaps))
        .with_series(Series::new("never measured", []));
    Figure::new("Little data").with_panel(panel).with_panel(gap)
}

fn log() -> Figure {
    let sizes = || (0..=10).map(|power| f64::from(power).exp2());
    let loss = Panel::new("Step time", Axis::log2("local batch (samples)"), Axis::log10("seconds"))
        .with_series(
            Series::new("measured", sizes().map(|n| (n, 0.02 + n * 0.001))).with_style(Style::Points),
        )
        .with_series(
            Series::new("fitted", sizes().map(|n| (n, 0.018 + n * 0.00105)))
                .with_style(Style::LineWithPoints),
        );
    let wide = Panel::new("Noise scale", Axis::log10("step"), Axis::log10("samples"))
        .with_series(Series::new("φ", (0..50).map(|n| (f64::from(n * n * 40 + 1), 30.0 * 1.3f64.powi(n)))));
    let narrow = Panel::new("Less than a power", Axis::log2("GPUs").between(5.0, 7.0), Axis::log10("s"))
        .with_series(
            Series::new("a", [(5.0, 1.2), (6.0, 1.4), (7.0, 1.9)]).with_style(Style::LineWithPoints),
        );
    Figure::new("Logarithmic axes").with_panel(loss).with_panel(wide).with_panel(narrow)
}

fn bars() -> Figure {
    let loads = [0.5, 1.0, 1.5, 2.0];
    let jct = |factor: f64| loads.map(|load| (load, factor * (0.6 + load * load)));
    let grouped =
        Panel::new("Mean completion time by load", Axis::linear("relative load"), Axis::linear("hours"))
            .with_series(Series::new("pollux", jct(1.0)).with_style(Style::Bars))
            .with_series(Series::new("optimus", jct(1.4)).with_style(Style::Bars))
            .with_series(Series::new("tiresias", jct(1.9)).with_style(Style::Bars))
            .with_series(Series::new("fifo", jct(2.3)).with_style(Style::Bars));
    let histogram = (0..24).map(|hour| (f64::from(hour), (f64::from(hour) / 4.0).sin() * 20.0 + 5.0));
    let signed = Panel::new("Change of arrivals by hour", Axis::linear("hour"), Axis::linear("jobs"))
        .with_series(Series::new("jobs", histogram).with_style(Style::Bars));
    Figure::new("Bars").with_panel(grouped).with_panel(signed)
}

fn legend() -> Figure {
    let empty = Panel::new("Sixteen series", Axis::linear("GPUs"), Axis::linear("samples/s"));
    let panel = (0..16).fold(empty, |panel, index| {
        let slope = f64::from(index) + 1.0;
        let name = match index % 4 {
            0 => format!("policy {index}"),
            1 => format!("a policy with a longer name {index}"),
            _ => format!("p{index}"),
        };
        let style = if index % 2 == 0 { Style::Line } else { Style::LineWithPoints };
        panel.with_series(
            Series::new(name, (0..12).map(|n| (f64::from(n), slope * f64::from(n)))).with_style(style),
        )
    });
    let title = "A long title that has to be broken into several lines since no reasonable figure is wide \
                 enough for all of its many words";
    let name = "one name that is longer than the panel is wide, as happens when somebody puts a whole command \
                line with all its options into the name of a series";
    let long = Series::new(name, [(0.0, 1e6), (10.0, 5e6)]);
    Figure::new(title)
        .with_panel(panel.clone().with_series(long))
        .with_panel(Panel { title: title.to_owned(), ..panel })
}

fn odd() -> Figure {
    let x = || Axis::linear("x");
    let panel = |title: &str, y: Axis, points: &[(f64, f64)]| {
        Panel::new(title, x(), y).with_series(Series::new("a", points.iter().copied()))
    };
    Figure::new("Odd ranges & <escaped> \"text\"")
        .with_panel(panel("Huge", Axis::linear("y"), &[(0.0, -1e308), (1e308, 1e308)]))
        .with_panel(panel("Tiny", Axis::linear("y"), &[(0.0, 0.0), (1e-12, 3e-13)]))
        .with_panel(panel("Narrow", Axis::linear("y"), &[(1e6, 1_000_000.0), (1e6 + 9.0, 1_000_008.0)]))
        .with_panel(panel("Constant", Axis::linear("y"), &[(1.0, 0.0), (2.0, 0.0)]))
        .with_panel(panel(
            "Cut off",
            Axis::linear("y").between(0.0, 1.0),
            &[(0.0, -1.0), (1.0, 2.0), (2.0, 0.5)],
        ))
        .with_panel(panel("Nothing", Axis::log2("y"), &[(0.0, 0.0)]))
}

/// Three nodes of four GPUs, and jobs that move.
fn gantt() -> Gantt {
    let rows = (0..3).map(|node| GanttRow::new(format!("node {node}"), 4)).collect();
    let spans = [
        (0, 0..4, 0.0, 2.5, "bert-1", "bert"),
        (1, 0..2, 0.5, 4.0, "cifar10-2", "cifar10"),
        (1, 2..4, 1.0, 1.01, "ncf-3", "ncf"),
        (2, 0..4, 1.0, 3.0, "imagenet-4", "imagenet"),
        (0, 0..4, 2.6, 6.0, "imagenet-4", "imagenet"),
        (1, 0..1, 4.5, 7.0, "yolov3-5", "yolov3"),
        (1, 1..4, 4.5, 6.5, "deepspeech2-6", "deepspeech2"),
    ];
    let gantt = Gantt::new("GPUs held", "hours", rows).with_subtitle("A row for each node, its GPUs stacked");
    spans.into_iter().fold(gantt, |gantt, (row, lanes, from, to, name, group)| {
        gantt.with_span(Span { row, lanes, from, to, name: name.to_owned(), group: group.to_owned() })
    })
}

fn comparison() -> Comparison {
    let values = |factor: f64| {
        [1.0, 1.3, 2.1].map(|at| Value::spread(factor * at, 0.8 * factor * at, 1.1 * factor * at))
    };
    let published = [1.1, 1.2, f64::NAN].map(Value::exact);
    Comparison::new("Policies", ["pollux:tuned", "tiresias", "a policy with a longer name"])
        .with_measure(Measure::bars(Axis::linear("average (h)"), values(1.0)))
        .with_measure(Measure::bars(Axis::linear("99th percentile (h)"), values(12.0)))
        .with_measure(
            Measure::dots(Axis::linear("average (h)"))
                .with_series("ours", values(1.0))
                .with_series("published", published),
        )
        .with_note("Whiskers are standard deviations.")
}
