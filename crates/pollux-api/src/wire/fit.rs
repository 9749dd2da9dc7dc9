//! Fitted step times, with the names of the fit file's keys.

use pollux_model::fit::{self as model, Parameter, RelativeError};
use pollux_model::{Affine, Compute, PerfParams, StepTable};
use serde::{Deserialize, Serialize};

use super::numbers::or_infinite;
use super::{AtLeastOne, NotNegative, Positive, Problem, Read, Unknown, nothing_unknown, within};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fit {
    pub(crate) form: Form,
    pub(crate) params: Params,
    pub(crate) undetermined: Vec<String>,
    #[serde(with = "or_infinite")]
    pub(crate) objective: f64,
    #[serde(with = "or_infinite")]
    pub(crate) mean_relative_error: f64,
    #[serde(with = "or_infinite")]
    pub(crate) worst_relative_error: f64,
    pub(crate) coverage: Coverage,
    /// What the profile was like when the fit was made; where nobody asks for it, it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revision: Option<Revision>,
    #[serde(flatten, skip_serializing)]
    pub(crate) unknown: Unknown,
}

/// Nothing if nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Revision(pub(crate) Option<u64>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Form {
    Linear,
    Roofline,
    Table,
}

/// Which of the first four are there depends on the form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Params {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) table: Option<Vec<(AtLeastOne, Positive)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) alpha_grad: Option<NotNegative>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) beta_grad: Option<NotNegative>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delta_grad: Option<f64>,
    pub(crate) alpha_local: NotNegative,
    pub(crate) beta_local: NotNegative,
    pub(crate) alpha_node: NotNegative,
    pub(crate) beta_node: NotNegative,
    pub(crate) gamma: f64,
    pub(crate) optimizer_step: NotNegative,
    #[serde(flatten, skip_serializing)]
    pub(crate) unknown: Unknown,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Coverage {
    pub(crate) micro_batch: (AtLeastOne, AtLeastOne),
    pub(crate) alone: bool,
    pub(crate) one_node: Option<(AtLeastOne, AtLeastOne)>,
    pub(crate) distributed: Option<(AtLeastOne, AtLeastOne)>,
    #[serde(flatten, skip_serializing)]
    pub(crate) unknown: Unknown,
}

impl Fit {
    /// Refuses what a later version may have added.
    pub(crate) fn check_known(&self) -> Read<()> {
        nothing_unknown(&self.unknown)?;
        within("params", self.params.check_known())?;
        within("coverage", nothing_unknown(&self.coverage.unknown))
    }

    pub(crate) fn read(self) -> Read<model::Fit> {
        Ok(model::Fit {
            params: within("params", self.params.read(&self.form))?,
            undetermined: within("undetermined", undetermined(self.undetermined))?,
            objective: self.objective,
            error: RelativeError {
                mean: within("mean_relative_error", not_negative(self.mean_relative_error))?,
                worst: within("worst_relative_error", not_negative(self.worst_relative_error))?,
            },
            coverage: within("coverage", self.coverage.read())?,
        })
    }
}

fn not_negative(number: f64) -> Result<f64, Problem> {
    if number < 0.0 { Err(Problem::Negative(number)) } else { Ok(number) }
}

pub(crate) fn undetermined(names: Vec<String>) -> Read<Vec<Parameter>> {
    let parameter = |(index, name)| {
        let found = Parameter::ALL.into_iter().find(|parameter| parameter.name() == name);
        within(&format!("[{index}]"), found.ok_or(Problem::Parameter(name)))
    };
    names.into_iter().enumerate().map(parameter).collect()
}

impl Params {
    pub(crate) fn check_known(&self) -> Read<()> {
        nothing_unknown(&self.unknown)
    }

    pub(crate) fn read(self, form: &Form) -> Read<PerfParams> {
        let grad = match form {
            Form::Linear => {
                absent("table", self.table.as_ref())?;
                absent("delta_grad", self.delta_grad)?;
                let alpha = present("alpha_grad", self.alpha_grad)?.0;
                Compute::Linear { alpha, beta: present("beta_grad", self.beta_grad)?.0 }
            }
            Form::Roofline => {
                absent("table", self.table.as_ref())?;
                let alpha = present("alpha_grad", self.alpha_grad)?.0;
                let beta = present("beta_grad", self.beta_grad)?.0;
                Compute::Roofline { alpha, beta, delta: present("delta_grad", self.delta_grad)? }
            }
            Form::Table => {
                absent("alpha_grad", self.alpha_grad)?;
                absent("beta_grad", self.beta_grad)?;
                absent("delta_grad", self.delta_grad)?;
                let points = present("table", self.table)?.into_iter();
                let table = StepTable::new(points.map(|(micro_batch, secs)| (micro_batch.0, secs.0)));
                Compute::Table(within("table", table.map_err(Problem::Table))?)
            }
        };
        let params = PerfParams {
            grad,
            sync_local: Affine { alpha: self.alpha_local.0, beta: self.beta_local.0 },
            sync_node: Affine { alpha: self.alpha_node.0, beta: self.beta_node.0 },
            gamma: self.gamma,
            optimizer_step: self.optimizer_step.0,
        };
        params.validate().map_err(Problem::Params)?;
        Ok(params)
    }
}

