//! Tokens: who holds which. Only hashes are kept.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use pollux_api::rest::{NewToken, Role, TokenMade, TokenShown};
use pollux_core::Generation;
use pollux_model::{JobId, Timestamp};
use sha2::{Digest as _, Sha256};

use super::clock::rfc3339;
use super::events::Event;
use super::run::{Service, Unavailable};
use crate::store::{Store, StoreError, Token, TokenHash};

/// What is known of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Whose it is.
    pub owner: String,
    /// What it allows.
    pub role: Role,
    /// The job it speaks for, and which start of it.
    pub job: Option<(JobId, u32)>,
    /// When it expires, in microseconds since 1970.
    pub expires: Option<u64>,
    /// When it was made, in microseconds since 1970.
    pub made: u64,
}

/// All tokens, by hash.
#[derive(Clone, Default)]
pub struct Tokens {
    known: Arc<RwLock<BTreeMap<TokenHash, Known>>>,
    service: Arc<RwLock<Option<Service>>>,
}

impl Tokens {
    /// As the store has them.
    pub fn load(store: &Store) -> Result<Self, StoreError> {
        let rows = store.tokens()?.into_iter().map(|row| (row.hash, known(row)));
        Ok(Self { known: Arc::new(RwLock::new(rows.collect())), service: Arc::default() })
    }

    /// Whom to tell of changes.
    pub(super) fn report_to(&self, service: Service) {
        *self.service.write().unwrap_or_else(PoisonError::into_inner) = Some(service);
    }

    /// Who holds this token; nobody if it is unknown or has expired.
    pub fn find(&self, token: &str) -> Option<Known> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).get(&hash(token)).cloned()?;
        known.expires.is_none_or(|expires| unix_micros() < expires).then_some(known)
    }

    /// All tokens of people.
    pub fn list(&self) -> Vec<TokenShown> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let of_people = known.iter().filter(|(_, known)| known.role != Role::Job);
        of_people.map(|(hash, known)| shown(hash, known)).collect()
    }

    /// Makes one for somebody.
    pub async fn create(&self, actor: &str, new: NewToken) -> Result<TokenMade, Unavailable> {
        let token = secret().map_err(|error| Unavailable::because(&error))?;
        let expires = new.expires_s.map(|secs| unix_micros().saturating_add(secs.saturating_mul(1_000_000)));
        let known = Known { owner: new.owner, role: new.role, job: None, expires, made: unix_micros() };
        let row = row(hash(&token), &known);
        let text = format!("{actor} made a {} token for {}", known.role.word(), known.owner);
        self.keep(actor, text, move |store| store.write(|writer| writer.token(&row))).await?;
        let made = TokenMade { shown: shown(&hash(&token), &known), token };
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(hash(&made.token), known);
        Ok(made)
    }

    /// Takes one back; false if there is none.
    pub async fn revoke(&self, actor: &str, id: &str) -> Result<bool, Unavailable> {
        let found = {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            known
                .iter()
                .find(|(hash, known)| known.role != Role::Job && shown(hash, known).id == id)
                .map(|(hash, known)| (*hash, known.owner.clone()))
        };
        let Some((hash, owner)) = found else { return Ok(false) };
        let text = format!("{actor} took a token of {owner} back");
        self.keep(actor, text, move |store| store.write(|writer| writer.revoke(&hash))).await?;
        self.known.write().unwrap_or_else(PoisonError::into_inner).remove(&hash);
        Ok(true)
    }

    async fn keep(
        &self,
        actor: &str,
        text: String,
        change: impl FnOnce(&mut Store) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<(), Unavailable> {
        let service = self.service.read().unwrap_or_else(PoisonError::into_inner).clone();
        let service = service.ok_or_else(|| Unavailable::because(&"the service has not begun"))?;
        service.read(change).await?.map_err(|error| Unavailable::because(&error))?;
        let actor = actor.to_owned();
        service
            .ask(move |live| {
                let at = live.now();
                live.note(Event { at, actor, job: None, kind: "token", text });
            })
            .await
    }

    /// Makes the token of a start.
    pub(super) fn issue(
        &self,
        store: &mut Store,
        job: JobId,
        generation: Generation,
    ) -> Result<String, StoreError> {
        let token = made(store)?;
        let owner = format!("job-{}", job.0);
        let known = Known {
            owner,
            role: Role::Job,
            job: Some((job, generation.0)),
            expires: None,
            made: unix_micros(),
        };
        store.write(|writer| writer.token(&row(hash(&token), &known)))?;
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(hash(&token), known);
        Ok(token)
    }

    /// A start is over: its token is worth nothing any more.
    pub(super) fn forget(&self, job: JobId, generation: Generation) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, known| known.job != Some((job, generation.0)));
    }

    /// Of jobs' tokens only those of these starts are worth anything: others have ended while no service ran.
    pub(super) fn keep_only(&self, runs: &[(JobId, Generation)]) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let is_running = |(job, attempt): (JobId, u32)| runs.contains(&(job, Generation(attempt)));
        known.retain(|_, known| known.job.is_none_or(is_running));
    }

    /// The administrator's own token: read from its file, or made.
    pub fn administrator(&self, store: &mut Store, file: &Path) -> Result<String, StoreError> {
        let kept = std::fs::read_to_string(file).ok().map(|text| text.trim().to_owned());
        let is_known = |token: &String| {
            self.known.read().unwrap_or_else(PoisonError::into_inner).contains_key(&hash(token))
        };
        if let Some(token) = kept.filter(is_known) {
            return Ok(token);
        }
        let token = made(store)?;
        let known = Known {
            owner: "admin".to_owned(),
            role: Role::Admin,
            job: None,
            expires: None,
            made: unix_micros(),
        };
        store.write(|writer| writer.token(&row(hash(&token), &known)))?;
        write_secret(file, &token).map_err(|source| StoreError::Io { path: file.to_owned(), source })?;
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(hash(&token), known);
        Ok(token)
    }
}

