//! The scheduler's thread: what is asked of it is journalled, then answered and done.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pollux_api::rest::EventShown;
use pollux_core::Effect;
use pollux_model::Timestamp;
use tokio::sync::{broadcast, oneshot};

use super::live::{Draft, DraftRow, Live};
use super::perform::Performer;
use super::records;
use crate::store::{NewRow, Store, StoreError};

/// Most questions that share one commit.
const MOST_AT_ONCE: usize = 256;
/// The longest sleep: deadlines of starts are looked at this often.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// Rows after which a snapshot is taken.
const SNAPSHOT_EVERY: u64 = 2_000;
/// Events that a slow watcher may be behind.
const WATCHED: usize = 4_096;

/// The service cannot take in anything, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(String);

impl Unavailable {
    pub(super) fn because(why: &dyn std::fmt::Display) -> Self {
        Self(why.to_string())
    }
}

/// What is done once everything asked is written.
type Delivery = Box<dyn FnOnce() + Send>;
type Work = Box<dyn FnOnce(&mut Live) -> Delivery + Send>;

enum Message {
    Work(Work),
    Read(Box<dyn FnOnce(&mut Store) + Send>),
    Stop,
}

/// A way to the scheduler's thread.
#[derive(Clone)]
pub struct Service {
    sender: Sender<Message>,
    events: broadcast::Sender<EventShown>,
    fault: Arc<Mutex<Option<String>>>,
}

impl Service {
    /// Does something on the scheduler's thread; nobody waits for it.
    pub fn post(&self, work: impl FnOnce(&mut Live) + Send + 'static) {
        let work: Work = Box::new(move |live| {
            work(live);
            Box::new(|| {})
        });
        // Who is asked after the end has nothing to say.
        let _ = self.sender.send(Message::Work(work));
    }

    /// Does something on the scheduler's thread, and answers once what it changed is on disk.
    pub async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Live) -> T + Send + 'static,
    ) -> Result<T, Unavailable> {
        let (reply, answer) = oneshot::channel();
        let work: Work = Box::new(move |live| {
            let value = work(live);
            Box::new(move || {
                let _ = reply.send(value);
            })
        });
        let _ = self.sender.send(Message::Work(work));
        answer.await.map_err(|_| self.unavailable())
    }

    /// Does something with the store that is not the scheduler's business.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Store) -> T + Send + 'static,
    ) -> Result<T, Unavailable> {
        let (reply, answer) = oneshot::channel();
        let read = Box::new(move |store: &mut Store| {
            let _ = reply.send(read(store));
        });
        let _ = self.sender.send(Message::Read(read));
        answer.await.map_err(|_| self.unavailable())
    }

    /// Watches events from now on.
    pub fn watch(&self) -> broadcast::Receiver<EventShown> {
        self.events.subscribe()
    }

    /// Whether it answers and can write.
    pub async fn check(&self) -> Result<(), Unavailable> {
        self.ask(|_| ()).await?;
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone();
        fault.map_or(Ok(()), |fault| Err(Unavailable(fault)))
    }

    /// Until the thread has ended by itself, as it does when the store is beyond help.
    pub async fn gone(&self) {
        while self.ask(|_| ()).await.is_ok() || self.is_held_up() {
            tokio::time::sleep(LONGEST_SLEEP).await;
        }
    }

    fn is_held_up(&self) -> bool {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Ends the thread after what was asked before. Jobs go on.
    pub fn stop(&self) {
        let _ = self.sender.send(Message::Stop);
    }

    fn unavailable(&self) -> Unavailable {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Unavailable(fault.unwrap_or_else(|| "the service is stopping".to_owned()))
    }
}

/// A thread that has yet to begin.
pub(super) struct Loop {
    live: Live,
    store: Store,
    messages: Receiver<Message>,
    performer: Performer,
    events: broadcast::Sender<EventShown>,
    fault: Arc<Mutex<Option<String>>>,
    snapshot_at: u64,
}

/// The thread and the way to it.
pub(super) fn prepare(live: Live, store: Store, performer: Performer) -> (Service, Loop) {
    let (sender, messages) = channel();
    let (events, _) = broadcast::channel(WATCHED);
    let fault = Arc::default();
    let snapshot_at = live.seq() + SNAPSHOT_EVERY;
    let service = Service { sender, events: events.clone(), fault: Arc::clone(&fault) };
    (service, Loop { live, store, messages, performer, events, fault, snapshot_at })
}

