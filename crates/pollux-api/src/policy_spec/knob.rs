//! The settings of an objective, each by a key: how it is read and how it is written.

use std::time::Duration;

use pollux_policy::{Effort, FairShare, RestartPrice, Settings};

use super::PolicySpecError;

/// A setting by its key.
pub(super) struct Knob {
    pub(super) key: &'static str,
    /// What its value must be.
    expected: &'static str,
    /// Takes a value over; nothing if it is none.
    pub(super) read: fn(&mut Settings, &str) -> Option<()>,
    /// The value as it would be read.
    pub(super) write: fn(&Settings) -> String,
}

impl Knob {
    pub(super) fn wrong(&self, policy: &'static str, value: &str) -> PolicySpecError {
        PolicySpecError::Value { policy, key: self.key, value: value.to_owned(), expected: self.expected }
    }
}

/// Of Tiresias: the key, and what its value must be.
pub(super) const DEMOTE: (&str, &str) = ("demote", "a number of GPU-hours from 0 to 1000000");

pub(super) const KNOBS: [Knob; 8] = [
    Knob {
        key: "fairness",
        expected: "a number from -100 to 1",
        read: |settings, value| {
            settings.fairness = within(value, -100.0, 1.0)?;
            Some(())
        },
        write: |settings| plain_number(settings.fairness),
    },
    Knob {
        key: "size",
        expected: "a number from 0 to 1",
        read: |settings, value| {
            settings.size = within(value, 0.0, 1.0)?;
            Some(())
        },
        write: |settings| plain_number(settings.size),
    },
    Knob {
        key: "rounds",
        expected: "`timed` or `events`",
        read: |settings, value| {
            settings.on_events = match value {
                "timed" => false,
                "events" => true,
                _ => return None,
            };
            Some(())
        },
        write: |settings| if settings.on_events { "events" } else { "timed" }.to_owned(),
    },
    Knob {
        key: "restart",
        expected: "`free`, `paper`, `osdi21` or a horizon in seconds, up to a week",
        read: |settings, value| {
            settings.restart_price = match value {
                "free" => RestartPrice::Free,
                "paper" => RestartPrice::Paper,
                "osdi21" => RestartPrice::Osdi21,
                secs => RestartPrice::Horizon(Duration::from_secs_f64(within(secs, 0.0, 604_800.0)?)),
            };
            Some(())
        },
        write: |settings| match settings.restart_price {
            RestartPrice::Free => "free".to_owned(),
            RestartPrice::Paper => "paper".to_owned(),
            RestartPrice::Osdi21 => "osdi21".to_owned(),
            RestartPrice::Horizon(horizon) => plain_number(horizon.as_secs_f64()),
        },
    },
    Knob {
        key: "explore",
        expected: "a number from 1 up, or `none` for no limit",
        read: |settings, value| {
            settings.exploration =
                if value == "none" { f64::INFINITY } else { within(value, 1.0, f64::MAX)? };
            Some(())
        },
        write: |settings| {
            let factor = settings.exploration;
            if factor.is_finite() { plain_number(factor) } else { "none".to_owned() }
        },
    },
    Knob {
        key: "effort",
        expected: "a whole number from 1 to 1000000, times the usual budget",
        read: |settings, value| {
            let times = value.parse().ok().filter(|times: &u64| (1..=1_000_000).contains(times))?;
            let Effort { per_job, at_least, .. } = Effort::DEFAULT;
            settings.effort.per_job = per_job * times;
            settings.effort.at_least = at_least * times;
            Some(())
        },
        write: |settings| (settings.effort.per_job / Effort::DEFAULT.per_job).to_string(),
    },
    Knob {
        key: "share",
        expected: "`packed`, `one-gpu` or `one-node`",
        read: |settings, value| {
            settings.fair_share = match value {
                "packed" => FairShare::Packed,
                "one-gpu" => FairShare::OneGpu,
                "one-node" => FairShare::OneNode,
                _ => return None,
            };
            Some(())
        },
        write: |settings| {
            let share = match settings.fair_share {
                FairShare::Packed => "packed",
                FairShare::OneGpu => "one-gpu",
                FairShare::OneNode => "one-node",
            };
            share.to_owned()
        },
    },
    Knob {
        key: "interference",
        expected: "`avoid` or `allow`",
        read: |settings, value| {
            settings.avoid_interference = match value {
                "avoid" => true,
                "allow" => false,
                _ => return None,
            };
            Some(())
        },
        write: |settings| if settings.avoid_interference { "avoid" } else { "allow" }.to_owned(),
    },
];

/// A number within these bounds.
pub(super) fn within(text: &str, least: f64, most: f64) -> Option<f64> {
    // `+` parts settings, so no number can begin with it.
    text.parse().ok().filter(|number| (least..=most).contains(number))
}

/// A number as it is read back, minus zero as zero.
pub(super) fn plain_number(number: f64) -> String {
    (number + 0.0).to_string()
}
