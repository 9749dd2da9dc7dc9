//! `pollux up`: everything on this machine.

use std::fs::{self, DirBuilder};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener as _;
use pollux_api::parse_policy;
use pollux_core::Config;
use pollux_policy::{AnyPolicy, Seed};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit, test_kill_process};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::engine::gpus::{BadShape, Gpus};
use crate::http::{App, router};
use crate::log::{LogForm, keep_saying};
use crate::notify::notify;
use crate::service::{Beginning, Begun, KeepRuns, begin};
use crate::store::{Store, StoreError};
use crate::tls::{TlsError, TlsListener, TlsSettings, acceptor};

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
    /// Another door, for other machines.
    pub tls: Option<TlsSettings>,
    /// Whether to speak plain HTTP to other machines, so that anybody between can read tokens.
    pub insecure: bool,
    /// How what happens is said.
    pub log: LogForm,
    /// How much of ended runs is kept.
    pub keep: KeepRuns,
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
    /// Certificate or key.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Tokens would travel in the open.
    #[error("{0} can be reached from other machines, and plain HTTP would show them all tokens")]
    Open(String),
    /// The scheduler's own thread came to a bad end.
    #[error("the scheduler stopped because of a mistake in this program, told above; jobs go on")]
    Panicked,
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
            Self::Tls(_) => Some(
                "docs/guides/live.md shows how to make a certificate and a key for `--tls-cert` and `--tls-key`".to_owned(),
            ),
            Self::Open(_) => Some(
                "listen at 127.0.0.1 and let others in with `--tls-listen`, or say `--insecure` if the network is yours alone"
                    .to_owned(),
            ),
            Self::Store(StoreError::Locked { .. }) => {
                Some("`pollux down` stops it; another scheduler needs another folder (`--state`)".to_owned())
            }
            Self::Panicked => {
                Some("the journal is whole: `pollux up` goes on where it was; please report this".to_owned())
            }
            _ => None,
        }
    }
}

/// Runs the service until a signal ends it. `say` is told what a person at the terminal should know.
pub fn serve(settings: &Settings, say: fn(&str)) -> Result<(), ServeError> {
    let acceptor = settings.tls.as_ref().map(acceptor).transpose()?;
    let policy: Arc<dyn AnyPolicy> = Arc::from(parse_policy(&settings.policy)?);
    let gpus = match &settings.cluster {
        Cluster::Emulated(shape) => Gpus::emulated(shape)?,
        Cluster::Found => Gpus::discover(&host()),
    };
    if let Gpus::Absent(why) = &gpus {
        return Err(ServeError::NoGpus(why.clone()));
    }
    allow_many_files();
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
    let cadence = policy.cadence().with_round(settings.round);
    let config =
        Config { cadence, seed: Seed(settings.seed), history: settings.history, ..Config::default() };
    runtime.block_on(async {
        // Before anybody is told that we are there, and may ask us to end.
        let mut term = signal(SignalKind::terminate()).map_err(io(Path::new("signals")))?;
        let mut int = signal(SignalKind::interrupt()).map_err(io(Path::new("signals")))?;
        let doors = Doors::open(settings, store.meta(ADDRESS)?.as_deref(), acceptor).await?;
        store.write(|writer| writer.meta(ADDRESS, &doors.address.to_string()))?;
        let url = format!("http://{}", reachable(doors.address));
        let beginning = Beginning {
            state_dir: state.clone(),
            store,
            policy: (policy.clone(), settings.policy.clone()),
            config,
            gpus: gpus.clone(),
            report_every: settings.report_every,
            supervisor: settings.supervisor.clone(),
            server: url.clone(),
            keep: settings.keep,
        };
        let Begun { service, tokens, thread, .. } = begin(beginning).await?;
        let running = state.join("server.json");
        let outside = doors.outside();
        let text = serde_json::json!({"url": url, "pid": std::process::id(), "tls": outside}).to_string();
        fs::write(&running, text).map_err(io(&running))?;
        let addresses = outside.map_or_else(|| url.clone(), |outside| format!("{url} and {outside}"));
        say(&greeting(settings.log, &addresses, &gpus, state));
        let (events, log) = (service.watch(), settings.log);
        let saying = std::thread::Builder::new().name("log".to_owned());
        saying.spawn(move || keep_saying(events, log, say)).map_err(io(Path::new("a thread")))?;
        let app = App { service: service.clone(), tokens, policy };
        if let Some(tls) = doors.tls {
            tokio::spawn(axum::serve(tls, router(app.clone())).into_future());
        }
        let (ending, ended) = watch::channel(());
        let watched = service.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
                () = watched.gone() => {}
            }
            drop(ending);
        });
        let served = axum::serve(doors.plain, router(app)).with_graceful_shutdown(over(ended.clone()));
        notify("READY=1");
        // Watchers hold their connections; whoever watches is not waited for.
        let stopped = served.into_future();
        tokio::select! {
            result = stopped => result.map_err(io(Path::new("the listener")))?,
            () = soon_after(ended) => {}
        }
        notify("STOPPING=1");
        service.stop();
        let ended = thread.join();
        // Whoever waits for this may begin at once: the store is free.
        let _ = fs::remove_file(&running);
        match ended {
            Ok(result) => Ok(result?),
            Err(_) => Err(ServeError::Panicked),
        }
    })
}

