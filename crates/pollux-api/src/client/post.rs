//! One request of the agent's protocol.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use ureq::Agent;

use super::agent_link::LinkOptions;

/// Replies are a few hundred bytes; nobody may fill a worker's memory.
const LONGEST_REPLY: u64 = 1 << 20;

/// Sends reports to one server.
pub(super) struct Poster {
    agent: Agent,
    url: String,
    token_file: Option<PathBuf>,
}

/// What the server says to a report. Unknown fields are ignored, and all may be missing.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Reply {
    #[serde(default)]
    pub(super) orders: Vec<Value>,
    #[serde(default)]
    pub(super) report_every_s: Option<f64>,
}

/// Why a report did not arrive.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("the server was not reached: {reason}")]
    NotReached { reason: String },
    #[error("the server answered {status}: {text}")]
    Server { status: u16, text: String },
    #[error("the server refused the report with {status}: {text}")]
    Refused { status: u16, text: String },
}

impl Poster {
    pub(super) fn new(options: &LinkOptions) -> Self {
        // Worker and server share a machine or a cluster: no proxy is in between, and a token follows no redirect.
        let config = Agent::config_builder().http_status_as_error(false).proxy(None).max_redirects(0).build();
        Self {
            agent: config.new_agent(),
            url: format!("{}/v1/agent/reports", options.server),
            token_file: options.token_file.clone(),
        }
    }

    /// Posts a message, for at most so long.
    pub(super) fn post(&self, message: &impl Serialize, limit: Duration) -> Result<Reply, Failure> {
        let body = serde_json::to_vec(message).map_err(not_reached)?;
        let mut request = self.agent.post(&self.url).content_type("application/json");
        if let Some(file) = &self.token_file {
            let token = std::fs::read_to_string(file).map_err(|error| Failure::NotReached {
                reason: format!("the token file {} cannot be read: {error}", file.display()),
            })?;
            request = request.header("Authorization", format!("Bearer {}", token.trim()));
        }
        let request = request.config().timeout_global(Some(limit)).build();
        let mut response = request.send(&body[..]).map_err(not_reached)?;
        let status = response.status().as_u16();
        let text = response.body_mut().with_config().limit(LONGEST_REPLY).lossy_utf8(true).read_to_string();
        let text = text.map_err(not_reached)?;
        match status {
            200..=299 if text.trim().is_empty() => Ok(Reply::default()),
            200..=299 => serde_json::from_str(&text).map_err(|error| Failure::Server {
                status,
                text: format!("no reply of this protocol: {error}"),
            }),
            // Too many, too slow, or not now: worth another try soon.
            408 | 425 | 429 | 500..=599 => Err(Failure::Server { status, text: shortened(&text) }),
            _ => Err(Failure::Refused { status, text: shortened(&text) }),
        }
    }
}

fn not_reached(error: impl std::fmt::Display) -> Failure {
    Failure::NotReached { reason: error.to_string() }
}

/// The first line, as far as a message bears it.
fn shortened(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}
