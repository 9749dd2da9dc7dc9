//! What can be said of a workload to be generated, and how it is written on a command line.

use std::fmt;
use std::str::FromStr;

use crate::setting::{Known, SettingError, quoted};

/// A workload to be generated. The default is the paper's.
///
/// Written `generate`, or with settings that differ from the default:
///
/// ```
/// use pollux_sim::workload::{Recipe, Requests};
///
/// let recipe: Recipe = "generate:load=1.5,requests=realistic,mix=cifar10:0.5+bert:0.5".parse().unwrap();
/// assert_eq!((recipe.n_jobs(), recipe.hours), (240, 8.0));
/// assert_eq!(recipe.to_string(), "generate:load=1.5,requests=realistic,mix=cifar10:0.5+bert:0.5");
/// assert_eq!(Recipe::default().to_string(), "generate");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// How many jobs there are at a load of 1.
    pub jobs: u32,
    /// Over how many hours they arrive.
    pub hours: f64,
    /// What to multiply the number of jobs by.
    pub load: f64,
    /// What users ask for.
    pub requests: Requests,
    /// Applications and their shares of the jobs, which need not add up to 1.
    pub mix: Vec<(String, f64)>,
}

/// What users ask for. Only policies that obey requests are affected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Requests {
    /// The best numbers of GPUs and batches, as if users had tried them all.
    #[default]
    Tuned,
    /// As many GPUs as users of the Philly cluster had, and a batch that grows with them.
    Realistic,
}

/// Shares of the applications among the jobs, from the paper's table of workloads.
pub const PAPER_MIX: [(&str, f64); 6] = [
    ("imagenet", 0.02),
    ("yolov3", 0.06),
    ("deepspeech2", 0.1),
    ("bert", 0.1),
    ("cifar10", 0.36),
    ("ncf", 0.36),
];

const WORD: &str = "generate";
const KEYS: [&str; 5] = ["jobs", "hours", "load", "requests", "mix"];
static KNOWN: Known = Known { what: "setting", keys: &KEYS };
const MOST_JOBS: f64 = 1e6;
const MOST_HOURS: f64 = 8_760.0;
const A_NAME: &str = "a name without spaces and `,`, `:`, `+` and `=`";

/// A recipe that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RecipeError {
    /// Text that is no recipe at all.
    #[error("{text:?} is no recipe; write `{WORD}` or `{WORD}:KEY=VALUE,KEY=VALUE`, keys are {}", quoted(&KEYS, ", "))]
    NotARecipe {
        /// The text.
        text: String,
    },
    /// A setting that is none, or has a value that it cannot have.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// An application that stands twice in the mix.
    #[error("`mix` names `{name}` twice; add its shares up")]
    ApplicationTwice {
        /// The application.
        name: String,
    },
    /// No job, or too many.
    #[error("{jobs} jobs at a load of {load} are {}; a workload has 1 to {MOST_JOBS}", f64::from(*.jobs) * load)]
    JobCount {
        /// Jobs at a load of 1.
        jobs: u32,
        /// The load.
        load: f64,
    },
}

