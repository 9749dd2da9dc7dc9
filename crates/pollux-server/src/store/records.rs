//! What people and programs ask for later: events, rounds, ended jobs, tokens.

use pollux_api::rest::Role;
use rusqlite::{Params, Row as Found, params};

use super::{Store, StoreError, Writer, signed, unsigned};

/// Something that happened, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewEvent<'a> {
    /// When, in microseconds.
    pub at: u64,
    /// Who did it.
    pub actor: &'a str,
    /// The job it is about.
    pub job: Option<u64>,
    /// What kind of event, in one word.
    pub kind: &'a str,
    /// What happened.
    pub text: &'a str,
}

/// Something that happened, in words, with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number: goes up, and is never used again.
    pub seq: u64,
    /// When, in microseconds.
    pub at: u64,
    /// Who did it.
    pub actor: String,
    /// The job it is about.
    pub job: Option<u64>,
    /// What kind of event, in one word.
    pub kind: String,
    /// What happened.
    pub text: String,
}

/// A round and its plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Which round.
    pub cycle: u64,
    /// When its plan came, in microseconds.
    pub at: u64,
    /// Its seed.
    pub seed: u64,
    /// How good the plan is, if its policy says so.
    pub value: Option<f64>,
    /// How good any plan could be. What is no number is kept as nothing.
    pub bound: Option<f64>,
    /// Jobs that were started, stopped or moved.
    pub moved: u32,
    /// The plan.
    pub plan: String,
}

/// A job that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedJob {
    /// Which job.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Whose it was.
    pub owner: String,
    /// When it was submitted, in microseconds.
    pub submitted: u64,
    /// When it ended, in microseconds.
    pub ended: u64,
    /// How it ended, in one word.
    pub outcome: String,
    /// All else the service keeps of it.
    pub detail: String,
}

/// The SHA-256 of a token. The token itself is kept nowhere.
pub type TokenHash = [u8; 32];

/// What a token allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its hash.
    pub hash: TokenHash,
    /// As what it lets its holder in.
    pub role: Role,
    /// Who holds it.
    pub owner: String,
    /// The job it is for, if it is a job's own.
    pub job: Option<u64>,
    /// Which start of that job.
    pub attempt: Option<u32>,
    /// When it was made, in microseconds.
    pub made: u64,
    /// When it ends, in microseconds; never if not said.
    pub expires: Option<u64>,
}

impl Writer<'_> {
    /// Adds an event; says its number.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub fn event(&mut self, event: NewEvent<'_>) -> Result<u64, StoreError> {
        let NewEvent { at, actor, job, kind, text } = event;
        let sql = "INSERT INTO events (at, actor, job, kind, text) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.put(sql, params![signed(at), actor, job.map(signed), kind, text])?;
        Ok(unsigned(self.transaction.last_insert_rowid()))
    }

    /// Adds a round.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub fn round(&mut self, round: &Round) -> Result<(), StoreError> {
        let Round { cycle, at, seed, value, bound, moved, plan } = round;
        let sql = "INSERT OR REPLACE INTO rounds VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        self.put(sql, params![signed(*cycle), signed(*at), signed(*seed), value, bound, moved, plan])
    }

    /// Adds a job that is over.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub fn ended_job(&mut self, job: &EndedJob) -> Result<(), StoreError> {
        let EndedJob { id, name, owner, submitted, ended, outcome, detail } = job;
        let sql = "INSERT OR REPLACE INTO jobs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        self.put(sql, params![signed(*id), name, owner, signed(*submitted), signed(*ended), outcome, detail])
    }

    /// Adds a token, or changes what it allows.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub fn token(&mut self, token: &Token) -> Result<(), StoreError> {
        let Token { hash, role, owner, job, attempt, made, expires } = token;
        let sql = "INSERT OR REPLACE INTO tokens VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let (job, made, expires) = (job.map(signed), signed(*made), expires.map(signed));
        self.put(sql, params![hash.as_slice(), role.word(), owner, job, attempt, made, expires])
    }

    /// A token is good for nothing from now on.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub fn revoke(&mut self, hash: &TokenHash) -> Result<(), StoreError> {
        self.put("DELETE FROM tokens WHERE hash = ?1", [hash.as_slice()])
    }

    /// A job's own tokens are good for nothing from now on.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub fn revoke_of_job(&mut self, job: u64) -> Result<(), StoreError> {
        self.put("DELETE FROM tokens WHERE job = ?1", [signed(job)])
    }

    /// Keeps something about the store as a whole, such as which cluster it is of, or the version of its texts.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub fn meta(&mut self, key: &str, value: &str) -> Result<(), StoreError> {
        self.put("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", [key, value])
    }

    fn put(&mut self, sql: &str, values: impl Params) -> Result<(), StoreError> {
        self.transaction.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }
}

