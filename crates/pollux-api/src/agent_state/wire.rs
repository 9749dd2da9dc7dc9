//! The format itself. What changes here changes files: then raise [`VERSION`](super::VERSION) and keep
//! reading the old one.

use std::collections::BTreeMap;

use pollux_agent::GradientSpace;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    pub(super) version: u64,
    pub(super) progress: NotNegative,
    pub(super) samples: u64,
    pub(super) learning_rate_factor: Positive,
    pub(super) most_replicas: u32,
    pub(super) gpu_type: Option<String>,
    pub(super) placement: Option<Placement>,
    pub(super) plan: Option<Plan>,
    pub(super) steps_since_change: u64,
    pub(super) exploring: Option<Exploring>,
    pub(super) last_report_us: Option<u64>,
    pub(super) micro_max: BTreeMap<String, AtLeastOne>,
    pub(super) noise: Noise,
    pub(super) fits: BTreeMap<String, Fit>,
    pub(super) profile: Vec<ProfileEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Placement {
    pub(super) nodes: AtLeastOne,
    pub(super) replicas: AtLeastOne,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub(super) global: u64,
    pub(super) atomic_batch: AtLeastOne,
    pub(super) accum_steps: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exploring {
    pub(super) plan: Plan,
    pub(super) before: Plan,
    pub(super) steps_left: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Noise {
    #[serde(with = "Estimator")]
    pub(super) estimator: pollux_model::Estimator,
    #[serde(with = "Space")]
    pub(super) space: GradientSpace,
    pub(super) acted: Option<Positive>,
    /// Nothing depends on it any more. It is written, as 0, since older builds of this version require it.
    #[serde(default)]
    pub(super) steps_known: u64,
    pub(super) n_measured: Count,
    pub(super) n_implausible: Count,
    pub(super) block: Sums,
    pub(super) held_back: Sums,
    pub(super) running: Running,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "pollux_model::Estimator", rename_all = "snake_case")]
enum Estimator {
    Pairs,
    Differences,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "GradientSpace", rename_all = "snake_case")]
enum Space {
    Plain,
    Preconditioned,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sums {
    pub(super) n_measured: SmallCount,
    pub(super) n_steps: u32,
    pub(super) scale: NotNegative,
    pub(super) sqr: f64,
    pub(super) trace: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Running {
    pub(super) sqr: f64,
    pub(super) trace: f64,
    pub(super) sqr_deviation: NotNegative,
    pub(super) weight: Share,
    pub(super) deviation_weight: Share,
    pub(super) n_blocks: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileEntry {
    pub(super) gpu_type: String,
    pub(super) nodes: AtLeastOne,
    pub(super) replicas: AtLeastOne,
    pub(super) micro_batch: AtLeastOne,
    pub(super) n_steps: Count,
    pub(super) log_compute: LogSecs,
    pub(super) log_optim: LogSecs,
    pub(super) deviation: NotNegative,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) first: Vec<(LogSecs, LogSecs)>,
}

/// A fit, with the names of the fit file's keys.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fit {
    pub(super) form: Form,
    pub(super) params: Params,
    pub(super) undetermined: Vec<String>,
    #[serde(with = "or_infinite")]
    pub(super) objective: f64,
    #[serde(with = "or_infinite")]
    pub(super) mean_relative_error: f64,
    #[serde(with = "or_infinite")]
    pub(super) worst_relative_error: f64,
    pub(super) coverage: Coverage,
    /// What the profile was like when the fit was made.
    pub(super) revision: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Form {
    Linear,
    Roofline,
    Table,
}

/// Which of the first four are there depends on the form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) table: Option<Vec<(AtLeastOne, Positive)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) alpha_grad: Option<NotNegative>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) beta_grad: Option<NotNegative>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) delta_grad: Option<f64>,
    pub(super) alpha_local: NotNegative,
    pub(super) beta_local: NotNegative,
    pub(super) alpha_node: NotNegative,
    pub(super) beta_node: NotNegative,
    pub(super) gamma: f64,
    pub(super) optimizer_step: NotNegative,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Coverage {
    pub(super) micro_batch: (AtLeastOne, AtLeastOne),
    pub(super) alone: bool,
    pub(super) one_node: Option<(AtLeastOne, AtLeastOne)>,
    pub(super) distributed: Option<(AtLeastOne, AtLeastOne)>,
}

/// Numbers of which only some are read. Any may be written: there is one place to refuse them.
macro_rules! checked {
    ($($(#[$doc:meta])* $name:ident($of:ty), $expected:literal, $check:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Serialize)]
        pub(super) struct $name(pub(super) $of);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let check: fn($of) -> bool = $check;
                let number = <$of>::deserialize(deserializer)?;
                let refused = || D::Error::custom(format_args!("`{number:?}` is not {}", $expected));
                check(number).then_some(Self(number)).ok_or_else(refused)
            }
        }
    )*};
}

checked! {
    NotNegative(f64), "a number, zero or more", |number| number >= 0.0;
    Positive(f64), "a number above zero", |number| number > 0.0;
    Share(f64), "a number from 0 to 1", |number| (0.0..=1.0).contains(&number);
    /// A logarithm of seconds. Those of all positive numbers lie in this range.
    LogSecs(f64), "the logarithm of a time", |number| number.abs() <= 746.0;
    AtLeastOne(u32), "a whole number, 1 or more", |count| count >= 1;
    /// Goes up one by one, so that it never gets near the end of its range, where adding fails.
    Count(u64), "a whole number up to 2^53", |count| count <= 1 << 53;
    /// The same, for counts that begin anew again and again.
    SmallCount(u32), "a whole number up to 2^31", |count| count <= 1 << 31;
}

/// JSON has no infinity: an objective or error too large for a number is null, as in a fit file.
mod or_infinite {
    use super::{Deserialize as _, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(super) fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        if number.is_finite() {
            serializer.serialize_f64(*number)
        } else if *number == f64::INFINITY {
            serializer.serialize_none()
        } else {
            // Not a number at all: to be refused when read.
            serializer.collect_str(number)
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
    }
}
