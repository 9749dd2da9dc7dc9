//! Checkpoints: all that training needs to go on, on any number of replicas.
//!
//! One file each, named after the samples consumed: a line with format, length and checksum, then JSON. It is written beside
//! its place, brought to the disk, and renamed, so that a file under its name is whole; the checksum is for what
//! disks do later. The one before is kept.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version that this build writes and reads.
pub const VERSION: u32 = 1;

/// What the first line begins with.
const KIND: &str = "pollux-trainer-checkpoint";

/// How the names of checkpoints end.
const ENDING: &str = ".checkpoint";

/// How many are kept.
const KEPT: usize = 2;

/// The state of training between two steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Hidden units of the model.
    pub hidden: usize,
    /// The seed of the order of samples.
    pub seed: u64,
    /// Optimizer steps done.
    pub steps: u64,
    /// Samples consumed: the sampler's position.
    pub position: u64,
    /// Work done, in steps at the initial batch; the agent's own count is in its state.
    pub progress: f64,
    /// The model's weights.
    pub weights: Vec<f64>,
    /// The optimizer's momentum.
    pub momentum: Vec<f64>,
    /// The agent's state, in the format of `pollux_api::agent_state`.
    pub agent: Value,
}

/// A checkpoint that cannot be written, or a folder that has none that can be read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The system refused.
    #[error("checkpoint {}: {reason}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// Checkpoints are there, but none is whole.
    #[error("no checkpoint in {} is whole ({problem}); remove them to begin anew", folder.display())]
    NoneWhole {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with the newest.
        problem: Damage,
    },
}

/// Why a file is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The first line is not ours.
    #[error("not a checkpoint of the trainer")]
    NoHeader,
    /// Another version wrote it.
    #[error("of version {found}, this build reads {VERSION}")]
    Version {
        /// The version.
        found: String,
    },
    /// Bytes are missing or differ.
    #[error("torn: its checksum does not fit")]
    Torn,
    /// The content is no checkpoint.
    #[error("{reason}")]
    Content {
        /// What is wrong.
        reason: String,
    },
}

/// What a folder had.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The newest whole checkpoint.
    pub checkpoint: Checkpoint,
    /// The newer ones, which are damaged, and how.
    pub damaged: Vec<(PathBuf, Damage)>,
}

impl Checkpoint {
    /// Writes it into the folder, makes sure that it is on the disk, and removes all but the newest two.
    pub fn save(&self, folder: &Path) -> Result<PathBuf, CheckpointError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |reason| CheckpointError::Io { path, reason }
        };
        fs::create_dir_all(folder).map_err(failed(folder))?;
        let name = format!("{:020}{ENDING}", self.position);
        let (path, unfinished) = (folder.join(&name), folder.join(format!("{name}.tmp")));
        let write = || {
            let mut file = File::create(&unfinished)?;
            file.write_all(&self.to_bytes()?)?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)?;
            // The name itself is in the folder.
            File::open(folder)?.sync_all()
        };
        write().map_err(failed(&path))?;
        for old in by_age(folder).map_err(failed(folder))?.into_iter().skip(KEPT) {
            fs::remove_file(&old).map_err(failed(&old))?;
        }
        Ok(path)
    }

    /// The newest whole checkpoint of the folder; nothing where there is none at all.
    pub fn load(folder: &Path) -> Result<Option<Found>, CheckpointError> {
        let failed = |path: &Path, reason| CheckpointError::Io { path: path.to_owned(), reason };
        let files = match by_age(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            files => files.map_err(|reason| failed(folder, reason))?,
        };
        let mut damaged = Vec::new();
        for path in files {
            let bytes = fs::read(&path).map_err(|reason| failed(&path, reason))?;
            match Self::from_bytes(&bytes) {
                Ok(checkpoint) => return Ok(Some(Found { checkpoint, damaged })),
                Err(damage) => damaged.push((path, damage)),
            }
        }
        match damaged.into_iter().next() {
            None => Ok(None),
            Some((_, problem)) => Err(CheckpointError::NoneWhole { folder: folder.to_owned(), problem }),
        }
    }

    fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let content = serde_json::to_vec(self)?;
        let mut bytes =
            format!("{KIND} {VERSION} {} {:016x}\n", content.len(), checksum(&content)).into_bytes();
        bytes.extend(content);
        Ok(bytes)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, Damage> {
        let end = bytes.iter().position(|&byte| byte == b'\n').ok_or(Damage::NoHeader)?;
        let (header, content) = (&bytes[..end], &bytes[end + 1..]);
        let header = std::str::from_utf8(header).map_err(|_| Damage::NoHeader)?;
        let words: Vec<&str> = header.split(' ').collect();
        let &[KIND, version, length, sum] = &words[..] else { return Err(Damage::NoHeader) };
        if version != VERSION.to_string() {
            return Err(Damage::Version { found: version.to_owned() });
        }
        if length != content.len().to_string() || sum != format!("{:016x}", checksum(content)) {
            return Err(Damage::Torn);
        }
        serde_json::from_slice(content).map_err(|error| Damage::Content { reason: error.to_string() })
    }
}

/// The checkpoints of a folder, newest first; names have the same length, so they sort like positions.
fn by_age(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries: io::Result<Vec<PathBuf>> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect();
    let mut files = entries?;
    files.retain(|path| path.to_str().is_some_and(|name| name.ends_with(ENDING)));
    files.sort_unstable_by(|a, b| b.cmp(a));
    Ok(files)
}

/// FNV-1a of 64 bits (Fowler, Noll and Vo): enough to notice damage, no proof against malice.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn checkpoint() -> Checkpoint {
        Checkpoint {
            hidden: 0,
            seed: 7,
            steps: 3,
            position: 96,
            progress: 3.0,
            weights: vec![0.1, -1e-300, 1.0 / 3.0],
            momentum: vec![0.0, -0.0, 5e-324],
            agent: serde_json::json!({"version": 1}),
        }
    }

    #[test] // Published with the algorithm: the sum of "a".
    fn the_checksum_is_the_published_one() {
        assert_eq!(checksum(b"a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let bytes = checkpoint().to_bytes().unwrap();
        let read = Checkpoint::from_bytes(&bytes).unwrap();
        assert_eq!(read, checkpoint());
        assert!(read.momentum[1].is_sign_negative());
    }

    #[test]
    fn another_version_is_named() {
        let text = String::from_utf8(checkpoint().to_bytes().unwrap()).unwrap();
        let newer = text.replacen("checkpoint 1 ", "checkpoint 2 ", 1);
        let damage = Checkpoint::from_bytes(newer.as_bytes()).unwrap_err();
        assert_eq!(damage.to_string(), "of version 2, this build reads 1");
    }

    proptest! {
        #[test]
        fn a_torn_file_is_never_loaded(cut in 0.0..1.0_f64, at in 0.0..1.0_f64, bit in 0..8_u32) {
            let whole = checkpoint().to_bytes().unwrap();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
            let index = |fraction: f64| (fraction * whole.len() as f64) as usize;
            prop_assert!(Checkpoint::from_bytes(&whole[..index(cut)]).is_err());
            let mut flipped = whole.clone();
            flipped[index(at)] ^= 1 << bit;
            prop_assert!(Checkpoint::from_bytes(&flipped).is_err());
            // As a disk leaves it that grew the file but did not fill it.
            let mut zeroed = whole.clone();
            zeroed[index(cut)..].fill(0);
            prop_assert!(Checkpoint::from_bytes(&zeroed).is_err());
        }
    }
}
