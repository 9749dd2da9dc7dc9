//! Step times from fitted parameters, where the measurements themselves are not at hand.

use std::collections::BTreeMap;
use std::path::Path;

use pollux_model::{Affine, Compute, GpuType, PerfParams, Placement};

use super::application::Profile;
use super::error::{FieldProblem, ProfileError, Within, within};
use super::make::{TIME_DIGITS, round_to};
use super::step_times::{Shape, StepTimes};
use crate::osdi21::file::Table;

/// An application on one more type of GPU, as fitted parameters say.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedType {
    /// The type.
    pub gpu_type: GpuType,
    /// GPUs of one node.
    pub gpus_per_node: u32,
    /// The largest micro-batch that its memory holds.
    pub micro_max: u32,
    /// Step times.
    pub params: PerfParams,
}

/// Where the parameters of the built-in profiles come from.
pub const FITTED_SOURCE: &str = "step times on other types computed from parameters that we fitted to the measurements \
     of siasosp23/artifacts, commit aaf7a0d, of Jayaram Subramanya et al., Sia, SOSP 2023";

/// Shapes go up to this many GPUs, as those of the built-in profiles on T4. Parameters were fitted to 16 at most: beyond
/// that the exchange goes on as the model has it, a little longer with each GPU.
const MOST_GPUS: u32 = 64;

/// Micro-batches of a shape, spread evenly in their logarithm; lines between them are near enough to a smooth curve.
const N_RUNGS: u32 = 4;

/// The name of a type in the table, ours, and the GPUs of its nodes.
const TYPES: [(&str, &str, u32); 4] =
    [("rtx", "rtx", 8), ("dgx-ext", "a100", 8), ("azure", "v100", 8), ("quad", "quadro", 4)];

const COLUMNS: &[&str] = &[
    "model",
    "gpu_key",
    "max_local_bsz_1gpu",
    "alpha_c",
    "beta_c",
    "alpha_n",
    "beta_n",
    "alpha_r",
    "beta_r",
    "gamma",
];

/// Reads a table of parameters, one row for each application and type of GPU; by application.
///
/// Left out are T4, whose measurements are at hand, and `ncf` on V100: there a step took ten times as long as on a T4,
/// which says more about that machine than about its GPUs.
pub fn read_fitted(file: &Path) -> Result<BTreeMap<String, Vec<FittedType>>, ProfileError> {
    let mut fitted: BTreeMap<String, Vec<FittedType>> = BTreeMap::new();
    for row in Table::open(file, COLUMNS)?.rows() {
        let application = row.text("model");
        let known = TYPES.iter().find(|(key, ..)| *key == row.text("gpu_key"));
        let Some(&(_, name, gpus_per_node)) =
            known.filter(|(_, name, _)| (application, *name) != ("ncf", "v100"))
        else {
            continue;
        };
        let params = PerfParams {
            grad: Compute::Linear { alpha: row.amount("alpha_c")?, beta: row.amount("beta_c")? },
            sync_local: Affine { alpha: row.amount("alpha_r")?, beta: row.amount("beta_r")? },
            sync_node: Affine { alpha: row.amount("alpha_n")?, beta: row.amount("beta_n")? },
            gamma: row.amount("gamma")?,
            optimizer_step: 0.0,
        };
        params.validate().map_err(|_| row.wrong("gamma", "an exponent from 1 to 10 beside a time"))?;
        let micro_max = row.count("max_local_bsz_1gpu")?;
        let gpu_type = GpuType::new(name);
        let fitted = fitted.entry(application.to_owned()).or_default();
        fitted.push(FittedType { gpu_type, gpus_per_node, micro_max, params });
    }
    Ok(fitted)
}

/// The same application, known on more types of GPU; `source` says where their parameters come from.
///
/// A step takes what the parameters say on 1, 2, 4, .. GPUs of a node and on 2, 4, 16 and 64 of several, with four
/// micro-batches from the smallest to the largest; between them lie lines. On several nodes the exchange is never
/// shorter than on one.
pub fn add_fitted(profile: Profile, fitted: &[FittedType], source: &str) -> Result<Profile, ProfileError> {
    let mut types = Vec::with_capacity(fitted.len());
    for FittedType { gpu_type, gpus_per_node, micro_max, params } in fitted {
        let at = |key: &str, problem| within("step_times", within(gpu_type.name(), within(key, problem)));
        let limits = profile.limits().with_micro_max(*micro_max);
        let limits = limits.map_err(|error| at("micro_max", FieldProblem::from(error).into()));
        let rungs = limits.map(|limits| rungs(limits.micro_min(), *micro_max));
        let shapes = rungs.and_then(|rungs| {
            let shapes =
                placements(*gpus_per_node).map(|placement| shape(params, *gpus_per_node, placement, &rungs));
            let times = shapes.collect::<Result<_, _>>().and_then(StepTimes::new);
            times.map_err(|problem| at("shapes", problem))
        });
        let times = shapes.map_err(|problem| problem.of(Path::new(profile.name())))?;
        types.push((gpu_type.clone(), *micro_max, times));
    }
    Ok(profile.with_types(types, source))
}

