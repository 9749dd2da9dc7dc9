//! The settings of rivals, each by a key.

use pollux_policy::{Gavel, Genetic, Objective, Sia};

use super::PolicySpecError;
use super::knob::{plain_number, within};

/// A setting of a policy `P` by its key.
pub(super) struct RivalKnob<P> {
    pub(super) key: &'static str,
    /// What its value must be.
    expected: &'static str,
    /// Takes a value over; nothing if it is none.
    pub(super) read: fn(&mut P, &str) -> Option<()>,
    /// The value as it would be read.
    write: fn(&P) -> String,
}

impl<P> RivalKnob<P> {
    pub(super) fn wrong(&self, policy: &'static str, value: &str) -> PolicySpecError {
        PolicySpecError::Value { policy, key: self.key, value: value.to_owned(), expected: self.expected }
    }
}

/// Of Sia.
pub(super) const SIA: [RivalKnob<Sia>; 3] = [
    RivalKnob {
        key: "fairness",
        expected: "a number from -100 to -0.001",
        read: |sia, value| {
            sia.fairness = within(value, -100.0, -0.001)?;
            Some(())
        },
        write: |sia| plain_number(sia.fairness),
    },
    RivalKnob {
        key: "waiting",
        expected: "a number from 0 to 1000, what a waiting job costs",
        read: |sia, value| {
            sia.waiting = within(value, 0.0, 1e3)?;
            Some(())
        },
        write: |sia| plain_number(sia.waiting),
    },
    RivalKnob {
        key: "rounded",
        expected: "`yes` or `no`",
        read: |sia, value| {
            sia.is_rounded = match value {
                "yes" => true,
                "no" => false,
                _ => return None,
            };
            Some(())
        },
        write: |sia| if sia.is_rounded { "yes" } else { "no" }.to_owned(),
    },
];

/// Of Gavel.
pub(super) const GAVEL: [RivalKnob<Gavel>; 1] = [RivalKnob {
    key: "objective",
    expected: "`fairness` or `throughput`",
    read: |gavel, value| {
        gavel.objective = match value {
            "fairness" => Objective::Fairness,
            "throughput" => Objective::Throughput,
            _ => return None,
        };
        Some(())
    },
    write: |gavel| match gavel.objective {
        Objective::Fairness => "fairness".to_owned(),
        Objective::Throughput => "throughput".to_owned(),
    },
}];

/// Of the genetic algorithm, in both its forms.
pub(super) const GENETIC: [RivalKnob<Genetic>; 1] = [RivalKnob {
    key: "interference",
    expected: "`avoid` or `allow`",
    read: |genetic, value| {
        genetic.settings.avoid_interference = match value {
            "avoid" => true,
            "allow" => false,
            _ => return None,
        };
        Some(())
    },
    write: |genetic| if genetic.settings.avoid_interference { "avoid" } else { "allow" }.to_owned(),
}];

/// What differs from the usual, as text.
pub(super) fn changed<P>(knobs: &[RivalKnob<P>], policy: &P, usual: &P) -> Vec<String> {
    let differs = |knob: &&RivalKnob<P>| (knob.write)(policy) != (knob.write)(usual);
    let text = |knob: &RivalKnob<P>| format!("{}={}", knob.key, (knob.write)(policy));
    knobs.iter().filter(differs).map(text).collect()
}
