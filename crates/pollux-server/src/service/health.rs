//! GPUs that are not well, or that an administrator wants left alone: nothing is started on them.
//!
//! What is out stays out, also after a restart of the service, until an administrator says otherwise: the driver tells of
//! an error once, and a GPU that had one is not to be trusted by itself. Who holds such a GPU keeps it; most programs die
//! of what made it sick, and their next start avoids it.

use std::collections::BTreeMap;

use pollux_api::rest::DeviceShown;
use pollux_core::Input;
use pollux_model::NodeId;

use super::live::Live;
use super::note::Note;
use crate::engine::gpus::{Node, Reading};

/// What an administrator or the driver says of a GPU makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node {node} has no GPU {index}; its GPUs are {known}")]
pub struct NoSuchGpu {
    node: String,
    index: u32,
    known: String,
}

/// What is known of the GPUs themselves. Not part of the journal.
#[derive(Clone, Debug, Default)]
pub(super) struct Devices {
    nodes: Vec<Node>,
    latest: BTreeMap<(String, u32), Reading>,
}

impl Devices {
    pub(super) fn of(nodes: &[Node]) -> Self {
        Self { nodes: nodes.to_vec(), latest: BTreeMap::new() }
    }

    fn indices(&self, node: &str) -> Vec<u32> {
        let found = self.nodes.iter().find(|known| known.name == node);
        found.map(|node| node.gpus.iter().map(|gpu| gpu.index).collect()).unwrap_or_default()
    }
}

impl Live {
    /// Takes a GPU out (with a reason) or back in (without).
    pub fn set_gpu(
        &mut self,
        node: NodeId,
        index: u32,
        reason: Option<&str>,
        actor: &str,
    ) -> Result<(), NoSuchGpu> {
        let Some(entry) = self.book.node(node) else { return Ok(()) };
        let (name, mut out) = (entry.name.clone(), entry.out.clone());
        let known = self.devices.indices(&name);
        if !known.contains(&index) {
            let known = known.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            return Err(NoSuchGpu { node: name, index, known });
        }
        match reason {
            // The first reason is what made it so.
            Some(reason) => drop(out.entry(index).or_insert_with(|| reason.to_owned())),
            None => drop(out.remove(&index)),
        }
        if out != entry.out {
            let n_out = u32::try_from(out.len()).unwrap_or(u32::MAX);
            // Never refused: the node is there.
            let _ = self
                .tell(Input::NodeUsedByOthers(node, n_out), Note::Devices { actor: actor.to_owned(), out });
            self.slots.push((name, index, reason.is_none()));
        }
        Ok(())
    }

    /// Takes note of what the driver says, and takes out GPUs that are sick.
    pub(super) fn read_devices(&mut self, readings: Vec<Reading>) {
        for reading in &readings {
            if let Some(trouble) = reading.trouble.as_deref().filter(|_| reading.is_sick)
                && let Some(node) = self.node(&reading.node)
            {
                // The driver names GPUs that we know from it.
                let _ = self.set_gpu(node, reading.index, Some(trouble), "driver");
            }
        }
        self.devices.latest =
            readings.into_iter().map(|reading| ((reading.node.clone(), reading.index), reading)).collect();
    }

    /// The GPUs of a node as far as there is anything to say of them: real ones, and those that are out.
    pub(super) fn devices_of(&self, name: &str, out: &BTreeMap<u32, String>) -> Vec<DeviceShown> {
        let Some(node) = self.devices.nodes.iter().find(|node| node.name == name) else { return Vec::new() };
        let told = node.gpus.iter().filter(|gpu| gpu.uuid.is_some() || out.contains_key(&gpu.index));
        let shown = told.map(|gpu| {
            let reading = self.devices.latest.get(&(name.to_owned(), gpu.index));
            DeviceShown {
                index: gpu.index,
                name: gpu.name.clone().unwrap_or_else(|| "emulated".to_owned()),
                utilisation: reading
                    .and_then(|reading| reading.busy_percent)
                    .map(|busy| f64::from(busy) / 100.0),
                memory_used: reading.and_then(|reading| reading.memory_used_bytes),
                memory_total: gpu.memory_bytes,
                power_watts: reading
                    .and_then(|reading| reading.power_milliwatts)
                    .map(|power| f64::from(power) / 1e3),
                unhealthy: out
                    .get(&gpu.index)
                    .cloned()
                    .or_else(|| reading.and_then(|reading| reading.trouble.clone())),
            }
        });
        shown.collect()
    }
}
