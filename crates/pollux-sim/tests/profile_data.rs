//! The built-in profiles against the measurements they were made from.
//!
//! Needs the data folder; says so loudly where it is absent.
#![allow(clippy::print_stderr, reason = "what was not compared is said")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pollux_model::{GpuType, Placement};
use pollux_sim::osdi21::{APPLICATIONS, Limits};
use pollux_sim::profile::{
    FITTED_SOURCE, MakeRequest, Profile, add_fitted, builtin, make_profile, read_fitted, write_profile,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The authors' traces in the data folder: `POLLUX_DATA`, or `../shared/data` beside the repository.
fn traces() -> Option<PathBuf> {
    let path = std::env::var_os("POLLUX_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    if path.is_dir() {
        return Some(path.join("pollux-osdi21/traces"));
    }
    eprintln!("NOT COMPARED WITH REFERENCE DATA: {} does not exist; set POLLUX_DATA", path.display());
    None
}

#[test]
fn the_built_in_profiles_are_what_the_data_make() {
    let Some(traces) = traces() else { return };
    let fitted = read_fitted(&traces.join("../../perf-params/perf_params.csv")).unwrap();
    for limits in &APPLICATIONS {
        let made = make_profile(&traces.join(limits.name), &MakeRequest::osdi21(limits)).unwrap();
        let made = add_fitted(made, &fitted[limits.name], FITTED_SOURCE).unwrap();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("profiles/{}.json", limits.name));
        let written = std::fs::read_to_string(file).unwrap();
        let remedy = "run `cargo run -p pollux-sim --example make_profiles`";
        assert!(write_profile(&made) == written, "{} differs; {remedy}", limits.name);
    }
}

#[test] // Lines between four micro-batches and a few shapes are at most this far from the fitted curve.
fn step_times_on_other_types_are_near_to_the_fits() {
    let Some(traces) = traces() else { return };
    let fitted = read_fitted(&traces.join("../../perf-params/perf_params.csv")).unwrap();
    let mut worst = 0.0_f64;
    for profile in builtin() {
        for known in &fitted[profile.name()] {
            let micro_min = profile.limits().micro_min();
            for gpus in 1..=known.gpus_per_node {
                for share in 0..=20 {
                    let micro = micro_min + (known.micro_max - micro_min) * share / 20;
                    let placement = Placement::new(1, gpus).unwrap();
                    let expected = known.params.last_micro_step_secs(placement, micro);
                    let found = profile.step_time(&known.gpu_type, placement, micro).unwrap().step_secs;
                    worst = worst.max((found / expected - 1.0).abs());
                }
            }
        }
    }
    eprintln!("at most {:.2} % from the fits", 100.0 * worst);
    assert!(worst < 0.04, "{worst}");
}

#[test]
fn the_built_in_profiles_know_other_types() {
    for profile in builtin() {
        let types: Vec<&str> = profile.gpu_types().map(GpuType::name).collect();
        // NCF on V100 was left out: ten times slower than on a T4.
        let expected: &[&str] = if profile.name() == "ncf" {
            &["a100", "quadro", "rtx", "t4"]
        } else {
            &["a100", "quadro", "rtx", "t4", "v100"]
        };
        assert_eq!(types, expected);
        assert!(profile.source().contains("siasosp23/artifacts"));
        let most = |gpu_type| profile.limits_on(&GpuType::new(gpu_type)).micro_max();
        assert!(most("a100") >= most("rtx"), "{} has more memory on an A100", profile.name());
        assert_eq!(most("t4"), profile.limits().micro_max());
    }
}

#[test]
fn the_built_in_profiles_have_the_limits_of_the_artifact() {
    for (profile, limits) in builtin().iter().zip(&APPLICATIONS) {
        let batch = profile.limits();
        let found = (batch.initial().0, batch.max().0, batch.micro_min(), batch.micro_max());
        let Limits { init_batch, max_batch, min_local, max_local, .. } = *limits;
        assert_eq!(found, (u64::from(init_batch), u64::from(max_batch), min_local, max_local));
        assert_eq!((profile.name(), profile.restart_secs()), (limits.name, 30.0));
        assert_eq!(profile.training().n_epochs(), limits.n_epochs as usize);
        assert_eq!(profile.max_gpus(&GpuType::new("t4")), limits.max_replicas().min(64));
        assert!(profile.source().contains("petuum/adaptdl"));
    }
}

