//! What a job's agent tells the scheduler, as JSON: part of messages, and of the journal.
//!
//! A report that was written and read back is the same, bit for bit. Agents may be older or newer than who reads
//! them: fields that are not known are passed over, and all but `limits` and `progress` may be left out. What no agent
//! could mean is refused, with the field.
//!
//! A number that is infinite is a word (`"inf"`), but for those of a fit and the noise scale, which are `null` as in an
//! agent's state.

use std::collections::BTreeMap;

use pollux_model::{AgentReport, GpuType, GradientMoments, NoiseReport, NoiseScale};
use serde::{Deserialize, Serialize};

use crate::wire::{
    AtLeastOne, Count, Estimator, FieldError, Fit, Float, Limits, NotNegative, Plan, Positive, Problem, Read,
    message, one_line, or_infinite, place, within,
};

/// A report as it stands in a message.
///
/// ```
/// use pollux_api::agent_report::AgentReportBody;
/// use pollux_model::AgentReport;
///
/// let limits = r#"{"initial": 128, "max": 1024, "micro_min": 32, "micro_max": 256}"#;
/// let text = format!(r#"{{"limits": {limits}, "progress": 12.5, "of a later version": true}}"#);
/// let body: AgentReportBody = serde_json::from_str(&text)?;
/// let report = AgentReport::try_from(body)?;
/// assert_eq!((report.progress, report.limits.max_replicas()), (12.5, 32));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentReportBody {
    limits: Limits,
    progress: NotNegative,
    #[serde(default)]
    samples: u64,
    #[serde(default)]
    most_replicas: u32,
    #[serde(default = "one")]
    learning_rate_factor: Positive,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<Plan>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model_error: Option<Float>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    micro_max: BTreeMap<String, AtLeastOne>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    noise: Option<Noise>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    fits: BTreeMap<String, Fit>,
}

fn one() -> Positive {
    Positive(1.0)
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Noise {
    #[serde(with = "or_infinite")]
    acted: f64,
    sqr: Float,
    var: Float,
    #[serde(with = "Estimator")]
    estimator: pollux_model::Estimator,
    #[serde(default)]
    n_measured: Count,
    #[serde(default)]
    n_implausible: Count,
    #[serde(default)]
    suspicious: bool,
}

/// A report that cannot be read: the field, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("agent report: {}{problem}", place(path))]
pub struct AgentReportError {
    /// The path to the field: `noise.acted`, `fits.t4.params.gamma`; empty or `.` for the whole.
    pub path: String,
    /// What is wrong.
    pub problem: Problem,
}

impl From<FieldError> for AgentReportError {
    fn from(FieldError { path, problem }: FieldError) -> Self {
        Self { path: one_line(&path), problem }
    }
}

/// The report as JSON, on one line.
pub fn to_json(report: &AgentReport) -> String {
    // Structs of numbers and names: there is nothing in them that JSON cannot hold.
    serde_json::to_string(&AgentReportBody::from(report)).unwrap_or_default()
}

/// Reads a report. Errors name the field, as those of a plain deserializer do not.
///
/// ```
/// use pollux_api::agent_report;
///
/// let text = r#"{"progress": -1, "limits": {"initial": 8, "max": 8, "micro_min": 1, "micro_max": 8}}"#;
/// let error = agent_report::from_json(text).unwrap_err();
/// assert_eq!(error.to_string(), "agent report: `progress`: `-1.0` is not a number, zero or more");
/// ```
pub fn from_json(json: &str) -> Result<AgentReport, AgentReportError> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let body: AgentReportBody = serde_path_to_error::deserialize(&mut reader).map_err(FieldError::from)?;
    let format = |error: &serde_json::Error| FieldError::from(Problem::Format(message(error)));
    reader.end().map_err(|error| format(&error))?;
    body.try_into()
}

impl From<&AgentReport> for AgentReportBody {
    fn from(report: &AgentReport) -> Self {
        let AgentReport {
            fits,
            noise,
            limits,
            micro_max,
            plan,
            learning_rate_factor,
            progress,
            samples,
            most_replicas,
            model_error,
        } = report;
        let name = GpuType::name;
        Self {
            limits: limits.into(),
            progress: NotNegative(*progress),
            samples: *samples,
            most_replicas: *most_replicas,
            learning_rate_factor: Positive(*learning_rate_factor),
            plan: plan.map(Into::into),
            model_error: model_error.map(Float),
            micro_max: micro_max.iter().map(|(on, most)| (name(on).to_owned(), AtLeastOne(*most))).collect(),
            noise: noise.as_ref().map(Into::into),
            fits: fits.iter().map(|(on, fit)| (name(on).to_owned(), fit.into())).collect(),
        }
    }
}

impl From<&NoiseReport> for Noise {
    fn from(noise: &NoiseReport) -> Self {
        let &NoiseReport { acted, moments, estimator, n_measured, n_implausible, suspicious } = noise;
        let GradientMoments { sqr, var } = moments;
        Self {
            acted: acted.samples(),
            sqr: Float(sqr),
            var: Float(var),
            estimator,
            n_measured: Count(n_measured),
            n_implausible: Count(n_implausible),
            suspicious,
        }
    }
}

impl TryFrom<AgentReportBody> for AgentReport {
    type Error = AgentReportError;

    fn try_from(body: AgentReportBody) -> Result<Self, AgentReportError> {
        Ok(body.read()?)
    }
}

impl AgentReportBody {
    pub(crate) fn read(self) -> Read<AgentReport> {
        let mut fits = BTreeMap::new();
        for (name, fit) in self.fits {
            fits.insert(GpuType::new(&name), within("fits", within(&name, fit.read()))?);
        }
        // A prediction is a time: at worst all of the measured one is missing.
        let model_error = self.model_error.map(|Float(error)| {
            let expected = "a relative error, -1 or more";
            if error >= -1.0 { Ok(error) } else { Err(Problem::OutOfRange { found: error, expected }) }
        });
        Ok(AgentReport {
            fits,
            noise: within("noise", self.noise.map(Noise::read).transpose())?,
            limits: within("limits", self.limits.read())?,
            micro_max: self.micro_max.iter().map(|(name, most)| (GpuType::new(name), most.0)).collect(),
            plan: within("plan", self.plan.map(Plan::read).transpose())?,
            learning_rate_factor: self.learning_rate_factor.0,
            progress: self.progress.0,
            samples: self.samples,
            most_replicas: self.most_replicas,
            model_error: within("model_error", model_error.transpose())?,
        })
    }
}

impl Noise {
    fn read(self) -> Read<NoiseReport> {
        let acted = NoiseScale::from_samples(self.acted).ok_or(Problem::Negative(self.acted));
        Ok(NoiseReport {
            acted: within("acted", acted)?,
            moments: GradientMoments {
                sqr: within("sqr", number(self.sqr))?,
                var: within("var", number(self.var))?,
            },
            estimator: self.estimator,
            n_measured: self.n_measured.0,
            n_implausible: self.n_implausible.0,
            suspicious: self.suspicious,
        })
    }
}

fn number(Float(number): Float) -> Result<f64, Problem> {
    let problem = Problem::OutOfRange { found: number, expected: "a number" };
    if number.is_nan() { Err(problem) } else { Ok(number) }
}
