//! What is wrong with a file is said with its place, what was expected and what to do.

use pollux_api::job_file::{JobFile, Problem};
use serde_json::json;

use crate::with;

/// The whole message about a file.
fn message(text: &str, file: &str) -> String {
    JobFile::read(text.as_bytes(), file).expect_err(text).to_string()
}

/// The first line of the message about a small job and what is added to it, as from the second line on.
#[track_caller]
fn check(more: &str, expected: &str) {
    let message = message(&with(more), "job.yaml");
    assert_eq!(message.lines().next().unwrap(), format!("job.yaml:{expected}"));
}

#[test]
fn the_line_is_shown_with_a_mark() {
    let message = message(&with("resources: {gpus: 1-4}\n"), "job.yaml");
    assert_eq!(
        message,
        "\
job.yaml:3:19: `resources.gpus`: `1-4` is not GPUs such as `4`, `1..16` or `2..`, from 1 to 65536
   |
 3 | resources: {gpus: 1-4}
   |                   ^"
    );
}

#[test]
fn places_are_known_in_every_format() {
    let toml = "name = \"a\"\ncommand = \"b\"\n[resources]\ngpus = {mim = 2}\n";
    let json = "{\"name\": \"a\", \"command\": \"b\",\n  \"resources\": {\"gpus\": {\"mim\": 2}}}";
    let yaml = "name: a\ncommand: b\nresources:\n  gpus:\n    mim: 2\n";
    let problem = "`resources.gpus.mim` is not a key of a job file; did you mean `min`?";
    for (text, file, place) in [(toml, "a.toml", "4:9"), (json, "a.json", "2:26"), (yaml, "a.yaml", "5:5")] {
        let message = message(text, file);
        assert_eq!(message.lines().next().unwrap(), format!("{file}:{place}: {problem}"));
    }
}

#[test]
fn unknown_keys_are_met_with_the_nearest_or_all() {
    check("resuorces: {}\n", "3:1: `resuorces` is not a key of a job file; did you mean `resources`?");
    check(
        "restart: {retries: 1}\n",
        "3:11: `restart.retries` is not a key of a job file; known here are \
        max_failures, retry_exit_codes, give_up_exit_codes, start_deadline",
    );
}

