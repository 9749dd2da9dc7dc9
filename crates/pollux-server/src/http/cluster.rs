//! The service, nodes, queues, rounds, events, history, what-if.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use pollux_api::rest::{
    EventShown, JobShown, NodeEdit, NodeShown, Problem, QueueShown, RoundShown, ServiceShown, WhatIf,
    WhatIfAnswer,
};
use pollux_core::Input;
use pollux_model::GpuType;
use pollux_policy::{Group, GroupId, NodeState};
use serde::Deserialize;

use super::App;
use super::access::Caller;
use super::body::{Body, Path, Query};
use super::error::ApiError;
use super::jobs::find;
use crate::service::{Note, records, show};

/// The service itself.
#[utoipa::path(get, path = "/v1/service", tag = "cluster", responses(
    (status = 200, body = ServiceShown), (status = 401, body = Problem), (status = 403, body = Problem)))]
pub(super) async fn service(State(app): State<App>, caller: Caller) -> Result<Json<ServiceShown>, ApiError> {
    caller.may_look()?;
    Ok(Json(app.service.ask(|live| show::service(live)).await?))
}

/// Lists nodes.
#[utoipa::path(get, path = "/v1/nodes", tag = "cluster", responses(
    (status = 200, body = Vec<NodeShown>), (status = 401, body = Problem), (status = 403, body = Problem)))]
pub(super) async fn nodes(State(app): State<App>, caller: Caller) -> Result<Json<Vec<NodeShown>>, ApiError> {
    caller.may_look()?;
    Ok(Json(app.service.ask(|live| show::nodes(live)).await?))
}

/// Cordons, drains or opens a node.
#[utoipa::path(patch, path = "/v1/nodes/{node}", tag = "cluster", params(("node" = String, Path, description = "name")),
    request_body = NodeEdit, responses((status = 200, body = NodeShown), (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(super) async fn edit_node(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Body(edit): Body<NodeEdit>,
) -> Result<Json<NodeShown>, ApiError> {
    caller.may_rule()?;
    let state = match edit.state.as_str() {
        "ready" => NodeState::Ready,
        "cordoned" => NodeState::Cordoned,
        "draining" => NodeState::Draining,
        other => {
            let text = format!("`{other}` is no state of a node; there are ready, cordoned and draining");
            return Err(ApiError::Invalid(text));
        }
    };
    app.service
        .ask(move |live| {
            let unknown = || ApiError::NotFound { what: "node", name: name.clone(), hint: String::new() };
            let id = live.node(&name).ok_or_else(unknown)?;
            match (edit.gpu, state) {
                (None, _) => live.tell(Input::NodeStateSet(id, state), Note::By { actor: caller.owner })?,
                (Some(_), NodeState::Draining) => {
                    let text = "a GPU can be cordoned, not drained; drain its node, or wait for who holds it";
                    return Err(ApiError::Invalid(text.to_owned()));
                }
                (Some(gpu), state) => {
                    let reason =
                        (state == NodeState::Cordoned).then(|| format!("cordoned by {}", caller.owner));
                    live.set_gpu(id, gpu, reason.as_deref(), &caller.owner)
                        .map_err(|error| ApiError::Invalid(error.to_string()))?;
                }
            }
            show::nodes(live).into_iter().find(|node| node.name == name).map(Json).ok_or_else(unknown)
        })
        .await?
}

/// Lists queues.
#[utoipa::path(get, path = "/v1/queues", tag = "cluster", responses(
    (status = 200, body = Vec<QueueShown>), (status = 401, body = Problem), (status = 403, body = Problem)))]
pub(super) async fn queues(
    State(app): State<App>,
    caller: Caller,
) -> Result<Json<Vec<QueueShown>>, ApiError> {
    caller.may_look()?;
    Ok(Json(app.service.ask(|live| show::queues(live)).await?))
}

/// Makes or changes a queue.
#[utoipa::path(put, path = "/v1/queues/{queue}", tag = "cluster", params(("queue" = String, Path, description = "name")),
    request_body = QueueShown, responses((status = 200, body = Vec<QueueShown>), (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 409, body = Problem), (status = 422, body = Problem)))]
pub(super) async fn set_queue(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Body(queue): Body<QueueShown>,
) -> Result<Json<Vec<QueueShown>>, ApiError> {
    caller.may_rule()?;
    if name != queue.name {
        return Err(ApiError::Invalid(format!("the path names queue `{name}`, the body `{}`", queue.name)));
    }
    if name.is_empty() || name.len() > 63 {
        return Err(ApiError::Invalid("a queue's name has 1 to 63 characters".to_owned()));
    }
    app.service
        .ask(move |live| {
            let mut all = show::queues(live);
            all.retain(|known| known.name != name);
            all.push(queue);
            set_queues(live, &caller, &all)?;
            Ok(Json(show::queues(live)))
        })
        .await?
}