impl Recipe {
    /// How many jobs there are: `jobs * load`, rounded.
    pub fn n_jobs(&self) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "rounded; checked elsewhere"
        )]
        let n_jobs = (f64::from(self.jobs) * self.load).round() as usize;
        n_jobs
    }

    /// Whether a workload can be made of it; the fields are free to hold anything.
    pub fn check(&self) -> Result<(), RecipeError> {
        let Self { jobs, hours, load, requests: _, mix } = self;
        let wrong = |key, value: String, expected| Err(SettingError::Value { key, value, expected }.into());
        if !(*hours > 0.0 && *hours <= MOST_HOURS) {
            return wrong("hours", hours.to_string(), "more than 0 and at most 8760, a year");
        }
        if !(load.is_finite() && *load > 0.0) {
            return wrong("load", load.to_string(), "a number above 0");
        }
        if !(0.5..=MOST_JOBS).contains(&(f64::from(*jobs) * load)) {
            return Err(RecipeError::JobCount { jobs: *jobs, load: *load });
        }
        if mix.is_empty() {
            return wrong("mix", String::new(), "at least one application");
        }
        for (index, (name, share)) in mix.iter().enumerate() {
            let is_odd = |letter: char| letter.is_whitespace() || ",:+=".contains(letter);
            if name.is_empty() || name.contains(is_odd) {
                return wrong("mix", name.clone(), A_NAME);
            }
            // The upper limit keeps the sum of all shares finite.
            if !(*share > 0.0 && *share <= 1e9) {
                return wrong("mix", share.to_string(), "a share above 0 and at most 1e9");
            }
            if mix[..index].iter().any(|(other, _)| other == name) {
                return Err(RecipeError::ApplicationTwice { name: name.clone() });
            }
        }
        Ok(())
    }

    fn set(&mut self, key: &'static str, value: &str) -> Result<(), SettingError> {
        let wrong = |expected| SettingError::Value { key, value: value.to_owned(), expected };
        match key {
            "jobs" => self.jobs = value.parse().map_err(|_| wrong("a whole number"))?,
            "hours" => self.hours = value.parse().map_err(|_| wrong("a number"))?,
            "load" => self.load = value.parse().map_err(|_| wrong("a number"))?,
            "requests" => {
                let named = |requests: &Requests| requests.to_string() == value;
                let found = [Requests::Tuned, Requests::Realistic].into_iter().find(named);
                self.requests = found.ok_or_else(|| wrong("`tuned` or `realistic`"))?;
            }
            _ => {
                let share = |part: &str| {
                    let (name, share) = part.split_once(':')?;
                    Some((name.trim().to_owned(), share.trim().parse().ok()?))
                };
                let mix: Option<Vec<_>> = value.split('+').map(share).collect();
                self.mix =
                    mix.ok_or_else(|| wrong("applications and shares such as `cifar10:0.5+bert:0.5`"))?;
            }
        }
        Ok(())
    }
}

impl Default for Recipe {
    fn default() -> Self {
        let mix = PAPER_MIX.map(|(name, share)| (name.to_owned(), share)).to_vec();
        Self { jobs: 160, hours: 8.0, load: 1.0, requests: Requests::default(), mix }
    }
}

impl FromStr for Recipe {
    type Err = RecipeError;

