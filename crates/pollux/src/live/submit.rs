//! Jobs on their way in.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use pollux_api::job_file::{Flags, JobFile};
use pollux_api::rest::{Submission, Submitted};

use super::args::{DryRun, SubmitArgs, WaitArgs};
use super::cluster::imagined;
use super::failure::LiveFailure;
use super::place::client;
use super::show::{self, JOB_COLUMNS, job_row};
use super::watch;
use crate::output::{self, Output};

pub(crate) fn run(args: &SubmitArgs) -> Result<Output, LiveFailure> {
    let file = file(args)?;
    if args.dry_run == Some(DryRun::Client) {
        return show::one(args.shown.output, &file.to_json(), || {
            format!("{} is a good job file\n", file.name)
        });
    }
    let client = client(&args.shown.at)?;
    let body = Submission { file: file.to_json(), dry_run: args.dry_run.is_some() };
    // A call that is repeated after a broken connection submits nothing twice.
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let key = format!("{}-{nanos}", std::process::id());
    let submitted: Submitted = client.send("POST", "/v1/jobs", &[("Idempotency-Key", &key)], Some(&body))?;
    if let Some(plan) = &submitted.plan {
        return imagined(args.shown.output, plan);
    }
    let mut output =
        show::rows(args.shown.output, &submitted.jobs, &JOB_COLUMNS, job_row, |job| job.name.clone())?;
    if let Some(job) = submitted.jobs.first() {
        let name = &job.name;
        output.notes.push(format!("follow it with `pollux logs -f {name}`, ask `pollux explain job {name}`"));
    }
    if args.wait {
        output.deliver().map_err(|failure| LiveFailure::Other(Box::new(failure)))?;
        let jobs = submitted.jobs.into_iter().map(|job| job.name).collect();
        return watch::wait(&WaitArgs { at: args.shown.at.clone(), jobs, timeout: None });
    }
    Ok(output)
}

fn file(args: &SubmitArgs) -> Result<JobFile, LiveFailure> {
    let flags = Flags {
        name: args.name.clone(),
        gpus: args.gpus.clone(),
        queue: args.queue.clone(),
        priority: args.priority.clone(),
        adapts: args.adapts,
        types: args.types.clone(),
        cpus: args.cpus.clone(),
        memory: args.memory.clone(),
        workdir: args.workdir.clone(),
        env: args.env.clone(),
        application: args.application.clone(),
        min_runtime: args.min_runtime.clone(),
        checkpoint: args.checkpoint.clone(),
        grace: args.grace.clone(),
        max_failures: args.max_failures.clone(),
        array: args.array.clone(),
        profile: args.profile.clone(),
    };
    let file = match &args.file {
        Some(path) => read(path)?.with_flags(&flags)?,
        None => JobFile::from_command(&args.command, &flags)?,
    };
    Ok(in_this_folder(&file))
}

/// A job file.
pub(super) fn read(path: &Path) -> Result<JobFile, LiveFailure> {
    let (label, bytes) =
        output::read_or_stdin(path).map_err(|failure| LiveFailure::Other(Box::new(failure)))?;
    Ok(JobFile::read(&bytes, &label)?)
}

/// Jobs run where they were submitted, unless their file says otherwise.
pub(super) fn in_this_folder(file: &JobFile) -> JobFile {
    std::env::current_dir()
        .map_or_else(|_| file.clone(), |folder| file.in_folder(&folder.display().to_string()))
}
