//! The keys of one table, taken one by one.

use std::borrow::Cow;

use super::error::{Problem, Wrong};
use super::tree::{At, Entry, Node, Tree};
use crate::near::nearest;
use crate::quote::Shown;

/// A table whose keys are all known, none of them twice.
pub(super) struct Fields {
    path: String,
    at: At,
    entries: Vec<Entry>,
}

/// A value and the path of its key.
pub(super) struct Field {
    pub(super) path: String,
    pub(super) node: Node,
}

impl Fields {
    /// The keys of a table at `path`, which is empty for the whole file.
    pub(super) fn of(path: &str, node: Node, known: &'static [&'static str]) -> Result<Self, Wrong> {
        let (path, at) = (path.to_owned(), node.at);
        let entries = match node.value {
            Tree::Table(entries) => entries,
            _ if path.is_empty() => return Err(Wrong::new(at, Problem::NotATable { found: node.shown() })),
            _ => return Err(Field { path, node }.is_not(format!("a table of {}", known.join(", ")))),
        };
        for (index, Entry { at, key, .. }) in entries.iter().enumerate() {
            if !known.contains(&key.as_str()) {
                let near = nearest(key, known.iter().copied());
                let near = near.and_then(|near| known.iter().copied().find(|known| *known == near));
                return Err(Wrong::new(*at, Problem::UnknownKey { key: joined(&path, key), near, known }));
            }
            if entries[..index].iter().any(|earlier| earlier.key == *key) {
                return Err(Wrong::new(*at, Problem::Twice { key: joined(&path, key) }));
            }
        }
        Ok(Self { path, at, entries })
    }

    /// A table without keys, for values that have another form.
    pub(super) fn empty(path: String, at: At) -> Self {
        Self { path, at, entries: Vec::new() }
    }

    /// The value of a key; none if it is not there, or has none.
    pub(super) fn take(&mut self, key: &str) -> Option<Field> {
        let index = self.entries.iter().position(|entry| entry.key == key)?;
        let entry = self.entries.swap_remove(index);
        let is_there = !matches!(entry.value.value, Tree::Null);
        is_there.then(|| Field { path: joined(&self.path, key), node: entry.value })
    }

    /// The value of a key as `read` has it, if it is there.
    pub(super) fn read<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(Field) -> Result<T, Wrong>,
    ) -> Result<Option<T>, Wrong> {
        self.take(key).map(read).transpose()
    }

    /// The value of a key that must be there.
    pub(super) fn need(&mut self, key: &str, expected: &'static str) -> Result<Field, Wrong> {
        let at = self.at;
        let problem = Problem::Missing { key: joined(&self.path, key), expected };
        self.take(key).ok_or_else(|| Wrong::new(at, problem))
    }

    /// The error that this table, or a key of it, contradicts another.
    pub(super) fn conflict(&self, key: &str, message: String) -> Wrong {
        let key = if key.is_empty() { self.path.clone() } else { joined(&self.path, key) };
        Wrong::new(self.at, Problem::Conflict { key, message })
    }
}

pub(super) fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { Shown(key).to_string() } else { format!("{path}.{}", Shown(key)) }
}

impl Field {
    pub(super) fn at(&self) -> At {
        self.node.at
    }

    /// The error that it is not what it should be.
    pub(super) fn is_not(&self, expected: impl Into<Cow<'static, str>>) -> Wrong {
        let (key, found) = (self.path.clone(), self.node.shown());
        Wrong::new(self.node.at, Problem::Value { key, found, expected: expected.into() })
    }

    pub(super) fn fields(self, known: &'static [&'static str]) -> Result<Fields, Wrong> {
        Fields::of(&self.path, self.node, known)
    }

    pub(super) fn truth(self) -> Result<bool, Wrong> {
        match self.node.value {
            Tree::Bool(value) => Ok(value),
            _ => Err(self.is_not("`true` or `false`")),
        }
    }

    /// A whole number between two limits, both of them allowed.
    pub(super) fn whole<T: TryFrom<i128>>(self, least: i128, most: i128) -> Result<T, Wrong> {
        let number = match self.node.value {
            Tree::Whole(number) => Some(number),
            // Some writers know no whole numbers: 4.0 is 4.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "it is whole and far below the limits of the type"
            )]
            Tree::Real(number) if number.fract() == 0.0 && number.abs() < 1e18 => Some(number as i128),
            _ => None,
        };
        let number = number.filter(|number| (least..=most).contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| self.is_not(format!("a whole number from {least} to {most}")))
    }

    /// A number above 0 and at most `most`.
    pub(super) fn positive(self, most: f64) -> Result<f64, Wrong> {
        let number = match self.node.value {
            #[expect(clippy::cast_precision_loss, reason = "such numbers are guesses beyond 2^53")]
            Tree::Whole(number) => Some(number as f64),
            Tree::Real(number) => Some(number),
            _ => None,
        };
        let number = number.filter(|number| *number > 0.0 && *number <= most);
        number.ok_or_else(|| self.is_not(format!("a number above 0 and at most {most}")))
    }

    /// Text that `accept` makes something of.
    pub(super) fn text<T>(
        self,
        expected: impl Into<Cow<'static, str>>,
        accept: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Wrong> {
        let accepted = if let Tree::Text(text) = &self.node.value { accept(text) } else { None };
        accepted.ok_or_else(|| self.is_not(expected))
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(self, words: &[(&'static str, T)]) -> Result<T, Wrong> {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let near = match &self.node.value {
            Tree::Text(text) => nearest(text, names.iter().copied()),
            _ => None,
        };
        let known = format!("one of {}", names.join(", "));
        let expected = near.map_or(known.clone(), |near| format!("{known}; did you mean `{near}`?"));
        self.text(expected, |text| words.iter().find(|(name, _)| *name == text).map(|(_, value)| *value))
    }

    /// The items of a list, `most` of them at most.
    pub(super) fn items(self, most: usize, of: &'static str) -> Result<Vec<Self>, Wrong> {
        let at = self.node.at;
        let Tree::List(items) = self.node.value else { return Err(self.is_not(format!("a list of {of}"))) };
        if items.len() > most {
            let message = format!("a list of {} is too long; it may have {most}", items.len());
            return Err(Wrong::new(at, Problem::Conflict { key: self.path, message }));
        }
        let item = |(index, node)| Self { path: format!("{}[{index}]", self.path), node };
        Ok(items.into_iter().enumerate().map(item).collect())
    }
}
