//! The shape of a job file, as a JSON Schema.
//!
//! The types here are never made: they say what a file may look like, for editors and other programs. Readers are by hand,
//! for better messages; a test compares the keys of both.
#![expect(dead_code, reason = "types that are described and never made")]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The JSON Schema (draft 2020-12) of job files, as in `docs/reference/job.schema.json`.
///
/// It knows every key, value and number's limits; what a file says of itself twice, such as fewer GPUs at most than at
/// least, only the readers see.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<Job>().to_value()
}

/// A job of the Pollux scheduler.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "Pollux job file")]
struct Job {
    /// The version of the format.
    #[schemars(range(min = 1, max = 1), extend("default" = 1))]
    version: Option<u64>,
    /// What people call it: lower-case letters, digits and `-`.
    #[schemars(length(max = 63), regex(pattern = "^[a-z]([a-z0-9-]*[a-z0-9])?$"))]
    name: String,
    /// The queue it counts for.
    queue: Option<Word>,
    /// Who starves last; of numbers, below 34 is low and above 66 high.
    #[schemars(extend("default" = "normal"))]
    priority: Option<Priority>,
    /// What each replica runs: a line for the shell, or a program and its arguments.
    command: Command,
    /// The folder it runs in.
    workdir: Option<FilePath>,
    /// Variables of its environment.
    env: Option<BTreeMap<String, Plain>>,
    /// What it runs on.
    resources: Option<Resources>,
    /// What is known of its training.
    training: Option<Training>,
    /// Whether its script reports, so that it may begin small and grow; by default if `training` is given.
    adapts: Option<bool>,
    /// How freely it may be moved.
    elastic: Option<Elastic>,
    /// Where its state is saved.
    checkpoint: Option<Checkpoint>,
    /// What happens when it dies.
    restart: Option<Restart>,
    /// Several jobs of one file.
    array: Option<Array>,
    /// What to pace its steps by on an emulated cluster.
    emulate: Option<Emulate>,
}

