//! JSON that people can read too.

use serde::Serialize;

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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

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
