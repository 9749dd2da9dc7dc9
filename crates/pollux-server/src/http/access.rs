//! Who calls, and what the caller may do.

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use pollux_api::rest::Role;
use pollux_model::JobId;

use super::App;
use super::error::ApiError;

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Whose token it is.
    pub owner: String,
    /// What it allows.
    pub role: Role,
    /// The job it speaks for, and which start of it.
    pub speaks_for: Option<(JobId, u32)>,
}

impl Caller {
    /// May look at everything.
    pub fn may_look(&self) -> Result<(), ApiError> {
        match self.role {
            Role::Viewer | Role::Submitter | Role::Admin => Ok(()),
            Role::Job => Err(ApiError::Forbidden("a job's token speaks for that job alone".to_owned())),
        }
    }

    /// May submit jobs.
    pub fn may_submit(&self) -> Result<(), ApiError> {
        self.may_look()?;
        match self.role {
            Role::Submitter | Role::Admin => Ok(()),
            _ => Err(ApiError::Forbidden(format!("a {}'s token may look, not submit", self.role.word()))),
        }
    }

    /// May change a job of this owner.
    pub fn may_change(&self, owner: &str) -> Result<(), ApiError> {
        self.may_submit()?;
        if self.role == Role::Admin || self.owner == owner {
            return Ok(());
        }
        Err(ApiError::Forbidden(format!(
            "the job is {owner}'s; only {owner} and administrators may change it"
        )))
    }

    /// May change the service itself.
    pub fn may_rule(&self) -> Result<(), ApiError> {
        self.may_look()?;
        if self.role == Role::Admin {
            return Ok(());
        }
        Err(ApiError::Forbidden(format!(
            "this needs an administrator's token, yours is a {}'s",
            self.role.word()
        )))
    }

    /// May look at one job: everybody who may look, and the job itself.
    pub fn may_look_at(&self, job: JobId) -> Result<(), ApiError> {
        match self.speaks_for {
            Some((own, _)) if own == job => Ok(()),
            _ => self.may_look(),
        }
    }

    /// The job it speaks for, and which start of it.
    pub fn job(&self) -> Result<(JobId, u32), ApiError> {
        let nobody = || ApiError::Forbidden("this needs a job's own token".to_owned());
        self.speaks_for.filter(|_| self.role == Role::Job).ok_or_else(nobody)
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let value = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = value.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        app.caller(token.ok_or(ApiError::Unauthenticated)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(role: Role) -> Caller {
        let speaks_for = (role == Role::Job).then_some((JobId(7), 1));
        Caller { owner: "ada".to_owned(), role, speaks_for }
    }

    fn allowed(role: Role) -> [bool; 7] {
        let caller = caller(role);
        [
            caller.may_look().is_ok(),
            caller.may_submit().is_ok(),
            caller.may_change("ada").is_ok(),
            caller.may_change("bob").is_ok(),
            caller.may_rule().is_ok(),
            caller.may_look_at(JobId(8)).is_ok(),
            caller.job().is_ok(),
        ]
    }

    #[test]
    fn no_role_gets_more_than_its_own() {
        assert_eq!(allowed(Role::Viewer), [true, false, false, false, false, true, false]);
        assert_eq!(allowed(Role::Submitter), [true, true, true, false, false, true, false]);
        assert_eq!(allowed(Role::Admin), [true, true, true, true, true, true, false]);
        assert_eq!(allowed(Role::Job), [false, false, false, false, false, false, true]);
    }

    #[test]
    fn a_job_may_look_at_itself() {
        assert!(caller(Role::Job).may_look_at(JobId(7)).is_ok());
    }
}
