//! The engine of one machine.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pollux_core::Generation;
use pollux_model::JobId;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::folder::{ExitRecord, FolderError, RunFolder};
use super::gpus::Node;
use super::how::{End, How};
use super::launch;
use super::orphans;
use super::run::{Rank, RunId, RunRequest, RunSpec, VERSION};
use super::slots::{Slots, SlotsError};
use super::watch::{Watched, ask_all, conclude, groups, see_through};

/// What an engine must know.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The folder of all runs' folders.
    pub runs: PathBuf,
    /// The identity of the scheduler's state folder: marks its processes, so it must not change and have no `/`.
    pub state: String,
    /// What starts a supervisor, before the run's folder and the rank: the `pollux` program and `supervise`.
    pub supervisor: Vec<OsString>,
    /// The nodes and their GPUs.
    pub nodes: Vec<Node>,
}

/// What happens to runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineEvent {
    /// Every process of the run was started. Said again of a run that was found again.
    Up {
        /// The run.
        run: RunId,
        /// Why limits that were asked for do not hold.
        without_limits: Option<String>,
    },
    /// No process of the run is left, and its GPUs are free.
    Ended {
        /// The run.
        run: RunId,
        /// How it ended.
        how: How,
    },
}

/// What became of a run that the scheduler expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It has no folder: it was never started.
    Never,
    /// It runs and is watched; an event will say how it ends.
    Live,
    /// It has ended while nobody watched.
    Ended(How),
}

/// What a wish to stop found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The run was asked, now or before; an event will say how it ends.
    Asked,
    /// It is over, or was never started.
    Gone,
}

/// Why the engine did not do something; nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Runs of before are not known yet.
    #[error("there are runs of before that were not looked at; call `adopt` first")]
    NotAdopted,
    /// GPUs are missing.
    #[error(transparent)]
    Slots(#[from] SlotsError),
    /// The run's folder cannot be made or read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The request makes no sense.
    #[error("run {run} cannot be started: {reason}")]
    Request {
        /// The run.
        run: RunId,
        /// What is wrong.
        reason: &'static str,
    },
    /// No port is free.
    #[error("no port is free for run {run}: {error}")]
    Port {
        /// The run.
        run: RunId,
        /// What the system said.
        error: std::io::Error,
    },
    /// A thread of ours is gone.
    #[error("the engine is being shut down")]
    Closing,
}

/// Starts, stops and watches runs on this machine. Dropping it ends no run.
#[derive(Debug)]
pub struct LocalEngine {
    inner: Arc<Inner>,
    watchers: Mutex<JoinSet<()>>,
    /// One start or adoption at a time.
    gate: tokio::sync::Mutex<()>,
}

/// What watchers share with the engine.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) config: EngineConfig,
    state: Mutex<State>,
    events: mpsc::UnboundedSender<EngineEvent>,
}

#[derive(Debug)]
struct State {
    slots: Slots,
    watched: BTreeMap<RunId, Known>,
    adopted: bool,
}

/// A run that is watched.
#[derive(Debug)]
struct Known {
    spec: RunSpec,
    leave: watch::Sender<bool>,
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change under the lock is whole, so a thread that panicked has left nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees a run's GPUs and stops watching it.
    pub(super) fn forget(&self, run: RunId) {
        let mut state = self.state();
        state.slots.free(run);
        state.watched.remove(&run);
    }

    /// Tells whoever listens.
    pub(super) fn say(&self, event: EngineEvent) {
        // Nobody listens when the service is being shut down; the folders tell the next one.
        let _ = self.events.send(event);
    }
}

impl LocalEngine {
    /// An engine and its events. Unless there are no runs of before, [`adopt`](Self::adopt) comes before any start.
    pub fn new(config: EngineConfig) -> (Self, mpsc::UnboundedReceiver<EngineEvent>) {
        let (events, receiver) = mpsc::unbounded_channel();
        let indices = |node: &Node| node.gpus.iter().map(|gpu| gpu.index).collect();
        let slots = Slots::new(config.nodes.iter().map(|node| (node.name.clone(), indices(node))));
        let adopted = RunFolder::list(&config.runs).is_empty();
        let state = Mutex::new(State { slots, watched: BTreeMap::new(), adopted });
        let inner = Arc::new(Inner { config, state, events });
        (Self { inner, watchers: Mutex::default(), gate: tokio::sync::Mutex::default() }, receiver)
    }

