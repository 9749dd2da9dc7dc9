//! The files of the repository: those git tracks and those it would offer to add.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::shell;

/// A file and what is in it.
#[derive(Debug)]
pub(super) struct SourceFile {
    /// Relative to the root, with forward slashes.
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
}

impl SourceFile {
    /// The content, if it is text.
    pub(super) fn text(&self) -> Option<&str> {
        if self.bytes.contains(&0) { None } else { std::str::from_utf8(&self.bytes).ok() }
    }

    /// Whether the name ends in `.extension`.
    pub(super) fn is(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    #[cfg(test)]
    pub(super) fn new(path: &str, content: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), bytes: content.as_bytes().to_vec() }
    }
}

/// Reads every file that is or may become part of the repository, in the order of their paths.
pub(super) fn load() -> Result<Vec<SourceFile>> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let mut paths = match shell::read(shell::command("git").args(list)) {
        Ok(output) => output.split_terminator('\0').map(str::to_owned).collect(),
        Err(error) => {
            eprintln!("warning: git does not list the files ({error:#}); all but target/ are checked");
            let mut paths = Vec::new();
            walk(&shell::root(), "", &mut paths)?;
            paths
        }
    };
    paths.sort();
    paths.dedup();

    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let on_disk = shell::root().join(&path);
        match fs::symlink_metadata(&on_disk) {
            Ok(metadata) if metadata.is_file() => {}
            // A link is checked where it points to, a submodule in its own repository.
            Ok(_) => continue,
            // Deleted, and the deletion not committed.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| format!("cannot look at {path}")),
        }
        let bytes = fs::read(&on_disk).with_context(|| format!("cannot read {path}"))?;
        files.push(SourceFile { path, bytes });
    }
    Ok(files)
}

/// Collects the files below a folder, for a copy of the sources that is no git checkout.
fn walk(dir: &Path, prefix: &str, paths: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let entry = entry?;
        let name = entry.file_name().into_string().ok().context("a file name is not UTF-8")?;
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            if path != ".git" && path != "target" {
                walk(&entry.path(), &format!("{path}/"), paths)?;
            }
        } else {
            paths.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_files_are_no_text() {
        assert_eq!(SourceFile::new("a.txt", "plain\n").text(), Some("plain\n"));
        assert_eq!(SourceFile::new("a.png", "PNG\0").text(), None);
        assert_eq!(SourceFile { path: "a.png".to_owned(), bytes: vec![0xff] }.text(), None);
    }

    #[test]
    fn without_git_the_folders_are_walked() {
        let mut paths = Vec::new();
        walk(Path::new(env!("CARGO_MANIFEST_DIR")), "", &mut paths).unwrap();
        assert!(paths.contains(&"Cargo.toml".to_owned()) && paths.contains(&"src/tidy/tree.rs".to_owned()));
    }
}
