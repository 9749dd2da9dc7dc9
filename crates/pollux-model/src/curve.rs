//! Goodput by number of GPUs, as tables: what an allocator asks for thousands of times a round.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::allocation::{Placement, Regime};
use crate::goodput::GoodputModel;
use crate::gpu::GpuType;
use crate::quantity::{Goodput, Speedup};

/// Best goodput of one job on one GPU type: an entry for each number of GPUs on one node, and for each
/// number on several. Filled when first asked for.
///
/// Entries are a function of the model alone, so it does not matter which thread fills one, or how often.
pub struct GoodputCurve {
    /// Entries on one node, then those on several: side by side, since a plan asks for both.
    table: Box<[AtomicU64]>,
    n_one_node: u32,
    /// The model's own, kept beside the table.
    max_replicas: u32,
    ceiling_per_gpu: Goodput,
    model: GoodputModel,
}

impl fmt::Debug for GoodputCurve {
    /// Without the entries, which say who asked and nothing of the job.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GoodputCurve")
            .field("sizes", &self.sizes())
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// Not a goodput: marks an entry nobody asked for yet.
const UNKNOWN: u64 = u64::MAX;

/// Entries of a table at most; half a megabyte.
const MOST: u32 = 1 << 16;

impl GoodputCurve {
    /// Tables for up to `gpus_per_node` GPUs on one node and up to `max_replicas` on several. Larger
    /// placements are answered too, but not remembered.
    pub fn new(model: GoodputModel, gpus_per_node: u32, max_replicas: u32) -> Self {
        let (n_one_node, n_distributed) = Self::lengths(gpus_per_node, max_replicas);
        let table = (0..n_one_node + n_distributed).map(|_| AtomicU64::new(UNKNOWN)).collect();
        let (max_replicas, ceiling_per_gpu) = (model.limits().max_replicas(), model.ceiling_per_gpu());
        Self { table, n_one_node, max_replicas, ceiling_per_gpu, model }
    }

    fn lengths(gpus_per_node: u32, max_replicas: u32) -> (u32, u32) {
        (gpus_per_node.min(MOST), max_replicas.saturating_sub(1).min(MOST))
    }

    /// GPUs on one node and on several that the tables go up to: [`GoodputCurve::new`] makes the same of them.
    pub fn sizes(&self) -> (u32, u32) {
        let n_distributed =
            u32::try_from(self.table.len()).unwrap_or(u32::MAX).saturating_sub(self.n_one_node);
        (self.n_one_node, n_distributed.saturating_add(1))
    }

    /// The model behind the tables.
    pub fn model(&self) -> &GoodputModel {
        &self.model
    }

    /// Most replicas that the model's batch limits allow.
    pub fn max_replicas(&self) -> u32 {
        self.max_replicas
    }

    /// [`GoodputModel::ceiling_per_gpu`] of the model.
    pub fn ceiling_per_gpu(&self) -> Goodput {
        self.ceiling_per_gpu
    }

    /// Goodput of the best batch on this placement; zero where no batch keeps the limits.
    #[inline]
    pub fn goodput(&self, placement: Placement) -> Goodput {
        let Some(entry) = self.entry(placement) else { return self.model.best_goodput(placement) };
        let stored = entry.load(Ordering::Relaxed);
        if stored != UNKNOWN {
            return Goodput::new(f64::from_bits(stored));
        }
        let goodput = self.model.best_goodput(placement);
        entry.store(goodput.useful_samples_per_sec().to_bits(), Ordering::Relaxed);
        goodput
    }

    /// Goodput over that of a reference placement; zero where either has none.
    pub fn speedup(&self, placement: Placement, reference: Placement) -> Speedup {
        let reference = self.goodput(reference);
        if reference > Goodput::default() { self.goodput(placement) / reference } else { Speedup::default() }
    }

    fn entry(&self, placement: Placement) -> Option<&AtomicU64> {
        let n_replicas = placement.n_replicas() as usize;
        let n_one_node = self.n_one_node as usize;
        match placement.regime() {
            Regime::Alone | Regime::OneNode => self.table[..n_one_node].get(n_replicas - 1),
            Regime::Distributed => self.table[n_one_node..].get(n_replicas - 2),
        }
    }

