//! What keeps the pure ring pure: few dependencies, and one file of lints for all its crates.

use super::Problem;
use super::layers::is_pure;
use super::tree::SourceFile;
use crate::metadata::{Crate, Kind};

/// What pure crates may use from outside the workspace, and why it does them no harm.
const ALLOWED: &[(&str, &str)] = &[
    ("libm", "transcendental functions that give the same bits on every machine"),
    ("thiserror", "derives `Error`; a macro that leaves no code of its own behind"),
];

/// Compares the external dependencies of the pure crates with the list. Tests may use others.
pub(super) fn check_external(crates: &[Crate]) -> Vec<Problem> {
    let is_member = |name: &str| crates.iter().any(|member| member.name == name);
    let mut problems = Vec::new();
    for member in crates.iter().filter(|member| is_pure(&member.name)) {
        for dependency in &member.dependencies {
            let name = dependency.name.as_str();
            let listed = ALLOWED.iter().any(|(allowed, _)| *allowed == name);
            if dependency.kind == Kind::Dev || is_member(name) || listed {
                continue;
            }
            let message = format!(
                "`{}` is a pure crate and may not depend on `{name}`; use it at the rim, or give the reason \
                 why it is pure in ALLOWED in {}",
                member.name,
                file!()
            );
            let line = member.line_of(dependency);
            problems.push(Problem { line, ..Problem::in_file(&member.manifest_path(), message) });
        }
    }
    problems
}

/// Every pure crate has a `clippy.toml` (clippy reads only the nearest one), and all are the same.
pub(super) fn check_lint_files(crates: &[Crate], files: &[SourceFile]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut first: Option<&SourceFile> = None;
    for member in crates.iter().filter(|member| is_pure(&member.name)) {
        let path = format!("{}/clippy.toml", member.dir);
        match (files.iter().find(|file| file.path == path), first) {
            (None, _) => problems.push(Problem::in_file(
                &path,
                format!("missing; `{}` is a pure crate: copy the file of another one", member.name),
            )),
            (Some(file), None) => first = Some(file),
            (Some(file), Some(first)) if file.bytes != first.bytes => problems.push(Problem {
                line: Some(first_difference(&file.bytes, &first.bytes)),
                ..Problem::in_file(&path, format!("differs from {}; make the two equal", first.path))
            }),
            (Some(_), Some(_)) => {}
        }
    }
    problems
}

/// The first line, from one, that two contents do not share.
fn first_difference(left: &[u8], right: &[u8]) -> usize {
    let lines = |bytes| <[u8]>::split(bytes, |byte| *byte == b'\n');
    1 + lines(left).zip(lines(right)).take_while(|(left, right)| left == right).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pure_crates_use_only_what_is_listed() {
        let model = Crate::new("pollux-model", &[("libm", Kind::Normal), ("proptest", Kind::Dev)]);
        let agent =
            Crate::new("pollux-agent", &[("pollux-model", Kind::Normal), ("thiserror", Kind::Normal)]);
        let api = Crate::new("pollux-api", &[("serde", Kind::Normal)]);
        assert_eq!(check_external(&[model, agent, api]), []);
    }

    #[test]
    fn another_dependency_of_a_pure_crate_is_an_error() {
        for kind in [Kind::Normal, Kind::Build] {
            let problems = check_external(&[Crate::new("pollux-policy", &[("rand", kind)])]);
            assert_eq!(problems.len(), 1);
            assert_eq!(problems[0].file, "crates/pollux-policy/Cargo.toml");
            assert!(problems[0].message.contains("may not depend on `rand`"));
        }
    }

    fn check_files(files: &[(&str, &str)], expected: &[&str]) {
        let crates =
            [Crate::new("pollux-model", &[]), Crate::new("pollux-agent", &[]), Crate::new("pollux-api", &[])];
        let files: Vec<SourceFile> =
            files.iter().map(|(path, content)| SourceFile::new(path, content)).collect();
        let problems: Vec<String> =
            check_lint_files(&crates, &files).iter().map(ToString::to_string).collect();
        assert_eq!(problems, expected);
    }

    #[test]
    fn equal_lint_files_are_fine() {
        check_files(
            &[("crates/pollux-model/clippy.toml", "a"), ("crates/pollux-agent/clippy.toml", "a")],
            &[],
        );
    }

    #[test]
    fn missing_and_different_lint_files_are_errors() {
        check_files(
            &[("crates/pollux-model/clippy.toml", "a")],
            &[
                "error: crates/pollux-agent/clippy.toml: missing; `pollux-agent` is a pure crate: copy the file \
               of another one",
            ],
        );
        check_files(
            &[("crates/pollux-model/clippy.toml", "a\nb\n"), ("crates/pollux-agent/clippy.toml", "a\nc\n")],
            &[
                "error: crates/pollux-agent/clippy.toml:2: differs from crates/pollux-model/clippy.toml; make the \
               two equal",
            ],
        );
    }
}
