//! What is kept of a run, as CSV.

use std::borrow::Cow;
use std::fmt::Write as _;

use pollux_model::JobId;

use crate::outcome::Run;
use crate::workload::file::quoted;

/// The jobs of a run and how each fared; what never came to be is left empty.
///
/// Columns: `name,application,submitted_s,completed_s,jct_s,restarts,gpu_seconds,rho,failures,redone_gpu_seconds`.
pub fn jobs_csv(run: &Run) -> String {
    let mut text = String::from("name,application,submitted_s,completed_s,jct_s,restarts,gpu_seconds,rho");
    text += ",failures,redone_gpu_seconds\n";
    let some = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for job in &run.jobs {
        let (name, application) = (quoted(&job.name), quoted(&job.application));
        let submitted = job.submitted.as_secs_f64();
        let completed = some(job.completed.map(pollux_model::Timestamp::as_secs_f64));
        let (jct, rho) = (some(job.jct_secs()), some(job.rho));
        let (restarts, gpu_secs) = (job.restarts, job.gpu_secs);
        let (failures, redone) = (job.failures, job.redone_gpu_secs);
        let written = writeln!(
            text,
            "{name},{application},{submitted},{completed},{jct},{restarts},{gpu_secs},{rho},{failures},{redone}"
        );
        debug_assert!(written.is_ok(), "a string takes all text");
    }
    text
}

/// Who held what when, as [`Log::to_csv`](crate::Log::to_csv) writes it.
pub fn timeline_csv(run: &Run) -> String {
    let names: Vec<Cow<'_, str>> = run.jobs.iter().map(|job| quoted(&job.name)).collect();
    let name = |id: JobId| {
        let index = usize::try_from(id.0).unwrap_or(usize::MAX);
        names.get(index).map_or("", |name| name.as_ref())
    };
    run.log.to_csv(name)
}
