//! Who speaks to a service: [`Client`] for people and programs, [`AgentLink`] for workers.

mod agent_link;
mod post;
mod service;

pub use agent_link::{AgentLink, LinkOptions, LinkOptionsError, Order};
pub use service::{Client, ClientError};
