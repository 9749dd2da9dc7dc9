//! `pollux supervise`: starts one rank of a run, and sees it to its end without the scheduler's help.
//!
//! The supervisor leaves the scheduler's terminal and group, so that it outlives it, and adopts whatever its worker
//! leaves behind. The worker asks to die with its supervisor. SIGTERM is passed on to the worker's group and
//! starts the grace; a second one, or the end of the grace, kills. When the last process is gone, `RANK.exit` says how
//! it was.

mod worker;

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Signal, WaitOptions};
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::time::Instant;

use super::folder::{ExitRecord, FolderError, PidRecord, RunFolder};
use super::how::End;
use super::log::RotatingLog;
use super::process::{self, Moment, Process};
use super::run::RunSpec;
use worker::Worker;

/// How to call it.
const USAGE: &str = "usage: pollux supervise RUN_FOLDER RANK\n       pollux supervise --exec PARENT [--cgroup FILE] -- COMMAND ..";

/// While processes are being killed, how often to look for those they started meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How often to try to write to a full disk.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// How long the runtime rests to take in signals that have come.
const REST: Duration = Duration::from_millis(10);

/// Written to standard output when the worker runs.
pub(super) const UP: &[u8] = b"up\n";

/// Why there is nothing to supervise.
#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    /// Wrong arguments.
    #[error("{USAGE}")]
    Usage,
    /// The run's folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The run has fewer ranks.
    #[error("run {run} has {n_ranks} ranks, so none numbered {rank}; ranks begin with 0")]
    NoSuchRank {
        /// The run.
        run: String,
        /// How many ranks it has.
        n_ranks: usize,
        /// The one asked for.
        rank: u32,
    },
    /// Somebody else has started the rank, or forbidden it.
    #[error("rank {0} of this run was started before, or must not start any more; nothing was done")]
    Claimed(u32),
    /// The parent was gone before the worker could ask to die with it.
    #[error("the supervisor {0} is gone; nothing was started")]
    ParentGone(i32),
    /// The command cannot be run.
    #[error("cannot run `{command}`: {error}; check the job's command, and PATH in its environment")]
    Exec {
        /// The program.
        command: String,
        /// What the system said.
        error: io::Error,
    },
    /// The system refused something.
    #[error("cannot {doing}: {error}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What it said.
        error: io::Error,
    },
}

/// The command's door: `args` follow the word `supervise`.
///
/// Must be called on the main thread, before others are started: a worker dies with the *thread* that started it.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let error = if args.first().is_some_and(|first| first == "--exec") {
        let Err(error) = exec(&args[1..]);
        error
    } else {
        match supervise(&args) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(error) => error,
        }
    };
    let _ = writeln!(io::stderr(), "error: {error}");
    // As shells have it: 127 not found, 126 found but not to be run.
    ExitCode::from(match error {
        SuperviseError::Usage => 2,
        SuperviseError::Exec { error, .. } if error.kind() == ErrorKind::NotFound => 127,
        SuperviseError::Exec { .. } => 126,
        _ => 1,
    })
}

/// Becomes the worker: `PARENT [--cgroup FILE] -- COMMAND ..`.
fn exec(args: &[OsString]) -> Result<Infallible, SuperviseError> {
    let split = args.iter().position(|arg| arg == "--").ok_or(SuperviseError::Usage)?;
    let (ours, command) = (&args[..split], &args[split + 1..]);
    let (parent, cgroup) = match ours {
        [parent] => (parent, None),
        [parent, flag, door] if flag == "--cgroup" => (parent, Some(door)),
        _ => return Err(SuperviseError::Usage),
    };
    let parent = parent.to_str().and_then(|pid| pid.parse().ok()).ok_or(SuperviseError::Usage)?;
    worker::become_worker(parent, cgroup.map(AsRef::as_ref), command)
}

