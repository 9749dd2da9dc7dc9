//! Relative links in Markdown lead to files of the repository.
//!
//! Only the file is looked for, not the heading behind a `#`. Text in code is no link.

use std::collections::BTreeSet;

use super::Problem;
use super::tree::SourceFile;

/// Checks the links of every Markdown file.
pub(super) fn check(files: &[SourceFile]) -> Vec<Problem> {
    let mut targets: BTreeSet<&str> = BTreeSet::from([""]);
    for file in files {
        let folders = file.path.match_indices('/').map(|(at, _)| &file.path[..at]);
        targets.extend(folders.chain([file.path.as_str()]));
    }
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.is("md")) {
        for (line, target) in file.text().map(links).unwrap_or_default() {
            let message = match resolve(&file.path, &target) {
                Some(path) if targets.contains(path.as_str()) => continue,
                Some(path) => {
                    format!("the link `{target}` leads to {path}, which is no file of the repository")
                }
                None => format!("the link `{target}` leaves the repository"),
            };
            problems.push(Problem::at_line(&file.path, line, format!("{message}; mend or remove it")));
        }
    }
    problems
}

/// The relative links of a text, each with its line.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    let mut fence: Option<&str> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let start = line.trim_start();
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark)) {
            match fence {
                None => fence = Some(mark),
                Some(open) if open == mark => fence = None,
                Some(_) => {}
            }
        } else if fence.is_none() {
            let targets = targets_of_line(&without_code(line));
            links.extend(
                targets.into_iter().filter(|target| is_relative(target)).map(|target| (number, target)),
            );
        }
    }
    links
}

/// What a line links to: `[text](target)`, `[label]: target`, and HTML's `src` and `href`.
fn targets_of_line(line: &str) -> Vec<String> {
    let first_word = |text: &str| text.split_whitespace().next().unwrap_or("").to_owned();
    let mut targets = Vec::new();
    for (at, opening) in line.match_indices("](") {
        let rest = &line[at + opening.len()..];
        let mut depth = 0;
        let end = rest.find(|c| {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            depth < 0
        });
        targets.extend(end.map(|end| first_word(&rest[..end])));
    }
    if line.starts_with('[') && !line.starts_with("[^") {
        targets.extend(line.split_once("]: ").map(|(_, target)| first_word(target)));
    }
    for attribute in ["src=\"", "href=\""] {
        for (at, _) in line.match_indices(attribute) {
            targets.extend(line[at + attribute.len()..].split('"').next().map(str::to_owned));
        }
    }
    targets.into_iter().map(|target| target.trim_matches(['<', '>']).to_owned()).collect()
}

/// The line with what stands between backticks left out.
fn without_code(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        let ticks = &rest[start..start + rest[start..].find(|c| c != '`').unwrap_or(rest.len() - start)];
        let inside = &rest[start + ticks.len()..];
        kept.push_str(&rest[..start]);
        rest = inside.find(ticks).map_or(inside, |end| &inside[end + ticks.len()..]);
    }
    kept + rest
}

/// Whether a target is a path, rather than an address or a heading of the same page.
fn is_relative(target: &str) -> bool {
    !(target.is_empty() || target.starts_with('#') || target.contains("://") || target.starts_with("mailto:"))
}

/// The path a link in a file leads to, from the root; none when that lies above the root.
fn resolve(from: &str, target: &str) -> Option<String> {
    let target = target.split(['#', '?']).next().unwrap_or("");
    let mut path: Vec<&str> = from.split('/').collect();
    path.pop();
    if target.starts_with('/') {
        path.clear();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                path.pop()?;
            }
            name => path.push(name),
        }
    }
    Some(path.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problems of `docs/guide.md` with this content, in a small repository.
    fn check_page(page: &str, expected: &[&str]) {
        let files = [
            SourceFile::new("README.md", ""),
            SourceFile::new("docs/guide.md", page),
            SourceFile::new("docs/concepts/goodput.md", ""),
        ];
        let problems: Vec<String> = check(&files).iter().map(ToString::to_string).collect();
        assert_eq!(problems.len(), expected.len(), "{problems:?}");
        for (problem, expected) in problems.iter().zip(expected) {
            assert!(problem.starts_with(&format!("error: docs/guide.md:{expected}")), "{problem}");
        }
    }

    #[test]
    fn links_to_files_and_folders_resolve() {
        check_page("[a](concepts/goodput.md#units) and [b](../README.md \"title\")\n", &[]);
        check_page("[a](concepts/) ![b](/docs/guide.md) [c](<./guide.md>) [root](..)\n", &[]);
        check_page("[a]: concepts/goodput.md\n<img src=\"../README.md\">\n", &[]);
    }

    #[test]
    fn broken_links_are_found() {
        check_page(
            "\n[a](concepts/speedup.md)\n",
            &["2: the link `concepts/speedup.md` leads to docs/concepts/"],
        );
        check_page("[README](README.md)\n", &["1: the link `README.md` leads to docs/README.md"]);
        check_page("[a](../../other/README.md)\n", &["1: the link `../../other/README.md` leaves"]);
        check_page(
            "[a]: gone.md\n<a href=\"lost.md\">\n",
            &["1: the link `gone.md`", "2: the link `lost.md`"],
        );
        check_page("`x` [a](one(1).md) [b](two.md)\n", &["1: the link `one(1).md`", "1: the link `two.md`"]);
    }

    #[test]
    fn addresses_headings_and_code_are_no_links() {
        check_page("[a](https://example.com/x.md) [b](#units) [c](mailto:x@example.com)\n", &[]);
        check_page("`[a](gone.md)` and ``[b](`gone.md`)``\n[^1]: gone.md\n", &[]);
        check_page("```text\n~~~\n[a](gone.md)\n```\n[b](lost.md)\n", &["5: the link `lost.md`"]);
    }
}
