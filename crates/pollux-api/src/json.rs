//! JSON that people can read too, and JSON that says nothing twice.

use std::fmt;

use serde::Serialize;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::quote::Quoted;

/// A line per key, but a list of plain values on one line; with a newline at the end.
///
/// `value` is a struct of numbers and names: there is nothing in it that JSON cannot hold.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    let long = serde_json::to_string_pretty(value).unwrap_or_default();
    let mut text = String::with_capacity(long.len());
    // The lines of a list that may yet turn out to hold plain values only. (A bracket at the end of a line
    // is never part of a string: that would end with its quotation mark.)
    let mut list: Vec<&str> = Vec::new();
    for line in long.lines() {
        if line.ends_with(['[', '{']) {
            flush(&mut text, &mut list);
        }
        match list.first() {
            Some(first) if line.trim_start().starts_with(']') => {
                text.push_str(first);
                text.push_str(&list[1..].iter().map(|item| item.trim_start()).collect::<Vec<_>>().join(" "));
                text.push_str(line.trim_start());
                text.push('\n');
                list.clear();
            }
            Some(_) => list.push(line),
            None if line.ends_with('[') => list.push(line),
            None => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    flush(&mut text, &mut list);
    text
}

fn flush(text: &mut String, lines: &mut Vec<&str>) {
    for line in lines.drain(..) {
        text.push_str(line);
        text.push('\n');
    }
}

/// Reads JSON, a byte order mark allowed. An object that has a key twice is a data error; plain reading would
/// take the last and pass over the others.
pub(crate) fn strict(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    serde_json::from_slice(bytes).map(|Strict(value)| value)
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue).map(Self)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                let twice = format_args!("key {} stands twice in one object", Quoted(&key)).to_string();
                return Err(de::Error::custom(twice));
            }
            let Strict(value) = entries.next_value()?;
            object.insert(key, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn strict_reading_differs_in_keys_that_stand_twice() {
        let text = r#"{"a": [1, -2, 2.5, "x", null, true, {"b": {}}], "c": 1e300}"#;
        assert_eq!(strict(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        let error = strict(b"{\n\"a\": 1,\n\"b\": {\"a\": 1}, \"a\": 2}").unwrap_err();
        assert_eq!((error.is_data(), error.line()), (true, 3));
        assert!(error.to_string().starts_with("key `a` stands twice in one object"), "{error}");
        assert!(strict(b"{\"a\": 1e999}").unwrap_err().is_syntax());
        assert!(strict("[".repeat(100_000).as_bytes()).is_err(), "depth is limited");
    }

    fn check(value: &Value, expected: &str) {
        assert_eq!(pretty(value), expected);
        assert_eq!(serde_json::from_str::<Value>(expected).unwrap(), *value);
    }

    #[test]
    fn lists_of_plain_values_stay_on_one_line() {
        check(&json!({"a": [1, 2.5, "x["], "b": []}), "{\n  \"a\": [1, 2.5, \"x[\"],\n  \"b\": []\n}\n");
        check(&json!({"a": [[1, 2], [3, 4]]}), "{\n  \"a\": [\n    [1, 2],\n    [3, 4]\n  ]\n}\n");
        check(&json!([{"a": null}, 3]), "[\n  {\n    \"a\": null\n  },\n  3\n]\n");
        check(&json!([1, [2], 3, "]"]), "[\n  1,\n  [2],\n  3,\n  \"]\"\n]\n");
    }
}
