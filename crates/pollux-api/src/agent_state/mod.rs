//! What an agent remembers, as JSON, version 1: saved with each checkpoint of its job.
//!
//! Text written from an agent's state and read back gives that state again, bit for bit, so that a job
//! restarted from a checkpoint goes on as if it had not stopped. The reader takes nothing on trust: what it
//! accepts, [`Agent::restore`](pollux_agent::Agent::restore) accepts.

mod error;
mod read;
mod wire;
mod write;

use pollux_agent::AgentState;
use serde_json::{Deserializer, Value};

pub use error::AgentStateError;

use crate::wire::FieldError;
pub use crate::wire::Problem;

/// The version this crate writes, and the only one it reads.
pub const VERSION: u64 = 1;

/// The state as JSON, on one line.
///
/// A number that is none (no valid state holds one) becomes `null`, which [`from_json`] refuses.
///
/// ```
/// use pollux_agent::{Agent, AgentConfig};
/// use pollux_api::agent_state;
/// use pollux_model::{BatchLimits, GpuType, Placement};
///
/// let config = AgentConfig::new(BatchLimits::new(128, 1_024, 32, 256)?);
/// let mut agent = Agent::new(config.clone());
/// agent.decide(&GpuType::new("t4"), Placement::ALONE);
///
/// let json = agent_state::to_json(agent.state());
/// let restored = Agent::restore(config, agent_state::from_json(&json)?)?;
/// assert_eq!(restored.state(), agent.state());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn to_json(state: &AgentState) -> String {
    // Structs of numbers and names: there is nothing in them that JSON cannot hold.
    serde_json::to_string(&wire::State::from(state)).unwrap_or_default()
}

/// Reads what [`to_json`] wrote.
///
/// ```
/// use pollux_api::agent_state;
///
/// let error = agent_state::from_json(r#"{"version": 7}"#).unwrap_err();
/// assert_eq!(error.to_string(), "agent state version 7 is newer than this build understands (1)");
/// ```
///
/// # Errors
///
/// What is not JSON, not of this version, or no state an agent can be in; the error names the field.
pub fn from_json(json: &str) -> Result<AgentState, AgentStateError> {
    let value: Value = serde_json::from_str(json).map_err(|error| AgentStateError::syntax(&error))?;
    let object = value.as_object().ok_or(AgentStateError::NotAnObject)?;
    let version = object.get("version").ok_or(AgentStateError::NoVersion)?;
    match version.as_u64() {
        Some(VERSION) => {}
        Some(found) if found > VERSION => return Err(AgentStateError::Newer { found }),
        _ => return Err(AgentStateError::Version { found: version.to_string() }),
    }
    let state: wire::State =
        serde_path_to_error::deserialize(&mut Deserializer::from_str(json)).map_err(FieldError::from)?;
    Ok(state.read()?)
}
