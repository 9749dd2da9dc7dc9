//! What jobs' agents say, and what they are told.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use pollux_api::agent_report::AgentReportBody;
use pollux_api::rest::{AgentOrders, AgentReports, Order, Problem, VERSION};
use pollux_core::{Generation, Input, Phase};
use pollux_model::{AgentReport, JobId};
use serde::Deserialize;

use super::App;
use super::access::Caller;
use super::body::{Body, Query};
use super::error::ApiError;
use crate::service::{Live, Note};

/// The longest an agent may wait for orders, in seconds.
const LONGEST_WAIT_S: f64 = 60.0;

/// Takes a report, and says what the job is to do.
#[utoipa::path(post, path = "/v1/agent/reports", tag = "agent", request_body = AgentReports, responses(
    (status = 200, body = AgentOrders), (status = 401, body = Problem), (status = 403, body = Problem), (status = 409, body = Problem),
    (status = 422, body = Problem), (status = 426, body = Problem)))]
pub(super) async fn reports(
    State(app): State<App>,
    caller: Caller,
    Body(said): Body<AgentReports>,
) -> Result<Json<AgentOrders>, ApiError> {
    let (job, attempt) = caller.job()?;
    // A service reads agents of its own version and of the one before.
    if said.version > VERSION || said.version + 1 < VERSION {
        return Err(ApiError::Version { agent: said.version, service: VERSION });
    }
    if said.attempt != attempt {
        let text = format!("the report is of attempt {}, the token of attempt {attempt}", said.attempt);
        return Err(ApiError::Conflict(text));
    }
    let report = said.report.map(read).transpose()?;
    app.service.ask(move |live| take(live, job, attempt, said.training, report).map(Json)).await?
}

fn read(report: serde_json::Value) -> Result<AgentReport, ApiError> {
    let wrong = |text: String| ApiError::Invalid(format!("report: {text}"));
    let body: AgentReportBody =
        serde_path_to_error::deserialize(report).map_err(|error| wrong(error.to_string()))?;
    AgentReport::try_from(body).map_err(|error| wrong(error.to_string()))
}

/// What an agent said, on the scheduler's thread.
pub(super) fn take(
    live: &mut Live,
    job: JobId,
    attempt: u32,
    training: bool,
    report: Option<AgentReport>,
) -> Result<AgentOrders, ApiError> {
    let (phase, generation) = live.now_of(job).ok_or(ApiError::Conflict("the job has ended".to_owned()))?;
    if generation.0 != attempt || matches!(phase, Phase::Ended(_)) {
        return Err(ApiError::Conflict(format!("attempt {attempt} is over")));
    }
    if let Some(report) = report {
        live.hear(job, report)?;
    }
    if training && phase == Phase::Starting {
        live.tell(Input::JobTraining(job, Generation(attempt)), Note::Nothing)?;
    }
    Ok(orders(live, job, attempt))
}

fn orders(live: &mut Live, job: JobId, attempt: u32) -> AgentOrders {
    let is_leaving =
        live.now_of(job).is_none_or(|(phase, _)| matches!(phase, Phase::Stopping | Phase::Ended(_)));
    let stop = is_leaving.then(|| Order::Stop { grace_s: live.grace(job).as_secs_f64() });
    let save = live.take_checkpoint(job, attempt).then_some(Order::Checkpoint {});
    AgentOrders {
        version: VERSION,
        orders: save.into_iter().chain(stop).collect(),
        report_every_s: live.report_every_s(),
    }
}

/// How long to wait.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Wait {
    /// Seconds, at most 60.
    pub timeout: Option<f64>,
}

/// Waits until there is something to do; an empty list if nothing came.
#[utoipa::path(get, path = "/v1/agent/orders", tag = "agent", params(Wait), responses(
    (status = 200, body = AgentOrders), (status = 401, body = Problem), (status = 403, body = Problem)))]
pub(super) async fn wait(
    State(app): State<App>,
    caller: Caller,
    Query(wait): Query<Wait>,
) -> Result<Json<AgentOrders>, ApiError> {
    let (job, attempt) = caller.job()?;
    let secs = wait.timeout.filter(|secs| secs.is_finite()).unwrap_or(30.0).clamp(0.0, LONGEST_WAIT_S);
    let deadline = tokio::time::Instant::now() + Duration::from_secs_f64(secs);
    let mut events = app.service.watch();
    loop {
        let told = app.service.ask(move |live| orders(live, job, attempt)).await?;
        if !told.orders.is_empty() {
            return Ok(Json(told));
        }
        match tokio::time::timeout_at(deadline, events.recv()).await {
            // Whatever happened, or was missed, may concern this job.
            Ok(Ok(_) | Err(tokio::sync::broadcast::error::RecvError::Lagged(_))) => {}
            Ok(Err(_)) | Err(_) => return Ok(Json(told)),
        }
    }
}
