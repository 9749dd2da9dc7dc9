//! What the agent's integration tests share.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "each test file uses its own part")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers, in tests")]

#[path = "../../../pollux-model/tests/common/dice.rs"]
pub mod dice;
pub mod digits;

pub use dice::Dice;
