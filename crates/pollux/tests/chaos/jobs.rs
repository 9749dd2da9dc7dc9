//! Jobs, and what their user wants of each: what was acknowledged must hold ever after.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pollux_api::job_file::JobFile;
use pollux_api::rest::{JobShown, JobState};

/// A job whose submission was acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) wish: Wish,
    /// Most GPUs, as last acknowledged.
    pub(crate) max_gpus: Option<u32>,
}

/// What its user last wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Train,
    Pause,
    Cancel,
    /// A cancellation whose answer was lost, and the next said that the job had ended.
    Any,
}

impl Job {
    pub(crate) fn new(shown: &JobShown) -> Self {
        Self { id: shown.id, name: shown.name.clone(), wish: Wish::Train, max_gpus: shown.max_gpus }
    }

    /// Whether what is shown is what was acknowledged.
    #[track_caller]
    pub(crate) fn check(&self, shown: &JobShown) {
        assert_eq!((&shown.name, shown.max_gpus), (&self.name, self.max_gpus), "{shown:?}");
        let is_fine = match (self.wish, shown.state) {
            // Who is done before the wish reaches it has finished all the same.
            (Wish::Cancel, state) => {
                matches!(state, JobState::Stopping | JobState::Cancelled | JobState::Finished)
            }
            (Wish::Pause, JobState::Pending | JobState::Starting | JobState::Running)
            | (Wish::Train | Wish::Pause, JobState::Cancelled)
            | (Wish::Train, JobState::Paused) => false,
            // A start that is killed before its first report is not tried again: nobody knows whether it could come back.
            (_, JobState::Failed) => shown.reported.is_none(),
            _ => true,
        };
        assert!(is_fine, "{self:?} is {:?}: {}", shown.state, shown.reason);
    }
}

/// The worker, which Cargo puts beside the command; made here if only this test is.
pub(crate) fn trainer() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_pollux")).with_file_name("pollux-trainer");
    if !path.exists() {
        let build = ["build", "--locked", "--package", "pollux-trainer"];
        assert!(Command::new(env!("CARGO")).args(build).status().unwrap().success());
    }
    path
}

/// A job that trains so many steps on one GPU or more, and saves often.
pub(crate) fn file(trainer: &Path, steps: usize, most: usize) -> JobFile {
    let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/profiles/digits.json");
    let text = format!(
        "name: digits\n\
         command: [{}, --steps-at-initial, '{steps}', --checkpoint-every, '0.5', --report-every, '0.2', --meet-within, '20']\n\
         resources: {{gpus: 1..{most}}}\n\
         training: {{application: digits, batch: {{mode: adaptive, initial: 32, max: 512, per_gpu: [8, 128]}}}}\n\
         checkpoint: {{grace: 10s}}\nrestart: {{max_failures: 1000}}\nemulate: {{profile: {}}}\n",
        trainer.display(),
        profile.display()
    );
    JobFile::read(text.as_bytes(), "chaos.yaml").unwrap()
}

/// Training goes on where it was saved last: each start of a job begins at least where the one before began, or left.
pub(crate) fn check_progress(runs: &Path) {
    let mut starts: BTreeMap<(u64, u32), PathBuf> = BTreeMap::new();
    for entry in fs::read_dir(runs).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Some((job, generation)) = name.split_once('.')
            && let (Ok(job), Ok(generation)) = (job.parse(), generation.parse())
        {
            starts.insert((job, generation), path);
        }
    }
    let mut saved: BTreeMap<u64, u64> = BTreeMap::new();
    for ((job, generation), path) in starts {
        let log = fs::read_to_string(path.join("0.log")).unwrap_or_default();
        let step = |word: &str| {
            let line = log.lines().find_map(|line| line.strip_prefix(word))?;
            line.split(',').next()?.parse::<u64>().ok()
        };
        let least = saved.entry(job).or_default();
        let resumed = step("resumed: step ");
        // A start that was killed at once says nothing.
        if log.lines().any(|line| line.starts_with("begun: ")) {
            let from = resumed.unwrap_or(0);
            assert!(
                from >= *least,
                "job {job} began its start {generation} at step {from}, {least} was saved"
            );
        }
        *least = (*least).max(resumed.unwrap_or(0)).max(step("left: step ").unwrap_or(0));
    }
}
