//! AdaptDL's supervisor, as its unchanged client knows it: hints up, peers down.
//!
//! The client sends no token in a header; it is part of the address that jobs are given (`ADAPTDL_SUPERVISOR_URL`).

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use pollux_api::adaptdl::Hints;
use serde::Deserialize;

use super::App;
use super::agent::take;
use super::body::Body;
use super::error::ApiError;

/// Takes hints.
pub(super) async fn hints(
    State(app): State<App>,
    Path((token, _namespace, _name)): Path<(String, String, String)>,
    Body(hints): Body<serde_json::Value>,
) -> Result<StatusCode, ApiError> {
    let (job, attempt) = app.caller(&token)?.job()?;
    let hints = Hints::from_json(&hints).map_err(|error| ApiError::Invalid(error.to_string()))?;
    app.service
        .ask(move |live| {
            let report = hints.to_report(&live.gpu_type(job));
            take(live, job, attempt, true, report).map(|_| StatusCode::OK)
        })
        .await?
}

/// How long to wait.
#[derive(Debug, Deserialize)]
pub(super) struct Wait {
    timeout: Option<f64>,
}

/// The addresses of a start's replicas by rank, once all are known: all on this machine.
pub(super) async fn discover(
    State(app): State<App>,
    Path((token, _namespace, _name, group)): Path<(String, String, String, u32)>,
    Query(wait): Query<Wait>,
) -> Result<Json<Vec<String>>, ApiError> {
    let (job, _) = app.caller(&token)?.job()?;
    let secs = wait.timeout.filter(|secs| secs.is_finite()).unwrap_or(30.0).clamp(0.0, 60.0);
    let deadline = tokio::time::Instant::now() + Duration::from_secs_f64(secs);
    let mut events = app.service.watch();
    loop {
        // AdaptDL counts restarts from 0, the scheduler starts from 1.
        let replicas = app.service.ask(move |live| live.replicas(job, group + 1)).await?;
        if let Some(replicas) = replicas {
            return Ok(Json(vec!["127.0.0.1".to_owned(); replicas as usize]));
        }
        if tokio::time::timeout_at(deadline, events.recv()).await.is_err() {
            return Err(ApiError::TimedOut);
        }
    }
}
