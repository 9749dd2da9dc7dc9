//! Workers as real processes, and what they leave behind.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

pub mod server;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// An empty folder of this test's own.
pub fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A job to start: arguments, and variables beside those of its ranks.
#[derive(Clone, Default)]
pub struct Job {
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Job {
    pub fn new(arguments: &str) -> Self {
        Self { arguments: arguments.split_whitespace().map(str::to_owned).collect(), variables: vec![] }
    }

    #[expect(clippy::needless_pass_by_value, reason = "numbers and paths read best as they are")]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.variables.push((name.to_owned(), value.to_string()));
        self
    }

    /// With this much work in all.
    pub fn steps(mut self, steps: u64) -> Self {
        self.arguments.extend(["--steps-at-initial".to_owned(), steps.to_string()]);
        self
    }

    pub fn start(&self, n_replicas: u32) -> Workers {
        // Free just now; nobody else on the machine hurries to take it.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let start = |rank: u32| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_pollux-trainer"));
            // Nothing of the machine the tests run on.
            command.env_clear().args(&self.arguments).envs(self.variables.iter().cloned());
            command.env("RANK", rank.to_string()).env("WORLD_SIZE", n_replicas.to_string());
            command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string());
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let stdout = BufReader::new(child.stdout.take().unwrap());
            Worker { child, stdout: Box::new(stdout) }
        };
        Workers((0..n_replicas).map(start).collect())
    }

    /// Runs to the end, which must be a good one; what rank 0 says.
    pub fn run(&self, n_replicas: u32) -> String {
        let ends = self.start(n_replicas).end();
        for (rank, end) in ends.iter().enumerate() {
            assert_eq!(end.code, Some(0), "rank {rank}: {}{}", end.stdout, end.stderr);
        }
        ends[0].stdout.clone()
    }
}

pub struct Worker {
    pub child: Child,
    stdout: Box<dyn BufRead>,
}

impl Worker {
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    /// Waits for a line of standard output that begins so.
    pub fn wait_for(&mut self, beginning: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "ended without `{beginning}`");
            if line.starts_with(beginning) {
                return line;
            }
        }
    }
}

/// All ranks of a job. Those still there when a test fails are killed.
pub struct Workers(pub Vec<Worker>);

#[derive(Debug)]
pub struct End {
    pub code: Option<i32>,
    /// The rest of what it said.
    pub stdout: String,
    pub stderr: String,
}

impl Workers {
    pub fn signal_all(&self, signal: Signal) {
        self.0.iter().for_each(|worker| worker.signal(signal));
    }

    pub fn end(mut self) -> Vec<End> {
        let ends = self.0.iter_mut().map(|worker| {
            let (mut stdout, mut stderr) = (String::new(), String::new());
            worker.stdout.read_to_string(&mut stdout).unwrap();
            worker.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
            End { code: worker.child.wait().unwrap().code(), stdout, stderr }
        });
        ends.collect()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.0 {
            let _ = worker.child.kill();
            let _ = worker.child.wait();
        }
    }
}

/// A row of `--curve`.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub step: u64,
    pub position: u64,
    pub batch: u64,
    pub passes: u64,
    pub replicas: u64,
    pub loss: f64,
    pub secs: f64,
    pub paced_secs: f64,
}

pub fn curve(file: &std::path::Path) -> Vec<Row> {
    let text = fs::read_to_string(file).unwrap();
    let rows = text.lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        let whole = |index: usize| fields[index].parse().unwrap();
        let float = |index: usize| fields[index].parse().unwrap();
        Row {
            step: whole(0),
            position: whole(1),
            batch: whole(2),
            passes: whole(3),
            replicas: whole(4),
            loss: float(5),
            secs: float(8),
            paced_secs: float(9),
        }
    });
    rows.collect()
}

/// No sample is lost or taken twice, and no step left out.
pub fn check_continuous(rows: &[Row]) {
    let (mut step, mut position) = (0, 0);
    for row in rows {
        step += 1;
        assert_eq!((row.step, row.position), (step, position));
        position += row.batch;
    }
}

/// The same losses, but for rounding.
pub fn check_same_losses(one: &[Row], other: &[Row]) {
    assert_eq!(one.len(), other.len());
    for (one, other) in one.iter().zip(other) {
        let off = (one.loss - other.loss).abs();
        assert!(off < 1e-9, "step {}: off by {off:e}", one.step);
    }
}

/// A number of the line that begins so: `field(out, "done: accuracy")`.
pub fn number(text: &str, before: &str) -> f64 {
    let rest = text.split(before).nth(1).unwrap_or_else(|| panic!("no `{before}` in:\n{text}"));
    let word = rest.split_whitespace().next().unwrap();
    word.trim_end_matches(',').parse().unwrap()
}

/// An application whose passes take `secs` whatever the micro-batch, with half a millisecond more where three exchange.
pub fn profile(secs: f64, restart_secs: f64) -> String {
    let more = secs + 0.0005;
    format!(
        r#"{{"kind": "pollux.application", "version": 1, "name": "flat", "source": "made up for tests",
        "batch": {{"initial": 32, "max": 256, "micro_min": 1, "micro_max": 512}}, "restart_secs": {restart_secs},
        "work": {{"epoch_ends": [1000], "noise_scales": {{"batches": [32], "epochs": [[100]]}}}},
        "step_times": {{"t4": {{"shapes": [
          {{"nodes": 1, "replicas": 1, "micro_batches": [1], "step_secs": [{secs}], "sync_secs": [0]}},
          {{"nodes": 1, "replicas": 3, "micro_batches": [1], "step_secs": [{more}], "sync_secs": [0.0005]}}]}}}}}}"#
    )
}
