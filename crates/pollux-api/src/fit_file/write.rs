//! From models to JSON.

use std::collections::BTreeMap;

use pollux_model::fit::Parameter;
use pollux_model::{Compute, GpuType, PerfParams};
use serde::Serialize;

use super::{FittedModel, VERSION};

#[derive(Serialize)]
struct File<'a> {
    version: u64,
    #[serde(flatten)]
    body: Body<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Body<'a> {
    One {
        #[serde(skip_serializing_if = "Option::is_none")]
        gpu_type: Option<&'a str>,
        #[serde(flatten)]
        model: Box<Model<'a>>,
    },
    Several {
        gpu_types: BTreeMap<&'a str, Model<'a>>,
    },
}

#[derive(Serialize)]
struct Model<'a> {
    form: &'static str,
    params: Params<'a>,
    undetermined: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fit: Option<Fit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<Coverage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<Test>,
}

/// The parameters of a step-time model, as every format writes them.
#[derive(Serialize)]
pub(crate) struct Params<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<&'a [(u32, f64)]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alpha_grad: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    beta_grad: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta_grad: Option<f64>,
    alpha_local: f64,
    beta_local: f64,
    alpha_node: f64,
    beta_node: f64,
    gamma: f64,
    optimizer_step: f64,
}

#[derive(Serialize)]
struct Fit {
    observations: u64,
    mean_relative_error: f64,
    worst_relative_error: f64,
    objective: f64,
}

#[derive(Serialize)]
struct Coverage {
    micro_batch: (u32, u32),
    alone: bool,
    one_node: Option<(u32, u32)>,
    distributed: Option<(u32, u32)>,
}

#[derive(Serialize)]
struct Test {
    observations: u64,
    mean_relative_error: f64,
    worst_relative_error: f64,
    extrapolated: u64,
}

pub(super) fn to_json(models: &BTreeMap<GpuType, FittedModel>) -> String {
    let body = match (models.first_key_value(), models.len()) {
        (Some((gpu_type, model)), 1) => Body::One {
            gpu_type: (*gpu_type != GpuType::default()).then(|| gpu_type.name()),
            model: Box::new(model.into()),
        },
        _ => Body::Several {
            gpu_types: models.iter().map(|(gpu_type, model)| (gpu_type.name(), model.into())).collect(),
        },
    };
    crate::json::pretty(&File { version: VERSION, body })
}

impl<'a> From<&'a FittedModel> for Model<'a> {
    fn from(model: &'a FittedModel) -> Self {
        Self {
            form: model.params.grad.form(),
            params: (&model.params).into(),
            undetermined: model.undetermined.iter().copied().map(Parameter::name).collect(),
            fit: model.fit.map(|fit| Fit {
                observations: fit.n_observations,
                mean_relative_error: fit.error.mean,
                worst_relative_error: fit.error.worst,
                objective: fit.objective,
            }),
            coverage: model.coverage.map(|coverage| Coverage {
                micro_batch: coverage.micro_batch,
                alone: coverage.alone,
                one_node: coverage.one_node,
                distributed: coverage.distributed,
            }),
            test: model.test.map(|test| Test {
                observations: test.n_observations,
                mean_relative_error: test.error.mean,
                worst_relative_error: test.error.worst,
                extrapolated: test.n_extrapolated,
            }),
        }
    }
}

impl<'a> From<&'a PerfParams> for Params<'a> {
    fn from(params: &'a PerfParams) -> Self {
        let (alpha_grad, beta_grad, delta_grad, table) = match &params.grad {
            Compute::Linear { alpha, beta } => (Some(*alpha), Some(*beta), None, None),
            Compute::Roofline { alpha, beta, delta } => (Some(*alpha), Some(*beta), Some(*delta), None),
            Compute::Table(table) => (None, None, None, Some(table.points())),
        };
        Self {
            table,
            alpha_grad,
            beta_grad,
            delta_grad,
            alpha_local: params.sync_local.alpha,
            beta_local: params.sync_local.beta,
            alpha_node: params.sync_node.alpha,
            beta_node: params.sync_node.beta,
            gamma: params.gamma,
            optimizer_step: params.optimizer_step,
        }
    }
}
