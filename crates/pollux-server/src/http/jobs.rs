//! Jobs: submit, list, describe, edit, pause, resume, cancel, explain.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use pollux_api::job_file::JobFile;
use pollux_api::rest::{
    Explained, JobEdits, JobList, JobShown, JobState, Problem, Submission, Submitted, WhatIf,
};
use pollux_core::{Input, JobEdit};
use pollux_model::JobId;
use pollux_policy::Priority;
use serde::Deserialize;

use super::App;
use super::access::Caller;
use super::body::{Body, Path, Query};
use super::error::ApiError;
use crate::service::{Detail, Live, Note, show};

/// Most jobs in one answer.
const PAGE: usize = 500;

/// Which jobs.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Only jobs in this state, or `active` for all that have not ended.
    pub state: Option<String>,
    /// Only jobs of this owner.
    pub owner: Option<String>,
    /// Only jobs of this queue.
    pub queue: Option<String>,
    /// Only jobs with a greater number than this.
    pub after: Option<u64>,
    /// At most so many.
    pub limit: Option<usize>,
}

/// Lists jobs.
#[utoipa::path(get, path = "/v1/jobs", tag = "jobs", params(Which), responses(
    (status = 200, body = JobList), (status = 401, body = Problem), (status = 403, body = Problem), (status = 422, body = Problem)))]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<Json<JobList>, ApiError> {
    caller.may_look()?;
    if let Some(state) = which.state.as_deref().filter(|state| *state != "active")
        && !JobState::ALL.iter().any(|known| known.word() == state)
    {
        let known = JobState::ALL.map(JobState::word).join(", ");
        return Err(ApiError::Invalid(format!("there is no state `{state}`; there are active, {known}")));
    }
    let shown = app.service.ask(move |live| jobs(live, &which)).await?;
    Ok(Json(shown))
}

fn jobs(live: &Live, which: &Which) -> JobList {
    let limit = which.limit.unwrap_or(PAGE).clamp(1, PAGE);
    let after = which.after.unwrap_or(0);
    let is_asked_for = |job: &JobShown| {
        let state = which.state.as_deref();
        state.is_none_or(|state| state == job.state.word() || state == "active" && !job.state.has_ended())
            && which.owner.as_ref().is_none_or(|owner| *owner == job.owner)
            && which.queue.as_ref().is_none_or(|queue| Some(queue) == job.queue.as_ref())
    };
    let ids = live.jobs().filter(|id| id.0 > after);
    let mut found = ids.filter_map(|id| show::job(live, id, Detail::Line)).filter(is_asked_for);
    let jobs: Vec<JobShown> = found.by_ref().take(limit).collect();
    let next = jobs.last().map(|job| job.id).filter(|_| found.next().is_some());
    JobList { jobs, next, is_emulated: live.is_emulated() }
}

/// Submits a job, or an array of them. With an `Idempotency-Key` a repeated call submits nothing anew.
#[utoipa::path(post, path = "/v1/jobs", tag = "jobs", request_body(content = Submission,
    example = json!({"file": {"name": "one", "command": ["true"]}})), responses(
    (status = 201, body = Submitted), (status = 200, body = Submitted), (status = 401, body = Problem), (status = 403, body = Problem), (status = 422, body = Problem),
    (status = 507, body = Problem)))]
pub(super) async fn submit(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Body(submission): Body<Submission>,
) -> Result<Response, ApiError> {
    caller.may_submit()?;
    let file = JobFile::from_json(&submission.file).map_err(|error| ApiError::Invalid(error.to_string()))?;
    let key = headers.get("idempotency-key").map(|key| String::from_utf8_lossy(key.as_bytes()).into_owned());
    let key = key.map(|key| format!("{}/{key}", caller.owner));
    let owner = caller.owner.clone();
    if submission.dry_run {
        let plan = app.imagine(WhatIf { submit: vec![submission.file], ..WhatIf::default() }).await?;
        return Ok(Json(Submitted { jobs: Vec::new(), plan: Some(plan) }).into_response());
    }
    let submitted = app
        .service
        .ask(move |live| {
            let (ids, is_new) = live.submit(&owner, &file, key.as_deref())?;
            let jobs = ids.into_iter().filter_map(|id| show::job(live, id, Detail::All)).collect();
            let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
            Ok::<_, ApiError>((status, Submitted { jobs, plan: None }))
        })
        .await??;
    Ok((submitted.0, Json(submitted.1)).into_response())
}

