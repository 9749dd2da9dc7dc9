//! Jobs from a command line.

use pollux_api::job_file::{Flags, JobFile};

use crate::{job, with};

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

#[expect(clippy::unnecessary_wraps, reason = "flags are given or not")]
fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// The job of a command line and flags is the one of a file.
#[track_caller]
fn check(line: &str, flags: &Flags, file: &str) {
    let made = JobFile::from_command(&words(line), flags).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(made, job(file));
}

#[track_caller]
fn check_error(flags: &Flags, expected: &str) {
    assert_eq!(JobFile::from_command(&words("train"), flags).unwrap_err().to_string(), expected);
}

#[test]
fn a_command_is_a_job() {
    check(
        "python train.py --lr 1e-3",
        &Flags::default(),
        "name: train\ncommand: [python, train.py, --lr, 1e-3]\n",
    );
    check("./42", &Flags::default(), "name: job\ncommand: [./42]\n");
}

#[test]
fn every_flag_is_a_key() {
    let flags = Flags {
        name: some("a"),
        queue: some("vision"),
        priority: some("80"),
        gpus: some("1..8"),
        types: vec!["a100".to_owned(), "h100".to_owned()],
        cpus: some("7.5"),
        memory: some("64Gi"),
        workdir: some("/data"),
        env: vec!["A=b=c".to_owned(), "B=1".to_owned()],
        adapts: true,
        application: some("resnet"),
        min_runtime: some("5m"),
        checkpoint: some("/ckpt"),
        grace: some("1m"),
        max_failures: some("7"),
        array: some("3"),
        profile: some("resnet50"),
    };
    let file = "
        name: a\n        command: [b]\n        queue: vision\n        priority: high
        resources: {gpus: {min: 1, max: 8, types: [a100, h100]}, per_gpu: {cpus: 7.5, memory: 64Gi}}
        workdir: /data\n        env: {A: b=c, B: '1'}\n        training: {application: resnet}
        elastic: {min_runtime: 5m}\n        checkpoint: {path: /ckpt, grace: 1m}
        restart: {max_failures: 7}\n        array: 3\n        emulate: {profile: resnet50}\n";
    check("b", &flags, file);
}

#[test]
fn errors_name_the_option() {
    check_error(
        &Flags { gpus: some("many"), ..Flags::default() },
        "`--gpus`: `many` is not GPUs such as `4`, `1..16` or `2..`",
    );
    check_error(
        &Flags { gpus: some("4..2"), ..Flags::default() },
        "`--gpus`: at least 4 GPUs but at most 2; make `max` 4 or more",
    );
    check_error(
        &Flags { grace: some("soon"), ..Flags::default() },
        "`--grace`: `soon` is not a time such as `90s`, `5m` or `1h30m`, from 0s to 1d",
    );
    check_error(
        &Flags { env: words("A"), ..Flags::default() },
        "`--env`: `A` is not a variable such as `SEED=1`",
    );
    check_error(
        &Flags { types: vec!["a b".to_owned()], ..Flags::default() },
        "`--type`: `a b` is not a word of at most 63 characters",
    );
    let nothing = JobFile::from_command(&[], &Flags::default()).unwrap_err().to_string();
    assert!(nothing.starts_with("`command`: a list without a program is not a command"), "{nothing}");
}

#[test]
fn flags_change_a_file() {
    let file = job(&with("queue: a\nenv: {A: 1, B: 2}\nresources: {gpus: {min: 2, max: 4, types: t4}}\n"));
    assert_eq!(file.with_flags(&Flags::default()), Ok(file.clone()));
    let flags = Flags { queue: some("b"), gpus: some("2.."), env: words("A=7"), ..Flags::default() };
    let expected = job(&with("queue: b\nenv: {A: 7, B: 2}\nresources: {gpus: {min: 2, types: t4}}\n"));
    assert_eq!(file.with_flags(&flags), Ok(expected));
}

#[test]
fn paths_are_taken_from_where_it_is_submitted() {
    let file = job(&with("workdir: src\ncheckpoint: {path: ckpt}\nemulate: {profile: profiles/a.json}\n"));
    let there = file.in_folder("/projects/ann");
    assert_eq!(there.workdir.as_deref(), Some("/projects/ann/src"));
    assert_eq!(there.checkpoint.path.as_deref(), Some("/projects/ann/ckpt"));
    assert_eq!(there.emulate.unwrap().profile, "/projects/ann/profiles/a.json");
    let file = job(&with("checkpoint: {path: 's3://bucket/a'}\nemulate: {profile: resnet50}\n"));
    let there = file.in_folder("/data");
    assert_eq!((there.workdir.as_deref(), there.checkpoint), (Some("/data"), file.checkpoint));
    assert_eq!(there.emulate, file.emulate);
}
