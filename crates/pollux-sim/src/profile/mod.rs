//! Application profiles: all that a simulator must know of how an application trains.
//!
//! | question | module |
//! | --- | --- |
//! | what is there to know? | [`Profile`] |
//! | how long does a step take? | [`StepTimes`], shapes with lines between them |
//! | what is a step worth, and when is the work done? | [`Training`] |
//! | how is it written down? | [`parse_profile`], [`write_profile`]; `docs/reference/application-profile.md` |
//! | how long does it take on the nodes of a cluster? | [`PackedOn`] |
//! | where do profiles come from? | [`builtin`], [`read_profiles`], [`make_profile`] from measurements, [`add_fitted`] from parameters |
//!
//! ```
//! use pollux_model::{GpuType, Placement};
//!
//! let bert = &pollux_sim::profile::builtin()[0];
//! let alone = bert.run_secs(&GpuType::new("t4"), Placement::ALONE, 12).unwrap();
//! let on_two = bert.run_secs(&GpuType::new("t4"), Placement::new(1, 2).unwrap(), 24).unwrap();
//! assert!(on_two < alone);
//! ```

mod application;
mod builtin;
mod error;
mod fitted;
mod format;
mod make;
mod of_job;
mod packed;
mod step_times;
mod training;

pub use application::Profile;
pub use builtin::builtin;
pub use error::{FieldProblem, ProfileError};
pub use fitted::{FITTED_SOURCE, FittedType, add_fitted, read_fitted};
pub use format::{parse_profile, read_profile, read_profiles, write_profile};
pub use make::{MakeRequest, make_profile};
pub use of_job::OfJob;
pub use packed::PackedOn;
pub use step_times::{Shape, StepTimes};
pub use training::{MOST_NOISE, Training};

pub use crate::osdi21::StepTime;

/// What the `kind` of a profile says.
pub const KIND: &str = "pollux.application";

/// The version of the format that this build reads and writes.
pub const VERSION: u64 = 1;
