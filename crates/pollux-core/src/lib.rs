//! The scheduler, as a pure state machine.
//!
//! What happens goes in ([`Input`]), what is to be done comes out ([`Effect`]): `Scheduler::handle(now, input)`. It
//! reads no clock, starts no process and solves nothing itself: it asks for a plan, is told the answer, and carries
//! it out step by step as the world reports back. The simulator and the live service are two shells around it, and
//! nothing here knows which.
//!
//! | module | what |
//! | --- | --- |
//! | [`Input`], [`Effect`] | the two closed sets |
//! | [`Scheduler`] | life cycle of jobs, nodes, groups |
//! | `rounds` | plans asked for and carried out in two phases |
//! | `ledger` | who holds which GPUs; a GPU is free only when its last holder is gone |
//! | `view` | the snapshot a policy is shown |
//! | `ended` | who is over: the latest in full, all others by number |
//! | `scaler` | how many nodes to have: bought, drained and given back |
//! | `history` | what earlier jobs of an application taught |
//! | `speeds` | how fast types of GPU are against each other |
//! | [`State`] | all of a scheduler as plain data, to be saved and restored |
//!
//! Pure: no files, sockets, clock, environment or ambient randomness.

mod config;
mod effect;
mod ended;
mod history;
mod input;
mod job;
mod ledger;
mod restart;
mod rounds;
mod scaler;
mod scheduler;
mod speeds;
mod state;
mod view;

pub use config::Config;
pub use effect::{CycleId, Effect, Generation};
pub use ended::Ended;
pub use input::{Input, JobEdit, JobSpec, NodeSpec, Refused};
pub use job::{Explanation, JobView, Outcome, Phase, Stay, StayReason};
pub use restart::RestartClock;
pub use rounds::Rounds;
pub use scaler::{
    Fleet, Leaving, Pool, PoolId, PoolNow, ScaleRule, Scaler, SizeId, SizeQuestion, Sizes, Stock, Way,
};
pub use scheduler::Scheduler;
pub use speeds::{Alone, Teacher};
pub use state::{Curves, InvalidState, JobRecord, NodeRecord, PastRecord, State};
