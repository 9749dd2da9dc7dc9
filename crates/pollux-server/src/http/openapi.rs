//! The API described by itself: OpenAPI 3.1.

use axum::Json;
use axum::extract::State;
use pollux_api::rest;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, Ref, RefOr, Response};
use utoipa::{Modify, OpenApi};

use super::App;
use super::access::Caller;
use super::error::ApiError;
use super::{adaptdl, agent, cluster, jobs, stream, tokens};

#[derive(OpenApi)]
#[openapi(
    info(title = "Pollux", description = "A scheduler for shared GPU clusters that train deep-learning models."),
    paths(
        jobs::list, jobs::submit, jobs::describe, jobs::edit, jobs::pause, jobs::resume, jobs::cancelled, jobs::saved, jobs::explain,
        stream::logs, stream::events, cluster::service, cluster::nodes, cluster::edit_node, cluster::queues,
        cluster::set_queue, cluster::remove_queue, cluster::rounds, cluster::round, cluster::events, cluster::history,
        cluster::what_if, agent::reports, agent::wait, tokens::list, tokens::create, tokens::revoke,
        serve, super::metrics::serve, super::healthy, super::ready, adaptdl::hints, adaptdl::discover,
    ),
    components(schemas(rest::Problem)),
    modifiers(&Token, &Problems),
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

/// What may go wrong anywhere: said once for all routes.
struct Problems;

/// What any route with a token in its header may answer.
const ANYWHERE: [(&str, &str); 4] = [
    ("401", "no token, or none that is known"),
    ("403", "the token does not allow it"),
    ("422", "something in the call makes no sense"),
    ("507", "nothing can be written"),
];

/// Added where a body is read.
const TOO_LARGE: (&str, &str) = ("413", "the body is beyond what is read");

const PROBLEM: &str = "application/problem+json";

impl Modify for Problems {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        for operation in openapi.paths.paths.values_mut().flat_map(operations) {
            // Whose security is empty answers anybody.
            let is_open =
                operation.security.as_ref().is_some_and(|needs| *needs == [SecurityRequirement::default()]);
            let reads = operation.request_body.as_ref().map(|_| TOO_LARGE);
            let added = ANYWHERE.into_iter().filter(|_| !is_open).chain(reads);
            for (status, description) in added {
                let response = || RefOr::T(Response::builder().description(description).build());
                operation.responses.responses.entry(status.to_owned()).or_insert_with(response);
            }
            for (status, response) in &mut operation.responses.responses {
                if let RefOr::T(response) = response
                    && status.starts_with(['4', '5'])
                {
                    let content = Content::new(Some(Ref::from_schema_name("Problem")));
                    response.content = [(PROBLEM.to_owned(), RefOr::T(content))].into_iter().collect();
                }
            }
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch].into_iter().flatten()
}

/// The document.
pub fn document() -> serde_json::Value {
    let mut document = serde_json::to_value(Api::openapi()).unwrap_or_default();
    tell_signs(&mut document);
    document
}

/// Numbers without a sign are called so: the formats of those with one end at half of them.
fn tell_signs(schema: &mut serde_json::Value) {
    let has_none = schema["minimum"].as_f64() == Some(0.0);
    let unsigned = match schema["format"].as_str() {
        Some("int32") if has_none => Some("uint32"),
        Some("int64") if has_none => Some("uint64"),
        _ => None,
    };
    if let Some(unsigned) = unsigned {
        schema["format"] = unsigned.into();
    }
    match schema {
        serde_json::Value::Object(fields) => fields.values_mut().for_each(tell_signs),
        serde_json::Value::Array(items) => items.iter_mut().for_each(tell_signs),
        _ => {}
    }
}

/// Serves this document.
#[utoipa::path(get, path = "/openapi.json", tag = "cluster", responses((status = 200, body = Object)))]
pub(super) async fn serve(_: State<App>, caller: Caller) -> Result<Json<serde_json::Value>, ApiError> {
    caller.may_look()?;
    Ok(Json(document()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test] // A route that is not in the document is in no test of who may do what, either.
    fn every_route_is_described() {
        let served = include_str!("mod.rs").lines().filter_map(|line| {
            let rest = line.trim_start().strip_prefix(".route(\"")?;
            rest.split_once('"').map(|(path, _)| path.to_owned())
        });
        let served: BTreeSet<String> = served.collect();
        let document = document();
        let described = document["paths"].as_object().unwrap().keys().map(|path| {
            // Actions are served by the route of their job.
            path.split_once("}:").map_or_else(|| path.clone(), |(job, _)| format!("{job}}}"))
        });
        assert_eq!(served, described.collect());
    }

    #[test]
    fn errors_are_problems() {
        let document = document();
        let submit = &document["paths"]["/v1/jobs"]["post"]["responses"];
        for status in ["401", "403", "413", "422", "507"] {
            let schema = &submit[status]["content"][PROBLEM]["schema"]["$ref"];
            assert_eq!(schema, "#/components/schemas/Problem", "{status}: {submit}");
        }
        assert!(document["paths"]["/healthz"]["get"]["responses"]["401"].is_null());
    }
}
