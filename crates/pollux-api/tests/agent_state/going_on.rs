//! A restored agent goes on as if it had never been saved.

use pollux_agent::Agent;
use pollux_api::agent_state;

use super::world::{bits, configs, drive};
use super::{SAVED, read};

const STEPS_AFTER: u64 = 2_000;

/// Saves at `step`, then lets the saved and the unsaved agent go on side by side.
fn check_cut(agent: &Agent, which: usize, step: u64) {
    let json = agent_state::to_json(agent.state());
    let mut restored = Agent::restore(configs()[which].clone(), read(&json)).unwrap();
    assert_eq!(restored.state(), agent.state(), "config {which}, saved at {step}");
    assert_eq!(bits(restored.state()), bits(agent.state()), "config {which}, saved at {step}");
    assert_eq!(agent_state::to_json(restored.state()), json);

    let mut original = agent.clone();
    let said = drive(&mut original, step, step + STEPS_AFTER);
    let said_restored = drive(&mut restored, step, step + STEPS_AFTER);
    assert_eq!(said_restored, said, "config {which}, saved at {step}");
    // The shortest text that reads back as a float tells any two of them apart.
    assert_eq!(format!("{said_restored:?}"), format!("{said:?}"), "config {which}, saved at {step}");
    assert_eq!(restored.state(), original.state(), "config {which}, saved at {step}");
    assert_eq!(bits(restored.state()), bits(original.state()), "config {which}, saved at {step}");
    assert!(said.reports.len() > 20 && said.decisions.len() > 20);
}

/// Saves at the start, now and then, and in states that are not like others: amid an experiment, with
/// gradients held back, before a new configuration has its median.
fn check_config(which: usize) {
    let mut agent = Agent::new(configs()[which].clone());
    let (mut exploring, mut held_back, mut beginning) = (0, 0, 0);
    for step in 0..2_500 {
        let state = agent.state();
        let mut cut = step < 8 || step % 250 == 1;
        if state.exploring.is_some_and(|exploring| exploring.steps_left > 0) {
            exploring += 1;
            cut |= exploring % 17 == 1;
        }
        if state.noise.held_back.n_measured > 0 {
            held_back += 1;
            cut |= held_back % 41 == 1;
        }
        if step > 8 && state.profile.entries.values().any(|entry| !entry.first.is_empty()) {
            beginning += 1;
            cut |= beginning % 13 == 1;
        }
        if cut {
            check_cut(&agent, which, step);
        }
        drive(&mut agent, step, step + 1);
    }
    assert!(exploring > 20 && held_back > 20 && beginning > 5, "{exploring} {held_back} {beginning}");
    let state = agent.state();
    assert_eq!(state.fits.len(), 2);
    assert!(state.noise.acted.is_some() && state.profile.entries.len() >= 4);
}

#[test]
fn an_adaptive_job_goes_on_bit_for_bit() {
    check_config(0);
}

#[test]
fn a_job_with_other_settings_goes_on_bit_for_bit() {
    check_config(1);
}

#[test]
fn a_job_of_fixed_batch_goes_on_bit_for_bit() {
    check_config(2);
}

#[test]
fn a_state_is_a_few_kilobytes() {
    for (which, step, state) in SAVED.iter() {
        let length = agent_state::to_json(state).len();
        assert!(length < 8_192, "config {which} at {step}: {length} bytes");
    }
}
