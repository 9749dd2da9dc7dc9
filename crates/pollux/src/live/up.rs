//! The scheduler on this machine: started, stopped.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pollux_api::client::Client;
use pollux_api::rest::JobList;
use pollux_server::{Cluster, KeepRuns, LogForm, Settings, TlsSettings, serve};

use super::args::{DownArgs, LogFormat, UpArgs};
use super::failure::LiveFailure;
use super::place::{self, Running, running, state_folder};
use crate::output::Output;

/// How long a scheduler may take to answer for the first time, or to end.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(crate) fn up(args: &UpArgs) -> Result<Output, LiveFailure> {
    let state = state_folder(&args.at);
    if args.detach {
        return detached(&state);
    }
    if args.round.is_some_and(|secs| !(0.05..=86_400.0).contains(&secs)) {
        return Err(LiveFailure::usage("--round takes seconds from 0.05 to 86400"));
    }
    if !(0.05..=3_600.0).contains(&args.report_every) {
        return Err(LiveFailure::usage("--report-every takes seconds from 0.05 to 3600"));
    }
    if !(0.0..=36_500.0).contains(&args.keep_logs_days) || !(0.0..=1e9).contains(&args.keep_logs_gib) {
        return Err(LiveFailure::usage("--keep-logs-days and --keep-logs-gib take numbers from 0"));
    }
    let tls = args.tls_listen.clone().zip(args.tls_cert.clone()).zip(args.tls_key.clone());
    let supervisor = std::env::current_exe()
        .map_err(|error| LiveFailure::failed(format!("cannot find myself: {error}")))?;
    let settings = Settings {
        state,
        listen: args.listen.clone(),
        cluster: args.emulate.as_deref().map_or(Cluster::Found, |shape| Cluster::Emulated(shape.to_owned())),
        policy: args.policy.clone(),
        round: args.round.map(Duration::from_secs_f64),
        report_every: Duration::from_secs_f64(args.report_every),
        seed: args.seed,
        history: args.history,
        supervisor: vec![supervisor.display().to_string(), "supervise".to_owned()],
        tls: tls.map(|((listen, certificate), key)| TlsSettings { listen, certificate, key }),
        insecure: args.insecure,
        log: match args.log_format {
            LogFormat::Text => LogForm::Text,
            LogFormat::Json => LogForm::Json,
        },
        keep: KeepRuns {
            longest: Duration::from_secs_f64(86_400.0 * args.keep_logs_days),
            most_bytes: gib(args.keep_logs_gib),
        },
    };
    serve(&settings, |said| crate::output::say(&format!("{said}\n")))
        .map_err(|error| LiveFailure::Failed { text: error.to_string(), hint: error.hint() })?;
    Ok(Output::default())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be from 0 to 1e9")]
fn gib(number: f64) -> u64 {
    (number * f64::from(1 << 30)) as u64
}

/// Starts the same command again in the background, and waits until it answers.
fn detached(state: &Path) -> Result<Output, LiveFailure> {
    let arguments = std::env::args_os().skip(1).filter(|argument| argument != "--detach");
    let (_, running) = spawned(arguments, state)?;
    let data = format!("{}\n", running.url);
    let notes = vec![format!("the scheduler runs as process {}; `pollux down` stops it", running.pid)];
    Ok(Output { data, notes, ..Output::default() })
}

/// Starts a scheduler with these arguments as a process of its own group, and waits until it answers.
pub(crate) fn spawned(
    arguments: impl IntoIterator<Item = OsString>,
    state: &Path,
) -> Result<(Child, Running), LiveFailure> {
    let failed =
        |what: &str, error: &dyn std::fmt::Display| LiveFailure::failed(format!("cannot {what}: {error}"));
    let mut folder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.recursive(true).create(state).map_err(|error| failed("make the state folder", &error))?;
    let program = std::env::current_exe().map_err(|error| failed("find myself", &error))?;
    let log_path = state.join("pollux.log");
    let log = OpenOptions::new().create(true).append(true).open(&log_path);
    let log = log.map_err(|error| failed("write the log", &error))?;
    let both = |log: &File| log.try_clone().map(Stdio::from);
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command.stdout(both(&log).map_err(|error| failed("write the log", &error))?);
    command.stderr(both(&log).map_err(|error| failed("write the log", &error))?);
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(|error| failed("start the scheduler", &error))?;
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Ok(Some(status)) = child.try_wait() {
            let text = std::fs::read_to_string(&log_path).unwrap_or_default();
            let last: Vec<&str> = text.lines().rev().take(5).collect();
            let last: Vec<&str> = last.into_iter().rev().collect();
            return Err(LiveFailure::Failed {
                text: format!("the scheduler ended at once ({status}):\n{}", last.join("\n")),
                hint: Some(format!("its log is {}", log_path.display())),
            });
        }
        if let Some(running) = running(state).filter(|running| running.pid == child.id())
            && Client::new(&running.url, "").watch("/healthz").is_ok()
        {
            return Ok((child, running));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    // Nobody would know of it.
    let _ = child.kill();
    let _ = child.wait();
    Err(LiveFailure::Failed {
        text: "the scheduler did not answer within 30 s".to_owned(),
        hint: Some(format!("its log is {}", log_path.display())),
    })
}

/// Cancels all jobs, and waits until they have left.
pub(crate) fn cancel_all(client: &Client) -> Result<(), LiveFailure> {
    loop {
        let jobs: JobList = client.get("/v1/jobs?state=active")?;
        if jobs.jobs.is_empty() {
            return Ok(());
        }
        for job in &jobs.jobs {
            // It may have ended meanwhile.
            let _ = client.send::<serde_json::Value>(
                "POST",
                &format!("/v1/jobs/{}:cancel", job.id),
                &[],
                None::<&()>,
            );
        }
        std::thread::sleep(LOOK_EVERY * 4);
    }
}

pub(crate) fn down(args: &DownArgs) -> Result<Output, LiveFailure> {
    let state = state_folder(&args.at);
    let found = running(&state).ok_or_else(|| LiveFailure::NotRunning { state: state.clone() })?;
    if args.cancel_jobs {
        cancel_all(&place::client(&args.at)?)?;
    }
    pollux_server::stop(found.pid)
        .map_err(|error| LiveFailure::failed(format!("cannot stop process {}: {error}", found.pid)))?;
    let began = Instant::now();
    while running(&state).is_some_and(|now| now.pid == found.pid) && pollux_server::is_alive(found.pid) {
        if began.elapsed() > PATIENCE {
            return Err(LiveFailure::failed(format!("process {} does not end", found.pid)));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let note = "the scheduler has stopped; jobs go on, and the next `pollux up` finds them".to_owned();
    Ok(Output { notes: vec![note], ..Output::default() })
}
