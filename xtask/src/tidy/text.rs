//! What may stand in a file, and how large it may grow.
//!
//! The needles are put together from pieces, so that this file passes its own check.

use super::tree::SourceFile;
use super::{Problem, Severity};

/// The most bytes of a file; larger ones are data, and data does not live in the repository.
const MAX_BYTES: usize = 1024 * 1024;

/// The most lines of a Rust file.
const MAX_LINES: usize = 600;

/// Rust files that may be longer for now: the path, and why. Each is mentioned in every run.
const LONG_FILES: &[(&str, &str)] = &[];

/// Folders that exist on one developer's machine.
const MACHINE_DIRS: &[&str] = &[concat!("/ro", "ot/"), HOMES, concat!("/wo", "rk/")];

/// Where users' folders lie; only a name behind it makes it one machine's.
const HOMES: &str = concat!("/ho", "me/");

/// Hosts packages come from. Which one is used is a matter of the machine, not of the sources.
const REGISTRIES: &[&str] = &[
    concat!("pypi", ".org"),
    concat!("crates", ".io/"),
    concat!("npm", "js"),
    concat!("debian", ".org"),
    concat!("proxy", ".golang"),
];

/// The one source that cargo itself writes into a lock file.
const LOCK_SOURCE: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

/// Leftovers of unfinished work in Rust, each with what to do about it.
const LEFTOVERS: &[(&str, &str)] = &[
    (concat!("to", "do!("), "write what is missing"),
    (concat!("unimple", "mented!("), "write what is missing"),
    (concat!("db", "g!("), "remove it"),
    (concat!("#[ig", "nore"), "let the test run, or remove it"),
];

/// All checks of one file.
pub(super) fn check(file: &SourceFile) -> Vec<Problem> {
    let path = file.path.as_str();
    let mut problems = Vec::new();
    problems.extend(check_size(path, file.bytes.len()));
    let Some(text) = file.text() else { return problems };
    if file.is("rs") {
        problems.extend(check_length(path, text.lines().count(), LONG_FILES));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        problems.push(Problem::at_line(path, text.lines().count(), "end the file with a newline"));
    }
    for (number, line) in (1..).zip(text.split('\n')) {
        problems.extend(check_line(file, line).into_iter().map(|what| Problem::at_line(path, number, what)));
    }
    problems
}

fn check_size(path: &str, n_bytes: usize) -> Option<Problem> {
    let message = format!("{n_bytes} bytes, more than {MAX_BYTES}; keep data outside the repository");
    (n_bytes > MAX_BYTES).then(|| Problem::in_file(path, message))
}

fn check_length(path: &str, n_lines: usize, tolerated: &[(&str, &str)]) -> Option<Problem> {
    if n_lines <= MAX_LINES {
        return None;
    }
    let long = format!("{n_lines} lines, more than {MAX_LINES}");
    Some(match tolerated.iter().find(|(name, _)| *name == path) {
        Some((_, reason)) => Problem {
            severity: Severity::Warning,
            ..Problem::in_file(path, format!("{long}, for now: {reason}"))
        },
        None => Problem::in_file(path, format!("{long}; split it along its parts")),
    })
}

/// What is wrong with one line.
fn check_line(file: &SourceFile, line: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(dir) = machine_dir(line) {
        found.push(format!(
            "`{dir}` is a path of one machine; write it relative to the repository, or let a variable name it"
        ));
    }
    if let Some(host) = REGISTRIES.iter().find(|host| line.contains(*host)) {
        found.push(format!(
            "`{host}` is a registry; name the package alone and leave its source to the machine"
        ));
    }
    if file.path == "Cargo.lock" && line.starts_with("source = ") && line != LOCK_SOURCE {
        found.push("not cargo's standard registry; take the package from there".to_owned());
    }
    if (file.is("rs") || file.is("md")) && line.ends_with([' ', '\t', '\r']) {
        found.push("remove the white space at the end".to_owned());
    }
    if file.is("rs") {
        for (leftover, advice) in LEFTOVERS.iter().filter(|(leftover, _)| line.contains(leftover)) {
            found.push(format!("`{leftover}` is left over; {advice}"));
        }
    }
    found
}

