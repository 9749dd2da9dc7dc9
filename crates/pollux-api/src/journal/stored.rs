//! How values become forms that serde knows, and back. Forms are declared field by field, so that renaming a field of the
//! pure ring stops the build and changes no file.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use pollux_core::{CycleId, Generation, PoolId, SizeId, Teacher};
use pollux_model::{AgentReport, GpuType, JobId, NodeId, Timestamp};
use pollux_policy::{GroupId, Seed};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::agent_report::AgentReportBody;
use crate::quote::Quoted;
use crate::wire::{Float, Problem, Read, within};

/// A value that the journal holds.
pub(super) trait Stored: Sized {
    /// As it is written.
    type Form: Serialize + DeserializeOwned;

    fn write(&self) -> Self::Form;

    fn read(form: Self::Form) -> Read<Self>;
}

/// The name of a value in a map.
pub(super) trait Key: Sized {
    fn text(&self) -> String;

    fn of(text: &str) -> Option<Self>;
}

/// Declares the form of a struct: its fields as they are, and the types of their values.
macro_rules! stored_struct {
    ($($of:path => $form:ident { $($field:ident: $type:ty),* $(,)? })*) => {$(
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $form {
            $($field: <$type as Stored>::Form,)*
        }

        impl Stored for $of {
            type Form = $form;

            fn write(&self) -> $form {
                // Every field is named, so that a new one cannot be forgotten.
                let $of { $($field),* } = self;
                $form { $($field: <$type as Stored>::write($field),)* }
            }

            fn read(form: $form) -> Read<Self> {
                Ok(Self { $($field: within(stringify!($field), <$type as Stored>::read(form.$field))?,)* })
            }
        }
    )*};
}

/// Declares the form of an enum: what a variant holds, by the name it has in the file and the field (or its number) in
/// the code.
macro_rules! stored_enum {
    ($($of:path => $form:ident {
        $($variant:ident $({ $($field:ident = $at:tt: $type:ty),* $(,)? })?),* $(,)?
    })*) => {$(
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        #[allow(clippy::large_enum_variant, reason = "made to be written or read at once")]
        pub(super) enum $form {
            $($variant $({ $($field: <$type as Stored>::Form),* })?,)*
        }

        impl Stored for $of {
            type Form = $form;

            fn write(&self) -> $form {
                match self {
                    $(Self::$variant $({ $($at: $field),* })? => {
                        $form::$variant $({ $($field: <$type as Stored>::write($field)),* })?
                    })*
                }
            }

            fn read(form: $form) -> Read<Self> {
                Ok(match form {
                    $($form::$variant $({ $($field),* })? => Self::$variant $({
                        $($at: within(stringify!($field), <$type as Stored>::read($field))?),*
                    })?,)*
                })
            }
        }
    )*};
}

/// Values that are their own form, and those that are a number with a name.
macro_rules! stored_number {
    ($($plain:ty),*; $($of:ident($number:ty)),*) => {
        $(impl Stored for $plain {
            type Form = Self;

            fn write(&self) -> Self {
                self.clone()
            }

            fn read(form: Self) -> Read<Self> {
                Ok(form)
            }
        })*

        $(impl Stored for $of {
            type Form = $number;

            fn write(&self) -> $number {
                self.0
            }

            fn read(form: $number) -> Read<Self> {
                Ok(Self(form))
            }
        }

        impl Key for $of {
            fn text(&self) -> String {
                self.0.to_string()
            }

            fn of(text: &str) -> Option<Self> {
                text.parse().ok().map(Self)
            }
        })*
    };
}

pub(super) use {stored_enum, stored_struct};

stored_number! {
    bool, u32, u64, String;
    JobId(u64), NodeId(u32), GroupId(u32), PoolId(u32), CycleId(u64), SizeId(u64), Generation(u32), Seed(u64)
}

impl Stored for f64 {
    type Form = Float;

    fn write(&self) -> Float {
        Float(*self)
    }

    fn read(Float(number): Float) -> Read<Self> {
        Ok(number)
    }
}

impl Stored for usize {
    type Form = u64;

    fn write(&self) -> u64 {
        u64::try_from(*self).unwrap_or(u64::MAX)
    }

    fn read(form: u64) -> Read<Self> {
        // Where counts are shorter, no more can be there.
        Ok(Self::try_from(form).unwrap_or(Self::MAX))
    }
}

impl Stored for Timestamp {
    type Form = u64;

    fn write(&self) -> u64 {
        self.as_micros()
    }

    fn read(form: u64) -> Read<Self> {
        Ok(Self::from_micros(form))
    }
}

impl Stored for Duration {
    /// Whole seconds, and nanoseconds beyond them.
    type Form = (u64, u32);