    /// Entries filled so far, for those who watch the work done.
    pub fn n_filled(&self) -> usize {
        self.table.iter().filter(|entry| entry.load(Ordering::Relaxed) != UNKNOWN).count()
    }
}

/// The curves of one job, per GPU type, kept from round to round.
#[derive(Debug, Default)]
pub struct JobCurves(Vec<(GpuType, GoodputCurve)>); // by type, each once

impl JobCurves {
    /// Takes the job's present models. A type whose model did not change keeps its table.
    pub fn update(&mut self, models: BTreeMap<GpuType, GoodputModel>, gpus_per_node: u32, max_replicas: u32) {
        let fits = |curve: &GoodputCurve, model: &GoodputModel| {
            let (n_one_node, n_distributed) = GoodputCurve::lengths(gpus_per_node, max_replicas);
            let same_size =
                curve.n_one_node == n_one_node && curve.table.len() == (n_one_node + n_distributed) as usize;
            same_size && curve.model == *model
        };
        let mut old: BTreeMap<_, _> = std::mem::take(&mut self.0).into_iter().collect();
        for (gpu_type, model) in models {
            let curve = match old.remove(&gpu_type) {
                Some(curve) if fits(&curve, &model) => curve,
                _ => GoodputCurve::new(model, gpus_per_node, max_replicas),
            };
            self.0.push((gpu_type, curve));
        }
        self.0.shrink_to_fit();
    }

    /// The curve on this GPU type, if the job has a model for it.
    pub fn on(&self, gpu_type: &GpuType) -> Option<&GoodputCurve> {
        self.0.iter().find(|(known, _)| known == gpu_type).map(|(_, curve)| curve)
    }

    /// All types with a curve.
    pub fn iter(&self) -> impl Iterator<Item = (&GpuType, &GoodputCurve)> {
        self.0.iter().map(|(gpu_type, curve)| (gpu_type, curve))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Affine, BatchLimits, Compute, NoiseScale, PerfParams};

    fn model(noise: f64) -> GoodputModel {
        let params = PerfParams {
            grad: Compute::Linear { alpha: 0.05, beta: 0.001 },
            sync_local: Affine { alpha: 0.02, beta: 0.002 },
            sync_node: Affine { alpha: 0.2, beta: 0.01 },
            gamma: 1.5,
            optimizer_step: 0.001,
        };
        let limits = BatchLimits::new(64, 2_048, 8, 256).unwrap();
        GoodputModel::new(params, NoiseScale::from_samples(noise).unwrap(), limits).unwrap()
    }

    #[test]
    fn entries_equal_the_model_and_are_filled_once_asked() {
        let curve = GoodputCurve::new(model(500.0), 4, 16);
        assert_eq!(curve.n_filled(), 0);
        assert_eq!(curve.sizes(), (4, 16));
        assert_eq!(GoodputCurve::new(model(500.0), 4, 0).sizes(), (4, 1), "of nothing on several nodes");
        for (n_nodes, n_replicas) in [(1, 1), (1, 4), (2, 4), (4, 16), (1, 4), (8, 64)] {
            let placement = Placement::new(n_nodes, n_replicas).unwrap();
            assert_eq!(curve.goodput(placement), curve.model().best_goodput(placement));
            assert_eq!(curve.goodput(placement), curve.model().best_goodput(placement));
        }
        assert_eq!(curve.n_filled(), 4, "64 GPUs lie outside the table");
        assert_eq!(curve.speedup(Placement::ALONE, Placement::ALONE), Speedup::new(1.0));
        let too_many = Placement::new(100, 400).unwrap();
        assert_eq!(curve.speedup(too_many, Placement::ALONE), Speedup::default());
    }

    #[test]
    fn only_a_changed_model_empties_its_table() {
        let (t4, a100) = (GpuType::new("t4"), GpuType::new("a100"));
        let mut curves = JobCurves::default();
        let models = |a: f64, b: f64| BTreeMap::from([(t4.clone(), model(a)), (a100.clone(), model(b))]);
        curves.update(models(500.0, 500.0), 4, 16);
        for gpu_type in [&t4, &a100] {
            curves.on(gpu_type).unwrap().goodput(Placement::ALONE);
        }
        curves.update(models(500.0, 600.0), 4, 16);
        assert_eq!(curves.on(&t4).unwrap().n_filled(), 1);
        assert_eq!(curves.on(&a100).unwrap().n_filled(), 0);
        curves.update(BTreeMap::new(), 4, 16);
        assert!(curves.on(&t4).is_none());
    }
}
