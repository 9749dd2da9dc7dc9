//! Application profiles: what they say, what they refuse, and how they are made from measurements.

use std::path::{Path, PathBuf};

use pollux_model::{GpuType, Placement};
use pollux_sim::profile::{
    MakeRequest, Profile, StepTime, builtin, make_profile, parse_profile, read_profiles, write_profile,
};

/// Steps of 1 s with 10 samples and 2 s with 20 on one GPU; on two GPUs, half a second of exchange more. An epoch
/// without noise, then one where the noise is the initial batch.
const SMALL: &str = r#"{
  "kind": "pollux.application",
  "version": 1,
  "name": "small",
  "source": "made up",
  "batch": {"initial": 20, "max": 80, "micro_min": 10, "micro_max": 20},
  "restart_secs": 30,
  "work": {
    "epoch_ends": [10,40],
    "noise_scales": {
      "batches": [20,80],
      "epochs": [
        [0,0],
        [20,20]
      ]
    }
  },
  "step_times": {
    "t4": {
      "shapes": [
        {"nodes": 1, "replicas": 1, "micro_batches": [10,20], "step_secs": [1,2], "sync_secs": [0,0]},
        {"nodes": 1, "replicas": 2, "micro_batches": [10,20], "step_secs": [1.5,2.5], "sync_secs": [0.5,0.5]}
      ]
    }
  }
}
"#;

