//! Which crate may build on which.

use std::collections::BTreeSet;

use super::Problem;
use crate::metadata::{Crate, Kind};

/// How far a crate is from the outside world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ring {
    /// No files, sockets, clock, environment or ambient randomness; no wire formats.
    Pure,
    /// Formats, services and everything else that touches the world.
    Rim,
    /// The programs.
    Outer,
}

/// A crate and what it may build on: the crates named, and all that those may build on.
struct Layer {
    name: &'static str,
    ring: Ring,
    uses: &'static [&'static str],
}

/// The allowed dependencies. ARCHITECTURE.md draws the same arrows; change both together.
const LAYERS: &[Layer] = &[
    Layer { name: "pollux-model", ring: Ring::Pure, uses: &[] },
    Layer { name: "pollux-agent", ring: Ring::Pure, uses: &["pollux-model"] },
    Layer { name: "pollux-policy", ring: Ring::Pure, uses: &["pollux-model"] },
    Layer { name: "pollux-core", ring: Ring::Pure, uses: &["pollux-policy"] },
    Layer { name: "pollux-api", ring: Ring::Rim, uses: &["pollux-core", "pollux-agent"] },
    Layer { name: "pollux-report", ring: Ring::Rim, uses: &["pollux-model"] },
    Layer { name: "pollux-sim", ring: Ring::Rim, uses: &["pollux-api", "pollux-report"] },
    Layer { name: "pollux-py", ring: Ring::Rim, uses: &["pollux-api", "pollux-sim"] },
    Layer { name: "pollux-server", ring: Ring::Rim, uses: &["pollux-api"] },
    Layer { name: "pollux-operator", ring: Ring::Rim, uses: &["pollux-server"] },
    Layer { name: "pollux", ring: Ring::Outer, uses: &["pollux-operator", "pollux-server", "pollux-sim"] },
    Layer { name: "pollux-trainer", ring: Ring::Outer, uses: &["pollux-sim"] },
    Layer { name: "xtask", ring: Ring::Outer, uses: &[] },
];

fn layer(name: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| layer.name == name)
}

/// Whether the table puts this crate into the pure ring.
pub(super) fn is_pure(name: &str) -> bool {
    layer(name).is_some_and(|layer| layer.ring == Ring::Pure)
}

/// All that a crate may build on, along the arrows.
fn reachable(name: &str) -> BTreeSet<&'static str> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&str> = layer(name).map_or(vec![], |layer| layer.uses.to_vec());
    while let Some(next) = open.pop() {
        if let Some(layer) = layer(next)
            && seen.insert(layer.name)
        {
            open.extend(layer.uses);
        }
    }
    seen
}

/// Compares the edges between the crates of the workspace with the table.
///
/// Tests may use any crate, but those of a pure crate only pure ones.
pub(super) fn check_edges(crates: &[Crate]) -> Vec<Problem> {
    let members: BTreeSet<&str> = crates.iter().map(|member| member.name.as_str()).collect();
    let mut problems = Vec::new();
    for member in crates {
        let name = &member.name;
        if layer(name).is_none() {
            problems.push(Problem::in_file(
                &member.manifest_path(),
                format!("`{name}` has no place among the crates; add it to LAYERS in {}", file!()),
            ));
            continue;
        }
        let allowed = reachable(name);
        for dependency in member.dependencies.iter().filter(|d| members.contains(d.name.as_str())) {
            let target = dependency.name.as_str();
            let message = match dependency.kind {
                Kind::Dev if !is_pure(name) || is_pure(target) => continue,
                Kind::Dev => {
                    format!(
                        "the tests of `{name}`, a pure crate, may not use `{target}`; move them to its crate"
                    )
                }
                Kind::Normal | Kind::Build if allowed.contains(target) => continue,
                Kind::Normal | Kind::Build => {
                    format!("`{name}` may not depend on `{target}`; a new edge begins in docs/design")
                }
            };
            let line = member.line_of(dependency);
            problems.push(Problem { line, ..Problem::in_file(&member.manifest_path(), message) });
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One edge in a workspace of all crates, and the problem it should give.
    fn check(from: &str, kind: Kind, to: &str, expected: Option<&str>) {
        let mut crates: Vec<Crate> = LAYERS.iter().map(|layer| Crate::new(layer.name, &[])).collect();
        crates.retain(|member| member.name != from);
        crates.push(Crate::new(from, &[(to, kind), ("not-of-this-workspace", kind)]));
        let messages: Vec<String> = check_edges(&crates).into_iter().map(|p| p.message).collect();
        match expected {
            Some(part) => {
                assert!(messages.len() == 1 && messages[0].contains(part), "{from} -> {to}: {messages:?}");
            }
            None => assert!(messages.is_empty(), "{from} -> {to}: {messages:?}"),
        }
    }

    #[test]
    fn edges_along_the_arrows_are_allowed() {
        check("pollux-agent", Kind::Normal, "pollux-model", None);
        check("pollux-api", Kind::Normal, "pollux-model", None);
        check("pollux", Kind::Normal, "pollux-report", None);
        check("pollux", Kind::Build, "pollux-model", None);
    }

    #[test]
    fn edges_against_or_across_the_arrows_are_not() {
        check("pollux-model", Kind::Normal, "pollux-agent", Some("may not depend on `pollux-agent`"));
        check("pollux-policy", Kind::Normal, "pollux-agent", Some("`pollux-policy` may not depend"));
        check("pollux-server", Kind::Normal, "pollux-sim", Some("a new edge begins in docs/design"));
        check("pollux-core", Kind::Build, "pollux-api", Some("may not depend on `pollux-api`"));
        check("pollux", Kind::Normal, "xtask", Some("may not depend on `xtask`"));
    }

    #[test]
    fn tests_are_free_but_for_those_of_the_pure_ring() {
        check("pollux-server", Kind::Dev, "pollux-sim", None);
        check("pollux-policy", Kind::Dev, "pollux-agent", None);
        check("pollux-model", Kind::Dev, "pollux-api", Some("the tests of `pollux-model`"));
    }

    #[test]
    fn an_unknown_crate_is_an_error() {
        let problems = check_edges(&[Crate::new("pollux-extra", &[])]);
        assert!(problems[0].to_string().starts_with("error: crates/pollux-extra/Cargo.toml: `pollux-extra`"));
    }

    #[test]
    fn the_problem_points_into_the_manifest() {
        let mut model = Crate::new("pollux-model", &[("pollux-agent", Kind::Normal)]);
        model.manifest = "[dependencies]\npollux-agent.workspace = true\n".to_owned();
        assert_eq!(check_edges(&[model, Crate::new("pollux-agent", &[])])[0].line, Some(2));
    }

    #[test]
    fn the_table_names_known_crates_and_has_no_circle() {
        for layer in LAYERS {
            assert!(layer.uses.iter().all(|name| super::layer(name).is_some()), "{}", layer.name);
            let reachable = reachable(layer.name);
            assert!(!reachable.contains(layer.name), "{} reaches itself", layer.name);
            if layer.ring == Ring::Pure {
                assert!(reachable.iter().all(|name| is_pure(name)), "{} leaves the pure ring", layer.name);
            }
        }
    }
}
