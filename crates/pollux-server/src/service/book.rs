//! The book of jobs: what the service knows of them beyond what the scheduler does. Made of the journal alone, but for numbers
//! that lost jobs have used.

use std::collections::BTreeMap;

use pollux_api::Names;
use pollux_core::{Effect, Input};
use pollux_model::{Allocation, JobId, NodeId, Timestamp};
use pollux_policy::GroupId;
use serde::{Deserialize, Serialize};

use super::note::Note;

/// Jobs, nodes and queues by name. Equal journals make equal books.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Book {
    jobs: BTreeMap<u64, Entry>,
    nodes: BTreeMap<u32, NodeEntry>,
    queues: BTreeMap<u32, String>,
    latest_job: u64,
    latest_node: u32,
    /// Jobs by the caller's name for their submission, and when that was.
    keys: BTreeMap<String, (u64, Vec<u64>)>,
}

/// How long a caller's name for a submission is remembered, in microseconds: a day.
const KEYS_FOR: u64 = 86_400_000_000;

/// What is known of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Who submitted it.
    pub owner: String,
    /// The job file as JSON.
    pub file: serde_json::Value,
    /// Its starts, the latest last.
    pub attempts: Vec<AttemptEntry>,
    /// How often it was edited.
    pub edits: u64,
    /// Whether its user paused it.
    pub paused: bool,
    /// When it ended.
    pub ended_us: Option<u64>,
    /// When its agent reported last, as far as the journal knows.
    pub reported_us: Option<u64>,
}

/// What is known of one start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptEntry {
    /// Its number: the scheduler's generation.
    pub attempt: u32,
    /// GPUs by node.
    pub nodes: BTreeMap<u32, u32>,
    /// When it was decided.
    pub started_us: u64,
    /// When it made its first step.
    pub training_us: Option<u64>,
    /// When it was asked to leave.
    pub asked_us: Option<u64>,
    /// When its last process was gone.
    pub ended_us: Option<u64>,
    /// How, in words.
    pub how: Option<String>,
}

/// What is known of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeEntry {
    /// Its name.
    pub name: String,
    /// The type of its GPUs.
    pub gpu_type: String,
    /// How many it has.
    pub gpus: u32,
    /// `ready`, `cordoned` or `draining`.
    pub state: String,
    /// GPUs that nothing is started on: why, by index.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub out: BTreeMap<u32, String>,
}

impl Book {
    /// Takes in a row of the journal.
    pub fn apply(&mut self, at: Timestamp, input: &Input, note: &Note, effects: &[Effect]) {
        let now = at.as_micros();
        match (input, note) {
            (Input::JobSubmitted(id, _), Note::Submitted { actor, name, file, key }) => {
                if let Some(key) = key {
                    self.keys.retain(|_, (at, _)| now.saturating_sub(*at) < KEYS_FOR);
                    self.keys.entry(key.clone()).or_insert((now, Vec::new())).1.push(id.0);
                }
                self.latest_job = self.latest_job.max(id.0);
                self.jobs.insert(id.0, Entry::new(name, actor, file));
            }
            (Input::JobEdited(id, edit), _) => {
                if let Some(entry) = self.jobs.get_mut(&id.0) {
                    entry.edits += 1;
                    entry.paused = edit.suspended.unwrap_or(entry.paused);
                }
            }
            (Input::JobReported(id, _), _) => {
                if let Some(entry) = self.jobs.get_mut(&id.0) {
                    entry.reported_us = Some(now);
                }
            }
            (Input::JobTraining(id, generation), _) => {
                if let Some(attempt) = self.attempt_mut(*id, generation.0) {
                    attempt.training_us.get_or_insert(now);
                }
            }
            (
                Input::JobStopped(id, generation)
                | Input::JobFinished(id, generation)
                | Input::JobFailed(id, generation)
                | Input::JobGivenUp(id, generation),
                note,
            ) => {
                if let Some(attempt) = self.attempt_mut(*id, generation.0) {
                    attempt.ended_us.get_or_insert(now);
                    if let Note::Ended { how } = note {
                        attempt.how.get_or_insert_with(|| how.clone());
                    }
                }
            }
            (Input::NodeJoined(id, spec), Note::Node { name }) => {
                self.latest_node = self.latest_node.max(id.0);
                let gpu_type = spec.gpu_type.name().to_owned();
                let (name, state) = (name.clone(), "ready".to_owned());
                let entry = NodeEntry { name, gpu_type, gpus: spec.gpus, state, out: BTreeMap::new() };
                self.nodes.insert(id.0, entry);
            }
            (Input::NodeStateSet(id, state), _) => {
                if let Some(node) = self.nodes.get_mut(&id.0) {
                    super::show::state_word(*state).clone_into(&mut node.state);
                }
            }
            (Input::NodeUsedByOthers(id, _), Note::Devices { out, .. }) => {
                if let Some(node) = self.nodes.get_mut(&id.0) {
                    node.out.clone_from(out);
                }
            }
            (Input::NodeLost(id), _) => {
                self.nodes.remove(&id.0);
            }
            (Input::GroupsSet(_), Note::Queues { names, .. }) => self.queues.clone_from(names),
            _ => {}
        }
        for effect in effects {
            self.follow(now, effect);
        }
    }