/// Sees one rank through: `RUN_FOLDER RANK`.
fn supervise(args: &[OsString]) -> Result<(), SuperviseError> {
    let [folder, rank] = args else { return Err(SuperviseError::Usage) };
    let rank: u32 = rank.to_str().and_then(|rank| rank.parse().ok()).ok_or(SuperviseError::Usage)?;
    let folder = RunFolder::at(folder);
    let spec = folder.spec()?;
    if usize::try_from(rank).is_ok_and(|rank| rank >= spec.ranks.len()) {
        return Err(SuperviseError::NoSuchRank {
            run: spec.run.to_string(),
            n_ranks: spec.ranks.len(),
            rank,
        });
    }
    // Fails if we lead a group already, as when started by hand: then we are on our own anyway.
    let _ = rustix::process::setsid();
    let own = rustix::process::getpid();
    let system = |doing| move |error: io::Error| SuperviseError::System { doing, error };
    rustix::process::set_child_subreaper(Some(own)).map_err(|errno| system("adopt orphans")(errno.into()))?;
    // One thread, this one: the worker dies with the thread that starts it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(system("begin"))?.block_on(see_through(&folder, &spec, rank))
}

async fn see_through(folder: &RunFolder, spec: &RunSpec, rank: u32) -> Result<(), SuperviseError> {
    let started = Moment::now();
    // Before the claim: whoever reads our number in it may signal us.
    let mut signals =
        Ears::open().map_err(|error| SuperviseError::System { doing: "hear signals", error })?;
    let mut record = PidRecord { supervisor: Process::own(), ..PidRecord::default() };
    if !folder.claim(rank, &record)? {
        return Err(SuperviseError::Claimed(rank));
    }
    let log = RotatingLog::open(&folder.file(rank, "log"), spec.told.log);
    let worker = match Worker::start(spec, rank) {
        Ok(worker) => worker,
        Err(error) => {
            let end = End::NotStarted(error.to_string());
            folder.record_exit(rank, &ExitRecord::new(end, started, Moment::now()))?;
            return Ok(());
        }
    };
    record.worker = Process::of(worker.pid.as_raw_pid());
    record.without_limits.clone_from(&worker.without_limits);
    record.cgroup = worker.cgroup.as_ref().map(|cgroup| cgroup.path().to_owned());
    // The rank runs; that this could not be noted must not end it.
    let _ = folder.update(rank, &record);
    let _ = io::stdout().write_all(UP).and_then(|()| io::stdout().flush());

    let grace = Duration::from_millis(spec.told.grace_ms);
    let mut watch =
        Watch { worker, log, grace, phase: Phase::Runs, asked: false, killed: false, ended: None };
    watch.run(&mut signals, folder, rank).await;
    let exit = watch.conclude(started);
    // How a rank ended must not be lost to a disk that is full for a while.
    while let Err(error) = folder.record_exit(rank, &exit) {
        if !error.is_full() {
            return Err(error.into());
        }
        tokio::time::sleep(TRY_AGAIN).await;
    }
    Ok(())
}

/// The signals a supervisor hears.
struct Ears {
    term: Signals,
    int: Signals,
    child: Signals,
    /// Heard and ignored: terminals and log rotation are not our business.
    _hup: Signals,
}

impl Ears {
    fn open() -> io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            child: signal(SignalKind::child())?,
            _hup: signal(SignalKind::hangup())?,
        })
    }
}

/// How far the end is.
enum Phase {
    Runs,
    /// SIGTERM was sent; who is there after this moment is killed.
    Leaves(Instant),
    /// SIGKILL was sent; at this moment we look for processes started meanwhile.
    Dies(Instant),
}

/// A worker and what becomes of it.
struct Watch {
    worker: Worker,
    log: RotatingLog,
    grace: Duration,
    phase: Phase,
    asked: bool,
    killed: bool,
    ended: Option<(End, Moment)>,
}