/// Describes a job.
#[utoipa::path(get, path = "/v1/jobs/{job}", tag = "jobs", params(("job" = String, Path, description = "name or number")),
    responses((status = 200, body = JobShown), (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(super) async fn describe(
    State(app): State<App>,
    caller: Caller,
    Path(job): Path<String>,
) -> Result<Response, ApiError> {
    let shown = app
        .service
        .ask(move |live| {
            let id = seen(live, &caller, &job)?;
            show::job(live, id, Detail::All).ok_or_else(|| unknown(live, &job))
        })
        .await??;
    let etag = shown.etag.clone();
    Ok(([(header::ETAG, etag)], Json(shown)).into_response())
}

/// Edits a job. With `If-Match` only if nobody else did meanwhile.
#[utoipa::path(patch, path = "/v1/jobs/{job}", tag = "jobs", params(("job" = String, Path, description = "name or number")),
    request_body = JobEdits, responses((status = 200, body = JobShown), (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem), (status = 409, body = Problem), (status = 412, body = Problem), (status = 422, body = Problem)))]
pub(super) async fn edit(
    State(app): State<App>,
    caller: Caller,
    Path(job): Path<String>,
    headers: HeaderMap,
    Body(edits): Body<JobEdits>,
) -> Result<Json<JobShown>, ApiError> {
    let matched =
        headers.get(header::IF_MATCH).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let edit = JobEdit {
        priority: edits.priority.as_deref().map(priority).transpose()?,
        weight: edits.weight,
        min_gpus: edits.min_gpus,
        max_gpus: edits.max_gpus.map(|most| (most > 0).then_some(most)),
        suspended: None,
    };
    change(&app, caller, job, matched, edit).await.map(Json)
}

/// Pauses, resumes or cancels a job: `POST /v1/jobs/{job}:pause`.
pub(super) async fn act(
    State(app): State<App>,
    caller: Caller,
    Path(job): Path<String>,
) -> Result<Response, ApiError> {
    let Some((job, verb)) = job.rsplit_once(':') else {
        let text = format!(
            "what is to be done with job `{job}` is not said: write /v1/jobs/JOB:pause, :resume, :checkpoint or :cancel"
        );
        return Ok(([(header::ALLOW, "GET, HEAD, PATCH")], ApiError::Method(text)).into_response());
    };
    let job = job.to_owned();
    match verb {
        "pause" | "resume" => {
            let edit = JobEdit { suspended: Some(verb == "pause"), ..JobEdit::default() };
            Ok(Json(change(&app, caller, job, None, edit).await?).into_response())
        }
        "cancel" => Ok(Json(cancel(&app, caller, job).await?).into_response()),
        "checkpoint" => Ok(Json(checkpoint(&app, caller, job).await?).into_response()),
        _ => {
            let hint = "; there are pause, resume, checkpoint and cancel".to_owned();
            Err(ApiError::NotFound { what: "action", name: verb.to_owned(), hint })
        }
    }
}