fn present<T>(key: &str, parameter: Option<T>) -> Read<T> {
    within(key, parameter.ok_or(Problem::Missing))
}

fn absent<T>(key: &str, parameter: Option<T>) -> Read<()> {
    within(key, parameter.map_or(Ok(()), |_| Err(Problem::Unknown)))
}

impl Coverage {
    fn read(self) -> Read<model::Coverage> {
        Ok(model::Coverage {
            micro_batch: within("micro_batch", range(self.micro_batch))?,
            alone: self.alone,
            one_node: within("one_node", self.one_node.map(range).transpose())?,
            distributed: within("distributed", self.distributed.map(range).transpose())?,
        })
    }
}

fn range((AtLeastOne(low), AtLeastOne(high)): (AtLeastOne, AtLeastOne)) -> Result<(u32, u32), Problem> {
    if low <= high { Ok((low, high)) } else { Err(Problem::EmptyRange { low, high }) }
}
impl From<&model::Fit> for Fit {
    fn from(fit: &model::Fit) -> Self {
        let model::Fit { params, undetermined, objective, error, coverage } = fit;
        let RelativeError { mean, worst } = *error;
        Self {
            form: Form::of(&params.grad),
            params: params.into(),
            undetermined: names(undetermined),
            objective: *objective,
            mean_relative_error: mean,
            worst_relative_error: worst,
            coverage: coverage.into(),
            revision: None,
            unknown: Unknown::default(),
        }
    }
}

impl Form {
    pub(crate) fn of(compute: &Compute) -> Self {
        match compute {
            Compute::Linear { .. } => Self::Linear,
            Compute::Roofline { .. } => Self::Roofline,
            Compute::Table(_) => Self::Table,
        }
    }
}

/// Parameters by their names in files.
pub(crate) fn names(undetermined: &[Parameter]) -> Vec<String> {
    undetermined.iter().copied().map(Parameter::name).map(str::to_owned).collect()
}

impl From<&PerfParams> for Params {
    fn from(params: &PerfParams) -> Self {
        let PerfParams { grad, sync_local, sync_node, gamma, optimizer_step } = params;
        let Affine { alpha: alpha_local, beta: beta_local } = *sync_local;
        let Affine { alpha: alpha_node, beta: beta_node } = *sync_node;
        let points = |table: &StepTable| {
            table.points().iter().map(|&(micro, secs)| (AtLeastOne(micro), Positive(secs))).collect()
        };
        let (table, alpha_grad, beta_grad, delta_grad) = match grad {
            &Compute::Linear { alpha, beta } => (None, Some(alpha), Some(beta), None),
            &Compute::Roofline { alpha, beta, delta } => (None, Some(alpha), Some(beta), Some(delta)),
            Compute::Table(table) => (Some(points(table)), None, None, None),
        };
        Self {
            table,
            alpha_grad: alpha_grad.map(NotNegative),
            beta_grad: beta_grad.map(NotNegative),
            delta_grad,
            alpha_local: NotNegative(alpha_local),
            beta_local: NotNegative(beta_local),
            alpha_node: NotNegative(alpha_node),
            beta_node: NotNegative(beta_node),
            gamma: *gamma,
            optimizer_step: NotNegative(*optimizer_step),
            unknown: Unknown::default(),
        }
    }
}

impl From<&model::Coverage> for Coverage {
    fn from(coverage: &model::Coverage) -> Self {
        let &model::Coverage { micro_batch, alone, one_node, distributed } = coverage;
        let ends = |(low, high)| (AtLeastOne(low), AtLeastOne(high));
        Self {
            micro_batch: ends(micro_batch),
            alone,
            one_node: one_node.map(ends),
            distributed: distributed.map(ends),
            unknown: Unknown::default(),
        }
    }
}
