//! A scheduler of a test's own, through its command and through plain HTTP.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

/// A scheduler in its own folder. It is stopped with its jobs when this goes.
pub(crate) struct Scheduler {
    folder: tempfile::TempDir,
    args: Vec<String>,
    env: Vec<(String, String)>,
}

/// What a call was answered.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) kind: String,
    pub(crate) body: String,
}

impl Answer {
    /// The body as JSON; null if it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

impl Scheduler {
    /// With emulated GPUs of this shape, and quick rounds.
    pub(crate) fn up(shape: &str) -> Self {
        let scheduler = Self::down(shape);
        scheduler.start();
        scheduler
    }

    /// The same, not yet started.
    pub(crate) fn down(shape: &str) -> Self {
        let args = ["up", "--emulate", shape, "--round", "0.5", "--report-every", "0.2"];
        let args =
            args.into_iter().chain(["--listen", "127.0.0.1:0", "--detach"]).map(str::to_owned).collect();
        Self { folder: tempfile::tempdir().unwrap(), args, env: Vec::new() }
    }

    #[track_caller]
    pub(crate) fn start(&self) {
        let output = self.try_start();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }

    /// With more options.
    #[track_caller]
    pub(crate) fn start_with(&self, more: &[&str]) {
        let output = self.command().args(&self.args).args(more).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }

    pub(crate) fn try_start(&self) -> Output {
        let env = self.env.iter().map(|(name, value)| (name, value));
        self.command().args(&self.args).envs(env).output().unwrap()
    }

    /// A variable of the scheduler's own environment.
    pub(crate) fn with_env(&mut self, name: &str, value: &str) {
        self.env.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The command, with nothing of the surroundings.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pollux"));
        command.env("POLLUX_STATE", self.folder()).current_dir(self.folder());
        for name in ["POLLUX_SERVER", "POLLUX_TOKEN", "POLLUX_TOKEN_FILE", "POLLUX_OUTPUT"] {
            command.env_remove(name);
        }
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
        assert!(said.starts_with("error: ") && output.stdout.is_empty(), "{args:?}: {said}");
    }

    /// Looks at a job until something is so.
    #[track_caller]
    pub(crate) fn until(&self, job: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..1_200 {
            let shown = self.json(&["describe", job]);
            if is_so(&shown) {
                return shown;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{job} never came so far: {}", self.ok(&["describe", job]));
    }

    pub(crate) fn file(&self, name: &str, contents: &str) -> String {
        let path = self.folder().join(name);
        fs::write(&path, contents).unwrap();
        path.display().to_string()
    }

    /// What it wrote about itself.
    pub(crate) fn running(&self) -> Value {
        let running = fs::read_to_string(self.folder().join("server.json")).unwrap();
        serde_json::from_str(&running).unwrap()
    }

    /// Where it listens, or listened last.
    fn host(&self) -> String {
        self.running()["url"].as_str().unwrap().trim_start_matches("http://").to_owned()
    }

    pub(crate) fn pid(&self) -> u32 {
        u32::try_from(self.running()["pid"].as_u64().unwrap()).unwrap()
    }

    /// Ends it at once, and waits until it is gone.
    pub(crate) fn kill(&self) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
        // One that nobody buries stays as a shadow: of its first thread, once all others are gone.
        let n_threads = || fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        let is_shadow = |stat: String| stat.rsplit_once(')').unwrap_or_default().1.starts_with(" Z");
        let has_ended = || fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(is_shadow);
        while n_threads() > 1 || n_threads() == 1 && !has_ended() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn admin(&self) -> String {
        fs::read_to_string(self.folder().join("admin.token")).unwrap().trim().to_owned()
    }

    /// A plain call. The body is JSON, if there is one.
    pub(crate) fn call(&self, method: &str, path: &str, token: Option<&str>, body: Option<&[u8]>) -> Answer {
        self.send(method, path, token, "application/json", body)
    }

    /// The same with a body of any kind. Of a stream only the beginning is waited for.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        kind: &str,
        body: Option<&[u8]>,
    ) -> Answer {
        let host = self.host();
        let bearer = token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
        let kind = body.map_or_else(String::new, |_| format!("Content-Type: {kind}\r\n"));
        let body = body.unwrap_or_default();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{bearer}{kind}");
        let mut stream = TcpStream::connect(&host).unwrap();
        write!(stream, "{head}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len()).unwrap();
        // Who is refused early may not be listened to until the end.
        let _ = stream.write_all(body);
        let mut reader = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_ascii_lowercase());
        }
        assert!(!lines.is_empty(), "{method} {path}: the connection was closed without an answer");
        let status = lines[0].split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        let header = |name: &str| {
            let found = lines.iter().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            found.unwrap_or_default().to_owned()
        };
        let kind = header("content-type");
        let mut body = Vec::new();
        if kind != "text/event-stream" {
            // A refused body that was not read whole may reset the connection after the answer.
            let _ = reader.read_to_end(&mut body);
        }
        let body = if header("transfer-encoding") == "chunked" { unchunked(&body) } else { body };
        Answer { status, kind, body: text(&body) }
    }

    /// What the API shows anybody of everything that can be changed.
    pub(crate) fn everything(&self) -> Vec<Value> {
        let admin = self.admin();
        let paths = ["/v1/jobs", "/v1/nodes", "/v1/queues", "/v1/tokens"];
        let mut all: Vec<Value> =
            paths.iter().map(|path| self.call("GET", path, Some(&admin), None).json()).collect();
        // What goes on by itself is nobody's doing.
        for job in all[0]["jobs"].as_array_mut().unwrap() {
            for key in ["reason", "reported"] {
                job[key] = Value::Null;
            }
        }
        all
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.run(&["down", "--cancel-jobs"]);
    }
}

/// The pieces of a chunked body, put together.
fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") {
        let size = usize::from_str_radix(&text(&bytes[..end]), 16).unwrap_or(0);
        let (from, to) = (end + 2, end + 2 + size);
        if size == 0 || to > bytes.len() {
            break;
        }
        whole.extend_from_slice(&bytes[from..to]);
        bytes = &bytes[(to + 2).min(bytes.len())..];
    }
    whole
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
