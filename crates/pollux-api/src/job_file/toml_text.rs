//! TOML to a tree.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Problem, Wrong};
use super::tree::{At, Entry, Node, Tree};

pub(super) fn parse(text: &str) -> Result<Node, Wrong> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(At::Nowhere, |span| At::Byte(span.start));
        Wrong::new(at, Problem::Syntax { format: "TOML", message: error.message().to_owned() })
    })?;
    Ok(Node::new(At::Byte(table.span().start), Tree::Table(entries(table.get_ref()))))
}

fn entries(table: &DeTable<'_>) -> Vec<Entry> {
    let entry = |(key, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>)| Entry {
        at: At::Byte(key.span().start),
        key: key.get_ref().clone().into_owned(),
        value: node(value),
    };
    let mut entries: Vec<Entry> = table.iter().map(entry).collect();
    // The parser sorts by name; the first mistake is the one that stands first.
    entries.sort_by_key(|entry| if let At::Byte(byte) = entry.at { byte } else { 0 });
    entries
}

fn node(value: &Spanned<DeValue<'_>>) -> Node {
    let mut written = None;
    let tree = match value.get_ref() {
        DeValue::String(text) => Tree::Text(text.clone().into_owned()),
        DeValue::Boolean(value) => Tree::Bool(*value),
        DeValue::Integer(number) => {
            written = Some(number.to_string());
            let whole = i128::from_str_radix(number.as_str(), number.radix()).ok();
            whole.map_or(Tree::Real(f64::NAN), Tree::Whole)
        }
        DeValue::Float(number) => {
            written = Some(number.as_str().to_owned());
            Tree::Real(number.as_str().parse().unwrap_or(f64::NAN))
        }
        // A date is no value of a job file but text, such as an argument.
        DeValue::Datetime(date) => Tree::Text(date.to_string()),
        DeValue::Array(items) => Tree::List(items.iter().map(node).collect()),
        DeValue::Table(table) => Tree::Table(entries(table)),
    };
    Node { at: At::Byte(value.span().start), value: tree, written }
}