fn parse(text: &str) -> Profile {
    parse_profile(Path::new("small.json"), text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_profile_says_what_its_file_says() {
    let profile = parse(SMALL);
    let (t4, a100) = (GpuType::new("t4"), GpuType::new("a100"));
    assert_eq!((profile.name(), profile.source(), profile.restart_secs()), ("small", "made up", 30.0));
    assert_eq!((profile.limits().initial().0, profile.limits().max().0), (20, 80));
    assert_eq!((profile.limits().micro_min(), profile.limits().micro_max()), (10, 20));
    assert_eq!(profile.gpu_types().collect::<Vec<_>>(), [&t4]);
    assert_eq!((profile.max_gpus(&t4), profile.max_gpus(&a100)), (2, 0));
    let on_two = Placement::new(1, 2).unwrap();
    let time = StepTime { step_secs: 2.0, sync_secs: 0.5 };
    assert_eq!(profile.step_time(&t4, on_two, 15), Some(time));
    assert_eq!(profile.step_time(&a100, on_two, 15), None);
    assert_eq!((profile.training().n_epochs(), profile.training().work()), (2, 40.0));
}

#[test]
fn gpus_beyond_the_smallest_micro_batch_are_of_no_use() {
    let narrow = SMALL.replace("\"max\": 80, \"micro_min\": 10", "\"max\": 20, \"micro_min\": 20");
    assert_eq!(parse(&narrow).max_gpus(&GpuType::new("t4")), 1);
}

fn check_run(n_replicas: u32, batch: u64, expected: Option<f64>) {
    let placement = Placement::new(1, n_replicas).unwrap();
    assert_eq!(
        parse(SMALL).run_secs(&GpuType::new("t4"), placement, batch),
        expected,
        "{batch} samples on {n_replicas} GPUs"
    );
}

#[test] // At 60 samples a step of the second epoch is worth 3 * 40 / 80 = 1.5 steps; of the first, 1.
fn a_run_takes_its_steps_times_their_length() {
    check_run(1, 20, Some(80.0)); // 40 steps of 2 s
    check_run(2, 20, Some(60.0)); // 40 steps of 1.5 s
    check_run(1, 60, Some(180.0)); // 10 + 20 steps of three passes of 2 s
    check_run(2, 60, Some(105.0)); // 10 + 20 steps of two passes of 15 samples: 1.5 s and 2 s
}

#[test]
fn a_run_that_breaks_a_limit_is_none() {
    check_run(1, 19, None);
    check_run(1, 81, None);
    check_run(4, 20, None); // 5 samples on each
    assert_eq!(parse(SMALL).run_secs(&GpuType::new("a100"), Placement::ALONE, 20), None);
}

/// The small profile with memory for 40 samples on its one type of GPU.
fn roomy() -> String {
    SMALL.replace("\"t4\": {\n", "\"t4\": {\n      \"micro_max\": 40,\n")
}

#[test] // 60 samples on one GPU: three passes of 20, or two of 30, for 10 + 20 steps.
fn a_type_can_have_more_memory() {
    let t4 = GpuType::new("t4");
    assert_eq!(parse(&roomy()).limits_on(&t4).micro_max(), 40);
    assert_eq!(parse(&roomy()).run_secs(&t4, Placement::ALONE, 60), Some(180.0));
    assert_eq!(parse(&roomy()).run_secs(&t4, Placement::new(1, 2).unwrap(), 60), Some(105.0));
    assert_eq!(write_profile(&parse(&roomy())), roomy());
    let error = parse_profile(Path::new("small.json"), &roomy().replace("40,\n", "9,\n")).unwrap_err();
    let start = "small.json: `step_times.t4.micro_max`: ";
    assert!(error.to_string().starts_with(start), "{error}");
}

#[test]
fn writing_is_the_inverse_of_reading() {
    assert_eq!(write_profile(&parse(SMALL)), SMALL);
    for profile in builtin() {
        assert_eq!(parse(&write_profile(&profile)), *profile);
    }
    let odd = SMALL.replace("made up", "a \\\"quote\\\"\\nand a line");
    assert_eq!(write_profile(&parse(&odd)), odd);
}

/// Reads the small profile with `from` replaced.
fn check_refused(from: &str, to: &str, expected: &str) {
    assert!(SMALL.contains(from), "{from} stands in the file");
    let error = parse_profile(Path::new("small.json"), &SMALL.replacen(from, to, 1)).unwrap_err();
    assert_eq!(error.to_string(), format!("small.json{expected}"));
}

#[test]
fn text_that_is_no_profile_is_refused() {
    check_refused("\"t4\": {", "\"t4\": {{", ":19:12: not JSON: key must be a string");
    check_refused("  }\n}\n", "  }\n}\n}\n", ":27:1: not JSON: trailing characters");
    let kind = ": no application profile; one begins with {\"kind\": \"pollux.application\", \"version\": 1";
    check_refused("pollux.application", "pollux.plan", kind);
    check_refused("  \"version\": 1,\n", "", kind);
    let version = ": version 2 of application profiles; this build reads 1";
    check_refused("\"version\": 1", "\"version\": 2", version);
}

#[test]
fn fields_are_known_present_and_of_their_type() {
    let unknown = "unknown field `micromax`, expected one of `initial`, `max`, `micro_min`, `micro_max`";
    check_refused("micro_max", "micromax", &format!(": `batch.micromax`: {unknown}"));
    check_refused("  \"source\": \"made up\",\n", "", ": missing field `source`");
    check_refused(
        "[1,2]",
        "[1,\"2\"]",
        ": `step_times.t4.shapes[0].step_secs[1]`: invalid type: string \"2\", expected f64",
    );
    check_refused("[10,40]", "40", ": `work.epoch_ends`: invalid type: integer `40`, expected a sequence");
    let twice = "\"t4\": {\"shapes\": []}, \"t4\": {";
    check_refused("\"t4\": {", twice, ": `step_times`: GPU type \"t4\" stands twice");
}

#[test]
fn lists_ascend_and_belong_together() {
    check_refused("[10,40]", "[40,10]", ": `work.epoch_ends[1]`: 10 comes after 40, but values must ascend");
    check_refused("[10,40]", "[0,40]", ": `work.epoch_ends[0]`: 0 comes after 0, but values must ascend");
    check_refused("[10,40]", "[]", ": `work.epoch_ends`: the list is empty; at least one value is needed");
    let length = "2 values, but `work.epoch_ends` has 3; they belong together";
    check_refused("[10,40]", "[10,40,50]", &format!(": `work.noise_scales.epochs`: {length}"));
    let length = "1 values, but `work.noise_scales.batches` has 2; they belong together";
    check_refused("[20,20]", "[20]", &format!(": `work.noise_scales.epochs[1]`: {length}"));
    let batches = "80 comes after 80, but values must ascend";
    check_refused("[20,80]", "[80,80]", &format!(": `work.noise_scales.batches[1]`: {batches}"));
    let micro = ": `step_times.t4.shapes[0].micro_batches[1]`: 10 comes after 10, but values must ascend";
    check_refused("[10,20]", "[10,10]", micro);
    let length = "1 values, but `micro_batches` has 2; they belong together";
    check_refused("[1,2]", "[1]", &format!(": `step_times.t4.shapes[0].step_secs`: {length}"));
}

#[test]
fn numbers_make_sense() {
    let step = "a step of 0 s; a step takes a microsecond or more";
    check_refused("[1,2]", "[0,2]", &format!(": `step_times.t4.shapes[0].step_secs[0]`: {step}"));
    let sync = "an exchange of 3 s; it is a part of the step of 2.5 s, from 0 to all of it";
    check_refused("[0.5,0.5]", "[0.5,3]", &format!(": `step_times.t4.shapes[1].sync_secs[1]`: {sync}"));
    let noise = "a noise scale of -1 samples; it must be from 0 to 1e9";
    check_refused("[20,20]", "[20,-1]", &format!(": `work.noise_scales.epochs[1][1]`: {noise}"));
    check_refused(
        "\"restart_secs\": 30",
        "\"restart_secs\": -1",
        ": `restart_secs`: -1 s; it must be a number from 0 up",
    );
    let limits = ": `batch`: the maximum batch size 10 is below the initial batch size 20";
    check_refused("\"max\": 80", "\"max\": 10", limits);
    let name = ": `name`: \"a b\" is no name; use letters, digits, `-`, `_` and `.`";
    check_refused("\"small\"", "\"a b\"", name);
}

#[test]
fn shapes_begin_with_one_gpu_and_ascend() {
    let first = ": `step_times.t4.shapes`: the first shape must be 1 replica on 1 node";
    check_refused("\"replicas\": 1", "\"replicas\": 2", first);
    let order = "1 replicas on 1 nodes comes after 1 replicas on 1 nodes, but values must ascend";
    check_refused("\"replicas\": 2", "\"replicas\": 1", &format!(": `step_times.t4.shapes[1]`: {order}"));
    let shape = "2 replicas on 3 nodes; each node needs one, and there must be a node";
    let from = "\"nodes\": 1, \"replicas\": 2";
    check_refused(from, "\"nodes\": 3, \"replicas\": 2", &format!(": `step_times.t4.shapes[1]`: {shape}"));
}

/// A new folder with these files.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("profile").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for (file, text) in files {
        std::fs::write(folder.join(file), text).unwrap();
    }
    folder
}

