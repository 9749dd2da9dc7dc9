//! The jobs of a live scheduler's journal as a workload: when they came and what their files say, not what became of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use pollux_api::job_file::{BatchMode, JobFile};
use pollux_model::{BatchLimits, InvalidLimits, Timestamp};

use super::{Submission, Workload};
use crate::profile::{OfJob, Profile};

/// A job that was submitted, and the profile its file names.
#[derive(Clone, Debug)]
pub struct JournalJob {
    /// Its name, which no other job of the journal has.
    pub name: String,
    /// When it was submitted.
    pub at: Timestamp,
    /// Its file.
    pub file: JobFile,
    /// Its application.
    pub profile: Arc<Profile>,
}

/// A job whose file makes no batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{job}: {source}")]
pub struct JournalError {
    /// Its name.
    pub job: String,
    /// What is wrong.
    pub source: InvalidLimits,
}

/// The workload, and a profile for each job under the job's own name, with the batches, the work and the most GPUs of its file.
/// `overhead_secs` is what processes take for a stop and a start beyond the profile.
///
/// Times are rounded to whole seconds, and jobs begin with one GPU at least, whatever the file's `min`.
pub fn workload_of_journal(
    name: &str,
    jobs: &[JournalJob],
    overhead_secs: f64,
) -> Result<(Workload, BTreeMap<String, Arc<Profile>>), JournalError> {
    let first = jobs.iter().map(|job| job.at).min().unwrap_or_default();
    let (mut submissions, mut profiles) = (Vec::new(), BTreeMap::new());
    for job in jobs {
        let limits = limits(&job.file, &job.profile)
            .map_err(|source| JournalError { job: job.name.clone(), source })?;
        let initial = limits.initial().0;
        let gpus = &job.file.resources.gpus;
        let work = job.file.training.as_ref().and_then(|training| training.work);
        let of_job = OfJob {
            limits,
            work: work.map(|samples| samples / initial as f64),
            max_gpus: gpus.max,
            overhead_secs,
        };
        profiles.insert(job.name.clone(), Arc::new(job.profile.of_job(&job.name, of_job)));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds of one journal")]
        let at_secs = (job.at - first).as_secs_f64().round() as u64;
        submissions.push(Submission {
            name: job.name.clone(),
            at_secs,
            application: job.name.clone(),
            gpus: job.file.to_spec().request.map_or(gpus.min, |request| request.gpus),
            batch: initial,
            work: None,
            group: job.file.queue.clone(),
        });
    }
    submissions.sort_by_key(|submission| submission.at_secs);
    Ok((Workload { name: name.to_owned(), jobs: submissions }, profiles))
}

/// The batches that a job's file allows; what it leaves out is the profile's.
fn limits(file: &JobFile, profile: &Profile) -> Result<BatchLimits, InvalidLimits> {
    let own = profile.limits();
    let batch = file.training.as_ref().map(|training| training.batch).unwrap_or_default();
    let initial = batch.initial.unwrap_or(own.initial().0);
    let max = match batch.mode {
        BatchMode::Fixed => initial,
        BatchMode::Bounded | BatchMode::Adaptive => batch.max.unwrap_or(if file.training.is_some() {
            initial.saturating_mul(BatchLimits::DEFAULT_GROWTH)
        } else {
            own.max().0
        }),
    };
    let (least, most) = batch.per_gpu.unwrap_or((own.micro_min(), own.micro_max()));
    let limits = BatchLimits::new(initial, max, least, most)?;
    let accumulates = file.training.as_ref().is_none_or(|training| training.accumulation);
    Ok(if accumulates { limits } else { limits.with_max_accum_steps(0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::builtin;

    fn job(name: &str, secs: f64, more: &str) -> JournalJob {
        let text = format!("name: {name}\ncommand: train\n{more}");
        let at = Timestamp::from_secs(1_000) + std::time::Duration::from_secs_f64(secs);
        let file = JobFile::read(text.as_bytes(), "a.yaml").unwrap();
        JournalJob { name: name.to_owned(), at, file, profile: builtin()[0].clone() }
    }

    #[test] // 1,000 useful samples are 50 steps of 20.
    fn a_job_is_what_its_file_says() {
        let file = "resources: {gpus: {max: 4, request: 2}}\n\
            training: {batch: {mode: bounded, initial: 20, max: 80, per_gpu: [5, 20]}, work: 1000}\n";
        let jobs = [job("a", 0.2, file), job("b", 7.4, "resources: {gpus: 3}\n")];
        let (workload, profiles) = workload_of_journal("live", &jobs, 0.5).unwrap();
        let seen: Vec<_> = workload.jobs.iter().map(|job| (job.at_secs, job.gpus, job.batch)).collect();
        assert_eq!(seen, [(0, 2, 20), (7, 3, profiles["b"].limits().initial().0)]);
        let a = &profiles["a"];
        assert_eq!((a.limits().initial().0, a.limits().max().0, a.training().work()), (20, 80, 50.0));
        assert!(a.gpu_types().all(|kind| a.max_gpus(kind) <= 4));
        assert!((a.restart_secs() - builtin()[0].restart_secs() - 0.5).abs() < 1e-9);
    }
}
