//! What holds for all files.

use std::collections::BTreeMap;
use std::time::Duration;

use pollux_api::job_file::{Array, Batch, BatchMode, Checkpoint, Elastic, Emulate, Gpus, JobFile, LrRule};
use pollux_api::job_file::{PerGpu, Resources, Restart, Training};
use pollux_policy::Priority;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

fn secs(least: u64, most: u64) -> impl Strategy<Value = Duration> {
    (least..=most).prop_map(Duration::from_secs)
}

/// Text that can be passed on: anything without NUL.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z0-9. -]{1,12}", "[^\\x00]{1,12}"]
}

fn env() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map("[A-W][A-Z0-9_]{4,8}", text(), 0..4).prop_map(|env| {
        env.into_iter().filter(|(name, _)| !name.starts_with("POLLUX") && !name.contains("RANK")).collect()
    })
}

fn resources() -> impl Strategy<Value = Resources> {
    let gpus = (1_u32..=65_536, option::of(0_u32..100), any::<bool>(), btree_set("[a-z0-9]{1,8}", 0..3));
    let gpus = gpus.prop_map(|(min, more, asks, types)| {
        let max = more.map(|more| (min + more).min(65_536));
        Gpus { min, max, request: max.filter(|_| asks), types }
    });
    let per_gpu = (option::of(1e-3..1024.0_f64), option::of(1_u64 << 20..=1 << 50));
    let per_gpu = per_gpu.prop_map(|(cpus, memory)| PerGpu { cpus, memory });
    (gpus, per_gpu).prop_map(|(gpus, per_gpu)| Resources { gpus, per_gpu })
}

fn training() -> impl Strategy<Value = Training> {
    let mode = select(&[BatchMode::Fixed, BatchMode::Bounded, BatchMode::Adaptive][..]);
    let batch = (mode, option::of(1_u64..1_000), 0_u64..1_000, option::of((1_u32..9, 0_u32..9)));
    let batch = batch.prop_map(|(mode, initial, more, per_gpu)| Batch {
        mode,
        initial,
        max: match mode {
            BatchMode::Fixed => None,
            BatchMode::Bounded => Some(initial.unwrap_or(1) + more),
            BatchMode::Adaptive => (more > 500).then(|| initial.unwrap_or(1) + more),
        },
        per_gpu: per_gpu.map(|(least, more)| (least, least + more)),
    });
    let rules =
        [LrRule::Auto, LrRule::AdaScale, LrRule::AdamScale, LrRule::Linear, LrRule::Sqrt, LrRule::None];
    let rest = (option::of("[a-z0-9]{1,9}"), select(rules.to_vec()), any::<bool>(), option::of(1e-3..1e12));
    (batch, rest).prop_map(|(batch, (application, lr, accumulation, work))| Training {
        application,
        batch,
        lr,
        accumulation,
        work,
    })
}

fn restart() -> impl Strategy<Value = Restart> {
    (0_u32..=1_000, vec(1..128_i32, 0..3), vec(128..=255_i32, 0..3), secs(1, 365 * 86_400)).prop_map(
        |(max_failures, retry_exit_codes, give_up_exit_codes, start_deadline)| Restart {
            max_failures,
            retry_exit_codes,
            give_up_exit_codes,
            start_deadline,
        },
    )
}

fn array() -> impl Strategy<Value = Array> {
    let values = vec(text(), 1..4).prop_map(|values| Array::Values { variable: "X_FOLD".to_owned(), values });
    prop_oneof![(1_u32..=10_000).prop_map(Array::Count), values]
}

prop_compose! {
    /// Any job within its limits.
    fn any_job()(
        (name, queue, priority) in (
            "[a-z][a-z0-9]{0,20}",
            option::of("[a-zA-Z0-9/_.]{1,12}"),
            select(&[Priority::Low, Priority::Normal, Priority::High][..]),
        ),
        (command, workdir, env) in (vec(text(), 1..5), option::of("/[a-z]{1,8}"), env()),
        (resources, training, adapts) in (resources(), option::of(training()), any::<bool>()),
        (preemptible, min_runtime, max_resizes_per_hour) in
            (any::<bool>(), secs(0, 365 * 86_400), option::of(0_u32..=1_000)),
        (path, grace) in (option::of(text()), secs(0, 86_400)),
        (restart, array, profile) in (restart(), option::of(array()), option::of("[a-z]{1,8}")),
    ) -> JobFile {
        JobFile {
            queue,
            priority,
            workdir,
            env,
            resources,
            training,
            adapts,
            elastic: Elastic { preemptible, min_runtime, max_resizes_per_hour },
            checkpoint: Checkpoint { path, grace },
            restart,
            array,
            emulate: profile.map(|profile| Emulate { profile }),
            ..JobFile::named(&name, command)
        }
    }
}