#[test]
fn a_folder_of_profiles_is_read_by_name() {
    let other = SMALL.replace("\"small\"", "\"other\"");
    let both = folder("both", &[("a.json", SMALL), ("b.json", &other), ("notes.txt", "no profile")]);
    let names: Vec<String> =
        read_profiles(&both).unwrap().iter().map(|profile| profile.name().to_owned()).collect();
    assert_eq!(names, ["other", "small"]);
    let message = |folder: &Path| read_profiles(folder).unwrap_err().to_string();
    let twice = folder("twice", &[("a.json", SMALL), ("b.json", SMALL)]);
    assert!(message(&twice).contains("b.json: an application named `small` stands in "));
    assert!(message(&folder("none", &[])).ends_with("none: no `.json` file in this folder"));
    assert!(message(&twice.join("nowhere")).contains("nowhere: cannot be read: "));
}

/// One GPU, two ways to have four on two nodes, whose mean is a step of 3 s with 1 s of exchange, and three nodes.
const PLACEMENTS: &str = "placement,local_bsz,step_time,sync_time\n\
    1,10,1,0\n1,20,2,0\n1,40,4,0\n13,10,2,0.5\n22,10,4,1.5\n111,10,4,2\n";
const RUN_20: &str = "progress,iteration,metric,grad_sqr,grad_var\n10,10,0,2,1\n20,20,0,0,1\n30,30,0,1,1\n";
const RUN_80: &str = "progress,iteration,metric,grad_sqr,grad_var\n9,5,0,1,2\n21,10,0,1,4\n";

