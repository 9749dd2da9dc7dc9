//! The production policy on a copy of the live state.

use std::collections::BTreeMap;

use pollux_api::job_file::JobFile;
use pollux_api::rest::{WhatIf, WhatIfAnswer, WhatIfJob};
use pollux_api::{Names, explain};
use pollux_core::{Input, JobEdit, NodeSpec, Scheduler};
use pollux_model::{GpuType, JobId, NodeId, Placement};
use pollux_policy::{AnyPolicy, JobPlan, Snapshot, Terms};

use super::live::Live;
use super::submit::SubmitError;
use crate::engine::gpus::Gpus;

/// A question about a world that is not: what a policy would be shown now, and what then.
pub struct Imagined {
    now: Snapshot,
    then: Snapshot,
    names: Names,
}

impl Live {
    /// Imagines a change. Nothing changes.
    pub fn imagine(&self, change: &WhatIf) -> Result<Imagined, SubmitError> {
        let at = self.now();
        let wrong = |text: String| SubmitError::File(text);
        let mut copy = Scheduler::restore(*self.scheduler.config(), self.scheduler.state())
            .map_err(|error| wrong(error.to_string()))?;
        let now = copy.preview(at).map_err(|error| wrong(error.to_string()))?;
        let mut names = self.book.names();
        let mut inputs = Vec::new();
        let mut job = self.book.next_job();
        for file in &change.submit {
            let file = JobFile::from_json(file).map_err(|error| wrong(error.to_string()))?;
            for member in file.expand() {
                inputs.push(Input::JobSubmitted(job, self.spec(&member)?));
                names.jobs.insert(job, self.book.free_name(&member.name));
                job = JobId(job.0 + 1);
            }
        }
        let mut node = self.book.next_node();
        if let Some(shape) = &change.add_nodes {
            for added in Gpus::emulated(shape).map_err(|error| wrong(error.to_string()))?.nodes() {
                names.nodes.insert(node, format!("new-{}", node.0));
                let gpus = u32::try_from(added.gpus.len()).unwrap_or(u32::MAX);
                let spec = NodeSpec { gpu_type: GpuType::new(&added.gpu_type), gpus };
                inputs.push(Input::NodeJoined(node, spec));
                node = NodeId(node.0 + 1);
            }
        }
        for name in &change.remove_nodes {
            let found = self.book.nodes().find(|(_, node)| node.name == *name).map(|(id, _)| id);
            let id = found.ok_or_else(|| wrong(format!("there is no node `{name}`")))?;
            inputs.push(Input::NodeLost(id));
        }
        for name in &change.cancel {
            inputs.push(Input::JobCancelled(self.named(name)?));
        }
        for (name, weight) in &change.weights {
            let edit = JobEdit { weight: Some(*weight), ..JobEdit::default() };
            inputs.push(Input::JobEdited(self.named(name)?, edit));
        }
        for input in inputs {
            copy.handle(at, input)?;
        }
        let then = copy.preview(at).map_err(|error| wrong(error.to_string()))?;
        Ok(Imagined { now, then, names })
    }

    fn named(&self, name: &str) -> Result<JobId, SubmitError> {
        self.book.find(name).ok_or_else(|| SubmitError::File(format!("there is no job `{name}`")))
    }
}

impl Imagined {
    /// Plans both, and says who would hold what.
    pub fn answer(&self, policy: &dyn AnyPolicy) -> WhatIfAnswer {
        let [now, then] = [&self.now, &self.then].map(|snapshot| policy.plan(snapshot, &Terms::seeded(1)));
        let gpus = |plan: &JobPlan| plan.allocation.placement().map_or(0, Placement::n_replicas);
        let mut jobs: BTreeMap<JobId, WhatIfJob> = BTreeMap::new();
        let blank = |id: JobId| WhatIfJob {
            name: self.names.job(id).into_owned(),
            gpus_now: None,
            gpus_then: None,
            speedup_then: None,
            text: Vec::new(),
        };
        for plan in &now.jobs {
            jobs.entry(plan.job).or_insert_with(|| blank(plan.job)).gpus_now = Some(gpus(plan));
        }
        for plan in &then.jobs {
            let job = jobs.entry(plan.job).or_insert_with(|| blank(plan.job));
            job.gpus_then = Some(gpus(plan));
            job.speedup_then = plan.reason.speedup;
            job.text = vec![explain::sentence(plan, &self.names)];
        }
        WhatIfAnswer {
            jobs: jobs.into_values().collect(),
            value_now: now.certificate.map(|certificate| certificate.value),
            value_then: then.certificate.map(|certificate| certificate.value),
        }
    }
}
