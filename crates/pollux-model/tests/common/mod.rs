//! What the integration tests share.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "each test file uses its own part")]
#![allow(clippy::print_stderr, clippy::disallowed_methods, reason = "tests find their data themselves")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers, in tests")]

pub mod dice;

use std::path::PathBuf;

pub use dice::Dice;

/// The folder of reference data: `POLLUX_DATA`, or `../shared/data` beside the repository. Where it is
/// absent the caller returns early; `cargo xtask test` says so in its last lines.
pub fn reference_data() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = std::env::var_os("POLLUX_DATA").map_or(beside, PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("NOT COMPARED WITH REFERENCE DATA: {} does not exist; set POLLUX_DATA", path.display());
    None
}

pub fn reference_json(name: &str) -> Option<serde_json::Value> {
    let path = reference_data()?.join("reference").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Some(serde_json::from_str(&text).expect("reference data is JSON"))
}

/// Step times of one application on T4 GPUs, as the authors measured them: every placement and micro-batch.
pub fn t4_observations(application: &str) -> Option<Vec<pollux_model::fit::Observation>> {
    let folder = reference_data()?.join("pollux-osdi21/traces").join(application);
    let mut observations = Vec::new();
    for (file, is_placement) in [("placements.csv", true), ("scalability.csv", false)] {
        let text = std::fs::read_to_string(folder.join(file)).expect("a trace of the artifact");
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split(',').collect();
            let number = |index: usize| -> f64 { fields[index].parse().expect("a number") };
            let (nodes, replicas, rest) = if is_placement {
                let digits: Vec<u32> = fields[0].chars().map(|c| c.to_digit(10).unwrap()).collect();
                (digits.len() as u32, digits.iter().sum(), 1)
            } else {
                (number(0) as u32, number(1) as u32, 2)
            };
            let (step, sync) = (number(rest + 1), number(rest + 2));
            observations.push(
                pollux_model::fit::Observation::new(
                    pollux_model::Placement::new(nodes, replicas).unwrap(),
                    number(rest) as u32,
                    step - sync,
                    step,
                )
                .unwrap(),
            );
        }
    }
    Some(observations)
}

pub const APPLICATIONS: [&str; 6] = ["bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"];
