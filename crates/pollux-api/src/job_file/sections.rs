//! The tables of a job file.

use std::collections::BTreeSet;
use std::time::Duration;

use pollux_model::BatchLimits;

use super::check::{self, ARRAY_INDEX};
use super::error::{Problem, Wrong};
use super::fields::{Field, Fields};
use super::read::{path, plain, variable, word};
use super::tree::{At, Tree};
use super::{Array, Batch, BatchMode, Checkpoint, Elastic, Emulate, Gpus, JobFile, LrRule, PerGpu};
use super::{Resources, Restart, Training, units};

/// The most GPUs of a job: as many as a node may have.
const MOST_GPUS: u32 = 1 << 16;

/// The largest global batch, in samples.
const MOST_SAMPLES: i128 = 1 << 40;

/// The most members of an array.
const MOST_MEMBERS: usize = 10_000;

pub(super) const RESOURCES: &[&str] = &["gpus", "per_gpu"];
pub(super) const GPUS: &[&str] = &["min", "max", "request", "types"];
pub(super) const PER_GPU: &[&str] = &["cpus", "memory"];
pub(super) const TRAINING: &[&str] = &["application", "batch", "lr", "accumulation", "work"];
pub(super) const BATCH: &[&str] = &["mode", "initial", "max", "per_gpu"];
pub(super) const LR: &[&str] = &["rule"];
pub(super) const ELASTIC: &[&str] = &["preemptible", "min_runtime", "max_resizes_per_hour"];
pub(super) const CHECKPOINT: &[&str] = &["path", "grace"];
pub(super) const RESTART: &[&str] =
    &["max_failures", "retry_exit_codes", "give_up_exit_codes", "start_deadline"];
pub(super) const EMULATE: &[&str] = &["profile"];

/// The words of `training.batch.mode`.
pub(super) const MODES: [(&str, BatchMode); 3] =
    [("fixed", BatchMode::Fixed), ("bounded", BatchMode::Bounded), ("adaptive", BatchMode::Adaptive)];

/// The words of `training.lr.rule`.
pub(super) const RULES: [(&str, LrRule); 6] = [
    ("auto", LrRule::Auto),
    ("adascale", LrRule::AdaScale),
    ("adamscale", LrRule::AdamScale),
    ("linear", LrRule::Linear),
    ("sqrt", LrRule::Sqrt),
    ("none", LrRule::None),
];

pub(super) fn resources(field: Field) -> Result<Resources, Wrong> {
    let mut fields = field.fields(RESOURCES)?;
    let gpus = fields.read("gpus", gpus)?.unwrap_or_default();
    let per_gpu = fields.read("per_gpu", per_gpu)?.unwrap_or_default();
    Ok(Resources { gpus, per_gpu })
}

/// A table, a range such as `1..16`, or a number: exactly so many.
pub(super) fn gpus(field: Field) -> Result<Gpus, Wrong> {
    let at = field.at();
    let (fields, gpus) = match &field.node.value {
        Tree::Table(_) => {
            let mut fields = field.fields(GPUS)?;
            let min = fields.read("min", count)?.unwrap_or(1);
            let max = fields.read("max", count)?;
            let request = fields.read("request", count)?;
            let types = fields.read("types", types)?.unwrap_or_default();
            (fields, Gpus { min, max, request, types })
        }
        Tree::Text(text) => {
            let known = |number: u32| (1..=MOST_GPUS).contains(&number);
            let range = units::range(text).filter(|(min, max)| known(*min) && max.is_none_or(known));
            let expected = format!("GPUs such as `4`, `1..16` or `2..`, from 1 to {MOST_GPUS}");
            let (min, max) = range.ok_or_else(|| field.is_not(expected))?;
            (Fields::empty(field.path, at), Gpus { min, max, ..Gpus::default() })
        }
        Tree::Whole(_) | Tree::Real(_) => {
            let path = field.path.clone();
            let exactly = count(field)?;
            (Fields::empty(path, at), Gpus { min: exactly, max: Some(exactly), ..Gpus::default() })
        }
        _ => {
            return Err(field.is_not(
                "a number of GPUs, a range such as `1..16`, or a table of min, max, request, types",
            ));
        }
    };
    let (min, max) = (gpus.min, gpus.max.unwrap_or(MOST_GPUS));
    if max < min {
        let message = format!("at least {min} GPUs but at most {max}; make `max` {min} or more");
        return Err(fields.conflict("", message));
    }
    if let Some(request) = gpus.request.filter(|request| !(min..=max).contains(request)) {
        let message = format!("{request} GPUs are not {min} to {max}, which `min` and `max` allow");
        return Err(fields.conflict("request", message));
    }
    Ok(gpus)
}

