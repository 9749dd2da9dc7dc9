//! The service begins: state read, cluster compared, threads started.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pollux_core::{Config, Input, NodeSpec};
use pollux_model::GpuType;
use pollux_policy::{AnyPolicy, Cadence};
use tokio::sync::mpsc::unbounded_channel;

use super::folders::latest_job;
use super::health::Devices;
use super::live::{Facts, Live};
use super::note::Note;
use super::perform::{Performer, carry_events, carry_orders, expected, reconcile};
use super::planner;
use super::resume::resume;
use super::run::{Service, prepare};
use super::tokens::Tokens;
use super::upkeep::{KeepRuns, remove_old_runs};
use crate::engine::gpus::{Gpus, Node, NvmlGpus};
use crate::engine::{EngineConfig, LocalEngine};
use crate::store::{Store, StoreError};

/// What a service begins with.
pub struct Beginning {
    /// The folder of all state.
    pub state_dir: PathBuf,
    /// The open store.
    pub store: Store,
    /// Who plans, and as what it was named.
    pub policy: (Arc<dyn AnyPolicy>, String),
    /// How the scheduler goes about its rounds.
    pub config: Config,
    /// The GPUs there are.
    pub gpus: Gpus,
    /// How often agents may report.
    pub report_every: Duration,
    /// What starts a supervisor.
    pub supervisor: Vec<String>,
    /// The address jobs reach the service at.
    pub server: String,
    /// How much of ended runs is kept.
    pub keep: KeepRuns,
}

/// A service that runs.
pub struct Begun {
    /// The way to it.
    pub service: Service,
    /// Who may do what.
    pub tokens: Tokens,
    /// The administrator's own token.
    pub administrator: String,
    /// Ends when the service does.
    pub thread: thread::JoinHandle<Result<(), StoreError>>,
}

/// Begins, on the current tokio runtime: nothing that was acknowledged before is lost, and nothing is done twice.
pub async fn begin(beginning: Beginning) -> Result<Begun, StoreError> {
    let Beginning { state_dir, mut store, policy: (policy, policy_name), config, .. } = beginning;
    let nodes = beginning.gpus.nodes().to_vec();
    let runs = state_dir.join("runs");
    let at = |path: &PathBuf| {
        let path = path.clone();
        move |source| StoreError::Io { path, source }
    };
    std::fs::create_dir_all(&runs).map_err(at(&runs))?;
    let facts = Facts {
        is_emulated: matches!(beginning.gpus, Gpus::Emulated(_)),
        cluster: shape(&nodes),
        report_every_s: beginning.report_every.as_secs_f64(),
        latest_folder: latest_job(&state_dir),
        runs: runs.clone(),
        ..Facts::default()
    };
    let mut live = resume(&store)?.live(policy_name, facts);
    live.devices = Devices::of(&nodes);
    let tokens = Tokens::load(&store)?;
    let administrator = tokens.administrator(&mut store, &state_dir.join("admin.token"))?;
    let runs_again = runs.clone();
    let engine = EngineConfig {
        runs,
        state: identity(&mut store)?,
        supervisor: beginning.supervisor.into_iter().map(Into::into).collect(),
        nodes: nodes.clone(),
    };
    let (engine, events) = LocalEngine::new(engine);
    let engine = Arc::new(engine);
    for (_, node) in live.book.nodes() {
        for index in node.out.keys() {
            engine.set_healthy(&node.name, *index, false);
        }
    }
    let asked = expected(&live);
    tokens.keep_only(&asked);
    // Who does not know what runs must not start anything.
    let adopted = engine.adopt(&asked).await;
    let found = adopted.map_err(|error| at(&runs_again)(std::io::Error::other(error)))?;
    live.begin(config);
    compare_nodes(&mut live, &nodes);
    reconcile(&mut live, &tokens, asked.into_iter().zip(found).collect());
    let limit = plan_limit(config.cadence);
    let (ask, planner) = planner::start(policy, limit);
    let (orders, received) = unbounded_channel();
    let performer = Performer {
        engine: orders,
        planner: ask,
        tokens: tokens.clone(),
        server: beginning.server,
        state_dir,
    };
    let (service, run) = prepare(live, store, performer);
    tokens.report_to(service.clone());
    tokio::spawn(carry_orders(engine, received, service.clone(), tokens.clone()));
    tokio::spawn(remove_old_runs(runs_again, beginning.keep, service.clone()));
    tokio::spawn(carry_events(events, service.clone(), tokens.clone()));
    let io = |source| StoreError::Io { path: PathBuf::from("a thread"), source };
    if let Gpus::Real(gpus) = beginning.gpus {
        tokio::spawn(watch_devices(gpus, service.clone()));
    }
    planner.answer_to(service.clone()).map_err(io)?;
    let thread = thread::Builder::new().name("scheduler".to_owned()).spawn(move || run.run()).map_err(io)?;
    Ok(Begun { service, tokens, administrator, thread })
}

/// How often GPUs are asked how they are.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Asks the driver now and then.
async fn watch_devices(gpus: Arc<NvmlGpus>, service: Service) {
    loop {
        let asked = Arc::clone(&gpus);
        let Ok(readings) = tokio::task::spawn_blocking(move || asked.readings()).await else { return };
        service.post(move |live| live.read_devices(readings));
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A plan may take half the time between rounds.
fn plan_limit(cadence: Cadence) -> Duration {
    cadence.every / 2
}

/// Marks this state's processes among all of the machine.
fn identity(store: &mut Store) -> Result<String, StoreError> {
    if let Some(known) = store.meta("identity")? {
        return Ok(known);
    }
    let made = super::tokens::identity()
        .map_err(|source| StoreError::Io { path: store.path().to_owned(), source })?;
    store.write(|writer| writer.meta("identity", &made))?;
    Ok(made)
}

/// Nodes that are new join, those that are gone are lost.
fn compare_nodes(live: &mut Live, nodes: &[Node]) {
    let gpus = |node: &Node| u32::try_from(node.gpus.len()).unwrap_or(u32::MAX);
    let known: Vec<_> = live.book.nodes().map(|(id, node)| (id, node.clone())).collect();
    let is_same = |entry: &super::book::NodeEntry, node: &Node| {
        entry.name == node.name && entry.gpu_type == node.gpu_type && entry.gpus == gpus(node)
    };
    for (id, entry) in &known {
        if !nodes.iter().any(|node| is_same(entry, node)) {
            let _ = live.tell(Input::NodeLost(*id), Note::Node { name: entry.name.clone() });
        }
    }
    for node in nodes {
        if !known.iter().any(|(_, entry)| is_same(entry, node)) {
            let spec = NodeSpec { gpu_type: GpuType::new(&node.gpu_type), gpus: gpus(node) };
            let id = live.book.next_node();
            let _ = live.tell(Input::NodeJoined(id, spec), Note::Node { name: node.name.clone() });
        }
    }
}

/// A cluster's shape, such as `4x4:t4`.
fn shape(nodes: &[Node]) -> String {
    let mut parts: Vec<(usize, String)> = Vec::new();
    for node in nodes {
        let kind = format!("{}:{}", node.gpus.len(), node.gpu_type);
        match parts.last_mut() {
            Some((count, last)) if *last == kind => *count += 1,
            _ => parts.push((1, kind)),
        }
    }
    if parts.is_empty() {
        return "no GPUs".to_owned();
    }
    parts.iter().map(|(count, kind)| format!("{count}x{kind}")).collect::<Vec<_>>().join(",")
}
