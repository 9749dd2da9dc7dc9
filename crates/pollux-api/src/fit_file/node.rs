//! JSON values that know where they stand, so that errors can say so.

use serde_json::{Map, Value};

use super::error::Problem;
use crate::quote::Shown;

/// A value and the path of keys that leads to it; the path of the whole file is empty.
#[derive(Clone)]
pub(crate) struct Node<'a> {
    pub(crate) path: String,
    pub(crate) value: &'a Value,
}

impl<'a> Node<'a> {
    pub(crate) fn whole(value: &'a Value) -> Self {
        Self { path: String::new(), value }
    }

    /// The path of something below this.
    pub(crate) fn path_of(&self, key: &str) -> String {
        let key = Shown(key);
        if self.path.is_empty() { key.to_string() } else { format!("{}.{key}", self.path) }
    }

    /// What is wrong if this is not what was expected.
    pub(crate) fn problem(&self, expected: &'static str) -> Problem {
        Problem::Value { key: self.path.clone(), found: self.value.to_string(), expected }
    }

    pub(crate) fn object(&self) -> Result<&'a Map<String, Value>, Problem> {
        self.value.as_object().ok_or_else(|| self.problem("an object"))
    }

    /// The value of a key; nothing if it is absent or null, or this is no object.
    pub(crate) fn get(&self, key: &str) -> Option<Self> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        Some(Self { path: self.path_of(key), value })
    }

    pub(crate) fn require(&self, key: &str) -> Result<Self, Problem> {
        self.get(key).ok_or_else(|| Problem::Missing { key: self.path_of(key) })
    }

    pub(crate) fn items(&self, expected: &'static str) -> Result<impl Iterator<Item = Self>, Problem> {
        let items = self.value.as_array().ok_or_else(|| self.problem(expected))?;
        let path = self.path.clone();
        Ok(items
            .iter()
            .enumerate()
            .map(move |(index, value)| Self { path: format!("{path}[{index}]"), value }))
    }

    /// Exactly two items.
    pub(crate) fn pair(&self, expected: &'static str) -> Result<(Self, Self), Problem> {
        let mut items = self.items(expected)?;
        match (items.next(), items.next(), items.next()) {
            (Some(first), Some(second), None) => Ok((first, second)),
            _ => Err(self.problem(expected)),
        }
    }

    pub(crate) fn text(&self, expected: &'static str) -> Result<&'a str, Problem> {
        self.value.as_str().ok_or_else(|| self.problem(expected))
    }

    pub(crate) fn flag(&self) -> Result<bool, Problem> {
        self.value.as_bool().ok_or_else(|| self.problem("`true` or `false`"))
    }

    pub(crate) fn count(&self) -> Result<u64, Problem> {
        self.value.as_u64().ok_or_else(|| self.problem("a whole number"))
    }

    /// A whole number from 1 that fits the model's counts.
    pub(crate) fn positive_count(&self) -> Result<u32, Problem> {
        let count = self.value.as_u64().and_then(|count| u32::try_from(count).ok());
        count.filter(|count| *count > 0).ok_or_else(|| self.problem("a whole number, 1 or more"))
    }

    pub(crate) fn number(&self) -> Result<f64, Problem> {
        self.value.as_f64().ok_or_else(|| self.problem("a number"))
    }

    pub(crate) fn not_negative(&self, expected: &'static str) -> Result<f64, Problem> {
        let number = self.value.as_f64().filter(|number| *number >= 0.0);
        number.ok_or_else(|| self.problem(expected))
    }
}
