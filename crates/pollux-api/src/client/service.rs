//! The HTTP API as functions: what the command line calls.

use std::io::BufReader;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::config::ConfigBuilder;
use ureq::http::{Method, Request, Response};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::typestate::AgentScope;
use ureq::{Agent, Body};

use crate::rest::Problem;

/// Longest answer that is read whole.
const LONGEST: u64 = 256 << 20;
/// How long an answer may take that is not watched.
const PATIENCE: Duration = Duration::from_mins(1);

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody answers.
    #[error("cannot reach the scheduler at {server}: {reason}")]
    Unreachable {
        /// The address.
        server: String,
        /// What the system says.
        reason: String,
    },
    /// The service says no, and why.
    #[error(transparent)]
    Refused(Box<Problem>),
    /// The answer is none that this program knows.
    #[error("the scheduler at {server} answered what this version does not understand: {reason}")]
    Strange {
        /// The address.
        server: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// No proxy is in between, and a token follows no redirect.
fn plain() -> ConfigBuilder<AgentScope> {
    Agent::config_builder().http_status_as_error(false).proxy(None).max_redirects(0)
}

/// A way to a service.
#[derive(Clone, Debug)]
pub struct Client {
    agent: Agent,
    server: String,
    token: String,
}

impl Client {
    /// To the service at this address, with this token.
    pub fn new(server: &str, token: &str) -> Self {
        let server = server.trim_end_matches('/').to_owned();
        Self { agent: plain().build().new_agent(), server, token: token.trim().to_owned() }
    }

    /// The same, trusting these certificates (PEM) and no others. None if there are none in it.
    #[must_use]
    pub fn trusting(self, pem: &[u8]) -> Option<Self> {
        let certificates: Vec<_> = parse_pem(pem)
            .filter_map(|item| match item {
                Ok(PemItem::Certificate(certificate)) => Some(certificate),
                _ => None,
            })
            .collect();
        if certificates.is_empty() {
            return None;
        }
        let tls = TlsConfig::builder().root_certs(RootCerts::from(certificates)).build();
        Some(Self { agent: plain().tls_config(tls).build().new_agent(), ..self })
    }

    /// The address.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Reads something.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.call(Method::GET, path, &[], None::<&()>)
    }

    /// Asks for something to be done.
    pub fn send<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&impl Serialize>,
    ) -> Result<T, ClientError> {
        let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::POST);
        self.call(method, path, headers, body)
    }

    fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&impl Serialize>,
    ) -> Result<T, ClientError> {
        let response = self.request(method, path, headers, body, Some(PATIENCE))?;
        let text = self.text(response)?;
        let text = if text.trim().is_empty() { "null" } else { &text };
        serde_json::from_str(text).map_err(|error| self.strange(&error))
    }

    /// Watches something line by line, until it ends.
    pub fn watch(&self, path: &str) -> Result<impl std::io::BufRead + use<>, ClientError> {
        let response = self.request(Method::GET, path, &[], None::<&()>, None)?;
        Ok(BufReader::new(response.into_body().into_reader()))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&impl Serialize>,
        limit: Option<Duration>,
    ) -> Result<Response<Body>, ClientError> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.server));
        request = request.header("Authorization", format!("Bearer {}", self.token));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let unreachable = |reason: String| ClientError::Unreachable { server: self.server.clone(), reason };
        let sent = if let Some(body) = body {
            let bytes = serde_json::to_vec(body).map_err(|error| self.strange(&error))?;
            let request = request.header("Content-Type", "application/json").body(bytes);
            let request = request.map_err(|error| unreachable(error.to_string()))?;
            self.agent.run(self.agent.configure_request(request).timeout_global(limit).build())
        } else {
            let request = request.body(()).map_err(|error| unreachable(error.to_string()))?;
            self.agent.run(self.agent.configure_request(request).timeout_global(limit).build())
        };
        let response = sent.map_err(|error| unreachable(error.to_string()))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let text = self.text(response)?;
        let problem = serde_json::from_str(&text).unwrap_or_else(|_| {
            let title = status.canonical_reason().unwrap_or("error");
            Problem::new(status.as_u16(), title, "unknown", format!("the scheduler answered {status}"))
        });
        Err(ClientError::Refused(Box::new(problem)))
    }

    fn text(&self, mut response: Response<Body>) -> Result<String, ClientError> {
        let text = response.body_mut().with_config().limit(LONGEST).lossy_utf8(true).read_to_string();
        text.map_err(|error| ClientError::Unreachable {
            server: self.server.clone(),
            reason: error.to_string(),
        })
    }

    fn strange(&self, error: &dyn std::fmt::Display) -> ClientError {
        ClientError::Strange { server: self.server.clone(), reason: error.to_string() }
    }
}
