//! What is wrong with a state is said, with the place.

use pollux_agent::{Agent, AgentState, ProfileEntry};
use pollux_api::agent_state::{self, AgentStateError, Problem};
use pollux_model::GpuType;
use serde_json::{Value, json};

use super::full;
use super::world::configs;

/// The message for a full state with the value at `pointer` (RFC 6901) replaced.
fn check_error(pointer: &str, value: &Value, expected: &str) {
    let mut json: Value = serde_json::from_str(&agent_state::to_json(&full())).unwrap();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match json.pointer_mut(parent).unwrap() {
        Value::Object(fields) if value == "(none)" => drop(fields.remove(key)),
        Value::Object(fields) => drop(fields.insert(key.to_owned(), value.clone())),
        items => items[key.parse::<usize>().unwrap()] = value.clone(),
    }
    let error = agent_state::from_json(&json.to_string()).unwrap_err();
    assert_eq!(error.to_string(), format!("agent state: {expected}"), "{pointer}");
}

fn check_text(text: &str, expected: &str) {
    assert_eq!(agent_state::from_json(text).unwrap_err().to_string(), expected, "{text}");
}

#[test]
fn what_is_no_state_of_this_version_is_refused() {
    check_text("", "the agent state is not JSON: EOF while parsing a value (line 1, column 1)");
    check_text(
        "{\n\"version\": 1e999}",
        "the agent state is not JSON: number out of range (line 2, column 16)",
    );
    check_text("[1]", "the agent state is not a JSON object");
    check_text("{}", "the agent state does not give its `version`");
    check_text(
        r#"{"version": 7, "field": "of a later time"}"#,
        "agent state version 7 is newer than this build understands (1)",
    );
    for (version, shown) in [("0", "`0`"), ("1.0", "`1.0`"), ("-1", "`-1`"), ("\"1\"", "`\"1\"`")] {
        check_text(
            &format!("{{\"version\": {version}}}"),
            &format!("agent state version {shown} is not one this build understands (1)"),
        );
    }
    check_text(r#"{"version": 1}"#, "agent state: missing field `progress`");
}

#[test]
fn fields_that_are_missing_or_unknown_are_named() {
    let none = json!("(none)");
    check_error("/noise/running/weight", &none, "`noise.running`: missing field `weight`");
    check_error("/profile/1/micro_batch", &none, "`profile[1]`: missing field `micro_batch`");
    check_error("/fits/t4/objective", &none, "`fits.t4`: missing field `objective`");
    check_error(
        "/noise/colour",
        &json!(3),
        "`noise.colour`: unknown field `colour`, expected one of `estimator`, `space`, `acted`, `steps_known`, \
         `n_measured`, `n_implausible`, `block`, `held_back`, `running`",
    );
    check_error("/fits/t4/params/table", &json!([]), "`fits.t4.params.table`: unknown field");
    check_error(
        "/a\nb",
        &json!(3),
        "`a\\nb`: unknown field `a\\nb`, expected one of `version`, `progress`, `samples`, \
         `learning_rate_factor`, `most_replicas`, `gpu_type`, `placement`, `plan`, `steps_since_change`, \
         `exploring`, `last_report_us`, `micro_max`, `noise`, `fits`, `profile`",
    );
}

#[test]
fn values_that_are_wrong_are_named() {
    check_error("/progress", &json!(-0.5), "`progress`: `-0.5` is not a number, zero or more");
    check_error("/progress", &Value::Null, "`progress`: invalid type: null, expected f64");
    check_error(
        "/learning_rate_factor",
        &json!(0.0),
        "`learning_rate_factor`: `0.0` is not a number above zero",
    );
    check_error("/samples", &json!(-1), "`samples`: invalid value: integer `-1`, expected u64");
    check_error(
        "/most_replicas",
        &json!(1_u64 << 32),
        "`most_replicas`: invalid value: integer `4294967296`, expected u32",
    );
    check_error("/gpu_type", &json!(4), "`gpu_type`: invalid type: integer `4`, expected a string");
    check_error("/micro_max/t4", &json!(0), "`micro_max.t4`: `0` is not a whole number, 1 or more");
    check_error("/noise", &json!([1, 2]), "`noise[0]`: expected value");
    check_error("/noise/acted", &json!(-3), "`noise.acted`: `-3.0` is not a number above zero");
    check_error("/noise/running/sqr", &Value::Null, "`noise.running.sqr`: invalid type: null, expected f64");
    check_error(
        "/noise/running/sqr",
        &json!("NaN"),
        "`noise.running.sqr`: invalid type: string \"NaN\", expected f64",
    );
    check_error(
        "/noise/running/weight",
        &json!(1.5),
        "`noise.running.weight`: `1.5` is not a number from 0 to 1",
    );
    check_error(
        "/noise/space",
        &json!("flat"),
        "`noise.space`: unknown variant `flat`, expected `plain` or `preconditioned`",
    );
    check_error("/noise/estimator", &json!(1), "`noise.estimator`: expected value");
    check_error(
        "/noise/n_measured",
        &json!(u64::MAX),
        "`noise.n_measured`: `18446744073709551615` is not a whole number up to 2^53",
    );
    let at = "`profile[0].micro_batch`";
    check_error("/profile/0/micro_batch", &json!(0), &format!("{at}: `0` is not a whole number, 1 or more"));
    check_error(
        "/profile/0/micro_batch",
        &json!(8.5),
        &format!("{at}: invalid type: floating point `8.5`, expected u32"),
    );
    check_error(
        "/profile/0/replicas",
        &json!(0),
        "`profile[0].replicas`: `0` is not a whole number, 1 or more",
    );
    check_error(
        "/profile/0/deviation",
        &json!(-1),
        "`profile[0].deviation`: `-1.0` is not a number, zero or more",
    );
    check_error(
        "/profile/0/log_optim",
        &json!(1e9),
        "`profile[0].log_optim`: `1000000000.0` is not the logarithm of a time",
    );
    check_error(
        "/profile/0/first",
        &json!([[1.0]]),
        "`profile[0].first[0]`: invalid length 1, expected a tuple of size 2",
    );
    check_error(
        "/fits/t4/params/gamma",
        &json!("x"),
        "`fits.t4.params.gamma`: invalid type: string \"x\", expected f64",
    );
    check_error(
        "/fits/t4/form",
        &json!("cubic"),
        "`fits.t4.form`: unknown variant `cubic`, expected one of `linear`, `roofline`, `table`",
    );
}

#[test]
fn values_that_contradict_each_other_are_named() {
    check_error(
        "/placement/nodes",
        &json!(99),
        &format!(
            "`placement`: 99 nodes are more than {} replicas; each node holds at least one",
            full().placement.unwrap().n_replicas()
        ),
    );
    check_error("/placement", &Value::Null, "`plan`: a batch means nothing without a `placement`");
    let again: Value = serde_json::from_str(&agent_state::to_json(&full())).unwrap();
    check_error(
        "/profile/1",
        &again["profile"][0],
        "`profile[1]`: the same configuration stands there before",
    );
    check_error(
        "/noise/running/weight",
        &json!(0),
        &format!("`noise.running.weight`: zero, although `n_blocks` is {}", full().noise.running.n_blocks),
    );
    check_error(
        "/fits/t4/coverage/micro_batch",
        &json!([9, 3]),
        "`fits.t4.coverage.micro_batch`: the range from 9 to 3 is empty",
    );
    check_error(
        "/fits/t4/params/gamma",
        &json!(11),
        "`fits.t4.params`: `gamma` must be finite and not negative, compute not all zero, exponents from 1 to 10",
    );
    check_error(
        "/fits/t4/undetermined",
        &json!(["gamma", "delta"]),
        "`fits.t4.undetermined[1]`: `delta` is not the name of a parameter",
    );
    check_error(
        "/fits/t4/worst_relative_error",
        &json!(-0.1),
        "`fits.t4.worst_relative_error`: `-0.1` is not a number, zero or more",
    );
    let plan = full().exploring.unwrap().before;
    let wrong = plan.atomic_batch() + 1;
    let error = Problem::Plan {
        global: plan.global().0,
        atomic_batch: wrong,
        accum_steps: plan.accum_steps(),
        replicas: full().placement.unwrap().n_replicas(),
    };
    check_error("/exploring/before/atomic_batch", &json!(wrong), &format!("`exploring.before`: {error}"));
    check_error("/plan/global", &json!(0), &{
        let plan = full().plan.unwrap();
        format!(
            "`plan`: 0 samples on {} replicas in {} accumulation steps and one more do not make \
             micro-batches of {}",
            full().placement.unwrap().n_replicas(),
            plan.accum_steps(),
            plan.atomic_batch()
        )
    });
}

/// Neither an agent nor the reader takes a state with something spoilt in it.
fn check_poisoned(part: &'static str, path: &str, poison: impl FnOnce(&mut AgentState)) {
    let mut state = full();
    poison(&mut state);
    let refused = Agent::restore(configs()[0].clone(), state.clone()).unwrap_err();
    assert_eq!(refused.part, part);
    assert_eq!(
        refused.to_string(),
        format!("`{part}` of the saved agent state is not a number an agent could have written")
    );
    match agent_state::from_json(&agent_state::to_json(&state)) {
        Err(AgentStateError::Field { path: found, .. }) => assert_eq!(found, path),
        other => panic!("{path}: {other:?}"),
    }
}

fn first(state: &mut AgentState) -> &mut ProfileEntry {
    state.profile.entries.values_mut().next().unwrap()
}

#[test]
fn a_poisoned_state_is_refused() {
    let t4 = || GpuType::new("t4");
    check_poisoned("noise", "noise.running.trace", |state| state.noise.running.trace = f64::NAN);
    check_poisoned("noise", "noise.running.weight", |state| state.noise.running.weight = 1.1);
    check_poisoned("noise", "noise.block.scale", |state| state.noise.block.scale = f64::INFINITY);
    check_poisoned("noise", "noise.held_back.sqr", |state| state.noise.held_back.sqr = f64::NEG_INFINITY);
    check_poisoned("noise", "noise.acted", |state| state.noise.acted = Some(0.0));
    check_poisoned("profile", "profile[0].log_optim", |state| first(state).log_optim = f64::NAN);
    check_poisoned("profile", "profile[0].first[0][1]", |state| {
        first(state).first = vec![(0.0, f64::NAN)];
    });
    check_poisoned("fits", "fits.t4.params", |state| {
        state.fits.get_mut(&t4()).unwrap().params.gamma = 0.5;
    });
    check_poisoned("fits", "fits.t4.params.beta_node", |state| {
        state.fits.get_mut(&t4()).unwrap().params.sync_node.beta = -1.0;
    });
    check_poisoned("learning_rate_factor", "learning_rate_factor", |state| {
        state.learning_rate_factor = 0.0;
    });
    check_poisoned("learning_rate_factor", "learning_rate_factor", |state| {
        state.learning_rate_factor = f64::INFINITY;
    });
    check_poisoned("progress", "progress", |state| state.progress = f64::NAN);
    check_poisoned("progress", "progress", |state| state.progress = -1.0);
}
