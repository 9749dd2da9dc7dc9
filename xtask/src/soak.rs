//! A live scheduler under random kills: `crates/pollux/tests/chaos`, longer than a plain test run has it.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;

use crate::shell;

/// How long a soak takes if nobody says otherwise.
pub(crate) const USUAL_MINUTES: u64 = 60;

/// Kills of `test-all`: some five minutes on two cores.
const MANY_KILLS: u64 = 200;

/// Kills for so many minutes, others each time; the seed is printed, and `POLLUX_CHAOS_SEED` chooses it.
pub(crate) fn run(minutes: u64) -> Result<()> {
    let seed = std::env::var("POLLUX_CHAOS_SEED").unwrap_or_else(|_| {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since_1970.as_secs().to_string()
    });
    chaos(&[("POLLUX_CHAOS_MINUTES", &minutes.to_string()), ("POLLUX_CHAOS_SEED", &seed)])
}

/// As many kills as continuous integration has time for, the same each time.
pub(crate) fn many_kills() -> Result<()> {
    chaos(&[("POLLUX_CHAOS_KILLS", &MANY_KILLS.to_string())])
}

fn chaos(variables: &[(&str, &str)]) -> Result<()> {
    // Of the workspace, so that nothing is built anew.
    let arguments = ["test", "--workspace", "--locked", "--test", "chaos", "--", "--nocapture"];
    shell::run(shell::cargo().envs(variables.iter().copied()).args(arguments))
}
