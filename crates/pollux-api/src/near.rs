//! "Did you mean": the known name nearest to an unknown one.

/// The candidate with the fewest edits from `word`, if those are few for its length.
///
/// Case, surrounding space and the difference between `-`, `_` and a space do not count.
///
/// ```
/// assert_eq!(pollux_api::nearest("polux", ["pollux", "fifo"]), Some("pollux"));
/// assert_eq!(pollux_api::nearest("best", ["pollux", "fifo"]), None);
/// ```
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// No known name is near to anything longer.
    const LONGEST: usize = 64;
    if word.len() > LONGEST {
        return None;
    }
    let plainly = |name: &str| name.trim().chars().map(plain).collect::<String>();
    let word = plainly(word);
    candidates
        .into_iter()
        .map(|candidate| (strsim::levenshtein(&word, &plainly(candidate)), candidate))
        .filter(|&(edits, candidate)| edits <= (candidate.len() / 3).max(1))
        .min_by_key(|&(edits, _)| edits)
        .map(|(_, candidate)| candidate)
}

fn plain(letter: char) -> char {
    match letter {
        '-' | ' ' => '_',
        letter => letter.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, expected: Option<&str>) {
        assert_eq!(nearest(word, ["nodes", "replicas", "optim_time_s", "accum_time_s"]), expected, "{word}");
    }

    #[test]
    fn slips_are_near() {
        check("node", Some("nodes"));
        check("optim_time", Some("optim_time_s"));
        check("Optim-Time-S", Some("optim_time_s"));
        check("acum_tiem_s", Some("accum_time_s"));
    }

    #[test]
    fn other_words_are_not() {
        check("model", None);
        check("", None);
        check(&"nodes".repeat(1_000), None);
    }
}
