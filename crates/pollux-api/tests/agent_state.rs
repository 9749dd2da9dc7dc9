//! Saved agents: restored they go on bit for bit, and no text makes the reader panic.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use pollux_agent::{Agent, AgentConfig, AgentState, Exploring};
use pollux_api::agent_state;
use pollux_model::{BatchLimits, BatchPlan, GlobalBatch, GpuType, Placement, Timestamp};
use proptest::prelude::ProptestConfig;
use serde_json::Value;

#[path = "agent_state/any_text.rs"]
mod any_text;
#[path = "agent_state/exactness.rs"]
mod exactness;
#[path = "agent_state/going_on.rs"]
mod going_on;
mod mutate;
#[path = "agent_state/refusing.rs"]
mod refusing;
#[path = "agent_state/world.rs"]
mod world;

use world::{configs, drive};

/// States of driven agents: from their start, and every so often.
static SAVED: LazyLock<Vec<(usize, u64, AgentState)>> = LazyLock::new(|| {
    let mut saved = Vec::new();
    for (which, config) in configs().into_iter().enumerate() {
        let mut agent = Agent::new(config);
        for step in 0..3_000 {
            if step < 50 || step % 59 == 0 {
                saved.push((which, step, agent.state().clone()));
            }
            drive(&mut agent, step, step + 1);
        }
    }
    saved
});

fn read(json: &str) -> AgentState {
    agent_state::from_json(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// A state with something in every field.
fn full() -> AgentState {
    let mut state = SAVED.iter().rfind(|(which, ..)| *which == 0).unwrap().2.clone();
    let plan = state.plan.unwrap();
    state.exploring = Some(Exploring { plan, before: plan, steps_left: 3 });
    state.micro_max.insert(GpuType::new("t4"), 100);
    state
}

#[test]
fn version_1_stays_readable() {
    let text = include_str!("agent_state/version-1.json");
    let state = read(text);
    let written: Value = serde_json::from_str(&agent_state::to_json(&state)).unwrap();
    let mut expected: Value = serde_json::from_str(text).unwrap();
    // Older builds counted here; now it is ignored, and need not be there.
    let mut noise = expected["noise"].as_object_mut().unwrap().clone();
    expected["noise"]["steps_known"] = 0.into();
    assert_eq!(written, expected);
    noise.remove("steps_known");
    expected["noise"] = noise.into();
    assert_eq!(read(&expected.to_string()), state);

    let placement = Placement::new(2, 8).unwrap();
    assert_eq!((state.placement, &state.gpu_type), (Some(placement), &Some(GpuType::new("a100"))));
    let before = BatchPlan::split(GlobalBatch(1_001), placement, 1);
    assert_eq!(state.exploring.map(|exploring| exploring.before), before);
    assert_eq!(state.plan, BatchPlan::even(placement, 126, 0));
    assert_eq!(state.last_report, Some(Timestamp::from_secs(3_600)));
    assert_eq!(
        state.fits.values().map(|fit| fit.params.grad.form()).collect::<Vec<_>>(),
        ["roofline", "linear", "table"]
    );
    assert_eq!(state.fit_revisions, BTreeMap::from([(GpuType::new("a100"), 11), (GpuType::new("t4"), 9)]));
    assert_eq!(state.profile.entries.len(), 2);
    let config = AgentConfig::new(BatchLimits::new(512, 4_096, 8, 256).unwrap());
    assert!(Agent::restore(config, state).is_ok());
}

#[test]
fn the_documented_example_is_a_state() {
    let formats = include_str!("../../../docs/reference/formats.md");
    let (_, section) = formats.split_once("## Agent state").unwrap();
    let (_, example) = section.split_once("```json\n").unwrap();
    let state = read(example.split_once("```").unwrap().0);
    assert_eq!(state.profile.entries.len(), 1);
}