/// A good file in each format.
const GOOD: [(&str, &str); 3] = [
    (
        "a.yaml",
        "name: a\ncommand: [b, 1e-3]\nenv: &e {X: 1}\nresources:\n  gpus: 1..4\ntraining:\n  batch: {initial: 8, per_gpu: \
         [1, 4]}\nelastic: {min_runtime: 5m}\ncheckpoint: {grace: 1m}\narray: {S: [1, 2]}\n",
    ),
    (
        "a.toml",
        "name = \"a\"\ncommand = [\"b\", 1e-3]\nenv.X = 1\n[resources]\ngpus = \"1..4\"\n[training.batch]\ninitial = 0x8\n\
         per_gpu = [1, 4]\n[elastic]\nmin_runtime = '5m'\n[array]\nS = [1, 1979-05-27]\n",
    ),
    (
        "a.json",
        "{\"name\": \"a\", \"command\": [\"b\", 1e-3], \"env\": {\"X\": \"\\u00e4\"}, \"resources\": {\"gpus\": \"1..4\"},\n\
         \"training\": {\"batch\": {\"initial\": 8, \"per_gpu\": [1, 4]}}, \"array\": {\"S\": [1, 2]}}",
    ),
];

/// Bytes that make trouble somewhere.
const PIECES: [&str; 22] = [
    "{", "}", "[", "]", "\"", "'", ":", ": ", ",", "\n", "\t", "&a ", "*a", "<<: ", "!!int ", "---\n", "-1",
    "1e999", "\u{0}", "ä", "\u{feff}", "=",
];

/// Whatever it is, it is read or refused, and what is refused can be shown.
fn check_survives(bytes: &[u8], file: &str) {
    match JobFile::read(bytes, file) {
        Ok(job) => {
            assert_eq!(JobFile::from_json(&job.to_json()), Ok(job.clone()));
            assert_eq!(job.expand().len(), job.array.as_ref().map_or(1, Array::len));
        }
        Err(error) => assert!(error.to_string().starts_with(file)),
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(job in any_job()) {
        let json = job.to_json();
        prop_assert_eq!(JobFile::from_json(&json), Ok(job.clone()));
        prop_assert_eq!(JobFile::read(json.to_string().as_bytes(), "a.json"), Ok(job.clone()));
        for member in job.expand().iter().take(3) {
            prop_assert_eq!(JobFile::from_json(&member.to_json()), Ok(member.clone()));
        }
        prop_assert!(JobFile::from_json(&json).unwrap().to_json() == json, "canonical");
    }

    #[test]
    fn good_files_survive_changes(
        good in select(&GOOD[..]),
        changes in vec((any::<Index>(), 0_usize..4, select(&PIECES[..])), 1..6),
    ) {
        let mut letters: Vec<char> = good.1.chars().collect();
        for (at, remove, insert) in changes {
            let at = at.index(letters.len() + 1);
            let end = (at + remove).min(letters.len());
            letters.splice(at..end, insert.chars());
        }
        let text: String = letters.into_iter().collect();
        check_survives(text.as_bytes(), good.0);
    }

    #[test]
    fn any_text_and_any_bytes_are_survived(
        text in "\\PC{0,40}",
        pieces in vec(select(&PIECES[..]), 0..40),
        bytes in vec(any::<u8>(), 0..40),
        file in select(&["a.yaml", "a.toml", "a.json", "-"][..]),
    ) {
        check_survives(text.as_bytes(), file);
        check_survives(pieces.concat().as_bytes(), file);
        check_survives(&bytes, file);
    }
}

#[test]
fn good_files_are_good() {
    for (file, text) in GOOD {
        JobFile::read(text.as_bytes(), file).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn depth_and_aliases_are_limited() {
    for file in ["a.yaml", "a.toml", "a.json"] {
        check_survives("[".repeat(100_000).as_bytes(), file);
        check_survives("{\"a\":".repeat(100_000).as_bytes(), file);
        check_survives(format!("a = {}", "[".repeat(100_000)).as_bytes(), file);
    }
    let level = |level: usize| {
        let inner = if level == 0 { "x".to_owned() } else { format!("*a{}", level - 1) };
        format!("a{level}: &a{level} [{}]\n", vec![inner; 9].join(", "))
    };
    check_survives((0..12).map(level).collect::<String>().as_bytes(), "a.yaml");
    check_survives("- ".repeat(100_000).as_bytes(), "a.yaml");
}