    /// Starts a run and says where it is. A run that has a folder is not started again: what is missing of it is.
    pub async fn start(&self, request: RunRequest) -> Result<RunSpec, EngineError> {
        let _gate = self.gate.lock().await;
        let run = request.run;
        {
            let state = self.inner.state();
            if let Some(known) = state.watched.get(&run) {
                return Ok(known.spec.clone());
            }
            if !state.adopted {
                return Err(EngineError::NotAdopted);
            }
        }
        let folder = RunFolder::of(&self.inner.config.runs, run);
        if folder.exists() {
            // Over already, and its event lost with another engine: say it again.
            if let Found::Ended(how) = self.take_over(run).await? {
                self.inner.say(EngineEvent::Ended { run, how });
            }
            return Ok(folder.spec()?);
        }
        let spec = self.decide(request)?;
        let made = blocking({
            let (runs, spec) = (self.inner.config.runs.clone(), spec.clone());
            move || RunFolder::create(&runs, &spec)
        });
        match made.await.and_then(|made| Ok(made?)) {
            Ok(folder) => {
                let missing = vec![true; spec.ranks.len()];
                self.watch(spec.clone(), folder, missing).await;
                Ok(spec)
            }
            Err(error) => {
                self.inner.forget(run);
                Err(error)
            }
        }
    }

    /// Asks a run to save its state and leave; asking again changes nothing.
    pub async fn stop(&self, job: JobId, generation: Generation) -> Result<Stop, EngineError> {
        let run = RunId::new(job, generation);
        let n_ranks = match self.inner.state().watched.get(&run) {
            None => return Ok(Stop::Gone),
            Some(known) if *known.leave.borrow() => return Ok(Stop::Asked),
            Some(known) => known.spec.ranks.len(),
        };
        let folder = RunFolder::of(&self.inner.config.runs, run);
        // Before any signal: who stumbles over a neighbour that left has not failed.
        let mark = folder.clone();
        blocking(move || mark.mark_stop()).await??;
        ask_all(&folder, n_ranks).await;
        if let Some(known) = self.inner.state().watched.get(&run) {
            let _ = known.leave.send(true);
        }
        Ok(Stop::Asked)
    }

    /// Looks for the runs that the scheduler expects, watches those that live, and ends all others.
    ///
    /// The answers have the order of the question.
    pub async fn adopt(&self, expected: &[(JobId, Generation)]) -> Result<Vec<Found>, EngineError> {
        let _gate = self.gate.lock().await;
        let mut found = Vec::new();
        for (job, generation) in expected {
            found.push(self.take_over(RunId::new(*job, *generation)).await?);
        }
        self.kill_orphans(expected).await;
        for run in RunFolder::list(&self.inner.config.runs) {
            let folder = self.folder(run);
            if !expected.contains(&(run.job, run.generation)) {
                let n_ranks = folder.spec().map_or(0, |spec| spec.ranks.len());
                groups(&folder, n_ranks).for_each(|group| group.remove());
            }
        }
        self.inner.state().adopted = true;
        Ok(found)
    }

    /// Ends all processes of this state folder whose run is neither expected nor watched; says how many there were.
    pub async fn kill_orphans(&self, expected: &[(JobId, Generation)]) -> usize {
        let expected: BTreeSet<RunId> =
            expected.iter().map(|(job, start)| RunId::new(*job, *start)).collect();
        let is_orphan = |run| !expected.contains(&run) && !self.inner.state().watched.contains_key(&run);
        orphans::end(&self.inner.config.state, is_orphan).await
    }

    /// Which GPU is held by which run: node, index, run; in order.
    pub fn held(&self) -> Vec<(String, u32, RunId)> {
        self.inner.state().slots.held().map(|(node, index, run)| (node.to_owned(), index, run)).collect()
    }

    /// Says whether a GPU may be given to runs.
    pub fn set_healthy(&self, node: &str, index: u32, healthy: bool) {
        self.inner.state().slots.set_healthy(node, index, healthy);
    }

    /// The folder of a run, for its logs.
    pub fn folder(&self, run: RunId) -> RunFolder {
        RunFolder::of(&self.inner.config.runs, run)
    }

    /// Chooses GPUs and ports.
    fn decide(&self, request: RunRequest) -> Result<RunSpec, EngineError> {
        let RunRequest { run, name, shares, gpus_per_rank, told } = request;
        let refuse = |reason| EngineError::Request { run, reason };
        if told.command.is_empty() {
            return Err(refuse("it has no command"));
        }
        if gpus_per_rank == 0 || shares.iter().any(|share| share.gpus == 0 || share.gpus % gpus_per_rank != 0)
        {
            return Err(refuse("its GPUs cannot be dealt to its processes evenly"));
        }
        if shares.is_empty() {
            return Err(refuse("it has no GPUs"));
        }
        let mut state = self.inner.state();
        let [master_port, control_port] =
            free_ports(&state).map_err(|error| EngineError::Port { run, error })?;
        let taken = state.slots.take(run, &shares)?;
        let mut ranks = Vec::new();
        for ((node_rank, share), slots) in (0..).zip(&shares).zip(&taken) {
            let node = self.inner.config.nodes.iter().find(|node| node.name == share.node);
            let gpu_type = node.map(|node| node.gpu_type.clone()).unwrap_or_default();
            let per_rank = usize::try_from(gpus_per_rank).unwrap_or(usize::MAX);
            for (local_rank, slots) in (0..).zip(slots.chunks(per_rank)) {
                let (node, gpu_type, slots) = (share.node.clone(), gpu_type.clone(), slots.to_vec());
                ranks.push(Rank { node, gpu_type, node_rank, local_rank, slots });
            }
        }
        let state = self.inner.config.state.clone();
        Ok(RunSpec { version: VERSION, state, run, name, ranks, master_port, control_port, told })
    }