impl Watch {
    /// Returns when the worker and all it left behind are gone.
    async fn run(&mut self, signals: &mut Ears, folder: &RunFolder, rank: u32) {
        let mut buffer = vec![0; 64 << 10];
        let mut output_open = true;
        while self.reap() {
            let due = match self.phase {
                Phase::Runs => None,
                Phase::Leaves(due) | Phase::Dies(due) => Some(due),
            };
            tokio::select! {
                _ = signals.term.recv() => self.ask(&mut signals.term, folder, rank).await,
                _ = signals.int.recv() => self.ask(&mut signals.int, folder, rank).await,
                _ = signals.child.recv() => {}
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => self.kill(),
                ready = self.worker.output.readable(), if output_open => {
                    output_open = ready.is_ok() && pump(&self.worker.output, &mut self.log, &mut buffer);
                }
            }
        }
        // Everybody who could write is gone; what they wrote is still in the pipe.
        // Read as it is: the runtime may not have noticed yet that there is something.
        while let Ok(n @ 1..) = rustix::io::read(&self.worker.output, &mut buffer) {
            self.log.append(&buffer[..n]);
        }
    }

    /// Collects who has ended; false when nobody is left.
    fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.worker.pid => {
                    let end = match (status.exit_status(), status.terminating_signal()) {
                        (Some(code), _) => End::Code(code),
                        (None, Some(signal)) => End::Signal(signal),
                        (None, None) => continue,
                    };
                    self.ended = Some((end, Moment::now()));
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => break,
                Err(_) => return false,
            }
        }
        // A worker's end is the rank's end: what it left behind is asked to leave too, with the same grace. If the
        // worker was asked before, the grace runs already: its children may still be saving.
        if self.ended.is_some() && matches!(self.phase, Phase::Runs) {
            signal_descendants(Signal::TERM);
            self.phase = Phase::Leaves(Instant::now() + self.grace);
        }
        true
    }

    /// SIGTERM came. The first starts the grace, the second ends it.
    async fn ask(&mut self, stream: &mut Signals, folder: &RunFolder, rank: u32) {
        if self.asked {
            self.kill();
            return;
        }
        self.asked = true;
        let _ = folder.mark_asked(rank);
        if self.ended.is_none() {
            // The worker is not collected yet, so its number still names its group.
            let _ = rustix::process::kill_process_group(self.worker.pid, Signal::TERM);
        }
        if matches!(self.phase, Phase::Runs) {
            self.phase = Phase::Leaves(Instant::now() + self.grace);
        }
        // Whoever sent a signal before the mark could be seen meant the same one. It has reached the process, but the
        // runtime hands it over only when it comes to rest.
        tokio::time::sleep(REST).await;
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        while stream.poll_recv(&mut context).is_ready() {}
    }

    /// Kills everybody, also who was started since the last look.
    fn kill(&mut self) {
        self.killed = true;
        self.phase = Phase::Dies(Instant::now() + LOOK_AGAIN);
        if self.ended.is_none() {
            let _ = rustix::process::kill_process_group(self.worker.pid, Signal::KILL);
        }
        if let Some(cgroup) = &self.worker.cgroup {
            cgroup.kill();
        }
        signal_descendants(Signal::KILL);
    }

    fn conclude(self, started: Moment) -> ExitRecord {
        let (end, ended) = self.ended.unwrap_or_else(|| (End::Lost, Moment::now()));
        let memory = self.worker.cgroup.as_ref().map(|cgroup| {
            let memory = cgroup.memory();
            cgroup.remove();
            memory
        });
        let memory = memory.unwrap_or_default();
        ExitRecord {
            asked: self.asked,
            killed_after_grace: self.killed,
            oom_kills: memory.oom_kills,
            peak_memory_bytes: memory.peak_bytes,
            log_lost_bytes: self.log.lost(),
            without_limits: self.worker.without_limits,
            ..ExitRecord::new(end, started, ended)
        }
    }
}

/// Signals every process below us, whichever group it is in.
fn signal_descendants(signal: Signal) {
    for process in process::descendants(rustix::process::getpid().as_raw_pid()) {
        process.signal(signal);
    }
}

/// Moves what there is from the pipe to the log; false at the end of output.
fn pump(output: &pipe::Receiver, log: &mut RotatingLog, buffer: &mut [u8]) -> bool {
    match output.try_read(buffer) {
        Ok(0) => false,
        Ok(n) => {
            log.append(&buffer[..n]);
            true
        }
        Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    }
}
