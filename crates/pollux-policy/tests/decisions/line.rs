//! One line of a scenario: a word for what it is, names, and fields.

use std::collections::BTreeMap;
use std::str::FromStr;

/// What is wrong with a file, and where.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) line: usize,
    pub(crate) what: String,
}

/// `kind name name key=value key=value`. Who reads it takes the fields one by one; none may be left over.
pub(crate) struct Line<'a> {
    pub(crate) number: usize,
    pub(crate) kind: &'a str,
    pub(crate) names: Vec<&'a str>,
    fields: BTreeMap<&'a str, &'a str>,
}

impl<'a> Line<'a> {
    pub(crate) fn read(number: usize, text: &'a str) -> Result<Self, Fault> {
        let mut words = text.split_whitespace();
        let kind = words.next().unwrap_or("");
        let mut line = Self { number, kind, names: Vec::new(), fields: BTreeMap::new() };
        for word in words {
            match word.split_once('=') {
                None => line.names.push(word),
                Some((key, value)) => {
                    if line.fields.insert(key, value).is_some() {
                        return Err(line.fault(format!("`{key}` is given twice")));
                    }
                }
            }
        }
        Ok(line)
    }

    pub(crate) fn fault(&self, what: impl Into<String>) -> Fault {
        Fault { line: self.number, what: what.into() }
    }

    /// The only name.
    pub(crate) fn name(&self) -> Result<&'a str, Fault> {
        match self.names[..] {
            [name] => Ok(name),
            _ => Err(self.fault(format!("`{}` needs one name", self.kind))),
        }
    }

    /// The words of a field.
    pub(crate) fn text(&mut self, key: &str) -> Option<&'a str> {
        self.fields.remove(key)
    }

    /// A number, if the field is there.
    pub(crate) fn number<T: FromStr>(&mut self, key: &str) -> Result<Option<T>, Fault> {
        let Some(value) = self.text(key) else { return Ok(None) };
        self.parse(key, value).map(Some)
    }

    pub(crate) fn parse<T: FromStr>(&self, key: &str, value: &str) -> Result<T, Fault> {
        value.parse().map_err(|_| self.fault(format!("`{key}`: `{value}` is no such number")))
    }

    /// `one:1,other:2`. Where it is a number alone, it belongs to `only`.
    pub(crate) fn numbers<T: FromStr>(
        &mut self,
        key: &str,
        only: &'a str,
    ) -> Result<Vec<(&'a str, T)>, Fault> {
        let Some(value) = self.text(key) else { return Ok(Vec::new()) };
        let pair = |part: &'a str| {
            let (name, value) = part.split_once(':').unwrap_or((only, part));
            Ok((name, self.parse(key, value)?))
        };
        value.split(',').map(pair).collect()
    }

    /// One of these words, if the field is there.
    pub(crate) fn word<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Result<Option<T>, Fault> {
        let Some(value) = self.text(key) else { return Ok(None) };
        let found = words.iter().find(|(word, _)| *word == value);
        found.map(|&(_, meaning)| Some(meaning)).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|&(word, _)| word).collect();
            self.fault(format!("`{key}`: `{value}` is none of {}", known.join(", ")))
        })
    }

    /// All of it must have been read.
    pub(crate) fn finish(self) -> Result<(), Fault> {
        match self.fields.keys().next() {
            None => Ok(()),
            Some(key) => Err(self.fault(format!("`{}` has no field `{key}`", self.kind))),
        }
    }
}
