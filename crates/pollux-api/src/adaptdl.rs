//! What AdaptDL's client says of a job: its *hints* (version 0.2.11, `PUT /hints/NAMESPACE/NAME`).
//!
//! `perfParams` are a linear model of step times, `gradParams` squared norm and variance of the gradient at the initial batch.

use std::collections::BTreeMap;

use pollux_model::fit::{Coverage, Fit, RelativeError};
use pollux_model::{
    Affine, AgentReport, BatchLimits, Compute, Estimator, GpuType, GradientMoments, NoiseReport, PerfParams,
};
use serde::Deserialize;

/// Hints, as they are sent. Unknown keys are passed over, as AdaptDL's own supervisor does.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hints {
    init_batch_size: Option<u64>,
    local_bsz_bounds: Option<(u32, u32)>,
    max_batch_size: Option<u64>,
    max_profiled_replicas: Option<u32>,
    #[serde(default)]
    gradient_accumulation: Option<bool>,
    grad_params: Option<Grad>,
    perf_params: Option<Perf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct Grad {
    norm: f64,
    var: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct Perf {
    alpha_c: f64,
    beta_c: f64,
    alpha_n: f64,
    beta_n: f64,
    alpha_r: f64,
    beta_r: f64,
    gamma: f64,
}

/// Hints that make no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("hints: {0}")]
pub struct HintsError(String);

impl Hints {
    /// Reads a body.
    pub fn from_json(body: &serde_json::Value) -> Result<Self, HintsError> {
        serde_path_to_error::deserialize(body).map_err(|error| HintsError(error.to_string()))
    }

    /// The same as our own agents would report it; none while there is nothing to learn from, or what is said makes no sense.
    /// How far the job has come AdaptDL does not say.
    pub fn to_report(&self, gpu_type: &GpuType) -> Option<AgentReport> {
        let initial = self.init_batch_size.filter(|initial| *initial > 0)?;
        let whole = u32::try_from(initial).unwrap_or(u32::MAX);
        let max = self.max_batch_size.unwrap_or(initial).max(initial);
        let (least, most) = self.local_bsz_bounds.unwrap_or((1, whole));
        let limits = BatchLimits::new(initial, max, least.max(1), most.max(least.max(1))).ok()?;
        let accumulates = self.gradient_accumulation.unwrap_or(false);
        let limits = if accumulates { limits } else { limits.with_max_accum_steps(0) };
        let replicas = self.max_profiled_replicas.unwrap_or(1).max(1);
        let fit =
            self.perf_params.and_then(|perf| perf.fit(replicas, (least.max(1), most.max(least.max(1)))));
        let noise = self.grad_params.and_then(|grad| {
            let moments = GradientMoments { sqr: grad.norm.max(0.0), var: grad.var.max(0.0) };
            let acted = moments.noise_scale(limits.initial())?;
            let estimator = if replicas > 1 { Estimator::Pairs } else { Estimator::Differences };
            Some(NoiseReport {
                acted,
                moments,
                estimator,
                n_measured: 1,
                n_implausible: 0,
                suspicious: false,
            })
        });
        Some(AgentReport {
            fits: fit.map(|fit| (gpu_type.clone(), fit)).into_iter().collect(),
            noise,
            limits,
            micro_max: BTreeMap::new(),
            plan: None,
            learning_rate_factor: 1.0,
            progress: 0.0,
            samples: 0,
            most_replicas: replicas,
            model_error: None,
        })
    }
}

impl Perf {
    fn fit(self, replicas: u32, micro_batch: (u32, u32)) -> Option<Fit> {
        let params = PerfParams {
            grad: Compute::Linear { alpha: self.alpha_c, beta: self.beta_c },
            sync_local: Affine { alpha: self.alpha_r, beta: self.beta_r },
            sync_node: Affine { alpha: self.alpha_n, beta: self.beta_n },
            gamma: self.gamma,
            optimizer_step: 0.0,
        };
        params.validate().ok()?;
        let one_node = (replicas > 1).then_some((2, replicas));
        Some(Fit {
            params,
            undetermined: Vec::new(),
            objective: 0.0,
            error: RelativeError { mean: 0.0, worst: 0.0 },
            coverage: Coverage { micro_batch, alone: true, one_node, distributed: None },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(hints: &serde_json::Value) -> Option<AgentReport> {
        Hints::from_json(hints).unwrap().to_report(&GpuType::new("t4"))
    }

    #[test] // Noise scale: 128 samples times 0.034 / 0.0012.
    fn hints_are_read_as_a_report() {
        let report = report(&json!({
            "initBatchSize": 128, "localBszBounds": [32, 256], "globalBatchSize": null, "maxBatchSize": 1280,
            "maxProfiledReplicas": 4, "gradientAccumulation": false, "gradParams": {"norm": 0.0012, "var": 0.034},
            "perfParams": {"alpha_c": 0.1, "beta_c": 0.01, "alpha_n": 0.2, "beta_n": 0.0, "alpha_r": 0.1, "beta_r": 0.0, "gamma": 1.5}
        }));
        let report = report.unwrap();
        assert_eq!((report.limits.initial().0, report.limits.max().0, report.most_replicas), (128, 1_280, 4));
        assert_eq!(
            (report.limits.micro_min(), report.limits.micro_max(), report.limits.max_accum_steps()),
            (32, 256, 0)
        );
        let noise = report.noise.unwrap().acted.samples();
        assert!((noise - 128.0 * 0.034 / 0.0012).abs() < 1e-6, "{noise}");
        assert!(report.fits.contains_key(&GpuType::new("t4")));
    }

    #[test]
    fn what_is_not_known_yet_is_left_out() {
        assert_eq!(report(&json!({})), None);
        let bare = report(
            &json!({"initBatchSize": 64, "localBszBounds": null, "gradParams": null, "perfParams": null}),
        );
        assert_eq!(bare.map(|report| (report.fits.len(), report.noise.is_none())), Some((0, true)));
        let absurd = json!({"initBatchSize": 64, "perfParams": {"alpha_c": -1.0, "beta_c": 0.0, "alpha_n": 0.0,
            "beta_n": 0.0, "alpha_r": 0.0, "beta_r": 0.0, "gamma": 0.0}});
        assert_eq!(report(&absurd).map(|report| report.fits.len()), Some(0));
    }

    #[test]
    fn wrong_words_name_their_place() {
        let error = Hints::from_json(&json!({"perfParams": {"alpha_c": "much"}})).unwrap_err();
        assert!(error.to_string().contains("perfParams.alpha_c"), "{error}");
    }
}
