//! What the scheduler asks for is done: plans, starts, stops.

use std::path::PathBuf;
use std::sync::mpsc::Sender;

use pollux_api::job_file::JobFile;
use pollux_core::{Effect, Generation, Input, Phase};
use pollux_model::{Allocation, JobId};
use tokio::sync::mpsc::UnboundedSender;

use super::live::Live;
use super::note::Note;
use super::planner::Question;
use super::run::Service;
use super::show;
use super::tokens::{Tokens, write_secret};
use crate::engine::{End, EngineEvent, Found, How, Limits, LocalEngine, RunId, RunRequest, Share, Told};
use crate::store::Store;

/// What the engine is asked, one after the other.
pub(super) enum Order {
    /// Start a run.
    Start(Box<RunRequest>),
    /// Ask a run to leave.
    Stop(RunId),
    /// Leave a GPU alone, or use it again.
    Health(String, u32, bool),
    /// Look for the runs that are expected, and end all others.
    LookAgain,
}

/// Who does what is asked.
pub(super) struct Performer {
    pub(super) engine: UnboundedSender<Order>,
    pub(super) planner: Sender<Question>,
    pub(super) tokens: Tokens,
    pub(super) server: String,
    pub(super) state_dir: PathBuf,
}

impl Performer {
    /// Does one thing. What fails is told to the scheduler like anything that happens.
    pub(super) fn perform(&mut self, live: &mut Live, store: &mut Store, effect: Effect) {
        match effect {
            Effect::Solve { cycle, snapshot, seed } => {
                // Nobody listens when the service ends; the next one asks again.
                let _ = self.planner.send(Question { cycle, snapshot, seed });
            }
            Effect::Start { job, generation, allocation } => {
                match self.request(live, store, job, generation, &allocation) {
                    Ok(request) => self.order(Order::Start(Box::new(request))),
                    Err(why) => not_started(live, RunId::new(job, generation), &why),
                }
            }
            Effect::Stop { job, generation } => self.order(Order::Stop(RunId::new(job, generation))),
            // There are no pools here, and wishes to be woken are kept by the state.
            Effect::Size { .. } | Effect::Grow { .. } | Effect::Release { .. } | Effect::WakeAt(_) => {}
        }
    }

    /// Leaves a GPU alone, or lets it be used again.
    pub(super) fn set_healthy(&self, node: String, index: u32, healthy: bool) {
        self.order(Order::Health(node, index, healthy));
    }

    /// After the state was read anew: what became of all runs is asked again.
    pub(super) fn look_again(&self) {
        self.order(Order::LookAgain);
    }

    /// Starts that did not begin to train in time are ended.
    pub(super) fn end_overdue(&self, live: &mut Live) {
        for (job, generation) in live.overdue_now() {
            live.overdue.insert((job, generation));
            self.order(Order::Stop(RunId::new(job, generation)));
        }
    }

    fn order(&self, order: Order) {
        // The engine is gone when the service ends; the next one finds what was not done.
        let _ = self.engine.send(order);
    }

    fn request(
        &self,
        live: &Live,
        store: &mut Store,
        job: JobId,
        generation: Generation,
        allocation: &Allocation,
    ) -> Result<RunRequest, String> {
        let entry = live.book.job(job).ok_or("the job is not in the book")?;
        let file = JobFile::from_json(&entry.file).map_err(|error| error.to_string())?;
        let own = self.state_dir.join("jobs").join(job.0.to_string());
        let checkpoint = file.checkpoint.path.clone().map_or_else(|| own.join("checkpoint"), PathBuf::from);
        std::fs::create_dir_all(&checkpoint).map_err(|error| format!("{}: {error}", checkpoint.display()))?;
        let token = self.tokens.issue(store, job, generation).map_err(|error| error.to_string())?;
        // Each start has a file of its own: the last words of the one before are not said in its name.
        let token_file = own.join(format!("token-{}", generation.0));
        write_secret(&token_file, &token).map_err(|error| format!("{}: {error}", token_file.display()))?;
        let shares = show::by_name(&live.book, allocation).into_iter();
        let told = Told {
            command: file.command.clone(),
            workdir: file.workdir.clone().map_or_else(|| own.clone(), PathBuf::from),
            env: file.env.clone(),
            server: Some(self.server.clone()),
            adaptdl_url: Some(format!("{}/adaptdl/{token}", self.server)),
            token_file: Some(token_file),
            checkpoint_path: Some(checkpoint),
            batch: file.batch_json(),
            emulated: live.facts.is_emulated,
            emulated_profile: file.emulate.as_ref().map(|emulate| emulate.profile.clone()),
            limits: Limits { memory_bytes: file.resources.per_gpu.memory, cpus: file.resources.per_gpu.cpus },
            grace_ms: u64::try_from(file.checkpoint.grace.as_millis()).unwrap_or(u64::MAX),
            ..Told::default()
        };
        Ok(RunRequest {
            run: RunId::new(job, generation),
            name: entry.name.clone(),
            shares: shares.map(|(node, gpus)| Share { node, gpus }).collect(),
            gpus_per_rank: 1,
            told,
        })
    }
}

