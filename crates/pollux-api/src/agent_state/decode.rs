//! From JSON to wire types, such that an error knows the path to the field it is about.

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer as _, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use super::error::{FieldError, Problem};

pub(super) fn decode<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, FieldError> {
    T::deserialize(At(value)).map_err(|error| error.with_value(value))
}

/// A value inside the text.
struct At<'de>(&'de Value);

impl<'de> Deserializer<'de> for At<'de> {
    type Error = FieldError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(*flag),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => {
                let mut items = Items { items, n_read: 0 };
                let read = visitor.visit_seq(&mut items)?;
                match items.items.len() {
                    length if length == items.n_read => Ok(read),
                    length => Err(FieldError::invalid_length(length, &"a shorter list")),
                }
            }
            Value::Object(fields) => visitor.visit_map(Fields { fields: fields.iter(), next: None }),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), ..) => visitor.visit_u64(number),
                (_, Some(number), _) => visitor.visit_i64(number),
                (.., Some(number)) => visitor.visit_f64(number),
                _ => Err(FieldError::custom("a number out of range")),
            },
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        match self.0.as_str() {
            Some(name) => visitor.visit_enum(name.into_deserializer()),
            None => Err(FieldError::invalid_type(Unexpected::Other("no name"), &"a name")),
        }
    }

    /// An object: derived types would take a list of its values too.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        if self.0.is_object() {
            self.deserialize_any(visitor)
        } else {
            Err(FieldError::invalid_type(Unexpected::Other("no object"), &"an object"))
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

struct Fields<'de> {
    fields: serde_json::map::Iter<'de>,
    next: Option<(&'de str, &'de Value)>,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = FieldError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, FieldError> {
        let Some((key, value)) = self.fields.next() else { return Ok(None) };
        self.next = Some((key, value));
        let key: StrDeserializer<'_, FieldError> = key.as_str().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, FieldError> {
        // Serde asks for a value after its key only.
        let (key, value) = self.next.take().unwrap_or(("", &Value::Null));
        seed.deserialize(At(value)).map_err(|error| error.with_value(value).within(key))
    }
}

struct Items<'de> {
    items: &'de [Value],
    n_read: usize,
}

impl<'de> SeqAccess<'de> for &mut Items<'de> {
    type Error = FieldError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, FieldError> {
        let index = self.n_read;
        let Some(value) = self.items.get(index) else { return Ok(None) };
        self.n_read += 1;
        let read = seed.deserialize(At(value));
        read.map(Some).map_err(|error| error.with_value(value).within_item(index))
    }
}

impl FieldError {
    /// Names the value that an error is about, as only the one who handed it out knows.
    fn with_value(mut self, value: &Value) -> Self {
        if let Problem::Value { found, .. } = &mut self.problem
            && found.is_empty()
        {
            *found = value.to_string();
        }
        self
    }

    fn expected(expected: &dyn Expected) -> Self {
        let expected = plain(expected.to_string());
        Self { path: String::new(), problem: Problem::Value { found: String::new(), expected } }
    }
}

/// Serde's names of what it expects, in words.
fn plain(expected: String) -> String {
    match expected.as_str() {
        "f64" => "a number".to_owned(),
        "u32" => format!("a whole number up to {}", u32::MAX),
        "u64" => "a whole number, zero or more".to_owned(),
        "a boolean" => "`true` or `false`".to_owned(),
        "a string" => "a text".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a tuple of size 2" => "a list of two".to_owned(),
        "a map" => "an object".to_owned(),
        _ => expected,
    }
}

impl Error for FieldError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self { path: String::new(), problem: Problem::Other(message.to_string()) }
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::expected(expected)
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::expected(expected)
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Self::expected(expected)
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        let names: Vec<String> = expected.iter().map(|name| format!("`{name}`")).collect();
        Self::expected(&names.join(" or ").as_str())
    }

    fn missing_field(field: &'static str) -> Self {
        Self::at(field, Problem::Missing)
    }

    fn unknown_field(field: &str, _: &'static [&'static str]) -> Self {
        Self::at(field, Problem::Unknown)
    }
}