/// Removes a queue that no active job counts for.
#[utoipa::path(delete, path = "/v1/queues/{queue}", tag = "cluster", params(("queue" = String, Path, description = "name")),
    responses((status = 200, body = Vec<QueueShown>), (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(super) async fn remove_queue(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Vec<QueueShown>>, ApiError> {
    caller.may_rule()?;
    app.service
        .ask(move |live| {
            let mut all = show::queues(live);
            let n_before = all.len();
            all.retain(|known| known.name != name);
            if all.len() == n_before {
                return Err(ApiError::NotFound { what: "queue", name, hint: String::new() });
            }
            set_queues(live, &caller, &all)?;
            Ok(Json(show::queues(live)))
        })
        .await?
}

fn set_queues(live: &mut crate::service::Live, caller: &Caller, all: &[QueueShown]) -> Result<(), ApiError> {
    // Who is known keeps its number; new ones get the next.
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let known = live.queues().clone();
    let mut next = known.keys().max().map_or(0, |most| most + 1);
    for queue in all {
        let number = known.iter().find(|(_, name)| **name == queue.name).map(|(id, _)| *id);
        let number = number.unwrap_or(next);
        next = next.max(number + 1);
        numbers.insert(&queue.name, number);
    }
    let by_type =
        |gpus: &BTreeMap<String, u32>| gpus.iter().map(|(name, gpus)| (GpuType::new(name), *gpus)).collect();
    let groups = all.iter().map(|queue| {
        let parent = queue.parent.as_deref().map(|parent| {
            let unknown = || {
                ApiError::Invalid(format!("queue `{}` is part of `{parent}`, which is not there", queue.name))
            };
            numbers.get(parent).copied().map(GroupId).ok_or_else(unknown)
        });
        Ok(Group {
            id: GroupId(numbers[queue.name.as_str()]),
            parent: parent.transpose()?,
            entitled: by_type(&queue.entitled),
            caps: by_type(&queue.caps),
        })
    });
    let groups = groups.collect::<Result<Vec<_>, ApiError>>()?;
    let names = numbers.iter().map(|(name, id)| (*id, (*name).to_owned())).collect();
    Ok(live.tell(Input::GroupsSet(groups), Note::Queues { actor: caller.owner.clone(), names })?)
}

/// From where on, and how much.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Page {
    /// Only what has a greater number than this.
    pub after: Option<u64>,
    /// At most so many, the latest ones: 100 unless said otherwise, and never more than 1000.
    pub limit: Option<u32>,
    /// Only what is about this job.
    pub job: Option<String>,
}

impl Page {
    pub(super) fn limit(&self) -> u32 {
        self.limit.unwrap_or(100).clamp(1, 1_000)
    }
}

/// Lists rounds, the latest last.
#[utoipa::path(get, path = "/v1/rounds", tag = "cluster", params(Page), responses(
    (status = 200, body = Vec<RoundShown>), (status = 401, body = Problem), (status = 403, body = Problem)))]
pub(super) async fn rounds(
    State(app): State<App>,
    caller: Caller,
    Query(page): Query<Page>,
) -> Result<Json<Vec<RoundShown>>, ApiError> {
    caller.may_look()?;
    let (after, limit) = (page.after.unwrap_or(0), page.limit());
    let mut found = app.service.read(move |store| store.rounds(limit)).await??;
    found.sort_by_key(|round| round.cycle);
    Ok(Json(found.iter().filter(|round| round.cycle > after).filter_map(records::round_shown).collect()))
}

/// Shows a round: what was decided, and why.
#[utoipa::path(get, path = "/v1/rounds/{round}", tag = "cluster", params(("round" = u64, Path)), responses(
    (status = 200, body = RoundShown), (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(super) async fn round(
    State(app): State<App>,
    caller: Caller,
    Path(number): Path<u64>,
) -> Result<Json<RoundShown>, ApiError> {
    caller.may_look()?;
    let found = app.service.read(move |store| store.round(number)).await??;
    let hint = "; rounds are numbered from 1, old ones are removed".to_owned();
    found.as_ref().and_then(records::round_shown).map(Json).ok_or(ApiError::NotFound {
        what: "round",
        name: number.to_string(),
        hint,
    })
}

/// Lists events, the latest last.
#[utoipa::path(get, path = "/v1/events", tag = "cluster", params(Page), responses(
    (status = 200, body = Vec<EventShown>), (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(super) async fn events(
    State(app): State<App>,
    caller: Caller,
    Query(page): Query<Page>,
) -> Result<Json<Vec<EventShown>>, ApiError> {
    caller.may_look()?;
    Ok(Json(past_events(&app, page).await?))
}

/// Events of before: those after a number, or the latest.
pub(super) async fn past_events(app: &App, page: Page) -> Result<Vec<EventShown>, ApiError> {
    let limit = page.limit();
    let job = match page.job {
        Some(name) => Some(app.service.ask(move |live| find(live, &name)).await??.0),
        None => None,
    };
    let found = app.service.read(move |store| match page.after {
        // The store counts as far as its numbers have a sign.
        Some(after) => store.events(after.min(i64::MAX as u64), job, limit),
        None => store.latest_events(job, limit),
    });
    let found = found.await??;
    let names = app.service.ask(|live| live.all_names()).await?;
    Ok(found.into_iter().map(|event| records::event_shown(event, |id| names.get(&id).cloned())).collect())
}

/// Lists jobs that have ended, the latest last.
#[utoipa::path(get, path = "/v1/history", tag = "jobs", params(Page), responses(
    (status = 200, body = Vec<JobShown>), (status = 401, body = Problem), (status = 403, body = Problem)))]
pub(super) async fn history(
    State(app): State<App>,
    caller: Caller,
    Query(page): Query<Page>,
) -> Result<Json<Vec<JobShown>>, ApiError> {
    caller.may_look()?;
    let mut found = app.service.read(move |store| store.ended_jobs(page.limit())).await??;
    found.reverse();
    Ok(Json(found.iter().filter_map(records::job_shown).collect()))
}

/// Says who would hold what after a change that is only imagined.
#[utoipa::path(post, path = "/v1/whatif", tag = "cluster", request_body = WhatIf, responses(
    (status = 200, body = WhatIfAnswer), (status = 401, body = Problem), (status = 403, body = Problem), (status = 422, body = Problem)))]
pub(super) async fn what_if(
    State(app): State<App>,
    caller: Caller,
    Body(change): Body<WhatIf>,
) -> Result<Json<WhatIfAnswer>, ApiError> {
    caller.may_look()?;
    Ok(Json(app.imagine(change).await?))
}
