//! Single ranks: started, asked to leave, and waited for.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal};
use tokio::net::unix::pipe;

use super::environment::RUN_VARIABLE;
use super::folder::{ExitRecord, PidRecord, RunFolder};
use super::how::End;
use super::process::{self, Moment};
use super::run::RunSpec;

/// How often a rank that another engine started is looked at until its worker runs.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A supervisor that was just started.
pub(super) struct Launched {
    handle: OwnedFd,
    ready: ChildStdout,
}

/// Starts the supervisor of a rank. It may find that another one was faster; then it does nothing.
pub(super) fn launch(
    supervisor: &[OsString],
    folder: &RunFolder,
    spec: &RunSpec,
    rank: u32,
) -> io::Result<Launched> {
    let (program, arguments) = supervisor.split_first().ok_or(io::ErrorKind::NotFound)?;
    let errors = OpenOptions::new().create(true).append(true).open(folder.file(rank, "err"))?;
    let mut child = Command::new(program)
        .args(arguments)
        .arg(std::path::absolute(folder.path())?)
        .arg(rank.to_string())
        .env(RUN_VARIABLE, spec.run.tag(&spec.state, rank))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()?;
    // Nobody has collected it, so its number is still its own.
    let handle = rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    let ready = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    Ok(Launched { handle, ready })
}

/// Starts a rank; if that fails, its folder says so.
pub(super) fn launch_or_note(
    supervisor: &[OsString],
    folder: &RunFolder,
    spec: &RunSpec,
    rank: u32,
) -> Option<Launched> {
    launch(supervisor, folder, spec, rank)
        .inspect_err(|error| drop(forbid(folder, rank, &format!("no supervisor: {error}"), false)))
        .ok()
}

/// Sees to it that a rank that was not started never is; none if it was.
pub(super) fn forbid(folder: &RunFolder, rank: u32, why: &str, asked: bool) -> Option<ExitRecord> {
    if !folder.claim(rank, &PidRecord::default()).ok()? {
        return None;
    }
    let now = Moment::now();
    let exit = ExitRecord { asked, ..ExitRecord::new(End::NotStarted(why.to_owned()), now.clone(), now) };
    let _ = folder.record_exit(rank, &exit);
    Some(exit)
}

/// Asks a rank to leave, once, whoever asks and how often.
pub(super) fn ask(folder: &RunFolder, rank: u32) {
    // Two turns: a rank that cannot be forbidden has just been claimed.
    for _ in 0..2 {
        if folder.is_asked(rank) || matches!(folder.exit(rank), Ok(Some(_))) {
            return;
        }
        match folder.pid(rank) {
            Ok(Some(PidRecord { supervisor: Some(supervisor), .. })) => {
                supervisor.signal(Signal::TERM);
                return;
            }
            Ok(None) if forbid(folder, rank, "the run was to end before it began", true).is_none() => {}
            // Nobody, or nothing that can be read: when the run ends, its processes are looked for.
            Ok(_) | Err(_) => return,
        }
    }
}

/// Kills a rank's supervisor, and with it the worker.
pub(super) fn kill(folder: &RunFolder, rank: u32) {
    if let Ok(Some(PidRecord { supervisor: Some(supervisor), .. })) = folder.pid(rank) {
        supervisor.signal(Signal::KILL);
    }
}

/// Waits until the rank's worker runs and says who it is; none if it ended or never will run.
pub(super) async fn up(folder: &RunFolder, rank: u32, ready: Option<ChildStdout>) -> Option<PidRecord> {
    if let Some(ready) = ready.and_then(|ready| pipe::Receiver::from_owned_fd(ready.into()).ok()) {
        let mut word = [0; 8];
        while ready.readable().await.is_ok() {
            match ready.try_read(&mut word) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                _ => break,
            }
        }
    }
    // Started by an engine that is gone, or by another supervisor than the one launched here.
    loop {
        if let Ok(Some(record)) = folder.pid(rank)
            && record.worker.is_some()
        {
            return Some(record);
        }
        if !matches!(folder.exit(rank), Ok(None)) {
            return None;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Waits until a rank is over and says how; a rank that cannot say so itself is given a record.
pub(super) async fn end(folder: &RunFolder, rank: u32, handle: Option<OwnedFd>) -> ExitRecord {
    if let Some(handle) = handle {
        let _ = process::over(handle).await;
    }
    loop {
        // In this order: a supervisor writes the record, then ends.
        let supervisor = folder.pid(rank).ok().flatten().map(|record| record.supervisor);
        if let Some(handle) = supervisor.as_ref().and_then(Option::as_ref).and_then(process::Process::open) {
            let _ = process::over(handle).await;
        }
        if let Ok(Some(exit)) = folder.exit(rank) {
            return exit;
        }
        if supervisor.is_some() {
            let now = Moment::now();
            let exit = ExitRecord::new(End::Lost, now.clone(), now);
            // A record that cannot be read, or a full disk: this is the answer all the same.
            let _ = folder.record_exit(rank, &exit);
            return exit;
        }
        let why = format!("its supervisor ended before it began; see {rank}.err beside its log");
        if let Some(exit) = forbid(folder, rank, &why, false) {
            return exit;
        }
        // Nothing can be read or written: a full disk, or files of others.
        let end = match folder.pid(rank) {
            Ok(Some(_)) => continue,
            Ok(None) => End::NotStarted(why),
            Err(_) => End::Lost,
        };
        let now = Moment::now();
        return ExitRecord::new(end, now.clone(), now);
    }
}

impl Launched {
    /// The handle on the supervisor, and where it says that its worker runs.
    pub(super) fn split(self) -> (OwnedFd, ChildStdout) {
        (self.handle, self.ready)
    }
}