/// The folder of a developer's machine that a line names, if it does.
fn machine_dir(line: &str) -> Option<&'static str> {
    MACHINE_DIRS.iter().copied().find(|dir| {
        line.match_indices(dir).any(|(at, _)| {
            // After a name, a variable or a pattern this is the middle of another path.
            let inside = |c: char| c.is_alphanumeric() || "._-~*})".contains(c);
            let absolute = !line[..at].ends_with(inside);
            absolute && (*dir != HOMES || starts_with_name(&line[at + dir.len()..]))
        })
    })
}

/// Whether the text is a user's name and a slash, and not a placeholder for one.
fn starts_with_name(text: &str) -> bool {
    let is_name = |name: &str| name.chars().all(|c| c.is_alphanumeric() || "._-".contains(c));
    text.split_once('/').is_some_and(|(name, _)| !name.is_empty() && is_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problems of one file, in the form they are printed.
    fn check_text(path: &str, text: &str, expected: &[&str]) {
        let problems: Vec<String> =
            check(&SourceFile::new(path, text)).iter().map(ToString::to_string).collect();
        assert_eq!(problems.len(), expected.len(), "{problems:?}");
        for (problem, expected) in problems.iter().zip(expected) {
            assert!(problem.starts_with(&format!("error: {path}:{expected}")), "{problem}");
        }
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        let [root, home, work] = MACHINE_DIRS else { panic!("three folders") };
        check_text("a.toml", &format!("x = 1\ny = \"{root}data\"\n"), &[&format!("2: `{root}`")]);
        check_text("a.md", &format!("see {home}ann/x\n"), &[&format!("1: `{home}`")]);
        check_text("a.sh", &format!("cd file://{work}main\n"), &[&format!("1: `{work}`")]);
    }

    #[test]
    fn other_paths_are_left_alone() {
        let [root, home, work] = MACHINE_DIRS else { panic!("three folders") };
        check_text("a.md", &format!("$DIR{root}a ..{work}b example.com{work} ${{X}}{root}\n"), &[]);
        check_text("a.md", &format!("{home}<name>/ or {home}$USER/ or {home}\n"), &[]);
    }

    #[test]
    fn registries_are_found() {
        for host in REGISTRIES {
            check_text("setup.cfg", &format!("url = https://{host}/simple\n"), &[&format!("1: `{host}`")]);
        }
    }

    #[test]
    fn a_lock_file_names_the_standard_registry_alone() {
        check_text("Cargo.lock", &format!("{LOCK_SOURCE}\n"), &[]);
        check_text("Cargo.lock", "source = \"registry+https://mirror.example/index\"\n", &["1: not cargo's"]);
    }

    #[test]
    fn leftovers_are_found_in_rust_alone() {
        for (leftover, _) in LEFTOVERS {
            check_text("src/a.rs", &format!("\n    {leftover}\n"), &[&format!("2: `{leftover}`")]);
            check_text("a.md", &format!("never {leftover}\n"), &[]);
        }
    }

    #[test]
    fn white_space_at_the_end_is_found() {
        check_text("a.rs", "fn a() {} \n", &["1: remove the white space"]);
        check_text("a.md", "one\ntwo\t\r\n", &["2: remove the white space"]);
        check_text("a.txt", "table  \n", &[]);
    }

    #[test]
    fn text_ends_with_a_newline() {
        check_text("a.toml", "a = 1\nb = 2", &["2: end the file with a newline"]);
        check_text("a.toml", "", &[]);
        check_text("a.png", "\0", &[]);
    }

    #[test]
    fn large_files_are_found() {
        assert_eq!(check_size("a.csv", MAX_BYTES), None);
        let problem = check_size("a.csv", MAX_BYTES + 1).unwrap().to_string();
        assert!(problem.starts_with("error: a.csv: 1048577 bytes"), "{problem}");
        let binary = SourceFile { path: "a.bin".to_owned(), bytes: vec![0; MAX_BYTES + 1] };
        assert_eq!(check(&binary).len(), 1);
    }

    #[test]
    fn long_rust_files_are_found_and_may_be_tolerated() {
        let long = "//\n".repeat(MAX_LINES + 1);
        check_text("a.rs", &long, &[" 601 lines"]);
        check_text("a.rs", &long[3..], &[]);
        check_text("a.csv", &long, &[]);
        let tolerated = check_length("a.rs", MAX_LINES + 1, &[("a.rs", "a table")]).unwrap();
        assert_eq!(tolerated.severity, Severity::Warning);
    }
}
