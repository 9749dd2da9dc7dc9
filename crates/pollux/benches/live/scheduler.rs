//! A scheduler to be measured.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use pollux_api::client::Client;
use pollux_api::job_file::JobFile;
use pollux_api::rest::{JobList, JobShown, Submission, Submitted};
use serde_json::Value;

use crate::worker::WORD;

/// Ticks of a second in `/proc/PID/stat`, on every Linux.
const TICKS: f64 = 100.0;
const LOOK_EVERY: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_mins(5);

/// `pollux up` in a folder of its own.
pub(crate) struct Scheduler {
    folder: tempfile::TempDir,
    child: Child,
    client: Client,
}

impl Scheduler {
    /// With made-up nodes, and other options.
    pub(crate) fn up(shape: &str, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("there is room for temporary files");
        let log = File::create(folder.path().join("up.log")).expect("the folder is new");
        let child = Command::new(env!("CARGO_BIN_EXE_pollux"))
            .args(["up", "--emulate", shape, "--listen", "127.0.0.1:0"])
            .args(options)
            .env("POLLUX_STATE", folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("it is open"))
            .stderr(log)
            .spawn()
            .expect("the command was built with this benchmark");
        let mut scheduler = Self { folder, child, client: Client::new("http://127.0.0.1:1", "") };
        let server = scheduler.folder.path().join("server.json");
        until("the scheduler answers", || {
            let running: Option<Value> =
                fs::read_to_string(&server).ok().and_then(|text| serde_json::from_str(&text).ok());
            running.is_some_and(|running| running["url"].as_str().is_some())
        });
        let running: Value = serde_json::from_str(&fs::read_to_string(&server).unwrap_or_default())
            .expect("it was just written");
        let token = fs::read_to_string(scheduler.folder.path().join("admin.token")).unwrap_or_default();
        scheduler.client = Client::new(running["url"].as_str().unwrap_or_default(), &token);
        until("the scheduler answers", || scheduler.client.get::<Value>("/v1/service").is_ok());
        scheduler
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Its state folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Submits a job file.
    pub(crate) fn submit(&self, text: &str) -> Vec<JobShown> {
        let file = JobFile::read(text.as_bytes(), "bench.yaml").expect("it is a job file");
        let body = Submission { file: file.to_json(), dry_run: false };
        let submitted: Submitted =
            self.client.send("POST", "/v1/jobs", &[], Some(&body)).expect("it can run here");
        submitted.jobs
    }

    /// All jobs.
    pub(crate) fn jobs(&self) -> Vec<JobShown> {
        let mut jobs: Vec<JobShown> = Vec::new();
        loop {
            let after = jobs.last().map_or(0, |job| job.id);
            let page: JobList =
                self.client.get(&format!("/v1/jobs?after={after}")).expect("the scheduler lives");
            jobs.extend(page.jobs);
            if page.next.is_none() {
                return jobs;
            }
        }
    }

    /// CPU seconds it has used, its supervisors and jobs not counted.
    pub(crate) fn cpu_secs(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace();
        // The twelfth and the thirteenth after the name: in the program, and in the kernel for it.
        fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS
    }

    /// Memory it uses now and used at most, in MB.
    pub(crate) fn memory_mb(&self) -> [f64; 2] {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        ["VmRSS:", "VmHWM:"].map(|name| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<f64>().ok());
            kib.unwrap_or(f64::NAN) * 1_024.0 / 1e6
        })
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let down = ["down", "--cancel-jobs"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_pollux"));
        let _ = command.args(down).env("POLLUX_STATE", self.folder.path()).stderr(Stdio::null()).status();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A job of this program's own workers, on so many GPUs.
pub(crate) fn own_job(gpus: &str, notes: &Path) -> String {
    let program = std::env::current_exe().expect("this program has a file");
    format!(
        "name: bench\ncommand: [{}, {WORD}, {}]\nresources: {{gpus: {gpus}}}\n\
         training: {{application: bench, batch: {{initial: 32, max: 512, per_gpu: [8, 128]}}}}\n",
        program.display(),
        notes.display()
    )
}

/// Waits for something that must come.
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "not within five minutes: {what}");
        sleep(LOOK_EVERY);
    }
}
