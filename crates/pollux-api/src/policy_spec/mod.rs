//! A policy and its settings as one word: `pollux:tuned+fairness=0`, `tiresias:demote=8`, `fifo`.
//!
//! The form is `NAME[:PART[+PART..]]`. A part is a preset, which comes first, or `KEY=VALUE`:
//!
//! | policy | presets | keys |
//! | --- | --- | --- |
//! | `pollux`, `pollux-size-aware`, `pollux-type-blind` | `balanced`, `paper`, `tuned`, `osdi21` | `fairness`, `size`, `rounds`, `restart`, `explore`, `effort`, `share`, `interference` |
//! | `tiresias` | | `demote` |
//! | `sia` | | `fairness`, `waiting`, `rounded` |
//! | `gavel` | | `objective` |
//! | `pollux-ga-paper`, `pollux-ga-osdi21` | | `interference` |
//! | others | | |

mod error;
mod knob;
mod rival;

use std::fmt;
use std::str::FromStr;

use pollux_policy::{
    AnyPolicy, Gavel, Genetic, Pollux, Settings, Sia, SizeAware, Tiresias, TypeBlind, policies,
};

pub use error::PolicySpecError;

use crate::near::nearest;
use knob::{DEMOTE, KNOBS, Knob, plain_number, within};

/// Other names that policies go by.
pub const ALIASES: [(&str, &str); 1] = [("pollux-ga", "pollux-ga-paper")];

/// The names of presets: the default, the paper's objective, the same with better prices, the artifact's.
pub const PRESETS: [&str; 4] = ["balanced", "paper", "tuned", "osdi21"];

/// GPUs of a node in the artifact, which its objective hangs on.
const OSDI21_NODE: u32 = 4;

/// Reads a policy: `NAME[:PART[+PART..]]`.
///
/// ```
/// let policy = pollux_api::parse_policy("pollux:tuned+fairness=0").unwrap();
/// assert_eq!(policy.about().name, "pollux");
/// assert!(pollux_api::parse_policy("pollux:fast").is_err());
/// ```
pub fn parse_policy(text: &str) -> Result<Box<dyn AnyPolicy>, PolicySpecError> {
    text.parse().map(|spec: PolicySpec| spec.policy())
}

/// A policy and its settings.
///
/// Shown as the shortest text that reads back as the same: what is the default is left out.
///
/// ```
/// use pollux_api::PolicySpec;
///
/// let spec: PolicySpec = "pollux:tuned+explore=4+fairness=0".parse().unwrap();
/// assert_eq!(spec.to_string(), "pollux:tuned+fairness=0");
/// assert_eq!("pollux-ga".parse::<PolicySpec>().unwrap().to_string(), "pollux-ga-paper");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicySpec {
    name: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// A policy with an objective: from which preset its settings come, and what they are.
    Objective { preset: Option<&'static str>, settings: Settings },
    /// Tiresias, with its threshold in GPU-hours.
    Tiresias { demote_hours: f64 },
    /// Sia, with its settings.
    Sia(Sia),
    /// Gavel, with its objective.
    Gavel(Gavel),
    /// The authors' genetic algorithm, in one of its two forms.
    Genetic(Genetic),
    /// A policy without settings.
    Plain,
}

impl PolicySpec {
    /// The policy's own name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The policy.
    pub fn policy(&self) -> Box<dyn AnyPolicy> {
        match self.kind {
            Kind::Objective { settings, .. } if self.name == SIZE_AWARE => Box::new(SizeAware { settings }),
            Kind::Objective { settings, .. } if self.name == TYPE_BLIND => Box::new(TypeBlind { settings }),
            Kind::Objective { settings, .. } => Box::new(Pollux { settings }),
            Kind::Tiresias { demote_hours } => Box::new(Tiresias { demote_at: demote_hours * 3_600.0 }),
            Kind::Sia(sia) => Box::new(sia),
            Kind::Gavel(gavel) => Box::new(gavel),
            Kind::Genetic(genetic) => Box::new(genetic),
            Kind::Plain => {
                let named = policies().into_iter().find(|policy| policy.about().name == self.name);
                // The name was found among them when this was read.
                named.unwrap_or_else(|| Box::new(Pollux::default()))
            }
        }
    }

