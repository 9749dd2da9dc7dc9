//! Job files: what a user wants run, as YAML, TOML or JSON.
//!
//! A file in any of the three formats becomes one tree whose values know where they stand ([`JobFile::read`]); one
//! reader makes a [`JobFile`] of the tree. JSON bodies take the same way without places ([`JobFile::from_json`]),
//! so that every door accepts and refuses the same files with the same words. [`JobFile::to_json`] is the canonical
//! form, with every default filled in: what is journalled and sent.
//!
//! Every error says where it is, what was expected and what to do; no input makes a reader panic. The limits stand
//! with the fields, and all in one page: `docs/reference/job-file.md`.

mod array;
mod check;
mod command;
mod error;
mod fields;
mod json_text;
mod read;
mod schema;
mod sections;
mod spec;
mod toml_text;
mod tree;
mod units;
mod write;
mod yaml_text;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pollux_policy::Priority;
use serde_json::Value;

pub use array::Array;
pub use command::Flags;
pub use error::{JobFileError, Place, Problem};
pub use schema::schema;

use error::Wrong;
use tree::Node;

/// The version of the format.
pub const VERSION: u64 = 1;

/// The most bytes a job file may have.
pub const MOST_BYTES: usize = 1 << 20;

/// What a user wants run. Values that came through a reader or [`JobFile::named`] are within their limits.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    /// What people call it: 1 to 63 lower-case letters, digits and `-`; it begins with a letter.
    pub name: String,
    /// The queue it counts for.
    pub queue: Option<String>,
    /// Who starves last.
    pub priority: Priority,
    /// What each replica runs: the program and its arguments, at most 4096.
    pub command: Vec<String>,
    /// The folder it runs in.
    pub workdir: Option<String>,
    /// Variables of its environment, beyond those the scheduler sets.
    pub env: BTreeMap<String, String>,
    /// What it runs on.
    pub resources: Resources,
    /// What is known of its training.
    pub training: Option<Training>,
    /// Whether its script reports, so that it may begin small and grow. Any other job is rigid.
    pub adapts: bool,
    /// How freely it may be moved.
    pub elastic: Elastic,
    /// Where its state is saved.
    pub checkpoint: Checkpoint,
    /// What happens when it dies.
    pub restart: Restart,
    /// As many jobs as an array has, of one file.
    pub array: Option<Array>,
    /// What to pace its steps by on an emulated cluster.
    pub emulate: Option<Emulate>,
}

/// What a job runs on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resources {
    /// How many GPUs, and which.
    pub gpus: Gpus,
    /// What belongs to each of them.
    pub per_gpu: PerGpu,
}

/// How many GPUs, and which. As many at least as at most is a fixed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpus {
    /// Fewest: 1 to 65 536.
    pub min: u32,
    /// Most; no limit if none.
    pub max: Option<u32>,
    /// What a scheduler that sizes no jobs is to give it, from `min` to `max`.
    pub request: Option<u32>,
    /// Their types; any if empty.
    pub types: BTreeSet<String>,
}

/// What belongs to each GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PerGpu {
    /// Processor cores: above 0, at most 1024.
    pub cpus: Option<f64>,
    /// Bytes of main memory: 1Mi to 1Pi.
    pub memory: Option<u64>,
}

/// What is known of a job's training.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// What it trains; jobs of one application learn from each other.
    pub application: Option<String>,
    /// Its global batch.
    pub batch: Batch,
    /// How the learning rate follows the batch.
    pub lr: LrRule,
    /// Whether gradients may be accumulated.
    pub accumulation: bool,
    /// Work it declares: useful samples until it is done.
    pub work: Option<f64>,
}

/// The global batch of a job, in samples of one step over all replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Whether it may change.
    pub mode: BatchMode,
    /// What the user tuned for; the script's own if none.
    pub initial: Option<u64>,
    /// The most.
    pub max: Option<u64>,
    /// Least and most samples on one GPU in one pass.
    pub per_gpu: Option<(u32, u32)>,
}

/// Whether a job's batch may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BatchMode {
    /// Never: the same samples per step on any number of GPUs.
    Fixed,
    /// Up to `max`, which must be given.
    Bounded,
    /// Up to `max`, or 8 times the initial batch.
    #[default]
    Adaptive,
}

/// How the learning rate follows the batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LrRule {
    /// As suits the optimizer.
    #[default]
    Auto,
    /// AdaScale, for SGD.
    AdaScale,
    /// AdaScale for the Adam family.
    AdamScale,
    /// As the batch.
    Linear,
    /// As the root of the batch.
    Sqrt,
    /// Not at all.
    None,
}

/// How freely a job may be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elastic {
    /// Whether it may be stopped for others once it runs.
    pub preemptible: bool,
    /// How long it is left alone after each start; at most 365 days.
    pub min_runtime: Duration,
    /// Times it may be moved within an hour, 0 to 1000; no limit if none.
    pub max_resizes_per_hour: Option<u32>,
}

