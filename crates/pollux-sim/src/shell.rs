//! The one way in which a simulator tells the scheduler anything, and answers what it asks of a policy.
//!
//! [`Driver`](crate::driver::Driver) goes through a simulated world with it, [`replay`](crate::replay) through the journal
//! of a live one.

use pollux_core::{Config, Effect, Input, Refused, Scheduler};
use pollux_model::Timestamp;
use pollux_policy::{AnyPolicy, Terms};

use crate::driver::Oracles;

/// A scheduler without a world.
pub(crate) struct Shell {
    scheduler: Scheduler,
}

impl Shell {
    pub(crate) fn new(config: Config) -> Self {
        Self { scheduler: Scheduler::new(config) }
    }

    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Goes on with other settings.
    pub(crate) fn reconfigure(&mut self, config: Config) {
        self.scheduler.reconfigure(config);
    }

    /// Tells the scheduler what happened.
    pub(crate) fn tell(&mut self, now: Timestamp, input: Input) -> Result<Vec<Effect>, Refused> {
        self.scheduler.handle(now, input)
    }
}

/// The answer to a question for the policy, with so much work if that is limited; any other wish is given back.
pub(crate) fn answered(
    effect: Effect,
    policy: &dyn AnyPolicy,
    oracles: &Oracles<'_>,
    work: Option<u64>,
) -> Result<Input, Effect> {
    match effect {
        Effect::Solve { cycle, snapshot, seed } => {
            let snapshot = snapshot.foreseeing(oracles);
            let plan = policy.plan(&snapshot, &Terms { seed, work, ..Terms::default() });
            Ok(Input::PlanReady(cycle, plan))
        }
        Effect::Size { id, question } => Ok(Input::SizeReady(id, question.answer(policy))),
        other => Err(other),
    }
}
