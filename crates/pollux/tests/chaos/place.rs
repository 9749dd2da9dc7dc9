//! A scheduler in a folder of its own, which is killed and started again.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use pollux_api::client::Client;
use serde_json::Value;

use crate::processes::{MARK, marked};

/// Four nodes of four GPUs.
const SHAPE: &str = "4x4:t4";
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Far beyond what a start takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// The folder, and the scheduler if one runs.
pub(crate) struct Place {
    folder: Option<tempfile::TempDir>,
    path: PathBuf,
    scheduler: Option<Child>,
    /// Those that were killed, perhaps not gone yet.
    killed: Vec<Child>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(folder.path()).unwrap();
        Self { folder: Some(folder), path, scheduler: None, killed: Vec::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What all processes of this scheduler inherit.
    pub(crate) fn mark(&self) -> String {
        self.path.display().to_string()
    }

    pub(crate) fn is_up(&self) -> bool {
        self.scheduler.is_some()
    }

    /// Starts the scheduler, and does not wait for anything.
    pub(crate) fn start(&mut self) {
        let log = OpenOptions::new().create(true).append(true).open(self.path.join("up.log")).unwrap();
        let mut command = self.command();
        command.args(["up", "--emulate", SHAPE, "--round", "1", "--report-every", "0.2"]);
        command.args(["--listen", "127.0.0.1:0"]).env(MARK, self.mark());
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.scheduler = Some(command.spawn().unwrap());
    }

    /// Until the scheduler answers.
    #[track_caller]
    pub(crate) fn wait(&mut self) {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let child = self.scheduler.as_mut().unwrap();
            if let Some(status) = child.try_wait().unwrap() {
                panic!("the scheduler ended by itself ({status}): {}", self.log());
            }
            let pid = u64::from(child.id());
            if self.server().is_some_and(|server| server["pid"] == pid)
                && self.client().get::<Value>("/v1/service").is_ok()
            {
                self.killed.drain(..).for_each(|mut killed| drop(killed.wait()));
                return;
            }
            thread::sleep(LOOK_EVERY);
        }
        panic!("the scheduler does not answer: {}", self.log());
    }

    /// Kills the scheduler with signal 9. It may take a moment to go, and the next one may begin meanwhile.
    pub(crate) fn kill(&mut self) {
        let mut child = self.scheduler.take().unwrap();
        child.kill().unwrap();
        self.killed.push(child);
    }

    /// Kills it while something is asked of it; says what the answer was.
    pub(crate) fn kill_while<T>(&mut self, after: Duration, ask: impl FnOnce(&Client) -> T) -> T {
        let client = self.client();
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(after);
                self.kill();
            });
            ask(&client)
        })
    }

    /// A way to the scheduler.
    pub(crate) fn client(&self) -> Client {
        let token = fs::read_to_string(self.path.join("admin.token")).unwrap_or_default();
        let server = self.server().unwrap_or_default();
        Client::new(server["url"].as_str().unwrap_or("http://127.0.0.1:1"), &token)
    }

    /// The command, for this scheduler.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pollux"));
        command.env("POLLUX_STATE", &self.path).current_dir(&self.path);
        for name in ["POLLUX_SERVER", "POLLUX_TOKEN", "POLLUX_TOKEN_FILE", "POLLUX_OUTPUT"] {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command().args(args).output().unwrap()
    }

    /// What a command prints that succeeds, as JSON.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["-o", "json"]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}{}", self.log());
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Stops the scheduler as users do.
    #[track_caller]
    pub(crate) fn down(&mut self) {
        let output = self.run(&["down"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let status = self.scheduler.take().unwrap().wait().unwrap();
        assert!(status.success(), "{status}: {}", self.log());
    }

    fn server(&self) -> Option<Value> {
        serde_json::from_str(&fs::read_to_string(self.path.join("server.json")).ok()?).ok()
    }

    /// The latest lines that schedulers wrote.
    fn log(&self) -> String {
        let text = fs::read_to_string(self.path.join("up.log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(8)..].join("\n")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for mut child in self.scheduler.take().into_iter().chain(self.killed.drain(..)) {
            let _ = child.kill();
            let _ = child.wait();
        }
        // Supervisors first, so that none judges its worker.
        let mut left = marked(&self.mark());
        left.sort_by_key(|seen| seen.variable("POLLUX_NODE").is_some());
        for seen in left {
            seen.kill();
        }
        if thread::panicking() {
            // Who looks for the reason needs the journal and the logs.
            let kept = self.folder.take().map(tempfile::TempDir::keep);
            eprintln!("chaos: everything is kept in {}", kept.unwrap_or_default().display());
        }
    }
}
