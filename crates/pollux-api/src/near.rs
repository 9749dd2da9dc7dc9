//! "Did you mean": the known name nearest to an unknown one.

/// The candidate with the fewest edits from `word`, if those are few for its length.
///
/// Case, surrounding space and the difference between `-`, `_` and a space do not count.
pub(crate) fn nearest(
    word: &str,
    candidates: impl IntoIterator<Item = &'static str>,
) -> Option<&'static str> {
    /// No known name is near to anything longer.
    const LONGEST: usize = 64;
    let word: Vec<char> = word.trim().chars().take(LONGEST + 1).map(plain).collect();
    if word.len() > LONGEST {
        return None;
    }
    candidates
        .into_iter()
        .map(|candidate| {
            let letters: Vec<char> = candidate.chars().map(plain).collect();
            (edits(&word, &letters), letters.len(), candidate)
        })
        .filter(|&(edits, length, _)| edits <= (length / 3).max(1))
        .min_by_key(|&(edits, ..)| edits)
        .map(|(_, _, candidate)| candidate)
}

fn plain(letter: char) -> char {
    match letter {
        '-' | ' ' => '_',
        letter => letter.to_ascii_lowercase(),
    }
}

/// Letters to insert, delete or replace to turn one word into the other.
fn edits(from: &[char], to: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (n_before, letter) in from.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = n_before + 1;
        for (index, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[index + 1];
            row[index + 1] = replaced.min(row[index] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
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

    #[test]
    fn edits_are_counted() {
        let letters = |word: &str| word.chars().collect::<Vec<_>>();
        let count = |from: &str, to: &str| edits(&letters(from), &letters(to));
        assert_eq!(count("", "abc"), 3);
        assert_eq!(count("abc", ""), 3);
        assert_eq!(count("kitten", "sitting"), 3);
    }
}
