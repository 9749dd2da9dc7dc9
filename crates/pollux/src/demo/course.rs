//! The demo's jobs on their way, under one policy.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pollux_api::client::Client;
use pollux_api::rest::{Explained, JobList, JobShown, JobState, Submission, Submitted};

use super::Interrupted;
use super::jobs::{self, Scenario};
use super::scheduler::Scheduler;
use super::screen::Screen;
use crate::live::LiveFailure;

/// Between two looks at the jobs.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long a job may hold nothing between two starts before that counts as waiting.
const BETWEEN_STARTS: Duration = Duration::from_millis(1_500);

/// Who plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contender {
    Pollux,
    Fifo,
}

impl Contender {
    pub(super) const ALL: [Self; 2] = [Self::Pollux, Self::Fifo];

    /// The policy's name, and that of the folder.
    pub(super) fn policy(self) -> &'static str {
        match self {
            Self::Pollux => "pollux",
            Self::Fifo => "fifo",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Pollux => "Pollux sizes the jobs; batch and learning rate follow",
            Self::Fifo => "FIFO: every job gets the GPUs its user asked for, with a fixed batch",
        }
    }
}

/// What all runs of a demo share.
pub(super) struct Stage<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) trainer: &'a Path,
    pub(super) folder: &'a Path,
    pub(super) interrupted: &'a Interrupted,
}

/// What became of the jobs.
pub(super) struct Course {
    pub(super) jobs: Vec<JobShown>,
    pub(super) changes: Vec<Change>,
    /// Every job's steps, as files.
    pub(super) curves: Vec<PathBuf>,
}

/// A job that holds more or fewer GPUs, trains with another batch, or is done.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) at: Duration,
    pub(super) job: String,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) batch_before: Option<u64>,
    pub(super) batch: Option<u64>,
    pub(super) lr_factor: Option<f64>,
    pub(super) why: String,
    /// What the scheduler says of its decision, where GPUs changed.
    pub(super) explained: Option<Explained>,
}

impl Stage<'_> {
    /// Runs all jobs to their ends.
    pub(super) fn run(&self, contender: Contender) -> Result<Course, LiveFailure> {
        self.interrupted.check()?;
        let state = self.folder.join(contender.policy());
        let mut scheduler = Scheduler::start(&state, self.scenario.cluster, contender.policy())?;
        let mut screen = Screen::new(contender.title(), self.scenario.gpus);
        let course = self.watch(contender, scheduler.client(), &mut screen)?;
        screen.end();
        scheduler.end()?;
        Ok(course)
    }

    fn watch(
        &self,
        contender: Contender,
        client: &Client,
        screen: &mut Screen,
    ) -> Result<Course, LiveFailure> {
        let began = Instant::now();
        let mut watched: Vec<Watched> = Vec::new();
        let mut course = Course { jobs: Vec::new(), changes: Vec::new(), curves: Vec::new() };
        loop {
            self.interrupted.check()?;
            let now = began.elapsed();
            for job in &self.scenario.jobs[watched.len()..] {
                if now.as_secs_f64() < job.at_secs as f64 {
                    break;
                }
                let curve = self.folder.join(format!("{}-{}.csv", contender.policy(), watched.len()));
                let (steps, folder) = (self.scenario.steps, self.folder);
                let file = jobs::prepared(job, steps, contender, self.trainer, folder, &curve)?;
                let body = Submission { file: file.to_json(), dry_run: false };
                let submitted: Submitted = client.send("POST", "/v1/jobs", &[], Some(&body))?;
                watched.extend(submitted.jobs.iter().map(Watched::new));
                course.curves.push(curve);
            }
            let list: JobList = client.get("/v1/jobs")?;
            let mut changes = Vec::new();
            for (job, seen) in list.jobs.iter().zip(&mut watched) {
                if matches!(job.state, JobState::Failed | JobState::Cancelled) {
                    let text = format!("{} ended early: {}", job.name, job.reason);
                    return Err(LiveFailure::failed(text));
                }
                changes.extend(seen.look(now, job, client));
            }
            screen.show(now, &list.jobs, &changes);
            course.changes.append(&mut changes);
            let all_ended = list.jobs.iter().all(|job| job.state.has_ended());
            if watched.len() == self.scenario.jobs.len() && all_ended {
                break;
            }
            if now > self.scenario.limit {
                return Err(LiveFailure::TimedOut);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let described = watched.iter().map(|job| client.get(&format!("/v1/jobs/{}", job.id)));
        course.jobs = described.collect::<Result<_, _>>()?;
        Ok(course)
    }
}

/// A job as it was when it was last told of.
struct Watched {
    id: u64,
    gpus: u32,
    batch: Option<u64>,
    holds_nothing_since: Option<Duration>,
    is_over: bool,
}

impl Watched {
    fn new(job: &JobShown) -> Self {
        Self { id: job.id, gpus: 0, batch: None, holds_nothing_since: None, is_over: false }
    }

    /// What is worth telling. Between two starts a job holds nothing for a moment, which is not.
    fn look(&mut self, now: Duration, job: &JobShown, client: &Client) -> Option<Change> {
        let (was_gpus, was_batch) = (self.gpus, self.batch);
        let gpus = match job.state {
            JobState::Starting | JobState::Running => job.gpus,
            JobState::Stopping => self.gpus,
            JobState::Pending => {
                let since = *self.holds_nothing_since.get_or_insert(now);
                if now.saturating_sub(since) > BETWEEN_STARTS { 0 } else { self.gpus }
            }
            _ => 0,
        };
        if gpus > 0 {
            self.holds_nothing_since = None;
        }
        let is_over = job.state.has_ended();
        let batch = job.batch.filter(|_| job.state == JobState::Running).or(self.batch);
        if (gpus, batch, is_over) == (was_gpus, was_batch, self.is_over) {
            return None;
        }
        (self.gpus, self.batch, self.is_over) = (gpus, batch, is_over);
        let explained = (gpus != was_gpus && !is_over)
            .then(|| client.get::<Explained>(&format!("/v1/jobs/{}/explain", job.id)).ok())
            .flatten();
        let why = match &explained {
            _ if is_over => "done".to_owned(),
            Some(told) => first_clause(&job.name, told),
            None => String::new(),
        };
        Some(Change {
            at: now,
            job: job.name.clone(),
            from: was_gpus,
            to: gpus,
            batch_before: was_batch,
            batch,
            lr_factor: job.lr_factor,
            why,
            explained,
        })
    }
}

/// The beginning of the reason, without what the line says anyway.
fn first_clause(name: &str, told: &Explained) -> String {
    let text = told.text.first().map(String::as_str).unwrap_or_default();
    let clause = text.split(';').next().unwrap_or_default();
    clause.trim().trim_start_matches(name).trim_start().trim_end_matches('.').to_owned()
}
