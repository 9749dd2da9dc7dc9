//! YAML to a tree.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};
use serde_saphyr::{Error, Location, Spanned};

use super::error::{Place, Problem, Wrong};
use super::tree::{At, Entry, Node, Tree};

/// The deepest nesting read. A job file has four levels.
const DEEPEST: usize = 32;

pub(super) fn parse(text: &str) -> Result<Node, Wrong> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: DEEPEST, flow_nesting_limit: DEEPEST, max_aliases: 1_000 },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000 },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Merge,
        strict_booleans: true,
        with_snippet: false,
    };
    let yaml: Yaml = serde_saphyr::from_str_with_options(text, options).map_err(|error| wrong(&error))?;
    Ok(yaml.node(text))
}

fn wrong(error: &Error) -> Wrong {
    let error = error.without_snippet();
    let at = error.location().map_or(At::Nowhere, |location| at(&location));
    if let Error::DuplicateMappingKey { key, .. } = error {
        return Wrong::new(at, Problem::Twice { key: key.clone().unwrap_or_default() });
    }
    let text = error.to_string();
    let message = text.lines().next().unwrap_or_default();
    let message = message.rsplit_once(" at line ").map_or(message, |(message, _)| message);
    Wrong::new(at, Problem::Syntax { format: "YAML", message: message.trim_end_matches(':').to_owned() })
}

fn at(location: &Location) -> At {
    let (line, column) = (usize::try_from(location.line()), usize::try_from(location.column()));
    match (line, column) {
        (Ok(line), Ok(column)) if line > 0 => At::Place(Place { line, column: column.max(1) }),
        _ => At::Nowhere,
    }
}

/// A value, and from which byte on how many are its text.
struct Yaml {
    at: At,
    bytes: Option<(usize, usize)>,
    value: Value,
}

enum Value {
    Plain(Tree),
    List(Vec<Yaml>),
    Table(Vec<(At, String, Yaml)>),
}

impl Yaml {
    fn node(self, text: &str) -> Node {
        let value = match self.value {
            Value::Plain(tree) => {
                let written = self.bytes.and_then(|(from, length)| text.get(from..from.checked_add(length)?));
                let written =
                    written.map(str::trim).filter(|written| says(written, &tree)).map(str::to_owned);
                return Node { at: self.at, value: tree, written };
            }
            Value::List(items) => Tree::List(items.into_iter().map(|item| item.node(text)).collect()),
            Value::Table(entries) => {
                let entry = |(at, key, value): (At, String, Self)| Entry { at, key, value: value.node(text) };
                Tree::Table(entries.into_iter().map(entry).collect())
            }
        };
        Node::new(self.at, value)
    }
}

/// Whether a piece of text is what a plain value was made of: neither an anchor before it nor a comment behind.
fn says(text: &str, tree: &Tree) -> bool {
    match tree {
        Tree::Bool(value) => text.eq_ignore_ascii_case(if *value { "true" } else { "false" }),
        Tree::Whole(_) => text.parse::<i128>().is_ok() || text.starts_with('0'),
        Tree::Real(_) => text.parse::<f64>().is_ok(),
        _ => false,
    }
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, defined } = Spanned::<Value>::deserialize(deserializer)?;
        let span = defined.span();
        let whole = |number: Option<u64>| number.and_then(|number| usize::try_from(number).ok());
        let bytes = whole(span.byte_offset()).zip(whole(span.byte_len()));
        Ok(Self { at: at(&referenced), bytes, value })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Plain(Tree::Null))
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Plain(Tree::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Plain(Tree::Bool(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Plain(Tree::Whole(value.into())))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Plain(Tree::Whole(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Plain(Tree::Real(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Plain(Tree::Text(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::Plain(Tree::Text(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut table = Vec::new();
        while let Some((key, value)) = entries.next_entry::<Spanned<String>, Yaml>()? {
            table.push((at(&key.referenced), key.value, value));
        }
        Ok(Value::Table(table))
    }
}
