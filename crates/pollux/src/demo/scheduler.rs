//! A scheduler of the demo's own, which leaves nothing behind.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use pollux_api::client::Client;

use crate::live::LiveFailure;
use crate::live::args::At;
use crate::live::{place, up};

/// How long a scheduler may take to end that was asked to.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A running scheduler. When it is dropped, its jobs and itself are ended.
pub(super) struct Scheduler {
    child: Child,
    client: Client,
    arguments: Vec<OsString>,
    state: PathBuf,
    is_over: bool,
}

impl Scheduler {
    /// Starts one that rounds each second.
    pub(super) fn start(state: &Path, cluster: &str, policy: &str) -> Result<Self, LiveFailure> {
        let words = ["up", "--emulate", cluster, "--policy", policy, "--round", "1", "--report-every", "0.5"];
        let mut arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        arguments.extend(["--listen", "127.0.0.1:0", "--state"].map(OsString::from));
        arguments.push(state.into());
        let (child, client) = started(&arguments, state)?;
        Ok(Self { child, client, arguments, state: state.to_owned(), is_over: false })
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Ends what still runs, then the scheduler.
    pub(super) fn end(&mut self) -> Result<(), LiveFailure> {
        if self.is_over {
            return Ok(());
        }
        self.is_over = true;
        if up::cancel_all(&self.client).is_err() {
            // It died, and its jobs outlived it: another one finds them.
            self.kill();
            (self.child, self.client) = started(&self.arguments, &self.state)?;
            up::cancel_all(&self.client)?;
        }
        let stopped = pollux_server::stop(self.child.id());
        let began = Instant::now();
        while stopped.is_ok() && began.elapsed() < PATIENCE {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return Ok(());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        self.kill();
        Ok(())
    }

    fn kill(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            let state = self.state.display();
            crate::output::say(&format!(
                "warning: {error}; jobs may be left, `pollux up --emulate 1x1:t4 --state {state}` finds them\n"
            ));
            self.kill();
        }
    }
}

fn started(arguments: &[OsString], state: &Path) -> Result<(Child, Client), LiveFailure> {
    let (mut child, running) = up::spawned(arguments.iter().cloned(), state)?;
    // Whatever the environment says: this scheduler, as its administrator.
    let token_file = Some(state.join("admin.token"));
    let at = At { server: Some(running.url), token_file, state: Some(state.to_owned()), ca_file: None };
    match place::client(&at) {
        Ok(client) => Ok((child, client)),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(error)
        }
    }
}
