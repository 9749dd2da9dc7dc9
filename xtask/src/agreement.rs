//! Whether the simulator foretells the live scheduler: the whole demo, and its jobs simulated.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::shell;

/// Where the demo's journals lie, relative to the root.
const FOLDER: &str = "target/demo-live";
/// How far mean completion times may be apart, as a share of the live one.
const MOST: f64 = 0.05;

/// Runs the demo and compares mean completion times under both policies.
pub(crate) fn check() -> Result<()> {
    let folder = shell::root().join(FOLDER);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {FOLDER}"))?;
    }
    shell::run(shell::pollux()?.args(["demo", "--out", FOLDER]))?;
    for policy in ["pollux", "fifo"] {
        let journal = format!("{FOLDER}/{policy}/pollux.db");
        let arguments = ["sim", "journal", &journal, "--report-every", "1", "-o", "json"];
        let output = shell::pollux()?.args(arguments).output().context("cannot start pollux")?;
        let compared: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{journal}: {}", String::from_utf8_lossy(&output.stderr)))?;
        let secs = |key: &str| compared[key].as_f64().with_context(|| format!("{journal}: no {key}"));
        let (live, simulated) = (secs("live_mean_s")?, secs("simulated_mean_s")?);
        let off = simulated / live - 1.0;
        println!("agreement: {policy}: {live:.1} s live, {simulated:.1} s simulated, {:+.1} %", 100.0 * off);
        ensure!(
            off.abs() <= MOST,
            "the simulator is off by {:+.1} % under {policy}; is the machine busy?",
            100.0 * off
        );
    }
    Ok(())
}
