//! A tree to a job.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pollux_policy::Priority;

use super::check::{self, NAME, PATH, WORD};
use super::error::{Problem, Wrong};
use super::fields::{Field, Fields, joined};
use super::tree::{Node, Tree};
use super::{JobFile, VERSION, sections};

/// The keys of a job file.
pub(super) const KEYS: &[&str] = &[
    "version",
    "name",
    "queue",
    "priority",
    "command",
    "workdir",
    "env",
    "resources",
    "training",
    "adapts",
    "elastic",
    "checkpoint",
    "restart",
    "array",
    "emulate",
];

/// The most arguments of a command, and variables of an environment.
const MOST_WORDS: usize = 4_096;

pub(super) fn job(node: Node) -> Result<JobFile, Wrong> {
    // A file of a later version may have other keys: the version is what is wrong with it, not they.
    version(&node)?;
    let mut file = Fields::of("", node, KEYS)?;
    let name = file.need("name", "what people call the job, such as `resnet`").and_then(name)?;
    let wanted = "what to run, such as `python train.py` or `[python, train.py]`";
    let command = file.need("command", wanted).and_then(command)?;
    let training = file.read("training", sections::training)?;
    let adapts = file.read("adapts", Field::truth)?.unwrap_or(training.is_some());
    let mut job = JobFile { training, adapts, ..JobFile::named(&name, command) };
    job.queue = file.read("queue", word)?;
    job.priority = file.take("priority").as_ref().map(priority).transpose()?.unwrap_or_default();
    job.workdir = file.read("workdir", path)?;
    job.env = file.read("env", env)?.unwrap_or_default();
    job.resources = file.read("resources", sections::resources)?.unwrap_or_default();
    job.elastic = file.read("elastic", sections::elastic)?.unwrap_or_default();
    job.checkpoint = file.read("checkpoint", sections::checkpoint)?.unwrap_or_default();
    job.restart = file.read("restart", sections::restart)?.unwrap_or_default();
    if let Some(array) = file.take("array") {
        job.array = Some(sections::array(array, &job)?);
    }
    job.emulate = file.read("emulate", sections::emulate)?;
    Ok(job)
}

fn version(node: &Node) -> Result<(), Wrong> {
    let Tree::Table(entries) = &node.value else { return Ok(()) };
    let version = entries.iter().find(|entry| entry.key == "version").map(|entry| &entry.value);
    match version {
        Some(Node { value: Tree::Null, .. }) | None => Ok(()),
        Some(Node { value: Tree::Whole(number), .. }) if *number == i128::from(VERSION) => Ok(()),
        Some(node) => Err(Wrong::new(node.at, Problem::Version { found: node.shown() })),
    }
}

fn name(field: Field) -> Result<String, Wrong> {
    let near = if let Tree::Text(text) = &field.node.value { check::as_name(text) } else { None };
    let expected = near.map_or(NAME.to_owned(), |near| format!("{NAME}; did you mean `{near}`?"));
    field.text(expected, |text| check::is_name(text).then(|| text.to_owned()))
}

pub(super) fn word(field: Field) -> Result<String, Wrong> {
    field.text(WORD, |text| check::is_word(text).then(|| text.to_owned()))
}

pub(super) fn path(field: Field) -> Result<String, Wrong> {
    field.text(PATH, |text| check::is_path(text).then(|| text.to_owned()))
}

/// By name, or 0 to 100: below 34 is low, above 66 high.
fn priority(field: &Field) -> Result<Priority, Wrong> {
    let expected = "`low`, `normal`, `high` or a whole number from 0 to 100";
    match &field.node.value {
        Tree::Whole(0..=33) => Ok(Priority::Low),
        Tree::Whole(34..=66) => Ok(Priority::Normal),
        Tree::Whole(67..=100) => Ok(Priority::High),
        Tree::Text(word) => match word.as_str() {
            "low" => Ok(Priority::Low),
            "normal" => Ok(Priority::Normal),
            "high" => Ok(Priority::High),
            _ => Err(field.is_not(expected)),
        },
        _ => Err(field.is_not(expected)),
    }
}

/// A list of words, or a line for the shell.
fn command(field: Field) -> Result<Vec<String>, Wrong> {
    if let Tree::Text(line) = &field.node.value {
        if line.trim().is_empty() || !check::is_passable(line) {
            return Err(field.is_not("a command such as `python train.py`"));
        }
        return Ok(vec!["sh".to_owned(), "-c".to_owned(), line.clone()]);
    }
    let at = field.at();
    let expected = "a command: a line such as `python train.py`, or a list such as `[python, train.py]`";
    if !matches!(field.node.value, Tree::List(_)) {
        return Err(field.is_not(expected));
    }
    let words = field.items(MOST_WORDS, "words")?.iter().map(plain).collect::<Result<Vec<_>, _>>()?;
    match words.first() {
        Some(program) if !program.is_empty() => Ok(words),
        _ => {
            let (key, found) = ("command".to_owned(), "a list without a program".to_owned());
            Err(Wrong::new(at, Problem::Value { key, found, expected: expected.into() }))
        }
    }
}

/// Text, or a number or truth value as it is written.
pub(super) fn plain(field: &Field) -> Result<String, Wrong> {
    let text = field.node.plain().filter(|text| check::is_passable(text)).map(Cow::into_owned);
    text.ok_or_else(|| field.is_not("text without NUL characters"))
}

fn env(field: Field) -> Result<BTreeMap<String, String>, Wrong> {
    let Tree::Table(entries) = &field.node.value else {
        return Err(field.is_not("a table of variables, such as `{SEED: 1}`"));
    };
    if entries.len() > MOST_WORDS {
        let message = format!("{} variables are too many; it may have {MOST_WORDS}", entries.len());
        return Err(Wrong::new(field.at(), Problem::Conflict { key: field.path, message }));
    }
    let mut env = BTreeMap::new();
    for entry in entries {
        let variable = variable(&field.path, entry.at, &entry.key)?;
        let value = Field { path: joined(&field.path, &entry.key), node: entry.value.clone() };
        env.insert(variable, plain(&value)?);
    }
    Ok(env)
}

/// The name of a variable that a user may set.
pub(super) fn variable(path: &str, at: super::tree::At, name: &str) -> Result<String, Wrong> {
    match check::variable_fault(name) {
        None => Ok(name.to_owned()),
        Some(fault) => {
            let key = joined(path, name);
            Err(Wrong::new(at, Problem::Conflict { key, message: fault.to_owned() }))
        }
    }
}