    fn from_str(text: &str) -> Result<Self, RecipeError> {
        let (word, settings) = match text.split_once(':') {
            Some((word, settings)) => (word, Some(settings)),
            None => (text, None),
        };
        if word.trim() != WORD {
            return Err(RecipeError::NotARecipe { text: text.to_owned() });
        }
        let mut recipe = Self::default();
        let parts = settings.iter().flat_map(|settings| settings.split(','));
        KNOWN.read(parts, |key, value| recipe.set(key, value))?;
        recipe.check()?;
        Ok(recipe)
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { jobs, hours, load, requests, mix } = self;
        let default = Self::default();
        let shares: Vec<String> = mix.iter().map(|(name, share)| format!("{name}:{share}")).collect();
        let settings = [
            (*jobs != default.jobs, format!("jobs={jobs}")),
            (hours.to_bits() != default.hours.to_bits(), format!("hours={hours}")),
            (load.to_bits() != default.load.to_bits(), format!("load={load}")),
            (*requests != default.requests, format!("requests={requests}")),
            (*mix != default.mix, format!("mix={}", shares.join("+"))),
        ];
        f.write_str(WORD)?;
        let differing = settings.into_iter().filter(|(differs, _)| *differs);
        for (index, (_, setting)) in differing.enumerate() {
            write!(f, "{}{setting}", if index == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tuned => "tuned",
            Self::Realistic => "realistic",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn settings_replace_the_default() {
        let recipe: Recipe = "generate: jobs=10, hours=0.5,load=2 ,mix=a:1 + b:3".parse().unwrap();
        let mix = vec![("a".to_owned(), 1.0), ("b".to_owned(), 3.0)];
        assert_eq!(recipe, Recipe { jobs: 10, hours: 0.5, load: 2.0, requests: Requests::Tuned, mix });
        assert_eq!(recipe.n_jobs(), 20);
        assert_eq!("generate".parse(), Ok(Recipe::default()));
        assert_eq!("generate:load=1.0,requests=tuned".parse(), Ok(Recipe::default()));
    }

    #[test]
    fn the_papers_shares_are_a_whole() {
        assert!((PAPER_MIX.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-12);
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(text.parse::<Recipe>().unwrap_err().to_string(), expected);
    }

    #[test]
    fn errors_say_what_can_be_written() {
        const KEYS: &str = "`jobs`, `hours`, `load`, `requests`, `mix`";
        let syntax =
            format!("is no recipe; write `generate` or `generate:KEY=VALUE,KEY=VALUE`, keys are {KEYS}");
        check("generat", &format!("\"generat\" {syntax}"));
        check("", &format!("\"\" {syntax}"));
        check("generate:", &format!("\"\" is no setting; write `KEY=VALUE,KEY=VALUE`, keys are {KEYS}"));
        check(
            "generate:load",
            &format!("\"load\" is no setting; write `KEY=VALUE,KEY=VALUE`, keys are {KEYS}"),
        );
        check("generate:lod=1", &format!("no setting named \"lod\" among {KEYS}; did you mean `load`?"));
        check("generate:seed=1", &format!("no setting named \"seed\" among {KEYS}"));
        check("generate:load=1,load=2", "`load` stands twice; leave one out");
    }

    #[test]
    fn errors_say_what_a_value_must_be() {
        check("generate:jobs=1.5", "`jobs`: \"1.5\" is not a whole number");
        check("generate:load=much", "`load`: \"much\" is not a number");
        check("generate:load=0", "`load`: \"0\" is not a number above 0");
        check("generate:load=NaN", "`load`: \"NaN\" is not a number above 0");
        check("generate:hours=-1", "`hours`: \"-1\" is not more than 0 and at most 8760, a year");
        check("generate:jobs=0", "0 jobs at a load of 1 are 0; a workload has 1 to 1000000");
        check("generate:jobs=4,load=0.1", "4 jobs at a load of 0.1 are 0.4; a workload has 1 to 1000000");
        check("generate:load=1e4", "160 jobs at a load of 10000 are 1600000; a workload has 1 to 1000000");
        check("generate:requests=real", "`requests`: \"real\" is not `tuned` or `realistic`");
        let shares = "is not applications and shares such as `cifar10:0.5+bert:0.5`";
        check("generate:mix=bert", &format!("`mix`: \"bert\" {shares}"));
        check("generate:mix=", &format!("`mix`: \"\" {shares}"));
        check("generate:mix=bert:0", "`mix`: \"0\" is not a share above 0 and at most 1e9");
        check("generate:mix=:1", &format!("`mix`: \"\" is not {A_NAME}"));
        check("generate:mix=bert:1+bert:2", "`mix` names `bert` twice; add its shares up");
    }

    fn mixes() -> impl Strategy<Value = Vec<(String, f64)>> {
        prop::collection::btree_map("[a-z0-9_.-]{1,8}", 1e-9..1e9_f64, 1..5)
            .prop_map(|mix| mix.into_iter().collect())
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            jobs in 1_u32..1_000, hours in 0.001..8_760.0_f64, load in 0.5..1_000.0_f64, tuned: bool, mix in mixes(),
        ) {
            let requests = if tuned { Requests::Tuned } else { Requests::Realistic };
            let recipe = Recipe { jobs, hours, load, requests, mix };
            prop_assert_eq!(recipe.to_string().parse(), Ok(recipe));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "generate:[ -~]{0,40}") {
            let _ = text.parse::<Recipe>();
        }
    }
}
