//! Processes as the machine shows them: nothing here asks the scheduler.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

/// What the scheduler is given, and what all its processes inherit: the folder of the test.
pub(crate) const MARK: &str = "CHAOS_FOLDER";

/// A process that carries the mark.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) pid: i32,
    /// When it started: a number may be used again, number and start are not.
    start: u64,
    variables: BTreeMap<String, String>,
}

/// What a marked process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Scheduler,
    Supervisor,
    Worker,
}

impl Seen {
    fn of(pid: i32, mark: &str) -> Option<Self> {
        let start = start(pid)?;
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let mut variables = BTreeMap::new();
        for entry in environment.split(|byte| *byte == 0) {
            if let Some((name, value)) = String::from_utf8_lossy(entry).split_once('=') {
                variables.insert(name.to_owned(), value.to_owned());
            }
        }
        let seen = Self { pid, start, variables };
        (seen.variable(MARK) == Some(mark) && seen.is_alive()).then_some(seen)
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Told apart by what they are told: a worker where it is, a supervisor only whose it is.
    pub(crate) fn kind(&self) -> Kind {
        match (self.variable("POLLUX_RUN"), self.variable("POLLUX_NODE")) {
            (Some(_), Some(_)) => Kind::Worker,
            (Some(_), None) => Kind::Supervisor,
            (None, _) => Kind::Scheduler,
        }
    }

    pub(crate) fn is_alive(&self) -> bool {
        start(self.pid) == Some(self.start)
    }

    /// Kills it with signal 9; false if it was gone.
    pub(crate) fn kill(&self) -> bool {
        let kill = || Command::new("kill").args(["-9", &self.pid.to_string()]).stderr(Stdio::null()).status();
        self.is_alive() && kill().is_ok_and(|status| status.success())
    }
}

/// All living processes with this mark.
pub(crate) fn marked(mark: &str) -> Vec<Seen> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<i32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids.into_iter().filter_map(|pid| Seen::of(pid, mark)).collect()
}

/// When a process started, in the kernel's ticks; none if it is gone or only waits to be collected.
fn start(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X" | "x") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}
