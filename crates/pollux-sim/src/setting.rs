//! Settings as they are written on a command line, `KEY=VALUE,KEY=VALUE`, and what can be wrong with them.

/// The settings that a text may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// What one of them is called, without an article.
    pub what: &'static str,
    /// Their keys.
    pub keys: &'static [&'static str],
}

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// A part without `=`.
    #[error("{text:?} is no {}; write `KEY=VALUE,KEY=VALUE`, keys are {}", .known.what, quoted(.known.keys, ", "))]
    NotASetting {
        /// The part.
        text: String,
        /// What could stand there.
        known: &'static Known,
    },
    /// A key that does not exist.
    #[error("no {} named {key:?} among {}{}", .known.what, quoted(.known.keys, ", "), did_you_mean(*.near))]
    UnknownKey {
        /// What stands there.
        key: String,
        /// What could.
        known: &'static Known,
        /// The key nearest to it, if any is near.
        near: Option<&'static str>,
    },
    /// A key that stands twice.
    #[error("`{key}` stands twice; leave one out")]
    Twice {
        /// The key.
        key: &'static str,
    },
    /// A value that its key cannot have.
    #[error("`{key}`: {value:?} is not {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// What stands there.
        value: String,
        /// What should.
        expected: &'static str,
    },
}

impl Known {
    /// Gives each setting of a text to `set`, in their order, and returns the keys that were there.
    ///
    /// ```
    /// use pollux_sim::setting::Known;
    ///
    /// static KNOWN: Known = Known { what: "fault", keys: &["mtbf", "repair"] };
    /// let mut read = Vec::new();
    /// let keys = KNOWN.read("repair = 2h, mtbf=9h".split(','), |key, value| Ok(read.push((key, value))));
    /// assert_eq!((keys, read), (Ok(vec!["repair", "mtbf"]), vec![("repair", "2h"), ("mtbf", "9h")]));
    /// ```
    pub fn read<'t>(
        &'static self,
        parts: impl IntoIterator<Item = &'t str>,
        mut set: impl FnMut(&'static str, &'t str) -> Result<(), SettingError>,
    ) -> Result<Vec<&'static str>, SettingError> {
        let mut seen = Vec::new();
        for part in parts {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| SettingError::NotASetting { text: part.trim().to_owned(), known: self })?;
            let key = self.key(key.trim())?;
            if seen.contains(&key) {
                return Err(SettingError::Twice { key });
            }
            seen.push(key);
            set(key, value.trim())?;
        }
        Ok(seen)
    }

    fn key(&'static self, key: &str) -> Result<&'static str, SettingError> {
        let keys = || self.keys.iter().copied();
        keys().find(|known| *known == key).ok_or_else(|| SettingError::UnknownKey {
            key: key.to_owned(),
            known: self,
            near: pollux_api::nearest(key, keys()),
        })
    }
}

/// The words in backquotes.
pub(crate) fn quoted(words: &[&str], between: &str) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(between)
}

/// The end of a message about a name that does not exist.
pub(crate) fn did_you_mean(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    static PETS: Known = Known { what: "pet", keys: &["cat", "dog"] };

    fn check(text: &str, expected: &str) {
        let result = PETS.read(text.split(','), |key, value| {
            let wrong = || SettingError::Value { key, value: value.to_owned(), expected: "a name" };
            if value.is_empty() { Err(wrong()) } else { Ok(()) }
        });
        assert_eq!(result.unwrap_err().to_string(), expected, "{text}");
    }

    #[test]
    fn errors_say_what_can_be_written() {
        check("", "\"\" is no pet; write `KEY=VALUE,KEY=VALUE`, keys are `cat`, `dog`");
        check("cat=Tom, 7 ", "\"7\" is no pet; write `KEY=VALUE,KEY=VALUE`, keys are `cat`, `dog`");
        check("cats=Tom", "no pet named \"cats\" among `cat`, `dog`; did you mean `cat`?");
        check("elephant=Tom", "no pet named \"elephant\" among `cat`, `dog`");
        check("cat=Tom,dog=Rex,cat=Tim", "`cat` stands twice; leave one out");
        check("cat=", "`cat`: \"\" is not a name");
    }

    #[test]
    fn what_stands_first_is_wrong_first() {
        check("cat=,elephant=1", "`cat`: \"\" is not a name");
    }
}
