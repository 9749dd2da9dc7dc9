//! How fast types of GPU are against each other, as all reports together say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pollux_model::{AgentReport, GoodputModel, GpuType, JobId, PerfParams, Placement};

/// Jobs and applications that are remembered, each.
const MOST_TEACHERS: usize = 256;

/// Estimates move in steps of a sixteenth of a doubling, so that a job's tables are not made anew for less.
const STEPS_PER_DOUBLING: f64 = 16.0;

/// Single-precision TFLOP/s by the makers' data sheets: all there is to go by before anything ran on two types. A name
/// counts if it contains the key.
const NOMINAL: [(&str, f64); 12] = [
    ("k80", 4.1),
    ("t4", 8.1),
    ("p100", 9.3),
    ("rtx", 13.4),
    ("v100", 15.7),
    ("quadro", 16.3),
    ("a100", 19.5),
    ("l4", 30.3),
    ("a10", 31.2),
    ("h100", 67.0),
    ("h200", 67.0),
    ("b200", 75.0),
];

/// Whose reports are compared: all jobs of an application, or one job without a name for what it runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Teacher {
    /// All jobs of an application.
    Application(Arc<str>),
    /// One job.
    Job(JobId),
}

/// By teacher and type.
#[derive(Clone, Debug, Default)]
pub(crate) struct TypeSpeeds(pub(crate) BTreeMap<Teacher, BTreeMap<GpuType, Alone>>);

/// What is known of a teacher on one type.
#[derive(Clone, Debug, PartialEq)]
pub struct Alone {
    /// Step times.
    pub params: PerfParams,
    /// How many of them the data did not determine.
    pub n_undetermined: usize,
    /// Best goodput of one GPU, at the noise that was reported last.
    pub goodput: f64,
}

impl TypeSpeeds {
    /// Learns from a report.
    pub(crate) fn learn(&mut self, teacher: &Teacher, report: &AgentReport) {
        let Some(noise) = &report.noise else { return };
        if self.0.len() >= MOST_TEACHERS && !self.0.contains_key(teacher) {
            self.0.pop_last();
        }
        let seen = self.0.entry(teacher.clone()).or_default();
        for (gpu_type, fit) in &report.fits {
            let n_undetermined = fit.undetermined.len();
            if seen.get(gpu_type).is_none_or(|known| n_undetermined <= known.n_undetermined) {
                let known = Alone { params: fit.params.clone(), n_undetermined, goodput: 0.0 };
                seen.insert(gpu_type.clone(), known);
            }
        }
        // All at the same noise, or they could not be compared.
        for (gpu_type, known) in seen {
            let model = GoodputModel::new(known.params.clone(), noise.acted, report.limits_on(gpu_type));
            let goodput = model.map(|model| model.best_goodput(Placement::ALONE).useful_samples_per_sec());
            known.goodput = goodput.ok().filter(|goodput| goodput.is_finite()).unwrap_or(0.0);
        }
    }

    /// Adds models for types that the job itself has not seen but others of its teacher have: its own on another type, as
    /// much faster or slower as one GPU is, `goodput(N, A) = goodput(1, A) / goodput(1, B) · goodput(N, B)`.
    pub(crate) fn fill(&self, teacher: &Teacher, models: &mut BTreeMap<GpuType, GoodputModel>) {
        let Some(seen) = self.0.get(teacher) else { return };
        let goodput = |gpu_type: &GpuType| seen.get(gpu_type).map(|known| known.goodput).filter(|g| *g > 0.0);
        let base = models.iter().find_map(|(known, model)| Some((model.clone(), goodput(known)?)));
        let Some((base, known)) = base else { return };
        for gpu_type in seen.keys().filter(|gpu_type| !models.contains_key(gpu_type)).collect::<Vec<_>>() {
            let Some(other) = goodput(gpu_type) else { continue };
            let params = base.params().scaled(stepped(known / other));
            if let Ok(model) = GoodputModel::new(params, base.noise(), *base.limits()) {
                models.insert(gpu_type.clone(), model);
            }
        }
    }

    /// The speed of one GPU of each of these types, for whoever is known on other types alone: against the type that
    /// most teachers know, the median over those that know both; the nominal speed where none does.
    pub(crate) fn pooled(&self, types: &BTreeSet<GpuType>) -> BTreeMap<GpuType, f64> {
        if types.len() < 2 {
            return BTreeMap::new();
        }
        let n_teachers =
            |gpu_type: &GpuType| self.0.values().filter(|seen| seen.contains_key(gpu_type)).count();
        // The first by name of equals.
        let Some(base) = types.iter().rev().max_by_key(|gpu_type| n_teachers(gpu_type)) else {
            return BTreeMap::new();
        };
        let speed = |gpu_type: &GpuType| {
            let ratios = self.0.values().filter_map(|seen| {
                let (other, base) = (seen.get(gpu_type)?.goodput, seen.get(base)?.goodput);
                (other > 0.0 && base > 0.0).then(|| libm::log(other / base))
            });
            let learned = median(ratios.collect()).map(libm::exp);
            learned.unwrap_or_else(|| nominal(gpu_type, base))
        };
        types.iter().map(|gpu_type| (gpu_type.clone(), speed(gpu_type))).collect()
    }
}

/// The nominal speed of one type against another; 1 unless both are known.
fn nominal(gpu_type: &GpuType, base: &GpuType) -> f64 {
    let speed = |gpu_type: &GpuType| {
        let name = gpu_type.name().to_ascii_lowercase();
        // The longest key: an A100 is no A10.
        let known = NOMINAL.iter().filter(|(key, _)| name.contains(key)).max_by_key(|(key, _)| key.len());
        known.map(|(_, speed)| *speed)
    };
    speed(gpu_type).zip(speed(base)).map_or(1.0, |(speed, base)| speed / base)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { f64::midpoint(values[middle - 1], upper) })
}

fn stepped(ratio: f64) -> f64 {
    libm::exp2(libm::round(libm::log2(ratio) * STEPS_PER_DOUBLING) / STEPS_PER_DOUBLING)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_nominal(gpu_type: &str, base: &str, expected: f64) {
        let found = nominal(&GpuType::new(gpu_type), &GpuType::new(base));
        assert!((found - expected).abs() < 1e-9, "{gpu_type} against {base}: {found}");
    }

    #[test]
    fn data_sheets_are_for_types_that_have_one() {
        check_nominal("NVIDIA-A100-SXM4-40GB", "t4", 19.5 / 8.1);
        check_nominal("a10", "a100", 31.2 / 19.5);
        check_nominal("mystery", "t4", 1.0);
    }

    #[test]
    fn medians_lie_in_the_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
    }

    #[test]
    fn estimates_move_in_steps() {
        let bits = [1.0, 1.01, 4.0].map(|ratio| stepped(ratio).to_bits());
        assert_eq!(bits, [1.0_f64, 1.0, 4.0].map(f64::to_bits));
    }
}