/// Carries orders to the engine in their order, and tells the service what failed.
pub(super) async fn carry_orders(
    engine: std::sync::Arc<LocalEngine>,
    mut orders: tokio::sync::mpsc::UnboundedReceiver<Order>,
    service: Service,
    tokens: Tokens,
) {
    while let Some(order) = orders.recv().await {
        match order {
            Order::Start(request) => {
                let run = request.run;
                if let Err(error) = engine.start(*request).await {
                    let why = error.to_string();
                    service.post(move |live| not_started(live, run, &why));
                }
            }
            Order::Stop(run) => {
                // Gone or not: an event says so, or has.
                let _ = engine.stop(run.job, run.generation).await;
            }
            Order::Health(node, index, healthy) => engine.set_healthy(&node, index, healthy),
            Order::LookAgain => {
                let expected = service.ask(|live| expected(live)).await.unwrap_or_default();
                let tokens = tokens.clone();
                match engine.adopt(&expected).await {
                    Ok(found) => {
                        let found: Vec<_> = expected.into_iter().zip(found).collect();
                        service.post(move |live| reconcile(live, &tokens, found));
                    }
                    Err(error) => {
                        let text =
                            format!("what runs could not be looked at ({error}); start the service again");
                        service.post(move |live| live.facts.warnings.push(text));
                    }
                }
            }
        }
    }
}

/// Tells the service what happens to runs.
pub(super) async fn carry_events(
    mut events: tokio::sync::mpsc::UnboundedReceiver<EngineEvent>,
    service: Service,
    tokens: Tokens,
) {
    while let Some(event) = events.recv().await {
        let tokens = tokens.clone();
        match event {
            EngineEvent::Up { run, .. } => service.post(move |live| {
                // A script that never reports trains from the start, as far as anybody knows.
                if live.file(run.job).is_some_and(|file| !file.adapts) {
                    let _ = live.tell(Input::JobTraining(run.job, run.generation), Note::Nothing);
                }
            }),
            EngineEvent::Ended { run, how } => service.post(move |live| ended(live, &tokens, run, &how)),
        }
    }
}

fn not_started(live: &mut Live, run: RunId, why: &str) {
    let note = Note::Ended { how: format!("it could not be started: {why}") };
    let _ = live.tell(Input::JobFailed(run.job, run.generation), note);
}

/// A run ended: what that means for its job.
fn ended(live: &mut Live, tokens: &Tokens, run: RunId, how: &How) {
    let RunId { job, generation } = run;
    tokens.forget(job, generation);
    let was_overdue = live.overdue.remove(&(job, generation));
    let file = live.file(job);
    let (input, text) = match how {
        How::Finished => (Input::JobFinished(job, generation), "every process ended with 0".to_owned()),
        How::Left if was_overdue => {
            (Input::JobFailed(job, generation), "it made no step within its start-up deadline".to_owned())
        }
        How::Left => (Input::JobStopped(job, generation), "it left as asked".to_owned()),
        How::Failed { rank, end, out_of_memory } => {
            let code = if let End::Code(code) = end { Some(*code) } else { None };
            let lists = |codes: &[i32]| code.is_some_and(|code| codes.contains(&code));
            let restart = file.as_ref().map(|file| &file.restart);
            let input = if restart.is_some_and(|restart| lists(&restart.give_up_exit_codes)) {
                Input::JobGivenUp(job, generation)
            } else if restart.is_some_and(|restart| lists(&restart.retry_exit_codes)) {
                Input::JobStopped(job, generation)
            } else {
                Input::JobFailed(job, generation)
            };
            (input, died(*rank, end, *out_of_memory))
        }
    };
    // Refused if the job is over, as when its node was lost meanwhile.
    let _ = live.tell(input, Note::Ended { how: text });
}

/// The runs that the scheduler believes in.
pub(super) fn expected(live: &Live) -> Vec<(JobId, Generation)> {
    let held = live.scheduler.active().filter(|(_, view)| !view.holds.is_empty());
    held.map(|(id, view)| (id, view.generation)).collect()
}

/// What became of the runs that the scheduler believes in.
pub(super) fn reconcile(live: &mut Live, tokens: &Tokens, found: Vec<((JobId, Generation), Found)>) {
    for ((job, generation), found) in found {
        let Some(view) = live.scheduler.job(job) else { continue };
        let (phase, allocation) = (view.phase, view.holds.clone());
        match found {
            Found::Never if phase == Phase::Stopping => {
                let note = Note::Ended { how: "it had not been started".to_owned() };
                let _ = live.tell(Input::JobStopped(job, generation), note);
            }
            Found::Never => live.asked.push(Effect::Start { job, generation, allocation }),
            Found::Live if phase == Phase::Stopping => live.asked.push(Effect::Stop { job, generation }),
            Found::Live => {}
            Found::Ended(how) => ended(live, tokens, RunId::new(job, generation), &how),
        }
    }
}

fn died(rank: u32, end: &End, out_of_memory: bool) -> String {
    let how = match end {
        End::Code(code) => format!("rank {rank} exited with {code}"),
        End::Signal(signal) => format!("rank {rank} was killed by signal {signal}"),
        End::NotStarted(why) => format!("rank {rank} could not be started: {why}"),
        End::Lost => format!("rank {rank} was killed together with its supervisor"),
    };
    if out_of_memory { format!("{how}; it ran out of memory") } else { how }
}