/// A name that no other state folder has.
pub(super) fn identity() -> io::Result<String> {
    secret().map(|secret| secret.chars().skip(4).take(16).collect())
}

/// A secret nobody can guess.
fn secret() -> io::Result<String> {
    let mut bytes = [0_u8; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("plx_{}", hex(&bytes)))
}

fn made(store: &Store) -> Result<String, StoreError> {
    secret().map_err(|source| StoreError::Io { path: store.path().to_owned(), source })
}

/// What is kept of a token.
fn hash(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unix_micros() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX)
}

fn shown(hash: &TokenHash, known: &Known) -> TokenShown {
    let date = |micros: u64| rfc3339(Timestamp::from_micros(micros));
    TokenShown {
        id: hex(&hash[..6]),
        owner: known.owner.clone(),
        role: known.role,
        made: date(known.made),
        expires: known.expires.map(date),
    }
}

fn row(hash: TokenHash, known: &Known) -> Token {
    Token {
        hash,
        role: known.role,
        owner: known.owner.clone(),
        job: known.job.map(|(job, _)| job.0),
        attempt: known.job.map(|(_, attempt)| attempt),
        made: known.made,
        expires: known.expires,
    }
}

fn known(token: Token) -> Known {
    let job = token.job.zip(token.attempt).map(|(job, attempt)| (JobId(job), attempt));
    Known { owner: token.owner, role: token.role, job, expires: token.expires, made: token.made }
}

/// Writes a secret that nobody else may read.
pub(super) fn write_secret(path: &Path, secret: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    writeln!(file, "{secret}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_sha_256() {
        assert_eq!(&hex(&hash("abc"))[..16], "ba7816bf8f01cfea");
        assert_ne!(secret().unwrap(), secret().unwrap());
    }
}