/// Where a job's state is saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The folder or address; one of its own if none.
    pub path: Option<String>,
    /// Time between the wish that it leaves and its end by force; at most a day.
    pub grace: Duration,
}

/// What happens when a job dies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart {
    /// Failures without progress in between after which it is given up; 0 to 1000.
    pub max_failures: u32,
    /// Exit codes that count as no failure; 1 to 255.
    pub retry_exit_codes: Vec<i32>,
    /// Exit codes that no further try would mend; 1 to 255, none of them in the other list.
    pub give_up_exit_codes: Vec<i32>,
    /// Time from a start to the first step; 1 s to 365 days.
    pub start_deadline: Duration,
}

/// What to pace steps by on an emulated cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emulate {
    /// The application profile: a name or a file.
    pub profile: String,
}

impl Default for Gpus {
    fn default() -> Self {
        Self { min: 1, max: None, request: None, types: BTreeSet::new() }
    }
}

impl Default for Training {
    fn default() -> Self {
        Self { application: None, batch: Batch::default(), lr: LrRule::Auto, accumulation: true, work: None }
    }
}

impl Default for Elastic {
    fn default() -> Self {
        Self { preemptible: true, min_runtime: Duration::ZERO, max_resizes_per_hour: None }
    }
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self { path: None, grace: Duration::from_secs(30) }
    }
}

impl Default for Restart {
    fn default() -> Self {
        Self {
            max_failures: 3,
            retry_exit_codes: Vec::new(),
            give_up_exit_codes: Vec::new(),
            start_deadline: Duration::from_mins(30),
        }
    }
}

/// How a job file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// YAML 1.2.
    Yaml,
    /// TOML 1.1.
    Toml,
    /// JSON.
    Json,
}

impl Format {
    /// By the file's ending (`.yaml`, `.yml`, `.toml`, `.json`), else by the first line that says something: `{` begins
    /// JSON, `[` or `key =` TOML, and all else is YAML.
    pub fn of(file: &str, text: &str) -> Self {
        let ending = file.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        match ending.as_deref() {
            Some("yaml" | "yml") => return Self::Yaml,
            Some("toml") => return Self::Toml,
            Some("json") => return Self::Json,
            _ => {}
        }
        let mut lines = text.lines().map(str::trim_start);
        let first = lines.find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default();
        let key = first.split([':', '=']).next().unwrap_or_default();
        match first.chars().next() {
            Some('{') => Self::Json,
            Some('[') => Self::Toml,
            _ if first[key.len()..].starts_with('=') => Self::Toml,
            _ => Self::Yaml,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Yaml => "YAML",
            Self::Toml => "TOML",
            Self::Json => "JSON",
        }
    }
}

impl JobFile {
    /// A job that runs a command, with every default.
    pub fn named(name: &str, command: Vec<String>) -> Self {
        Self {
            name: name.to_owned(),
            queue: None,
            priority: Priority::default(),
            command,
            workdir: None,
            env: BTreeMap::new(),
            resources: Resources::default(),
            training: None,
            adapts: false,
            elastic: Elastic::default(),
            checkpoint: Checkpoint::default(),
            restart: Restart::default(),
            array: None,
            emulate: None,
        }
    }

    /// Reads a file of any format; `file` is its name, for the format and for messages.
    ///
    /// ```
    /// use pollux_api::job_file::JobFile;
    ///
    /// let text = "name: resnet\ncommand: python train.py\nresources: {gpus: 1..8}\n";
    /// let job = JobFile::read(text.as_bytes(), "job.yaml").unwrap();
    /// assert_eq!(job.resources.gpus.max, Some(8));
    ///
    /// let error = JobFile::read(b"name: resnet\ncomand: train\n", "job.yaml").unwrap_err();
    /// assert!(error.to_string().starts_with("job.yaml:2:1: `comand` is not a key of a job file; did you mean `command`?"));
    /// ```
    pub fn read(bytes: &[u8], file: &str) -> Result<Self, JobFileError> {
        let text = match plain_text(bytes) {
            Ok(text) => text,
            Err(wrong) => return Err(wrong.in_file(file, &String::from_utf8_lossy(bytes))),
        };
        let tree = match Format::of(file, text) {
            Format::Yaml => yaml_text::parse(text),
            Format::Toml => toml_text::parse(text),
            Format::Json => json_text::parse(text),
        };
        tree.and_then(read::job).map_err(|wrong| wrong.in_file(file, text))
    }

    /// Reads the form of [`Self::to_json`], or any other that a JSON file may have. Errors name the path of the key.
    pub fn from_json(value: &Value) -> Result<Self, JobFileError> {
        read::job(Node::from(value)).map_err(Wrong::anywhere)
    }
}

fn plain_text(bytes: &[u8]) -> Result<&str, Wrong> {
    if bytes.len() > MOST_BYTES {
        return Err(Wrong::nowhere(Problem::TooLong { bytes: bytes.len() }));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    str::from_utf8(bytes).map_err(|error| Wrong::at_byte(error.valid_up_to(), Problem::NotText))
}
