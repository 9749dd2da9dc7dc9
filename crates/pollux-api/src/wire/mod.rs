//! Parts that several formats have in common. What changes here changes all of them.
//!
//! Formats differ in what they do about fields that they do not know: stored files refuse them (`check_known`), messages
//! pass over them, for whoever wrote them may be newer.

mod batch;
mod error;
mod fit;
mod numbers;

use std::fmt;

pub(crate) use batch::{Estimator, Limits, Plan};
pub use error::Problem;
pub(crate) use error::{FieldError, message, one_line, place, within};
pub(crate) use fit::{Fit, Form, Params, Revision, names, undetermined};
pub(crate) use numbers::{
    AtLeastOne, Count, Float, LogSecs, NotNegative, Positive, Share, SmallCount, or_infinite,
};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

pub(crate) type Read<T> = Result<T, FieldError>;

/// The names of fields that a format has no place for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Unknown(Vec<String>);

impl<'de> Deserialize<'de> for Unknown {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(AnyFields).map(Self)
    }
}

struct AnyFields;

impl<'de> Visitor<'de> for AnyFields {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Vec<String>, A::Error> {
        let mut names = Vec::new();
        while let Some((name, IgnoredAny)) = fields.next_entry()? {
            names.push(name);
        }
        Ok(names)
    }
}

pub(crate) fn nothing_unknown(Unknown(names): &Unknown) -> Read<()> {
    match names.first() {
        Some(name) => within(name, Err(Problem::Unknown)),
        None => Ok(()),
    }
}
