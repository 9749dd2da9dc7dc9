//! Writes the built-in application profiles from the measurements of the paper's authors.
//!
//! `cargo run -p pollux-sim --example make_profiles` reads the data folder (`POLLUX_DATA`, or `../shared/data` beside the
//! repository) and writes `crates/pollux-sim/profiles/`. A test compares the two.
#![expect(clippy::print_stdout, reason = "what was written is said")]

use std::path::{Path, PathBuf};

use pollux_sim::osdi21::APPLICATIONS;
use pollux_sim::profile::{MakeRequest, make_profile, write_profile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let data =
        std::env::var_os("POLLUX_DATA").map_or_else(|| here.join("../../../shared/data"), PathBuf::from);
    for limits in &APPLICATIONS {
        let folder = data.join("pollux-osdi21/traces").join(limits.name);
        let text = write_profile(&make_profile(&folder, &MakeRequest::osdi21(limits))?);
        std::fs::write(here.join("profiles").join(format!("{}.json", limits.name)), &text)?;
        println!("profiles/{}.json: {} bytes", limits.name, text.len());
    }
    Ok(())
}
