//! What happened in a run, in order.

use std::fmt::Write as _;

use pollux_core::Explanation;
use pollux_model::{Allocation, JobId, Timestamp};

use crate::bill::NodeBill;
use crate::faults::NodeEvent;

/// Everything that happened to the jobs of a run. The same run gives the same text, byte for byte.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The events, by time.
    pub events: Vec<Event>,
    /// What befell the nodes, by time.
    pub nodes: Vec<NodeEvent>,
    /// Rented nodes and what they cost; empty where none are.
    pub bill: NodeBill,
}

/// What of a run is kept in its log. Long runs of many jobs need not hold what nobody is going to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The events of all jobs.
    pub events: bool,
    /// With them, why each job was given its GPUs.
    pub reasons: bool,
    /// A job of which everything is kept whatever else is.
    pub story: Option<JobId>,
}

impl Kept {
    /// Nothing at all.
    pub const NOTHING: Self = Self { events: false, reasons: false, story: None };

    fn events_of(&self, job: JobId) -> bool {
        self.events || self.story == Some(job)
    }

    pub(crate) fn reasons_of(&self, job: JobId) -> bool {
        (self.events && self.reasons) || self.story == Some(job)
    }
}

impl Default for Kept {
    /// Everything.
    fn default() -> Self {
        Self { events: true, reasons: true, story: None }
    }
}

/// One event.
#[derive(Clone, Debug)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// To whom.
    pub job: JobId,
    /// What.
    pub what: What,
}

/// What can happen to a job.
#[derive(Clone, Debug)]
pub enum What {
    /// It arrived.
    Submitted,
    /// It was given GPUs.
    Started {
        /// The GPUs.
        allocation: Allocation,
        /// Why.
        why: Option<Box<Explanation>>,
    },
    /// It makes progress again.
    Training,
    /// Its batch changed, or what a sample of it is worth.
    Batch {
        /// Samples of a step.
        global: u64,
        /// What each is worth against one of the initial batch.
        efficiency: f64,
    },
    /// It was taken off its GPUs.
    Stopped,
    /// It died: its start failed, or a node was lost with a part of it.
    Failed,
    /// It is done.
    Finished,
}

impl Log {
    pub(crate) fn push(&mut self, kept: Kept, event: Event) {
        if kept.events_of(event.job) {
            self.events.push(event);
        }
    }

    /// As lines of CSV: `time_s,job,event,gpus,nodes,batch,efficiency`. `name` tells a job's name.
    pub fn to_csv<'n>(&self, name: impl Fn(JobId) -> &'n str) -> String {
        let mut text = String::from("time_s,job,event,gpus,nodes,batch,efficiency\n");
        let mut nodes = self.nodes.iter().peekable();
        for Event { at, job, what } in &self.events {
            // A job dies of what befell its node at the same moment.
            while let Some(event) = nodes.next_if(|event| event.at <= *at) {
                node_row(&mut text, event);
            }
            let (secs, name) = (at.as_secs_f64(), name(*job));
            let written = match what {
                What::Submitted => writeln!(text, "{secs},{name},submitted,,,,"),
                What::Started { allocation, .. } => {
                    let nodes: Vec<String> = allocation
                        .iter()
                        .map(|(node, share)| format!("{}:{}", node.0, share.gpus()))
                        .collect();
                    writeln!(text, "{secs},{name},started,{},{},,", allocation.gpus(), nodes.join(" "))
                }
                What::Training => writeln!(text, "{secs},{name},training,,,,"),
                What::Batch { global, efficiency } => {
                    writeln!(text, "{secs},{name},batch,,,{global},{efficiency:.4}")
                }
                What::Stopped => writeln!(text, "{secs},{name},stopped,,,,"),
                What::Failed => writeln!(text, "{secs},{name},failed,,,,"),
                What::Finished => writeln!(text, "{secs},{name},finished,,,,"),
            };
            debug_assert!(written.is_ok(), "a string takes all text");
        }
        nodes.for_each(|event| node_row(&mut text, event));
        text
    }
}

/// What befalls a node befalls no job by name.
fn node_row(text: &mut String, NodeEvent { at, node, what }: &NodeEvent) {
    let written = writeln!(text, "{},,{},,{},,", at.as_secs_f64(), what.name(), node.0);
    debug_assert!(written.is_ok(), "a string takes all text");
}
