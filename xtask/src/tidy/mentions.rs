//! Every crate has its place in ARCHITECTURE.md.

use super::Problem;
use super::tree::SourceFile;
use crate::metadata::Crate;

/// The map of the code.
const MAP: &str = "ARCHITECTURE.md";

/// Finds crates that the map does not name.
pub(super) fn check(crates: &[Crate], files: &[SourceFile]) -> Vec<Problem> {
    let Some(map) = files.iter().find(|file| file.path == MAP).and_then(SourceFile::text) else {
        return vec![Problem::in_file(MAP, "missing; write what each crate is for")];
    };
    crates
        .iter()
        .filter(|member| member.dir.starts_with("crates/") && !mentions(map, &member.name))
        .map(|member| Problem::in_file(MAP, format!("add a paragraph on `{}` ({})", member.name, member.dir)))
        .collect()
}

/// Whether a text names a crate, and not just a longer name that holds it.
fn mentions(text: &str, name: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(continues) && !text[at + name.len()..].starts_with(continues))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_map(map: &str, expected: &[&str]) {
        let mut xtask = Crate::new("xtask", &[]);
        xtask.dir = "xtask".to_owned();
        let crates = [Crate::new("pollux", &[]), Crate::new("pollux-model", &[]), xtask];
        let problems: Vec<String> =
            check(&crates, &[SourceFile::new(MAP, map)]).iter().map(ToString::to_string).collect();
        assert_eq!(problems, expected);
    }

    #[test]
    fn every_crate_is_mentioned() {
        check_map("`pollux-model` is the model, and `pollux` the command.\n", &[]);
    }

    #[test]
    fn a_longer_name_is_no_mention() {
        let missing = "error: ARCHITECTURE.md: add a paragraph on `pollux` (crates/pollux)";
        check_map("`pollux-model` is the model.\n", &[missing]);
    }

    #[test]
    fn the_map_must_exist() {
        assert_eq!(check(&[], &[]).len(), 1);
    }
}
