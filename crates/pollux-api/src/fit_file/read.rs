//! From JSON to models.

use std::collections::BTreeMap;

use pollux_model::fit::{Coverage, Parameter, RelativeError};
use pollux_model::{Affine, Compute, GpuType, PerfParams, StepTable};
use serde_json::Value;

use super::error::Problem;
use super::node::Node;
use super::{FitQuality, FittedModel, TestQuality, VERSION};
use crate::near::nearest;

const SECONDS: &str = "a number of seconds, zero or more";
const EXPONENT: &str = "a number from 1 to 10";
const POINT: &str = "a pair of micro-batch and seconds";
const RANGE: &str = "a pair of smallest and largest";
const ERROR: &str = "a relative error, zero or more";

/// Parameters that every form has. The optimizer's step may be left out.
const COMMON: [&str; 6] = ["alpha_local", "beta_local", "alpha_node", "beta_node", "gamma", "optimizer_step"];

/// The forms, and the parameters that only they have.
const FORMS: [(&str, &[&str]); 3] = [
    ("linear", &["alpha_grad", "beta_grad"]),
    ("roofline", &["alpha_grad", "beta_grad", "delta_grad"]),
    ("table", &["table"]),
];

pub(super) fn parse(bytes: &[u8]) -> Result<BTreeMap<GpuType, FittedModel>, Problem> {
    let value: Value = serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
        .map_err(|error| syntax(&error))?;
    if !value.is_object() {
        return Err(Problem::NotAnObject);
    }
    let file = Node::whole(&value);
    if let Some(version) = file.get("version")
        && version.value.as_u64() != Some(VERSION)
    {
        return Err(Problem::Version { found: version.value.to_string() });
    }
    let Some(gpu_types) = file.get("gpu_types") else {
        return Ok(BTreeMap::from([(gpu_type(&file)?, model(&file)?)]));
    };
    let mut models = BTreeMap::new();
    for name in gpu_types.object()?.keys() {
        models.insert(named(&gpu_types, name)?, model(&gpu_types.require(name)?)?);
    }
    if models.is_empty() { Err(Problem::NoModels) } else { Ok(models) }
}

/// What the parser says, and where.
pub(crate) fn syntax(error: &serde_json::Error) -> Problem {
    let message = error.to_string();
    // The place has fields of its own.
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
    Problem::Syntax { line: error.line().max(1), column: error.column().max(1), message: message.to_owned() }
}

fn gpu_type(file: &Node<'_>) -> Result<GpuType, Problem> {
    match file.get("gpu_type") {
        Some(node) => named(&node, node.text("a name")?),
        None => Ok(GpuType::default()),
    }
}

/// A name as the observations' format allows it, so that it can be shown.
fn named(node: &Node<'_>, name: &str) -> Result<GpuType, Problem> {
    let name = name.trim();
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(Problem::Value { key: node.path.clone(), found: name.to_owned(), expected: "a name" });
    }
    Ok(GpuType::new(name))
}

fn model(node: &Node<'_>) -> Result<FittedModel, Problem> {
    Ok(FittedModel {
        params: params(node)?,
        undetermined: match node.get("undetermined") {
            Some(names) => {
                names.items("a list of parameters")?.map(|name| parameter(&name)).collect::<Result<_, _>>()?
            }
            None => Vec::new(),
        },
        fit: node.get("fit").map(|fit| fit_quality(&fit)).transpose()?,
        coverage: node.get("coverage").map(|coverage| self::coverage(&coverage)).transpose()?,
        test: node.get("test").map(|test| test_quality(&test)).transpose()?,
    })
}

