//! What the tests and benchmarks of policies share.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "each of them uses its own part")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers, in tests")]

pub mod check;
#[path = "../../../pollux-model/tests/common/mod.rs"]
mod data;
pub mod instances;
mod json;
pub mod oracle;
pub mod plain;
pub mod random_problem;
pub mod random_snapshot;
pub mod reference;
pub mod rounds;

pub use data::Dice;
