//! A fitted model in words and tables, for people.

use std::fmt::Write as _;

use pollux_api::fit_file::FittedModel;
use pollux_model::fit::{Coverage, Parameter};
use pollux_model::{Compute, PerfParams, StepTable};

use super::beyond::Beyond;
use crate::text::{self, Align, Table, percent, significant};

/// Digits of a parameter.
const DIGITS: usize = 3;

/// The parameters, their errors, and how far to trust them.
pub(crate) fn model(model: &FittedModel, test_beyond: Option<&Beyond>) -> String {
    let mut sections = vec![parameters(model)];
    if let Compute::Table(table) = &model.params.grad {
        sections.push(points(table));
    }
    sections.push(errors(model));
    sections.push(undetermined(model));
    if let Some(coverage) = &model.coverage {
        sections.push(covered(coverage) + &test_beyond.map(tested).unwrap_or_default());
    }
    sections.join("\n")
}

fn parameters(model: &FittedModel) -> String {
    let mut table = Table::new([
        ("PARAMETER", Align::Left),
        ("VALUE", Align::Right),
        ("UNIT", Align::Left),
        ("", Align::Left),
    ]);
    for (parameter, value) in values(&model.params) {
        let (unit, meaning) = meaning(parameter);
        let open = if model.undetermined.contains(&parameter) { " [undetermined]" } else { "" };
        let value = significant(value, DIGITS);
        table.push([parameter.name().to_owned(), value, unit.to_owned(), format!("{meaning}{open}")]);
    }
    table.render()
}

/// The parameters that the model's form has.
fn values(params: &PerfParams) -> Vec<(Parameter, f64)> {
    let mut values = match params.grad {
        Compute::Linear { alpha, beta } => {
            vec![(Parameter::AlphaGrad, alpha), (Parameter::BetaGrad, beta)]
        }
        Compute::Roofline { alpha, beta, delta } => {
            vec![(Parameter::AlphaGrad, alpha), (Parameter::BetaGrad, beta), (Parameter::DeltaGrad, delta)]
        }
        Compute::Table(_) => Vec::new(),
    };
    values.extend([
        (Parameter::AlphaLocal, params.sync_local.alpha),
        (Parameter::BetaLocal, params.sync_local.beta),
        (Parameter::AlphaNode, params.sync_node.alpha),
        (Parameter::BetaNode, params.sync_node.beta),
        (Parameter::Gamma, params.gamma),
        (Parameter::OptimizerStep, params.optimizer_step),
    ]);
    values
}

/// A parameter's unit, and what it stands for.
fn meaning(parameter: Parameter) -> (&'static str, &'static str) {
    match parameter {
        Parameter::AlphaGrad => ("s", "compute of a micro-batch, constant part"),
        Parameter::BetaGrad => ("s/sample", "compute, per sample"),
        Parameter::DeltaGrad => ("", "bend between the two: 1 is a straight line, 10 is sharp"),
        Parameter::AlphaLocal => ("s", "exchange within a node, 2 GPUs"),
        Parameter::BetaLocal => ("s/GPU", "exchange within a node, each further GPU"),
        Parameter::AlphaNode => ("s", "exchange across nodes, 2 GPUs"),
        Parameter::BetaNode => ("s/GPU", "exchange across nodes, each further GPU"),
        Parameter::Gamma => ("", "overlap of compute and exchange: 1 is none, 10 nearly all"),
        Parameter::OptimizerStep => ("s", "the optimizer's own step"),
    }
}

fn points(table: &StepTable) -> String {
    let mut rows =
        Table::new([("MICRO-BATCH", Align::Right), ("COMPUTE", Align::Right), ("UNIT", Align::Left)]);
    for &(micro_batch, secs) in table.points() {
        rows.push([micro_batch.to_string(), significant(secs, DIGITS), "s".to_owned()]);
    }
    rows.render()
}

fn errors(model: &FittedModel) -> String {
    let mut table = Table::new([
        ("ERROR OF optim_time_s", Align::Left),
        ("OBSERVATIONS", Align::Right),
        ("MEAN", Align::Right),
        ("WORST", Align::Right),
    ]);
    let fit = model.fit.map(|fit| ("on the fit", fit.n_observations, fit.error));
    let test = model.test.map(|test| ("on the test", test.n_observations, test.error));
    for (on, n_observations, error) in fit.into_iter().chain(test) {
        table.push([on.to_owned(), n_observations.to_string(), percent(error.mean), percent(error.worst)]);
    }
    table.render()
}

fn undetermined(model: &FittedModel) -> String {
    let parameters = &model.undetermined;
    if parameters.is_empty() {
        return "The observations determine every parameter.\n".to_owned();
    }
    let mut text =
        "The observations leave these open: the values are assumptions or rough guesses, and so is what\n\
                    is predicted from them.\n"
            .to_owned();
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for parameter in parameters {
        let why = model.coverage.map_or("", |coverage| why_open(*parameter, &coverage));
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(parameter.name()),
            None => reasons.push((why, vec![parameter.name()])),
        }
    }
    for (why, names) in reasons {
        let _ = writeln!(text, "  {}: {why}", names.join(", "));
    }
    text
}

/// Why the observations do not determine a parameter.
fn why_open(parameter: Parameter, coverage: &Coverage) -> &'static str {
    let no_more_than_two = |seen: Option<(u32, u32)>| seen.is_some_and(|(_, most)| most <= 2);
    match parameter {
        Parameter::AlphaGrad | Parameter::BetaGrad if coverage.micro_batch.0 == coverage.micro_batch.1 => {
            "one micro-batch was observed, half of its compute is taken to be constant"
        }
        Parameter::AlphaLocal | Parameter::BetaLocal if coverage.one_node.is_none() => {
            "several GPUs of one node were not observed, exchange is taken to be free"
        }
        Parameter::BetaLocal if no_more_than_two(coverage.one_node) => {
            "more than 2 GPUs of one node were not observed, each is taken to add nothing"
        }
        Parameter::AlphaNode | Parameter::BetaNode if coverage.distributed.is_none() => {
            "several nodes were not observed, exchange is taken to be little dearer than within one"
        }
        Parameter::BetaNode if no_more_than_two(coverage.distributed) => {
            "more than 2 GPUs on several nodes were not observed, each is taken to add nothing"
        }
        Parameter::Gamma if coverage.one_node.is_none() && coverage.distributed.is_none() => {
            "no exchange was observed that compute could overlap with"
        }
        Parameter::OptimizerStep if !coverage.alone => "one GPU alone was not observed",
        Parameter::DeltaGrad => "too few micro-batch sizes near the bend were observed",
        _ => "what was observed depends on it too little to tell",
    }
}

fn covered(coverage: &Coverage) -> String {
    let gpus = |seen: Option<(u32, u32)>| seen.map_or("no".to_owned(), |seen| text::range(seen) + " GPUs");
    format!(
        "Observed (what lies beyond is extrapolated):\n  \
         micro-batch    {} samples\n  \
         1 GPU alone    {}\n  \
         one node       {}\n  \
         several nodes  {}\n",
        text::range(coverage.micro_batch),
        if coverage.alone { "yes" } else { "no" },
        gpus(coverage.one_node),
        gpus(coverage.distributed),
    )
}

fn tested(beyond: &Beyond) -> String {
    if beyond.n_outside == 0 {
        return "All test observations lie within that.\n".to_owned();
    }
    let mut text = format!("Outside of that lie {}:\n", beyond.share("test observation"));
    for reason in beyond.reasons() {
        let _ = writeln!(text, "  {reason}");
    }
    text
}
