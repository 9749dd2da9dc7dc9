//! GPUs by NVIDIA's management library.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, EventSet, Nvml};

use super::gpus::{Gpu, Node, Reading, gpu_type};

/// Errors of programs, not of GPUs: the next program is not to blame. The list is that of NVIDIA's device plugin for
/// Kubernetes.
const PROGRAMS_ERRORS: [u64; 6] = [13, 31, 43, 45, 68, 109];

/// Opened once; handles on devices and events live as long as it does.
static LIBRARY: OnceLock<Nvml> = OnceLock::new();

/// The GPUs of this machine.
#[derive(Debug)]
pub struct NvmlGpus {
    library: &'static Nvml,
    nodes: Vec<Node>,
    watch: Mutex<Watch>,
}

/// What has befallen GPUs since we look.
#[derive(Debug)]
struct Watch {
    /// None where the driver tells of no events.
    events: Option<EventSet<'static>>,
    /// By uuid.
    trouble: BTreeMap<String, String>,
}

impl NvmlGpus {
    /// Finds the GPUs, or says why there are none.
    pub(super) fn open(host: &str) -> Result<Self, String> {
        let why = |what: &str, error: NvmlError| {
            format!(
                "no GPUs can be used: {what}: {error}; install NVIDIA's driver, or make up GPUs with --emulate"
            )
        };
        let library = if let Some(library) = LIBRARY.get() {
            library
        } else {
            let opened = Nvml::init().map_err(|error| why("NVML cannot be opened", error))?;
            LIBRARY.get_or_init(|| opened)
        };
        let count = library.device_count().map_err(|error| why("NVML cannot count them", error))?;
        // One that does not answer is left out: it is lost, and the others are not.
        let gpus: Vec<Gpu> = (0..count).filter_map(|index| describe(library, index).ok()).collect();
        if gpus.is_empty() {
            return Err(why("NVML names none", NvmlError::NotFound));
        }
        let events = library.create_event_set().ok().and_then(|set| register(library, count, set));
        let watch = Mutex::new(Watch { events, trouble: BTreeMap::new() });
        Ok(Self { library, nodes: nodes(host, gpus), watch })
    }

    /// The nodes: one for each type of GPU.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// How each GPU is doing.
    pub fn readings(&self) -> Vec<Reading> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.listen();
        let gpus = self.nodes.iter().flat_map(|node| node.gpus.iter().map(move |gpu| (node, gpu)));
        gpus.map(|(node, gpu)| self.read(node, gpu, &mut watch)).collect()
    }

    fn read(&self, node: &Node, gpu: &Gpu, watch: &mut Watch) -> Reading {
        let uuid = gpu.uuid.clone().unwrap_or_default();
        let mut reading = Reading { node: node.name.clone(), index: gpu.index, ..Reading::default() };
        match self.library.device_by_uuid(uuid.as_str()).and_then(|device| fill(&device, &mut reading)) {
            Ok(()) => {}
            Err(NvmlError::GpuLost | NvmlError::NotFound) => {
                watch.trouble.insert(uuid.clone(), "it has fallen off the bus".to_owned());
            }
            Err(error) => reading.trouble = Some(error.to_string()),
        }
        if let Some(trouble) = watch.trouble.get(&uuid) {
            reading.trouble = Some(trouble.clone());
            reading.is_sick = true;
        }
        reading
    }
}

impl Watch {
    /// Takes note of what happened since the last time, without waiting.
    fn listen(&mut self) {
        let Some(events) = &self.events else { return };
        // Bounded, so that a GPU that reports without end does not keep us.
        for _ in 0..1_000 {
            let Ok(event) = events.wait(0) else { return };
            let trouble = match event.event_data {
                Some(XidError::Value(xid)) if PROGRAMS_ERRORS.contains(&xid) => continue,
                Some(XidError::Value(xid)) => format!("the driver reported XID {xid}"),
                Some(XidError::Unknown) => "the driver reported an unknown error".to_owned(),
                None => continue,
            };
            if let Ok(uuid) = event.device.uuid() {
                self.trouble.insert(uuid, trouble);
            }
        }
    }
}

/// Asks to be told of errors of all devices; none if one of them cannot.
fn register(library: &'static Nvml, count: u32, set: EventSet<'static>) -> Option<EventSet<'static>> {
    (0..count).try_fold(set, |set, index| {
        let device = library.device_by_index(index).ok()?;
        device.register_events(EventTypes::CRITICAL_XID_ERROR, set).ok()
    })
}

fn describe(library: &'static Nvml, index: u32) -> Result<Gpu, NvmlError> {
    let device = library.device_by_index(index)?;
    Ok(Gpu {
        index,
        uuid: Some(device.uuid()?),
        name: Some(device.name()?),
        memory_bytes: device.memory_info().ok().map(|memory| memory.total),
    })
}

/// Reads what the device tells; fails only if it does not answer at all.
fn fill(device: &Device<'_>, reading: &mut Reading) -> Result<(), NvmlError> {
    let memory = match device.memory_info() {
        Err(error @ NvmlError::GpuLost) => return Err(error),
        memory => memory,
    };
    reading.memory_used_bytes = memory.ok().map(|memory| memory.used);
    reading.busy_percent = device.utilization_rates().ok().map(|rates| rates.gpu);
    reading.power_milliwatts = device.power_usage().ok();
    Ok(())
}

/// GPUs of one type are one node, since a node's GPUs are alike for the scheduler.
fn nodes(host: &str, gpus: Vec<Gpu>) -> Vec<Node> {
    let mut by_type: BTreeMap<String, Vec<Gpu>> = BTreeMap::new();
    for gpu in gpus {
        by_type.entry(gpu_type(gpu.name.as_deref().unwrap_or_default())).or_default().push(gpu);
    }
    let alike = by_type.len() == 1;
    let named = |gpu_type: &str| if alike { host.to_owned() } else { format!("{host}-{gpu_type}") };
    by_type.into_iter().map(|(kind, gpus)| Node { name: named(&kind), gpu_type: kind, gpus }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_nodes(names: &[&str], expected: &[(&str, &str, &[u32])]) {
        let gpu =
            |(index, name): (u32, &&str)| Gpu { index, name: Some((*name).to_owned()), ..Gpu::default() };
        let nodes = nodes("here", (0..).zip(names).map(gpu).collect());
        let indices = |node: &Node| node.gpus.iter().map(|gpu| gpu.index).collect::<Vec<_>>();
        let found: Vec<_> =
            nodes.iter().map(|n| (n.name.as_str(), n.gpu_type.as_str(), indices(n))).collect();
        let expected: Vec<_> =
            expected.iter().map(|(name, kind, gpus)| (*name, *kind, gpus.to_vec())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_node_has_gpus_of_one_type() {
        check_nodes(&["NVIDIA H200", "NVIDIA H200"], &[("here", "h200", &[0, 1])]);
        let mixed = [("here-h200", "h200", &[1_u32][..]), ("here-t4", "t4", &[0, 2])];
        check_nodes(&["Tesla T4", "NVIDIA H200", "Tesla T4"], &mixed);
    }
}
