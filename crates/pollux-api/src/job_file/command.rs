//! Jobs and changes to them from a command line.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::error::Problem;
use super::{JobFile, JobFileError, check};

/// What a command line says of a job beside its command, as text; what is not said stays as it is. The values are those
/// of the job file, and errors name the option.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--name`.
    pub name: Option<String>,
    /// `--queue`.
    pub queue: Option<String>,
    /// `--priority`: `low`, `normal`, `high` or 0 to 100.
    pub priority: Option<String>,
    /// `--gpus`: `4`, `1..16` or `2..`.
    pub gpus: Option<String>,
    /// `--type`, any number of times: GPU types it may use.
    pub types: Vec<String>,
    /// `--cpus`, for each GPU.
    pub cpus: Option<String>,
    /// `--memory`, for each GPU: `64Gi`.
    pub memory: Option<String>,
    /// `--workdir`.
    pub workdir: Option<String>,
    /// `--env NAME=VALUE`, any number of times.
    pub env: Vec<String>,
    /// `--adapts`: its script reports.
    pub adapts: bool,
    /// `--application`: what it trains.
    pub application: Option<String>,
    /// `--min-runtime`: `5m`.
    pub min_runtime: Option<String>,
    /// `--checkpoint`: where its state is saved.
    pub checkpoint: Option<String>,
    /// `--grace`: `30s`.
    pub grace: Option<String>,
    /// `--max-failures`.
    pub max_failures: Option<String>,
    /// `--array`: so many of it.
    pub array: Option<String>,
    /// `--profile`: what to pace its steps by on an emulated cluster.
    pub profile: Option<String>,
}

/// Options and the keys they set.
const OPTIONS: [(&str, &str); 15] = [
    ("--name", "name"),
    ("--queue", "queue"),
    ("--priority", "priority"),
    ("--gpus", "resources.gpus"),
    ("--type", "resources.gpus.types"),
    ("--cpus", "resources.per_gpu.cpus"),
    ("--memory", "resources.per_gpu.memory"),
    ("--workdir", "workdir"),
    ("--application", "training.application"),
    ("--min-runtime", "elastic.min_runtime"),
    ("--checkpoint", "checkpoint.path"),
    ("--grace", "checkpoint.grace"),
    ("--max-failures", "restart.max_failures"),
    ("--array", "array"),
    ("--profile", "emulate.profile"),
];

/// Words of a shell that prepare what is run.
const PREPARING: [&str; 6] = ["cd", "source", ".", "export", "set", "mkdir"];

/// Options whose keys hold numbers.
const NUMBERS: [&str; 4] = ["--priority", "--cpus", "--max-failures", "--array"];

/// Programs that run another, which says more of a job.
const RUNNERS: [&str; 12] = [
    "python",
    "python3",
    "sh",
    "bash",
    "torchrun",
    "accelerate",
    "deepspeed",
    "env",
    "exec",
    "uv",
    "run",
    "launch",
];

impl JobFile {
    /// The job that runs `command`, as `pollux submit -- python train.py` has it. It is named after the script unless the
    /// flags say otherwise.
    ///
    /// ```
    /// use pollux_api::job_file::{Flags, JobFile};
    ///
    /// let command = ["python", "train.py", "--lr", "0.1"].map(str::to_owned);
    /// let flags = Flags { gpus: Some("1..8".to_owned()), ..Flags::default() };
    /// let job = JobFile::from_command(&command, &flags).unwrap();
    /// assert_eq!((job.name.as_str(), job.resources.gpus.max), ("train", Some(8)));
    /// ```
    pub fn from_command(command: &[String], flags: &Flags) -> Result<Self, JobFileError> {
        let name = script(command.iter().map(String::as_str)).and_then(check::as_name);
        let file = json!({"name": name.unwrap_or_else(|| "job".to_owned()), "command": command});
        changed(file, flags)
    }

    /// The same job with what the flags say.
    pub fn with_flags(&self, flags: &Flags) -> Result<Self, JobFileError> {
        changed(self.to_json(), flags)
    }

    /// The same job with paths that do not depend on where it was submitted: the folder it runs in, by default `folder`
    /// itself, where its state is saved and a profile that is a file. Addresses (`s3://..`) stay.
    #[must_use]
    pub fn in_folder(&self, folder: &str) -> Self {
        let within = |path: &str| Path::new(folder).join(path).to_string_lossy().into_owned();
        let mut job = self.clone();
        job.workdir = Some(self.workdir.as_deref().map_or(folder.to_owned(), within));
        if let Some(path) = job.checkpoint.path.as_mut().filter(|path| !path.contains("://")) {
            *path = within(path);
        }
        if let Some(emulate) = job.emulate.as_mut().filter(|emulate| is_file(&emulate.profile)) {
            emulate.profile = within(&emulate.profile);
        }
        job
    }
}

/// Whether a profile is a file and no name.
fn is_file(profile: &str) -> bool {
    profile.contains('/') || Path::new(profile).extension().is_some()
}

