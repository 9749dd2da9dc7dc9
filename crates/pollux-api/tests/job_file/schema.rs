//! The JSON Schema: the one that is published is the one that is made, and it agrees with the readers.

use std::fs;
use std::path::PathBuf;

use pollux_api::job_file::{JobFile, schema};
use serde_json::{Value, json};

fn root() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect()
}

#[test] // `UPDATE_GOLDEN=1 cargo test -p pollux-api --test job_file schema` writes it anew.
fn the_published_schema_is_the_one_that_is_made() {
    let file = root().join("docs/reference/job.schema.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, serde_json::to_string_pretty(&schema()).unwrap() + "\n").unwrap();
    }
    // Compared as values: the order of keys is up to how the program is built.
    let published: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert!(
        published == schema(),
        "UPDATE_GOLDEN=1 writes the schema anew; read the difference before believing it"
    );
}

/// Why a value does not fit a schema; none if it does. It knows the words of the schema that are used and no others.
fn misfit(schema: &Value, value: &Value) -> Option<String> {
    if *schema == Value::Bool(true) {
        return None;
    }
    let words = schema.as_object().unwrap_or_else(|| panic!("{schema}"));
    words.iter().find_map(|(word, says)| {
        let wrong = |holds: bool| (!holds).then(|| format!("{value} breaks {word}: {says}"));
        let length = || value.as_array().map(Vec::len).or(value.as_str().map(|text| text.chars().count()));
        let within = |test: fn(f64, f64) -> bool| {
            value.as_f64().is_none_or(|number| test(number, says.as_f64().unwrap()))
        };
        let limit = || usize::try_from(says.as_u64().unwrap()).unwrap();
        match word.as_str() {
            "$schema" | "title" | "description" | "default" | "format" => None,
            // A look at names is enough; the readers know all patterns.
            "pattern" => wrong(value.as_str().is_none_or(|text| {
                !says.as_str().unwrap().contains("[a-z]") || text.to_lowercase() == *text
            })),
            "type" => {
                let kinds: Vec<&str> = says.as_array().map_or_else(
                    || vec![says.as_str().unwrap()],
                    |kinds| kinds.iter().map(|kind| kind.as_str().unwrap()).collect(),
                );
                wrong(kinds.iter().any(|kind| is_a(kind, value)))
            }
            "const" => wrong(value == says),
            "enum" => wrong(says.as_array().unwrap().contains(value)),
            "minimum" => wrong(within(|number, limit| number >= limit)),
            "maximum" => wrong(within(|number, limit| number <= limit)),
            "exclusiveMinimum" => wrong(within(|number, limit| number > limit)),
            "minLength" | "minItems" => wrong(length().is_none_or(|length| length >= limit())),
            "maxLength" | "maxItems" => wrong(length().is_none_or(|length| length <= limit())),
            "minProperties" => wrong(value.as_object().is_none_or(|table| table.len() >= limit())),
            "maxProperties" => wrong(value.as_object().is_none_or(|table| table.len() <= limit())),
            "required" => {
                let has = |key: &Value| value.get(key.as_str().unwrap()).is_some();
                wrong(!value.is_object() || says.as_array().unwrap().iter().all(has))
            }
            "items" => value.as_array()?.iter().find_map(|item| misfit(says, item)),
            "properties" => {
                let entries = value.as_object()?.iter();
                entries
                    .filter_map(|(key, value)| Some((says.get(key)?, value)))
                    .find_map(|(says, value)| misfit(says, value))
            }
            "additionalProperties" => {
                let known = |key: &str| words.get("properties").is_some_and(|known| known.get(key).is_some());
                let mut others = value.as_object()?.iter().filter(|(key, _)| !known(key));
                if *says == Value::Bool(false) {
                    others.next().map(|(key, _)| format!("{key} is not known"))
                } else {
                    others.find_map(|(_, value)| misfit(says, value))
                }
            }
            "anyOf" => {
                let misfits: Vec<String> =
                    says.as_array().unwrap().iter().map_while(|one| misfit(one, value)).collect();
                (misfits.len() == says.as_array().unwrap().len()).then(|| misfits.join("; "))
            }
            other => panic!("the check does not know `{other}`"),
        }
    })
}

