//! Faults as they are written on a command line.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::Faults;
use crate::setting::{Known, SettingError, quoted};

const KEYS: [&str; 10] = [
    "mtbf",
    "repair",
    "reclaim",
    "warning",
    "restart-failure",
    "straggler",
    "slowdown",
    "slow-for",
    "work-error",
    "checkpoint",
];
static KNOWN: Known = Known { what: "fault", keys: &KEYS };

/// Seconds of each unit, the longest first.
const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

const A_MINUTE: f64 = 60.0;
const TEN_YEARS: f64 = 3_650.0 * 86_400.0;
const A_TIME: &str = "a time from 0s to 3650d, such as 2m or 1.5h";
const A_LONGER_TIME: &str = "a time from 1m to 3650d, such as 10m or 200h";
const A_RATE: &str = "a number of times an hour from 0 to 60, such as 0.05";
const A_PART: &str = "a number from 0 to below 1";
const A_SPREAD: &str = "a number from 0 to 5";

/// Text that describes no faults.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultsError {
    /// A setting that is none.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A key that changes nothing by itself.
    #[error("`{key}` alone changes nothing; add {}", quoted(.needs, " or "))]
    Idle {
        /// The key.
        key: &'static str,
        /// Keys of which one is missing.
        needs: &'static [&'static str],
    },
}

impl Faults {
    fn set(&mut self, key: &'static str, value: &str) -> Result<(), SettingError> {
        let wrong = |expected| SettingError::Value { key, value: value.to_owned(), expected };
        let time = |least: f64, expected| {
            let secs = secs(value).filter(|secs| (least..=TEN_YEARS).contains(secs));
            secs.map(Duration::from_secs_f64).ok_or_else(|| wrong(expected))
        };
        let number = |is_good: fn(f64) -> bool, expected| {
            value.parse().ok().filter(|number| is_good(*number)).ok_or_else(|| wrong(expected))
        };
        let rate = || number(|rate| (0.0..=60.0).contains(&rate), A_RATE);
        let part = || number(|part| (0.0..1.0).contains(&part), A_PART);
        match key {
            "mtbf" => self.mtbf = Some(time(A_MINUTE, A_LONGER_TIME)?),
            "repair" => self.repair = time(0.0, A_TIME)?,
            "reclaim" => self.reclaims_per_hour = rate()?,
            "warning" => self.warning = time(0.0, A_TIME)?,
            "restart-failure" => self.restart_failure = part()?,
            "straggler" => self.stragglers_per_hour = rate()?,
            "slowdown" => self.slowdown = part()?,
            "slow-for" => self.slow_for = time(A_MINUTE, A_LONGER_TIME)?,
            "work-error" => self.work_error = number(|spread| (0.0..=5.0).contains(&spread), A_SPREAD)?,
            _ => self.checkpoint = time(A_MINUTE, A_LONGER_TIME)?,
        }
        Ok(())
    }
}

impl FromStr for Faults {
    type Err = FaultsError;

    fn from_str(text: &str) -> Result<Self, FaultsError> {
        let mut faults = Self::default();
        let seen = KNOWN.read(text.split(','), |key, value| faults.set(key, value))?;
        for key in &seen {
            let needs = needs(key);
            if !needs.is_empty() && !needs.iter().any(|needed| seen.contains(needed)) {
                return Err(FaultsError::Idle { key, needs });
            }
        }
        Ok(faults)
    }
}

