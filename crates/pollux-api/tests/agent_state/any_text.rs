//! No text makes the reader panic.

use pollux_agent::Agent;
use pollux_api::agent_state;
use proptest::prelude::*;
use serde_json::Value;

use super::mutate::mutate;
use super::world::{bits, configs, drive};
use super::{SAVED, config, read};

/// What is read can be restored, written and read again, and driven on.
fn check_no_panic(which: usize, text: &str) -> Result<(), TestCaseError> {
    match agent_state::from_json(text) {
        Err(error) => prop_assert!(!error.to_string().contains('\n'), "{error}"),
        Ok(state) => {
            prop_assert_eq!(bits(&read(&agent_state::to_json(&state))), bits(&state));
            prop_assert_eq!(&read(&agent_state::to_json(&state)), &state);
            let mut agent = Agent::restore(configs()[which].clone(), state).unwrap();
            drive(&mut agent, 340, 420);
        }
    }
    Ok(())
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop_oneof![Just(0.0), Just(-0.0), Just(f64::MAX), Just(f64::MIN_POSITIVE), Just(-1.0), Just(1.0)]
            .prop_map(Value::from),
        prop_oneof![Just(0), Just(1), Just(2), Just(u64::from(u32::MAX)), Just(1 << 53), Just(u64::MAX)]
            .prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,9}".prop_map(Value::from),
        prop_oneof![Just("linear"), Just("table"), Just("pairs"), Just("plain"), Just("gamma")]
            .prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn does_not_make_the_reader_panic(text in "\\PC*|[{}\\[\\]\",:0-9.eE\\-truefalsn \\\\]{0,80}") {
        check_no_panic(0, &text)?;
        check_no_panic(0, &format!("{{\"version\":1,{text}}}"))?;
    }

    #[test]
    fn near_a_states_does_not_make_the_reader_panic(
        which: prop::sample::Index,
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..4, "[{}\\[\\]\",:0-9.eE\\-tfn]{0,3}"), 1..4),
    ) {
        let (config, _, state) = which.get(&SAVED);
        let mut text = agent_state::to_json(state);
        for (place, length, replacement) in edits {
            let from = place.index(text.len() + 1);
            text.replace_range(from..(from + length).min(text.len()), &replacement);
        }
        check_no_panic(*config, &text)?;
    }

    #[test]
    fn of_other_values_does_not_make_the_reader_panic(
        which: prop::sample::Index,
        turns in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
        to in prop::option::of(value()),
    ) {
        let (config, _, state) = which.get(&SAVED);
        let mut json = serde_json::from_str(&agent_state::to_json(state)).unwrap();
        mutate(&mut json, &turns, to);
        check_no_panic(*config, &json.to_string())?;
    }
}
