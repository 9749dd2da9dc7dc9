//! A run's folder: the truth about the run, whoever is alive to read it.
//!
//! | file | written by | |
//! | --- | --- | --- |
//! | `run.json` | the engine, with the folder | what was decided: [`RunSpec`] |
//! | `RANK.pid` | the supervisor | who runs the rank; made once, so that no rank is started twice |
//! | `RANK.asked` | the supervisor | it was asked to leave |
//! | `RANK.exit` | the supervisor, or who finds it dead | how the rank ended: [`ExitRecord`] |
//! | `RANK.log`, `RANK.log.1`, .. | the supervisor | output, the newest first |
//! | `RANK.err` | the supervisor | what it has to say itself |
//! | `stop` | the engine | when the run was asked to stop |
//!
//! Files are written whole under another name and then renamed, so readers see all of a file or nothing.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::how::End;
use super::process::{Moment, Process};
use super::run::{RunId, RunSpec, VERSION};

/// What is wrong with a run's folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The disk or its rights.
    #[error("cannot {doing} {}: {error}; check the disk and who owns the folder", path.display())]
    Disk {
        /// What was tried.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Not what Pollux writes.
    #[error("{} is not what Pollux writes: {reason}; it was changed by hand or by another version", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The run was made before.
    #[error("run {0} has a folder already")]
    Exists(RunId),
}

impl FolderError {
    /// Whether it is only a matter of room on the disk.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Disk { error, .. }
            if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
    }
}

/// What `RANK.pid` holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PidRecord {
    /// The supervisor; none if the rank must not be started any more.
    pub supervisor: Option<Process>,
    /// The worker, once it runs.
    pub worker: Option<Process>,
    /// Why limits that were asked for do not hold.
    pub without_limits: Option<String>,
    /// The rank's control group, where there is one.
    pub cgroup: Option<PathBuf>,
}

/// What `RANK.exit` holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// Version of the file; 1.
    pub version: u32,
    /// How the worker ended.
    pub end: End,
    /// Whether it had been asked to leave.
    pub asked: bool,
    /// Whether anything had to be killed because the grace was over.
    pub killed_after_grace: bool,
    /// When the supervisor began.
    pub started: Moment,
    /// When the worker ended; its children may have taken longer.
    pub ended: Moment,
    /// Processes killed by the kernel for using too much memory, where control groups tell.
    pub oom_kills: Option<u64>,
    /// The most memory the rank used, where control groups tell.
    pub peak_memory_bytes: Option<u64>,
    /// Output that could not be written, as on a full disk.
    pub log_lost_bytes: u64,
    /// Why limits that were asked for did not hold.
    pub without_limits: Option<String>,
}

impl ExitRecord {
    /// A record with nothing but an end between two moments.
    pub fn new(end: End, started: Moment, ended: Moment) -> Self {
        Self {
            version: VERSION,
            end,
            asked: false,
            killed_after_grace: false,
            started,
            ended,
            oom_kills: None,
            peak_memory_bytes: None,
            log_lost_bytes: 0,
            without_limits: None,
        }
    }
}

