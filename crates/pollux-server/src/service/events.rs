//! What happened, as people read it.

use pollux_api::rest::EventShown;
use pollux_core::{Effect, Input, Outcome};
use pollux_model::{JobId, Timestamp};

use super::clock::rfc3339;
use super::live::{Live, job_of};
use super::note::Note;
use super::show;

/// A line of the log of events.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// Who did it.
    pub actor: String,
    /// The job it is about, and its name.
    pub job: Option<(JobId, String)>,
    /// What kind of event.
    pub kind: &'static str,
    /// What happened, in a sentence.
    pub text: String,
}

impl Event {
    /// As the API shows it.
    pub(super) fn shown(self, seq: u64) -> EventShown {
        let job = self.job.map(|(_, name)| name);
        EventShown {
            seq,
            at: rfc3339(self.at),
            actor: self.actor,
            job,
            kind: self.kind.to_owned(),
            text: self.text,
        }
    }
}

/// Events of an input and of what it led to.
pub(super) fn told(live: &Live, at: Timestamp, input: &Input, note: &Note, effects: &[Effect]) -> Vec<Event> {
    let name =
        |job: JobId| live.book.job(job).map_or_else(|| format!("job-{}", job.0), |entry| entry.name.clone());
    let about = job_of(input).map(|job| (job, name(job)));
    let event =
        |kind, text: String| Event { at, actor: note.actor().to_owned(), job: about.clone(), kind, text };
    let subject = about.as_ref().map_or_else(String::new, |(_, name)| name.clone());
    let node = |id| live.book.node(id).map_or_else(|| "a node".to_owned(), |node| node.name.clone());
    let how = |word: &str| match note {
        Note::Ended { how } => format!("{subject} {word}: {how}"),
        _ => format!("{subject} {word}"),
    };
    let first = match input {
        Input::JobSubmitted(..) => Some(event("submitted", format!("{subject} was submitted"))),
        Input::JobEdited(_, edit) => Some(match edit.suspended {
            Some(true) => event("paused", format!("{subject} was paused")),
            Some(false) => event("resumed", format!("{subject} was resumed")),
            None => event("edited", format!("{subject} was edited: {}", show::edit(edit))),
        }),
        Input::JobCancelled(_) => Some(event("cancelled", format!("{subject} was cancelled"))),
        Input::JobTraining(..) => Some(event("training", format!("{subject} trains"))),
        Input::JobStopped(..) => Some(event("stopped", how("left its GPUs"))),
        Input::JobFinished(..) => Some(event("exited", how("is done"))),
        Input::JobFailed(..) | Input::JobGivenUp(..) => Some(event("died", how("died"))),
        Input::NodeJoined(id, spec) => {
            Some(event("node", format!("{} joined with {} {}", node(*id), spec.gpus, spec.gpu_type)))
        }
        Input::NodeStateSet(id, state) => {
            Some(event("node", format!("{} is {}", node(*id), show::state_word(*state))))
        }
        Input::NodeUsedByOthers(id, gpus) => Some(event(
            "node",
            match note {
                Note::Devices { out, .. } if out.is_empty() => {
                    format!("all GPUs of {} can be used again", node(*id))
                }
                Note::Devices { out, .. } => {
                    let parts: Vec<String> =
                        out.iter().map(|(index, why)| format!("GPU {index} ({why})")).collect();
                    format!("nothing is started on {} of {}", parts.join(", "), node(*id))
                }
                _ => format!("{gpus} GPUs of {} cannot be used", node(*id)),
            },
        )),
        Input::NodeLost(_) => Some(event("node", "a node is gone".to_owned())),
        Input::GroupsSet(_) => Some(event("queues", "queues were set".to_owned())),
        Input::ShellRestarted => Some(event("service", "the service began".to_owned())),
        _ => None,
    };
    let done = effects.iter().filter_map(|effect| {
        let (job, kind, text) = match effect {
            Effect::Start { job, generation, allocation } => {
                let places = show::places(&live.book, allocation);
                let gpus: u32 = allocation.iter().map(|(_, share)| share.n_replicas()).sum();
                let text =
                    format!("{} starts on {gpus} GPUs ({places}), attempt {}", name(*job), generation.0);
                (*job, "started", text)
            }
            Effect::Stop { job, .. } => {
                (*job, "asked to leave", format!("{} is asked to save its state and leave", name(*job)))
            }
            _ => return None,
        };
        Some(Event { at, actor: "scheduler".to_owned(), job: Some((job, name(job))), kind, text })
    });
    first.into_iter().chain(done).collect()
}

/// A job is over.
pub(super) fn ended(live: &Live, at: Timestamp, job: JobId, outcome: Outcome) -> Event {
    let name = live.book.job(job).map_or_else(|| format!("job-{}", job.0), |entry| entry.name.clone());
    let (kind, word) = match outcome {
        Outcome::Finished => ("finished", "finished"),
        Outcome::Failed => ("failed", "failed and is not tried again"),
        Outcome::Cancelled => ("ended", "is cancelled"),
    };
    let text = format!("{name} {word}");
    Event { at, actor: "scheduler".to_owned(), job: Some((job, name)), kind, text }
}