    /// Finds out about a run by its folder, and watches it if it lives.
    async fn take_over(&self, run: RunId) -> Result<Found, EngineError> {
        if self.inner.state().watched.contains_key(&run) {
            return Ok(Found::Live);
        }
        let folder = RunFolder::of(&self.inner.config.runs, run);
        if !folder.exists() {
            return Ok(Found::Never);
        }
        let Ok(spec) = folder.spec() else {
            // Nobody can say what was to run here; whatever runs is ended.
            orphans::end(&self.inner.config.state, |other| other == run).await;
            return Ok(Found::Ended(How::Failed { rank: 0, end: End::Lost, out_of_memory: false }));
        };
        let ranks = || (0..).take(spec.ranks.len());
        let stop = folder.stop().ok().flatten();
        let lives = |rank| {
            // A supervisor that has written how it ended is as good as gone.
            let over = matches!(folder.exit(rank), Ok(Some(_)));
            let supervisor = folder.pid(rank).ok().flatten().and_then(|record| record.supervisor);
            !over && supervisor.is_some_and(|supervisor| supervisor.is_alive())
        };
        let is_bad = |rank| match folder.exit(rank) {
            Ok(Some(exit)) => exit.end != End::Code(0),
            Ok(None) => !lives(rank) && !matches!(folder.pid(rank), Ok(None)),
            Err(_) => true,
        };
        let is_ending = stop.is_some() || ranks().any(is_bad);
        let mut missing: Vec<bool> = ranks().map(|rank| matches!(folder.pid(rank), Ok(None))).collect();
        if is_ending {
            for rank in ranks() {
                launch::forbid(&folder, rank, "the run was to end before it began", true);
            }
            missing.fill(false);
        }
        if !missing.contains(&true) && !ranks().any(lives) {
            let mut exits: Vec<ExitRecord> = Vec::new();
            for rank in ranks() {
                exits.push(launch::end(&folder, rank, None).await);
            }
            return Ok(Found::Ended(conclude(&self.inner.config.state, run, &folder, &exits).await));
        }
        self.inner.state().slots.hold(run, spec.slots())?;
        if is_ending {
            ask_all(&folder, spec.ranks.len()).await;
        }
        self.watch(spec, folder, missing).await;
        Ok(Found::Live)
    }

    /// Starts the missing ranks of a run and watches all of them.
    async fn watch(&self, spec: RunSpec, folder: RunFolder, missing: Vec<bool>) {
        let (leave, leaving) = watch::channel(false);
        let run = spec.run;
        self.inner.state().watched.insert(run, Known { spec: spec.clone(), leave });
        let supervisor = self.inner.config.supervisor.clone();
        let launching = blocking({
            let (folder, spec) = (folder.clone(), spec.clone());
            move || {
                let start = |(rank, missing): (u32, bool)| {
                    missing.then(|| launch::launch_or_note(&supervisor, &folder, &spec, rank)).flatten()
                };
                (0..).zip(missing).map(start).collect::<Vec<_>>()
            }
        });
        // If the thread is gone, the ranks without a supervisor are found to be so.
        let launched = launching.await.unwrap_or_else(|_| spec.ranks.iter().map(|_| None).collect());
        let watched = Watched { spec, folder, launched, leaving };
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        while watchers.try_join_next().is_some() {}
        watchers.spawn(see_through(Arc::clone(&self.inner), watched));
    }
}

/// Does something slow elsewhere, so that watching goes on.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, EngineError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| EngineError::Closing)
}

/// Two ports that are free now and that no run was given.
fn free_ports(state: &State) -> std::io::Result<[u16; 2]> {
    let given: BTreeSet<u16> =
        state.watched.values().flat_map(|known| [known.spec.master_port, known.spec.control_port]).collect();
    // Kept open until both are found, so that they differ.
    let mut open = Vec::new();
    let mut ports = Vec::new();
    while ports.len() < 2 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        open.push(listener);
        if !given.contains(&port) {
            ports.push(port);
        }
    }
    Ok([ports[0], ports[1]])
}