impl fmt::Display for Faults {
    /// What differs from the default; nothing if nothing goes wrong.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (set, default) = (self.settings(), Self::default().settings());
        let differing =
            KEYS.iter().zip(set.into_iter().zip(default)).filter(|(_, (set, default))| set != default);
        for (index, (key, (value, _))) in differing.enumerate() {
            write!(f, "{}{key}={value}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl Faults {
    /// The values in the order of the keys.
    fn settings(&self) -> [String; KEYS.len()] {
        [
            self.mtbf.map(span).unwrap_or_default(),
            span(self.repair),
            self.reclaims_per_hour.to_string(),
            span(self.warning),
            self.restart_failure.to_string(),
            self.stragglers_per_hour.to_string(),
            self.slowdown.to_string(),
            span(self.slow_for),
            self.work_error.to_string(),
            span(self.checkpoint),
        ]
    }
}

/// Seconds of a text such as `90s`, `2m` or `1.5h`.
fn secs(text: &str) -> Option<f64> {
    let (unit, secs) = UNITS.into_iter().find(|(unit, _)| text.ends_with(*unit))?;
    let number: f64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
    let secs = number * secs as f64;
    (secs.is_finite() && secs >= 0.0).then_some(secs)
}

/// In the longest unit that leaves no rest.
fn span(duration: Duration) -> String {
    let whole = |(_, secs): &(char, u64)| duration.as_secs().is_multiple_of(*secs) && duration.as_secs() > 0;
    match UNITS.iter().find(|unit| duration.subsec_nanos() == 0 && whole(unit)) {
        Some((unit, secs)) => format!("{}{unit}", duration.as_secs() / secs),
        None => format!("{}s", duration.as_secs_f64()),
    }
}

/// The keys of which one must be there for this one to change anything; none if it does alone.
fn needs(key: &str) -> &'static [&'static str] {
    match key {
        "repair" | "checkpoint" => &["mtbf", "reclaim"],
        "warning" => &["reclaim"],
        "slowdown" | "slow-for" => &["straggler"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn everything_can_be_set() {
        let text = "mtbf=200h,repair=3h,reclaim=0.05,warning=90s,restart-failure=0.02,straggler=0.1,slowdown=0.25,\
                    slow-for=1d,work-error=0.3,checkpoint=5m";
        let faults = Faults {
            mtbf: Some(Duration::from_hours(200)),
            repair: Duration::from_hours(3),
            reclaims_per_hour: 0.05,
            warning: Duration::from_secs(90),
            restart_failure: 0.02,
            stragglers_per_hour: 0.1,
            slowdown: 0.25,
            slow_for: Duration::from_hours(24),
            work_error: 0.3,
            checkpoint: Duration::from_mins(5),
        };
        assert_eq!(text.parse(), Ok(faults.clone()));
        assert_eq!(faults.to_string(), text);
        assert_eq!(" mtbf = 1.5 h , repair=2h".parse::<Faults>().unwrap().to_string(), "mtbf=90m");
        assert_eq!(Faults::default().to_string(), "");
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(text.parse::<Faults>().unwrap_err().to_string(), expected);
    }

    #[test]
    fn errors_say_what_can_be_written() {
        const KEYS: &str = "`mtbf`, `repair`, `reclaim`, `warning`, `restart-failure`, `straggler`, `slowdown`, \
                            `slow-for`, `work-error`, `checkpoint`";
        check("", &format!("\"\" is no fault; write `KEY=VALUE,KEY=VALUE`, keys are {KEYS}"));
        check("mtbf=1h,", &format!("\"\" is no fault; write `KEY=VALUE,KEY=VALUE`, keys are {KEYS}"));
        check("mtb=1h", &format!("no fault named \"mtb\" among {KEYS}; did you mean `mtbf`?"));
        check("mtbf=1h,mtbf=2h", "`mtbf` stands twice; leave one out");
        check("mtbf=200", "`mtbf`: \"200\" is not a time from 1m to 3650d, such as 10m or 200h");
        check("mtbf=1s", "`mtbf`: \"1s\" is not a time from 1m to 3650d, such as 10m or 200h");
        check("mtbf=1h,repair=soon", "`repair`: \"soon\" is not a time from 0s to 3650d, such as 2m or 1.5h");
        check("reclaim=-1", "`reclaim`: \"-1\" is not a number of times an hour from 0 to 60, such as 0.05");
        check("restart-failure=1", "`restart-failure`: \"1\" is not a number from 0 to below 1");
        check("work-error=nan", "`work-error`: \"nan\" is not a number from 0 to 5");
    }

    #[test]
    fn what_changes_nothing_is_an_error() {
        check("repair=1h", "`repair` alone changes nothing; add `mtbf` or `reclaim`");
        check("mtbf=1h,warning=1m", "`warning` alone changes nothing; add `reclaim`");
        check("slowdown=0.5", "`slowdown` alone changes nothing; add `straggler`");
        assert!("checkpoint=1h,reclaim=0".parse::<Faults>().is_ok());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            secs in (60_u64..100_000, 0_u64..100_000, 0_u64..100_000),
            parts in (0.0..60.0_f64, 0.001..0.999_f64, 0.0..5.0_f64),
        ) {
            let faults = Faults {
                mtbf: Some(Duration::from_secs(secs.0)),
                repair: Duration::from_secs(secs.1),
                reclaims_per_hour: parts.0,
                warning: Duration::from_secs(secs.2),
                restart_failure: parts.1,
                work_error: parts.2,
                ..Faults::default()
            };
            // What is written of the warning needs a reclaim beside it.
            prop_assume!(parts.0 > 0.0);
            prop_assert_eq!(faults.to_string().parse(), Ok(faults));
        }
    }
}
