//! Fields of JSON that must be there.

use serde_json::Value;

pub fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("`{key}` is missing"))
}

pub fn count(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("`{key}` is missing"))
}

pub fn small(value: &Value, key: &str) -> u32 {
    u32::try_from(count(value, key)).expect("a small count")
}
