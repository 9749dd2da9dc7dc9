//! What the scheduler is told of a job.

use pollux_core::JobSpec;
use pollux_model::GpuType;
use pollux_policy::Request;

use super::JobFile;

impl JobFile {
    /// The job as the scheduler knows it. Its queue is not looked up: `group` is none.
    ///
    /// ```
    /// use pollux_api::job_file::JobFile;
    ///
    /// let job = JobFile::read(b"name: a\ncommand: train\nresources: {gpus: 4}\n", "a.yaml").unwrap();
    /// let spec = job.to_spec();
    /// assert_eq!((spec.min_gpus, spec.max_gpus, spec.adapts), (4, Some(4), false));
    /// ```
    pub fn to_spec(&self) -> JobSpec {
        let gpus = &self.resources.gpus;
        // Exactly so many is a request too.
        let request = gpus.request.or(gpus.max.filter(|max| *max == gpus.min));
        let training = self.training.as_ref();
        JobSpec {
            application: training.and_then(|training| training.application.as_deref()).map(Into::into),
            group: None,
            priority: self.priority,
            weight: 1.0,
            min_gpus: gpus.min,
            max_gpus: gpus.max,
            types: gpus.types.iter().map(|name| GpuType::new(name)).collect(),
            request: request.map(|gpus| Request { gpus }),
            adapts: self.adapts,
            preemptible: self.elastic.preemptible,
            min_runtime: self.elastic.min_runtime,
            max_resizes_per_hour: self.elastic.max_resizes_per_hour,
            work: training.and_then(|training| training.work),
            retries: self.restart.max_failures,
        }
    }
}