#[test]
fn a_key_twice_is_an_error_in_every_format() {
    let toml = "name = \"a\"\nname = \"b\"\n";
    let json = "{\"name\": \"a\",\n\"name\": \"b\"}";
    for (text, file, line) in [("name: a\nname: b\n", "a.yaml", 2), (toml, "a.toml", 2), (json, "a.json", 2)]
    {
        let error = JobFile::read(text.as_bytes(), file).unwrap_err();
        assert_eq!(error.place.map(|place| place.line), Some(line), "{error}");
        let first = error.to_string();
        assert!(first.contains("twice") || first.contains("duplicate"), "{first}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let message = message("command: b\n", "a.yaml");
    assert_eq!(
        message.lines().next().unwrap(),
        "a.yaml:1:1: `name` is missing: it is what people call the job, such as `resnet`"
    );
    check(
        "emulate: {}\n",
        "3:10: `emulate.profile` is missing: it is the application profile to pace steps by: \
        a name or a file",
    );
}

#[test]
fn values_out_of_their_limits_are_refused() {
    check("resources: {gpus: 0}\n", "3:19: `resources.gpus`: `0` is not a whole number from 1 to 65536");
    check(
        "resources: {gpus: {min: 1.5}}\n",
        "3:25: `resources.gpus.min`: `1.5` is not a whole number from 1 to 65536",
    );
    check(
        "resources: {gpus: {min: 4, max: 2}}\n",
        "3:19: `resources.gpus`: at least 4 GPUs but at most 2; make `max` 4 or more",
    );
    check(
        "resources: {gpus: {min: 2, max: 4, request: 5}}\n",
        "3:19: `resources.gpus.request`: 5 GPUs are not 2 to 4, which `min` and `max` allow",
    );
    check(
        "resources: {per_gpu: {cpus: 0}}\n",
        "3:29: `resources.per_gpu.cpus`: `0` is not a number above 0 and at most 1024",
    );
    check(
        "resources: {per_gpu: {memory: 64gb}}\n",
        "3:31: `resources.per_gpu.memory`: `64gb` is not a size such as `64Gi` or `512Mi`, from 1Mi to 1Pi",
    );
    check(
        "elastic: {min_runtime: 90}\n",
        "3:24: `elastic.min_runtime`: `90` is not a time such as `90s`, `5m` or `1h30m`, from 0s to 365d",
    );
    check(
        "priority: urgent\n",
        "3:11: `priority`: `urgent` is not `low`, `normal`, `high` or a whole number from 0 to 100",
    );
    check("adapts: yes\n", "3:9: `adapts`: `yes` is not `true` or `false`");
    check("env: [A]\n", "3:6: `env`: a list is not a table of variables, such as `{SEED: 1}`");
    check(
        "env: {RANK: 1}\n",
        "3:7: `env.RANK`: the scheduler sets this variable itself; choose another name",
    );
    check("env: {A: {}}\n", "3:10: `env.A`: a table is not text without NUL characters");
    check(
        "training: {lr: {rule: adam-scale}}\n",
        "3:23: `training.lr.rule`: `adam-scale` is not one of auto, adascale, adamscale, linear, sqrt, none; \
         did you mean `adamscale`?",
    );
}

#[test]
fn contradictions_are_refused() {
    check(
        "training: {batch: {mode: bounded}}\n",
        "3:19: `training.batch.max`: mode `bounded` needs it: the largest batch allowed",
    );
    check(
        "training: {batch: {mode: fixed, initial: 8, max: 16}}\n",
        "3:19: `training.batch.max`: mode `fixed` keeps the initial batch; leave `max` out, or choose mode `bounded`",
    );
    check(
        "training: {batch: {initial: 8, max: 4}}\n",
        "3:19: `training.batch`: the maximum batch size 4 is below the initial batch size 8",
    );
    check(
        "training: {batch: {per_gpu: [8, 4]}}\n",
        "3:19: `training.batch`: the micro-batch range 8..4 is empty or starts at 0",
    );
    check(
        "restart: {retry_exit_codes: [3, 2], give_up_exit_codes: [2]}\n",
        "3:10: `restart.retry_exit_codes`: exit code 2 is in `give_up_exit_codes` too; keep one of the two",
    );
    check("array: {A: [1], B: [2]}\n", "3:8: `array`: an array has one variable; put others into `env`");
    check(
        "env: {A: 1}\narray: {A: [1]}\n",
        "4:9: `array`: `A` has a value already; choose another name or take it out of `env`",
    );
}

#[test]
fn names_suggest_one_that_is_allowed() {
    let message = message("name: My Job\ncommand: b\n", "a.yaml");
    assert_eq!(
        message.lines().next().unwrap(),
        "a.yaml:1:7: `name`: `My Job` is not 1 to 63 lower-case letters, digits and `-`, the first a letter and the \
         last no `-`; did you mean `my-job`?"
    );
    let long = format!("name: {}\ncommand: b\narray: 10000\n", "a".repeat(60));
    let error = JobFile::read(long.as_bytes(), "a.yaml").unwrap_err();
    assert!(error.to_string().contains("names of its jobs would have up to 65 letters"), "{error}");
}

#[test]
fn commands_run_something() {
    for command in ["''", "[]", "['']", "7", "{}", "[[a]]", "\"a\\0b\"", "[a, \"\\0\"]"] {
        let text = format!("name: a\ncommand: {command}\n");
        let error = JobFile::read(text.as_bytes(), "a.yaml").expect_err(command);
        assert!(matches!(*error.problem, Problem::Value { .. }), "{error}");
    }
}

#[test]
fn other_versions_are_refused_before_their_keys() {
    let message = message("version: 2\nnom: a\n", "a.yaml");
    assert!(
        message.starts_with("a.yaml:1:10: `version`: `2` is not a version this program reads; it reads 1"),
        "{message}"
    );
}

#[test]
fn what_is_no_job_file_at_all_is_said_so() {
    for (text, file, expected) in [
        ("", "a.yaml", "a.yaml:1:1: a job file begins with keys"),
        ("- a\n", "a.yaml", "a.yaml:1:1: a job file begins with keys"),
        ("just words\n", "a.yaml", "a.yaml:1:1: a job file begins with keys"),
        ("[1, 2]", "a.json", "a.json:1:1: a job file begins with keys"),
        ("{\"name\": }", "a.json", "a.json:1:10: not JSON: expected value"),
        ("name = [1\n", "a.toml", "a.toml:1:10: not TOML: "),
        ("name: [a\n", "a.yaml", "a.yaml:"),
        ("name: a\n---\nname: b\n", "a.yaml", "a.yaml:"),
    ] {
        let message = message(text, file);
        assert!(message.starts_with(expected), "{message}");
    }
    let binary = JobFile::read(b"name: a\n\xff\xfe", "a.yaml").unwrap_err().to_string();
    assert!(
        binary.starts_with("a.yaml:2:1: this is not UTF-8 text; save the file in that encoding"),
        "{binary}"
    );
    let long = JobFile::read(&vec![b' '; 1 << 21], "a.yaml").unwrap_err().to_string();
    assert_eq!(long, "a.yaml: 2097152 bytes are too many for a job file; it may have 1048576");
}

#[test]
fn bodies_are_refused_with_the_path_of_the_key() {
    let body = json!({"name": "a", "command": ["b"], "restart": {"retry_exit_codes": [1, 300]}});
    let error = JobFile::from_json(&body).unwrap_err();
    assert_eq!(error.to_string(), "`restart.retry_exit_codes[1]`: `300` is not a whole number from 1 to 255");
    assert_eq!(JobFile::from_json(&json!([])).unwrap_err().place, None);
}
