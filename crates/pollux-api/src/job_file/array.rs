//! Several jobs of one file.

use super::JobFile;
use super::check::ARRAY_INDEX;

/// As many jobs as there are members; at most 10 000.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Array {
    /// So many, told apart by `POLLUX_ARRAY_INDEX`, from 0.
    Count(u32),
    /// One for each value of a variable; they have the index too.
    Values {
        /// The variable.
        variable: String,
        /// Its values.
        values: Vec<String>,
    },
}

impl Array {
    /// How many members.
    pub fn len(&self) -> usize {
        match self {
            Self::Count(count) => *count as usize,
            Self::Values { values, .. } => values.len(),
        }
    }

    /// Whether it has none; no file leads there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl JobFile {
    /// The members of an array, called `name-0`, `name-1` and so on; the job itself if it is none.
    ///
    /// ```
    /// use pollux_api::job_file::JobFile;
    ///
    /// let text = "name: sweep\ncommand: train\narray: {SEED: [7, 8]}\n";
    /// let members = JobFile::read(text.as_bytes(), "sweep.yaml").unwrap().expand();
    /// assert_eq!((members.len(), members[1].name.as_str()), (2, "sweep-1"));
    /// assert_eq!((members[1].env["SEED"].as_str(), members[1].env["POLLUX_ARRAY_INDEX"].as_str()), ("8", "1"));
    /// ```
    pub fn expand(&self) -> Vec<Self> {
        let Some(array) = &self.array else { return vec![self.clone()] };
        let member = |index: usize| {
            let mut job = Self { name: format!("{}-{index}", self.name), array: None, ..self.clone() };
            job.env.insert(ARRAY_INDEX.to_owned(), index.to_string());
            if let Array::Values { variable, values } = array
                && let Some(value) = values.get(index)
            {
                job.env.insert(variable.clone(), value.clone());
            }
            job
        };
        (0..array.len()).map(member).collect()
    }
}
