//! Journals: written and read they are the same, a replay gives the same scheduler, and no text makes a reader panic.

#[path = "../../pollux-core/tests/properties/acts.rs"]
mod acts;
#[path = "journal/any_text.rs"]
mod any_text;
#[path = "../../pollux-core/tests/common/mod.rs"]
mod common;
#[path = "../../pollux-core/tests/properties/ledger.rs"]
mod ledger;
mod mutate;
#[path = "journal/plans.rs"]
mod plans;
#[expect(dead_code, reason = "shared with the tests of the core")]
#[path = "../../pollux-core/tests/properties/run.rs"]
mod run;

use acts::{Act, acts, config};
use pollux_api::journal::{self, JournalEffect, JournalRow};
use pollux_core::{Config, Input, JobEdit, Scheduler};
use pollux_model::{JobId, Timestamp};
use pollux_policy::Priority;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;
use run::Run;
use serde_json::json;

fn cases(cases: u32) -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(7);
    ProptestConfig { failure_persistence: None, rng_seed, ..ProptestConfig::with_cases(cases) }
}

fn run(config: Config, acts: Vec<Act>) -> Run {
    let mut run = Run::new(config);
    for act in acts {
        run.act(act);
    }
    run
}

/// The scheduler as read from its written state: the same to the last word.
fn check_restored(scheduler: &Scheduler, config: Config) -> Scheduler {
    let json = journal::state_to_json(&scheduler.state());
    let state = journal::state_from_json(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(journal::state_to_json(&state), json);
    let config = journal::config_from_json(&journal::config_to_json(&config)).unwrap();
    let restored = Scheduler::restore(config, state).unwrap();
    assert_eq!(format!("{restored:?}"), format!("{scheduler:?}"));
    restored
}

fn check_input(input: &Input) {
    let json = journal::input_to_json(input);
    let again = journal::input_from_json(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(format!("{again:?}"), format!("{input:?}"), "{json}");
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn a_replay_gives_the_same_scheduler(config in config(), acts in acts(), cuts: [Index; 3]) {
        let run = run(config, acts);
        // The journal of a live service: what was not refused, as text.
        let mut scheduler = Scheduler::new(config);
        let mut rows = Vec::new();
        for (now, input, _) in &run.journal {
            let Ok(effects) = scheduler.handle(*now, input.clone()) else { continue };
            let effects: Vec<JournalEffect> = effects.iter().map(JournalEffect::from).collect();
            let (seq, note) = (rows.len() as u64 + 1, json!({"actor": "alice", "n": [1, 2.5, null]}));
            rows.push(JournalRow { seq, at: *now, input: input.clone(), note, effects }.to_json());
        }
        let cuts = cuts.map(|cut| cut.index(rows.len()));
        let mut again = Scheduler::new(config);
        for (at, text) in rows.iter().enumerate() {
            if cuts.contains(&at) {
                again = check_restored(&again, config);
            }
            let row = JournalRow::from_json(text).unwrap();
            prop_assert_eq!(&row.to_json(), text);
            let effects = again.handle(row.at, row.input).unwrap();
            prop_assert_eq!(effects.iter().map(JournalEffect::from).collect::<Vec<_>>(), row.effects.clone());
            prop_assert_eq!(journal::effects_from_json(&journal::effects_to_json(&effects)).unwrap(), row.effects);
        }
        prop_assert_eq!(format!("{again:?}"), format!("{:?}", run.scheduler));
        check_restored(&again, config);
    }

    #[test]
    fn every_input_is_kept(config in config(), acts in acts()) {
        for (_, input, _) in &run(config, acts).journal {
            check_input(input);
        }
    }
}

#[test]
fn lifting_a_limit_is_not_leaving_it() {
    for max_gpus in [None, Some(None), Some(Some(4))] {
        let priority = Some(Priority::High);
        check_input(&Input::JobEdited(JobId(1), JobEdit { max_gpus, priority, ..JobEdit::default() }));
    }
    let lifted = Input::JobEdited(JobId(1), JobEdit { max_gpus: Some(None), ..JobEdit::default() });
    let json = r#"{"job_edited":{"job":1,"edit":{"max_gpus":"unlimited"}}}"#;
    assert_eq!(journal::input_to_json(&lifted), json);
}

#[test]
fn version_1_stays_readable() {
    for line in include_str!("journal/version-1.jsonl").lines() {
        let row = JournalRow::from_json(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(row.to_json(), line);
    }
    let state = journal::state_from_json(include_str!("journal/state-1.json").trim_end()).unwrap();
    let scheduler = Scheduler::restore(Config::default(), state).unwrap();
    assert_eq!(scheduler.active().count(), 2);
}

fn check_refused(json: &str, expected: &str) {
    assert_eq!(JournalRow::from_json(json).unwrap_err().to_string(), expected, "{json}");
}

#[test]
fn what_is_no_row_is_refused() {
    check_refused("", "journal: EOF while parsing a value");
    check_refused("{}", "journal: missing field `version`");
    check_refused(
        r#"{"version":2,"value":{"of":"later"}}"#,
        "journal format 2 is newer than this build understands (1): use the build that wrote it, or a later one",
    );
    check_refused(r#"{"version":0}"#, "journal: `version`: `0` was never a version");
    check_refused(
        r#"{"version":1,"value":{"seq":1,"at":0,"input":{"job_cancelled":{"job":-1}},"effects":[]}}"#,
        "journal: `value.input.job_cancelled.job`: invalid value: integer `-1`, expected u64",
    );
    let start = r#"{"start":{"job":1,"generation":1,"allocation":{"x":1}}}"#;
    check_refused(
        &format!(r#"{{"version":1,"value":{{"seq":1,"at":0,"input":"tick","effects":[{start}]}}}}"#),
        "journal: `effects[0].allocation`: `x`: not the number of a node",
    );
    let row = JournalRow::from_json(r#"{"version":1,"value":{"seq":3,"at":9,"input":"tick","effects":[]}}"#);
    assert_eq!(row.map(|row| (row.seq, row.at, row.note)), Ok((3, Timestamp::from_micros(9), json!(null))));
}