fn count(field: Field) -> Result<u32, Wrong> {
    field.whole(1, MOST_GPUS.into())
}

/// A list of types, or one.
fn types(field: Field) -> Result<BTreeSet<String>, Wrong> {
    match &field.node.value {
        Tree::Text(_) => word(field).map(|one| [one].into()),
        _ => field.items(100, "types of GPU such as `[a100, h100]`")?.into_iter().map(word).collect(),
    }
}

fn per_gpu(field: Field) -> Result<PerGpu, Wrong> {
    let mut fields = field.fields(PER_GPU)?;
    let cpus = fields.read("cpus", |field| field.positive(1024.0))?;
    let memory = fields.read("memory", |field| {
        let within = |bytes: &u64| (1 << 20..=1 << 50).contains(bytes);
        field.text("a size such as `64Gi` or `512Mi`, from 1Mi to 1Pi", |text| {
            units::size(text).filter(within)
        })
    })?;
    Ok(PerGpu { cpus, memory })
}

pub(super) fn training(field: Field) -> Result<Training, Wrong> {
    let mut fields = field.fields(TRAINING)?;
    Ok(Training {
        application: fields.read("application", word)?,
        batch: fields.read("batch", batch)?.unwrap_or_default(),
        lr: fields
            .read("lr", |field| {
                Ok(field.fields(LR)?.read("rule", |rule| rule.word(&RULES))?.unwrap_or_default())
            })?
            .unwrap_or_default(),
        accumulation: fields.read("accumulation", Field::truth)?.unwrap_or(true),
        work: fields.read("work", |field| field.positive(1e18))?,
    })
}

fn batch(field: Field) -> Result<Batch, Wrong> {
    let mut fields = field.fields(BATCH)?;
    let mode = fields.read("mode", |field| field.word(&MODES))?.unwrap_or_default();
    let samples = |field: Field| field.whole::<u64>(1, MOST_SAMPLES);
    let initial = fields.read("initial", samples)?;
    let max = fields.read("max", samples)?;
    let per_gpu = fields.read("per_gpu", samples_per_gpu)?;
    match (mode, max) {
        (BatchMode::Bounded, None) => {
            let message = "mode `bounded` needs it: the largest batch allowed".to_owned();
            return Err(fields.conflict("max", message));
        }
        (BatchMode::Fixed, Some(max)) if initial != Some(max) => {
            let message = "mode `fixed` keeps the initial batch; leave `max` out, or choose mode `bounded`";
            return Err(fields.conflict("max", message.to_owned()));
        }
        _ => {}
    }
    let (least, most) = per_gpu.unwrap_or((1, u32::MAX));
    let (first, last) = (initial.unwrap_or(1), max.or(initial).unwrap_or(1));
    if let Err(why) = BatchLimits::new(first, last, least, most) {
        return Err(fields.conflict("", why.to_string()));
    }
    Ok(Batch { mode, initial, max, per_gpu })
}

fn samples_per_gpu(field: Field) -> Result<(u32, u32), Wrong> {
    let expected = "a list of the least and the most samples on one GPU, such as `[16, 512]`";
    match &field.node.value {
        Tree::List(items) if items.len() == 2 => {}
        _ => return Err(field.is_not(expected)),
    }
    let mut samples = field.items(2, "two numbers")?.into_iter().map(|item| item.whole(1, u32::MAX.into()));
    match (samples.next().transpose()?, samples.next().transpose()?) {
        (Some(least), Some(most)) => Ok((least, most)),
        _ => Ok((1, u32::MAX)),
    }
}

pub(super) fn elastic(field: Field) -> Result<Elastic, Wrong> {
    let mut fields = field.fields(ELASTIC)?;
    let usual = Elastic::default();
    Ok(Elastic {
        preemptible: fields.read("preemptible", Field::truth)?.unwrap_or(usual.preemptible),
        min_runtime: fields
            .read("min_runtime", time(Duration::ZERO, units::YEAR))?
            .unwrap_or(usual.min_runtime),
        max_resizes_per_hour: fields.read("max_resizes_per_hour", |field| field.whole(0, 1_000))?,
    })
}