/// A job file with what the flags say put into it, as a reader has it.
fn changed(mut file: Value, flags: &Flags) -> Result<JobFile, JobFileError> {
    let given = |option: &str| match option {
        "--name" => flags.name.as_deref(),
        "--queue" => flags.queue.as_deref(),
        "--priority" => flags.priority.as_deref(),
        "--gpus" => flags.gpus.as_deref(),
        "--cpus" => flags.cpus.as_deref(),
        "--memory" => flags.memory.as_deref(),
        "--workdir" => flags.workdir.as_deref(),
        "--application" => flags.application.as_deref(),
        "--min-runtime" => flags.min_runtime.as_deref(),
        "--checkpoint" => flags.checkpoint.as_deref(),
        "--grace" => flags.grace.as_deref(),
        "--max-failures" => flags.max_failures.as_deref(),
        "--array" => flags.array.as_deref(),
        "--profile" => flags.profile.as_deref(),
        _ => None,
    };
    for (option, key) in OPTIONS {
        match (option, given(option)) {
            (_, None) => {}
            // A range keeps the types that a file has.
            ("--gpus", Some(text)) => set_gpus(&mut file, text)?,
            (_, Some(text)) if NUMBERS.contains(&option) => set(&mut file, key, number(text)),
            (_, Some(text)) => set(&mut file, key, text.into()),
        }
    }
    if !flags.types.is_empty() {
        set(&mut file, "resources.gpus.types", json!(flags.types));
    }
    if flags.adapts {
        set(&mut file, "adapts", json!(true));
    }
    for variable in &flags.env {
        let Some((name, value)) = variable.split_once('=') else {
            let (key, found) = ("--env".to_owned(), crate::quote::Quoted(variable).to_string());
            let problem = Problem::Value { key, found, expected: "a variable such as `SEED=1`".into() };
            return Err(alone(problem));
        };
        // A name may have dots, which would be taken for a path.
        if let Some(env) = table(&mut file, "env") {
            env.insert(name.to_owned(), value.into());
        }
    }
    JobFile::from_json(&file).map_err(by_option)
}

fn alone(problem: Problem) -> JobFileError {
    JobFileError { file: None, place: None, line: None, problem: Box::new(problem) }
}

/// Names the option instead of the key it sets.
fn by_option(mut error: JobFileError) -> JobFileError {
    if let Problem::Value { key, .. } | Problem::Conflict { key, .. } = &mut *error.problem {
        let of_list = key.split('[').next().unwrap_or_default();
        let of_list = of_list.trim_end_matches(".min").trim_end_matches(".max");
        if let Some((option, _)) = OPTIONS.iter().find(|(_, known)| *known == of_list) {
            *key = (*option).to_owned();
        }
    }
    error
}

fn set_gpus(file: &mut Value, text: &str) -> Result<(), JobFileError> {
    let Some((min, max)) = super::units::range(text) else {
        let (key, found) = ("--gpus".to_owned(), crate::quote::Quoted(text).to_string());
        return Err(alone(Problem::Value {
            key,
            found,
            expected: "GPUs such as `4`, `1..16` or `2..`".into(),
        }));
    };
    set(file, "resources.gpus.min", json!(min));
    set(file, "resources.gpus.max", json!(max));
    set(file, "resources.gpus.request", Value::Null);
    Ok(())
}

/// A number where it is one; what else it is, the reader says.
fn number(text: &str) -> Value {
    let number = serde_json::from_str::<serde_json::Number>(text);
    number.map_or_else(|_| text.into(), Value::Number)
}

/// Puts a value at a path, and tables on the way where there are none.
fn set(file: &mut Value, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            if let Value::Object(entries) = file {
                entries.insert(path.to_owned(), value);
            }
        }
        Some((key, rest)) => {
            if table(file, key).is_some() {
                set(&mut file[key], rest, value);
            }
        }
    }
}

/// The table of a key, which is made if there is none.
fn table<'a>(file: &'a mut Value, key: &str) -> Option<&'a mut Map<String, Value>> {
    let entry = file.as_object_mut()?.entry(key).or_insert_with(|| json!({}));
    if entry.is_null() {
        *entry = json!({});
    }
    entry.as_object_mut()
}

/// The word that says most of a command: the script that is run, without its folder and ending.
fn script<'a>(words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut words = words.filter(|word| !word.starts_with('-') && !word.contains('='));
    let mut latest = None;
    loop {
        let Some(word) = words.next() else { return latest };
        if word.trim().contains(' ') {
            // A line of a shell: its first part that is no preparation.
            let mut parts = word.split(['&', ';', '\n']).map(str::trim).filter(|part| !part.is_empty());
            let is_work = |part: &&str| !PREPARING.iter().any(|word| part.split(' ').next() == Some(word));
            return parts.find(is_work).and_then(|part| script(part.split_whitespace()));
        }
        let name = word.rsplit('/').next().unwrap_or(word);
        let name = name.strip_suffix(".py").or(name.strip_suffix(".sh")).unwrap_or(name);
        latest = Some(name);
        if !RUNNERS.contains(&name) {
            return latest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_script(line: &str, expected: &str) {
        assert_eq!(script(line.split(' ')), Some(expected), "{line}");
    }

    #[test]
    fn jobs_are_named_after_their_script() {
        check_script("python train.py --lr 1", "train");
        check_script("/usr/bin/env python3 -u src/run_glue.py", "run_glue");
        check_script("torchrun --standalone main.py", "main");
        check_script("python -m pkg.train", "pkg.train");
        check_script("./train --gpus 4", "train");
        check_script("python", "python");
        assert_eq!(script(["sh", "-c", "cd data && python x.py | tee log"].into_iter()), Some("x"));
        assert_eq!(script([].into_iter()), None);
    }
}