    fn write(&self) -> (u64, u32) {
        (self.as_secs(), self.subsec_nanos())
    }

    fn read((secs, nanos): (u64, u32)) -> Read<Self> {
        if nanos >= 1_000_000_000 {
            return Err(Problem::Format(format!("{nanos} nanoseconds are a second or more")).into());
        }
        Ok(Self::new(secs, nanos))
    }
}

impl Stored for GpuType {
    type Form = String;

    fn write(&self) -> String {
        self.name().to_owned()
    }

    fn read(form: String) -> Read<Self> {
        Ok(Self::new(&form))
    }
}

impl Stored for Arc<str> {
    type Form = String;

    fn write(&self) -> String {
        self.as_ref().to_owned()
    }

    fn read(form: String) -> Read<Self> {
        Ok(form.into())
    }
}

impl Stored for AgentReport {
    type Form = AgentReportBody;

    fn write(&self) -> AgentReportBody {
        self.into()
    }

    fn read(form: AgentReportBody) -> Read<Self> {
        form.read()
    }
}

impl<T: Stored> Stored for Option<T> {
    type Form = Option<T::Form>;

    fn write(&self) -> Self::Form {
        self.as_ref().map(T::write)
    }

    fn read(form: Self::Form) -> Read<Self> {
        form.map(T::read).transpose()
    }
}

impl<T: Stored> Stored for Arc<T> {
    type Form = T::Form;

    fn write(&self) -> Self::Form {
        self.as_ref().write()
    }

    fn read(form: Self::Form) -> Read<Self> {
        T::read(form).map(Self::new)
    }
}

impl<T: Stored, U: Stored> Stored for (T, U) {
    type Form = (T::Form, U::Form);

    fn write(&self) -> Self::Form {
        (self.0.write(), self.1.write())
    }

    fn read((first, second): Self::Form) -> Read<Self> {
        Ok((within("[0]", T::read(first))?, within("[1]", U::read(second))?))
    }
}

impl<T: Stored> Stored for Vec<T> {
    type Form = Vec<T::Form>;

    fn write(&self) -> Self::Form {
        self.iter().map(T::write).collect()
    }

    fn read(form: Self::Form) -> Read<Self> {
        let item = |(index, form)| within(&format!("[{index}]"), T::read(form));
        form.into_iter().enumerate().map(item).collect()
    }
}

impl<T: Stored> Stored for VecDeque<T> {
    type Form = Vec<T::Form>;

    fn write(&self) -> Self::Form {
        self.iter().map(T::write).collect()
    }

    fn read(form: Self::Form) -> Read<Self> {
        Vec::read(form).map(Into::into)
    }
}

impl<T: Stored + Ord> Stored for BTreeSet<T> {
    type Form = Vec<T::Form>;

    fn write(&self) -> Self::Form {
        self.iter().map(T::write).collect()
    }

    fn read(form: Self::Form) -> Read<Self> {
        Ok(Vec::read(form)?.into_iter().collect())
    }
}

impl<K: Key + Ord, V: Stored> Stored for BTreeMap<K, V> {
    type Form = BTreeMap<String, V::Form>;

    fn write(&self) -> Self::Form {
        self.iter().map(|(key, value)| (key.text(), value.write())).collect()
    }

    fn read(form: Self::Form) -> Read<Self> {
        let mut map = Self::new();
        for (text, value) in form {
            let problem = || Problem::Format(format!("{} names nothing that can stand here", Quoted(&text)));
            let key = K::of(&text).ok_or_else(problem)?;
            if map.insert(key, within(&text, V::read(value))?).is_some() {
                return within(&text, Err(Problem::Repeated));
            }
        }
        Ok(map)
    }
}

impl Key for u64 {
    fn text(&self) -> String {
        self.to_string()
    }

    fn of(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Key for GpuType {
    fn text(&self) -> String {
        self.name().to_owned()
    }

    fn of(text: &str) -> Option<Self> {
        Some(Self::new(text))
    }
}

impl Key for Arc<str> {
    fn text(&self) -> String {
        self.as_ref().to_owned()
    }

    fn of(text: &str) -> Option<Self> {
        Some(text.into())
    }
}

impl Key for Teacher {
    fn text(&self) -> String {
        match self {
            Self::Application(name) => format!("application:{name}"),
            Self::Job(id) => format!("job:{}", id.0),
        }
    }

    fn of(text: &str) -> Option<Self> {
        match text.split_once(':')? {
            ("application", name) => Some(Self::Application(name.into())),
            ("job", id) => id.parse().ok().map(JobId).map(Self::Job),
            _ => None,
        }
    }
}
