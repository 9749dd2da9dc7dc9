//! Three formats, one job.

use std::time::Duration;

use pollux_api::job_file::{Array, Batch, BatchMode, Format, JobFile, LrRule, Training};
use pollux_policy::Priority;

use crate::{job, with};

const YAML: &str = r"
version: 1
name: resnet50
queue: vision
priority: high
command: [python, train.py, --lr, 1e-3, --epochs, 90, --amp, true]
workdir: /data/resnet
env: {DATA: /data, SEED: 7, RATE: 0.10, DEBUG: false}
resources:
  gpus: {min: 1, max: 16, types: [h100, a100]}
  per_gpu: {cpus: 7.5, memory: 64Gi}
training:
  application: resnet50
  batch: {mode: bounded, initial: 256, max: 8192, per_gpu: [16, 512]}
  lr: {rule: adascale}
  accumulation: false
  work: 1.2e8
elastic: {preemptible: false, min_runtime: 5m, max_resizes_per_hour: 6}
checkpoint: {path: /ckpt/resnet, grace: 60s}
restart: {max_failures: 5, retry_exit_codes: [33, 34], give_up_exit_codes: [2], start_deadline: 1h30m}
array: {FOLD: [a, 2]}
emulate: {profile: resnet50}
";

const TOML: &str = r#"
version = 1
name = "resnet50"
queue = "vision"
priority = 90
command = ["python", "train.py", "--lr", 1e-3, "--epochs", 90, "--amp", true]
workdir = "/data/resnet"
adapts = true
emulate.profile = "resnet50"

[env]
DATA = "/data"
SEED = 7
RATE = 0.10
DEBUG = false

[resources]
gpus = {min = 1, max = 16, types = ["h100", "a100"]}
per_gpu = {cpus = 7.5, memory = "65536Mi"}

[training]
application = "resnet50"
batch = {mode = "bounded", initial = 256, max = 8192, per_gpu = [16, 512]}
lr.rule = "adascale"
accumulation = false
work = 120_000_000

[elastic]
preemptible = false
min_runtime = "300s"
max_resizes_per_hour = 6

[checkpoint]
path = "/ckpt/resnet"
grace = "1m"

[restart]
max_failures = 5
retry_exit_codes = [33, 34]
give_up_exit_codes = [2]
start_deadline = "90m"

[array]
FOLD = ["a", 2]
"#;

const JSON: &str = r#"{
    "version": 1, "name": "resnet50", "queue": "vision", "priority": "high",
    "command": ["python", "train.py", "--lr", 1e-3, "--epochs", 90, "--amp", true],
    "workdir": "/data/resnet",
    "env": {"DATA": "/data", "SEED": 7, "RATE": 0.10, "DEBUG": false},
    "resources": {"gpus": {"min": 1, "max": 16, "types": ["h100", "a100"]}, "per_gpu": {"cpus": 7.5, "memory": "64GiB"}},
    "training": {
        "application": "resnet50",
        "batch": {"mode": "bounded", "initial": 256, "max": 8192, "per_gpu": [16, 512]},
        "lr": {"rule": "adascale"}, "accumulation": false, "work": 1.2e8
    },
    "elastic": {"preemptible": false, "min_runtime": "5m", "max_resizes_per_hour": 6},
    "checkpoint": {"path": "/ckpt/resnet", "grace": "60s"},
    "restart": {
        "max_failures": 5, "retry_exit_codes": [33, 34], "give_up_exit_codes": [2], "start_deadline": "1h30m"
    },
    "array": {"FOLD": ["a", 2]},
    "emulate": {"profile": "resnet50"}
}"#;

