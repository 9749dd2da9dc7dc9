//! Files in, and what a command has to say out.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// What a command has to say, complete before any of it is written.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// For standard output.
    pub(crate) data: String,
    /// For standard error, a line each.
    pub(crate) notes: Vec<String>,
    /// A file to write.
    pub(crate) file: Option<(PathBuf, Vec<u8>)>,
}

impl Output {
    /// Writes the file, then the data, then the notes.
    pub(crate) fn deliver(&self) -> Result<(), Failure> {
        if let Some((path, bytes)) = &self.file {
            write_whole(path, bytes).map_err(|source| match source.kind() {
                io::ErrorKind::NotFound => Failure::NoFolder { path: path.clone() },
                _ => Failure::Write { path: path.clone(), source },
            })?;
        }
        let mut stdout = io::stdout().lock();
        match stdout.write_all(self.data.as_bytes()).and_then(|()| stdout.flush()) {
            // Whoever reads has seen enough, as in `| head`.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            result => result.map_err(|source| Failure::Stdout { source })?,
        }
        for note in &self.notes {
            say(&format!("note: {note}\n"));
        }
        Ok(())
    }
}

/// Says something on standard error. If nobody listens there, there is nobody left to tell.
pub(crate) fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// The bytes of an input file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => Failure::NoFile { path: path.to_owned() },
        _ => Failure::Read { path: path.to_owned(), source },
    })
}

/// An input file, or standard input where the name is `-`: what to call it, and its bytes.
pub(crate) fn read_or_stdin(path: &Path) -> Result<(String, Vec<u8>), Failure> {
    if path.as_os_str() != "-" {
        return Ok((path.display().to_string(), read(path)?));
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).map_err(|source| Failure::Stdin { source })?;
    Ok(("standard input".to_owned(), bytes))
}

/// Writes files below a folder, which is made if it is not there.
pub(crate) fn write_folder(folder: &Path, files: &BTreeMap<PathBuf, String>) -> Result<(), Failure> {
    for (name, text) in files {
        let path = folder.join(name);
        let written = match path.parent() {
            Some(parent) => fs::create_dir_all(parent).and_then(|()| fs::write(&path, text)),
            None => fs::write(&path, text),
        };
        written.map_err(|source| Failure::Write { path, source })?;
    }
    Ok(())
}

/// Writes a file as a whole or not at all: beside its place first, then moved there.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let result = fs::File::create_new(&beside)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&beside, path));
    if result.is_err() {
        let _ = fs::remove_file(&beside);
    }
    result
}
