//! What earlier jobs of an application taught.

use std::collections::BTreeMap;
use std::sync::Arc;

use pollux_model::fit::{History, PastFit};
use pollux_model::{AgentReport, GoodputModel, GpuType, JobCurves, JobId, NoiseScale};
use pollux_policy::Learned;

use crate::state::{Curves, PastRecord};

/// Jobs of an application that are remembered.
const MOST_JOBS: usize = 8;

/// By application.
#[derive(Debug, Default)]
pub(crate) struct Histories(BTreeMap<Arc<str>, Past>);

/// One application.
#[derive(Debug, Default)]
struct Past {
    /// The latest fit of each of the latest jobs, by GPU type.
    fits: BTreeMap<GpuType, BTreeMap<JobId, PastFit>>,
    /// Gradient noise as the latest job first reported it: how it is early in training.
    early_noise: Option<NoiseScale>,
    /// Most GPUs any of them ran on.
    most_gpus: u32,
    /// Goodput of a job that begins: the best determined step times, the early noise.
    curves: Arc<JobCurves>,
}

impl Histories {
    /// Learns from a job's report.
    pub(crate) fn learn(
        &mut self,
        application: &Arc<str>,
        job: JobId,
        report: &AgentReport,
        is_first: bool,
        sizes: (u32, u32),
    ) {
        let past = self.0.entry(application.clone()).or_default();
        past.most_gpus = past.most_gpus.max(report.most_replicas);
        if let Some(noise) = &report.noise
            && (is_first || past.early_noise.is_none())
        {
            past.early_noise = Some(noise.acted);
        }
        for (gpu_type, fit) in &report.fits {
            let fits = past.fits.entry(gpu_type.clone()).or_default();
            fits.insert(job, PastFit::from(fit));
            if fits.len() > MOST_JOBS {
                fits.pop_first();
            }
        }
        let Some(noise) = past.early_noise else { return };
        let models = past.fits.iter().filter_map(|(gpu_type, fits)| {
            // Of equally determined ones the latest.
            let best = fits.values().rev().min_by_key(|fit| fit.undetermined.len())?;
            let model = GoodputModel::new(best.params.clone(), noise, report.limits_on(gpu_type)).ok()?;
            Some((gpu_type.clone(), model))
        });
        let models: BTreeMap<GpuType, GoodputModel> = models.collect();
        let same = |(gpu_type, model)| past.curves.on(gpu_type).is_some_and(|curve| curve.model() == model);
        if !models.iter().all(same) {
            let mut curves = JobCurves::default();
            curves.update(models, sizes.0, sizes.1);
            past.curves = Arc::new(curves);
        }
    }

    pub(crate) fn records(&self) -> BTreeMap<Arc<str>, PastRecord> {
        let record = |(application, past): (&Arc<str>, &Past)| {
            let Past { fits, early_noise, most_gpus, curves } = past;
            let (fits, curves) = (fits.clone(), Curves::of(curves));
            let record = PastRecord { fits, early_noise: *early_noise, most_gpus: *most_gpus, curves };
            (application.clone(), record)
        };
        self.0.iter().map(record).collect()
    }

    pub(crate) fn of(records: BTreeMap<Arc<str>, PastRecord>) -> Self {
        let past = |(application, record)| {
            let PastRecord { fits, early_noise, most_gpus, curves } = record;
            (application, Past { fits, early_noise, most_gpus, curves: curves.tables() })
        };
        Self(records.into_iter().map(past).collect())
    }

    /// What is known of a job of this application before it ran.
    pub(crate) fn learned(&self, application: &str) -> Option<Learned> {
        let past = self.0.get(application)?;
        Some(Learned { curves: past.curves.clone(), most_gpus: past.most_gpus })
    }

    /// Most GPUs a job of this application has run on.
    pub(crate) fn most_gpus(&self, application: &str) -> u32 {
        self.0.get(application).map_or(0, |past| past.most_gpus)
    }

    /// The prior for a job's own fits: what others taught, not itself.
    pub(crate) fn prior(&self, application: &str, job: JobId) -> BTreeMap<GpuType, History> {
        let Some(past) = self.0.get(application) else { return BTreeMap::new() };
        let prior = past.fits.iter().filter_map(|(gpu_type, fits)| {
            let others = fits.iter().filter(|(id, _)| **id != job).map(|(_, fit)| fit);
            Some((gpu_type.clone(), History::of(others)?))
        });
        prior.collect()
    }
}
