//! What each row is worth: speed-ups, asked for a million times a round and computed once.

use pollux_model::osdi21::{Limits, N_CANDIDATES, Params};
use pollux_model::{GoodputCurve, GoodputModel, Placement};

use super::Variant;
use super::ground::Ground;
use crate::settings::FairShare;
use crate::valuation::{Source, Valuation};

/// What a row is worth to its job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worth {
    /// Speed-up, restart not counted; 0 for an empty row.
    pub speedup: f64,
    /// Weighted utility, restart counted.
    pub utility: f64,
    /// GPUs held.
    pub gpus: u32,
}

/// A table for each job: speed-up and utility by pool, one node or several, and GPUs. Filled when asked for.
#[derive(Debug)]
pub(super) struct Rates<'a> {
    ground: &'a Ground,
    valuation: &'a Valuation<'a>,
    jobs: Vec<JobRates<'a>>,
}

#[derive(Debug)]
struct JobRates<'a> {
    /// Where speed-ups come from, by pool.
    speeds: Vec<Speed<'a>>,
    /// Goodput at the fair share.
    fair: f64,
    /// Most GPUs the table has entries for.
    most: usize,
    /// By pool, then one node or several, then GPUs; not a number where nobody asked yet.
    entries: Vec<(f64, f64)>,
}

/// Where a job's goodput on one GPU type comes from.
#[derive(Debug)]
enum Speed<'a> {
    /// The product's evaluator.
    Valued,
    /// The artifact's goodput function, times a factor.
    Coded { params: Params, limits: Limits, noise: f64, factor: f64 },
    /// The exact curve, times a factor: where the artifact has no such model.
    Exact { curve: &'a GoodputCurve, factor: f64 },
    /// Nothing is known, and the artifact takes every GPU for as good as the first.
    Linear,
    /// Not on this type.
    Nowhere,
}

impl<'a> Rates<'a> {
    /// Empty tables.
    pub(super) fn new(
        ground: &'a Ground,
        valuation: &'a Valuation<'a>,
        variant: Variant,
        fair: FairShare,
    ) -> Self {
        let jobs = ground.rows.iter().enumerate().map(|(row, layout)| {
            let sources = &valuation.jobs()[layout.job].pools;
            let speeds: Vec<Speed<'_>> = match variant {
                Variant::Paper => sources.iter().map(|_| Speed::Valued).collect(),
                Variant::Osdi21 => sources.iter().map(|source| Speed::coded(source.as_ref())).collect(),
            };
            // A pinned job may hold more than it would be given.
            let held: u32 = ground.row(&ground.current, row).iter().map(|&gpus| u32::from(gpus)).sum();
            let most = layout.bounds.iter().map(|bounds| bounds.max).fold(held, u32::max) as usize;
            let entries = vec![(f64::NAN, f64::NAN); speeds.len() * 2 * (most + 1)];
            let fair = fair_goodput(&speeds, valuation, fair);
            JobRates { speeds, fair, most, entries }
        });
        Self { ground, valuation, jobs: jobs.collect() }
    }

    /// What a row of a repaired member is worth.
    pub(super) fn of_row(&mut self, row: usize, cells: &[u16]) -> Worth {
        let (mut gpus, mut n_nodes, mut last) = (0_u32, 0_u32, 0);
        for (column, &cell) in cells.iter().enumerate() {
            if cell > 0 {
                gpus += u32::from(cell);
                n_nodes += 1;
                last = column;
            }
        }
        let job = self.ground.rows[row].job;
        if gpus == 0 {
            return Worth { speedup: 0.0, utility: self.valuation.worth_of_nothing(job), gpus };
        }
        let pool = self.ground.columns[last].pool;
        let (speedup, moved) = self.entry(row, pool, n_nodes > 1, gpus);
        let value = &self.valuation.jobs()[job];
        let utility = if value.restart_factor < 1.0 && self.ground.is_current(row, cells) {
            value.weight * self.valuation.utility().of(speedup)
        } else {
            moved
        };
        Worth { speedup, utility, gpus }
    }

    /// Speed-up, and utility for a job that is moved there.
    fn entry(&mut self, row: usize, pool: usize, is_spread: bool, gpus: u32) -> (f64, f64) {
        let job = &mut self.jobs[row];
        let at = (pool * 2 + usize::from(is_spread)) * (job.most + 1) + gpus as usize;
        if let Some(&known) = job.entries.get(at)
            && !known.0.is_nan()
        {
            return known;
        }
        let index = self.ground.rows[row].job;
        let value = &self.valuation.jobs()[index];
        let speedup =
            Placement::new(1 + u32::from(is_spread), gpus).map_or(0.0, |placement| match &job.speeds[pool] {
                Speed::Valued => value.speedup(pool, placement),
                Speed::Linear => f64::from(gpus) / f64::from(self.valuation.fair_gpus()),
                speed if job.fair > 0.0 => speed.goodput(placement) / job.fair,
                _ => 0.0,
            });
        let entry = (speedup, value.weight * self.valuation.utility().of(speedup * value.restart_factor));
        if let Some(slot) = job.entries.get_mut(at) {
            *slot = entry;
        }
        entry
    }
}