fn is_a(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type `{other}`"),
    }
}

/// The examples, read.
fn examples() -> Vec<(String, JobFile)> {
    let folder = root().join("examples/jobs");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let job = JobFile::read(&fs::read(&path).unwrap(), &name).unwrap_or_else(|error| panic!("{error}"));
        (name, job)
    };
    let mut jobs: Vec<_> = files.map(read).collect();
    jobs.sort_by(|(one, _), (other, _)| one.cmp(other));
    jobs
}

#[test]
fn examples_are_read_and_fit_the_schema() {
    let examples = examples();
    assert!(examples.len() >= 4, "{examples:?}");
    for (name, job) in examples {
        assert_eq!(misfit(&schema(), &job.to_json()), None, "{name}");
    }
}

/// Readers and schema are of one mind about a file.
#[track_caller]
fn check(key: &str, value: &Value, fits: bool) {
    let mut file = json!({"name": "a", "command": "b"});
    file[key] = value.clone();
    let (read, misfit) = (JobFile::from_json(&file), misfit(&schema(), &file));
    assert_eq!((read.is_ok(), misfit.is_none()), (fits, fits), "{file}: {read:?}, {misfit:?}");
}

#[test]
fn readers_and_schema_are_of_one_mind() {
    for (key, value) in [
        ("version", json!(1)),
        ("queue", json!(null)),
        ("priority", json!("high")),
        ("priority", json!(100)),
        ("command", json!(["a", 1, 2.5, true])),
        ("env", json!({"A": 1, "B": "x", "C": false})),
        ("resources", json!({"gpus": 4})),
        ("resources", json!({"gpus": "1..4", "per_gpu": {"cpus": 0.5, "memory": "64Gi"}})),
        ("resources", json!({"gpus": {"min": 1, "max": null, "types": "t4"}})),
        (
            "training",
            json!({"batch": {"mode": "bounded", "max": 8, "per_gpu": [1, 2]}, "lr": {"rule": "none"}}),
        ),
        ("elastic", json!({"min_runtime": "1h30m", "max_resizes_per_hour": 0})),
        ("checkpoint", json!({"path": "s3://a", "grace": "0s"})),
        ("restart", json!({"max_failures": 0, "retry_exit_codes": [1, 255]})),
        ("array", json!(10)),
        ("array", json!({"SEED": [1, "a"]})),
        ("emulate", json!({"profile": "bert"})),
    ] {
        check(key, &value, true);
    }
    for (key, value) in [
        ("version", json!(2)),
        ("name", json!("A")),
        ("name", json!("a".repeat(64))),
        ("queue", json!("")),
        ("priority", json!(101)),
        ("priority", json!("urgent")),
        ("command", json!([])),
        ("command", json!(7)),
        ("comand", json!("a")),
        ("env", json!({"A": []})),
        ("resources", json!({"gpus": 0})),
        ("resources", json!({"gpus": {"mim": 1}})),
        ("resources", json!({"per_gpu": {"cpus": 0}})),
        ("training", json!({"batch": {"per_gpu": [1, 2, 3]}})),
        ("training", json!({"lr": {"rule": "magic"}})),
        ("elastic", json!({"min_runtime": 90})),
        ("restart", json!({"retry_exit_codes": [0]})),
        ("array", json!(0)),
        ("array", json!({"A": [1], "B": [2]})),
        ("array", json!({"A": []})),
        ("emulate", json!({})),
        ("adapts", json!("yes")),
    ] {
        check(key, &value, false);
    }
}

#[test]
fn what_the_reference_shows_is_read() {
    let page = fs::read_to_string(root().join("docs/reference/job-file.md")).unwrap();
    let blocks: Vec<&str> =
        page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 9, "{blocks:?}");
    for block in blocks {
        let more = if block.contains("command:") { "" } else { "name: a\ncommand: b\n" };
        let text = format!("{more}{block}");
        JobFile::read(text.as_bytes(), "job-file.yaml").unwrap_or_else(|error| panic!("{error}"));
    }
}