pub(super) fn checkpoint(field: Field) -> Result<Checkpoint, Wrong> {
    let mut fields = field.fields(CHECKPOINT)?;
    let grace = fields.read("grace", time(Duration::ZERO, Duration::from_hours(24)))?;
    Ok(Checkpoint { path: fields.read("path", path)?, grace: grace.unwrap_or(Checkpoint::default().grace) })
}

pub(super) fn restart(field: Field) -> Result<Restart, Wrong> {
    let mut fields = field.fields(RESTART)?;
    let usual = Restart::default();
    let deadline = fields.read("start_deadline", time(Duration::from_secs(1), units::YEAR))?;
    let restart = Restart {
        max_failures: fields
            .read("max_failures", |field| field.whole(0, 1_000))?
            .unwrap_or(usual.max_failures),
        retry_exit_codes: fields.read("retry_exit_codes", exit_codes)?.unwrap_or_default(),
        give_up_exit_codes: fields.read("give_up_exit_codes", exit_codes)?.unwrap_or_default(),
        start_deadline: deadline.unwrap_or(usual.start_deadline),
    };
    match restart.retry_exit_codes.iter().find(|code| restart.give_up_exit_codes.contains(code)) {
        Some(code) => {
            let message = format!("exit code {code} is in `give_up_exit_codes` too; keep one of the two");
            Err(fields.conflict("retry_exit_codes", message))
        }
        None => Ok(restart),
    }
}

fn exit_codes(field: Field) -> Result<Vec<i32>, Wrong> {
    field.items(255, "exit codes such as `[33]`")?.into_iter().map(|item| item.whole(1, 255)).collect()
}

/// A time between two limits, both of them allowed.
fn time(least: Duration, most: Duration) -> impl FnOnce(Field) -> Result<Duration, Wrong> {
    move |field| {
        let limits = format!("from {} to {}", units::write_time(least), units::write_time(most));
        let expected = format!("a time such as `90s`, `5m` or `1h30m`, {limits}");
        field.text(expected, |text| units::time(text).filter(|time| (least..=most).contains(time)))
    }
}

/// A number of members, or one variable and its values.
pub(super) fn array(field: Field, job: &JobFile) -> Result<Array, Wrong> {
    let at = field.at();
    let path = field.path.clone();
    let conflict =
        |at: At, message: String| Err(Wrong::new(at, Problem::Conflict { key: path.clone(), message }));
    let array = match &field.node.value {
        Tree::Whole(_) | Tree::Real(_) => Array::Count(field.whole(1, MOST_MEMBERS as i128)?),
        Tree::Table(entries) => match entries.as_slice() {
            [entry] => {
                let variable = variable(&field.path, entry.at, &entry.key)?;
                if variable == ARRAY_INDEX || job.env.contains_key(&variable) {
                    let message = format!(
                        "`{variable}` has a value already; choose another name or take it out of `env`"
                    );
                    return conflict(entry.at, message);
                }
                let values = Field { path: format!("{path}.{variable}"), node: entry.value.clone() };
                let values = values.items(MOST_MEMBERS, "values such as `[1, 2, 3]`")?;
                let values = values.iter().map(plain).collect::<Result<Vec<_>, _>>()?;
                if values.is_empty() {
                    return conflict(entry.at, "an array has at least one value".to_owned());
                }
                Array::Values { variable, values }
            }
            _ => return conflict(at, "an array has one variable; put others into `env`".to_owned()),
        },
        _ => {
            return Err(field.is_not("a number of jobs, or one variable and its values: `{SEED: [1, 2, 3]}`"));
        }
    };
    let longest = job.name.len() + 1 + (array.len() - 1).to_string().len();
    if longest > check::LONGEST_NAME {
        let message = format!("names of its jobs would have up to {longest} letters; `name` must be shorter");
        return conflict(at, message);
    }
    Ok(array)
}

pub(super) fn emulate(field: Field) -> Result<Emulate, Wrong> {
    let mut fields = field.fields(EMULATE)?;
    let profile = fields.need("profile", "the application profile to pace steps by: a name or a file")?;
    Ok(Emulate { profile: path(profile)? })
}
