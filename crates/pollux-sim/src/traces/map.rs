//! From anonymous jobs to applications.

use std::collections::BTreeMap;

use super::{Trace, TraceJob, Work};
use crate::random;
use crate::workload::philly::Class;
use crate::workload::requests::{self, Request};
use crate::workload::{GenerateError, Runtimes, Submission, Workload};

/// Makes a workload of a trace.
///
/// A job trains the application that the trace names, if it is known; otherwise one of those in the class of its
/// GPU-time, each as likely as the others. It asks for the GPUs of the trace, as many of them as the application can
/// use, and the batch that is fastest there. With [`Work::Trace`] its work is such that it takes the GPU-time of the
/// trace on these GPUs at this batch, restarts aside. Jobs are named `APPLICATION-LINE`.
///
/// A job's application depends on seed, line, GPU-time and applications alone: other parts of a trace change none.
pub fn workload_of(
    trace: &Trace,
    applications: &BTreeMap<String, &dyn Runtimes>,
    seed: u64,
) -> Result<Workload, GenerateError> {
    let classes = Classes::of(applications)?;
    let mut runs: BTreeMap<(&str, u32), Option<(Request, f64)>> = BTreeMap::new();
    let mut jobs = Vec::with_capacity(trace.jobs.len());
    for job in &trace.jobs {
        let application = classes.draw(job, applications, seed);
        let (request, secs) = runs
            .entry((application, job.gpus))
            .or_insert_with(|| requests::fastest_near(applications[application], job.gpus))
            .ok_or_else(|| GenerateError::NeverRuns { application: application.to_owned() })?;
        let work = match trace.spec.work {
            Work::Profile => None,
            Work::Trace => Some(job.gpu_secs / (f64::from(request.gpus) * secs)),
        };
        jobs.push(Submission {
            name: format!("{application}-{}", job.line),
            at_secs: job.at_secs,
            application: application.to_owned(),
            gpus: request.gpus,
            batch: request.batch,
            work,
            group: None,
        });
    }
    Ok(Workload { name: trace.spec.label(), jobs })
}

/// Applications by class.
struct Classes<'a>(BTreeMap<Class, Vec<&'a str>>);

impl<'a> Classes<'a> {
    fn of(applications: &'a BTreeMap<String, &dyn Runtimes>) -> Result<Self, GenerateError> {
        let mut classes: BTreeMap<Class, Vec<&str>> = BTreeMap::new();
        for (name, application) in applications {
            if let Some(class) = requests::class(name, *application) {
                classes.entry(class).or_default().push(name);
            }
        }
        if classes.is_empty() {
            return Err(GenerateError::NeverRuns {
                application: applications.keys().cloned().collect::<Vec<_>>().join(", "),
            });
        }
        Ok(Self(classes))
    }

    fn draw(&self, job: &TraceJob, applications: &'a BTreeMap<String, &dyn Runtimes>, seed: u64) -> &'a str {
        if let Some(named) = &job.application
            && let Some((known, _)) = applications.get_key_value(named)
        {
            return known;
        }
        let members = self.nearest(Class::of_gpu_hours(job.gpu_secs / 3_600.0));
        members[random::numbered(seed, "trace: applications", job.line).below(members.len())]
    }

    /// The members of a class, or where it has none, of the largest smaller one, or else of the smallest larger one.
    fn nearest(&self, class: Class) -> &[&'a str] {
        let smaller = self.0.range(..=class).next_back();
        let found = smaller.or_else(|| self.0.range(class..).next());
        found.map_or(&[], |(_, members)| members)
    }
}
