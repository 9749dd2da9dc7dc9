//! What YAML, TOML and JSON have in common: values that know where they stand.

use std::borrow::Cow;

use serde_json::Value;

use super::error::Place;
use crate::quote::Quoted;

/// Where a value stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum At {
    /// In no text.
    #[default]
    Nowhere,
    /// At this byte of the text.
    Byte(usize),
    /// At this line and column.
    Place(Place),
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) at: At,
    pub(super) value: Tree,
    /// A plain value as it is written: `1e-3` is a number, but as an argument it stays what it was.
    pub(super) written: Option<String>,
}

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Tree {
    Null,
    Bool(bool),
    Whole(i128),
    Real(f64),
    Text(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key, its value, and where the key stands.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) at: At,
    pub(super) key: String,
    pub(super) value: Node,
}

impl Node {
    pub(super) fn new(at: At, value: Tree) -> Self {
        Self { at, value, written: None }
    }

    /// A plain value as text: text itself, or a number or truth value as it is written.
    pub(super) fn plain(&self) -> Option<Cow<'_, str>> {
        match (&self.value, &self.written) {
            (Tree::Text(text), _) => Some(text.into()),
            (Tree::Bool(_) | Tree::Whole(_) | Tree::Real(_), Some(written)) => Some(written.into()),
            (Tree::Bool(value), None) => Some(value.to_string().into()),
            (Tree::Whole(value), None) => Some(value.to_string().into()),
            (Tree::Real(value), None) => Some(value.to_string().into()),
            (Tree::Null | Tree::List(_) | Tree::Table(_), _) => None,
        }
    }

    /// What it is, in a message.
    pub(super) fn shown(&self) -> String {
        match &self.value {
            Tree::Null => "nothing".to_owned(),
            Tree::List(_) => "a list".to_owned(),
            Tree::Table(_) => "a table".to_owned(),
            _ => Quoted(&self.plain().unwrap_or_default()).to_string(),
        }
    }
}

impl From<&Value> for Node {
    fn from(value: &Value) -> Self {
        let value = match value {
            Value::Null => Tree::Null,
            Value::Bool(value) => Tree::Bool(*value),
            Value::Number(number) => {
                number.as_i128().map_or_else(|| Tree::Real(number.as_f64().unwrap_or(f64::NAN)), Tree::Whole)
            }
            Value::String(text) => Tree::Text(text.clone()),
            Value::Array(items) => Tree::List(items.iter().map(Self::from).collect()),
            Value::Object(entries) => {
                let entry = |(key, value): (&String, &Value)| Entry {
                    at: At::Nowhere,
                    key: key.clone(),
                    value: Self::from(value),
                };
                Tree::Table(entries.iter().map(entry).collect())
            }
        };
        Self::new(At::Nowhere, value)
    }
}