impl<'a> Speed<'a> {
    fn coded(source: Option<&Source<'a>>) -> Self {
        let Some(source) = source else { return Self::Nowhere };
        let Some((curve, factor)) = source.curve() else { return Self::Linear };
        match as_coded(curve.model()) {
            Some((params, limits)) => {
                let noise = curve.model().noise().samples();
                Self::Coded { params, limits, noise, factor }
            }
            None => Self::Exact { curve, factor },
        }
    }

    fn goodput(&self, placement: Placement) -> f64 {
        match self {
            Self::Coded { params, limits, noise, factor } => {
                params.optimize(placement, *limits, *noise, N_CANDIDATES).goodput * factor
            }
            Self::Exact { curve, factor } => curve.goodput(placement).useful_samples_per_sec() * factor,
            Self::Valued | Self::Linear | Self::Nowhere => 0.0,
        }
    }

    /// Most GPUs on which any batch keeps the job's limits.
    fn max_replicas(&self) -> u32 {
        match self {
            Self::Coded { limits, .. } => {
                u32::try_from(limits.max / limits.min_atomic.max(1)).unwrap_or(u32::MAX)
            }
            Self::Exact { curve, .. } => curve.model().limits().max_replicas(),
            Self::Valued | Self::Linear | Self::Nowhere => u32::MAX,
        }
    }
}

/// A model in the artifact's form; none where that cannot express it.
fn as_coded(model: &GoodputModel) -> Option<(Params, Limits)> {
    let limits = model.limits();
    let is_plain = limits.max_accum_steps() == u32::MAX && limits.min() == limits.initial();
    let batches = Limits {
        init: limits.initial().0,
        max: limits.max().0,
        min_atomic: u64::from(limits.micro_min()),
        max_atomic: u64::from(limits.micro_max()),
    };
    let params = Params::from_perf(model.params()).filter(|_| is_plain)?;
    Some((params, batches))
}

/// Goodput at the fair share; over several types, in proportion to their GPUs, as the product has it.
fn fair_goodput(speeds: &[Speed<'_>], valuation: &Valuation<'_>, shape: FairShare) -> f64 {
    let (mut sum, mut gpus) = (0.0, 0.0);
    for (speed, pool) in speeds.iter().zip(valuation.pools()) {
        if !matches!(speed, Speed::Coded { .. } | Speed::Exact { .. }) {
            continue;
        }
        let n_replicas = valuation.fair_gpus().min(speed.max_replicas()).max(1);
        let placement = match shape {
            FairShare::Packed => Placement::packed(n_replicas, pool.largest_node),
            FairShare::OneNode => Placement::new(1, n_replicas),
            FairShare::OneGpu => Some(Placement::ALONE),
        };
        if let Some(placement) = placement {
            sum += f64::from(pool.gpus) * speed.goodput(placement);
            gpus += f64::from(pool.gpus);
        }
    }
    if gpus > 0.0 { sum / gpus } else { 0.0 }
}
