//! The job side of Pollux, as a pure state machine.
//!
//! Steps go in; a profile of step times, a noise scale, fitted models, batches, learning-rate factors and
//! reports come out. The very same [`Agent`] runs under PyTorch and inside the simulator.
//!
//! Pure: no files, sockets, threads, clock or randomness. Time is an argument, state is plain data.

mod agent;
mod batching;
mod noise;
mod observation;
mod profile;
mod revision;
mod rules;
mod settings;
mod state;

pub use agent::{Agent, AgentConfig};
pub use batching::{BatchDecision, BatchReason};
pub use noise::{MomentSums, NoiseState, RunningMoments};
pub use observation::{GradientNorm, GradientSample, GradientSpace, StepObservation, StepTiming};
pub use profile::{Profile, ProfileEntry, ProfileKey};
pub use rules::{CustomRule, LearningRateRule, RuleInput};
pub use settings::AgentSettings;
pub use state::{AgentState, Exploring, InvalidState};