    /// The same with another exponent of the mean of speed-ups; nothing for a policy that has none.
    #[must_use]
    pub fn with_fairness(self, fairness: f64) -> Option<Self> {
        let Kind::Objective { preset, settings } = self.kind else { return None };
        let settings = Settings { fairness, ..settings };
        Some(Self { kind: Kind::Objective { preset, settings }, ..self })
    }

    fn named(name: &str) -> Result<Self, PolicySpecError> {
        let meant = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, meant)| meant);
        let names: Vec<&'static str> = policies().iter().map(|policy| policy.about().name).collect();
        let Some(name) = names.iter().copied().find(|known| *known == meant) else {
            let near = nearest(name, names);
            return Err(PolicySpecError::NoSuchPolicy { name: name.to_owned(), near });
        };
        let kind = match name {
            POLLUX | SIZE_AWARE | TYPE_BLIND => Kind::Objective { preset: None, settings: base(name, None) },
            TIRESIAS => Kind::Tiresias { demote_hours: Tiresias::default().demote_at / 3_600.0 },
            SIA => Kind::Sia(Sia::default()),
            GAVEL => Kind::Gavel(Gavel::default()),
            GA_PAPER | GA_OSDI21 => Kind::Genetic(genetic(name)),
            _ => Kind::Plain,
        };
        Ok(Self { name, kind })
    }

    fn set(
        &mut self,
        part: &str,
        is_first: bool,
        seen: &mut Vec<&'static str>,
    ) -> Result<(), PolicySpecError> {
        let name = self.name;
        let unknown = || PolicySpecError::unknown_part(name, part, &words(name));
        match (&mut self.kind, part.split_once('=')) {
            (Kind::Objective { preset, settings }, None) => {
                let found = PRESETS.into_iter().find(|known| *known == part).ok_or_else(unknown)?;
                if !is_first {
                    return Err(PolicySpecError::LatePreset { policy: name, preset: found });
                }
                (*preset, *settings) = (Some(found), base(name, Some(found)));
                Ok(())
            }
            (Kind::Plain, _)
            | (Kind::Tiresias { .. } | Kind::Sia(_) | Kind::Gavel(_) | Kind::Genetic(_), None) => {
                Err(unknown())
            }
            (Kind::Sia(sia), Some((key, value))) => {
                let knob = rival::SIA.iter().find(|knob| knob.key == key).ok_or_else(unknown)?;
                once(name, knob.key, seen)?;
                (knob.read)(sia, value).ok_or_else(|| knob.wrong(name, value))
            }
            (Kind::Gavel(gavel), Some((key, value))) => {
                let knob = rival::GAVEL.iter().find(|knob| knob.key == key).ok_or_else(unknown)?;
                once(name, knob.key, seen)?;
                (knob.read)(gavel, value).ok_or_else(|| knob.wrong(name, value))
            }
            (Kind::Genetic(genetic), Some((key, value))) => {
                let knob = rival::GENETIC.iter().find(|knob| knob.key == key).ok_or_else(unknown)?;
                once(name, knob.key, seen)?;
                (knob.read)(genetic, value).ok_or_else(|| knob.wrong(name, value))
            }
            (Kind::Objective { settings, .. }, Some((key, value))) => {
                let knob = KNOBS.iter().find(|knob| knob.key == key).ok_or_else(unknown)?;
                once(name, knob.key, seen)?;
                (knob.read)(settings, value).ok_or_else(|| knob.wrong(name, value))
            }
            (Kind::Tiresias { demote_hours }, Some((key, value))) => {
                if key != DEMOTE.0 {
                    return Err(unknown());
                }
                once(name, DEMOTE.0, seen)?;
                let hours = within(value, 0.0, 1e6).ok_or_else(|| PolicySpecError::Value {
                    policy: name,
                    key: DEMOTE.0,
                    value: value.to_owned(),
                    expected: DEMOTE.1,
                })?;
                *demote_hours = hours;
                Ok(())
            }
        }
    }
}