/// Pauses a job: it saves its state and leaves its GPUs until it is resumed.
#[utoipa::path(post, path = "/v1/jobs/{job}:pause", tag = "jobs", params(("job" = String, Path, description = "name or number")),
    responses((status = 200, body = JobShown), (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
#[expect(dead_code, reason = "describes a route for OpenAPI; `act` serves it")]
fn pause() {}

/// Resumes a paused job.
#[utoipa::path(post, path = "/v1/jobs/{job}:resume", tag = "jobs", params(("job" = String, Path, description = "name or number")),
    responses((status = 200, body = JobShown), (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
#[expect(dead_code, reason = "describes a route for OpenAPI; `act` serves it")]
fn resume() {}

/// Asks a job to save its state and go on.
#[utoipa::path(post, path = "/v1/jobs/{job}:checkpoint", tag = "jobs", params(("job" = String, Path, description = "name or number")),
    responses((status = 200, body = JobShown), (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
#[expect(dead_code, reason = "describes a route for OpenAPI; `act` serves it")]
fn saved() {}

/// Cancels a job.
#[utoipa::path(post, path = "/v1/jobs/{job}:cancel", tag = "jobs", params(("job" = String, Path, description = "name or number")),
    responses((status = 200, body = JobShown), (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
#[expect(dead_code, reason = "describes a route for OpenAPI; `act` serves it")]
fn cancelled() {}

async fn change(
    app: &App,
    caller: Caller,
    job: String,
    matched: Option<String>,
    edit: JobEdit,
) -> Result<JobShown, ApiError> {
    app.service
        .ask(move |live| {
            let id = owned(live, &caller, &job)?;
            let etag = live.etag(id);
            if matched.is_some_and(|matched| matched != "*" && Some(matched) != etag) {
                return Err(ApiError::Stale);
            }
            live.tell(Input::JobEdited(id, edit), Note::By { actor: caller.owner })?;
            show::job(live, id, Detail::All).ok_or_else(|| unknown(live, &job))
        })
        .await?
}

async fn checkpoint(app: &App, caller: Caller, job: String) -> Result<JobShown, ApiError> {
    app.service
        .ask(move |live| {
            let id = owned(live, &caller, &job)?;
            live.ask_checkpoint(id, &caller.owner).map_err(ApiError::Conflict)?;
            show::job(live, id, Detail::All).ok_or_else(|| unknown(live, &job))
        })
        .await?
}

async fn cancel(app: &App, caller: Caller, job: String) -> Result<JobShown, ApiError> {
    app.service
        .ask(move |live| {
            let id = owned(live, &caller, &job)?;
            live.tell(Input::JobCancelled(id), Note::By { actor: caller.owner })?;
            show::job(live, id, Detail::All).ok_or_else(|| unknown(live, &job))
        })
        .await?
}

/// Says why a job holds what it holds, or waits.
#[utoipa::path(get, path = "/v1/jobs/{job}/explain", tag = "jobs", params(("job" = String, Path, description = "name or number")),
    responses((status = 200, body = Explained), (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(super) async fn explain(
    State(app): State<App>,
    caller: Caller,
    Path(job): Path<String>,
) -> Result<Json<Explained>, ApiError> {
    app.service
        .ask(move |live| {
            let id = seen(live, &caller, &job)?;
            Ok(Json(show::explained(live, id)))
        })
        .await?
}

fn owned(live: &Live, caller: &Caller, job: &str) -> Result<JobId, ApiError> {
    caller.may_submit()?;
    let id = find(live, job)?;
    caller.may_change(&live.owner(id).unwrap_or_default())?;
    Ok(id)
}

/// A job that the caller may look at. A job's token is not told either what other jobs there are.
pub(super) fn seen(live: &Live, caller: &Caller, job: &str) -> Result<JobId, ApiError> {
    match live.find(job) {
        Some(id) => caller.may_look_at(id).map(|()| id),
        None => caller.may_look().and_then(|()| Err(unknown(live, job))),
    }
}

/// A job by name or number.
pub(super) fn find(live: &Live, job: &str) -> Result<JobId, ApiError> {
    live.find(job).ok_or_else(|| unknown(live, job))
}

fn unknown(live: &Live, job: &str) -> ApiError {
    let names = live.names();
    let near = pollux_api::nearest(job, names.iter().map(String::as_str));
    let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    ApiError::NotFound { what: "job", name: job.to_owned(), hint }
}

fn priority(word: &str) -> Result<Priority, ApiError> {
    match word {
        "low" => Ok(Priority::Low),
        "normal" => Ok(Priority::Normal),
        "high" => Ok(Priority::High),
        _ => Err(ApiError::Invalid(format!("`{word}` is no priority; there are low, normal and high"))),
    }
}