/// The folder of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// The folder of a run among those of all runs; it need not be there.
    pub fn of(runs: &Path, run: RunId) -> Self {
        Self { path: runs.join(run.to_string()) }
    }

    /// A folder by its path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Makes the folder with its `run.json`, all of it or nothing, and sees it to the disk.
    pub fn create(runs: &Path, spec: &RunSpec) -> Result<Self, FolderError> {
        let folder = Self::of(runs, spec.run);
        let draft = Self::at(runs.join(format!(".new-{}", spec.run)));
        if folder.exists() {
            return Err(FolderError::Exists(spec.run));
        }
        // Somebody who died while making it left this; nothing was started from it.
        let _ = fs::remove_dir_all(&draft.path);
        // Variables of users may hold secrets: nobody else may read them.
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&draft.path);
        made.map_err(|error| disk("make", &draft.path, error))?;
        draft.replace("run.json", spec)?;
        fs::rename(&draft.path, &folder.path).map_err(|error| match error.kind() {
            ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists => FolderError::Exists(spec.run),
            _ => disk("make", &folder.path, error),
        })?;
        sync(runs)?;
        Ok(folder)
    }

    /// The runs that have a folder, in order; drafts and foreign names are left out.
    pub fn list(runs: &Path) -> Vec<RunId> {
        let entries = fs::read_dir(runs).into_iter().flatten().flatten();
        let mut found: Vec<RunId> =
            entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        found.sort_unstable();
        found
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is there.
    pub fn exists(&self) -> bool {
        self.path.is_dir()
    }

    /// A file of a rank, such as `0.log`.
    pub fn file(&self, rank: u32, kind: &str) -> PathBuf {
        self.path.join(format!("{rank}.{kind}"))
    }

    /// What was decided about the run.
    pub fn spec(&self) -> Result<RunSpec, FolderError> {
        let path = self.path.join("run.json");
        let foreign = |reason: String| FolderError::Foreign { path: path.clone(), reason };
        let spec: RunSpec = read(&path)?.ok_or_else(|| foreign("it is not there".to_owned()))?;
        if spec.version != VERSION {
            return Err(foreign(format!("version {} instead of {VERSION}", spec.version)));
        }
        Ok(spec)
    }

    /// Who runs a rank.
    pub fn pid(&self, rank: u32) -> Result<Option<PidRecord>, FolderError> {
        read(&self.file(rank, "pid"))
    }

    /// Becomes the one who runs a rank, or forbids it with a record of nobody; false if somebody was faster.
    pub fn claim(&self, rank: u32, record: &PidRecord) -> Result<bool, FolderError> {
        self.put_once(&format!("{rank}.pid"), record)
    }

    /// Says more about a rank; only for who claimed it.
    pub fn update(&self, rank: u32, record: &PidRecord) -> Result<(), FolderError> {
        self.replace(&format!("{rank}.pid"), record)
    }

    /// How a rank ended.
    pub fn exit(&self, rank: u32) -> Result<Option<ExitRecord>, FolderError> {
        read(&self.file(rank, "exit"))
    }

    /// Says how a rank ended; false if that had been said.
    pub fn record_exit(&self, rank: u32, exit: &ExitRecord) -> Result<bool, FolderError> {
        self.put_once(&format!("{rank}.exit"), exit)
    }

    /// Whether a rank's supervisor knows that it is to leave.
    pub fn is_asked(&self, rank: u32) -> bool {
        self.file(rank, "asked").exists()
    }

    /// Notes that a rank was asked to leave.
    pub fn mark_asked(&self, rank: u32) -> Result<(), FolderError> {
        self.put_once(&format!("{rank}.asked"), &Moment::now()).map(drop)
    }

    /// When the run was asked to stop, if it was.
    pub fn stop(&self) -> Result<Option<Moment>, FolderError> {
        read(&self.path.join("stop"))
    }

    /// Notes that the run was asked to stop; the first time counts.
    pub fn mark_stop(&self) -> Result<(), FolderError> {
        self.put_once("stop", &Moment::now()).map(drop)
    }

    /// Writes a file unless it is there already; two who try at once cannot both succeed.
    fn put_once(&self, name: &str, value: &impl Serialize) -> Result<bool, FolderError> {
        let draft = self.draft(name, value)?;
        let path = self.path.join(name);
        let linked = fs::hard_link(&draft, &path);
        let _ = fs::remove_file(&draft);
        match linked {
            Ok(()) => sync(&self.path).map(|()| true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(disk("write", &path, error)),
        }
    }

    fn replace(&self, name: &str, value: &impl Serialize) -> Result<(), FolderError> {
        let draft = self.draft(name, value)?;
        let path = self.path.join(name);
        fs::rename(&draft, &path).map_err(|error| disk("write", &path, error))?;
        sync(&self.path)
    }

    /// Writes a file under a name of this process alone, down to the disk.
    fn draft(&self, name: &str, value: &impl Serialize) -> Result<PathBuf, FolderError> {
        let unique = format!(".{name}.{}.{:?}", std::process::id(), std::thread::current().id());
        let path = self.path.join(unique);
        let mut json =
            serde_json::to_vec_pretty(value).map_err(|error| disk("write", &path, error.into()))?;
        json.push(b'\n');
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(&json).and_then(|()| file.sync_all()));
        written.map_err(|error| disk("write", &path, error))?;
        Ok(path)
    }
}

/// Reads a file; none if it is not there.
fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, FolderError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(disk("read", path, error)),
    };
    let parsed = serde_json::from_slice(&bytes);
    parsed
        .map(Some)
        .map_err(|error| FolderError::Foreign { path: path.to_owned(), reason: error.to_string() })
}

/// Sees the names in a folder to the disk.
fn sync(folder: &Path) -> Result<(), FolderError> {
    File::open(folder).and_then(|file| file.sync_all()).map_err(|error| disk("write", folder, error))
}

fn disk(doing: &'static str, path: &Path, error: io::Error) -> FolderError {
    FolderError::Disk { doing, path: path.to_owned(), error }
}