impl Loop {
    /// Until it is told to stop, or the store is beyond help.
    pub(super) fn run(mut self) -> Result<(), StoreError> {
        let mut next = self.live.wake();
        self.commit(Vec::new())?;
        let mut looked = Instant::now();
        loop {
            let sleep = next.map_or(LONGEST_SLEEP, |at| until(self.live.now(), at).min(LONGEST_SLEEP));
            let first = match self.messages.recv_timeout(sleep) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return self.end(),
            };
            let mut deliveries = Vec::new();
            let mut is_over = false;
            let waiting: Vec<Message> = self.messages.try_iter().take(MOST_AT_ONCE - 1).collect();
            let drafted = self.live.draft.len();
            for message in first.into_iter().chain(waiting) {
                match message {
                    Message::Work(work) => {
                        let delivery = work(&mut self.live);
                        // Who only looked, before anybody changed anything, need not wait; so reading goes on with a full disk.
                        if self.live.draft.len() == drafted {
                            delivery();
                        } else {
                            deliveries.push(delivery);
                        }
                    }
                    Message::Read(read) => read(&mut self.store),
                    Message::Stop => is_over = true,
                }
            }
            next = self.live.wake();
            // All jobs are looked at, so not with every question.
            if looked.elapsed() >= LONGEST_SLEEP {
                looked = Instant::now();
                self.performer.end_overdue(&mut self.live);
            }
            self.commit(deliveries)?;
            if is_over {
                return self.end();
            }
        }
    }

    /// Writes what happened, then does what follows from it and answers.
    fn commit(&mut self, deliveries: Vec<Delivery>) -> Result<(), StoreError> {
        let draft = std::mem::take(&mut self.live.draft);
        if !draft.is_empty() {
            match self.write(&draft) {
                Ok(numbers) => {
                    self.say(None);
                    for (seq, event) in numbers.into_iter().zip(draft.events) {
                        // Nobody may be watching.
                        let _ = self.events.send(event.shown(seq));
                    }
                }
                Err(error @ StoreError::Full { .. }) => return self.retreat(&error),
                Err(error) => return Err(error),
            }
        }
        // First: what is started next must know.
        for (node, index, healthy) in std::mem::take(&mut self.live.slots) {
            self.performer.set_healthy(node, index, healthy);
        }
        for effect in std::mem::take(&mut self.live.asked) {
            self.perform(effect);
        }
        for deliver in deliveries {
            deliver();
        }
        if self.live.seq() >= self.snapshot_at {
            self.snapshot()?;
        }
        Ok(())
    }

    /// Writes all of a draft, or nothing. Says the numbers of its events.
    fn write(&mut self, draft: &Draft) -> Result<Vec<u64>, StoreError> {
        self.store.write(|writer| {
            let row = |row: &DraftRow| {
                let DraftRow { seq, at, input, note, effects } = row;
                writer.append(&[NewRow { seq: *seq, at: *at, input, note, effects }])
            };
            draft.rows.iter().try_for_each(row)?;
            for round in &draft.rounds {
                writer.round(&records::round(round))?;
            }
            for job in &draft.ended {
                writer.ended_job(&records::ended(job))?;
                writer.revoke_of_job(job.id)?;
            }
            draft.events.iter().map(|event| writer.event(records::event(event))).collect()
        })
    }

    fn perform(&mut self, effect: Effect) {
        self.performer.perform(&mut self.live, &mut self.store, effect);
    }

    /// The disk is full: what was not written did not happen. Callers are told so, and the state is read anew.
    fn retreat(&mut self, why: &StoreError) -> Result<(), StoreError> {
        self.say(Some(format!("nothing can be written, so nothing is taken in: {why}")));
        self.live.reload(&self.store)?;
        self.performer.look_again();
        // Nothing is asked of a full disk more often than this.
        std::thread::sleep(LONGEST_SLEEP);
        Ok(())
    }

    fn say(&self, fault: Option<String>) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    fn snapshot(&mut self) -> Result<(), StoreError> {
        self.snapshot_at = self.live.seq() + SNAPSHOT_EVERY;
        let state = self.live.saved();
        let keep = records::keep(self.live.now());
        let kept =
            self.store.snapshot(self.live.seq(), &state).and_then(|()| self.store.compact(&keep).map(drop));
        match kept {
            Err(StoreError::Full { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn end(mut self) -> Result<(), StoreError> {
        if self.live.seq() > 0 { self.snapshot() } else { Ok(()) }
    }
}

fn until(now: Timestamp, at: Timestamp) -> Duration {
    if at > now { at - now } else { Duration::ZERO }
}
