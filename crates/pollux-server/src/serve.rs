//! `pollux up`: everything on this machine.

use std::fs::{self, DirBuilder};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pollux_api::parse_policy;
use pollux_core::Config;
use pollux_policy::{AnyPolicy, Cadence, Seed};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::engine::gpus::{BadShape, Gpus};
use crate::http::{App, router};
use crate::service::{Beginning, Begun, begin};
use crate::store::{Store, StoreError};

/// Where GPUs come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cluster {
    /// Those of this machine.
    Found,
    /// Made up, of this shape.
    Emulated(String),
}

/// What can be chosen about a service.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder of all state.
    pub state: PathBuf,
    /// Where to listen.
    pub listen: String,
    /// Where GPUs come from.
    pub cluster: Cluster,
    /// Who plans.
    pub policy: String,
    /// Time between rounds, if not the policy's own.
    pub round: Option<Duration>,
    /// How often agents may report.
    pub report_every: Duration,
    /// Where the seeds of all rounds come from.
    pub seed: u64,
    /// Whether new jobs are valued by what earlier ones taught.
    pub history: bool,
    /// What starts a supervisor.
    pub supervisor: Vec<String>,
}

/// Why there is no service.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A policy that is none.
    #[error(transparent)]
    Policy(#[from] pollux_api::PolicySpecError),
    /// A shape that is none.
    #[error(transparent)]
    Shape(#[from] BadShape),
    /// There are no GPUs.
    #[error("no GPUs were found: {0}")]
    NoGpus(String),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file or folder.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

impl ServeError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Policy(error) => error.hint(),
            Self::NoGpus(_) => Some("try things out with `pollux up --emulate 4x4:t4`".to_owned()),
            Self::Listen { .. } => Some(
                "choose another with `--listen 127.0.0.1:PORT`; port 0 takes any that is free".to_owned(),
            ),
            Self::Store(StoreError::Locked { .. }) => {
                Some("`pollux down` stops it; another scheduler needs another folder (`--state`)".to_owned())
            }
            _ => None,
        }
    }
}

/// Runs the service until a signal ends it. `say` is told what a person at the terminal should know.
pub fn serve(settings: &Settings, say: impl Fn(&str)) -> Result<(), ServeError> {
    let policy: Arc<dyn AnyPolicy> = Arc::from(parse_policy(&settings.policy)?);
    let gpus = match &settings.cluster {
        Cluster::Emulated(shape) => Gpus::emulated(shape)?,
        Cluster::Found => Gpus::discover(&host()),
    };
    if let Gpus::Absent(why) = &gpus {
        return Err(ServeError::NoGpus(why.clone()));
    }
    let state = &settings.state;
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| ServeError::Io { path, source }
    };
    DirBuilder::new().recursive(true).mode(0o700).create(state).map_err(io(state))?;
    let state = &fs::canonicalize(state).map_err(io(state))?;
    let mut store = Store::open(&state.join("pollux.db"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(io(Path::new("the runtime")))?;
    let cadence = policy.cadence();
    let cadence = settings.round.map_or(cadence, |every| Cadence {
        every,
        // Whoever asks for quick rounds wants quick answers.
        on_events: cadence.on_events.map(|apart| apart.min(every)),
    });
    let config =
        Config { cadence, seed: Seed(settings.seed), history: settings.history, ..Config::default() };
    runtime.block_on(async {
        let listener = listen(&settings.listen, store.meta(ADDRESS)?.as_deref()).await?;
        let address = listener.local_addr().map_err(io(Path::new("the listener")))?;
        store.write(|writer| writer.meta(ADDRESS, &address.to_string()))?;
        let url = format!("http://{}", reachable(address));
        let beginning = Beginning {
            state_dir: state.clone(),
            store,
            policy: (policy.clone(), settings.policy.clone()),
            config,
            nodes: gpus.nodes().to_vec(),
            is_emulated: matches!(gpus, Gpus::Emulated(_)),
            report_every: settings.report_every,
            supervisor: settings.supervisor.clone(),
            server: url.clone(),
        };
        let Begun { service, tokens, thread, .. } = begin(beginning).await?;
        let running = state.join("server.json");
        let text = serde_json::json!({"url": url, "pid": std::process::id()}).to_string();
        fs::write(&running, text).map_err(io(&running))?;
        let gpus_shown = if matches!(gpus, Gpus::Emulated(_)) { "emulated GPUs" } else { "GPUs" };
        let n_gpus: usize = gpus.nodes().iter().map(|node| node.gpus.len()).sum();
        say(&format!("pollux listens at {url} with {n_gpus} {gpus_shown}; state in {}", state.display()));
        let app = App { service: service.clone(), tokens, policy };
        let served = axum::serve(listener, router(app)).with_graceful_shutdown(ended(service.clone()));
        // Watchers hold their connections; whoever watches is not waited for.
        let stopped = served.into_future();
        tokio::select! {
            result = stopped => result.map_err(io(Path::new("the listener")))?,
            () = over(service.clone()) => {}
        }
        service.stop();
        let _ = fs::remove_file(&running);
        match thread.join() {
            Ok(result) => Ok(result?),
            Err(_) => Ok(()),
        }
    })
}

/// Where the store keeps the address of the latest service.
const ADDRESS: &str = "address";

/// Listens. Where any port will do, the latest one is tried first: jobs that outlived a scheduler still report there.
async fn listen(wish: &str, latest: Option<&str>) -> Result<TcpListener, ServeError> {
    let latest = latest.filter(|latest| {
        let parts = wish.rsplit_once(':').zip(latest.rsplit_once(':'));
        parts.is_some_and(|((wished, port), (host, _))| port == "0" && wished == host)
    });
    if let Some(latest) = latest
        && let Ok(listener) = TcpListener::bind(latest).await
    {
        return Ok(listener);
    }
    let bound = TcpListener::bind(wish).await;
    bound.map_err(|source| ServeError::Listen { address: wish.to_owned(), source })
}

/// A signal to end has come.
async fn ended(service: crate::service::Service) {
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
        () = service.gone() => {}
    }
}

/// The same, and a moment for answers that are on their way.
async fn over(service: crate::service::Service) {
    ended(service).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
}

fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}

/// The address as jobs of this machine reach it.
fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() { SocketAddr::from(([127, 0, 0, 1], address.port())) } else { address }
}

/// Asks a service to end.
pub fn stop(pid: u32) -> std::io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(std::io::ErrorKind::InvalidInput)?;
    Ok(kill_process(pid, Signal::TERM)?)
}

/// Whether a process is there.
pub fn is_alive(pid: u32) -> bool {
    i32::try_from(pid).ok().and_then(Pid::from_raw).is_some_and(|pid| test_kill_process(pid).is_ok())
}
