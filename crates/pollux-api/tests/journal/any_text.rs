//! No text makes a reader panic, nor a scheduler restored from what was read.

use std::sync::LazyLock;

use pollux_api::journal::{self, JournalRow};
use pollux_core::{Config, Generation, Input, NodeSpec, Scheduler};
use pollux_model::{GpuType, JobId, NodeId, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::Value;

use super::acts::{acts, config};
use super::mutate::mutate;
use super::{cases, run};

/// States and inputs of some runs, as text.
static WRITTEN: LazyLock<(Vec<String>, Vec<String>)> = LazyLock::new(|| {
    let mut runner = TestRunner::new(cases(1));
    let (mut states, mut inputs) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let config = config().new_tree(&mut runner).unwrap().current();
        let run = run(config, acts().new_tree(&mut runner).unwrap().current());
        states.push(journal::state_to_json(&run.scheduler.state()));
        inputs.extend(run.journal.iter().map(|(_, input, _)| journal::input_to_json(input)));
    }
    (states, inputs)
});

fn value() -> impl Strategy<Value = Option<Value>> {
    let words = ["inf", "-inf", "nan", "waiting", "running", "tick", "ready", ""].map(Value::from);
    let numbers = [0_u64, 1, 2, 3, 7, 60_000_000, u64::from(u32::MAX), 1 << 53, u64::MAX].map(Value::from);
    prop::option::of(prop_oneof![
        select(words.to_vec()),
        select(numbers.to_vec()),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        Just(Value::Array(vec![])),
    ])
}

/// Lets some things happen, to the end of time.
fn drive(scheduler: &mut Scheduler) {
    let now = |secs| Timestamp::from_secs(secs);
    let node = NodeSpec { gpu_type: GpuType::new("t4"), gpus: 8 };
    let mut told = vec![(now(100_000), Input::Tick), (now(100_000), Input::NodeJoined(NodeId(77), node))];
    for job in 0..8 {
        told.push((now(100_060), Input::JobTraining(JobId(job), Generation(1))));
        told.push((now(100_070), Input::JobStopped(JobId(job), Generation(1))));
        told.push((now(100_080), Input::JobFailed(JobId(job), Generation(2))));
    }
    told.extend((0..5).map(|node| (now(200_000), Input::NodeLost(NodeId(node)))));
    told.extend((0..8).map(|job| (now(300_000), Input::JobCancelled(JobId(job)))));
    told.push((Timestamp::from_micros(u64::MAX), Input::Tick));
    for (now, input) in told {
        let _ = scheduler.handle(now, input);
    }
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*|[{}\\[\\]\",:0-9.eE\\-truefalsn \\\\]{0,80}") {
        let _ = JournalRow::from_json(&text);
        let _ = journal::state_from_json(&text);
        let _ = journal::plan_from_json(&text);
        let _ = journal::config_from_json(&text);
        let _ = journal::effects_from_json(&text);
        let _ = journal::input_from_json(&text);
    }

    #[test]
    fn other_inputs_are_read_or_refused(which: Index, turns in vec(any::<Index>(), 1..6), to in value()) {
        let mut json = serde_json::from_str(which.get(&WRITTEN.1).as_str()).unwrap();
        mutate(&mut json, &turns, to);
        match journal::input_from_json(&json.to_string()) {
            Ok(input) => super::check_input(&input),
            Err(error) => prop_assert!(!error.to_string().contains('\n'), "{error}"),
        }
    }

    #[test]
    fn other_states_are_refused_or_can_be_lived_in(
        which: Index,
        turns in vec(any::<Index>(), 2..8),
        to in value(),
    ) {
        let mut json: Value = serde_json::from_str(which.get(&WRITTEN.0).as_str()).unwrap();
        mutate(&mut json["value"], &turns, to);
        match journal::state_from_json(&json.to_string()) {
            Ok(state) => {
                let again = journal::state_from_json(&journal::state_to_json(&state)).unwrap();
                prop_assert_eq!(format!("{again:?}"), format!("{state:?}"));
                if let Ok(mut scheduler) = Scheduler::restore(Config::default(), state) {
                    drive(&mut scheduler);
                }
            }
            Err(error) => prop_assert!(!error.to_string().contains('\n'), "{error}"),
        }
    }
}
