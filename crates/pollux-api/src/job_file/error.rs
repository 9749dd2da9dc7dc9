//! What can be wrong with a job file, and where.

use std::borrow::Cow;
use std::fmt;

use super::tree::At;
use super::{MOST_BYTES, VERSION};
use crate::quote::{Quoted, Shown};

/// A job file that cannot be read: where and why. It is shown with the line that is wrong and a mark below the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFileError {
    /// The file's name; none for JSON that came otherwise.
    pub file: Option<String>,
    /// Where in the file.
    pub place: Option<Place>,
    /// The line that stands there.
    pub line: Option<String>,
    /// What is wrong.
    pub problem: Box<Problem>,
}

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
}

/// What is wrong with a job file. Keys are given with the path to them: `resources.gpus.min`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// More than anybody writes.
    #[error("{bytes} bytes are too many for a job file; it may have {MOST_BYTES}")]
    TooLong {
        /// How many.
        bytes: usize,
    },
    /// Bytes that are no text.
    #[error("this is not UTF-8 text; save the file in that encoding")]
    NotText,
    /// Text that its format does not know.
    #[error("not {format}: {message}")]
    Syntax {
        /// The format.
        format: &'static str,
        /// What its parser says.
        message: String,
    },
    /// A key that stands twice in one table.
    #[error("key {} stands twice; keep one of the two", Quoted(key))]
    Twice {
        /// The key.
        key: String,
    },
    /// Not a table of keys and values.
    #[error(
        "a job file begins with keys such as `name: resnet` and `command: python train.py`, not with {found}"
    )]
    NotATable {
        /// What stands there.
        found: String,
    },
    /// A format of another time.
    #[error("`version`: {found} is not a version this program reads; it reads {VERSION}")]
    Version {
        /// What stands there.
        found: String,
    },
    /// A key that means nothing where it stands.
    #[error("{}", Unknown { key, near: *near, known })]
    UnknownKey {
        /// The key.
        key: String,
        /// The nearest that is known, if any is near.
        near: Option<&'static str>,
        /// All that are.
        known: &'static [&'static str],
    },
    /// A key that must be there and is not.
    #[error("`{key}` is missing: it is {expected}")]
    Missing {
        /// The key.
        key: String,
        /// What should stand there.
        expected: &'static str,
    },
    /// A value that is not what its key holds.
    #[error("`{}`: {found} is not {expected}", Shown(key))]
    Value {
        /// The key.
        key: String,
        /// What stands there.
        found: String,
        /// What should.
        expected: Cow<'static, str>,
    },
    /// Values that contradict each other.
    #[error("`{}`: {message}", Shown(key))]
    Conflict {
        /// The key of one of them.
        key: String,
        /// What and how to mend it.
        message: String,
    },
}

impl fmt::Display for JobFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}")?;
            if let Some(Place { line, column }) = self.place {
                write!(f, ":{line}:{column}")?;
            }
            f.write_str(": ")?;
        }
        write!(f, "{}", self.problem)?;
        if let (Some(place), Some(line)) = (self.place, &self.line) {
            let (number, margin) = (place.line, " ".repeat(place.line.to_string().len()));
            let (line, mark) = excerpt(line, place.column);
            write!(f, "\n {margin} |\n {number} | {line}\n {margin} | {mark}^")?;
        }
        Ok(())
    }
}

impl std::error::Error for JobFileError {}

/// The part of a line around a column, without what a terminal would obey, and the space before the mark.
fn excerpt(line: &str, column: usize) -> (String, String) {
    // The most characters shown before the place, and in all.
    const BEFORE: usize = 60;
    const SHOWN: usize = 90;
    let from = column.saturating_sub(BEFORE);
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let shown: String = line.chars().skip(from).take(SHOWN).map(plain).collect();
    let before = column.saturating_sub(1 + from).min(shown.chars().count());
    (shown.trim_end().to_owned(), " ".repeat(before))
}

struct Unknown<'a> {
    key: &'a str,
    near: Option<&'static str>,
    known: &'static [&'static str],
}

impl fmt::Display for Unknown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a key of a job file; ", Shown(self.key))?;
        match self.near {
            Some(near) => write!(f, "did you mean `{near}`?"),
            None => write!(f, "known here are {}", self.known.join(", ")),
        }
    }
}

/// A problem and where it was met, before the file is known.
#[derive(Debug)]
pub(super) struct Wrong {
    at: At,
    problem: Box<Problem>,
}

impl Wrong {
    pub(super) fn new(at: At, problem: Problem) -> Self {
        Self { at, problem: Box::new(problem) }
    }

    pub(super) fn nowhere(problem: Problem) -> Self {
        Self::new(At::Nowhere, problem)
    }

    pub(super) fn at_byte(byte: usize, problem: Problem) -> Self {
        Self::new(At::Byte(byte), problem)
    }

    /// The error of JSON that is no file.
    pub(super) fn anywhere(self) -> JobFileError {
        JobFileError { file: None, place: None, line: None, problem: self.problem }
    }

    pub(super) fn in_file(self, file: &str, text: &str) -> JobFileError {
        let place = match self.at {
            At::Nowhere => None,
            At::Byte(byte) => Some(place_of(text, byte)),
            At::Place(place) => Some(place),
        };
        let line = place.and_then(|place| text.lines().nth(place.line.saturating_sub(1))).map(str::to_owned);
        JobFileError { file: Some(file.to_owned()), place, line, problem: self.problem }
    }
}

fn place_of(text: &str, byte: usize) -> Place {
    let before = &text[..text.floor_char_boundary(byte)];
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Place { line: 1 + before.matches('\n').count(), column: 1 + before[start..].chars().count() }
}
