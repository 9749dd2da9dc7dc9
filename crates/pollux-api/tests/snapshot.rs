//! No text makes the reader of snapshots panic, and what it reads it can write.

mod mutate;

use std::sync::LazyLock;

use mutate::mutate;
use pollux_api::snapshot::NamedSnapshot;
use pollux_api::{explain, plan_file::PlanFile};
use pollux_policy::{Terms, policies};
use proptest::prelude::*;
use serde_json::{Value, json};

static EXAMPLE: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../../examples/snapshot.json")).unwrap());

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Errors are one line; what is read is written and read again as it was.
fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    match NamedSnapshot::read("any", bytes) {
        Err(error) => {
            let said = error.to_string();
            prop_assert!(said.starts_with("any") && !said.chars().any(char::is_control), "{said:?}");
            prop_assert!(error.hint().is_none_or(|hint| !hint.chars().any(char::is_control)));
        }
        Ok(named) => {
            let json = named.to_json();
            let again = NamedSnapshot::read("again", json.as_bytes());
            let again = again.map_err(|error| TestCaseError::fail(format!("{error}: {json}")))?;
            prop_assert_eq!(format!("{:?}", &again), format!("{:?}", &named));
            prop_assert_eq!(again.to_json(), json);
            named.remarks();
        }
    }
    Ok(())
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop_oneof![Just(0.0), Just(-0.0), Just(f64::MAX), Just(f64::MIN_POSITIVE), Just(-1.0), Just(2.5)]
            .prop_map(Value::from),
        (0_u64..5).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,5}|[a-c]".prop_map(Value::from),
        prop::sample::select(vec![
            "elastic",
            "restarting",
            "high",
            "inf",
            "table",
            "vision",
            "t4",
            "draining"
        ])
        .prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let keys = "rigid|a100|t4|a100-0|t4-0|count|name|gpus|[a-z]{0,3}|\\PC{0,2}";
    leaf().prop_recursive(3, 12, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys, inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(config(1_000))]

    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>, text in "[{}\\[\\]\",:0-9.eE\\-truefalsn \\\\]{0,80}") {
        check(&bytes)?;
        check(text.as_bytes())?;
        check(format!("{{\"nodes\":[],\"jobs\":[],{text}}}").as_bytes())?;
    }

    #[test]
    fn no_text_near_a_snapshots_makes_it_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..4, "[{}\\[\\]\",:0-9.eE\\-tfn]{0,3}"), 1..4),
    ) {
        let mut text = EXAMPLE.to_string();
        for (place, length, replacement) in edits {
            let from = place.index(text.len() + 1);
            text.replace_range(from..(from + length).min(text.len()), &replacement);
        }
        check(text.as_bytes())?;
    }

    #[test]
    fn no_other_values_make_it_panic(
        changes in prop::collection::vec(
            (prop::collection::vec(any::<prop::sample::Index>(), 1..7), prop::option::of(value())), 1..3),
    ) {
        let mut json = EXAMPLE.clone();
        for (turns, to) in changes {
            mutate(&mut json, &turns, to);
        }
        check(json.to_string().as_bytes())?;
    }

    #[test]
    fn numbers_come_back_bit_for_bit(
        age in 0.0_f64..1e9, attained in 0.0_f64..1e12, weight in 1e-9_f64..1e9, speed in 1e-9..1e9, price in 0.0..1e3,
        noise in 0.0..1e9, beta in 1e-9..1.0, restarts in 0_u32..1_000,
    ) {
        let mut json = EXAMPLE.clone();
        json["gpu_speeds"]["t4"] = json!(speed);
        json["prices"] = json!({"t4": price});
        let job = &mut json["jobs"][0];
        (job["age_s"], job["attained_gpu_s"], job["weight"]) = (json!(age), json!(attained), json!(weight));
        job["restarts"] = json!(restarts);
        job["models"]["t4"]["noise_scale"] = json!(noise);
        job["models"]["t4"]["params"]["beta_grad"] = json!(beta);
        check(json.to_string().as_bytes())?;
        let named = NamedSnapshot::read("any", json.to_string().as_bytes()).unwrap();
        let read = &named.snapshot.jobs()[0];
        prop_assert_eq!((read.attained.to_bits(), read.weight.to_bits()), (attained.to_bits(), weight.to_bits()));
        prop_assert!((read.age.as_secs_f64() - age).abs() <= 1e-6);
    }
}

#[test]
fn every_policy_plans_the_example_and_nothing_at_all() {
    let nothing = json!({"nodes": [], "jobs": []});
    let no_nodes = json!({"nodes": [], "jobs": [{"name": "a"}, {"name": "b", "freedom": {"rigid": 2}}]});
    let no_jobs = json!({"nodes": [{"name": "n", "gpus": 8}], "jobs": []});
    for snapshot in [&*EXAMPLE, &nothing, &no_nodes, &no_jobs] {
        let named = NamedSnapshot::read("any", snapshot.to_string().as_bytes()).unwrap();
        for policy in policies() {
            let plan = policy.plan(&named.snapshot, &Terms::seeded(1));
            assert_eq!(plan.jobs.len(), named.snapshot.jobs().len());
            let name = policy.about().name;
            let file = PlanFile { plan: &plan, names: &named.names, policy: name, seed: 1, fairness: None };
            let json: Value = serde_json::from_str(&file.to_json()).unwrap();
            for (job, written) in plan.jobs.iter().zip(json["jobs"].as_array().unwrap()) {
                assert_eq!(written["reason"]["text"], explain::sentence(job, &named.names));
                assert_eq!(written["name"], named.names.job(job.job).as_ref());
            }
        }
    }
}
