//! A job as JSON.

use pollux_policy::Priority;
use serde_json::{Map, Value, json};

use super::sections::{MODES, RULES};
use super::{Array, BatchMode, JobFile, LrRule, Training, VERSION, units};

impl JobFile {
    /// The canonical form: every default filled in, what is not given left out. Times are written in whole seconds.
    pub fn to_json(&self) -> Value {
        let elastic = &self.elastic;
        let restart = &self.restart;
        let gpus = &self.resources.gpus;
        let per_gpu = &self.resources.per_gpu;
        some(json!({
            "version": VERSION,
            "name": self.name,
            "queue": self.queue,
            "priority": priority_word(self.priority),
            "command": self.command,
            "workdir": self.workdir,
            "env": self.env,
            "resources": {
                "gpus": some(json!({"min": gpus.min, "max": gpus.max, "request": gpus.request, "types": gpus.types})),
                "per_gpu": some(json!({"cpus": per_gpu.cpus, "memory": per_gpu.memory.map(units::write_size)})),
            },
            "training": self.training.as_ref().map(training),
            "adapts": self.adapts,
            "elastic": some(json!({
                "preemptible": elastic.preemptible,
                "min_runtime": units::write_time(elastic.min_runtime),
                "max_resizes_per_hour": elastic.max_resizes_per_hour,
            })),
            "checkpoint": some(json!({
                "path": self.checkpoint.path,
                "grace": units::write_time(self.checkpoint.grace),
            })),
            "restart": {
                "max_failures": restart.max_failures,
                "retry_exit_codes": restart.retry_exit_codes,
                "give_up_exit_codes": restart.give_up_exit_codes,
                "start_deadline": units::write_time(restart.start_deadline),
            },
            "array": self.array.as_ref().map(array),
            "emulate": self.emulate.as_ref().map(|emulate| json!({"profile": emulate.profile})),
        }))
    }

    /// What workers are told of their batch (`POLLUX_BATCH`): a JSON object of `mode`, `initial`, `max`, `per_gpu`,
    /// `accumulation` and `rule`, without what the file leaves to the script. None without `training`.
    pub fn batch_json(&self) -> Option<String> {
        let training = self.training.as_ref()?;
        let batch = &training.batch;
        let told = some(json!({
            "mode": mode_word(batch.mode),
            "initial": batch.initial,
            "max": batch.max,
            "per_gpu": batch.per_gpu,
            "accumulation": training.accumulation,
            "rule": (training.lr != LrRule::Auto).then(|| rule_word(training.lr)),
        }));
        Some(told.to_string())
    }
}

/// The word of a priority.
pub(super) fn priority_word(priority: Priority) -> &'static str {
    match priority {
        Priority::Low => "low",
        Priority::Normal => "normal",
        Priority::High => "high",
    }
}

fn training(training: &Training) -> Value {
    let batch = &training.batch;
    some(json!({
        "application": training.application,
        "batch": some(json!({
            "mode": mode_word(batch.mode),
            "initial": batch.initial,
            "max": batch.max,
            "per_gpu": batch.per_gpu,
        })),
        "lr": {"rule": rule_word(training.lr)},
        "accumulation": training.accumulation,
        "work": training.work,
    }))
}

fn array(array: &Array) -> Value {
    match array {
        Array::Count(count) => json!(count),
        Array::Values { variable, values } => json!({variable.as_str(): values}),
    }
}

fn mode_word(mode: BatchMode) -> &'static str {
    word(&MODES, mode)
}

fn rule_word(rule: LrRule) -> &'static str {
    word(&RULES, rule)
}

fn word<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
}

/// An object without the keys that have no value.
fn some(value: Value) -> Value {
    match value {
        Value::Object(entries) => {
            entries.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}
