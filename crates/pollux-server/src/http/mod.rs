//! The HTTP API: routes, tokens, problems, what is watched.

mod access;
mod adaptdl;
mod agent;
mod body;
mod cluster;
mod error;
mod jobs;
mod metrics;
mod openapi;
mod stream;
mod tokens;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::routing::{any, delete, get, patch, post, put};
use pollux_api::rest::{Problem, Role, WhatIf, WhatIfAnswer};
use pollux_policy::AnyPolicy;

pub use access::Caller;
pub use error::ApiError;
pub use openapi::document;

use crate::service::{Service, Tokens};

/// The largest body that is read.
const MOST_BYTES: usize = 1 << 20;

/// What every route has at hand.
#[derive(Clone)]
pub struct App {
    /// The scheduler's thread.
    pub service: Service,
    /// Who may do what.
    pub tokens: Tokens,
    /// Answers what-if questions.
    pub policy: Arc<dyn AnyPolicy>,
}

impl App {
    /// Who holds this token.
    fn caller(&self, token: &str) -> Result<Caller, ApiError> {
        let known = self.tokens.find(token).ok_or(ApiError::Unauthenticated)?;
        let speaks_for = known.job.filter(|_| known.role == Role::Job);
        Ok(Caller { owner: known.owner, role: known.role, speaks_for })
    }

    /// Plans for a world that is only imagined, beside the scheduler's thread.
    async fn imagine(&self, change: WhatIf) -> Result<WhatIfAnswer, ApiError> {
        let imagined = self.service.ask(move |live| live.imagine(&change)).await??;
        let policy = self.policy.clone();
        let answer = tokio::task::spawn_blocking(move || imagined.answer(policy.as_ref())).await;
        answer.map_err(|error| ApiError::Conflict(format!("the policy failed: {error}")))
    }
}

/// All routes.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/healthz", get(healthy))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics::serve))
        .route("/openapi.json", get(openapi::serve))
        .route("/v1/service", get(cluster::service))
        .route("/v1/jobs", get(jobs::list).post(jobs::submit))
        .route("/v1/jobs/{job}", get(jobs::describe).patch(jobs::edit).post(jobs::act))
        .route("/v1/jobs/{job}/explain", get(jobs::explain))
        .route("/v1/jobs/{job}/logs", get(stream::logs))
        .route("/v1/history", get(cluster::history))
        .route("/v1/nodes", get(cluster::nodes))
        .route("/v1/nodes/{node}", patch(cluster::edit_node))
        .route("/v1/queues", get(cluster::queues))
        .route("/v1/queues/{queue}", put(cluster::set_queue).delete(cluster::remove_queue))
        .route("/v1/rounds", get(cluster::rounds))
        .route("/v1/rounds/{round}", get(cluster::round))
        .route("/v1/events", get(cluster::events))
        .route("/v1/events/watch", get(stream::events))
        .route("/v1/whatif", post(cluster::what_if))
        .route("/v1/tokens", get(tokens::list).post(tokens::create))
        .route("/v1/tokens/{id}", delete(tokens::revoke))
        .route("/v1/agent/reports", post(agent::reports))
        .route("/v1/agent/orders", get(agent::wait))
        .route("/adaptdl/{token}/hints/{namespace}/{name}", put(adaptdl::hints))
        .route("/adaptdl/{token}/discover/{namespace}/{name}/{group}", get(adaptdl::discover))
        .fallback(any(nowhere))
        .method_not_allowed_fallback(not_so)
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .with_state(app)
}

/// Says that the process lives.
#[utoipa::path(get, path = "/healthz", tag = "cluster", security(()), responses((status = 200, body = String, content_type = "text/plain")))]
async fn healthy() -> &'static str {
    "ok"
}

/// Says whether the scheduler answers and can write.
#[utoipa::path(get, path = "/readyz", tag = "cluster", security(()), responses(
    (status = 200, body = String, content_type = "text/plain"), (status = 507, body = Problem)))]
async fn ready(State(app): State<App>) -> Result<&'static str, ApiError> {
    app.service.check().await?;
    Ok("ready")
}

async fn not_so(method: axum::http::Method) -> ApiError {
    ApiError::Method(format!("{method} is nothing that can be done here"))
}

async fn nowhere(uri: axum::http::Uri) -> (StatusCode, ApiError) {
    let hint = "; /openapi.json lists all routes".to_owned();
    (StatusCode::NOT_FOUND, ApiError::NotFound { what: "route", name: uri.path().to_owned(), hint })
}
