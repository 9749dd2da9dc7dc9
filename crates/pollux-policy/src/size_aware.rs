//! Shares by size: short jobs more, long jobs not shut out.
//!
//! After heSRPT (Berg, Vesilo, Harchol-Balter 2020), the optimal rule for jobs that speed up as a power of
//! their GPUs: jobs are ranked by the work they have left, the largest first, and the weight of the `i`-th is
//! `(i^e - (i-1)^e)^(1-a)` with `e = 1 / (1-a)`. Work left is counted in seconds on one GPU. Where nobody declares
//! any, weights fall with the service attained so far.

use std::collections::BTreeMap;

use libm::pow;
use pollux_model::{GpuType, NodeId, Placement};

use crate::plan::Plan;
use crate::policy::{About, Cadence, Policy, Terms};
use crate::round;
use crate::settings::Settings;
use crate::snapshot::{Job, Known, Snapshot};
use crate::valuation::Stake;

/// How jobs are taken to speed up: as GPUs to this power.
const SPEEDUP_EXPONENT: f64 = 0.9;
/// How weights fall with attained service where no work is declared.
const ATTAINED_EXPONENT: f64 = -0.2;
/// GPU-seconds below which attained service says nothing.
const ATTAINED_LEAST: f64 = 60.0;

/// Pollux with weights by size. Beyond the paper.
#[derive(Clone, Copy, Debug)]
pub struct SizeAware {
    /// The objective and the effort.
    pub settings: Settings,
}

impl Default for SizeAware {
    fn default() -> Self {
        Self { settings: Settings::SIZE_AWARE }
    }
}

impl Policy for SizeAware {
    type Knows = Known;

    fn about(&self) -> About {
        About {
            name: "pollux-size-aware",
            summary: "goodput weighted by the work jobs declare to have left, shortest first but none shut out",
            source: "weights: Berg et al., SIGMETRICS 2020 (heSRPT); objective and solver: this project",
            adapts_batch: true,
        }
    }

    fn cadence(&self) -> Cadence {
        self.settings.cadence()
    }

    fn plan(&self, snapshot: &Snapshot<Known>, terms: &Terms<'_>) -> Plan {
        round::plan(snapshot, &self.settings, &stakes(snapshot, self.settings.size), terms)
    }
}

/// Weights by size, of this strength, and how long jobs still run.
pub(crate) fn stakes(snapshot: &Snapshot<Known>, strength: f64) -> Vec<Stake> {
    let jobs = snapshot.jobs();
    let nodes = snapshot.cluster().nodes.iter().map(|node| (node.id, &node.gpu_type));
    let types: BTreeMap<NodeId, &GpuType> = nodes.collect();
    let left: Vec<Option<f64>> = jobs.iter().map(|job| work_left(job, &types)).collect();
    let declares = jobs.iter().zip(&left).any(|(job, left)| job.knows.remaining.is_some() && left.is_some());
    let weights = if declares { by_rank(&left) } else { jobs.iter().map(by_attained_service).collect() };
    let stakes = jobs.iter().zip(weights).map(|(job, weight)| Stake {
        weight: job.weight * if strength < 1.0 { pow(weight, strength) } else { weight },
        remaining_secs: job.knows.remaining.zip(goodput(job, &types)).map(|(work, rate)| work / rate),
    });
    stakes.collect()
}

/// Seconds on one GPU that a job has left: declared, or as long again as it has run. None if nothing is known.
fn work_left(job: &Job, types: &BTreeMap<NodeId, &GpuType>) -> Option<f64> {
    let curves = &job.knows.learned.curves;
    let alone = curves.iter().map(|(_, curve)| curve.goodput(Placement::ALONE).useful_samples_per_sec());
    // On the fastest type it knows; of a job too large for one GPU, per GPU of the fewest it runs on.
    let fastest = alone.fold(0.0, f64::max);
    let rate = if fastest > 0.0 { fastest } else { goodput(job, types)? / job.holds.gpus().max(1.0) };
    Some(job.knows.remaining.map_or(job.attained, |work| work / rate))
}

/// Useful samples per second on what a job holds; none if it does not run.
fn goodput(job: &Job, types: &BTreeMap<NodeId, &GpuType>) -> Option<f64> {
    let (node, _) = job.holds.iter().next()?;
    let curve = job.knows.learned.curves.on(types.get(&node)?)?;
    let rate = curve.goodput(job.holds.placement()?).useful_samples_per_sec();
    (rate > 0.0).then_some(rate)
}

/// Weights by rank, the largest job first. Who is not known yet counts as a rather short one: the lower quartile.
fn by_rank(left: &[Option<f64>]) -> Vec<f64> {
    let mut known: Vec<f64> = left.iter().copied().flatten().collect();
    known.sort_by(f64::total_cmp);
    let quartile = known.get(known.len() / 4).copied().unwrap_or(0.0);
    let mut order: Vec<usize> = (0..left.len()).collect();
    order.sort_by(|&a, &b| {
        let [a, b] = [a, b].map(|job| left[job].unwrap_or(quartile));
        b.total_cmp(&a)
    });
    let exponent = 1.0 / (1.0 - SPEEDUP_EXPONENT);
    let mut weights = vec![1.0; left.len()];
    for (index, job) in order.into_iter().enumerate() {
        let [before, here] = [index, index + 1].map(|rank| pow(rank as f64, exponent));
        weights[job] = pow(here - before, 1.0 - SPEEDUP_EXPONENT);
    }
    weights
}

fn by_attained_service(job: &Job) -> f64 {
    pow(job.attained.max(ATTAINED_LEAST), ATTAINED_EXPONENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_rank(left: &[Option<f64>], expected: &[f64]) {
        let weights = by_rank(left);
        for (weight, expected) in weights.iter().zip(expected) {
            assert!((weight - expected).abs() < 1e-3, "{left:?}: {weights:?}");
        }
    }

    #[test] // Two jobs: 1 and (1024 - 1)^0.1; three: and (59049 - 1024)^0.1.
    fn the_shortest_weighs_most() {
        check_rank(&[Some(10.0)], &[1.0]);
        check_rank(&[Some(10.0), Some(500.0)], &[2.0, 1.0]);
        check_rank(&[Some(100.0), Some(10.0), Some(500.0)], &[2.0, 2.995, 1.0]);
    }

    #[test] // Of 1, 2, 3, 4 the lower quartile is 2: the unknown ranks among the short.
    fn who_is_not_known_counts_as_rather_short() {
        let weights = by_rank(&[Some(1.0), Some(2.0), Some(3.0), Some(4.0), None]);
        assert!(weights[4] > weights[2] && weights[4] < weights[0], "{weights:?}");
    }
}
