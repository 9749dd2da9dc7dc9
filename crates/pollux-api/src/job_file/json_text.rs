//! JSON to a tree. `serde_json` says whether the text is JSON; a walk over what is known to be right finds the places.

use serde_json::Value;

use super::error::{Place, Problem, Wrong};
use super::tree::{At, Entry, Node, Tree};
use crate::json;

pub(super) fn parse(text: &str) -> Result<Node, Wrong> {
    json::strict(text.as_bytes()).map_err(|error| wrong(&error))?;
    Ok(Walk { text, at: 0 }.node())
}

fn wrong(error: &serde_json::Error) -> Wrong {
    let text = error.to_string();
    let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message).to_owned();
    let place = Place { line: error.line().max(1), column: error.column().max(1) };
    Wrong::new(At::Place(place), Problem::Syntax { format: "JSON", message })
}

/// A walk over JSON that was found to be right. On any other text it ends too, with something or other.
struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Walk<'a> {
    fn node(&mut self) -> Node {
        let start = self.skip_space();
        let value = match self.peek() {
            Some(b'{') => Tree::Table(self.entries()),
            Some(b'[') => Tree::List(self.items()),
            _ => {
                let written = self.scalar();
                let value = serde_json::from_str::<Value>(written).unwrap_or_default();
                let mut node = Node { at: At::Byte(start), ..Node::from(&value) };
                node.written = Some(written.to_owned());
                return node;
            }
        };
        Node::new(At::Byte(start), value)
    }

    fn entries(&mut self) -> Vec<Entry> {
        let mut entries = Vec::new();
        while self.goes_on(b'}') {
            let at = At::Byte(self.at);
            let key = serde_json::from_str(self.scalar()).unwrap_or_default();
            self.skip_space();
            self.at += 1; // The colon.
            entries.push(Entry { at, key, value: self.node() });
        }
        entries
    }

    fn items(&mut self) -> Vec<Node> {
        let mut items = Vec::new();
        while self.goes_on(b']') {
            items.push(self.node());
        }
        items
    }

    /// Steps over the bracket or comma, and says whether something follows that is not the end.
    fn goes_on(&mut self, end: u8) -> bool {
        self.skip_space();
        if self.peek() != Some(end) {
            self.at += 1;
            self.skip_space();
        }
        let has_more = self.peek().is_some_and(|byte| byte != end);
        if !has_more {
            self.at += 1;
        }
        has_more
    }

    /// The text of a value that is no table and no list, quotation marks included.
    fn scalar(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = if rest.starts_with('"') { string_length(rest) } else { word_length(rest) };
        self.at += length.max(1);
        rest.get(..length).unwrap_or(rest)
    }

    fn skip_space(&mut self) -> usize {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
        self.at
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn word_length(text: &str) -> usize {
    text.find(|letter: char| letter.is_ascii_whitespace() || ",]}".contains(letter)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree as JSON again, without places.
    fn value(node: &Node) -> Value {
        match &node.value {
            Tree::List(items) => items.iter().map(value).collect(),
            Tree::Table(entries) => {
                entries.iter().map(|entry| (entry.key.clone(), value(&entry.value))).collect()
            }
            _ => node.written.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default(),
        }
    }

    #[test]
    fn the_walk_sees_what_is_there() {
        for text in [
            "{}",
            "[]",
            " [ ] ",
            "{\"a\": [1, [2, []], {}], \"b\\\"}\" : {\"c\": null}}\n",
            "[1,\"]\",true , 1e-3]",
            "\"a\\\\\"",
            "[[[[]]]]",
            "{\"a\":{},\"b\":[],\"c\":\"\\u00e4,\"}",
        ] {
            let expected: Value = serde_json::from_str(text).unwrap();
            assert_eq!(value(&parse(text).unwrap_or_else(|_| panic!("{text}"))), expected, "{text}");
        }
    }
}