/// Where the service is reached.
struct Doors {
    plain: TcpListener,
    address: SocketAddr,
    tls: Option<TlsListener>,
}

impl Doors {
    async fn open(
        settings: &Settings,
        latest: Option<&str>,
        acceptor: Option<TlsAcceptor>,
    ) -> Result<Self, ServeError> {
        let io = |source| ServeError::Io { path: PathBuf::from("the listener"), source };
        let plain = listen(&settings.listen, latest).await?;
        let address = plain.local_addr().map_err(io)?;
        if !address.ip().is_loopback() && !settings.insecure {
            return Err(ServeError::Open(address.to_string()));
        }
        let tls = match settings.tls.as_ref().zip(acceptor) {
            Some((tls, acceptor)) => {
                Some(TlsListener::new(listen(&tls.listen, None).await?, acceptor).map_err(io)?)
            }
            None => None,
        };
        Ok(Self { plain, address, tls })
    }

    /// The address for other machines.
    fn outside(&self) -> Option<String> {
        let address = self.tls.as_ref()?.local_addr().ok()?;
        Some(format!("https://{address}"))
    }
}

/// The first line that is said.
fn greeting(form: LogForm, addresses: &str, gpus: &Gpus, state: &Path) -> String {
    let kind = if matches!(gpus, Gpus::Emulated(_)) { "emulated GPUs" } else { "GPUs" };
    let n_gpus: usize = gpus.nodes().iter().map(|node| node.gpus.len()).sum();
    let text = format!("pollux listens at {addresses} with {n_gpus} {kind}; state in {}", state.display());
    match form {
        LogForm::Text => text,
        LogForm::Json => {
            serde_json::json!({"kind": "service", "actor": "scheduler", "text": text}).to_string()
        }
    }
}

/// Open files that are asked for: far more than a thousand runs and as many agents need, and not so many that a program which
/// closes all it might have open takes long.
const MOST_FILES: u64 = 65_536;

/// Each run and each agent takes a few open files, and many systems allow a process a thousand until it asks for more.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let wish = limit.maximum.map_or(MOST_FILES, |most| most.min(MOST_FILES));
    if limit.current.is_some_and(|current| current < wish) {
        // Below what is allowed anyway; where it is refused all the same, fewer jobs fit.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wish), ..limit });
    }
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

/// A signal to end has come, or the service has ended by itself.
async fn over(mut ended: watch::Receiver<()>) {
    while ended.changed().await.is_ok() {}
}

/// The same, and a moment for answers that are on their way.
async fn soon_after(ended: watch::Receiver<()>) {
    over(ended).await;
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
