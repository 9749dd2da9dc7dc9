//! `pollux model fit`.

use std::collections::BTreeMap;
use std::path::Path;

use pollux_api::fit_file::{FitFile, FittedModel, TestQuality};
use pollux_api::observations;
use pollux_model::GpuType;
use pollux_model::fit::{Coverage, FitError, FitRequest, Observation, RelativeError};

use super::beyond::Beyond;
use super::describe;
use crate::cli::{FitArgs, FitOutput};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::text;

/// A model, and where its test observations lie.
type Tested = (FittedModel, Option<Beyond>);

pub(crate) fn run(args: &FitArgs) -> Result<Output, Failure> {
    let observed = read(&args.observations)?;
    let kept_out = match &args.test {
        Some(path) => read_test(path, &observed)?,
        None => BTreeMap::new(),
    };
    let mut fitted = BTreeMap::<GpuType, Tested>::new();
    for (gpu_type, observations) in &observed {
        let request = FitRequest { observations, compute: args.compute.into(), ..FitRequest::default() };
        let fit = pollux_model::fit::fit(&request)
            .map_err(|source| Failure::Fit { path: args.observations.clone(), source })?;
        let coverage = fit.coverage;
        let mut model = FittedModel::of_fit(fit, observations.len() as u64);
        let mut beyond = None;
        if let Some(kept_out) = kept_out.get(gpu_type)
            && let Some(error) = RelativeError::of(&model.params, kept_out)
        {
            let outside = count_beyond(&coverage, kept_out);
            model.test = Some(TestQuality {
                n_observations: kept_out.len() as u64,
                error,
                n_extrapolated: outside.n_outside as u64,
            });
            beyond = Some(outside);
        }
        fitted.insert(gpu_type.clone(), (model, beyond));
    }
    let data = match args.output {
        FitOutput::Text => to_text(&fitted),
        FitOutput::Json => {
            let models = fitted.into_iter().map(|(gpu_type, (model, _))| (gpu_type, model)).collect();
            let no_models =
                || Failure::Fit { path: args.observations.clone(), source: FitError::NoObservations };
            FitFile::new(models).ok_or_else(no_models)?.to_json()
        }
    };
    Ok(Output { data, ..Output::default() })
}

fn read(path: &Path) -> Result<BTreeMap<GpuType, Vec<Observation>>, Failure> {
    let bytes = output::read(path)?;
    Ok(observations::read(&path.display().to_string(), &bytes)?)
}

/// Observations kept out of a fit, each of a GPU type that was fitted.
fn read_test(
    path: &Path,
    fitted: &BTreeMap<GpuType, Vec<Observation>>,
) -> Result<BTreeMap<GpuType, Vec<Observation>>, Failure> {
    let kept_out = read(path)?;
    match kept_out.keys().find(|gpu_type| !fitted.contains_key(gpu_type)) {
        Some(gpu_type) => Err(Failure::NothingToTest {
            path: path.to_owned(),
            gpu_type: gpu_type.clone(),
            fitted: fitted.keys().cloned().collect(),
        }),
        None => Ok(kept_out),
    }
}

fn count_beyond(coverage: &Coverage, observations: &[Observation]) -> Beyond {
    Beyond::count(coverage, observations.iter().map(|row| (row.placement(), row.micro_batch())))
}

fn to_text(fitted: &BTreeMap<GpuType, Tested>) -> String {
    let sections: Vec<String> = fitted
        .iter()
        .map(|(gpu_type, (model, beyond))| {
            let of =
                if *gpu_type == GpuType::default() { String::new() } else { format!(" of `{gpu_type}`") };
            let n_observations = model.fit.map_or(0, |fit| fit.n_observations);
            let rows = text::count(usize::try_from(n_observations).unwrap_or(usize::MAX), "observation");
            let form = model.params.grad.form();
            format!(
                "Step time{of}, {form} compute, fitted to {rows}\n\n{}",
                describe::model(model, beyond.as_ref())
            )
        })
        .collect();
    sections.join("\n\n")
}
