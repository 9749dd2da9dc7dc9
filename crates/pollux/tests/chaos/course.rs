//! What happens, one thing after the other: the seed decides.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use pollux_api::client::{Client, ClientError};
use pollux_api::rest::{JobEdits, JobList, JobShown, JobState, Submission, Submitted};
use pollux_model::Random;
use serde_json::Value;

use crate::jobs::{self, Job, Wish};
use crate::place::Place;
use crate::processes::{Kind, marked};
use crate::watch::Watch;

/// So many jobs are submitted at least, however few kills there are.
const FEWEST_JOBS: usize = 6;
/// So many are there at once at most, and are submitted at least where there are kills enough.
const MOST_AT_ONCE: usize = 20;
/// After the last kill, how long jobs may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(10);
/// How long the last processes may take to go.
const MOMENT: Duration = Duration::from_secs(20);

/// When it is enough.
pub(crate) enum Length {
    Kills(u64),
    Until(Instant),
}

/// A scheduler, its jobs, and what was done to them.
pub(crate) struct Course {
    place: Place,
    random: Random,
    watch: Watch,
    trainer: PathBuf,
    jobs: Vec<Job>,
    /// Whether nothing is killed any more.
    is_calm: bool,
    kills: BTreeMap<&'static str, u64>,
    acts: BTreeMap<&'static str, u64>,
}

impl Course {
    pub(crate) fn begin(seed: u64) -> Self {
        let mut place = Place::new();
        let watch = Watch::begin(place.mark());
        place.start();
        place.wait();
        Self {
            place,
            random: Random::seeded(seed),
            watch,
            trainer: jobs::trainer(),
            jobs: Vec::new(),
            is_calm: false,
            kills: BTreeMap::new(),
            acts: BTreeMap::new(),
        }
    }

    /// Kills and asks until it is enough.
    pub(crate) fn run(&mut self, length: &Length) {
        let most_jobs = match length {
            Length::Kills(kills) => usize::try_from(kills / 3).unwrap().clamp(FEWEST_JOBS, MOST_AT_ONCE),
            Length::Until(_) => MOST_AT_ONCE,
        };
        loop {
            let n_kills: u64 = self.kills.values().sum();
            let is_enough = match length {
                Length::Kills(kills) => n_kills >= *kills,
                Length::Until(end) => Instant::now() >= *end,
            };
            if is_enough && self.jobs.len() >= most_jobs {
                return;
            }
            self.come_up();
            let active = self.active();
            if active.len() < most_jobs && self.random.chance(0.4) {
                self.submit();
            }
            if !active.is_empty() && self.random.chance(0.5) {
                let at = active[self.random.below(active.len())];
                self.act(at);
            }
            match self.random.below(4) {
                0 => self.kill_scheduler(),
                1 => self.kill(Kind::Supervisor, "supervisors"),
                _ => self.kill(Kind::Worker, "workers"),
            }
            self.rest(1_200);
            if n_kills / 100 < self.kills.values().sum::<u64>() / 100 {
                eprintln!(
                    "chaos: {} jobs, {} of them active, kills {:?}",
                    self.jobs.len(),
                    active.len(),
                    self.kills
                );
            }
        }
    }

