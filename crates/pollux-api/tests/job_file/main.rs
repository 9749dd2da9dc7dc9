//! Job files through the public door: what is read, what is refused and how, and what is written.

mod command;
mod errors;
mod formats;
mod properties;
mod schema;
mod told;

use pollux_api::job_file::JobFile;

/// A small job as YAML, and what is added to it.
fn with(more: &str) -> String {
    format!("name: resnet\ncommand: [python, train.py]\n{more}")
}

/// The job in a YAML text.
#[track_caller]
fn job(text: &str) -> JobFile {
    JobFile::read(text.as_bytes(), "job.yaml").unwrap_or_else(|error| panic!("{error}"))
}
