//! Tokens: made, listed, taken back.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use pollux_api::rest::{NewToken, Problem, Role, TokenMade, TokenShown};

use super::App;
use super::access::Caller;
use super::body::{Body, Path};
use super::error::ApiError;

/// The longest life of a token that ends at all, in seconds: 100 years.
const LONGEST_S: u64 = 100 * 365 * 86_400;

/// Lists tokens; their secrets are not kept.
#[utoipa::path(get, path = "/v1/tokens", tag = "access", responses(
    (status = 200, body = Vec<TokenShown>), (status = 401, body = Problem), (status = 403, body = Problem)))]
pub(super) async fn list(State(app): State<App>, caller: Caller) -> Result<Json<Vec<TokenShown>>, ApiError> {
    caller.may_rule()?;
    Ok(Json(app.tokens.list()))
}

/// Makes a token.
#[utoipa::path(post, path = "/v1/tokens", tag = "access", request_body = NewToken, responses(
    (status = 201, body = TokenMade), (status = 401, body = Problem), (status = 403, body = Problem), (status = 422, body = Problem)))]
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    Body(new): Body<NewToken>,
) -> Result<(StatusCode, Json<TokenMade>), ApiError> {
    caller.may_rule()?;
    if new.role == Role::Job {
        return Err(ApiError::Invalid(
            "jobs get their tokens from the scheduler; choose viewer, submitter or admin".to_owned(),
        ));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    if new.owner.is_empty() || new.owner.len() > 63 || !new.owner.chars().all(is_plain) {
        let text = "an owner is called by 1 to 63 letters, digits, `-`, `_`, `.` and `@`";
        return Err(ApiError::Invalid(text.to_owned()));
    }
    if new.expires_s.is_some_and(|secs| secs > LONGEST_S) {
        return Err(ApiError::Invalid("a token expires after at most 100 years, or never".to_owned()));
    }
    let made = app.tokens.create(&caller.owner, new).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// Takes a token back.
#[utoipa::path(delete, path = "/v1/tokens/{id}", tag = "access", params(("id" = String, Path, description = "as listed")),
    responses((status = 204), (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(super) async fn revoke(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    caller.may_rule()?;
    if app.tokens.revoke(&caller.owner, &id).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(ApiError::NotFound { what: "token", name: id, hint: String::new() })
}