/// A word without spaces.
#[derive(JsonSchema)]
#[schemars(transparent)]
struct Word(#[schemars(length(min = 1, max = 63), regex(pattern = r"^\S*$"))] String);

/// A path.
#[derive(JsonSchema)]
#[schemars(transparent)]
struct FilePath(#[schemars(length(min = 1, max = 4096))] String);

/// A time in days, hours, minutes and seconds: `90s`, `5m`, `1h30m`.
#[derive(JsonSchema)]
#[schemars(transparent)]
struct Time(#[schemars(regex(pattern = "^(?=.)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"))] String);

/// Text, or a number or truth value as it is written.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Plain {
    Text(String),
    Number(f64),
    Truth(bool),
}

#[derive(JsonSchema)]
#[schemars(untagged)]
enum Priority {
    Name(PriorityName),
    Number(#[schemars(range(min = 0, max = 100))] u8),
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
enum PriorityName {
    Low,
    Normal,
    High,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
enum Command {
    /// A line for `sh -c`.
    Line(#[schemars(length(min = 1))] String),
    /// A program and its arguments.
    Words(#[schemars(length(min = 1, max = 4096))] Vec<Plain>),
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Resources {
    /// How many GPUs, and which: a number is exactly so many, `1..16` a range.
    #[schemars(extend("default" = {"min": 1}))]
    gpus: Option<Gpus>,
    /// What belongs to each GPU.
    per_gpu: Option<PerGpu>,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
enum Gpus {
    /// Exactly so many.
    Exactly(#[schemars(range(min = 1, max = 65536))] u32),
    /// A number, `1..16` or `2..`.
    Range(#[schemars(regex(pattern = r"^[0-9]+(\.\.([0-9]+)?)?$"))] String),
    /// Limits and types.
    Table(GpuTable),
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct GpuTable {
    /// Fewest.
    #[schemars(range(min = 1, max = 65536), extend("default" = 1))]
    min: Option<u32>,
    /// Most; no limit if absent.
    #[schemars(range(min = 1, max = 65536))]
    max: Option<u32>,
    /// What a scheduler that sizes no jobs is to give it, from `min` to `max`.
    #[schemars(range(min = 1, max = 65536))]
    request: Option<u32>,
    /// Types it may use, or the only one; any if absent.
    types: Option<Types>,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
enum Types {
    One(Word),
    Some(#[schemars(length(max = 100))] Vec<Word>),
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct PerGpu {
    /// Processor cores.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1024))]
    cpus: Option<f64>,
    /// Main memory: `64Gi`, `512Mi`.
    #[schemars(regex(pattern = "^[0-9]+([KMGTP]i|[KMGT])?B?$"))]
    memory: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Training {
    /// What it trains; jobs of one application learn from each other.
    application: Option<Word>,
    /// Its global batch: samples of one step over all replicas.
    batch: Option<Batch>,
    /// How the learning rate follows the batch.
    lr: Option<Lr>,
    /// Whether gradients may be accumulated.
    #[schemars(extend("default" = true))]
    accumulation: Option<bool>,
    /// Useful samples until it is done.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1e18))]
    work: Option<f64>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Batch {
    /// Whether it may change: never, up to `max`, or up to `max` or 8 times the initial batch.
    #[schemars(extend("default" = "adaptive"))]
    mode: Option<Mode>,
    /// What the user tuned for; the script's own if absent.
    #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
    initial: Option<u64>,
    /// The most.
    #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
    max: Option<u64>,
    /// Least and most samples on one GPU in one pass.
    per_gpu: Option<[Samples; 2]>,
}

#[derive(JsonSchema)]
#[schemars(transparent)]
struct Samples(#[schemars(range(min = 1, max = 4_294_967_295_u32))] u32);

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
enum Mode {
    Fixed,
    Bounded,
    Adaptive,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Lr {
    /// AdaScale is for SGD, AdamScale for the Adam family; `auto` chooses.
    #[schemars(extend("default" = "auto"))]
    rule: Option<Rule>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
enum Rule {
    Auto,
    AdaScale,
    AdamScale,
    Linear,
    Sqrt,
    None,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Elastic {
    /// Whether it may be stopped for others once it runs.
    #[schemars(extend("default" = true))]
    preemptible: Option<bool>,
    /// How long it is left alone after each start.
    #[schemars(extend("default" = "0s"))]
    min_runtime: Option<Time>,
    /// Times it may be moved within an hour; no limit if absent.
    #[schemars(range(min = 0, max = 1000))]
    max_resizes_per_hour: Option<u32>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Checkpoint {
    /// The folder or address; one of its own if absent.
    path: Option<FilePath>,
    /// Time between the wish that it leaves and its end by force; at most a day.
    #[schemars(extend("default" = "30s"))]
    grace: Option<Time>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Restart {
    /// Failures without progress in between after which it is given up.
    #[schemars(range(min = 0, max = 1000), extend("default" = 3))]
    max_failures: Option<u32>,
    /// Exit codes that count as no failure.
    #[schemars(length(max = 255), extend("default" = []))]
    retry_exit_codes: Option<Vec<ExitCode>>,
    /// Exit codes that no further try would mend.
    #[schemars(length(max = 255), extend("default" = []))]
    give_up_exit_codes: Option<Vec<ExitCode>>,
    /// Time from a start to the first step.
    #[schemars(extend("default" = "30m"))]
    start_deadline: Option<Time>,
}

#[derive(JsonSchema)]
#[schemars(transparent)]
struct ExitCode(#[schemars(range(min = 1, max = 255))] u8);

#[derive(JsonSchema)]
#[schemars(untagged)]
enum Array {
    /// So many jobs, told apart by `POLLUX_ARRAY_INDEX`, from 0.
    Count(#[schemars(range(min = 1, max = 10000))] u32),
    /// One job for each value of one variable.
    Values(#[schemars(extend("minProperties" = 1, "maxProperties" = 1))] BTreeMap<String, Values>),
}

#[derive(JsonSchema)]
#[schemars(transparent)]
struct Values(#[schemars(length(min = 1, max = 10000))] Vec<Plain>);

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Emulate {
    /// The application profile: a name or a file.
    profile: FilePath,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_file::{read, sections};

    /// The keys that a table of the schema knows are those that its reader knows.
    #[track_caller]
    fn check_keys(pointer: &str, known: &[&str]) {
        let schema = schema();
        let table = schema.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {schema:#}"));
        let mut described: Vec<&str> =
            table["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let mut known = known.to_vec();
        described.sort_unstable();
        known.sort_unstable();
        assert_eq!(described, known, "{pointer}");
        assert_eq!(table["additionalProperties"], Value::Bool(false), "{pointer}");
    }

    #[test]
    fn readers_and_schema_know_the_same_keys() {
        check_keys("", read::KEYS);
        let table = |path: &str| format!("/properties/{}", path.replace('.', "/properties/"));
        check_keys(&table("resources"), sections::RESOURCES);
        check_keys(&(table("resources.gpus") + "/anyOf/0/anyOf/2"), sections::GPUS);
        check_keys(&table("resources.per_gpu"), sections::PER_GPU);
        check_keys(&table("training"), sections::TRAINING);
        check_keys(&table("training.batch"), sections::BATCH);
        check_keys(&table("training.lr"), sections::LR);
        check_keys(&table("elastic"), sections::ELASTIC);
        check_keys(&table("checkpoint"), sections::CHECKPOINT);
        check_keys(&table("restart"), sections::RESTART);
        check_keys(&table("emulate"), sections::EMULATE);
    }
}
