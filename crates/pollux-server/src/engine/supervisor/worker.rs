//! The worker of a supervisor: how it is started.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal};
use tokio::net::unix::pipe;

use super::SuperviseError;
use crate::engine::cgroup::{self, Cgroup};
use crate::engine::environment::environment;
use crate::engine::run::RunSpec;

/// A started worker.
pub(super) struct Worker {
    pub(super) pid: Pid,
    /// Its standard output and standard error, as they come.
    pub(super) output: pipe::Receiver,
    pub(super) cgroup: Option<Cgroup>,
    /// Why limits that were asked for do not hold.
    pub(super) without_limits: Option<String>,
}

impl Worker {
    /// Starts the rank's command in a group of its own.
    pub(super) fn start(spec: &RunSpec, rank: u32) -> io::Result<Self> {
        let name = format!("pollux-{}-{}.{rank}", spec.state, spec.run);
        let (cgroup, without_limits) = match Cgroup::create(&cgroup::parents(), &name, &spec.told.limits) {
            Ok(cgroup) => (Some(cgroup), None),
            Err(why) => (None, spec.told.limits.is_some().then_some(why)),
        };
        let (reader, writer) = io::pipe()?;
        // By this name the program is found even if its file was replaced meanwhile.
        let mut command = Command::new("/proc/self/exe");
        command.args(["supervise", "--exec"]).arg(std::process::id().to_string());
        if let Some(cgroup) = &cgroup {
            command.arg("--cgroup").arg(cgroup.door());
        }
        command.arg("--").args(&spec.told.command);
        // The scheduler's own settings are not the job's business.
        for (variable, _) in std::env::vars_os() {
            if variable.as_encoded_bytes().starts_with(b"POLLUX_") {
                command.env_remove(variable);
            }
        }
        command
            .envs(environment(spec, rank).unwrap_or_default())
            .current_dir(&spec.told.workdir)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let child = command.spawn().inspect_err(|_| {
            if let Some(cgroup) = &cgroup {
                cgroup.remove();
            }
        })?;
        // The command holds writing ends of the pipe: while it lives, the pipe has no end.
        drop(command);
        let output = pipe::Receiver::from_owned_fd(reader.into())?;
        Ok(Self { pid: Pid::from_child(&child), output, cgroup, without_limits })
    }
}

/// Asks to die with the parent, joins the control group, and becomes the command.
pub(super) fn become_worker(
    parent: i32,
    cgroup: Option<&Path>,
    command: &[OsString],
) -> Result<Infallible, SuperviseError> {
    let (program, arguments) = command.split_first().ok_or(SuperviseError::Usage)?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(|errno| {
        SuperviseError::System { doing: "ask to die with the supervisor", error: errno.into() }
    })?;
    // If it died before the line above, nobody will tell us.
    if rustix::process::getppid() != Pid::from_raw(parent) {
        return Err(SuperviseError::ParentGone(parent));
    }
    if let Some(door) = cgroup
        && let Err(error) = fs::write(door, "0")
    {
        // Rather a job without limits than no job.
        let _ = writeln!(
            io::stderr(),
            "note: limits, if any, do not hold: cannot write {}: {error}",
            door.display()
        );
    }
    let error = Command::new(program).args(arguments).exec();
    Err(SuperviseError::Exec { command: program.to_string_lossy().into_owned(), error })
}
