//! Writes the built-in application profiles: T4 from the measurements of the paper's authors, other types from fitted
//! parameters.
//!
//! `cargo run -p pollux-sim --example make_profiles` reads the data folder (`POLLUX_DATA`, or `../shared/data` beside the
//! repository) and writes `crates/pollux-sim/profiles/`. A test compares the two.
#![expect(clippy::print_stdout, reason = "what was written is said")]

use std::path::{Path, PathBuf};

use pollux_sim::osdi21::APPLICATIONS;
use pollux_sim::profile::{FITTED_SOURCE, MakeRequest, add_fitted, make_profile, read_fitted, write_profile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let data =
        std::env::var_os("POLLUX_DATA").map_or_else(|| here.join("../../../shared/data"), PathBuf::from);
    let fitted = read_fitted(&data.join("perf-params/perf_params.csv"))?;
    for limits in &APPLICATIONS {
        let folder = data.join("pollux-osdi21/traces").join(limits.name);
        let profile = make_profile(&folder, &MakeRequest::osdi21(limits))?;
        let types = fitted.get(limits.name).map_or(&[][..], Vec::as_slice);
        let text = write_profile(&add_fitted(profile, types, FITTED_SOURCE)?);
        std::fs::write(here.join("profiles").join(format!("{}.json", limits.name)), &text)?;
        println!("profiles/{}.json: {} bytes", limits.name, text.len());
    }
    Ok(())
}
