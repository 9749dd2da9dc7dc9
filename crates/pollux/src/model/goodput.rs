//! `pollux model goodput`.

use std::path::Path;

use pollux_api::fit_file::{FitFile, FittedModel};
use pollux_api::goodput_table::{BestBatch, GoodputRow, GoodputTable};
use pollux_model::fit::Parameter;
use pollux_model::{BatchLimits, GoodputModel, GpuType, Placement};

use super::beyond::Beyond;
use super::plot;
use crate::cli::{GoodputArgs, GoodputOutput};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::text::{self, Align, Table, significant};

pub(crate) fn run(args: &GoodputArgs) -> Result<Output, Failure> {
    let (gpu_type, fitted) = read(&args.params, args.gpu_type.as_deref())?;
    let batch_max = args.batch_max.unwrap_or(args.batch_init.saturating_mul(BatchLimits::DEFAULT_GROWTH));
    let limits =
        BatchLimits::new(args.batch_init, batch_max, args.micro_batch.first(), args.micro_batch.last())?
            .with_max_accum_steps(args.max_accum.unwrap_or(u32::MAX));
    let model = GoodputModel::new(fitted.params.clone(), args.noise_scale, limits)
        .map_err(|source| Failure::Params { path: args.params.clone(), source })?;
    let placements = args.gpus.numbers().filter_map(|gpus| Placement::packed(gpus, args.gpus_per_node));
    let table = tabulate(&model, placements);

    let beyond = fitted.coverage.map(|coverage| {
        let best = |row: &GoodputRow| Some((row.placement, row.best?.plan.atomic_batch()));
        Beyond::count(&coverage, table.rows.iter().filter_map(best))
    });
    let file = match &args.plot {
        Some(file) => {
            let source = args.params.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let context =
                plot::Context { args, gpu_type: &gpu_type, limits: &limits, source, beyond: beyond.as_ref() };
            Some((file.path.clone(), plot::draw(&table, &context)?))
        }
        None => None,
    };
    let data = match args.output {
        GoodputOutput::Text => to_text(&table),
        GoodputOutput::Json => table.to_json(),
        GoodputOutput::Csv => table.to_csv(),
    };
    Ok(Output { data, notes: notes(args, &fitted, &limits, &table, beyond.as_ref()), file })
}

/// The model of the GPU type asked for, or the only one there is.
fn read(path: &Path, wanted: Option<&str>) -> Result<(GpuType, FittedModel), Failure> {
    let bytes = output::read(path)?;
    let file = FitFile::read(&path.display().to_string(), &bytes)?;
    let models = file.models();
    let (path, known) = (path.to_owned(), models.keys().cloned().collect());
    let found = if let Some(gpu_type) = wanted.map(GpuType::new) {
        models.get_key_value(&gpu_type).ok_or(Failure::NoSuchType { path, gpu_type, known })?
    } else {
        let only = models.first_key_value().filter(|_| models.len() == 1);
        only.ok_or(Failure::SeveralTypes { path, known })?
    };
    Ok((found.0.clone(), found.1.clone()))
}

/// The best batch of each placement. Speed-ups are over one GPU; where no batch keeps the limits there, over
/// the first placement where one does.
fn tabulate(model: &GoodputModel, placements: impl IntoIterator<Item = Placement>) -> GoodputTable {
    let best = |placement: Placement| (placement, model.best_batch(placement));
    let plans: Vec<_> = placements.into_iter().map(best).collect();
    let reference = [best(Placement::ALONE)].into_iter().chain(plans.iter().copied());
    let reference = reference.filter(|(_, plan)| plan.is_some()).map(|(placement, _)| placement).next();
    let reference_goodput = reference.map(|placement| model.best_goodput(placement)).unwrap_or_default();
    let row = |(placement, plan)| GoodputRow {
        placement,
        best: Option::map(plan, |plan| BestBatch {
            plan,
            throughput: model.throughput(placement, plan),
            efficiency: model.efficiency(plan),
            goodput: model.goodput(placement, plan),
            speedup: model.goodput(placement, plan) / reference_goodput,
        }),
    };
    GoodputTable { reference, rows: plans.into_iter().map(row).collect() }
}

fn to_text(table: &GoodputTable) -> String {
    let mut text = Table::new(
        [
            "GPUS",
            "NODES",
            "MICRO-BATCH",
            "ACCUM",
            "GLOBAL BATCH",
            "THROUGHPUT",
            "EFFICIENCY",
            "GOODPUT",
            "SPEED-UP",
        ]
        .map(|name| (name, Align::Right)),
    );
    for row in &table.rows {
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let best = |show: fn(&BestBatch) -> String| or_dash(row.best.as_ref().map(show));
        text.push([
            row.placement.n_replicas().to_string(),
            row.placement.n_nodes().to_string(),
            best(|best| best.plan.atomic_batch().to_string()),
            best(|best| best.plan.accum_steps().to_string()),
            best(|best| best.plan.global().0.to_string()),
            best(|best| significant(best.throughput.samples_per_sec(), 4)),
            best(|best| format!("{:.3}", best.efficiency.ratio())),
            best(|best| significant(best.goodput.useful_samples_per_sec(), 4)),
            best(|best| format!("{:.2}", best.speedup.ratio())),
        ]);
    }
    text.render()
}

/// What the table does not say by itself.
fn notes(
    args: &GoodputArgs,
    fitted: &FittedModel,
    limits: &BatchLimits,
    table: &GoodputTable,
    beyond: Option<&Beyond>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if args.batch_max.is_none() {
        notes.push(format!(
            "batches up to {}, {} times `--batch-init`, since there is no `--batch-max`",
            limits.max().0,
            BatchLimits::DEFAULT_GROWTH
        ));
    }
    if let Some(reference) = table.reference {
        let gpus = text::count(reference.n_replicas() as usize, "GPU");
        let why =
            if reference == Placement::ALONE { "" } else { ", the fewest with a batch within the limits" };
        let rates = "throughput and goodput are in samples per second";
        notes.push(format!("{rates}, speed-up is over {gpus}{why}"));
    }
    let n_without = table.rows.iter().filter(|row| row.best.is_none()).count();
    if n_without > 0 {
        notes.push(format!("{} without a batch: {}", text::count(n_without, "row"), too_tight(limits)));
    }
    if let Some(beyond) = beyond.filter(|beyond| beyond.n_outside > 0) {
        let share = beyond.share("row");
        notes.push(format!("{share} go beyond what the model was fitted to: {}", beyond.joined()));
    }
    if !fitted.undetermined.is_empty() {
        let names: Vec<_> = fitted.undetermined.iter().copied().map(Parameter::name).collect();
        notes.push(format!("not determined by the observations, and so guesses: {}", names.join(", ")));
    }
    notes
}

/// Why there is no batch.
fn too_tight(limits: &BatchLimits) -> String {
    let micro_batches = text::range((limits.micro_min(), limits.micro_max()));
    let accumulated = match limits.max_accum_steps() {
        u32::MAX => String::new(),
        0 => " without accumulation".to_owned(),
        most => format!(" with at most {most} accumulated"),
    };
    let (initial, max) = (limits.initial().0, limits.max().0);
    let batches = if limits.is_fixed() { initial.to_string() } else { format!("{initial} to {max}") };
    format!("micro-batches of {micro_batches} samples{accumulated} make no batch of {batches} there")
}
