//! Real processes for the engine's tests.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use pollux_core::Generation;
use pollux_model::JobId;
use pollux_server::engine::folder::{ExitRecord, RunFolder};
use pollux_server::engine::gpus::Gpus;
use pollux_server::engine::{
    EngineConfig, EngineEvent, How, LocalEngine, Process, RunId, RunRequest, Share, Told,
};
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedReceiver;

/// Longer than any of this takes on the slowest machine; reached only when something is broken.
const LIMIT: Duration = Duration::from_mins(2);

/// A state folder with a made-up cluster of two nodes of two GPUs.
pub(crate) struct Site {
    folder: TempDir,
}

pub(crate) type Events = UnboundedReceiver<EngineEvent>;

impl Site {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("work")).expect("a folder");
        Self { folder }
    }

    /// The identity of the state folder: no two tests share one.
    pub(crate) fn state(&self) -> String {
        self.folder.path().file_name().expect("a name").to_string_lossy().into_owned()
    }

    /// A file of the workers' folder.
    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    pub(crate) fn runs(&self) -> PathBuf {
        self.folder.path().join("runs")
    }

    pub(crate) fn run_folder(&self, run: RunId) -> RunFolder {
        RunFolder::of(&self.runs(), run)
    }

    /// How a rank of a run ended.
    pub(crate) fn exit(&self, run: RunId, rank: u32) -> ExitRecord {
        self.run_folder(run).exit(rank).expect("a record").expect("an end")
    }

    pub(crate) fn config(&self) -> EngineConfig {
        EngineConfig {
            runs: self.runs(),
            state: self.state(),
            supervisor: vec![supervisor().into(), "supervise".into()],
            nodes: Gpus::emulated("2x2:t4").expect("a shape").nodes().to_vec(),
        }
    }

    pub(crate) fn engine(&self) -> (LocalEngine, Events) {
        LocalEngine::new(self.config())
    }

    /// A request for this many GPUs of `node-0`, each running the script.
    pub(crate) fn request(&self, run: RunId, gpus: u32, script: &str) -> RunRequest {
        RunRequest {
            run,
            name: "test".to_owned(),
            shares: vec![Share { node: "node-0".to_owned(), gpus }],
            gpus_per_rank: 1,
            told: Told {
                command: ["sh", "-c", script].map(str::to_owned).to_vec(),
                workdir: self.work(""),
                grace_ms: 3_600_000,
                ..Told::default()
            },
        }
    }

    /// Waits until a worker has made a file; gives its text.
    pub(crate) async fn file(&self, name: &str) -> String {
        let path = self.work(name);
        until(|| fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n'))).await;
        fs::read_to_string(path).expect("a file").trim().to_owned()
    }

    /// Waits until a worker has written its number, or that of a child, to a file.
    pub(crate) async fn process(&self, name: &str) -> Process {
        Process::of(self.file(name).await.parse().expect("a number")).expect("a live process")
    }

    /// Makes a file that a worker waits for.
    pub(crate) fn let_go(&self) {
        fs::write(self.work("go"), "").expect("a file");
    }
}

/// Waits in a worker until the test says go.
pub(crate) const WAIT: &str = "while [ ! -e go ]; do sleep 0.02; done; ";

/// The program that stands for `pollux`.
pub(crate) fn supervisor() -> &'static str {
    env!("CARGO_BIN_EXE_pollux-supervise-for-tests")
}

pub(crate) fn run(job: u64) -> RunId {
    RunId::new(JobId(job), Generation(1))
}

/// Waits until something is so.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, waiting).await.expect("it becomes so in time");
}

/// The next event.
pub(crate) async fn next(events: &mut Events) -> EngineEvent {
    tokio::time::timeout(LIMIT, events.recv()).await.expect("an event in time").expect("an engine")
}

/// How a run ended; events that it is up are passed over.
pub(crate) async fn end(events: &mut Events, of: RunId) -> How {
    loop {
        match next(events).await {
            EngineEvent::Up { .. } => {}
            EngineEvent::Ended { run, how } => {
                assert_eq!(run, of);
                return how;
            }
        }
    }
}
