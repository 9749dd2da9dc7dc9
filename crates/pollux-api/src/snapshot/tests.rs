use std::time::Duration;

use pollux_model::{Allocation, GpuType, NodeId};
use pollux_policy::{Freedom, GroupId, NodeState, Priority, Request};
use serde_json::{Value, json};

use super::NamedSnapshot;

const EXAMPLE: &str = include_str!("../../../../examples/snapshot.json");

fn example() -> Value {
    serde_json::from_str(EXAMPLE).unwrap()
}

fn read(value: &Value) -> NamedSnapshot {
    NamedSnapshot::read("s.json", value.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

/// The same in every field: curves that nobody asked yet print as their models.
fn check_round_trip(named: &NamedSnapshot) {
    let json = named.to_json();
    let again =
        NamedSnapshot::read("again", json.as_bytes()).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(format!("{again:?}"), format!("{named:?}"));
    assert_eq!(again.to_json(), json);
}

/// The example with one value put in place of another.
fn check(pointer: &str, bad: Value, expected: &str) {
    check_hint(pointer, bad, expected, None);
}

fn check_hint(pointer: &str, bad: Value, expected: &str, hint: Option<&str>) {
    let mut value = example();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match value.pointer_mut(parent).unwrap() {
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = bad,
        object => object[key] = bad,
    }
    let error = NamedSnapshot::read("s.json", value.to_string().as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), format!("s.json: {expected}"));
    if hint.is_some() {
        assert_eq!(error.hint().as_deref(), hint, "{error}");
    }
}

#[test]
fn the_example_is_what_it_says() {
    let NamedSnapshot { snapshot, names } = read(&example());
    let cluster = snapshot.cluster();
    let nodes: Vec<_> =
        cluster.nodes.iter().map(|node| (names.node(node.id), node.gpus - node.others)).collect();
    let nodes: Vec<_> = nodes.iter().map(|(name, free)| (name.as_ref(), *free)).collect();
    assert_eq!(nodes, [("a100-0", 4), ("a100-1", 4), ("t4-0", 4), ("t4-1", 3)]);
    assert_eq!(cluster.groups[1].caps[&GpuType::new("a100")], 6);
    assert_eq!(cluster.speeds[&GpuType::new("a100")].to_bits(), 3_f64.to_bits());
    let [resnet, bert, detector, legacy, fresh] = snapshot.jobs() else { panic!() };
    assert_eq!(resnet.holds, Allocation::whole([(NodeId(0), 2)]));
    assert_eq!((resnet.knows.learned.most_gpus, resnet.knows.remaining), (4, Some(9e6)));
    assert_eq!(resnet.knows.learned.curves.iter().count(), 2);
    assert_eq!((bert.priority, bert.group, bert.max_gpus), (Priority::High, Some(GroupId(1)), Some(6)));
    assert_eq!((bert.age, bert.restart_cost), (Duration::from_hours(4), Duration::from_secs(45)));
    assert!(detector.is_pinned() && !legacy.is_pinned());
    assert_eq!(detector.knows.learned.most_gpus, 2, "what it holds, unless given");
    let fixed = *detector.knows.learned.curves.on(&GpuType::new("t4")).unwrap().model().limits();
    assert_eq!((fixed.initial().0, fixed.min().0, fixed.max().0), (16, 32, 32));
    assert_eq!(legacy.freedom, Freedom::Rigid { gpus: 2 });
    assert_eq!((fresh.restart_cost, fresh.min_gpus), (Duration::from_secs(30), 1));
    assert!(fresh.knows.learned.curves.iter().next().is_none() && !fresh.has_run());
    assert_eq!((fresh.knows.request, &fresh.knows.oracle), (None, &None));
}

#[test]
fn the_example_comes_back() {
    let named = read(&example());
    check_round_trip(&named);
    assert!(named.remarks().is_empty());
}

#[test]
fn the_documented_example_is_a_snapshot() {
    let formats = include_str!("../../../../docs/reference/formats.md");
    let (_, section) = formats.split_once("## Snapshot").unwrap();
    let (_, example) = section.split_once("```json\n").unwrap();
    let named = NamedSnapshot::read("formats.md", example.split_once("```").unwrap().0.as_bytes());
    check_round_trip(&named.unwrap_or_else(|error| panic!("{error}")));
}

#[test]
fn every_key_can_be_given() {
    let model = json!({
        "form": "table", "params": {
            "table": [[1, 0.5], [4, 0.75]], "alpha_local": 0, "beta_local": 0, "alpha_node": 0.25, "beta_node": 0,
            "gamma": 1,
        },
        "noise_scale": "inf", "undetermined": ["gamma"], "fit": {"any": "thing"}, "comment": "pasted",
        "batch": {"initial": 8, "min": 16, "max": 32, "micro_min": 2, "micro_max": 4, "max_accum_steps": 3,
                  "accumulate_alone": true},
    });
    let value = json!({
        "version": 1,
        "nodes": [{"name": "n", "gpus": 2, "used_by_others": 1, "state": "draining"},
                  {"name": "m", "gpus": 0, "state": "cordoned"}],
        "groups": [{"name": "team", "parent": "all", "caps": {"gpu": 1}}, {"name": "all"}],
        "prices": {"gpu": 0.125},
        "jobs": [{
            "name": "j", "group": "team", "priority": "low", "weight": 2.5, "min_gpus": 1, "max_gpus": 3,
            "gpu_types": ["gpu"], "freedom": "restarting", "holds": {"n": 1}, "age_s": 0.25,
            "attained_gpu_s": 1e-3, "restarts": 4, "restart_cost_s": 12.5, "remaining_samples": 0, "most_gpus": 0,
            "request_gpus": 3,
            "models": {"gpu": model},
        }],
    });
    let named = read(&value);
    check_round_trip(&named);
    let cluster = named.snapshot.cluster();
    assert_eq!((cluster.nodes[0].state, cluster.nodes[1].state), (NodeState::Draining, NodeState::Cordoned));
    assert_eq!((cluster.groups[0].parent, cluster.nodes[0].gpu_type.name()), (Some(GroupId(1)), "gpu"));
    assert_eq!(named.snapshot.carried().prices[&GpuType::default()].to_bits(), 0.125_f64.to_bits());
    let job = &named.snapshot.jobs()[0];
    assert_eq!((job.age, job.knows.learned.most_gpus), (Duration::from_millis(250), 0));
    assert_eq!(job.knows.request, Some(Request { gpus: 3 }));
    let limits = *job.knows.learned.curves.on(&GpuType::default()).unwrap().model().limits();
    assert_eq!((limits.min().0, limits.max_accum_steps(), limits.accumulates_alone()), (16, 3, true));
}

#[test]
fn nothing_is_no_error() {
    let nothing = read(&json!({"nodes": [], "jobs": []}));
    check_round_trip(&nothing);
    assert!(nothing.snapshot.jobs().is_empty());
    let waiting = read(&json!({"nodes": [], "jobs": [{"name": "a", "gpu_types": ["h100"]}]}));
    check_round_trip(&waiting);
    assert!(waiting.remarks().is_empty());
}

#[test]
fn types_that_no_node_has_are_remarked_upon() {
    let mut value = example();
    value["jobs"][1]["gpu_types"] = json!(["a10"]);
    value["gpu_speeds"]["tpu"] = json!(1);
    assert_eq!(
        read(&value).remarks(),
        [
            "no node has GPUs of type `a10`, which job `bert` asks for; did you mean `a100`?",
            "no node has GPUs of type `tpu`, which `gpu_speeds` names",
        ]
    );
}

#[test]
fn unknown_keys_and_names_are_refused() {
    check_hint("/joobs", json!([]), "`joobs` is not a key of a snapshot", Some("did you mean `jobs`?"));
    check_hint(
        "/nodes/0/gpu",
        json!(4),
        "node `a100`: `nodes[0].gpu` is not a key of a node",
        Some("did you mean `gpus`?"),
    );
    check_hint(
        "/jobs/1/prority",
        json!("low"),
        "job `bert`: `jobs[1].prority` is not a key of a job",
        Some("did you mean `priority`?"),
    );
    check_hint(
        "/groups/0/quota",
        json!({}),
        "group `vision`: `groups[0].quota` is not a key of a group",
        Some("known keys are `name`, `parent`, `entitled`, `caps`, `comment`"),
    );
    check_hint(
        "/jobs/1/holds",
        json!({"a1001": 1}),
        "job `bert`: `jobs[1].holds`: there is no node `a1001`",
        Some("did you mean `a100-1`?"),
    );
    check_hint(
        "/jobs/1/holds",
        json!({"elsewhere": 1}),
        "job `bert`: `jobs[1].holds`: there is no node `elsewhere`",
        Some("known nodes are `a100-0`, `a100-1`, `t4-0`, `t4-1`"),
    );
    check_hint(
        "/jobs/0/group",
        json!("vison"),
        "job `resnet`: `jobs[0].group`: there is no group `vison`",
        Some("did you mean `vision`?"),
    );
    check("/groups/0/parent", json!("all"), "group `vision`: `groups[0].parent`: there is no group `all`");
    check_hint(
        "/jobs/0/models/a100/params/alpha_gard",
        json!(1),
        "job `resnet`: `jobs[0].models.a100.params.alpha_gard` is not a parameter of the linear form",
        Some("did you mean `alpha_grad`?"),
    );
    check(
        "/jobs/0/models/a100/batch/maximum",
        json!(1),
        "job `resnet`: `jobs[0].models.a100.batch.maximum` is not a key of batch limits",
    );
}

#[test]
fn bad_values_are_named() {
    let job = |key: &str, bad: Value, shown: &str, expected: &str| {
        check(
            &format!("/jobs/0/{key}"),
            bad,
            &format!("job `resnet`: `jobs[0].{}`: `{shown}` is not {expected}", key.replace('/', ".")),
        );
    };
    let (count, from_one) = ("a whole number from 0 to 1000000000", "a whole number from 1 to 1000000000");
    job("restarts", json!(-1), "-1", count);
    job("restarts", json!(1.5), "1.5", count);
    job("most_gpus", json!(4_000_000_000_u64), "4000000000", count);
    job("min_gpus", json!(0), "0", from_one);
    job("max_gpus", json!("4"), "\"4\"", from_one);
    job("request_gpus", json!(0), "0", from_one);
    job("holds/a100-0", json!(0.5), "0.5", from_one);
    job("holds/a100-0", json!(-2), "-2", from_one);
    job("weight", json!(0), "0", "a positive number");
    job("age_s", json!(-1), "-1", "a number of seconds from 0 to 1000000000");
    job("restart_cost_s", json!(1e10), "10000000000.0", "a number of seconds from 0 to 1000000000");
    job("attained_gpu_s", json!(-0.5), "-0.5", "a number of GPU-seconds, zero or more");
    job("remaining_samples", json!("many"), "\"many\"", "a number of samples, zero or more");
    job("priority", json!("urgent"), "\"urgent\"", "`low`, `normal` or `high`");
    let freedom = "`elastic`, `non_preemptible`, `restarting` or `{\"rigid\": GPUS}`";
    job("freedom", json!("rigid"), "\"rigid\"", freedom);
    check(
        "/jobs/0/freedom",
        json!({"rigid": 0}),
        &format!("job `resnet`: `jobs[0].freedom.rigid`: `0` is not {from_one}"),
    );
    job("models/a100/noise_scale", json!(-3), "-3", "a number of samples, zero or more, or `\"inf\"`");
    job("models/a100/params/gamma", json!(0.5), "0.5", "a number from 1 to 10");
    job("models/a100/batch/initial", json!(0), "0", "a whole number from 1 to 1000000000000");
    check(
        "/nodes/1/gpus",
        json!(2_000),
        "node `t4-0`: `nodes[1].gpus`: `2000` is not a whole number from 0 to 1024",
    );
    check(
        "/nodes/1/state",
        json!("gone"),
        "node `t4-0`: `nodes[1].state`: `\"gone\"` is not `ready`, `cordoned` or `draining`",
    );
    check("/gpu_speeds/t4", json!(0), "`gpu_speeds.t4`: `0` is not a positive number");
    check(
        "/jobs/2/name",
        json!(""),
        "`jobs[2].name`: `\"\"` is not a name: text without control characters or spaces at its ends",
    );
    check("/jobs/2", json!(3), "`jobs[2]`: `3` is not an object");
    check("/jobs", json!({}), "`jobs`: `{}` is not a list of jobs");
    check("/nodes", json!(null), "`nodes` is missing");
    check(
        "/version",
        json!(2),
        "`version`: `2` is not a version of snapshots this program reads; it reads 1",
    );
}

#[test]
fn contradictions_are_named() {
    check_hint(
        "/jobs/0/holds",
        json!({"a100-1": 1}),
        "node `a100-1`: it has 4 GPUs, but jobs hold 5 (`resnet` 1, `bert` 4) and others use 0",
        Some("correct `holds` of a job, or `used_by_others` or `gpus` of the node"),
    );
    check(
        "/nodes/1/used_by_others",
        json!(5),
        "node `t4-0`: it has 4 GPUs, but jobs hold 0 and others use 5",
    );
    check(
        "/jobs/0/holds",
        json!({"a100-0": 1, "t4-1": 1}),
        "job `resnet`: `jobs[0].holds`: GPUs of two types, `a100` and `t4`; a job runs on one type",
    );
    check("/jobs/2/name", json!("bert"), "job `bert`: `jobs[2].name`: there is another job `bert`");
    check("/nodes/1/name", json!("a100-1"), "node `a100-1`: `nodes[1].name`: there is another node `a100-1`");
    check(
        "/groups/1/name",
        json!("vision"),
        "group `vision`: `groups[1].name`: there is another group `vision`",
    );
    check(
        "/groups/1/parent",
        json!("language"),
        "group `language`: `groups[1].parent`: it is part of itself",
    );
    check("/jobs/1/min_gpus", json!(7), "job `bert`: `jobs[1].min_gpus`: at least 7 GPUs, but at most 6");
    check(
        "/jobs/4/freedom",
        json!("restarting"),
        "job `fresh`: `jobs[4].freedom`: it is restarting, but holds nothing",
    );
    check("/nodes/0/count", json!(1_000_000), "node `a100`: `nodes[0]`: more than 100000 nodes");
    let batch = "/jobs/0/models/a100/batch";
    let key = "job `resnet`: `jobs[0].models.a100.batch";
    check(
        &format!("{batch}/max"),
        json!(64),
        &format!("{key}.min`: the batch size 128 is above 64, which is `max`"),
    );
    check(&format!("{batch}/fixed"), json!(128), &format!("{key}.fixed` and `max` exclude each other"));
    check(
        &format!("{batch}/micro_max"),
        json!(8),
        &format!("{key}`: the micro-batch range 16..8 is empty or starts at 0"),
    );
}

#[test]
fn what_is_no_json_is_refused_where_it_stands() {
    let check = |text: &str, expected: &str| {
        let error = NamedSnapshot::read("s.json", text.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), format!("s.json{expected}"));
    };
    check("", ":1:1: not JSON: EOF while parsing a value");
    check("[]", ": not a JSON object");
    check("{\"nodes\": [],\n \"nodes\": []}", ":2:8: key `nodes` stands twice in one object");
    check("{\"gpu_speeds\": {\"t4\": 1e999}}", ":1:27: not JSON: number out of range");
    assert!(
        NamedSnapshot::read("s.json", b"").unwrap_err().hint().unwrap().contains("examples/snapshot.json")
    );
}
