//! Plans are made on a thread of their own.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use pollux_core::{CycleId, Input};
use pollux_policy::{AnyPolicy, Plan, Seed, Snapshot, Terms};

use super::note::Note;
use super::run::Service;

/// A question.
pub(super) struct Question {
    pub(super) cycle: CycleId,
    pub(super) snapshot: Box<Snapshot>,
    pub(super) seed: Seed,
}

/// Answers questions until nobody asks any more.
pub(super) fn start(policy: Arc<dyn AnyPolicy>, limit: Duration) -> (Sender<Question>, Planner) {
    let (ask, questions) = channel();
    (ask, Planner { policy, limit, questions })
}

/// A planner that has yet to be told whom to answer.
pub(super) struct Planner {
    policy: Arc<dyn AnyPolicy>,
    limit: Duration,
    questions: Receiver<Question>,
}

impl Planner {
    pub(super) fn answer_to(self, service: Service) -> std::io::Result<thread::JoinHandle<()>> {
        thread::Builder::new().name("planner".to_owned()).spawn(move || {
            for question in self.questions {
                let cycle = question.cycle;
                let plan = plan(self.policy.as_ref(), &question, self.limit);
                service.post(move |live| {
                    // Refused if nobody waits for it any more.
                    let _ = live.tell(Input::PlanReady(cycle, plan), Note::Nothing);
                });
            }
        })
    }
}

fn plan(policy: &dyn AnyPolicy, question: &Question, limit: Duration) -> Plan {
    let began = Instant::now();
    let is_late = || began.elapsed() > limit;
    let terms = Terms { seed: question.seed, work: None, deadline: Some(&is_late) };
    policy.plan(&question.snapshot, &terms)
}
