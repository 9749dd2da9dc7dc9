//! Processes of this machine: told apart, found, signalled and waited for.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// One process. A number is used again; number, start and boot together are not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The process's number.
    pub pid: i32,
    /// When it started, in the kernel's ticks since boot.
    pub start: u64,
    /// Which boot of the machine.
    pub boot: String,
}

impl Process {
    /// The process that has this number now; none if it is gone or only waits to be collected.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = Stat::read(pid).filter(|stat| !stat.over)?;
        Some(Self { pid, start: stat.start, boot: boot_id() })
    }

    /// The caller's own process.
    pub fn own() -> Option<Self> {
        Self::of(rustix::process::getpid().as_raw_pid())
    }

    /// Whether it still runs.
    pub fn is_alive(&self) -> bool {
        Self::of(self.pid).is_some_and(|process| process == *self)
    }

    /// A handle on exactly this process; none if it is gone.
    pub(super) fn open(&self) -> Option<OwnedFd> {
        let handle = rustix::process::pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        // Looked at after the handle was taken: if it is the right one now, the handle is of it.
        self.is_alive().then_some(handle)
    }

    /// Sends a signal to exactly this process; false if it is gone or not ours.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        self.open().is_some_and(|handle| rustix::process::pidfd_send_signal(&handle, signal).is_ok())
    }
}

/// Waits until the process of a handle is over, and collects it if it is our child.
pub(super) async fn over(handle: OwnedFd) -> io::Result<()> {
    #[expect(
        deprecated,
        reason = "the new name is `unsafe`; a handle that is owned stays open while it is registered"
    )]
    let handle = AsyncFd::with_interest(handle, Interest::READABLE)?;
    drop(handle.readable().await?);
    // Fails for processes that are not our children: somebody else collects those.
    let _ = rustix::process::waitid(
        WaitId::PidFd(std::os::fd::AsFd::as_fd(&handle)),
        WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
    );
    Ok(())
}

/// All processes whose environment was given `name`, with its value; those of others cannot be read and are left out.
pub(super) fn with_variable(name: &str) -> Vec<(Process, String)> {
    let own = rustix::process::getpid().as_raw_pid();
    let mut found = Vec::new();
    for pid in all().into_iter().filter(|pid| *pid != own) {
        let before = Process::of(pid);
        let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { continue };
        let value = environment.split(|byte| *byte == 0).find_map(|entry| {
            entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(String::from_utf8_lossy)
        });
        if let (Some(value), Some(process)) = (value, before)
            && process.is_alive()
        {
            found.push((process, value.into_owned()));
        }
    }
    found
}

/// All processes below this one, whichever group they are in.
pub(super) fn descendants(of: i32) -> Vec<Process> {
    let boot = boot_id();
    let table: Vec<(i32, Stat)> =
        all().into_iter().filter_map(|pid| Stat::read(pid).map(|stat| (pid, stat))).collect();
    let mut below = vec![of];
    let mut at = 0;
    while at < below.len() {
        let parent = below[at];
        below.extend(table.iter().filter(|(_, stat)| stat.parent == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    let alive = |pid: &i32| table.iter().find(|(other, stat)| other == pid && !stat.over);
    below[1..]
        .iter()
        .filter_map(alive)
        .map(|(pid, stat)| Process { pid: *pid, start: stat.start, boot: boot.clone() })
        .collect()
}

/// A moment that can be compared with others of the same boot, however the wall clock jumps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Milliseconds since 1970.
    pub wall_ms: u64,
    /// Milliseconds since boot.
    pub boot_ms: u64,
    /// Which boot.
    pub boot: String,
}

impl Moment {
    /// Now.
    pub fn now() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let since_boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let millis = since_boot.tv_sec * 1_000 + since_boot.tv_nsec / 1_000_000;
        Self {
            wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX),
            boot_ms: u64::try_from(millis).unwrap_or(0),
            boot: boot_id(),
        }
    }

    /// Whether this is earlier than the other; by the wall clock if the machine was restarted between.
    pub fn is_before(&self, other: &Self) -> bool {
        if self.boot == other.boot { self.boot_ms < other.boot_ms } else { self.wall_ms < other.wall_ms }
    }
}

/// Read once: no process sees another boot than its own.
fn boot_id() -> String {
    static BOOT: OnceLock<String> = OnceLock::new();
    if let Some(known) = BOOT.get() {
        return known.clone();
    }
    // One that could not be read, as with no file to spare, is not remembered.
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| String::new(), |id| BOOT.get_or_init(|| id.trim().to_owned()).clone())
}

/// The numbers of all processes, in order.
fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<i32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

/// What the kernel says of a process.
struct Stat {
    over: bool,
    parent: i32,
    start: u64,
}

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The second field is the program's name in brackets and may hold anything, brackets and blanks too.
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace();
        let over = matches!(fields.next()?, "Z" | "X" | "x");
        let parent = fields.next()?.parse().ok()?;
        Some(Self { over, parent, start: fields.nth(17)?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_stat(line: &str, expected: Option<(bool, i32, u64)>) {
        assert_eq!(Stat::parse(line).map(|stat| (stat.over, stat.parent, stat.start)), expected, "{line}");
    }

    #[test]
    fn fields_follow_the_last_bracket() {
        let rest = "1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 555 0 0";
        check_stat(&format!("12 (sh) S {rest}"), Some((false, 1, 555)));
        check_stat(&format!("12 (a) R (b) Z {rest}"), Some((true, 1, 555)));
        check_stat("12 (sh) S 1 7", None);
        check_stat("", None);
    }

    #[test]
    fn a_number_without_the_right_start_is_another_process() {
        let own = Process::own().unwrap();
        assert!(own.is_alive());
        assert!(!Process { start: own.start + 1, ..own.clone() }.is_alive());
        assert!(!Process { boot: "another".to_owned(), ..own }.is_alive());
    }

    #[test]
    fn moments_of_one_boot_ignore_the_wall_clock() {
        let moment = |wall_ms, boot_ms, boot: &str| Moment { wall_ms, boot_ms, boot: boot.to_owned() };
        assert!(moment(900, 1, "a").is_before(&moment(100, 2, "a")));
        assert!(!moment(900, 1, "a").is_before(&moment(100, 2, "b")));
    }
}