#[track_caller]
fn read(text: &str, file: &str) -> JobFile {
    JobFile::read(text.as_bytes(), file).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_key_is_read() {
    let job = read(YAML, "job.yaml");
    assert_eq!((job.name.as_str(), job.queue.as_deref()), ("resnet50", Some("vision")));
    assert_eq!((job.priority, job.workdir.as_deref()), (Priority::High, Some("/data/resnet")));
    assert_eq!(job.command, ["python", "train.py", "--lr", "1e-3", "--epochs", "90", "--amp", "true"]);
    let env: Vec<String> = job.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(env, ["DATA=/data", "DEBUG=false", "RATE=0.10", "SEED=7"]);
    let gpus = &job.resources.gpus;
    assert_eq!((gpus.min, gpus.max), (1, Some(16)));
    assert!(gpus.types.iter().eq(["a100", "h100"]));
    assert_eq!((job.resources.per_gpu.cpus, job.resources.per_gpu.memory), (Some(7.5), Some(64 << 30)));
    let batch =
        Batch { mode: BatchMode::Bounded, initial: Some(256), max: Some(8_192), per_gpu: Some((16, 512)) };
    let application = Some("resnet50".to_owned());
    let training =
        Training { application, batch, lr: LrRule::AdaScale, accumulation: false, work: Some(1.2e8) };
    assert_eq!(job.training, Some(training));
    assert!(job.adapts, "a job with `training` reports");
    assert_eq!((job.elastic.preemptible, job.elastic.min_runtime.as_secs()), (false, 300));
    assert_eq!(job.elastic.max_resizes_per_hour, Some(6));
    assert_eq!((job.checkpoint.path.as_deref(), job.checkpoint.grace.as_secs()), (Some("/ckpt/resnet"), 60));
    assert_eq!((job.restart.max_failures, job.restart.start_deadline.as_secs()), (5, 5_400));
    assert_eq!(
        (&job.restart.retry_exit_codes[..], &job.restart.give_up_exit_codes[..]),
        (&[33, 34][..], &[2][..])
    );
    let values = vec!["a".to_owned(), "2".to_owned()];
    assert_eq!(job.array, Some(Array::Values { variable: "FOLD".to_owned(), values }));
    assert_eq!(job.emulate.unwrap().profile, "resnet50");
}

#[test]
fn three_formats_say_the_same() {
    let expected = read(YAML, "job.yml");
    for (text, file) in [(TOML, "job.toml"), (JSON, "job.json"), (YAML, "-"), (TOML, "-"), (JSON, "stdin")] {
        assert_eq!(read(text, file), expected, "{file}");
    }
}

#[test]
fn the_format_is_told_by_the_ending_or_the_first_line() {
    for (file, text, format) in [
        ("a.YML", "{", Format::Yaml),
        ("a.toml", "a: 1", Format::Toml),
        ("-", "# job = 1\n\n  {\"name\": 1}", Format::Json),
        ("-", "[resources]", Format::Toml),
        ("-", "name = \"a: b\"", Format::Toml),
        ("-", "command: a=b", Format::Yaml),
        ("job.txt", "", Format::Yaml),
    ] {
        assert_eq!(Format::of(file, text), format, "{file}: {text}");
    }
}

#[test]
fn what_is_not_said_has_a_default() {
    let job = job("name: a\ncommand: train --fast | tee log\n");
    assert_eq!(job, JobFile::named("a", ["sh", "-c", "train --fast | tee log"].map(str::to_owned).to_vec()));
    assert!(!job.adapts, "nobody knows whether it reports");
    assert_eq!(job.checkpoint.grace, Duration::from_secs(30));
    assert_eq!(
        job,
        crate::job("name: a\ncommand: train --fast | tee log\nenv:\nqueue: ~\n"),
        "nothing is nothing"
    );
}

#[track_caller]
fn check_gpus(text: &str, min: u32, max: Option<u32>) {
    let gpus = job(&with(&format!("resources: {{gpus: {text}}}\n"))).resources.gpus;
    assert_eq!((gpus.min, gpus.max), (min, max), "{text}");
}

#[test]
fn gpus_are_a_number_a_range_or_a_table() {
    check_gpus("4", 4, Some(4));
    check_gpus("1..16", 1, Some(16));
    check_gpus("'2..'", 2, None);
    check_gpus("{max: 8}", 1, Some(8));
    check_gpus("{min: 3, types: t4}", 3, None);
}

#[test]
fn priorities_are_words_or_numbers() {
    for (text, priority) in [
        ("low", Priority::Low),
        ("0", Priority::Low),
        ("33", Priority::Low),
        ("34", Priority::Normal),
        ("66", Priority::Normal),
        ("67", Priority::High),
        ("100", Priority::High),
    ] {
        assert_eq!(job(&with(&format!("priority: {text}\n"))).priority, priority, "{text}");
    }
}

#[test]
fn only_true_and_false_are_truth_values() {
    let job = job(&with("env: {COUNTRY: no, ON: on, V: 012, TEXT: \"1\"}\n"));
    let values: Vec<&str> = job.env.values().map(String::as_str).collect();
    assert_eq!(values, ["no", "on", "1", "012"]);
}

#[test]
fn anchors_and_merged_tables_are_resolved() {
    let text = "name: a\ncommand: b\nenv: &env {X: 1e-3}\narray: {Y: [*env]}\n";
    assert!(JobFile::read(text.as_bytes(), "a.yaml").is_err(), "a table is no value");
    let text = "name: a\ncommand: [b, &rate 1e-3, *rate]\n";
    assert_eq!(job(text).command, ["b", "1e-3", "1e-3"]);
}