    /// Nothing is killed any more: every job ends as its user wants.
    pub(crate) fn see_jobs_through(&mut self) {
        self.is_calm = true;
        self.come_up();
        for at in 0..self.jobs.len() {
            if self.jobs[at].wish == Wish::Pause {
                self.change(at, "resume");
            }
        }
        let began = Instant::now();
        loop {
            let shown = self.check_list();
            if shown.iter().all(|job| job.state.has_ended()) {
                return;
            }
            let left: Vec<_> = shown.iter().filter(|job| !job.state.has_ended()).collect();
            assert!(began.elapsed() < PATIENCE, "{} jobs do not end: {left:#?}", left.len());
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Nothing is left running, nothing was ever held twice, the journal tells the same story again, and jobs went on where
    /// they had been saved.
    pub(crate) fn check_end(mut self) {
        let before = self.check_list();
        let of = |state| before.iter().filter(|job| job.state == state).count();
        let (finished, cancelled) = (of(JobState::Finished), of(JobState::Cancelled));
        self.place.down();
        let began = Instant::now();
        let mut left = marked(&self.place.mark());
        while !left.is_empty() && began.elapsed() < MOMENT {
            thread::sleep(Duration::from_millis(50));
            left = marked(&self.place.mark());
        }
        assert!(left.is_empty(), "still running: {left:#?}");
        let replayed = self.place.json(&["replay"]);
        assert_eq!(
            (&replayed["n_differences"], &replayed["unplanned"]),
            (&0.into(), &0.into()),
            "{replayed}"
        );
        self.place.start();
        self.place.wait();
        let after = self.check_list();
        assert_eq!(before, after, "the jobs are others after a restart");
        self.place.down();
        let observed = self.watch.end();
        assert_eq!(observed.wrong, Vec::<String>::new());
        jobs::check_progress(&self.place.path().join("runs"));
        assert!(observed.most_held > 1 && finished > before.len() / 4, "{observed:?} {before:#?}");
        eprintln!(
            "chaos: {} kills {:?}, asked for {:?}; {} jobs: {finished} finished, {cancelled} cancelled, {} others; \
             {} rows, {} plans made again; {} looks, at most {} GPUs held",
            self.kills.values().sum::<u64>(),
            self.kills,
            self.acts,
            before.len(),
            before.len() - finished - cancelled,
            replayed["rows"],
            replayed["plans"],
            observed.looks,
            observed.most_held
        );
    }

    /// Starts the scheduler if it is dead. Sometimes others die meanwhile, sometimes it dies again before it answers.
    fn come_up(&mut self) {
        while !self.place.is_up() {
            if self.is_calm {
                self.place.start();
                return self.place.wait();
            }
            if self.random.chance(0.3) {
                self.rest(400);
                self.kill(Kind::Worker, "workers without a scheduler");
            }
            if self.random.chance(0.2) {
                self.kill(Kind::Supervisor, "supervisors without a scheduler");
            }
            self.place.start();
            if self.random.chance(0.2) {
                self.rest(150);
                self.place.kill();
                self.count("schedulers as they begin");
            } else {
                self.place.wait();
            }
        }
    }

    /// Everything that was acknowledged is in the list, as it was acknowledged, and nothing else is.
    #[track_caller]
    fn check_list(&self) -> Vec<JobShown> {
        let mut listed: Vec<JobShown> = Vec::new();
        loop {
            let after = listed.last().map_or(0, |job| job.id);
            let page: JobList = self.place.client().get(&format!("/v1/jobs?after={after}")).unwrap();
            listed.extend(page.jobs);
            if page.next.is_none() {
                break;
            }
        }
        let ids: Vec<u64> = listed.iter().map(|job| job.id).collect();
        let known: Vec<u64> = self.jobs.iter().map(|job| job.id).collect();
        assert_eq!(ids, known, "listed, and acknowledged");
        for (job, shown) in self.jobs.iter().zip(&listed) {
            job.check(shown);
        }
        listed
    }

    fn kill_scheduler(&mut self) {
        self.come_up();
        self.place.kill();
        self.count("schedulers");
    }

    /// Kills one of these, if there is any.
    fn kill(&mut self, kind: Kind, what: &'static str) {
        let found: Vec<_> =
            marked(&self.place.mark()).into_iter().filter(|seen| seen.kind() == kind).collect();
        if !found.is_empty() && found[self.random.below(found.len())].kill() {
            self.count(what);
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.kills.entry(what).or_default() += 1;
    }

    /// At most so many milliseconds.
    fn rest(&mut self, most: usize) {
        thread::sleep(Duration::from_millis(self.random.below(most + 1) as u64));
    }

    /// Asks until there is an answer. Now and then the scheduler is killed meanwhile; then the same is asked again.
    fn ask<T>(&mut self, call: impl Fn(&Client) -> Result<T, ClientError>) -> (Option<T>, bool) {
        let mut was_unsure = false;
        loop {
            self.come_up();
            let answer = if !self.is_calm && self.random.chance(0.3) {
                let after = Duration::from_micros(self.random.below(12_000) as u64);
                self.count("schedulers while they are asked");
                self.place.kill_while(after, &call)
            } else {
                call(&self.place.client())
            };
            match answer {
                Ok(answer) => return (Some(answer), was_unsure),
                Err(ClientError::Refused(_)) => return (None, was_unsure),
                Err(_) => was_unsure = true,
            }
        }
    }

    fn submit(&mut self) {
        let file = jobs::file(&self.trainer, 100 + self.random.below(300), 1 + self.random.below(4));
        let body = Submission { file: file.to_json(), dry_run: false };
        let key = format!("chaos-{}", self.jobs.len());
        let (submitted, _) = self.ask(|client| {
            client.send::<Submitted>("POST", "/v1/jobs", &[("Idempotency-Key", &key)], Some(&body))
        });
        let submitted = submitted.unwrap_or_else(|| panic!("{} was refused", file.name));
        assert_eq!(submitted.jobs.len(), 1);
        self.jobs.push(Job::new(&submitted.jobs[0]));
    }

    /// Jobs that have not ended, by their place among all.
    fn active(&self) -> Vec<usize> {
        let shown = self.check_list();
        let is_active = |at: &usize| !shown[*at].state.has_ended();
        (0..shown.len()).filter(is_active).collect()
    }

    /// Somebody wants something of a job.
    fn act(&mut self, at: usize) {
        let wish = self.jobs[at].wish;
        match self.random.below(10) {
            0..4 => self.resize(at),
            _ if wish == Wish::Pause => self.change(at, "resume"),
            4..8 if wish == Wish::Train => self.change(at, "pause"),
            8 if wish == Wish::Train => self.change(at, "cancel"),
            _ => self.set_least(at),
        }
    }

    fn resize(&mut self, at: usize) {
        let most = u32::try_from(self.random.below(5)).unwrap();
        let edits = JobEdits { max_gpus: Some(most), ..JobEdits::default() };
        let path = format!("/v1/jobs/{}", self.jobs[at].id);
        let (shown, _) = self.ask(|client| client.send::<JobShown>("PATCH", &path, &[], Some(&edits)));
        if let Some(shown) = shown {
            self.done("set --max");
            self.jobs[at].max_gpus = (most > 0).then_some(most);
            self.jobs[at].check(&shown);
        }
    }

    /// By the command, which nothing is to interrupt.
    fn set_least(&mut self, at: usize) {
        self.come_up();
        let least = (1 + self.random.below(2)).to_string();
        let output = self.place.run(&["set", &self.jobs[at].name, "--min", &least]);
        // Refused if the job has ended, or may have no more.
        assert!(matches!(output.status.code(), Some(0 | 4)), "{}", String::from_utf8_lossy(&output.stderr));
        self.done("set --min");
    }

    /// Pauses, resumes or cancels. What is acknowledged holds from then on.
    fn change(&mut self, at: usize, verb: &'static str) {
        let path = format!("/v1/jobs/{}:{verb}", self.jobs[at].id);
        let (done, was_unsure) = self.ask(|client| client.send::<Value>("POST", &path, &[], None::<&()>));
        let job = &mut self.jobs[at];
        match (done.is_some(), verb) {
            (true, "pause") => job.wish = Wish::Pause,
            (true, "resume") => job.wish = Wish::Train,
            (true, _) => job.wish = Wish::Cancel,
            // It has ended, as it was or by the call whose answer was lost.
            (false, "cancel") if was_unsure => job.wish = Wish::Any,
            (false, _) => {}
        }
        if done.is_some() {
            self.done(verb);
        }
    }

    fn done(&mut self, what: &'static str) {
        *self.acts.entry(what).or_default() += 1;
    }
}
