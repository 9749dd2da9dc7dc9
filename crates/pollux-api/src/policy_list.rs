//! The policies there are, as JSON, version 1: written, not read.

use pollux_policy::About;
use serde::Serialize;

/// The version of the JSON.
pub const VERSION: u64 = 1;

/// The policies as JSON, with a newline at its end.
///
/// ```
/// use pollux_policy::About;
///
/// let (summary, source) = ("first come, first served", "folklore");
/// let about = About { name: "fifo", summary, source, adapts_batch: false };
/// let json = pollux_api::policy_list::to_json(&[about]);
/// assert!(json.contains(r#""name": "fifo""#));
/// ```
pub fn to_json(policies: &[About]) -> String {
    let policy = |about: &About| {
        let About { name, summary, source, .. } = *about;
        Policy { name, summary, source }
    };
    crate::json::pretty(&File { version: VERSION, policies: policies.iter().map(policy).collect() })
}

#[derive(Serialize)]
struct File {
    version: u64,
    policies: Vec<Policy>,
}

#[derive(Serialize)]
struct Policy {
    name: &'static str,
    summary: &'static str,
    source: &'static str,
}