/// The step times under `form` and `params`.
pub(crate) fn params(node: &Node<'_>) -> Result<PerfParams, Problem> {
    let form = node.require("form")?;
    let name = form.text("a form")?;
    let Some((form, own)) = FORMS.into_iter().find(|(known, _)| *known == name) else {
        return Err(form.problem("`linear`, `roofline` or `table`"));
    };
    let params = node.require("params")?;
    let known = || own.iter().copied().chain(COMMON);
    if let Some(key) = params.object()?.keys().find(|key| !known().any(|known| known == key.as_str())) {
        return Err(Problem::UnknownParameter {
            key: params.path_of(key),
            form,
            near: nearest(key, known()),
        });
    }
    let secs = |key: &str| params.require(key)?.not_negative(SECONDS);
    let grad = match form {
        "table" => Compute::Table(table(&params.require("table")?)?),
        "linear" => Compute::Linear { alpha: secs("alpha_grad")?, beta: secs("beta_grad")? },
        _ => Compute::Roofline {
            alpha: secs("alpha_grad")?,
            beta: secs("beta_grad")?,
            delta: params.require("delta_grad")?.number()?,
        },
    };
    let model = PerfParams {
        grad,
        sync_local: Affine { alpha: secs("alpha_local")?, beta: secs("beta_local")? },
        sync_node: Affine { alpha: secs("alpha_node")?, beta: secs("beta_node")? },
        gamma: params.require("gamma")?.number()?,
        optimizer_step: params.get("optimizer_step").map_or(Ok(0.0), |step| step.not_negative(SECONDS))?,
    };
    check(&params, &model)?;
    Ok(model)
}

/// The model's own checks, with the key that fails them where it is one alone.
fn check(params: &Node<'_>, model: &PerfParams) -> Result<(), Problem> {
    let Err(cause) = model.validate() else { return Ok(()) };
    let exponent = match (cause.part, &model.grad) {
        ("gamma", _) => Some("gamma"),
        ("grad", Compute::Roofline { alpha, beta, .. }) => {
            let linear = Compute::Linear { alpha: *alpha, beta: *beta };
            linear.is_valid().then_some("delta_grad")
        }
        _ => None,
    };
    let key = params.path.clone();
    Err(match (exponent.and_then(|key| params.get(key)), &model.grad) {
        (Some(node), _) => node.problem(EXPONENT),
        (None, Compute::Linear { alpha, beta } | Compute::Roofline { alpha, beta, .. })
            if alpha + beta <= 0.0 =>
        {
            Problem::NoCompute { key }
        }
        _ => Problem::Params { key, cause },
    })
}

fn table(node: &Node<'_>) -> Result<StepTable, Problem> {
    let mut points = Vec::new();
    for point in node.items("a list of points")? {
        let (micro_batch, secs) = point.pair(POINT)?;
        points.push((micro_batch.positive_count()?, secs.number()?));
    }
    StepTable::new(points).map_err(|cause| Problem::Table { key: node.path.clone(), cause })
}

fn parameter(node: &Node<'_>) -> Result<Parameter, Problem> {
    let name = node.text("a parameter")?;
    let found = Parameter::ALL.into_iter().find(|parameter| parameter.name() == name);
    found.ok_or_else(|| node.problem("a parameter"))
}

fn fit_quality(node: &Node<'_>) -> Result<FitQuality, Problem> {
    let objective = node.get("objective").map_or(Ok(f64::INFINITY), |objective| objective.number())?;
    Ok(FitQuality { n_observations: node.require("observations")?.count()?, error: error(node)?, objective })
}

fn test_quality(node: &Node<'_>) -> Result<TestQuality, Problem> {
    Ok(TestQuality {
        n_observations: node.require("observations")?.count()?,
        error: error(node)?,
        n_extrapolated: node.require("extrapolated")?.count()?,
    })
}

/// JSON has no infinity: an error too large for a number is null.
fn error(node: &Node<'_>) -> Result<RelativeError, Problem> {
    let read = |key: &str| node.get(key).map_or(Ok(f64::INFINITY), |error| error.not_negative(ERROR));
    Ok(RelativeError { mean: read("mean_relative_error")?, worst: read("worst_relative_error")? })
}

fn coverage(node: &Node<'_>) -> Result<Coverage, Problem> {
    let range = |range: Node<'_>| {
        let (low, high) = range.pair(RANGE)?;
        let ends = (low.positive_count()?, high.positive_count()?);
        if ends.0 <= ends.1 { Ok(ends) } else { Err(range.problem(RANGE)) }
    };
    Ok(Coverage {
        micro_batch: range(node.require("micro_batch")?)?,
        alone: node.require("alone")?.flag()?,
        one_node: node.get("one_node").map(range).transpose()?,
        distributed: node.get("distributed").map(range).transpose()?,
    })
}