const POLLUX: &str = "pollux";
const SIZE_AWARE: &str = "pollux-size-aware";
const TIRESIAS: &str = "tiresias";
const SIA: &str = "sia";
const GAVEL: &str = "gavel";
const GA_PAPER: &str = "pollux-ga-paper";
const GA_OSDI21: &str = "pollux-ga-osdi21";
const TYPE_BLIND: &str = "pollux-type-blind";

/// The settings that keys change.
fn base(name: &str, preset: Option<&str>) -> Settings {
    match preset {
        Some("balanced") => Settings::BALANCED,
        Some("tuned") => Settings::TUNED,
        Some("osdi21") => Settings::osdi21(OSDI21_NODE),
        None if name == POLLUX => Settings::BALANCED,
        None if name == SIZE_AWARE => Settings::SIZE_AWARE,
        _ => Settings::PAPER,
    }
}

/// The genetic algorithm of this name as it is unless told otherwise.
fn genetic(name: &str) -> Genetic {
    if name == GA_OSDI21 { Genetic::osdi21() } else { Genetic::paper() }
}

/// All that may stand after the colon.
fn words(name: &str) -> Vec<&'static str> {
    match name {
        POLLUX | SIZE_AWARE | TYPE_BLIND => {
            PRESETS.into_iter().chain(KNOBS.iter().map(|knob| knob.key)).collect()
        }
        TIRESIAS => vec![DEMOTE.0],
        SIA => rival::SIA.iter().map(|knob| knob.key).collect(),
        GAVEL => rival::GAVEL.iter().map(|knob| knob.key).collect(),
        GA_PAPER | GA_OSDI21 => rival::GENETIC.iter().map(|knob| knob.key).collect(),
        _ => Vec::new(),
    }
}

fn once(
    policy: &'static str,
    key: &'static str,
    seen: &mut Vec<&'static str>,
) -> Result<(), PolicySpecError> {
    if seen.contains(&key) {
        return Err(PolicySpecError::Twice { policy, key });
    }
    seen.push(key);
    Ok(())
}

impl FromStr for PolicySpec {
    type Err = PolicySpecError;

    fn from_str(text: &str) -> Result<Self, PolicySpecError> {
        let (name, parts) = match text.trim().split_once(':') {
            Some((name, parts)) => (name, Some(parts)),
            None => (text.trim(), None),
        };
        let mut spec = Self::named(name)?;
        let mut seen = Vec::new();
        for (index, part) in parts.iter().flat_map(|parts| parts.split('+')).enumerate() {
            spec.set(part.trim(), index == 0, &mut seen)?;
        }
        Ok(spec)
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        match self.kind {
            Kind::Objective { preset, settings } => {
                let base = base(self.name, preset);
                parts.extend(preset.map(str::to_owned));
                let changed = |knob: &&Knob| (knob.write)(&settings) != (knob.write)(&base);
                let text = |knob: &Knob| format!("{}={}", knob.key, (knob.write)(&settings));
                parts.extend(KNOBS.iter().filter(changed).map(text));
            }
            Kind::Tiresias { demote_hours } => {
                let usual = Tiresias::default().demote_at / 3_600.0;
                if demote_hours.to_bits() != usual.to_bits() {
                    parts.push(format!("{}={}", DEMOTE.0, plain_number(demote_hours)));
                }
            }
            Kind::Sia(sia) => parts.extend(rival::changed(&rival::SIA, &sia, &Sia::default())),
            Kind::Gavel(gavel) => parts.extend(rival::changed(&rival::GAVEL, &gavel, &Gavel::default())),
            Kind::Genetic(bred) => parts.extend(rival::changed(&rival::GENETIC, &bred, &genetic(self.name))),
            Kind::Plain => {}
        }
        let colon = if parts.is_empty() { "" } else { ":" };
        write!(f, "{}{colon}{}", self.name, parts.join("+"))
    }
}

#[cfg(test)]
mod tests;
