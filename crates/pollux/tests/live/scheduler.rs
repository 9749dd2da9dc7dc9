//! A scheduler and its jobs, as all tests here start them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A scheduler of its own, in its own folder.
pub(crate) struct Scheduler {
    pub(crate) folder: tempfile::TempDir,
    shape: &'static str,
}

impl Scheduler {
    pub(crate) fn up(shape: &'static str) -> Self {
        let scheduler = Self { folder: tempfile::tempdir().unwrap(), shape };
        scheduler.start();
        scheduler
    }

    pub(crate) fn start(&self) {
        self.start_with(&[]);
    }

    /// With more options.
    pub(crate) fn start_with(&self, more: &[&str]) {
        let args = [
            "up",
            "--emulate",
            self.shape,
            "--round",
            "0.5",
            "--report-every",
            "0.2",
            "--listen",
            "127.0.0.1:0",
        ];
        let output = self.command().args(args).args(more).arg("--detach").output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pollux"));
        command
            .env("POLLUX_STATE", self.folder.path())
            .env_remove("POLLUX_SERVER")
            .env_remove("POLLUX_TOKEN");
        command.env_remove("POLLUX_TOKEN_FILE").env_remove("POLLUX_OUTPUT").current_dir(self.folder.path());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command().args(args).output().unwrap()
    }

    /// What a command prints that succeeds.
    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[args, &["-o", "json"]].concat())).unwrap()
    }

    /// A command fails with this code, and says so much.
    #[track_caller]
    pub(crate) fn check_refused(&self, args: &[&str], code: i32, says: &str) {
        let output = self.run(args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    }

    /// What it wrote about itself.
    pub(crate) fn running(&self) -> Value {
        let running = fs::read_to_string(self.folder.path().join("server.json")).unwrap();
        serde_json::from_str(&running).unwrap()
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.running()["pid"].as_i64().unwrap()).unwrap()
    }

    pub(crate) fn kill(&self) {
        let status = Command::new("kill").args(["-9", &self.pid().to_string()]).status().unwrap();
        assert!(status.success());
    }

    pub(crate) fn file(&self, name: &str, contents: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, contents).unwrap();
        path.display().to_string()
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.run(&["down", "--cancel-jobs"]);
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The worker, which Cargo puts beside the command; made here if only this test is.
pub(crate) fn trainer() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_pollux")).with_file_name("pollux-trainer");
    if !path.exists() {
        let built =
            Command::new(env!("CARGO")).args(["build", "--locked", "--package", "pollux-trainer"]).status();
        assert!(built.unwrap().success());
    }
    path
}

/// A worker's job file: so many steps, on so many GPUs, paced by the example's profile.
pub(crate) fn digits(steps: u32, gpus: &str) -> String {
    let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/profiles/digits.json");
    format!(
        "name: digits\ncommand: [{}, --steps-at-initial, '{steps}']\nresources: {{gpus: {gpus}}}\n\
         training: {{application: digits, batch: {{mode: adaptive, initial: 32, max: 512, per_gpu: [8, 128]}}}}\n\
         checkpoint: {{grace: 20s}}\nemulate: {{profile: {}}}\n",
        trainer().display(),
        profile.display()
    )
}

#[track_caller]
pub(crate) fn until(scheduler: &Scheduler, job: &str, is_so: impl Fn(&Value) -> bool) {
    for _ in 0..600 {
        let shown = scheduler.json(&["describe", job]);
        if is_so(&shown) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("{job} never came so far: {}", scheduler.ok(&["describe", job]));
}