fn small_folder(name: &str, change: (&str, &str, &str)) -> PathBuf {
    let files =
        [("placements.csv", PLACEMENTS), ("validation-20.csv", RUN_20), ("validation-80.csv", RUN_80)];
    let (changed, from, to) = change;
    let files = files.map(|(file, text)| {
        (file, if file == changed { text.replacen(from, to, 1) } else { text.to_owned() })
    });
    let folder = folder(name, &[]);
    for (file, text) in files {
        std::fs::write(folder.join(file), text).unwrap();
    }
    folder
}

fn request() -> MakeRequest {
    MakeRequest::new("made", "measured by a test", GpuType::new("a100"))
}

#[test]
fn measurements_become_a_profile() {
    let made = small_folder("made", ("", "", ""));
    let profile = make_profile(&made, &request()).unwrap();
    let limits = profile.limits();
    assert_eq!(
        (limits.initial().0, limits.max().0, limits.micro_min(), limits.micro_max()),
        (20, 80, 10, 40)
    );
    let a100 = GpuType::new("a100");
    let time = |nodes, replicas| {
        profile.step_time(&a100, Placement::new(nodes, replicas).unwrap(), 10).unwrap().step_secs
    };
    assert_eq!((time(1, 1), time(2, 4), time(3, 3)), (1.0, 3.0, 4.0));
    let training = profile.training();
    assert_eq!((training.epoch_end(0), training.epoch_end(1), training.n_epochs()), (9.0, 20.0, 2));
    assert_eq!((training.noise_row(0), training.noise_row(1)), (&[10.0, 40.0][..], &[1e9, 80.0][..]));
    let limited = MakeRequest { micro_max: Some(20), max_epochs: Some(1), ..request() };
    let profile = make_profile(&made, &limited).unwrap();
    assert_eq!((profile.limits().micro_max(), profile.training().n_epochs()), (20, 1));
}

fn check_not_made(name: &str, change: (&str, &str, &str), expected: &str) {
    let error = make_profile(&small_folder(name, change), &request()).unwrap_err().to_string();
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn bad_measurements_are_refused_by_file_and_line() {
    let file = "placements.csv";
    let column = "placements.csv:1: column `sync_time` is missing from the header";
    check_not_made("column", (file, "sync_time", "sync"), column);
    let zero = "placements.csv:2: column `step_time`: \"0\" is not a positive number of seconds";
    check_not_made("zero", (file, "1,10,1,0", "1,10,0,0"), zero);
    let type_ = "placements.csv:3: column `local_bsz`: \"many\" is not a whole number, 1 or more";
    check_not_made("type", (file, "1,20", "1,many"), type_);
    let order = "placements.csv:3: column `local_bsz`: 5 comes after 10, but the column must ascend";
    check_not_made("order", (file, "1,20", "1,5"), order);
    let progress = "validation-20.csv:3: column `progress`: 2 comes after 10, but the column must ascend";
    check_not_made("progress", ("validation-20.csv", "20,20", "2,20"), progress);
}

#[test]
fn a_folder_without_what_is_needed_is_refused() {
    let message = |folder: &Path| make_profile(folder, &request()).unwrap_err().to_string();
    let untrained =
        folder("untrained", &[("placements.csv", "placement,local_bsz,step_time,sync_time\n1,1,1,0\n")]);
    assert!(message(&untrained).contains("untrained: no training run; name each `validation-BATCH.csv`"));
    let many = folder(
        "many",
        &[
            ("placements.csv", "placement,local_bsz,step_time,sync_time\n2,1,1,0\n"),
            ("validation-2.csv", RUN_20),
        ],
    );
    let error = message(&many);
    assert!(
        error.ends_with("many: `step_times.a100.shapes`: the first shape must be 1 replica on 1 node"),
        "{error}"
    );
    assert!(message(&folder("empty", &[])).contains("placements.csv: cannot be read: "));
}