    fn follow(&mut self, now: u64, effect: &Effect) {
        match effect {
            Effect::Start { job, generation, allocation } => {
                let nodes = allocation.iter().map(|(node, share)| (node.0, share.n_replicas())).collect();
                if let Some(entry) = self.jobs.get_mut(&job.0) {
                    entry.attempts.push(AttemptEntry {
                        attempt: generation.0,
                        nodes,
                        started_us: now,
                        training_us: None,
                        asked_us: None,
                        ended_us: None,
                        how: None,
                    });
                    entry.forget_old_attempts();
                }
            }
            Effect::Stop { job, generation } => {
                if let Some(attempt) = self.attempt_mut(*job, generation.0) {
                    attempt.asked_us.get_or_insert(now);
                }
            }
            _ => {}
        }
    }

    fn attempt_mut(&mut self, job: JobId, generation: u32) -> Option<&mut AttemptEntry> {
        let attempts = &mut self.jobs.get_mut(&job.0)?.attempts;
        attempts.iter_mut().rev().find(|attempt| attempt.attempt == generation)
    }

    /// A job is over.
    pub fn end(&mut self, job: JobId, at: Timestamp) {
        if let Some(entry) = self.jobs.get_mut(&job.0) {
            entry.ended_us.get_or_insert(at.as_micros());
        }
    }

    /// Forgets a job, which the store remembers.
    pub fn forget(&mut self, job: JobId) {
        self.jobs.remove(&job.0);
    }

    /// A job by its number.
    pub fn job(&self, id: JobId) -> Option<&Entry> {
        self.jobs.get(&id.0)
    }

    /// All jobs, the oldest first.
    pub fn jobs(&self) -> impl DoubleEndedIterator<Item = (JobId, &Entry)> {
        self.jobs.iter().map(|(id, entry)| (JobId(*id), entry))
    }

    /// The job with this name, or with this number.
    pub fn find(&self, text: &str) -> Option<JobId> {
        let by_name = self.jobs().rev().find(|(_, entry)| entry.name == text).map(|(id, _)| id);
        let by_number = || text.parse().ok().map(JobId).filter(|id| self.jobs.contains_key(&id.0));
        by_name.or_else(by_number)
    }

    /// The jobs of a submission that its caller named so.
    pub fn submission(&self, key: &str) -> Option<Vec<JobId>> {
        self.keys.get(key).map(|(_, jobs)| jobs.iter().copied().map(JobId).collect())
    }

    /// A name nobody has: the one wished for, or that with a number.
    pub fn free_name(&self, wish: &str) -> String {
        let is_taken = |name: &str| self.jobs.values().any(|entry| entry.name == name);
        if !is_taken(wish) {
            return wish.to_owned();
        }
        let numbered = (2_u64..).map(|number| format!("{wish}-{number}"));
        numbered.into_iter().find(|name| !is_taken(name)).unwrap_or_else(|| wish.to_owned())
    }

    /// No new job gets this number or one below it.
    pub fn pass_over(&mut self, job: JobId) {
        self.latest_job = self.latest_job.max(job.0);
    }

    /// The number of the next job.
    pub fn next_job(&self) -> JobId {
        JobId(self.latest_job + 1)
    }

    /// The number of the next node.
    pub fn next_node(&self) -> NodeId {
        NodeId(if self.nodes.is_empty() && self.latest_node == 0 { 0 } else { self.latest_node + 1 })
    }

    /// A node by its number.
    pub fn node(&self, id: NodeId) -> Option<&NodeEntry> {
        self.nodes.get(&id.0)
    }

    /// All nodes.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &NodeEntry)> {
        self.nodes.iter().map(|(id, entry)| (NodeId(*id), entry))
    }

    /// Names of queues by number.
    pub fn queues(&self) -> &BTreeMap<u32, String> {
        &self.queues
    }

    /// The queue with this name.
    pub fn queue(&self, name: &str) -> Option<GroupId> {
        self.queues.iter().find(|(_, known)| *known == name).map(|(id, _)| GroupId(*id))
    }

    /// All names, as sentences want them.
    pub fn names(&self) -> Names {
        Names {
            nodes: self.nodes().map(|(id, node)| (id, node.name.clone())).collect(),
            groups: self.queues.iter().map(|(id, name)| (GroupId(*id), name.clone())).collect(),
            jobs: self.jobs().map(|(id, entry)| (id, entry.name.clone())).collect(),
        }
    }

    /// The names that sentences about one job want: lists have a sentence for each of many.
    pub fn names_about(&self, job: JobId, allocation: &Allocation) -> Names {
        let node = |id| self.node(id).map(|node| (id, node.name.clone()));
        Names {
            nodes: allocation.iter().filter_map(|(id, _)| node(id)).collect(),
            groups: self.queues.iter().map(|(id, name)| (GroupId(*id), name.clone())).collect(),
            jobs: self.job(job).map(|entry| (job, entry.name.clone())).into_iter().collect(),
        }
    }
}

impl Entry {
    /// Starts that are remembered, the latest ones and the first.
    const MOST_ATTEMPTS: usize = 200;

    fn new(name: &str, owner: &str, file: &serde_json::Value) -> Self {
        Self {
            name: name.to_owned(),
            owner: owner.to_owned(),
            file: file.clone(),
            attempts: Vec::new(),
            edits: 0,
            paused: false,
            ended_us: None,
            reported_us: None,
        }
    }

    fn forget_old_attempts(&mut self) {
        if self.attempts.len() > Self::MOST_ATTEMPTS {
            self.attempts.remove(1);
        }
    }
}
