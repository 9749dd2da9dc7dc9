//! What holds for every sequence of inputs, sensible or absurd.

mod acts;
#[path = "../common/mod.rs"]
mod common;
mod ledger;
mod run;

use acts::{Act, acts, config};
use pollux_core::{Config, Effect, Input, Scheduler, SizeQuestion};
use pollux_policy::Fifo;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;
use run::Run;

fn cases() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(7);
    ProptestConfig { failure_persistence: None, rng_seed, ..ProptestConfig::with_cases(256) }
}

/// Carries out all acts; the run checks each effect.
fn run(config: Config, acts: Vec<Act>) -> Run {
    let mut run = Run::new(config);
    for act in acts {
        run.act(act);
    }
    run
}

/// The scheduler as restored from its state: the same to the last word.
fn check_restored(scheduler: &Scheduler, config: Config) -> Scheduler {
    let restored = Scheduler::restore(config, scheduler.state()).unwrap();
    assert_eq!(format!("{restored:?}"), format!("{scheduler:?}"));
    restored
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn no_gpu_has_two_holders_and_nobody_is_stopped_who_should_not_be(config in config(), acts in acts()) {
        run(config, acts);
    }

    #[test]
    fn everybody_starts_once_there_is_room(config in config(), acts in acts()) {
        let mut run = run(config, acts);
        run.check_that_everybody_starts();
    }

    #[test]
    fn the_same_inputs_give_the_same_effects(config in config(), acts in acts()) {
        let run = run(config, acts);
        let mut scheduler = Scheduler::new(config);
        let mut sizing = None;
        for (now, input, effects) in &run.journal {
            if let Some((id, question)) = sizing.take() {
                match input {
                    Input::SizeReady(answered, _) if *answered == id => _ = SizeQuestion::answer(&question, &Fifo),
                    _ => sizing = Some((id, question)),
                }
            }
            let again = scheduler.handle(*now, input.clone());
            prop_assert_eq!(&format!("{again:?}"), effects);
            for effect in again.into_iter().flatten() {
                if let Effect::Size { id, question } = effect {
                    sizing = Some((id, *question));
                }
            }
        }
        prop_assert_eq!(format!("{scheduler:?}"), format!("{:?}", run.scheduler));
    }

    #[test]
    fn a_restored_scheduler_goes_on_as_the_saved_one_would(config in config(), acts in acts(), cuts: [Index; 4]) {
        let config = Config { remember_ended: 2, ..config };
        let run = run(config, acts);
        let cuts = cuts.map(|cut| cut.index(run.journal.len().max(1)));
        let mut scheduler = Scheduler::new(config);
        for (at, (now, input, effects)) in run.journal.iter().enumerate() {
            if cuts.contains(&at) {
                scheduler = check_restored(&scheduler, config);
            }
            let again = scheduler.handle(*now, input.clone());
            prop_assert_eq!(&format!("{again:?}"), effects);
        }
        prop_assert_eq!(format!("{scheduler:?}"), format!("{:?}", run.scheduler));
        check_restored(&scheduler, config);
    }
}
