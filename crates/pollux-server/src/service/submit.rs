//! Jobs as they come in.

use pollux_api::job_file::JobFile;
use pollux_core::{Input, JobSpec, Refused};
use pollux_model::JobId;

use super::live::Live;
use super::note::Note;

/// A job that cannot be taken.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SubmitError {
    /// Its file is wrong.
    #[error("{0}")]
    File(String),
    /// It names a queue that is not there.
    #[error("there is no queue `{name}`{hint}")]
    UnknownQueue {
        /// The queue.
        name: String,
        /// Those there are.
        hint: String,
    },
    /// No plan could ever place it.
    #[error(
        "the job needs at least {needed} GPUs{of_types}, the cluster has {most}; lower `resources.gpus.min`"
    )]
    TooLarge {
        /// GPUs it needs.
        needed: u32,
        /// Of which types.
        of_types: String,
        /// GPUs of the type that has most of them.
        most: u32,
    },
    /// The scheduler does not take it.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl Live {
    /// Submits a job, or every member of an array: all of them or none. Says whether they are new: a key that was seen
    /// before names the jobs of that time.
    pub fn submit(
        &mut self,
        owner: &str,
        file: &JobFile,
        key: Option<&str>,
    ) -> Result<(Vec<JobId>, bool), SubmitError> {
        if let Some(ids) = key.and_then(|key| self.book.submission(key)) {
            return Ok((ids, false));
        }
        let members = file.expand();
        let specs = members.iter().map(|member| self.spec(member)).collect::<Result<Vec<_>, _>>()?;
        let mut ids = Vec::new();
        for (member, spec) in members.iter().zip(specs) {
            let id = self.book.next_job();
            let name = self.book.free_name(&member.name);
            let note = Note::Submitted {
                actor: owner.to_owned(),
                name,
                file: member.to_json(),
                key: key.map(str::to_owned),
            };
            self.tell(Input::JobSubmitted(id, spec), note)?;
            ids.push(id);
        }
        Ok((ids, true))
    }

    /// What the scheduler is told of a job, if it can ever run here.
    pub(super) fn spec(&self, file: &JobFile) -> Result<JobSpec, SubmitError> {
        let mut spec = file.to_spec();
        if let Some(queue) = &file.queue {
            spec.group = Some(self.book.queue(queue).ok_or_else(|| self.unknown_queue(queue))?);
        }
        let of_type = |gpu_type: &str| {
            let nodes = self.book.nodes().filter(|(_, node)| node.gpu_type == gpu_type);
            nodes.map(|(_, node)| node.gpus).sum::<u32>()
        };
        let accepted = self.book.nodes().map(|(_, node)| node.gpu_type.as_str());
        let accepted =
            accepted.filter(|name| spec.types.is_empty() || spec.types.iter().any(|one| one.name() == *name));
        let most = accepted.map(of_type).max().unwrap_or(0);
        let asked = spec.request.filter(|_| !spec.adapts).map_or(spec.min_gpus, |request| request.gpus);
        if asked > most && self.book.nodes().next().is_some() {
            let types: Vec<&str> = spec.types.iter().map(pollux_model::GpuType::name).collect();
            let of_types =
                if types.is_empty() { String::new() } else { format!(" of type {}", types.join(" or ")) };
            return Err(SubmitError::TooLarge { needed: asked, of_types, most });
        }
        Ok(spec)
    }

    fn unknown_queue(&self, name: &str) -> SubmitError {
        let known: Vec<&str> = self.book.queues().values().map(String::as_str).collect();
        let hint = if known.is_empty() {
            "; there are none, `pollux queue set` makes one".to_owned()
        } else {
            format!("; there are {}", known.join(", "))
        };
        SubmitError::UnknownQueue { name: name.to_owned(), hint }
    }
}
