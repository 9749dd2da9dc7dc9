//! The smallest worker that adapts: it notes when it began, reports once, and dies of SIGTERM at once.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use pollux_api::agent_report;
use pollux_api::client::{AgentLink, LinkOptions};

/// The argument that makes this program a worker; the folder for its notes follows.
pub(crate) const WORD: &str = "--as-worker";

/// Until it is killed.
pub(crate) fn run(folder: &Path) -> ! {
    let began = micros();
    let variable = |name: &str| std::env::var(name).ok();
    let told = |name: &str| variable(name).unwrap_or_default();
    let name = format!("{}.{}.{}", told("POLLUX_JOB_ID"), told("POLLUX_ATTEMPT"), told("RANK"));
    fs::write(folder.join(name), began.to_string()).expect("the folder can be written to");
    let link = LinkOptions::from_env(variable).expect("the scheduler sets them").map(AgentLink::new);
    if let Some(link) = link.as_ref().filter(|_| told("RANK") == "0") {
        let text =
            r#"{"progress": 1, "limits": {"initial": 32, "max": 512, "micro_min": 8, "micro_max": 128}}"#;
        link.training();
        link.report(&agent_report::from_json(text).expect("it is a report"));
    }
    loop {
        std::thread::park();
    }
}

/// When a worker began, in microseconds since 1970.
pub(crate) fn began(folder: &Path, job: u64, attempt: u32, rank: u32) -> Option<i64> {
    fs::read_to_string(folder.join(format!("{job}.{attempt}.{rank}"))).ok()?.parse().ok()
}

/// Microseconds since 1970.
fn micros() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros()
}