/// One measured step.
struct Row {
    placement: Placement,
    micro_batch: u32,
    step_secs: f64,
}

/// Measured rows within the limits, first of `placements.csv`, then of `scalability.csv`.
fn measured(folder: &Path, limits: &Limits) -> Vec<Row> {
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let mut rows = Vec::new();
    for line in read("placements.csv").lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let digits = fields[0].chars().map(|digit| digit.to_digit(10).unwrap());
        let placement = Placement::new(u32::try_from(fields[0].len()).unwrap(), digits.sum()).unwrap();
        let (micro_batch, step_secs) = (fields[1].parse().unwrap(), fields[2].parse().unwrap());
        rows.push(Row { placement, micro_batch, step_secs });
    }
    for line in read("scalability.csv").lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let placement = Placement::new(fields[0].parse().unwrap(), fields[1].parse().unwrap()).unwrap();
        let (micro_batch, step_secs) = (fields[2].parse().unwrap(), fields[3].parse().unwrap());
        rows.push(Row { placement, micro_batch, step_secs });
    }
    rows.retain(|row| row.micro_batch <= limits.max_local);
    rows
}

/// Mean and largest relative error of a profile's step times.
fn errors(profile: &Profile, rows: &[Row]) -> (f64, f64) {
    let t4 = GpuType::new("t4");
    let (mut sum, mut worst, mut n_rows) = (0.0, 0.0_f64, 0.0);
    for row in rows {
        let time = profile.step_time(&t4, row.placement, row.micro_batch).unwrap();
        let error = (time.step_secs / row.step_secs - 1.0).abs();
        (sum, worst, n_rows) = (sum + error, worst.max(error), n_rows + 1.0);
    }
    (sum / n_rows, worst)
}

/// Rows averaged by shape and micro-batch: what any profile of shapes can at best reproduce.
fn averaged(rows: &[Row]) -> Vec<Row> {
    let mut groups: BTreeMap<(Placement, u32), Vec<f64>> = BTreeMap::new();
    for row in rows {
        groups.entry((row.placement, row.micro_batch)).or_default().push(row.step_secs);
    }
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let row = |((placement, micro_batch), times): (_, Vec<f64>)| Row {
        placement,
        micro_batch,
        step_secs: mean(&times),
    };
    groups.into_iter().map(row).collect()
}

/// Mean and worst error in percent, against every row, then against rows averaged by shape.
const ERRORS: [(&str, [f64; 4]); 6] = [
    ("bert", [1.75, 17.81, 0.01, 0.04]),
    ("cifar10", [3.57, 35.30, 0.91, 13.31]),
    ("deepspeech2", [1.79, 11.34, 0.23, 7.95]),
    ("imagenet", [2.85, 21.94, 0.38, 7.80]),
    ("ncf", [5.01, 30.51, 2.33, 25.10]),
    ("yolov3", [2.16, 14.26, 0.02, 0.04]),
];

#[test] // The figures of `docs/reference/application-profile.md`, within half of their last digit and rounding.
fn step_times_are_near_to_the_measured_ones() {
    let Some(traces) = traces() else { return };
    for ((profile, limits), (name, stated)) in builtin().iter().zip(&APPLICATIONS).zip(ERRORS) {
        let rows = measured(&traces.join(limits.name), limits);
        let (mean, worst) = errors(profile, &rows);
        let (mean_of_means, worst_of_means) = errors(profile, &averaged(&rows));
        let found = [mean, worst, mean_of_means, worst_of_means].map(|error| 100.0 * error);
        eprintln!("{name}: {found:.2?} % of {} rows", rows.len());
        assert_eq!(name, profile.name());
        for (found, stated) in found.into_iter().zip(stated) {
            assert!((found - stated).abs() <= 0.006, "{name}: {found} % is not {stated} %");
        }
    }
}
