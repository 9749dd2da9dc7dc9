//! A journal gone through again: every decision is made anew and compared.

use std::collections::BTreeMap;
use std::path::Path;

use pollux_api::journal::{self, JournalEffect};
use pollux_api::parse_policy;
use pollux_core::{Effect, Input};
use pollux_policy::{AnyPolicy, Plan, Seed, Snapshot, Stopped, Terms};

use super::note::Note;
use super::resume::{Resumed, resume_before};
use crate::store::{Row, Store, StoreError};

/// Rows that are read at once.
const CHUNK: u32 = 1_000;

/// What a replay found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Rows that were gone through.
    pub rows: u64,
    /// The row after which it began: 0, or that of the oldest snapshot.
    pub after: u64,
    /// Plans that were made anew.
    pub plans: u64,
    /// Plans whose question is not in the journal any more, or whose policy is not known.
    pub unplanned: u64,
    /// The first differences, in words: at most ten.
    pub differences: Vec<String>,
    /// All of them.
    pub n_differences: u64,
}

/// Goes through the journal of a store that no service has open.
pub fn replay(path: &Path) -> Result<Replayed, StoreError> {
    let store = Store::open(path)?;
    let (mut state, mut replayed) = resume_before(&store)?;
    let mut policy: Option<Box<dyn AnyPolicy>> = None;
    let mut asked: BTreeMap<u64, (Box<Snapshot>, Seed)> = BTreeMap::new();
    loop {
        let rows = store.rows(state.seq + 1, CHUNK)?;
        if rows.is_empty() {
            return Ok(replayed);
        }
        for row in rows {
            go_through(&mut state, &row, &mut policy, &mut asked, &mut replayed)
                .map_err(|detail| StoreError::Corrupt { path: path.to_owned(), detail })?;
        }
    }
}

fn go_through(
    state: &mut Resumed,
    row: &Row,
    policy: &mut Option<Box<dyn AnyPolicy>>,
    asked: &mut BTreeMap<u64, (Box<Snapshot>, Seed)>,
    replayed: &mut Replayed,
) -> Result<(), String> {
    let at_row = |error: &dyn std::fmt::Display| format!("row {}: {error}", row.seq);
    let note: Note = serde_json::from_str(&row.note).map_err(|error| at_row(&error))?;
    if let Note::Began { policy: name, .. } = &note {
        *policy = parse_policy(name).ok();
        asked.clear();
    }
    if let Input::PlanReady(cycle, plan) =
        journal::input_from_json(&row.input).map_err(|error| at_row(&error))?
    {
        match asked.remove(&cycle.0).zip(policy.as_deref()) {
            Some(((snapshot, seed), policy)) => {
                replayed.plans += 1;
                if again(policy, &snapshot, seed, &plan) != plan {
                    replayed.differ(format!("row {}: the plan of round {} is another", row.seq, cycle.0));
                }
            }
            None => replayed.unplanned += 1,
        }
    }
    let recorded = journal::effects_from_json(&row.effects).map_err(|error| at_row(&error))?;
    let effects = state.take(row).map_err(|error| at_row(&error))?;
    if effects.iter().map(JournalEffect::from).ne(recorded) {
        replayed.differ(format!("row {}: what it led to is another", row.seq));
    }
    for effect in effects {
        if let Effect::Solve { cycle, snapshot, seed } = effect {
            asked.insert(cycle.0, (snapshot, seed));
        }
    }
    replayed.rows += 1;
    Ok(())
}

/// The plan made again, with as much work as it was given then.
fn again(policy: &dyn AnyPolicy, snapshot: &Snapshot, seed: Seed, plan: &Plan) -> Plan {
    let work = (plan.work.stopped == Stopped::Deadline).then_some(plan.work.units);
    let mut made = policy.plan(snapshot, &Terms { seed, work, deadline: None });
    if work.is_some() {
        // A deadline is no budget, but both end at the same place.
        made.work = plan.work;
    }
    made
}

impl Replayed {
    fn differ(&mut self, what: String) {
        self.n_differences += 1;
        if self.differences.len() < 10 {
            self.differences.push(what);
        }
    }
}
