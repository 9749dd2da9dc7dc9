//! Documents with something wrong in them.
#![allow(unreachable_pub, reason = "shared by tests, not a library")]

use proptest::prelude::*;
use serde_json::Value;

/// Puts something else, or nothing, at a place found by `turns`.
pub fn mutate(json: &mut Value, turns: &[prop::sample::Index], to: Option<Value>) {
    let Some((turn, rest)) = turns.split_first() else {
        return if let Some(to) = to {
            *json = to;
        };
    };
    match json {
        Value::Object(fields) if !fields.is_empty() => {
            let key = turn.get(&fields.keys().cloned().collect::<Vec<_>>()).clone();
            if to.is_none() && rest.is_empty() {
                fields.remove(&key);
            } else {
                mutate(&mut fields[&key], rest, to);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let index = turn.index(items.len());
            if to.is_none() && rest.is_empty() {
                items.remove(index);
            } else {
                mutate(&mut items[index], rest, to);
            }
        }
        leaf => mutate(leaf, &[], to),
    }
}