impl Store {
    /// At most `most` events after number `after`, the oldest first; of one job, if it is named.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn events(&self, after: u64, job: Option<u64>, most: u32) -> Result<Vec<Event>, StoreError> {
        let sql = match job {
            Some(_) => "SELECT * FROM events WHERE seq > ?1 AND job = ?2 ORDER BY seq LIMIT ?3",
            None => "SELECT * FROM events WHERE seq > ?1 AND ?2 IS NULL ORDER BY seq LIMIT ?3",
        };
        self.list(sql, params![signed(after), job.map(signed), most], event)
    }

    /// The latest events, at most `most`, the oldest first; of one job, if it is named.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn latest_events(&self, job: Option<u64>, most: u32) -> Result<Vec<Event>, StoreError> {
        let sql = match job {
            Some(_) => "SELECT * FROM events WHERE job = ?1 ORDER BY seq DESC LIMIT ?2",
            None => "SELECT * FROM events WHERE ?1 IS NULL ORDER BY seq DESC LIMIT ?2",
        };
        let mut events = self.list(sql, params![job.map(signed), most], event)?;
        events.reverse();
        Ok(events)
    }

    /// A round, if it is kept.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn round(&self, cycle: u64) -> Result<Option<Round>, StoreError> {
        let rounds = self.list("SELECT * FROM rounds WHERE cycle = ?1", [signed(cycle)], round)?;
        Ok(rounds.into_iter().next())
    }

    /// At most `most` rounds, the latest first.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn rounds(&self, most: u32) -> Result<Vec<Round>, StoreError> {
        self.list("SELECT * FROM rounds ORDER BY cycle DESC LIMIT ?1", [most], round)
    }

    /// A job that is over, if it is kept.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn ended_job(&self, id: u64) -> Result<Option<EndedJob>, StoreError> {
        let jobs = self.list("SELECT * FROM jobs WHERE id = ?1", [signed(id)], ended_job)?;
        Ok(jobs.into_iter().next())
    }

    /// At most `most` jobs that are over, the latest end first.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn ended_jobs(&self, most: u32) -> Result<Vec<EndedJob>, StoreError> {
        self.list("SELECT * FROM jobs ORDER BY ended DESC, id DESC LIMIT ?1", [most], ended_job)
    }

    /// What a token allows at this time; nothing if it is not known, or has ended.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn token(&self, hash: &TokenHash, now: u64) -> Result<Option<Token>, StoreError> {
        let tokens = self.list("SELECT * FROM tokens WHERE hash = ?1", [hash.as_slice()], token)?;
        let is_good = |token: &Token| token.expires.is_none_or(|expires| now < expires);
        Ok(tokens.into_iter().flatten().find(is_good))
    }

    /// All tokens, by their holder.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        Ok(self.list("SELECT * FROM tokens ORDER BY owner, hash", [], token)?.into_iter().flatten().collect())
    }

    /// What is kept of the store as a whole under this key.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn meta(&self, key: &str) -> Result<Option<String>, StoreError> {
        let found = self.list("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0))?;
        Ok(found.into_iter().next())
    }

    fn list<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnMut(&Found<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let found = statement.query_map(values, read)?.collect::<Result<_, _>>()?;
            Ok(found)
        })
    }
}

fn event(row: &Found<'_>) -> rusqlite::Result<Event> {
    Ok(Event {
        seq: row.get(0).map(unsigned)?,
        at: row.get(1).map(unsigned)?,
        actor: row.get(2)?,
        job: row.get::<_, Option<i64>>(3)?.map(unsigned),
        kind: row.get(4)?,
        text: row.get(5)?,
    })
}

fn round(row: &Found<'_>) -> rusqlite::Result<Round> {
    Ok(Round {
        cycle: row.get(0).map(unsigned)?,
        at: row.get(1).map(unsigned)?,
        seed: row.get(2).map(unsigned)?,
        value: row.get(3)?,
        bound: row.get(4)?,
        moved: row.get(5)?,
        plan: row.get(6)?,
    })
}

fn ended_job(row: &Found<'_>) -> rusqlite::Result<EndedJob> {
    Ok(EndedJob {
        id: row.get(0).map(unsigned)?,
        name: row.get(1)?,
        owner: row.get(2)?,
        submitted: row.get(3).map(unsigned)?,
        ended: row.get(4).map(unsigned)?,
        outcome: row.get(5)?,
        detail: row.get(6)?,
    })
}

/// Nothing for a role that is not known: such a token lets nobody in.
fn token(row: &Found<'_>) -> rusqlite::Result<Option<Token>> {
    let (hash, role): (TokenHash, String) = (row.get(0)?, row.get(1)?);
    let owner = row.get(2)?;
    let (job, attempt): (Option<i64>, Option<u32>) = (row.get(3)?, row.get(4)?);
    let (made, expires): (i64, Option<i64>) = (row.get(5)?, row.get(6)?);
    let (job, made, expires) = (job.map(unsigned), unsigned(made), expires.map(unsigned));
    Ok(Role::of(&role).map(|role| Token { hash, role, owner, job, attempt, made, expires }))
}