/// Powers of two on one node, powers of four on several: the exchange grows along a line.
fn placements(gpus_per_node: u32) -> impl Iterator<Item = Placement> {
    let one_node = (0..32).map(|power| 1 << power).take_while(move |gpus| *gpus <= gpus_per_node);
    let one_node = one_node.map(|gpus| (1, gpus));
    let several = [2, 4, 16, MOST_GPUS].map(|gpus| (2, gpus));
    one_node.chain(several).filter_map(|(n_nodes, gpus)| Placement::new(n_nodes, gpus))
}

fn rungs(low: u32, high: u32) -> Vec<u32> {
    let ratio = f64::from(high) / f64::from(low);
    let rung = |index: u32| {
        let at = f64::from(low) * libm::pow(ratio, f64::from(index) / f64::from(N_RUNGS - 1));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between two such numbers"
        )]
        {
            (at.round() as u32).clamp(low, high)
        }
    };
    let mut rungs: Vec<u32> = (0..N_RUNGS).map(rung).collect();
    rungs.dedup();
    rungs
}

fn shape(
    params: &PerfParams,
    gpus_per_node: u32,
    placement: Placement,
    rungs: &[u32],
) -> Result<Shape, Within> {
    // Few GPUs on several nodes were not measured, and some fits have them exchange faster than on one: never that.
    let gpus = placement.n_replicas();
    let within_node = params.sync_local.secs(gpus.min(gpus_per_node));
    let sync_node = Affine { alpha: params.sync_node.secs(gpus).max(within_node), beta: 0.0 };
    let params = PerfParams { sync_node, ..params.clone() };
    let round = |secs: f64| round_to(secs, TIME_DIGITS);
    let step = |rung: &u32| params.last_micro_step_secs(placement, *rung);
    let step_secs: Vec<f64> = rungs.iter().map(|rung| round(step(rung))).collect();
    // What a step takes beyond its compute: the part of the exchange that is not hidden behind it.
    let sync = |rung: &u32| (step(rung) - params.grad.secs(f64::from(*rung))).max(0.0);
    let sync_secs: Vec<f64> = rungs.iter().map(|rung| round(sync(rung))).collect();
    Shape::new(placement, rungs, &step_secs, &sync_secs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::builtin;

    /// A pass of 1 s and 0.1 s a sample; 2 s of exchange on a node, 10 s on several, nothing hidden.
    fn fitted(micro_max: u32) -> FittedType {
        let params = PerfParams {
            grad: Compute::Linear { alpha: 1.0, beta: 0.1 },
            sync_local: Affine { alpha: 2.0, beta: 0.5 },
            sync_node: Affine { alpha: 10.0, beta: 1.0 },
            gamma: 1.0,
            optimizer_step: 0.0,
        };
        FittedType { gpu_type: GpuType::new("new"), gpus_per_node: 4, micro_max, params }
    }

    fn check(n_nodes: u32, n_replicas: u32, micro_batch: u32, step_secs: f64, sync_secs: f64) {
        let bert = add_fitted(builtin()[0].as_ref().clone(), &[fitted(32)], "made up").unwrap();
        let placement = Placement::new(n_nodes, n_replicas).unwrap();
        let time = bert.step_time(&GpuType::new("new"), placement, micro_batch).unwrap();
        let error = (time.step_secs - step_secs).abs().max((time.sync_secs - sync_secs).abs());
        assert!(error < 2e-3, "{n_replicas} on {n_nodes} with {micro_batch}: {time:?}");
        assert!(bert.source().ends_with("; made up"));
    }

    #[test]
    fn steps_are_as_the_parameters_say() {
        check(1, 1, 10, 2.0, 0.0);
        check(1, 2, 10, 4.0, 2.0);
        check(1, 4, 30, 7.0, 3.0);
        check(2, 2, 10, 12.0, 10.0);
        check(2, 10, 10, 20.0, 18.0);
        check(8, 64, 20, 75.0, 72.0);
    }

    #[test]
    fn memory_has_a_limit_of_its_own() {
        let bert = &builtin()[0];
        let larger = add_fitted(bert.as_ref().clone(), &[fitted(32)], "").unwrap();
        let [new, t4] = ["new", "t4"].map(GpuType::new);
        assert_eq!([&new, &t4].map(|gpu_type| larger.limits_on(gpu_type).micro_max()), [32, 12]);
        assert_eq!(larger.limits_among(&[t4.clone(), new]).micro_max(), 32);
        assert_eq!(larger.limits_among(&[t4]), *bert.limits());
        let error = add_fitted(bert.as_ref().clone(), &[fitted(3)], "").unwrap_err().to_string();
        assert!(error.starts_with("bert: `step_times.new.micro_max`: "), "{error}");
    }

    #[test]
    fn rungs_lie_between_the_limits() {
        assert_eq!(rungs(4, 32), [4, 8, 16, 32]);
        assert_eq!(rungs(4, 5), [4, 5]);
        assert_eq!(rungs(7, 7), [7]);
    }
}
