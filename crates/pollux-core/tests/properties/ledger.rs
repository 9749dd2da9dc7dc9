//! A second ledger, kept from what was asked and answered alone.

use std::collections::{BTreeMap, BTreeSet};

use pollux_core::{Effect, Generation, Input, NodeSpec};
use pollux_model::{Allocation, GpuType, JobId, NodeId};
use pollux_policy::NodeState;

/// What runs where, as the world has it.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    nodes: BTreeMap<NodeId, Machine>,
    pub(crate) starts: BTreeMap<JobId, Start>,
    latest: BTreeMap<JobId, Generation>,
    reported: BTreeSet<JobId>,
    cancelled: BTreeSet<JobId>,
}

#[derive(Debug)]
struct Machine {
    spec: NodeSpec,
    others: u32,
    state: NodeState,
    /// It will be taken back, or was given back.
    is_leaving: bool,
}

/// A start whose processes are not all gone.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) generation: Generation,
    allocation: Allocation,
    pub(crate) is_asked_to_stop: bool,
    has_lost: bool,
}

impl Ledger {
    /// Something happened, and was not refused.
    pub(crate) fn happened(&mut self, input: &Input) {
        match input {
            Input::JobReported(job, _) => {
                self.reported.insert(*job);
            }
            Input::JobCancelled(job) => {
                self.cancelled.insert(*job);
            }
            Input::JobStopped(job, generation)
            | Input::JobFinished(job, generation)
            | Input::JobFailed(job, generation)
            | Input::JobGivenUp(job, generation) => {
                self.starts.retain(|held, start| held != job || start.generation != *generation);
            }
            Input::NodeJoined(node, spec) => {
                self.join(*node, spec.clone());
            }
            Input::PoolNodeJoined(node, _) => {
                self.join(*node, NodeSpec { gpu_type: GpuType::new("t4"), gpus: 4 });
            }
            Input::NodeReclaimed(node, _) => self.machine(*node).is_leaving = true,
            Input::NodeStateSet(node, state) => self.machine(*node).state = *state,
            Input::NodeUsedByOthers(node, gpus) => self.machine(*node).others = *gpus,
            Input::NodeLost(node) => self.lose(*node),
            _ => {}
        }
    }

    /// Something is asked for: it must make sense.
    pub(crate) fn asked(&mut self, effect: &Effect) {
        match effect {
            Effect::Start { job, generation, allocation } => self.start(*job, *generation, allocation),
            Effect::Stop { job, generation } => self.stop(*job, *generation),
            Effect::Release { node } => {
                assert_eq!(self.held_on(*node), 0, "{node:?} is given back though somebody is there");
                assert!(
                    !std::mem::replace(&mut self.machine(*node).is_leaving, true),
                    "{node:?} leaves twice"
                );
            }
            _ => {}
        }
    }

    pub(crate) fn held_on(&self, node: NodeId) -> u32 {
        let shares = self.starts.values().filter_map(|start| start.allocation.on(node));
        shares.map(pollux_model::GpuShare::n_replicas).sum()
    }

    pub(crate) fn holds(&self, job: JobId) -> Allocation {
        self.starts.get(&job).map(|start| start.allocation.clone()).unwrap_or_default()
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.nodes.keys().copied()
    }

    fn join(&mut self, node: NodeId, spec: NodeSpec) {
        let machine = Machine { spec, others: 0, state: NodeState::Ready, is_leaving: false };
        assert!(self.nodes.insert(node, machine).is_none(), "{node:?} joined twice");
    }

    fn machine(&mut self, node: NodeId) -> &mut Machine {
        self.nodes.get_mut(&node).expect("an unknown node was not refused")
    }

    fn lose(&mut self, node: NodeId) {
        self.nodes.remove(&node).expect("an unknown node was not refused");
        for start in self.starts.values_mut().filter(|start| start.allocation.on(node).is_some()) {
            let rest = start.allocation.iter().filter(|(held, _)| *held != node);
            start.allocation = Allocation::whole(rest.map(|(node, share)| (node, share.n_replicas())));
            start.has_lost = true;
        }
        self.starts.retain(|_, start| !start.allocation.is_empty());
    }

    fn start(&mut self, job: JobId, generation: Generation, allocation: &Allocation) {
        assert!(!allocation.is_empty(), "{job:?} starts on nothing");
        assert!(!self.cancelled.contains(&job), "{job:?} starts though it was cancelled");
        let before = self.latest.insert(job, generation).unwrap_or_default();
        assert_eq!(generation.0, before.0 + 1, "starts of {job:?} are counted");
        let (allocation, is_asked_to_stop, has_lost) = (allocation.clone(), false, false);
        let start = Start { generation, allocation: allocation.clone(), is_asked_to_stop, has_lost };
        assert!(self.starts.insert(job, start).is_none(), "{job:?} starts before it is gone");
        let mut types = BTreeSet::new();
        for (node, share) in allocation.iter() {
            let held = self.held_on(node);
            let machine = self.nodes.get(&node).expect("a job starts on a node that is not there");
            assert!(share.is_whole());
            assert_eq!(machine.state, NodeState::Ready, "{job:?} starts on a closed node");
            assert!(!machine.is_leaving, "{job:?} starts on a node that leaves");
            assert!(held + machine.others <= machine.spec.gpus, "{node:?} is overfull: {held} {machine:?}");
            types.insert(&machine.spec.gpu_type);
        }
        assert_eq!(types.len(), 1, "{job:?} starts on several types");
    }

    fn stop(&mut self, job: JobId, generation: Generation) {
        let may_be_stopped = self.reported.contains(&job) || self.cancelled.contains(&job);
        let start = self.starts.get_mut(&job).expect("a job is asked to leave that holds nothing");
        assert_eq!(start.generation, generation, "{job:?} is asked to leave another start");
        assert!(!start.is_asked_to_stop, "{job:?} is asked to leave twice");
        assert!(may_be_stopped || start.has_lost, "{job:?} is rigid and asked to leave");
        start.is_asked_to_stop = true;
    }
}
