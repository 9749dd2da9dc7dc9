//! The API described by itself: OpenAPI 3.1.

use axum::Json;
use axum::extract::State;
use pollux_api::rest;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::App;
use super::access::Caller;
use super::error::ApiError;
use super::{agent, cluster, jobs, stream, tokens};

#[derive(OpenApi)]
#[openapi(
    info(title = "Pollux", description = "A scheduler for shared GPU clusters that train deep-learning models."),
    paths(
        jobs::list, jobs::submit, jobs::describe, jobs::edit, jobs::pause, jobs::resume, jobs::cancelled, jobs::saved, jobs::explain,
        stream::logs, stream::events, cluster::service, cluster::nodes, cluster::edit_node, cluster::queues,
        cluster::set_queue, cluster::remove_queue, cluster::rounds, cluster::round, cluster::events, cluster::history,
        cluster::what_if, agent::reports, agent::wait, tokens::list, tokens::create, tokens::revoke,
    ),
    components(schemas(rest::Problem)),
    modifiers(&Token),
    security(("token" = [])),
)]
struct Api;

struct Token;

impl Modify for Token {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
        if let Some(components) = &mut openapi.components {
            components.add_security_scheme("token", scheme);
        }
    }
}

/// The document.
pub fn document() -> utoipa::openapi::OpenApi {
    Api::openapi()
}

/// Serves the document.
pub(super) async fn serve(_: State<App>, caller: Caller) -> Result<Json<utoipa::openapi::OpenApi>, ApiError> {
    caller.may_look()?;
    Ok(Json(document()))
}
