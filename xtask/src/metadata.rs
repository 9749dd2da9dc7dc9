//! The workspace as `cargo metadata` describes it, cut down to what the tasks ask for.

use std::fs;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::shell;

/// One crate of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Crate {
    /// The package name.
    pub(crate) name: String,
    /// Its folder, relative to the root, with forward slashes.
    pub(crate) dir: String,
    /// The text of its `Cargo.toml`, to point into.
    pub(crate) manifest: String,
    /// What its manifest asks for, in all sections and for all targets.
    pub(crate) dependencies: Vec<Dependency>,
    /// The names of its benchmark targets.
    pub(crate) benches: Vec<String>,
}

/// One line of a dependency section.
#[derive(Debug, Clone)]
pub(crate) struct Dependency {
    /// The package name, also where the manifest renames it.
    pub(crate) name: String,
    /// The section it stands in.
    pub(crate) kind: Kind,
}

/// The sections of a manifest that name dependencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Build,
    Dev,
}

impl Crate {
    /// The path of its manifest, relative to the root.
    pub(crate) fn manifest_path(&self) -> String {
        format!("{}/Cargo.toml", self.dir)
    }

    /// The line of the manifest, from one, that asks for a dependency. A renamed one is not found.
    pub(crate) fn line_of(&self, dependency: &Dependency) -> Option<usize> {
        let name = dependency.name.as_str();
        let mut kind = None;
        for (number, line) in (1..).zip(self.manifest.lines()) {
            let line = line.trim();
            if let Some(header) = line.strip_prefix('[') {
                let header = header.trim_end_matches(']');
                kind = section_kind(header);
                if kind == Some(dependency.kind) && header.ends_with(&format!("dependencies.{name}")) {
                    return Some(number);
                }
            } else if kind == Some(dependency.kind)
                && line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
            {
                return Some(number);
            }
        }
        None
    }

    /// A crate under `crates/` with these dependencies.
    #[cfg(test)]
    pub(crate) fn new(name: &str, dependencies: &[(&str, Kind)]) -> Crate {
        let dependency = |&(name, kind): &(&str, Kind)| Dependency { name: name.to_owned(), kind };
        Crate {
            name: name.to_owned(),
            dir: format!("crates/{name}"),
            dependencies: dependencies.iter().map(dependency).collect(),
            ..Crate::default()
        }
    }
}

fn section_kind(header: &str) -> Option<Kind> {
    if header.contains("dev-dependencies") {
        Some(Kind::Dev)
    } else if header.contains("build-dependencies") {
        Some(Kind::Build)
    } else if header.contains("dependencies") {
        Some(Kind::Normal)
    } else {
        None
    }
}

/// Asks cargo for the crates of this workspace. Needs no network and no lock file.
pub(crate) fn load() -> Result<Vec<Crate>> {
    let json = shell::read(shell::cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let mut crates = parse(&json).context("`cargo metadata` has a form this task does not know")?;
    for member in &mut crates {
        let path = shell::root().join(member.manifest_path());
        member.manifest =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    }
    Ok(crates)
}

/// Reads the output of `cargo metadata --no-deps`; the manifests' text is left empty.
fn parse(json: &str) -> Result<Vec<Crate>> {
    let metadata: Value = serde_json::from_str(json)?;
    let root = text(&metadata, "workspace_root")?;
    let mut crates = Vec::new();
    for package in list(&metadata, "packages")? {
        let manifest_path = text(package, "manifest_path")?;
        let dir = manifest_path
            .strip_prefix(root)
            .and_then(|path| path.strip_suffix("Cargo.toml"))
            .with_context(|| format!("{manifest_path} lies outside {root}"))?;
        let mut member = Crate {
            name: text(package, "name")?.to_owned(),
            dir: dir.replace('\\', "/").trim_matches('/').to_owned(),
            ..Crate::default()
        };
        for dependency in list(package, "dependencies")? {
            let kind = match dependency["kind"].as_str() {
                None => Kind::Normal,
                Some("build") => Kind::Build,
                Some("dev") => Kind::Dev,
                Some(other) => anyhow::bail!("unknown kind of dependency `{other}`"),
            };
            member.dependencies.push(Dependency { name: text(dependency, "name")?.to_owned(), kind });
        }
        for target in list(package, "targets")? {
            if list(target, "kind")?.iter().any(|kind| kind == "bench") {
                member.benches.push(text(target, "name")?.to_owned());
            }
        }
        crates.push(member);
    }
    Ok(crates)
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key].as_str().with_context(|| format!("no text under `{key}`"))
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value[key].as_array().with_context(|| format!("no list under `{key}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = r#"{
        "workspace_root": "/repo",
        "packages": [{
            "name": "pollux-model",
            "manifest_path": "/repo/crates/pollux-model/Cargo.toml",
            "dependencies": [
                { "name": "libm", "kind": null },
                { "name": "proptest", "kind": "dev" }
            ],
            "targets": [
                { "name": "pollux_model", "kind": ["lib"] },
                { "name": "fit", "kind": ["bench"] }
            ]
        }]
    }"#;

    #[test]
    fn metadata_becomes_crates() {
        let crates = parse(METADATA).unwrap();
        let [model] = crates.as_slice() else { panic!("one package gives one crate") };
        assert_eq!(model.name, "pollux-model");
        assert_eq!(model.manifest_path(), "crates/pollux-model/Cargo.toml");
        assert_eq!(model.benches, ["fit"]);
        let kinds: Vec<_> = model.dependencies.iter().map(|d| (d.name.as_str(), d.kind)).collect();
        assert_eq!(kinds, [("libm", Kind::Normal), ("proptest", Kind::Dev)]);
    }

    #[test]
    fn unknown_forms_are_errors() {
        assert!(parse("{}").is_err());
        assert!(parse(&METADATA.replace("dev", "later")).is_err());
        assert!(parse(&METADATA.replace("\"/repo\"", "\"/elsewhere\"")).is_err());
    }

    #[test]
    fn a_dependency_is_found_in_its_own_section() {
        let manifest = "[package]\nname = \"serde\"\n\n[dependencies]\nserde_json = \"1\"\nserde = \"1\"\n\n\
                        [dev-dependencies]\nserde.workspace = true\n\n[build-dependencies.serde]\n";
        let member = Crate { manifest: manifest.to_owned(), ..Crate::default() };
        let line = |kind| member.line_of(&Dependency { name: "serde".to_owned(), kind });
        assert_eq!(line(Kind::Normal), Some(6));
        assert_eq!(line(Kind::Dev), Some(9));
        assert_eq!(line(Kind::Build), Some(11));
    }
}
