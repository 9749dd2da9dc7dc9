//! A live scheduler's journal through the simulator's shell: the same inputs at the same times lead to the same effects.

use std::collections::BTreeMap;

use pollux_api::journal::JournalEffect;
use pollux_api::{PolicySpecError, parse_policy};
use pollux_core::{Config, Effect, Input, Refused};
use pollux_model::Timestamp;
use pollux_policy::{AnyPolicy, Stopped};

use crate::shell::{Shell, answered};

/// A row of a journal.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its number.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// What happened.
    pub input: Input,
    /// What it led to then.
    pub effects: Vec<JournalEffect>,
    /// Where a service began: its settings, and who plans.
    pub began: Option<(Config, String)>,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Rows that were gone through.
    pub rows: u64,
    /// Plans that were made anew.
    pub plans: u64,
    /// Plans whose question is not in the journal.
    pub unplanned: u64,
    /// Where something came out otherwise, in words.
    pub differences: Vec<String>,
}

/// A journal that cannot be gone through.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReplayError {
    /// Its beginning is gone.
    #[error(
        "the journal begins with row {0}: what was before it is not kept, and a simulation begins with nothing"
    )]
    Headless(u64),
    /// Its policy is not known here.
    #[error("row {0}: {1}")]
    Policy(u64, PolicySpecError),
    /// The scheduler does not take what it took then.
    #[error("row {0}: the scheduler refused it: {1}")]
    Refused(u64, Refused),
}

/// Goes through a journal from its first row. Plans are the simulator's own, handed in when the journal says that the
/// live one's were.
pub fn replay(rows: impl IntoIterator<Item = Recorded>) -> Result<Replayed, ReplayError> {
    let mut shell = Shell::new(Config::default());
    let mut policy: Option<Box<dyn AnyPolicy>> = None;
    let mut asked: BTreeMap<u64, Effect> = BTreeMap::new();
    let mut replayed = Replayed::default();
    for row in rows {
        if replayed.rows == 0 && row.seq > 1 {
            return Err(ReplayError::Headless(row.seq));
        }
        replayed.rows += 1;
        if let Some((config, name)) = row.began {
            shell.reconfigure(config);
            policy = Some(parse_policy(&name).map_err(|error| ReplayError::Policy(row.seq, error))?);
            asked.clear();
        }
        let input = match row.input {
            Input::PlanReady(cycle, plan) => {
                // A deadline that cut a plan short is a budget of as much work as was done.
                let work = (plan.work.stopped == Stopped::Deadline).then_some(plan.work.units);
                let question = asked.remove(&cycle.0).zip(policy.as_deref());
                let answer = question.map(|(effect, policy)| answered(effect, policy, &|_| None, work));
                if let Some(Ok(Input::PlanReady(cycle, mut made))) = answer {
                    replayed.plans += 1;
                    if work.is_some() {
                        made.work = plan.work;
                    }
                    if made != plan {
                        let text = format!("row {}: the plan of round {} is another", row.seq, cycle.0);
                        replayed.differences.push(text);
                    }
                    Input::PlanReady(cycle, made)
                } else {
                    replayed.unplanned += 1;
                    Input::PlanReady(cycle, plan)
                }
            }
            other => other,
        };
        let effects = shell.tell(row.at, input).map_err(|why| ReplayError::Refused(row.seq, why))?;
        if effects.iter().map(JournalEffect::from).ne(row.effects) {
            replayed.differences.push(format!("row {}: what it led to is another", row.seq));
        }
        for effect in effects {
            if let Effect::Solve { cycle, .. } = &effect {
                asked.insert(cycle.0, effect);
            }
        }
    }
    Ok(replayed)
}
