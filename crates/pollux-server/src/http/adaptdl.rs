//! AdaptDL's supervisor, as its unchanged client knows it: hints up, peers down.
//!
//! The client sends no token in a header; it is part of the address that jobs are given (`ADAPTDL_SUPERVISOR_URL`).

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use pollux_api::adaptdl::Hints;
use pollux_api::rest::Problem;
use pollux_model::JobId;
use serde::Deserialize;

use super::App;
use super::agent::take;
use super::body::{Body, Path, Query};
use super::error::ApiError;
use crate::service::Live;

/// Takes the hints of AdaptDL's client. The token of the job is part of the address.
#[utoipa::path(put, path = "/adaptdl/{token}/hints/{namespace}/{name}", tag = "adaptdl", security(()), params(
    ("token" = String, Path, description = "the job's own"), ("namespace" = String, Path, description = "any"),
    ("name" = String, Path, description = "the job's")), request_body = Object, responses((status = 200),
    (status = 401, body = Problem), (status = 403, body = Problem), (status = 409, body = Problem),
    (status = 422, body = Problem), (status = 507, body = Problem)))]
pub(super) async fn hints(
    State(app): State<App>,
    Path((token, _namespace, name)): Path<(String, String, String)>,
    Body(hints): Body<serde_json::Value>,
) -> Result<StatusCode, ApiError> {
    let (job, attempt) = app.caller(&token)?.job()?;
    let hints = Hints::from_json(&hints).map_err(|error| ApiError::Invalid(error.to_string()))?;
    app.service
        .ask(move |live| {
            own(live, job, &name)?;
            let report = hints.to_report(&live.gpu_type(job));
            take(live, job, attempt, true, report).map(|_| StatusCode::OK)
        })
        .await?
}

/// The address names the job that the token speaks for.
fn own(live: &Live, job: JobId, name: &str) -> Result<(), ApiError> {
    if live.find(name) == Some(job) {
        return Ok(());
    }
    Err(ApiError::Forbidden("a job's token speaks for that job alone".to_owned()))
}

/// How long to wait.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Wait {
    /// Seconds, at most 60.
    timeout: Option<f64>,
}

/// Gives AdaptDL's client the addresses of a start's replicas by rank, once all are known: all on this machine.
#[utoipa::path(get, path = "/adaptdl/{token}/discover/{namespace}/{name}/{group}", tag = "adaptdl", security(()), params(
    ("token" = String, Path, description = "the job's own"), ("namespace" = String, Path, description = "any"),
    ("name" = String, Path, description = "the job's"), ("group" = u32, Path, description = "restarts before this start"),
    Wait), responses((status = 200, body = Vec<String>), (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 408, body = Problem), (status = 422, body = Problem), (status = 507, body = Problem)))]
pub(super) async fn discover(
    State(app): State<App>,
    Path((token, _namespace, name, group)): Path<(String, String, String, u32)>,
    Query(wait): Query<Wait>,
) -> Result<Json<Vec<String>>, ApiError> {
    let (job, _) = app.caller(&token)?.job()?;
    let secs = wait.timeout.filter(|secs| secs.is_finite()).unwrap_or(30.0).clamp(0.0, 60.0);
    let deadline = tokio::time::Instant::now() + Duration::from_secs_f64(secs);
    app.service.ask(move |live| own(live, job, &name)).await??;
    let mut events = app.service.watch();
    loop {
        // AdaptDL counts restarts from 0, the scheduler starts from 1.
        let replicas = app.service.ask(move |live| live.replicas(job, group.saturating_add(1))).await?;
        if let Some(replicas) = replicas {
            return Ok(Json(vec!["127.0.0.1".to_owned(); replicas as usize]));
        }
        if tokio::time::timeout_at(deadline, events.recv()).await.is_err() {
            return Err(ApiError::TimedOut);
        }
    }
}
