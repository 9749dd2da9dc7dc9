//! Fitted step-time models as JSON, version 1.
//!
//! A file holds the model of one GPU type, or of several under `gpu_types`. A person may write one by hand:
//! `form` and `params` are enough.

mod error;
pub(crate) mod node;
pub(crate) mod read;
#[cfg(test)]
mod tests;
pub(crate) mod write;

use std::collections::BTreeMap;

use pollux_model::fit::{Coverage, Fit, Parameter, RelativeError};
use pollux_model::{GpuType, PerfParams};

pub use error::{FitFileError, Problem};

/// The version this crate writes, and the only one it reads.
pub const VERSION: u64 = 1;

/// Models by GPU type: at least one.
///
/// ```
/// use pollux_api::fit_file::FitFile;
/// use pollux_model::GpuType;
///
/// let json = r#"{"form": "linear", "params": {
///     "alpha_grad": 0.02, "beta_grad": 0.0004, "alpha_local": 0.01, "beta_local": 0.001,
///     "alpha_node": 0.03, "beta_node": 0.002, "gamma": 1.5, "optimizer_step": 0}}"#;
/// let file = FitFile::read("fit.json", json.as_bytes())?;
/// assert_eq!(file.models()[&GpuType::default()].params.gamma, 1.5);
/// assert_eq!(FitFile::read("again", file.to_json().as_bytes())?, file);
/// # Ok::<(), pollux_api::fit_file::FitFileError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FitFile(BTreeMap<GpuType, FittedModel>);

/// The step-time model of one GPU type, and what is known of how good it is.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedModel {
    /// The parameters.
    pub params: PerfParams,
    /// Parameters the data did not determine.
    pub undetermined: Vec<Parameter>,
    /// How well it fits what it was fitted to.
    pub fit: Option<FitQuality>,
    /// What it was fitted to.
    pub coverage: Option<Coverage>,
    /// How well it predicts observations kept out of the fit.
    pub test: Option<TestQuality>,
}

/// How well a model fits what it was fitted to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitQuality {
    /// Observations fitted.
    pub n_observations: u64,
    /// The error on them.
    pub error: RelativeError,
    /// The value that was minimised.
    pub objective: f64,
}

/// How well a model predicts observations kept out of the fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TestQuality {
    /// Observations kept out.
    pub n_observations: u64,
    /// The error on them.
    pub error: RelativeError,
    /// How many of them lie outside of what the fit covered.
    pub n_extrapolated: u64,
}

impl FitFile {
    /// A file of these models; nothing without any.
    pub fn new(models: BTreeMap<GpuType, FittedModel>) -> Option<Self> {
        (!models.is_empty()).then_some(Self(models))
    }

    /// Reads a file. `file` is the name that errors give it.
    ///
    /// # Errors
    ///
    /// What is not JSON, not of this version, or describes no step time; the error names the key.
    pub fn read(file: &str, bytes: &[u8]) -> Result<Self, FitFileError> {
        read::parse(bytes).map(Self).map_err(|problem| FitFileError { file: file.to_owned(), problem })
    }

    /// The file's text, with a newline at its end.
    ///
    /// A lone model of [`GpuType::default`] is written without its type.
    pub fn to_json(&self) -> String {
        write::to_json(&self.0)
    }

    /// The models; one without a type is under [`GpuType::default`].
    pub fn models(&self) -> &BTreeMap<GpuType, FittedModel> {
        &self.0
    }
}

impl FittedModel {
    /// Parameters alone, as written by hand.
    pub fn of_params(params: PerfParams) -> Self {
        Self { params, undetermined: Vec::new(), fit: None, coverage: None, test: None }
    }

    /// The outcome of a fit to that many observations.
    pub fn of_fit(fit: Fit, n_observations: u64) -> Self {
        Self {
            params: fit.params,
            undetermined: fit.undetermined,
            fit: Some(FitQuality { n_observations, error: fit.error, objective: fit.objective }),
            coverage: Some(fit.coverage),
            test: None,
        }
    }
}
